/* SPDX-License-Identifier: BSD-2-Clause */
/* A window as the requests that a collector's protocol has, each below its limits: parts of the
 * window's profile, and the labels of its series. */
#ifndef COLLECTORS_REQUESTS_H
#define COLLECTORS_REQUESTS_H

#include "collectors/collector.h"
#include "collectors/series.h"
#include "profile/profile.h"

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
	const struct collector *collector;
	bool is_packed; /* bodies are gzip'd */
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

/* ---- parts of a profile ---- */

/* Pyroscope's bounds are 16,000 samples of one profile, and 2 MB, unpacked, for a moment; the
 * OpenTelemetry collector's is 20 MiB, unpacked. */
#define PUSH_PART_ROWS_MAX 15000U
#define PUSH_PART_RAW_MAX_BYTES (1900U * 1000U)

struct push_part_facts {
	uint64_t start_wall_ns, duration_ns; /* of the window */
	/* keys of the series' values as labels of each sample, first that of the service; NULL: no
	 * labels, as the collector has them from the series */
	const char *const *label_key;
	size_t label_count;
};

/* Adds rows of `from` to a part; a zeroed pointer begins one, which borrows the strings of `from`.
 * Comments stay behind, as they name processes, and values that only our reader uses.  Returns 0,
 * -ENOMEM; -EBADMSG: there are no other values. */
int push_part_add(const struct profile *from, const struct push_series *series, uint32_t first,
		  uint32_t count, const struct push_part_facts *facts, struct profile **part);

/* ---- what the encoders share ---- */

struct push_writer {
	const struct push_encoding *encoding;
	const struct push_window *window;
	struct push_requests requests;
};

/* Adds a finished body.  body: taken over, also after an error.  Returns 0 or -ENOMEM. */
int push_writer_add(struct push_writer *writer, void *body, size_t size, uint64_t raw_bytes);

/* Puts a range of rows in one part, or halves what is too much, at most as often as a number has
 * bits. put: returns 0; -E2BIG: it is too much; -errno.  Returns likewise; -EFBIG: a row alone
 * is. */
int push_halve(uint32_t first, uint32_t count,
	       int (*put)(void *context, uint32_t first, uint32_t count), void *context);

/* Calls `put` with parts of a series as gzip'd pprof: each below PUSH_PART_RAW_MAX_BYTES, as often
 * as it needs. */
struct push_packed {
	const void *bytes;
	size_t size;
	uint64_t raw_bytes;
};
int push_pack_series(struct profile *profile, const struct push_series *series,
		     const struct push_window *window,
		     int (*put)(void *context, const struct push_series *series,
				const struct push_packed *packed),
		     void *context);

/* The labels of a series as its collector wants them, sorted by name. */
struct push_label {
	char name[PUSH_LABEL_NAME_MAX_BYTES + 1];
	const char *value;
	size_t value_size;
};
#define PUSH_OWN_LABELS 3U
struct push_labels {
	struct push_label label[PUSH_LABELS_MAX + PUSH_OWN_LABELS];
	size_t count;
};
/* own: pairs of name and value that the protocol wants, PUSH_OWN_LABELS at most; a chosen label of
 * the same name is left out. */
void push_labels_of(const struct profile *profile, const struct push_label_choice *choice,
		    const struct push_series *series, const char *const (*own)[2], size_t own_count,
		    struct push_labels *ret_labels);

#endif
