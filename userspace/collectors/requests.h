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

/* ---- what the encoders share ---- */

struct push_writer {
	const struct push_encoding *encoding;
	const struct push_window *window;
	struct profile *profile;
	struct push_requests requests;
};

/* Adds a finished body.  body: taken over, also after an error.  Returns 0 or -ENOMEM. */
int push_writer_add(struct push_writer *writer, void *body, size_t size, uint64_t raw_bytes);

/* Pyroscope's bounds are 16,000 samples of one profile, and 2 MB, unpacked, for a moment; the
 * OpenTelemetry collector's is 20 MiB, unpacked. */
#define PUSH_PART_ROWS_MAX 15000U
#define PUSH_PART_RAW_MAX_BYTES (1900U * 1000U)

/* Adds rows of the profile to a part; a zeroed pointer begins one, which borrows the profile's
 * strings.  service_key: samples get the series' values as labels, the service's with this key;
 * NULL: no labels, as the collector has them from the series.  Comments stay behind, as they name
 * processes, and values that only our reader uses.  Returns 0, -ENOMEM; -EBADMSG: there are no
 * other values. */
int push_part_add(const struct push_writer *writer, const struct push_series *series,
		  uint32_t first, uint32_t count, const char *service_key, struct profile **part);

/* Puts a range of rows in one part, or halves what is too much, at most as often as a number has
 * bits. put: returns 0; -E2BIG: it is too much; -errno.  Returns likewise; -EFBIG: a row alone
 * is. */
int push_halve(uint32_t first, uint32_t count,
	       int (*put)(void *context, uint32_t first, uint32_t count), void *context);

/* Puts parts of all series, as gzip'd pprof, into requests: each of both below
 * PUSH_PART_RAW_MAX_BYTES.  put: adds a part to the request, which it begins if there is none;
 * end: ends the request; both return 0 or -errno. */
struct push_packed {
	const void *bytes;
	size_t size;
};
struct push_bundle {
	int (*put)(void *context, const struct push_series *series,
		   const struct push_packed *packed);
	int (*end)(void *context, uint64_t raw_bytes);
	void *context;
};
int push_bundle(const struct push_writer *writer, const struct push_division *division,
		const struct push_bundle *bundle);

/* The labels of a series as its collector wants them, sorted by name. */
struct push_label {
	char name[PUSH_LABEL_NAME_MAX_BYTES + 1];
	const char *value;
	size_t value_size;
};
struct push_labels {
	struct push_label label[PUSH_LABELS_MAX + 4];
	size_t count;
};
/* name: the profile's, as the protocol wants it; host_key: the label that the host is; another
 * label of the same name as those, or as the service's, is left out. */
void push_labels_of(const struct push_writer *writer, const struct push_series *series,
		    const char *name, const char *host_key, struct push_labels *ret_labels);

#endif
