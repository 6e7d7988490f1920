/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: reader/mem_view.c reader/text.c render/table.c render/format.c base/json_writer.c base/io.c render/held.c render/code_table.c render/short_paths.c query/machine.c base/kinds.c pprof/profile_read.c pprof/read_frames.c pprof/read_samples.c pprof/read_windows.c profile/comments.c pprof/pprof_tables.c pprof/gzip.c profile/profile.c profile/stack_table.c base/index_table.c base/utf8.c base/intern.c profile/record.c */
/* Profiles of memory, as `pyprof mem` reads them: figures of a file's windows and of processes.
 * The first byte chooses the kind; the rest is a file, which is read twice.
 * runs: 2000 at most in `make check`: each is read twice. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/kinds.h"
#include "no_input.h"
#include "pprof/profile_read.h"
#include "query/machine.h"
#include "reader/mem_view.h"

#define MAX_BYTES 65536U
#define OLDER_NS 1000000000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sums {
	struct held held;
};

static int window_done(void *context, struct profile *profile, const struct profile_window *window)
{
	struct sums *sums = context;

	(void)profile;
	return window->is_level ? held_add_window(&sums->held, window) : 0;
}

static void check_held(const struct held *held)
{
	assert(held->points <= HELD_POINTS && held->count <= HELD_ROWS_MAX);
	assert(held_long_ns(held) <= held->older_ns);
	for (uint32_t row = 0; row < held->count; row++) {
		assert(held_for_long(held, row) <= held_at_end(held, row));
		for (uint32_t i = held->points; i < HELD_POINTS; i++)
			assert(!held_has_point(held, i) && !held_at_point(held, row, i));
	}
}

static void check_table(const struct profile *profile, const struct held *held)
{
	CLEANUP(mem_table_release) struct mem_table table = {0};

	if (mem_table_fill(&table, profile, held))
		return;
	assert(table.count <= profile->row_count);
	for (uint32_t i = 0; i < table.count; i++)
		assert(table.row[i].grew <= table.row[i].intervals &&
		       table.row[i].intervals < HELD_POINTS);
	mem_table_sort(&table, true);
	for (uint32_t i = 1; i < table.count; i++)
		assert(mem_row_leaks(&table.row[i - 1]) || !mem_row_leaks(&table.row[i]));
	mem_table_sort(&table, false);
}

static int open_copy(const uint8_t *data, size_t size)
{
	const int fd = memfd_create("profile", MFD_CLOEXEC);

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	return fd;
}

/* Reads a file of kind resident, or one with its values. */
static void read_processes(const uint8_t *data, size_t size)
{
	CLEANUP(process_memories_release) struct process_memories memories = {0};
	struct select select = {0};
	const struct input_options input = process_memories_input(&memories, &select);
	const struct profile_read_options options = {.keep_labels = input.keep_labels,
						     .drop_stacks = input.drop_stacks,
						     .window_done = input.window_done,
						     .context = input.context};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	const int fd = open_copy(data, size);

	assert(!profile_reader_new(&options, &reader));
	for (unsigned int i = 0; i < 2; i++) {
		assert(!lseek(fd, 0, SEEK_SET));
		(void)profile_reader_add(reader, fd, input.kind);
	}
	close(fd);
	if (!profile_reader_profile(reader))
		return;
	assert(!process_memories_fill(&memories, profile_reader_profile(reader)));
	for (uint32_t i = 0; i < memories.count; i++) {
		const struct process_memory *process = &memories.process[i];

		assert(process->pid);
		assert(!i || process_memory_bytes(process - 1) >= process_memory_bytes(process));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sums sums = {.held = {.older_ns = OLDER_NS}};
	struct profile_read_options options = {.python_only = true,
					       .drop_addresses = true,
					       .window_done = window_done,
					       .context = &sums};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	int fd;

	if (!size || size > MAX_BYTES)
		return 0;
	if (data[0] & 2) {
		read_processes(data + 1, size - 1);
		return 0;
	}
	options.sample_type = data[0] & 1 ? "inuse_space" : "first_touch";
	fd = open_copy(data + 1, size - 1);
	assert(!profile_reader_new(&options, &reader));
	for (unsigned int i = 0; i < 2; i++) {
		assert(!lseek(fd, 0, SEEK_SET));
		(void)profile_reader_add(
			reader, fd,
			kind_get(data[0] & 1 ? PP_PROFILE_ALLOC : PP_PROFILE_MEM)->name);
	}
	close(fd);
	check_held(&sums.held);
	if (profile_reader_profile(reader))
		check_table(profile_reader_profile(reader), &sums.held);
	held_release(&sums.held);
	return 0;
}
