/* SPDX-License-Identifier: BSD-2-Clause */
/* Instead of base/io.c's reads of another process: its memory is one input that repeats endlessly,
 * so that any pointer is valid.  Whoever includes this defines MAX_READS, what one look may
 * cost. */
#ifndef FUZZ_PROCESS_MEMORY_H
#define FUZZ_PROCESS_MEMORY_H

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/io.h"

static const uint8_t *memory_bytes;
static size_t memory_size;
static unsigned int reads;

int process_read(pid_t pid, uint64_t address, void *buffer, size_t size)
{
	size_t at = address % memory_size;

	(void)pid;
	assert(++reads <= MAX_READS);
	if (size > memory_size - at)
		return -EFAULT;
	memcpy(buffer, memory_bytes + at, size);
	return 0;
}

int process_read_pieces(pid_t pid, const struct process_piece *piece, size_t count)
{
	int err = 0;

	assert(count <= PROCESS_PIECES_MAX);
	for (size_t i = 0; !err && i < count; i++)
		err = process_read(pid, piece[i].address, piece[i].buffer, piece[i].size);
	return err;
}

#endif
