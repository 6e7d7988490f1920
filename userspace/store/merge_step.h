/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts a merged file in the place of the files that it was made of, such that whoever is killed at
 * any moment, or loses power, loses no window and leaves none twice:
 *
 *   1. .NAME.merged.pb.gz.tmp is written and synced
 *   2. it becomes NAME.merging.pb.gz: from now on its windows count, and their own files no more
 *   3. these are deleted
 *   4. it becomes NAME.merged.pb.gz
 *
 * What a .merging file lists is deleted at the next start; it is its own journal. */
#ifndef STORE_MERGE_STEP_H
#define STORE_MERGE_STEP_H

#include "store/merge_file.h"

/* Does all steps.  The file's name becomes longer by milliseconds where one is taken.  Returns 0;
 * -EEXIST; -errno (-ENOSPC, -EROFS, ...): the windows are in their own files, or, after step 2, for
 * merge_step_finish(). */
int merge_step(int hour_fd, const struct merge_group *group, struct merged_file *file);
/* Does steps 3 and 4 for a .merging file.  Returns 0; -errno: of merged_file_windows(), of deleting
 * or renaming. */
int merge_step_finish(int hour_fd, const struct store_file *merging);

#endif
