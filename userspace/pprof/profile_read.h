/* SPDX-License-Identifier: BSD-2-Clause */
/* Decodes pprof files, ours and other tools', into one struct profile.  This is the reverse of
 * pprof.c, and the only decoder.  Values of all files are summed up, but for levels (base/kinds.h:
 * kind_value_is_level()): rows have those of the last window that has any.  All files are read into
 * the same profile: equal strings, frames, stacks and label sets are stored once, so memory grows
 * with what differs, not with the number of files.  The bytes are hostile: every length, index and
 * sum is checked. */
#ifndef PPROF_PROFILE_READ_H
#define PPROF_PROFILE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "profile/comments.h"
#include "profile/profile.h"

/* The most bytes of one unpacked file.  A larger file is refused, because a few megabytes of gzip
 * can unpack to gigabytes. */
#define PROFILE_READ_MAX_BYTES (512U << 20)
/* The most memory that reading takes: so much for any profile, with 16 times the unpacked bytes of
 * all files, but never more than 1 GiB.  Profiles take 2 to 8 times their bytes; a hostile one
 * names the same thousand frames in each of a thousand stacks. */
#define PROFILE_READ_MEMORY_FREE (64ULL << 20)
#define PROFILE_READ_MEMORY_FACTOR 16U
#define PROFILE_READ_MEMORY_MAX (1ULL << 30)

/* What one file added to a row of the profile, in the sample type of profile_reader_value_index().
 * One row may have several. */
struct profile_delta {
	uint32_t row;
	uint32_t window; /* of the file: the decoder's */
	int64_t value;
	/* in the sample type of profile_reader_count_index(); 0: no type counts samples */
	int64_t count;
};

/* One window that has been read: a file's only one, or one of a merged file's.  Borrowed for the
 * call. */
struct profile_window {
	uint64_t start_wall_ns, duration_ns; /* 0: the file does not say */
	const struct profile_delta *delta;
	size_t delta_count;
	int64_t total;	       /* of the deltas' values */
	int64_t period;	       /* 0: the file does not say */
	bool counts_effective; /* the deltas' counts are of the type `effective` */
	bool is_level;	       /* values are levels at the window's end, which nobody may add up */
	bool is_most; /* values are the most of the window: of several windows the largest counts */
};

struct profile_read_options {
	/* Keys of the labels to keep, NULL at the end; NULL keeps all.  Other labels are dropped,
	 * and rows that differed only in those become one. */
	const char *const *keep_labels;
	bool drop_addresses; /* frames that differ only in their addresses become one */
	bool drop_lines;     /* frames that differ only in their lines become one */
	bool drop_stacks;    /* all samples have the same, empty one */
	/* native and kernel frames are dropped: their time goes to the Python function that called
	 * them; a stack without Python frames becomes "[no Python]" */
	bool python_only;
	size_t memory_max;	 /* bytes, instead of PROFILE_READ_MEMORY_MAX; 0, or more: that */
	const char *sample_type; /* which deltas, report and trees use; NULL: the file's default */
	/* Returns whether to keep a sample, by its labels as in the file, before keep_labels;
	 * strings: the table of profile_label.string.  May be NULL. */
	bool (*wants_labels)(void *context, const struct intern *strings,
			     const struct profile_label *label, size_t label_count);
	/* Returns whether to keep a stack; called once for each distinct stack of the profile.  May
	 * be NULL. */
	bool (*wants_stack)(void *context, const struct profile *profile, uint32_t stack);
	/* Returns whether to keep a window of a merged file, which has several; called once for
	 * each, before its samples.  May be NULL. */
	bool (*wants_window)(void *context, const struct window_mark *mark);
	/* Called for each window after its file; an error ends the reading and is returned.  May
	 * be NULL. */
	int (*window_done)(void *context, struct profile *profile,
			   const struct profile_window *window);
	/* Called for each comment of each window.  The profile keeps comments that hold for one
	 * window only (capture metadata) only when it has a single window.  May be NULL. */
	void (*comment)(void *context, const char *text);
	void *context;
};

