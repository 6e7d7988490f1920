/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounds the memory that reading takes. */
#include <errno.h>
#include <stdio.h>

#include "pprof/profile_reader.h"

#define MIB (1ULL << 20)

size_t profile_reader_bytes(const struct profile_reader *reader)
{
	size_t slots = reader->label_slot ? (size_t)reader->label_slot_mask + 1 : 0;

	return sizeof(*reader) + reader->unpacked.capacity + pprof_tables_bytes(&reader->tables) +
	       intern_bytes_used(reader->strings) +
	       (reader->profile ? profile_bytes(reader->profile) : 0) +
	       reader->function_capacity * sizeof(*reader->function) +
	       reader->resolved_capacity * sizeof(*reader->resolved) +
	       reader->stack_capacity * sizeof(*reader->stack) +
	       slots * sizeof(*reader->label_slot) +
	       (reader->delta_capacity + reader->sorted_capacity) * sizeof(*reader->delta) +
	       reader->waiting_capacity * sizeof(*reader->waiting) +
	       reader->undo_capacity * sizeof(*reader->undo) +
	       reader->window_capacity * sizeof(*reader->window) + reader->verdict_capacity +
	       reader->clean_capacity;
}

size_t reader_memory_max(uint64_t unpacked_bytes)
{
	if (unpacked_bytes >
	    (PROFILE_READ_MEMORY_MAX - PROFILE_READ_MEMORY_FREE) / PROFILE_READ_MEMORY_FACTOR)
		return PROFILE_READ_MEMORY_MAX;
	return PROFILE_READ_MEMORY_FREE + unpacked_bytes * PROFILE_READ_MEMORY_FACTOR;
}

int reader_too_big(struct profile_reader *reader)
{
	snprintf(reader->too_big, sizeof(reader->too_big),
		 "needs more than %llu MiB of memory: 64 MiB and %u times the unpacked size are "
		 "the most that is taken, and never more than %llu MiB",
		 (unsigned long long)reader->memory_max / MIB, PROFILE_READ_MEMORY_FACTOR,
		 PROFILE_READ_MEMORY_MAX / MIB);
	return reader_fail(reader, -EFBIG, reader->too_big);
}

int reader_check_memory(struct profile_reader *reader)
{
	return profile_reader_bytes(reader) > reader->memory_max ? reader_too_big(reader) : 0;
}
