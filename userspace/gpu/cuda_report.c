/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/cuda_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "discover/proc_scan.h"
#include "drain/cuda_totals.h"
#include "gpu/cuda.h"
#include "processes/who.h"
#include "profile/cuda_lines.h"
#include "windows/profiles.h"
#include "windows/source.h"
#include "windows/top.h"

#define KIND_OF_CUDA (1U << PP_PROFILE_CUDA)
#define USER_UNKNOWN UINT32_MAX

struct cuda_report {
	struct cuda_report_sources sources;
	const struct services *services; /* NULL: nobody watches */
	struct cuda_lines *lines;	 /* owned: of the open profile; NULL: none yet */
};

int cuda_report_new(const struct cuda_report_sources *sources, struct cuda_report **ret_report)
{
	struct cuda_report *report;

	*ret_report = NULL;
	if (!sources->cuda)
		return 0;
	report = calloc(1, sizeof(*report));
	if (!report)
		return -ENOMEM;
	report->sources = *sources;
	*ret_report = report;
	return 0;
}

void cuda_report_free(struct cuda_report *report)
{
	if (!report)
		return;
	cuda_lines_free(report->lines);
	free(report);
}

/* ---- a window ---- */

struct taking {
	struct cuda_report *report;
	struct top *top;
};

static void fill_line(const struct cuda_call *call, const struct cuda_fresh *fresh,
		      const char *comm, struct cuda_line *ret_line)
{
	*ret_line = (struct cuda_line){.pid = fresh->what.id.tgid,
				       .sums = {.calls = fresh->calls,
						.bytes = fresh->bytes,
						.host_ns = fresh->host_ns,
						.wait_ns = fresh->wait_ns,
						.captured = fresh->captured,
						.nodes = fresh->nodes,
						.spread = fresh->spread}};
	for (size_t i = 0; i < PP_CUDA_HISTOGRAM; i++)
		ret_line->sums.histogram[i] = fresh->histogram[i];
	cuda_line_set_word(ret_line->comm, comm);
	cuda_line_set_word(ret_line->device, call->device);
	cuda_line_set_word(ret_line->api, call->api);
	cuda_line_set_word(ret_line->direction, call->direction);
	cuda_line_set_kernel(ret_line, call->kernel);
}

static int on_fresh(void *context, const struct cuda_fresh *fresh)
{
	const struct taking *taking = context;
	const struct cuda_report *report = taking->report;
	uint32_t user = USER_UNKNOWN;
	struct cuda_line line;
	struct cuda_call call;
	struct who who;
	int err;

	if (cuda_find(report->sources.cuda, fresh->id, &call))
		return 0;
	who_find(report->sources.processes, fresh->what.id, 0, &who);
	if (who.process)
		user = process_user_kept(who.process);
	fill_line(&call, fresh, who.comm, &line);
	err = cuda_lines_add(report->lines, &line, user);
	if (!err)
		top_add_cuda(taking->top, fresh->what.id, &line, user);
	return err;
}

int cuda_report_take(struct cuda_report *report, struct top *top)
{
	struct taking taking = {.report = report, .top = top};
	int err = 0;

	if (!report)
		return 0;
	if (!report->lines)
		err = cuda_lines_new(&report->lines);
	return err ? err : cuda_fresh(report->sources.cuda, on_fresh, &taking);
}

/* ---- comments ---- */

static int describe_line(void *context, const char *text)
{
	return profiles_add_comment_to(context, KIND_OF_CUDA, text);
}

int cuda_report_describe(struct cuda_report *report, struct profiles *profiles)
{
	OWNED(cuda_lines) struct cuda_lines *lines = NULL;

	if (!report || !report->lines)
		return 0;
	lines = TAKE(report->lines);
	return cuda_lines_write(lines, describe_line, profiles);
}

/* ---- as a source ---- */

static int source_open(const struct services *services, void **ret_state)
{
	const struct cuda_report_sources sources = {
		.cuda = services->sources->state[PP_SOURCE_CUDA], .processes = services->processes};
	struct cuda_report *report = NULL;
	int err = cuda_report_new(&sources, &report);

	if (report)
		report->services = services;
	*ret_state = report;
	return err;
}

static bool source_close(void *state)
{
	cuda_report_free(state);
	return true;
}

/* Kernels have their names. */
static int source_finish(void *state, const struct source_window *window, const struct slice *slice)
{
	const struct cuda_report *report = state;

	(void)window, (void)slice;
	return cuda_report_take(state, report->services->top);
}

static int source_describe(void *state, struct profiles *profiles)
{
	return cuda_report_describe(state, profiles);
}

const struct source cuda_report_source = {.name = "cuda_report",
					  .open = source_open,
					  .close = source_close,
					  .finish = source_finish,
					  .describe = source_describe};
