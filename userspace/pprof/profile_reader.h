/* SPDX-License-Identifier: BSD-2-Clause */
/* The fields of struct profile_reader, for the decoder's own files only. */
#ifndef PPROF_PROFILE_READER_H
#define PPROF_PROFILE_READER_H

#include "pprof/gzip.h"
#include "pprof/pprof_tables.h"
#include "pprof/profile_read.h"
#include "profile/profile_data.h"

#define READER_MAX_STACK_FRAMES 65536U
/* Hostile files repeat a location with many inlined functions, so that a few bytes give thousands
 * of frames. */
#define READER_MAX_FRAMES_A_BYTE 32U

struct read_function {
	uint32_t name, system_name, file, start_line; /* strings of the profile */
};

/* One label as in the file: indices of texts. */
struct raw_label {
	uint64_t key, str, num, unit;
};

/* Maps the labels of a sample to a label set, within one file, by a 64-bit hash alone.  The chance
 * that two of a file's thousands of sets are confused is below 1e-12. */
struct read_label_set {
	uint64_t hash;
	uint32_t set; /* LABEL_SET_UNWANTED: wants_labels() returned false */
};
#define LABEL_SET_UNWANTED UINT32_MAX

/* A window of the file that is read now. */
struct reader_window {
	struct window_mark mark;
	bool is_wanted;
	bool has_rows;
	size_t delta_count; /* while they are sorted: where the next one goes */
};
#define READER_NO_WINDOW UINT32_MAX

/* A value of a row in one window, of a sample type that is not summed up over windows. */
struct reader_level {
	uint32_t row, window, value_index;
	int64_t value;
};

enum stack_verdict { STACK_NOT_ASKED, STACK_WANTED, STACK_UNWANTED };

struct profile_reader {
	struct profile_read_options options;
	struct intern *strings;
	struct profile *profile;
	struct unpacked unpacked;
	struct pprof_tables tables;
	/* Index in the file of the profile's i-th value. */
	uint32_t type_of_value[PROFILE_MAX_VALUES];
	unsigned int value_index;
	int count_index;
	struct read_function *function; /* of this file */
	uint32_t function_count, function_capacity;
	uint32_t *resolved; /* of this file: locations' ids in the profile */
	uint32_t resolved_count, resolved_capacity;
	uint32_t *stack; /* of this sample */
	uint32_t stack_count, stack_capacity;
	uint64_t frames_left;		  /* how many more this file may have */
	struct read_label_set *label_set; /* of this file */
	uint32_t label_set_count, label_set_capacity;
	struct index_table label_set_index;
	/* At least one; those of a merged file by offset. */
	struct reader_window *window;
	uint32_t window_count, window_capacity;
	bool is_merged;	    /* the file has a list of its windows */
	bool is_second;	    /* the file goes on with the windows of the one before */
	bool makes_wall;    /* profile_reader_add_wall() */
	bool takes_records; /* the profile is of PP_RECORDS: samples without such values are not */
	uint64_t window_text; /* of the file: WINDOW_LABEL */
	bool has_window_text;
	bool adds_window; /* profile_reader_set_window() */
	uint64_t window_to_add;
	struct profile_delta *delta;
	uint32_t delta_count, delta_capacity;
	struct profile_delta *sorted; /* the deltas of a merged file, by window */
	size_t sorted_capacity;
	/* Bits 1 << index of the profile's values that follow PP_MERGE_LAST and PP_MERGE_MAX. */
	uint32_t levels, maxima;
	struct reader_level *level; /* of this file */
	size_t level_count, level_capacity;
	uint64_t levels_start_ns;    /* of the window whose levels the rows have */
	struct window_mark *waiting; /* windows without samples, before the first file */
	size_t waiting_count, waiting_capacity;
	/* The rows of this file and the values that it has added to each, so that a broken file
	 * leaves nothing: 1 + profile.options.value_count numbers a sample. */
	int64_t *undo;
	size_t undo_count, undo_capacity;
	struct wire last_stack; /* of the sample before: most follow one with the same stack */
	uint32_t last_stack_id;
	uint8_t *verdict; /* enum stack_verdict, by stack of the profile */
	size_t verdict_capacity;
	char *clean; /* room for a cleaned string */
	size_t clean_capacity;
	const char *error; /* in words; a literal, from the other parts, or `too_big` */
	char too_big[160];
	bool is_full;	   /* that was the error, at least once */
	size_t memory_max; /* with the file that is read now */
	struct profile_read_totals totals;
};

/* Sets the error and returns err. */
static inline int reader_fail(struct profile_reader *reader, int err, const char *why)
{
	reader->error = why;
	return err;
}
/* Converts a text of the file to a string of the profile, cleaned (base/utf8.h).  Returns 0,
 * -EBADMSG, -ENOMEM. */
int reader_text(struct profile_reader *reader, uint64_t text, uint32_t *ret_string);
/* Returns a text of the file, cleaned, until the next call of these two functions: the profile does
 * not keep it.  Returns 0, -EBADMSG, -ENOMEM. */
int reader_passing_text(struct profile_reader *reader, uint64_t text, const char **ret_text);
/* Appends the frames of a location to reader.stack.  Returns 0, -EBADMSG, -ENOMEM. */
int reader_add_location(struct profile_reader *reader, uint64_t location_id);
/* Adds the frame "[no Python]" to an empty stack.  Returns 0, -ENOMEM. */
int reader_add_no_python(struct profile_reader *reader);
/* Returns how much memory a reader may take for files of so many bytes, unpacked.  options: the
 * reader's. */
size_t reader_memory_max(const struct profile_read_options *options, uint64_t unpacked_bytes);
/* Sets the error that says that the reader would take more.  Returns -EFBIG. */
int reader_too_big(struct profile_reader *reader);
/* Lists the windows of the file.  Returns 0, -EBADMSG, -ENOMEM. */
int reader_list_windows(struct profile_reader *reader);
/* Checks that a second file has the windows of the first one, too.  Returns 0, -EPROTO, -EBADMSG,
 * -ENOMEM. */
int reader_compare_windows(struct profile_reader *reader);
/* Takes the label `window` out of the labels of a sample of a merged file, and finds its window.
 * Returns 0, -EBADMSG. */
int reader_take_window(struct profile_reader *reader, struct raw_label *label, uint32_t *count,
		       uint32_t *ret_window);
/* Adds the comments of the windows.  Returns 0, -EBADMSG, -ENOMEM. */
int reader_add_comments(struct profile_reader *reader);
/* Calls back for each window; for one without samples.  Return 0, -ENOMEM; an error of the
 * callback. */
int reader_finish_windows(struct profile_reader *reader);
int reader_add_empty_window(struct profile_reader *reader, const struct window_mark *mark);
/* Finds out which values of a new profile are not summed up over windows (include/pyprofd/kinds.h:
 * enum pp_merge); "levels" in the names of the next functions. */
void reader_find_levels(struct profile_reader *reader, const struct profile_options *options);
/* Gives the rows the levels of this file where it has the last window so far, and the most where
 * that counts. */
void reader_finish_levels(struct profile_reader *reader);
/* Takes back what this file has added to rows. */
void reader_undo_samples(struct profile_reader *reader);
/* Adds every sample of the file to the profile. */
int reader_add_samples(struct profile_reader *reader);

#endif
