/* SPDX-License-Identifier: BSD-2-Clause */
/* A comment of a profile that says for how long the calls of a process have shown that it had work
 * queued on the GPU, and for how long that it had none. */
#ifndef PROFILE_QUEUE_LINE_H
#define PROFILE_QUEUE_LINE_H

#include <stdint.h>

#define QUEUE_LINE_PREFIX "gpu_queue "
#define QUEUE_LINE_CHARS 256U

struct queue_line {
	uint32_t pid;	  /* 0: the line sums up several processes */
	uint32_t others;  /* how many they are */
	const char *comm; /* borrowed */
	uint64_t queued_ns, drained_ns, unknown_ns;
};

/* Writes "gpu_queue pid=12 comm=python3 queued=8.300000 drained=1.200000 unknown=0.500000" or
 * "gpu_queue others=44 queued=...": seconds.  A name's blanks and control characters become '_'. */
void queue_line_format(const struct queue_line *line, char text[QUEUE_LINE_CHARS]);

#endif
