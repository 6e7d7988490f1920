/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/gauge_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/context_table.h"
#include "base/cleanup.h"
#include "discover/process_table.h"
#include "discover/proc_scan.h"
#include "gpu/gauge_sums.h"
#include "windows/profiles.h"
#include "windows/top.h"

/* A process on its way into an order. */
struct place {
	const struct gauge_sums_process *sums;
	struct process *process;
	uint32_t user, turn;
};

static struct process *profiled_process(const struct gauge_lines_sources *sources, uint32_t pid)
{
	struct process *process = process_table_find_tgid(sources->processes, pid);

	if (process && sources->is_filtered && !(context_table_flags(process) & PP_CONTEXT_MATCHES))
		return NULL;
	return process;
}

/* Fills the line of a process, with its name. */
static void make_line(const struct gauge_sums_process *sums, const struct process *process,
		      struct gauge_process_line *ret_line)
{
	char comm[PP_COMM_BYTES + 1] = "";

	memcpy(comm, process->comm, PP_COMM_BYTES);
	gauge_sums_process_line(sums, ret_line);
	gauge_process_line_set_comm(ret_line, comm);
}

/* ---- the order ---- */

static uint64_t mean_bytes(const struct place *place)
{
	const struct gauge_sum *bytes = &place->sums->memory_bytes;

	return bytes->count ? bytes->sum / bytes->count : 0;
}

static int by_bytes(const struct place *a, const struct place *b)
{
	if (mean_bytes(a) != mean_bytes(b))
		return mean_bytes(a) < mean_bytes(b) ? 1 : -1;
	if (a->sums->pid != b->sums->pid)
		return a->sums->pid < b->sums->pid ? -1 : 1;
	return a->sums->device < b->sums->device ? -1 : a->sums->device > b->sums->device;
}

static int by_user(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->user != b->user)
		return a->user < b->user ? -1 : 1;
	return by_bytes(a, b);
}

static int by_turn(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	return a->turn != b->turn ? (a->turn < b->turn ? -1 : 1) : by_bytes(a, b);
}

/* Lists the profiled processes: each user's largest one, then each user's second.  The others are
 * added to *rest. */
static int take_turns(const struct gauge_sums *sums, const struct gauge_lines_sources *sources,
		      struct place **ret_place, size_t *ret_count, struct gauge_process_line *rest)
{
	struct place *place = calloc(sums->process_count + 1, sizeof(*place));
	size_t count = 0;

	if (!place)
		return -ENOMEM;
	for (uint32_t i = 0; i < sums->process_count; i++) {
		const struct gauge_sums_process *one = &sums->process[i];
		struct process *process = profiled_process(sources, one->pid);
		struct gauge_process_line line;

		if (process) {
			place[count++] = (struct place){.sums = one,
							.process = process,
							.user = process_user_kept(process)};
			continue;
		}
		gauge_sums_process_line(one, &line);
		gauge_process_line_add(rest, &line);
	}
	qsort(place, count, sizeof(*place), by_user);
	for (size_t i = 1; i < count; i++)
		if (place[i].user == place[i - 1].user)
			place[i].turn = place[i - 1].turn + 1;
	qsort(place, count, sizeof(*place), by_turn);
	*ret_place = place;
	*ret_count = count;
	return 0;
}

/* ---- comments ---- */

static int describe_devices(const struct gauge_sums *sums, struct profiles *profiles)
{
	char text[GAUGE_LINE_CHARS];
	struct gauge_line line;
	int err = 0;

	for (uint32_t i = 0; i < sums->device_count && !err; i++) {
		gauge_sums_line(&sums->device[i], &line);
		gauge_line_format(&line, text);
		err = profiles_add_comment_to(profiles, KINDS_OF_GPU, text);
	}
	return err;
}

static int describe_process(struct profiles *profiles, const struct gauge_process_line *line)
{
	char text[GAUGE_LINE_CHARS];

	gauge_process_line_format(line, text);
	return profiles_add_comment_to(profiles, KINDS_OF_GPU_PROCESSES, text);
}

int gauge_lines_describe(const struct gauge_sums *sums, const struct gauge_lines_sources *sources,
			 struct profiles *profiles)
{
	struct gauge_process_line line, rest = {.pid = 0};
	OWNED_MEM struct place *place = NULL;
	size_t count = 0;
	int err;

	if (!sums || !sums->device_count)
		return 0;
	rest.others = sums->left_out;
	err = describe_devices(sums, profiles);
	if (!err)
		err = take_turns(sums, sources, &place, &count, &rest);
	for (size_t i = 0; i < count && !err; i++) {
		make_line(place[i].sums, place[i].process, &line);
		if (i >= GAUGE_PROCESS_LINES_MAX)
			gauge_process_line_add(&rest, &line);
		else
			err = describe_process(profiles, &line);
	}
	if (!err && rest.others)
		err = describe_process(profiles, &rest);
	return err;
}

void gauge_lines_send(const struct gauge_sums *sums, const struct gauge_lines_sources *sources,
		      struct top *top)
{
	char text[GAUGE_LINE_CHARS];
	struct gauge_line line;

	if (!sums || !top)
		return;
	for (uint32_t i = 0; i < sums->device_count; i++) {
		gauge_sums_line(&sums->device[i], &line);
		gauge_line_format(&line, text);
		top_add_gpu(top, text);
	}
	for (uint32_t i = 0; i < sums->process_count; i++) {
		const struct gauge_sums_process *one = &sums->process[i];
		const struct process *process = profiled_process(sources, one->pid);
		struct gauge_process_line of;

		if (!process)
			continue;
		make_line(one, process, &of);
		top_add_gpu_process(top, process->id, &of);
	}
}
