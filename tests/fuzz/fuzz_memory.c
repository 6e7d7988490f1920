/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: reader/mem_table.c render/held.c render/code_table.c render/frame_text.c render/short_paths.c query/process_memory.c profile/memory_line.c base/kinds.c pprof/profile_read.c pprof/read_memory.c pprof/read_frames.c pprof/read_samples.c pprof/read_levels.c pprof/read_windows.c profile/window_mark.c pprof/pprof_tables.c pprof/unpack.c profile/profile.c profile/stack_table.c base/index_table.c base/utf8.c base/intern.c profile/cuda_line.c */
/* Profiles of memory, as `pyprof mem` reads them: figures of a file's windows and of processes.
 * The first byte chooses the kind; the rest is a file, which is read twice.
 * runs: 2000 at most in `make check`: each is read twice. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/kinds.h"
#include "pprof/profile_read.h"
#include "query/process_memory.h"
#include "reader/mem_table.h"

#define MAX_BYTES 65536U
#define OLDER_NS 1000000000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sums {
	struct held held;
	struct process_memories memories;
};

static int window_done(void *context, struct profile *profile, const struct profile_window *window)
{
	struct sums *sums = context;

	(void)profile;
	return window->is_level ? held_add_window(&sums->held, window) : 0;
}

static void on_comment(void *context, const char *text)
{
	struct sums *sums = context;

	assert(!process_memories_add(&sums->memories, text));
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sums sums = {.held = {.older_ns = OLDER_NS}};
	struct profile_read_options options = {.python_only = true,
					       .drop_addresses = true,
					       .window_done = window_done,
					       .comment = on_comment,
					       .context = &sums};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	int fd;

	if (!size || size > MAX_BYTES)
		return 0;
	options.sample_type = data[0] & 1 ? "inuse_space" : "first_touch";
	fd = memfd_create("profile", MFD_CLOEXEC);
	assert(fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)size - 1);
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
	process_memories_sort(&sums.memories);
	held_release(&sums.held);
	process_memories_release(&sums.memories);
	return 0;
}
