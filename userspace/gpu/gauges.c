/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/gauges.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "child/worker.h"
#include "gpu/gauge_records.h"
#include "probes/probes.h"
#include "windows/record_sink.h"
#include "windows/source.h"
#include "windows/summary.h"
#include "windows/top.h"

/* A driver that nothing has open begins with each GPU for seconds. */
#define FIRST_ROUND_NS (60 * NS_PER_SEC)
#define SILENT_NS (5 * NS_PER_SEC)
/* After so long without a turn the agent has stood still, and the child may have, too. */
#define STALL_NS (2 * NS_PER_SEC)
/* More than the pipe holds, 128 records: who has written so much writes as fast as it is read. */
#define READS_MAX 256U
/* Rounds come once a second; a pipe that was not read holds up to 64. */
#define ROUNDS_A_SECOND 2U
#define ROUNDS_MAX 80U

struct gauges {
	const struct services *services;
	/* The child. */
	struct child child;
	int pipe_fd;   /* owned; -1: nothing more is read */
	bool has_read; /* it has had a round */
	uint64_t heard_ns, turned_ns;
	/* What it says. */
	struct gauges_record record;
	size_t record_bytes; /* how much of it has come */
	struct gauges_intake intake;
	uint64_t allowed_ns; /* of time that rounds may take from */
	/* What is known. */
	bool has_now;
	struct gauges_round now;
	struct gauge_sums total, *open, *closed, *part, *last_part, sums[4];
	bool is_told[GAUGES_FAILURE_COUNT];
	struct gauges_stats stats;
};

static int source_open(void *state)
{
	struct gauges *gauges = state; /* what is not written to takes no memory */

	gauges->pipe_fd = -1;
	child_init(&gauges->child, CHILD_GAUGES);
	gauges->open = &gauges->sums[0];
	gauges->closed = &gauges->sums[1];
	gauges->part = &gauges->sums[2];
	gauges->last_part = &gauges->sums[3];
	return 0;
}

static void close_pipe(struct gauges *gauges)
{
	close_owned_fd(&gauges->pipe_fd);
	gauges->pipe_fd = -1;
}

/* Kills the child. */
static bool source_close(void *state)
{
	struct gauges *gauges = state;

	child_release(&gauges->child);
	close_pipe(gauges);
	return true;
}

/* ---- its end ---- */

static void tell(struct gauges *gauges, enum gauges_failure failure, int code, uint64_t now_ns)
{
	const unsigned long long rest_s = (gauges->child.start_after_ns - now_ns) / NS_PER_SEC;
	char number[32] = "";

	if (gauges->is_told[failure])
		return;
	gauges->is_told[failure] = true;
	if (code)
		snprintf(number, sizeof(number), " (error %d)", code);
	if (failure == GAUGES_NO_LIBRARY)
		log_info("no gauges of GPUs: %s; it is looked for again in %llu s",
			 gauges_failure_text(failure), rest_s);
	else
		log_warn("gauges of GPUs are missing: %s%s; it is tried again in %llu s",
			 gauges_failure_text(failure), number, rest_s);
}

/* Gives the child up.  Another one comes when this one has ended, which it does when what it waits
 * for lets it. */
static void fail(struct gauges *gauges, enum gauges_failure failure, int code, uint64_t now_ns)
{
	child_rest(&gauges->child, now_ns);
	/* What it says itself does not change soon. */
	if (failure < GAUGES_SAID_COUNT)
		child_rest_long(&gauges->child, now_ns);
	gauges->stats.failures[failure]++;
	if (failure >= GAUGES_SAID_COUNT || gauges->has_read)
		gauges->stats.lost++;
	tell(gauges, failure, code, now_ns);
	gauges->has_now = false;
	close_pipe(gauges);
	gauges->stats.cpu_ns += child_cpu_ns(&gauges->child);
	child_kill(&gauges->child);
}

/* ---- what it says ---- */

/* Returns whether a round may come now. */
static bool is_in_time(struct gauges *gauges)
{
	const uint64_t price_ns = NS_PER_SEC / ROUNDS_A_SECOND;

	if (gauges->allowed_ns < price_ns)
		return false;
	gauges->allowed_ns -= price_ns;
	return true;
}

static void allow_time(struct gauges *gauges, uint64_t passed_ns)
{
	const uint64_t most_ns = ROUNDS_MAX * (NS_PER_SEC / ROUNDS_A_SECOND);

	gauges->allowed_ns += passed_ns < most_ns ? passed_ns : most_ns;
	if (gauges->allowed_ns > most_ns)
		gauges->allowed_ns = most_ns;
}

static void take_round(struct gauges *gauges, uint64_t now_ns)
{
	const struct gauges_round *round = &gauges->intake.round;

	if (!is_in_time(gauges)) {
		fail(gauges, GAUGES_FLOOD, 0, now_ns);
		return;
	}
	if (!gauges->has_read)
		log_debug("gauges of %u GPUs", round->device_count);
	gauges->has_read = gauges->has_now = true;
	gauges->heard_ns = now_ns;
	gauges->now = *round;
	gauge_sums_add(gauges->open, round);
	gauge_sums_add(gauges->part, round);
	gauge_sums_add_devices(&gauges->total, round);
}

static void take_record(struct gauges *gauges, uint64_t now_ns)
{
	switch (gauges_intake_add(&gauges->intake, &gauges->record)) {
	case GAUGES_INTAKE_MORE:
		break;
	case GAUGES_INTAKE_ROUND:
		take_round(gauges, now_ns);
		break;
	case GAUGES_INTAKE_FAILED:
		fail(gauges, gauges->intake.failure, gauges->intake.code, now_ns);
		break;
	case GAUGES_INTAKE_NONSENSE:
		fail(gauges, GAUGES_NONSENSE, 0, now_ns);
		break;
	}
}

