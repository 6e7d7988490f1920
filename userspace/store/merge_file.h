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

/* Reads the files of a group in their directory.  Returns 0; -ENOENT: one is gone; -EBADMSG,
 * -EPROTO, -EFBIG, ...: what profile_reader_add() says of one of them; -E2BIG: more comments than
 * a file may have; -ENODATA: it has no file; -ENOMEM. */
int merge_group_files(int hour_fd, const struct merge_group *group, struct merged_file *ret_file);

#endif
