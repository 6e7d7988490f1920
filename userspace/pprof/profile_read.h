/* SPDX-License-Identifier: BSD-2-Clause */
/* pprof files, ours and other tools', into one struct profile: the reverse of pprof.c, and the only
 * decoder there is.  Files are read one after the other into the same profile: equal strings,
 * frames, stacks and label sets are kept once, so memory grows with what differs, not with the
 * number of files.  The file's bytes are hostile: every length, index and sum is checked. */
#ifndef PPROF_PROFILE_READ_H
#define PPROF_PROFILE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "profile/profile.h"

/* Of one file, unpacked.  More is refused, not read: a few megabytes of gzip unpack to gigabytes. */
#define PROFILE_READ_MAX_BYTES (512U << 20)

/* What one file added to a row of the profile, in the sample type of profile_reader_value_index();
 * a row can appear more than once. */
struct profile_delta {
	uint32_t row;
	int64_t value;
	int64_t count; /* in the sample type of profile_reader_count_index(); 0: there is none */
};

/* One file, as it has been read.  Borrowed for the call. */
struct profile_window {
	uint64_t start_wall_ns, duration_ns; /* 0: the file does not say */
	const struct profile_delta *delta;
	size_t delta_count;
	int64_t total;	/* of the deltas' values */
	int64_t period; /* 0: the file does not say */
};

struct profile_read_options {
	/* Label keys that are kept, NULL at the end; NULL: all.  The others are gone, and rows that
	 * differed by them become one. */
	const char *const *keep_labels;
	bool drop_addresses;	 /* frames that differ by their addresses become one */
	bool drop_lines;	 /* ... and by their lines */
	bool python_only;	 /* native and kernel frames go: their time is that of the Python
				  * function that called them; without any: "[no Python]" */
	const char *sample_type; /* what deltas, report and trees show; NULL: the file's default */
	/* May be NULL.  Labels are those of the file, before keep_labels; strings: what
	 * profile_label.string is an id of. */
	bool (*wants_labels)(void *context, const struct intern *strings,
			     const struct profile_label *label, size_t label_count);
	/* May be NULL.  Asked once for each distinct stack of the profile. */
	bool (*wants_stack)(void *context, const struct profile *profile, uint32_t stack);
	/* May be NULL.  After each file; an error ends the reading with it. */
	int (*window_done)(void *context, struct profile *profile,
			   const struct profile_window *window);
	/* May be NULL.  Each comment of each file; those that hold for one window only (ledgers,
	 * facts) are in the profile when it is of one file. */
	void (*comment)(void *context, const char *text);
	void *context;
};

struct profile_reader;

int profile_reader_new(const struct profile_read_options *options,
		       struct profile_reader **ret_reader);
void profile_reader_free(struct profile_reader *reader); /* and its profile */
DEFINE_OWNED(struct profile_reader, profile_reader)

/* Adds one file, gzip'd or not, from its beginning.  fd: borrowed.  kind: what the store's name says,
 * or NULL: then it is made of the sample types.
 * Returns 0; -ENOMEM; -EFBIG: above PROFILE_READ_MAX_BYTES; -ENODATA: empty; -EBADMSG: not a pprof
 * file, cut off or broken; -EPROTO: its sample types are not those of the files before; -ENOENT: it
 * has no sample type of the name that is asked for; -errno of reading.  profile_reader_error() says
 * in words what is wrong.  After an error rows of the broken file may be in the profile. */
int profile_reader_add(struct profile_reader *reader, int fd, const char *kind);
/* A line without the file's name, as "cut off: the gzip data ends early".  Never NULL. */
const char *profile_reader_error(const struct profile_reader *reader);

/* What has been read so far; NULL before the first file.  Owned by the reader. */
struct profile *profile_reader_profile(const struct profile_reader *reader);
/* Which of the sample types is shown, and which counts samples (-1: none does). */
unsigned int profile_reader_value_index(const struct profile_reader *reader);
int profile_reader_count_index(const struct profile_reader *reader);

struct profile_read_totals {
	uint64_t files, bytes, raw_bytes;
	uint64_t samples_dropped; /* by wants_labels and wants_stack: messages, not values */
	uint64_t samples_kept;
	uint64_t start_wall_ns, end_wall_ns; /* the first start, the last end; 0: unknown */
	uint64_t duration_ns;		     /* sum */
};
void profile_reader_totals(const struct profile_reader *reader,
			   struct profile_read_totals *ret_totals);

#endif