static void listen_to_child(struct gauges *gauges, uint64_t now_ns)
{
	for (unsigned int i = 0; i < READS_MAX; i++) {
		ssize_t got;

		if (gauges->pipe_fd < 0)
			return;
		got = read(gauges->pipe_fd, (char *)&gauges->record + gauges->record_bytes,
			   sizeof(gauges->record) - gauges->record_bytes);
		if (got <= 0)
			return; /* nothing has come, or its end, which is reaped */
		gauges->record_bytes += (size_t)got;
		if (gauges->record_bytes < sizeof(gauges->record))
			continue;
		gauges->record_bytes = 0;
		take_record(gauges, now_ns);
	}
	fail(gauges, GAUGES_FLOOD, 0, now_ns);
}

/* ---- its start ---- */

static int start(struct gauges *gauges, uint64_t now_ns)
{
	OWNED_FD int ours = -1, theirs = -1;
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	ours = ends[0];
	theirs = ends[1];
	if (fcntl(ours, F_SETFL, O_NONBLOCK))
		return -errno;
	err = child_start(&gauges->child,
			  &(struct child_start){.program = gauges->services->child_program,
						.fd = &theirs},
			  now_ns);
	if (err)
		return err;
	gauges->pipe_fd = TAKE_FD(ours);
	gauges->has_read = false;
	gauges->record_bytes = 0;
	gauges->intake.number = gauges->intake.last = 0;
	gauges->heard_ns = now_ns;
	allow_time(gauges, UINT64_MAX);
	gauges->stats.starts++;
	return 0;
}

static void reap(struct gauges *gauges, uint64_t now_ns)
{
	if (!child_has_ended(&gauges->child, NULL))
		return;
	listen_to_child(gauges, now_ns); /* to its last words */
	if (!gauges->child.is_killed && gauges->pipe_fd >= 0)
		fail(gauges, GAUGES_ENDED, 0, now_ns);
}

static bool is_silent(const struct gauges *gauges, uint64_t now_ns)
{
	return gauges->child.pid && !gauges->child.is_killed &&
	       now_ns - gauges->heard_ns >= (gauges->has_read ? SILENT_NS : FIRST_ROUND_NS);
}

/* Takes what the child has written, replaces one that has ended, is silent or says nonsense, and
 * starts it when that is due and a program with CUDA was seen. */
static bool source_tick(void *state, uint64_t now_ns)
{
	struct gauges *gauges = state;
	const uint64_t passed_ns = now_ns - gauges->turned_ns;
	int err;

	gauges->turned_ns = now_ns;
	allow_time(gauges, passed_ns);
	if (passed_ns >= STALL_NS)
		gauges->heard_ns = now_ns;
	listen_to_child(gauges, now_ns);
	reap(gauges, now_ns);
	if (is_silent(gauges, now_ns))
		fail(gauges, GAUGES_SILENT, 0, now_ns);
	if (!probes_cuda(gauges->services->sources->state[PP_SOURCE_PROBES]) ||
	    !child_is_due(&gauges->child, now_ns))
		return false;
	err = start(gauges, now_ns);
	if (err)
		fail(gauges, GAUGES_NOT_STARTED, -err, now_ns);
	return false;
}

/* ---- what is known ---- */

const struct gauges_round *gauges_now(const struct gauges *gauges)
{
	return gauges->has_now ? &gauges->now : NULL;
}

const struct gauge_sums *gauges_total(const struct gauges *gauges)
{
	return &gauges->total;
}

int gauges_device_of(const struct gauges *gauges, uint32_t pid)
{
	const int device = gauge_sums_device_of(gauges->part, pid);

	return device == -ENOENT ? gauge_sums_device_of(gauges->last_part, pid) : device;
}

static void swap(struct gauge_sums **open, struct gauge_sums **closed)
{
	struct gauge_sums *was_open = *open;

	*open = *closed;
	*closed = was_open;
	gauge_sums_reset(*open);
}

static int source_collect(void *state, const struct source_window *window)
{
	struct gauges *gauges = state;

	listen_to_child(gauges, window->slots.end_ns);
	swap(&gauges->part, &gauges->last_part);
	if (window->is_written)
		swap(&gauges->open, &gauges->closed);
	return 0;
}

void gauges_get_stats(const struct gauges *gauges, struct gauges_stats *ret_stats)
{
	*ret_stats = gauges->stats;
	ret_stats->cpu_ns += child_cpu_ns(&gauges->child);
}

/* ---- its rows ---- */

static int source_finish(void *state, const struct source_window *window, const struct slice *slice)
{
	const struct gauges *gauges = state;
	const struct record_sink sink = record_sink_clients(gauges->services);

	(void)window, (void)slice;
	return top_wants(gauges->services->top, 1U << PP_PROFILE_GPU)
		       ? gauge_records_put(gauges->last_part, &sink)
		       : 0;
}

static int source_describe(void *state, struct profiles *profiles)
{
	const struct gauges *gauges = state;
	const struct record_sink sink = record_sink_profiles(gauges->services, profiles);

	return gauge_records_put(gauges->closed, &sink);
}

/* The child's CPU time is the agent's own cost, too. */
static void source_summarize(void *state, struct summary *summary)
{
	struct gauges_stats stats;

	gauges_get_stats(state, &stats);
	summary->loss[PP_LOSS_GAUGES_LOST] = stats.lost;
	summary->own_cpu_ns += stats.cpu_ns;
}

const struct source gauges_source = {.name = "gauges",
				     .bytes = sizeof(struct gauges),
				     .open = source_open,
				     .close = source_close,
				     .tick = source_tick,
				     .collect = source_collect,
				     .finish = source_finish,
				     .describe = source_describe,
				     .summarize = source_summarize};
