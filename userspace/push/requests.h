/* SPDX-License-Identifier: BSD-2-Clause */
/* Encodes a window as the requests that a collector's protocol has, each below its limits. */
#ifndef PUSH_REQUESTS_H
#define PUSH_REQUESTS_H

#include "push/policy.h"
#include "push/series.h"

struct push_request {
	void *body; /* owned */
	size_t size;
	uint64_t raw_bytes; /* unpacked: what collectors count */
};

/* Release with push_requests_release(), even when push_encode() failed. */
struct push_requests {
	struct push_request *request;
	uint32_t count, capacity;
};
void push_requests_release(struct push_requests *requests);

struct push_encoding {
	enum push_protocol protocol;
	bool packs_otlp; /* the bodies of OTLP are gzip'd */
	const char *host;
	struct push_label_choice labels;
};

struct push_window {
	const char *kind; /* as in the store */
	uint64_t start_wall_ns, duration_ns;
};

/* Encodes the rows of a division; the same rows make the same bytes.  profile: only its strings
 * change.  Returns 0; -ENOMEM; -EFBIG: a single row is more than a collector takes; -EBADMSG: the
 * profile has no values that collectors know. */
int push_encode(const struct push_encoding *encoding, struct profile *profile,
		const struct push_division *division, const struct push_window *window,
		struct push_requests *ret_requests);

/* What goes in front of the body.  The path is that behind the configured address. */
const char *push_path(enum push_protocol protocol);
const char *push_content_type(enum push_protocol protocol);
/* Returns the name that Pyroscope knows a kind by: __name__. */
const char *push_pyroscope_name(const char *kind);

#endif
