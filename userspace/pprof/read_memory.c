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
	       reader->level_capacity * sizeof(*reader->level) +
	       reader->waiting_capacity * sizeof(*reader->waiting) +
	       reader->undo_capacity * sizeof(*reader->undo) +
	       reader->window_capacity * sizeof(*reader->window) + reader->verdict_capacity +
	       reader->clean_capacity;
}

/* Returns what is never passed, however many bytes the files have. */
static size_t most_memory(const struct profile_read_options *options)
{
	return options->memory_max && options->memory_max < PROFILE_READ_MEMORY_MAX
		       ? options->memory_max
		       : PROFILE_READ_MEMORY_MAX;
}

size_t reader_memory_max(const struct profile_read_options *options, uint64_t unpacked_bytes)
{
	const size_t most = most_memory(options);

	if (most < PROFILE_READ_MEMORY_FREE ||
	    unpacked_bytes > (most - PROFILE_READ_MEMORY_FREE) / PROFILE_READ_MEMORY_FACTOR)
		return most;
	return PROFILE_READ_MEMORY_FREE + unpacked_bytes * PROFILE_READ_MEMORY_FACTOR;
}

int reader_too_big(struct profile_reader *reader)
{
	reader->is_full = true;
	snprintf(reader->too_big, sizeof(reader->too_big),
		 "needs more than %llu MiB of memory: 64 MiB and %u times the unpacked size are "
		 "the most that is taken, and never more than %llu MiB",
		 (unsigned long long)reader->memory_max / MIB, PROFILE_READ_MEMORY_FACTOR,
		 most_memory(&reader->options) / MIB);
	return reader_fail(reader, -EFBIG, reader->too_big);
}

bool profile_reader_is_full(const struct profile_reader *reader)
{
	return reader->is_full;
}

int reader_check_memory(struct profile_reader *reader)
{
	return profile_reader_bytes(reader) > reader->memory_max ? reader_too_big(reader) : 0;
}
