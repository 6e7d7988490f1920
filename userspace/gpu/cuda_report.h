/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes what programs had the GPU do in a window into the comments of its profile of kind cuda
 * (profile/cuda_lines.h), and gives clients the lines of the processes that they may see.  The
 * loop's thread. */
#ifndef GPU_CUDA_REPORT_H
#define GPU_CUDA_REPORT_H

#include "base/cleanup.h"

struct cuda;
struct cuda_report;
struct process_table;
struct profiles;
struct top;

/* All is borrowed. */
struct cuda_report_sources {
	const struct cuda *cuda;
	struct process_table *processes;
};
/* *ret_report is NULL when there is no `cuda`; all other functions take that.  Returns 0 or
 * -ENOMEM. */
int cuda_report_new(const struct cuda_report_sources *sources, struct cuda_report **ret_report);
void cuda_report_free(struct cuda_report *report);
DEFINE_OWNED(struct cuda_report, cuda_report)

/* Takes what the rows had in the window that was collected last, once, and when its kernels have
 * their names: after the window's samples were added.  Returns 0 or -ENOMEM. */
int cuda_report_take(struct cuda_report *report, struct top *top);
/* Writes what was taken since the last call into the profile's comments: the next profile begins.
 * Returns 0 or -ENOMEM. */
int cuda_report_describe(struct cuda_report *report, struct profiles *profiles);

#endif
