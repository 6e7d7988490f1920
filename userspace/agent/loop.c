/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "agent/agent.h"
#include "agent/live.h"
#include "agent/miss_counts.h"
#include "agent/naming.h"
#include "agent/process_watch.h"
#include "agent/sweeps.h"
#include "agent/tables.h"
#include "agent/thread_names.h"
#include "agent/timeline.h"
#include "agent/top.h"
#include "agent/window.h"
#include "agent/window_facts.h"
#include "base/io.h"
#include "base/log.h"

#define SLOW_TICK_NS NS_PER_SEC
/* A window is not cut for clients when it ends by itself so soon. */
#define PART_MIN_NS (500 * NS_PER_MS)

enum source {
	SOURCE_SIGNAL,
	SOURCE_TICK,
	SOURCE_STACKS,
	SOURCE_EVENTS,
	SOURCE_SIDEBAND,
	SOURCE_TIMELINE,
	SOURCE_LIVE,
};

static int watch(const struct loop *loop, int fd, enum source source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = source};

	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int loop_open(struct loop *loop, const struct agent *agent)
{
	struct itimerspec tick = {.it_interval.tv_nsec = LOOP_TICK_NS, .it_value.tv_nsec = LOOP_TICK_NS};
	sigset_t signals;
	int err;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGPIPE);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGCHLD, SIG_DFL); /* ignored by inheritance, no child would ever be reaped */
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	loop->tick = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (loop->epoll < 0 || loop->signals < 0 || loop->tick < 0 ||
	    timerfd_settime(loop->tick, 0, &tick, NULL))
		return -errno;
	err = watch(loop, loop->signals, SOURCE_SIGNAL);
	if (!err)
		err = watch(loop, loop->tick, SOURCE_TICK);
	if (!err)
		err = watch(loop, ring_fd(agent->stacks_ring), SOURCE_STACKS);
	if (!err)
		err = watch(loop, ring_fd(agent->events_ring), SOURCE_EVENTS);
	if (!err)
		err = watch(loop, sideband_fd(agent->sideband), SOURCE_SIDEBAND);
	if (!err && agent->timeline)
		err = watch(loop, timeline_fd(agent->timeline), SOURCE_TIMELINE);
	if (!err && agent->live)
		err = watch(loop, live_fd(agent->live), SOURCE_LIVE);
	return err;
}

void loop_close(struct loop *loop)
{
	close_owned_fd(&loop->epoll);
	close_owned_fd(&loop->signals);
	close_owned_fd(&loop->tick);
	command_free(loop->command);
}

static void read_signals(struct agent *agent, struct loop *loop)
{
	struct signalfd_siginfo info;

	while (read(loop->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM) {
			/* The second one does not wait for the command. */
			loop->is_giving_up = agent->is_ending;
			agent->is_ending = true;
			/* A terminal's Ctrl-C has reached the command as well. */
			if (info.ssi_code != SI_KERNEL)
				command_signal(loop->command, (int)info.ssi_signo);
		}
		if (info.ssi_signo == SIGCHLD &&
		    command_has_ended(loop->command, &loop->exit_status))
			agent->is_ending = true;
	}
}

static void slow_tick(struct agent *agent)
{
	uint64_t lost = agent->summary.loss[PP_LOSS_EVENTS_FULL];

	process_watch_follow_cpus(agent);
	if (cpu_events_follow(agent->cpu_events))
		log_debug("a CPU that came online cannot be sampled");
	live_serve(agent->live); /* who is late */
	if (mono_ns() - agent->started_ns >= NS_PER_SEC)
		naming_prepare(agent->naming);
	window_facts_update(agent);
	if (agent->summary.loss[PP_LOSS_EVENTS_FULL] != lost)
		agent->must_rescan = true;
	if (!agent->profiles.is_open)
		window_forget(agent);
}

static void tick(struct agent *agent, struct loop *loop, uint64_t now_ns)
{
	uint64_t expirations;

	(void)!read(loop->tick, &expirations, sizeof(expirations));
	/* Late after a long window, the next one follows at once: what was freed must rest. */
	if (now_ns - loop->ticked_ns < LOOP_TICK_NS / 4)
		return;
	loop->ticked_ns = now_ns;
	(void)ring_consume(agent->stacks_ring);
	kernel_side_config(agent->kernel)->miss_tokens = miss_counts_tokens(agent, LOOP_TICK_NS);
	row_store_tick(agent->rows);
	image_table_tick(agent->images);
	thread_names_tick(agent->thread_names);
	process_watch_tick(agent);
	if (agent->timeline)
		timeline_tick(agent->timeline);
	if (now_ns < loop->next_slow_ns)
		return;
	loop->next_slow_ns = now_ns + SLOW_TICK_NS;
	slow_tick(agent);
	progress_update(&agent->progress, &agent->summary, now_ns);
}

int loop_serve(struct agent *agent, struct loop *loop, int timeout_ms)
{
	struct epoll_event event[8];
	int count = epoll_wait(loop->epoll, event, ARRAY_SIZE(event), timeout_ms);
	int err = 0;

	for (int i = 0; i < count && !err; i++) {
		switch ((enum source)event[i].data.u32) {
		case SOURCE_SIGNAL:
			read_signals(agent, loop);
			break;
		case SOURCE_TICK:
			tick(agent, loop, mono_ns());
			break;
		case SOURCE_STACKS:
			/* Processes first: a missed stack may be of a new one. */
			err = process_watch_follow(agent);
			if (!err)
				err = ring_consume(agent->stacks_ring);
			break;
		case SOURCE_TIMELINE:
			timeline_tick(agent->timeline);
			break;
		case SOURCE_LIVE:
			live_serve(agent->live);
			break;
		case SOURCE_EVENTS:
		case SOURCE_SIDEBAND:
			err = process_watch_follow(agent);
			break;
		}
	}
	return count < 0 && errno != EINTR ? -errno : err;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Where the open window is cut for who watches; not so close to its end. */
static uint64_t find_part_end(const struct agent *agent, const struct loop *loop)
{
	uint64_t due_ns = top_due_ns(agent->top, agent->window_started_ns);

	return due_ns < UINT64_MAX && due_ns + PART_MIN_NS < loop->window_ends_ns ? due_ns :
										    UINT64_MAX;
}

int loop_run_windows(struct agent *agent, struct loop *loop)
{
	int err = 0;

	while (!agent->is_ending && !err) {
		uint64_t now_ns = mono_ns();
		uint64_t part_ends_ns = find_part_end(agent, loop);
		uint64_t ends_ns = earlier(part_ends_ns,
					   earlier(loop->window_ends_ns, loop->all_ends_ns));

		if (now_ns >= loop->all_ends_ns)
			break;
		if (now_ns >= loop->window_ends_ns) {
			err = window_close(agent, WINDOW_WHOLE);
			if (!err)
				err = window_open(agent);
			loop->window_ends_ns += agent->options->interval_ns;
			continue;
		}
		if (now_ns >= part_ends_ns) {
			err = window_close(agent, WINDOW_PART);
			continue;
		}
		int timeout_ms = (int)((ends_ns - now_ns) / NS_PER_MS) + 1;

		timeout_ms = sweeps_timeout_ms(agent->sweeps, timeout_ms);
		err = loop_serve(agent, loop, live_timeout_ms(agent->live, timeout_ms));
		if (!err)
			err = tables_relieve(agent);
		if (!err) {
			sweeps_step(agent->sweeps);
			live_step(agent->live);
		}
	}
	return err;
}