struct profile_reader;

int profile_reader_new(const struct profile_read_options *options,
		       struct profile_reader **ret_reader);
void profile_reader_free(struct profile_reader *reader); /* frees the profile too */
DEFINE_OWNED(struct profile_reader, profile_reader)

/* Adds one file, gzip'd or not, from its beginning.  fd: borrowed.  kind: from the store's file
 * name, or NULL: then it is derived from the sample types.
 * Returns 0; -ENOMEM; -EFBIG: above PROFILE_READ_MAX_BYTES, or above the bound of memory;
 * -ENODATA: empty; -EBADMSG: not a pprof
 * file, truncated or corrupt; -EPROTO: its sample types differ from those of the files before,
 * or are not those of the kind;
 * -ENOENT: it has no sample type of the requested name; -errno of reading.  profile_reader_error()
 * says in words what is wrong.  After an error the profile is as it was before, but for rows
 * without values; reading can go on. */
int profile_reader_add(struct profile_reader *reader, int fd, const char *kind);
/* Puts a reader with other options in the place of one, which is freed, and adds the file that that
 * one has read last: its bytes need not be unpacked again.  For one window of a merged file after
 * the other.  Returns as profile_reader_add(); -ENOMEM: also when the reader is as it was. */
int profile_reader_again(struct profile_reader **reader, const struct profile_read_options *options,
			 const char *kind);
/* Adds two files of the same windows as one of kind `wall`: of cpu, and of offcpu, or -1 where
 * there was no wait.  The comments are cpu's.  -EPROTO: their windows differ.  Returns as
 * profile_reader_add(). */
int profile_reader_add_wall(struct profile_reader *reader, int cpu_fd, int offcpu_fd);
/* Adds a window that has no samples, with the times of a mark; before the first file it waits for
 * that, as only files tell what their sample types are.  Returns 0; -ENOMEM; an error of
 * window_done. */
int profile_reader_add_empty(struct profile_reader *reader, const struct window_mark *mark);
/* Adds the windows that still wait because no file came, to a profile of one of our kinds.  Returns
 * 0; -ENOMEM; -EINVAL: the kind is not known; an error of window_done. */
int profile_reader_end(struct profile_reader *reader, const char *kind);
/* Calls back for each window that a merged file lists; not for other files.  Returns 0; -errno as
 * profile_reader_add(). */
int profile_windows_list(int fd, void (*on_window)(void *context, const struct window_mark *mark),
			 void *context);
/* Lets each sample of the files added from now on have the label `window` with this number, for a
 * merged file.  Such files must have neither that label nor several windows: -EBADMSG. */
void profile_reader_set_window(struct profile_reader *reader, uint64_t offset_ms);
/* Returns the error in words, without the file's name, such as "cut off: the gzip data ends early".
 * Never NULL. */
const char *profile_reader_error(const struct profile_reader *reader);

/* Returns what has been read so far; NULL before the first file.  Owned by the reader. */
struct profile *profile_reader_profile(const struct profile_reader *reader);
/* Return which sample type is shown, and which one counts samples (-1: none). */
unsigned int profile_reader_value_index(const struct profile_reader *reader);
int profile_reader_count_index(const struct profile_reader *reader);

/* Returns whether a file was refused as the bound of memory was reached. */
bool profile_reader_is_full(const struct profile_reader *reader);

/* Returns how many bytes of memory the reader takes, its profile and strings included. */
size_t profile_reader_bytes(const struct profile_reader *reader);

struct profile_read_totals {
	uint64_t files, bytes, raw_bytes;
	uint64_t windows; /* a merged file has several */
	/* by wants_labels and wants_stack; a number of samples, not of values */
	uint64_t samples_dropped;
	uint64_t samples_kept;
	struct profile_signs signs;
	uint64_t start_wall_ns, end_wall_ns; /* the first start, the last end; 0: unknown */
	uint64_t duration_ns;		     /* sum */
};
void profile_reader_totals(const struct profile_reader *reader,
			   struct profile_read_totals *ret_totals);

#endif
