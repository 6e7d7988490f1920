/* SPDX-License-Identifier: BSD-2-Clause */
/* How long pyprofd's BPF programs took, from capture metadata: "on_switch_45056=3" means three runs
 * of 40,960 to 45,056 ns (include/pyprofd/table.h). */
#ifndef READER_PROGRAM_TIMES_H
#define READER_PROGRAM_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/table.h>

struct program_times {
	struct pp_times of[PP_PROGRAM_COUNT];
};

/* Adds a counter.  Returns false when it is not one of these. */
bool program_times_add(struct program_times *times, const char *fact, size_t size, uint64_t runs);
uint64_t program_times_runs(const struct program_times *times, enum pp_program program);
/* Returns the upper end of the bucket in which the shortest `share` of the runs end; share 1 gives
 * the longest run.  0: no runs. */
uint64_t program_times_ns(const struct program_times *times, enum pp_program program, double share);

#endif
