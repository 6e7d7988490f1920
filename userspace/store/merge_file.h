/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes one file of the files of several windows. */
#ifndef STORE_MERGE_FILE_H
#define STORE_MERGE_FILE_H

#include "profile/profile.h"
#include "store/merge_plan.h"

#define MERGE_OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

/* A merged file, not yet written.  Release with merged_file_release(). */
struct merged_file {
	struct store_file name;
	void *bytes; /* owned */
	size_t size;
};
void merged_file_release(struct merged_file *file); /* safe on a zeroed one */

/* What becomes one file, wherever its windows' files are. */
struct merge_input {
	const char *kind;
	const struct merge_window *window; /* by start, then by duration */
	size_t window_count;
	/* Opens the file of a window that has one.  Returns 0 or -errno. */
	int (*open)(void *context, size_t window, int *ret_fd);
	/* As in struct profile_read_options; NULL: all samples. */
	bool (*wants_labels)(void *context, const struct intern *strings,
			     const struct profile_label *label, size_t label_count);
	/* Returns whether to keep a comment of a window; NULL: all. */
	bool (*wants_comment)(void *context, size_t window, const char *text);
	/* Told for each file that cannot be read, which is then left out; NULL: such a file is an
	 * error. */
	void (*unreadable)(void *context, size_t window, int err);
	void *context;
};
/* Reads and encodes the files of all windows.  Returns 0; -ENODATA: there is no file that could be
 * read, or no sample is wanted; else as merge_group_files(). */
int merge_input_files(const struct merge_input *input, struct merged_file *ret_file);
/* Reads the files of a group in their directory.  Returns 0; -ENOENT: one is gone; -EBADMSG,
 * -EPROTO, -EFBIG, ...: what profile_reader_add() says of one of them; -E2BIG: more comments than
 * a file may have; -ENOMEM. */
int merge_group_files(int hour_fd, const struct merge_group *group, struct merged_file *ret_file);

#endif
