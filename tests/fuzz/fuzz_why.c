/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: reader/why_processes.c reader/why_view.c reader/text.c query/gpu_findings.c query/machine.c profile/gpu_gauges.c profile/record.c render/format.c reader/gpu_table.c reader/gpu_calls.c query/select.c base/regex_copies.c profile/cuda_sums.c render/code_table.c render/short_paths.c base/json_writer.c base/kinds.c pprof/profile_read.c pprof/read_frames.c pprof/read_samples.c pprof/read_windows.c profile/comments.c pprof/pprof_tables.c pprof/gzip.c profile/profile.c profile/stack_table.c base/index_table.c base/utf8.c base/intern.c render/table.c */
/* What `pyprof why` makes of profiles: of kind cuda, and of the same samples taken for time; and
 * what `pyprof report` makes of kind ledger.  The file is read twice, as two windows.
 * runs: 1500 at most in `make check`: each is read four times. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "base/kinds.h"
#include "json_check.h"
#include "no_input.h"
#include "pprof/profile_read.h"
#include "query/machine.h"
#include "reader/gpu_table.h"
#include "reader/why_processes.h"

#define MAX_BYTES 65536U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
	struct gpu_usage gauges;
	struct why_processes processes;
};

static void release_reading(struct reading *reading)
{
	gpu_usage_release(&reading->gauges);
	why_processes_release(&reading->processes);
}

static int calls_done(void *context, struct profile *profile, const struct profile_window *window)
{
	return why_add_window(&((struct reading *)context)->processes, profile, window);
}

static int samples_done(void *context, struct profile *profile, const struct profile_window *window)
{
	return why_samples_add(context, profile, window);
}

/* Reads a file as two windows.  Returns the reader, or NULL. */
static struct profile_reader *read_twice(const struct profile_read_options *options,
					 enum pp_profile kind, int fd)
{
	struct profile_reader *reader;

	assert(!profile_reader_new(options, &reader));
	for (unsigned int i = 0; i < 2; i++) {
		assert(!lseek(fd, 0, SEEK_SET));
		(void)profile_reader_add(reader, fd, kind_get(kind)->name);
	}
	if (profile_reader_profile(reader))
		return reader;
	profile_reader_free(reader);
	return NULL;
}

static void add_samples(struct why_processes *processes, int fd)
{
	CLEANUP(why_samples_release) struct why_samples samples;
	const struct profile_read_options options = {
		.drop_addresses = true, .window_done = samples_done, .context = &samples};
	OWNED(profile_reader) struct profile_reader *reader = NULL;

	why_samples_init(&samples, processes);
	reader = read_twice(&options, PP_PROFILE_CUDA, fd);
	assert(!why_samples_end(&samples, NULL, true));
}

/* Reads the same as rows of kind gpu, whose texts *ret_reader has. */
static void read_gauges(struct gpu_usage *usage, int fd, struct profile_reader **ret_reader)
{
	struct select select = {0};
	const struct input_options input = gpu_usage_input(&select);
	const struct profile_read_options options = {.keep_labels = input.keep_labels,
						     .drop_stacks = input.drop_stacks};

	*ret_reader = read_twice(&options, PP_PROFILE_GPU, fd);
	if (!*ret_reader)
		return;
	assert(!gpu_usage_fill(usage, profile_reader_profile(*ret_reader), NULL));
	for (uint32_t i = 0; i < usage->device_count; i++) {
		for (unsigned int j = 0; j < GPU_GAUGE_COUNT; j++)
			assert(gpu_usage_mean(&usage->device[i].gauge[j]) >= 0);
		assert(!i || usage->device[i - 1].device <= usage->device[i].device);
	}
	for (uint32_t i = 1; i < usage->process_count; i++)
		assert(gpu_usage_mean(&usage->process[i - 1].memory_bytes) >=
		       gpu_usage_mean(&usage->process[i].memory_bytes));
}

/* Sums do not overflow, and the order holds. */
static void read_machine(int fd, bool by_pid)
{
	const struct input_options input = machine_input();
	const struct profile_read_options options = {.keep_labels = input.keep_labels,
						     .drop_stacks = input.drop_stacks};
	CLEANUP(machine_release) struct machine machine = {0};
	OWNED(profile_reader) struct profile_reader *reader = NULL;

	reader = read_twice(&options, PP_PROFILE_LEDGER, fd);
	if (!reader)
		return;
	assert(!machine_fill(&machine, profile_reader_profile(reader), by_pid));
	for (uint32_t i = 0; i < machine.count; i++) {
		const struct machine_process *process = &machine.process[i];

		assert(machine_cpu_ns(process) >= 0 && machine_wait_ns(process) >= 0);
		assert(!i || machine_cpu_ns(process - 1) >= machine_cpu_ns(process));
		assert(by_pid || !i || process->pid != process[-1].pid ||
		       strcmp(process->comm, process[-1].comm) != 0);
	}
}

static void check_all(const struct reading *reading)
{
	const struct why_shown shown = {
		.processes = &reading->processes, .gauges = &reading->gauges, .title = "a file"};
	OWNED_MEM char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	for (uint32_t i = 0; i < reading->processes.count; i++) {
		const struct why_process *process = &reading->processes.process[i];

		assert(process->lead == UINT32_MAX ||
		       process->lead < reading->processes.thread_count);
		assert(process->sums.seen_ns >= process->sums.labelled_ns);
		for (unsigned int k = 0; k < GPU_PROCESS_FINDINGS; k++) {
			assert(!k || process->finding[k - 1].verdict <= GPU_NOT_KNOWN);
			assert(process->finding[k].figure_count <= GPU_FIGURES_MAX);
			for (unsigned int n = 0; n < process->lines[k].count; n++)
				assert(process->lines[k].line[n].share > 0 &&
				       process->lines[k].line[n].share < 1.000001);
		}
	}
	assert(out && !why_print_json(&shown, out) && !fflush(out));
	assert(is_json(text, size));
	assert(!close_memory_file(out, &text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(release_reading) struct reading reading = {0};
	CLEANUP(gpu_table_release) struct gpu_table table = {0};
	const struct profile_read_options options = {.drop_addresses = true,
						     .sample_type = "calls",
						     .window_done = calls_done,
						     .context = &reading};
	const struct profile_read_options plain = {.drop_stacks = true};
	OWNED(profile_reader) struct profile_reader *reader = NULL, *gauges = NULL, *records = NULL;
	int fd;

	if (size > MAX_BYTES)
		return 0;
	fd = memfd_create("profile", MFD_CLOEXEC);
	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	read_gauges(&reading.gauges, fd, &gauges);
	read_machine(fd, size & 1);
	reader = read_twice(&options, PP_PROFILE_CUDA, fd);
	records = read_twice(&plain, PP_PROFILE_CUDA_CALLS, fd);
	if (reader && !gpu_table_fill(&table, profile_reader_profile(reader),
				      records ? profile_reader_profile(records) : NULL, NULL)) {
		assert(!why_add_calls(&reading.processes, &table));
		add_samples(&reading.processes, fd);
		why_judge(&reading.processes, true);
		check_all(&reading);
	}
	close(fd);
	return 0;
}
