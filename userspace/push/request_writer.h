/* SPDX-License-Identifier: BSD-2-Clause */
/* What encode_*.c share: requests that grow part by part. */
#ifndef PUSH_REQUEST_WRITER_H
#define PUSH_REQUEST_WRITER_H

#include "push/part.h"
#include "push/requests.h"

struct push_writer {
	const struct push_encoding *encoding;
	const struct push_window *window;
	struct push_requests requests;
};

/* Adds a finished body.  body: taken over, also after an error.  Returns 0 or -ENOMEM. */
int push_writer_add(struct push_writer *writer, void *body, size_t size, uint64_t raw_bytes);

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

int push_encode_pyroscope(struct push_writer *writer, struct profile *profile,
			  const struct push_division *division);
int push_encode_parca(struct push_writer *writer, struct profile *profile,
		      const struct push_division *division);
int push_encode_otlp(struct push_writer *writer, struct profile *profile,
		     const struct push_division *division);

#endif
