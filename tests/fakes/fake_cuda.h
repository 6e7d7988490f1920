/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fake libcuda.so.1 tells tests, beside CUDA's own interface.  Every thread may call all
 * of it.
 *
 * Environment: FAKE_CUDA_TRUTH=FILE writes all counters there as JSON when the process ends (`%p`
 * in FILE is the pid; a forked child writes only to a FILE with `%p`) · FAKE_CUDA_DEVICES=N (2) ·
 * FAKE_CUDA_KERNEL_NS=N: how long kernels run for which nothing is set (0) · CUDA_VISIBLE_DEVICES
 * as of CUDA, numbers only.  All times are CLOCK_MONOTONIC, in ns. */
#ifndef PYPROFD_FAKE_CUDA_H
#define PYPROFD_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

/* How long kernels of this name run from their next launch on; before or after their handles are
 * made. */
void fake_cuda_set_kernel_ns(const char *name, uint64_t ns);
/* Launches of this kernel put so many parameters of 8 bytes each into the checksum. */
void fake_cuda_set_kernel_params(const char *name, unsigned int count);
/* Copies take latency_ns + bytes / bytes_per_us us; 0 for both: no time. */
void fake_cuda_set_copy(uint64_t latency_ns, uint64_t bytes_per_us);
/* The next `times` calls of the entry point return `error` and do nothing.  0; -ENOENT: no such
 * one. */
int fake_cuda_next_error(const char *api, int error, unsigned int times);
/* Each call of the entry point sleeps so long before it does anything.  0; -ENOENT. */
int fake_cuda_set_call_ns(const char *api, uint64_t ns);

/* A counter of an entry point: calls errors captured executed bytes captured_bytes wait_ns.
 * UINT64_MAX: no such
 * one. calls = errors + captured + executed, for launches and copies when all streams are at
 * rest. */
uint64_t fake_cuda_count(const char *api, const char *what);
/* Of a kernel's name: calls captured executed in_graphs threads ns.  `executed` counts those of
 * graphs too. */
uint64_t fake_cuda_kernel(const char *name, const char *what);
/* Of all: live_bytes peak_bytes live_host_bytes outstanding dirty_streams queue_full, and by
 * direction (htod dtoh dtod ptop htoh memset) DIRECTION_bytes, DIRECTION_count,
 * DIRECTION_captured_bytes. */
uint64_t fake_cuda_total(const char *what);

/* What the calling thread allocates from now on is told apart: in the JSON, `live` has blocks and
 * bytes of each tag below FAKE_CUDA_TAGS, as of the line that allocates. */
#define FAKE_CUDA_TAGS 1024U
void fake_cuda_set_tag(unsigned int tag);

struct fake_cuda_interval {
	uint64_t begin_ns, end_ns; /* end_ns 0: not over yet */
};
/* When the process had nothing queued: from the end of a synchronization that left every stream
 * empty to the next launch or async copy.  proven: only where each stream with work since was
 * synchronized by itself or with its context, which an observer of calls can know; sync copies
 * and events do not count. Fills up to `room` rows; returns how many there are. */
size_t fake_cuda_drained(int proven, struct fake_cuda_interval *ret_rows, size_t room);

/* The sum of fake_cuda_launch_sum() over all launches, captured ones too. */
uint64_t fake_cuda_checksum(void);
/* Counters and intervals to 0; handles and settings stay.  Nothing else may run. */
void fake_cuda_reset(void);
/* All of it as JSON.  0 or -errno. */
int fake_cuda_write_truth(const char *path);

static inline uint64_t fake_cuda_mix(uint64_t sum, uint64_t value)
{
	sum = (sum ^ value) * 0x9e3779b97f4a7c15ULL;
	return sum ^ (sum >> 29);
}

/* What one launch adds to the checksum: every argument, in the order of cuLaunchKernel. */
static inline uint64_t fake_cuda_launch_sum(const unsigned int grid[3], const unsigned int block[3],
					    unsigned int smem, const void *stream,
					    void *const *params, unsigned int count)
{
	uint64_t sum = 1;

	sum = fake_cuda_mix(sum, grid[0] | (uint64_t)grid[1] << 32);
	sum = fake_cuda_mix(sum, grid[2] | (uint64_t)block[0] << 32);
	sum = fake_cuda_mix(sum, block[1] | (uint64_t)block[2] << 32);
	sum = fake_cuda_mix(sum, smem);
	sum = fake_cuda_mix(sum, (uintptr_t)stream);
	for (unsigned int i = 0; i < count; i++)
		sum = fake_cuda_mix(sum, *(const uint64_t *)params[i]);
	return sum;
}

#endif
