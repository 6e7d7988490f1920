/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds up lines of what processes have had the GPU do (profile/cuda_line.h), and writes a bounded
 * number of them, whose sums are those of all.  The agent has one for each window's profile and
 * each client, whoever merges files one for the merged file, a reader one for all that it reads.
 * One thread. */
#ifndef PROFILE_CUDA_LINES_H
#define PROFILE_CUDA_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "profile/cuda_line.h"

/* The most lines in one profile's comments.  One more sums up the others. */
#define CUDA_LINES_MAX 512U
/* Of these, such that stay as they are; further kernels are summed up as CUDA_LINE_OTHER_KERNELS of
 * their process, function, device and direction, as long as there is room for that. */
#define CUDA_LINES_WHOLE 384U
/* The most that are told apart in memory. */
#define CUDA_LINES_KEPT_MAX 65536U

struct cuda_lines;

int cuda_lines_new(struct cuda_lines **ret_lines); /* returns 0 or -ENOMEM */
void cuda_lines_free(struct cuda_lines *lines);
DEFINE_OWNED(struct cuda_lines, cuda_lines)

/* Adds a line to the one that is about the same; beyond CUDA_LINES_KEPT_MAX, and one that sums up
 * others, to the sum of the others.  user: who takes turns with whom in cuda_lines_write(); of a
 * line that is there already, its first one counts.  Returns 0 or -ENOMEM. */
int cuda_lines_add(struct cuda_lines *lines, const struct cuda_line *line, uint32_t user);
/* Writes the lines that take the most time on the host, a call as 1 us: each user's first one, then
 * each user's second, so that no user's lines leave no room for another's.  `put` returns 0 or
 * -errno, which ends it and is returned. */
int cuda_lines_write(const struct cuda_lines *lines, int (*put)(void *context, const char *text),
		     void *context);

uint32_t cuda_lines_count(const struct cuda_lines *lines);
/* Copies a line; i: below cuda_lines_count(). */
void cuda_lines_get(const struct cuda_lines *lines, uint32_t i, struct cuda_line *ret_line);
/* Returns the number of the line that is about the same as this one, or cuda_lines_count(). */
uint32_t cuda_lines_find(const struct cuda_lines *lines, const struct cuda_line *line);
uint64_t cuda_lines_pid(const struct cuda_lines *lines, uint32_t i);
const struct cuda_line_sums *cuda_lines_sums(const struct cuda_lines *lines, uint32_t i);
/* Returns the sum of the others; NULL: there are none. */
const struct cuda_line *cuda_lines_others(const struct cuda_lines *lines);

#endif
