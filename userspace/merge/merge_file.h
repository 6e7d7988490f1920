/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes one file of the files of several windows. */
#ifndef MERGE_MERGE_FILE_H
#define MERGE_MERGE_FILE_H

#include "merge/merge_plan.h"
#include "profile/window_mark.h"

/* A merged file, not yet written.  Release with merged_file_release(). */
struct merged_file {
	struct store_file name;
	void *bytes; /* owned */
	size_t size;
};
void merged_file_release(struct merged_file *file); /* safe on a zeroed one */

/* Reads the files of a group in their directory.  Returns 0; -ENOENT: one is gone; -EBADMSG,
 * -EPROTO, -EFBIG, ...: what profile_reader_add() says of one of them; -E2BIG: more comments than
 * a file may have; -ENOMEM. */
int merge_group_files(int hour_fd, const struct merge_group *group, struct merged_file *ret_file);

/* Calls back for each window that a merged file lists, until one returns an error.  Returns 0;
 * -errno as above; the callback's error. */
int merged_file_windows(int hour_fd, const struct store_file *file,
			int (*on_window)(void *context, const struct window_mark *mark),
			void *context);

#endif
