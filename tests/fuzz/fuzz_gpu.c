/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: reader/gpu_table.c reader/gpu_calls.c query/select.c base/regex_copies.c profile/cuda_sums.c profile/record.c render/table.c render/format.c render/totals.c render/code_table.c render/short_paths.c base/json_writer.c base/kinds.c pprof/profile_read.c pprof/read_frames.c pprof/read_samples.c pprof/read_windows.c profile/comments.c pprof/pprof_tables.c pprof/gzip.c profile/profile.c profile/stack_table.c base/index_table.c base/utf8.c base/intern.c */
/* Profiles of what programs have the GPU do, as `pyprof gpu` reads them: samples and records that
 * need not agree.  The file is read twice, as two windows.
 * runs: 1500 at most in `make check`: each is written in three formats. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "base/kinds.h"
#include "json_check.h"
#include "pprof/profile_read.h"
#include "reader/gpu_table.h"

#define MAX_BYTES 65536U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads a file as two windows of a kind.  Returns the reader, or NULL. */
static struct profile_reader *read_twice(enum pp_profile kind, int fd)
{
	const struct profile_read_options options = {.drop_addresses = true};
	struct profile_reader *reader;

	assert(!profile_reader_new(&options, &reader));
	for (unsigned int i = 0; i < 2; i++) {
		assert(!lseek(fd, 0, SEEK_SET));
		(void)profile_reader_add(reader, fd, kind_get(kind)->name);
	}
	if (profile_reader_profile(reader))
		return reader;
	profile_reader_free(reader);
	return NULL;
}

/* Quantiles are in order, and all numbers are. */
static void check_sums(const struct cuda_sums *sums)
{
	const double median = cuda_sums_quantile(sums, 0.5);

	assert(isnan(median) || median <= cuda_sums_quantile(sums, 0.99));
	assert(cuda_sums_unevenness(sums) >= 1);
	for (unsigned int i = 0; i < PP_EXACT_TIMED; i++)
		assert(sums->value[i] >= 0);
}

/* Lines add up to their calls, as long as nothing goes beyond what a number holds. */
static void check_table(const struct gpu_table *table)
{
	uint32_t lines = 0;

	for (uint32_t i = 0; i < table->total_count; i++)
		check_sums(&table->total[i].sums);
	for (uint32_t i = 0; i < table->call_count; i++) {
		const struct gpu_call *call = &table->call[i];

		assert(!i || call[-1].process <= call->process);
		assert(!call->is_whole || call->sums);
		for (uint32_t k = 0; k < call->line_count; k++) {
			const struct gpu_line *line = &table->line[call->first_line + k];

			assert(line->call == i && line->code < table->code.count);
			for (unsigned int v = 0; v < GPU_VALUES; v++) {
				assert(line->value[v] >= 0 && line->value[v] <= call->value[v]);
				assert(!(gpu_line_error(table, line, v) < 0));
			}
		}
		lines += call->line_count;
	}
	assert(lines == table->line_count);
}

static void write_all(const struct gpu_shown *shown)
{
	for (unsigned int format = TABLE_TEXT; format <= TABLE_SQL; format++) {
		OWNED_MEM char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);
		struct table table;

		assert(out);
		table_open(&table, out, (enum table_format)format, false);
		assert(!gpu_put_tables(shown, &table) && !table_close(&table, 0));
		assert(!close_memory_file(out, &text));
		assert(format != TABLE_JSON || is_json(text, size));
	}
}

static void check_views(const struct gpu_table *table)
{
	for (unsigned int view = GPU_VIEW_ALL; view <= GPU_VIEW_MEMORY; view++) {
		CLEANUP(gpu_groups_release) struct gpu_groups groups = {0};
		const struct gpu_shown shown = {.table = table,
						.groups = &groups,
						.view = view,
						.duration_ns = view * 1000000000ULL};

		if (view != GPU_VIEW_ALL)
			assert(!gpu_groups_fill(&groups, table, view));
		assert(groups.count <= table->line_count);
		write_all(&shown);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	OWNED(profile_reader) struct profile_reader *reader = NULL, *records = NULL;
	int fd;

	if (size > MAX_BYTES)
		return 0;
	fd = memfd_create("profile", MFD_CLOEXEC);
	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	reader = read_twice(PP_PROFILE_CUDA, fd);
	records = read_twice(PP_PROFILE_CUDA_CALLS, fd);
	close(fd);
	if (!reader || gpu_table_fill(&table, profile_reader_profile(reader),
				      records ? profile_reader_profile(records) : NULL, NULL))
		return 0;
	check_table(&table);
	check_views(&table);
	return 0;
}
