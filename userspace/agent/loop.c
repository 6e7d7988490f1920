/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/loop.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "agent/live.h"
#include "agent/naming.h"
#include "agent/rate.h"
#include "agent/reload.h"
#include "agent/server.h"
#include "agent/stages.h"
#include "agent/timeline.h"
#include "attach/cpu_events.h"
#include "base/log.h"
#include "base/slice.h"
#include "discover/sideband.h"
#include "drain/ring.h"
#include "files/client.h"
#include "options/options.h"
#include "processes/identities.h"
#include "processes/process_watch.h"
#include "processes/thread_names.h"
#include "store/keeper.h"
#include "unwind/row_store.h"
#include "windows/top.h"

#define SLOW_TICK_NS NS_PER_SEC
/* A window that ends by itself within this time is not cut for clients. */
#define PART_MIN_NS (500 * NS_PER_MS)
/* How long the ring of stacks is read and stacks are completed in one turn; the next goes on. */
#define STACKS_NS (40 * NS_PER_MS)
/* How long new programs are looked at for labels in one turn. */
#define IDENTITIES_NS (20 * NS_PER_MS)
/* How late a window may end so that what was left by slices is served in turns, not at once. */
#define BACKLOG_MAX_NS (500 * NS_PER_MS)
#define BACKLOG_MAX_SHARE 4U /* of a window */
/* How long the kernel's names are read in one tick. */
#define PREPARE_NS (20 * NS_PER_MS)
/* How long a window that has ended is worked on in one turn. */
#define CLOSING_NS (40 * NS_PER_MS)
/* From so many turns in a period on, each waits a moment before the next. */
#define TURNS_PERIOD_NS (100 * NS_PER_MS)
#define TURNS_MAX 50U
#define GATHER_NS 1000000L

enum wake {
	WAKES_SIGNAL,
	WAKES_TICK,
	WAKES_STACKS,
	WAKES_EVENTS,
	WAKES_SIDEBAND,
	WAKES_SAMPLING,
	WAKES_TIMELINE,
	WAKES_LIVE,
	WAKES_RELOAD,
};

/* ---- questions to the child that parses files ---- */

void turn_questions_begin(struct turn_questions *questions, uint64_t used_ns)
{
	questions->began_ns = used_ns;
	questions->put_off = questions->has_put_off ? questions->put_off + 1 : 0;
	questions->has_put_off = false;
}

bool turn_questions_allow(struct turn_questions *questions, uint64_t used_ns)
{
	if (used_ns - questions->began_ns < TURN_QUESTIONS_LONG_NS ||
	    questions->put_off >= TURN_QUESTIONS_PUT_OFF_MAX)
		return true;
	questions->has_put_off = true;
	return false;
}

static int watch(const struct loop *loop, int fd, enum wake by)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = by};

	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* As under nohup(1). */
static bool is_ignored(int number)
{
	struct sigaction action;

	return !sigaction(number, NULL, &action) && action.sa_handler == SIG_IGN;
}

static int open_signals(const struct loop *loop)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGPIPE);
	sigaddset(&signals, SIGUSR1);
	if (loop->reload || !is_ignored(SIGHUP))
		sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGCHLD, SIG_DFL); /* ignored by inheritance, no child would ever be reaped */
	return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

int loop_open(struct loop *loop, const struct agent *agent)
{
	struct itimerspec tick = {.it_interval.tv_nsec = LOOP_TICK_NS,
				  .it_value.tv_nsec = LOOP_TICK_NS};
	int err;

	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->signals = open_signals(loop);
	loop->tick = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (loop->epoll < 0 || loop->signals < 0 || loop->tick < 0 ||
	    timerfd_settime(loop->tick, 0, &tick, NULL))
		return -errno;
	err = watch(loop, loop->signals, WAKES_SIGNAL);
	if (!err)
		err = watch(loop, loop->tick, WAKES_TICK);
	if (!err)
		err = watch(loop, ring_fd(agent->stacks_ring), WAKES_STACKS);
	if (!err)
		err = watch(loop, ring_fd(process_watch_ring(agent->watch)), WAKES_EVENTS);
	if (!err)
		err = watch(loop, sideband_fd(agent->sideband), WAKES_SIDEBAND);
	if (!err && agent->timeline)
		err = watch(loop, timeline_fd(agent->timeline), WAKES_TIMELINE);
	if (!err && agent->live)
		err = watch(loop, live_fd(agent->live), WAKES_LIVE);
	if (!err && loop->reload)
		err = watch(loop, reload_fd(loop->reload), WAKES_RELOAD);
	return err;
}

int loop_watch_sampling(const struct loop *loop, const struct agent *agent)
{
	return watch(loop, cpu_events_fd(agent->cpu_events), WAKES_SAMPLING);
}

void loop_close(struct loop *loop)
{
	close_owned_fd(&loop->epoll);
	close_owned_fd(&loop->signals);
	close_owned_fd(&loop->tick);
	command_free(loop->command);
	service_close(&loop->service);
}

static void begin_reload(struct loop *loop)
{
	service_reloading(&loop->service, mono_ns());
	if (!reload_begin(loop->reload))
		service_reloaded(&loop->service, mono_ns()); /* the manager waits for it */
}

static void serve_again(void *context, const struct config *config)
{
	server_follow(context, config, mono_ns());
}

static void finish_reload(struct agent *agent, struct loop *loop)
{
	const struct reload_targets targets = {.output = agent->output,
					       .rate = &agent->rate,
					       .serve_again = loop->server ? serve_again : NULL,
					       .context = loop->server};

	if (reload_finish(loop->reload, &targets))
		service_reloaded(&loop->service, mono_ns());
}

/* Without a configuration to read again, SIGHUP is the terminal's end. */
static bool is_end(const struct loop *loop, uint32_t number)
{
	return number == SIGINT || number == SIGTERM || (number == SIGHUP && !loop->reload);
}

static void keep_all(struct agent *agent)
{
	if (agent->keeper)
		keeper_add_signal(agent->keeper, mono_ns());
	else
		log_warn("SIGUSR1 keeps the last ten minutes of a store, and this run has none: "
			 "give --output a directory");
}

static void read_signals(struct agent *agent, struct loop *loop)
{
	struct signalfd_siginfo info;

	while (read(loop->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP && loop->reload)
			begin_reload(loop);
		if (info.ssi_signo == SIGUSR1)
			keep_all(agent);
		if (is_end(loop, info.ssi_signo)) {
			/* After a second signal we do not wait for the command. */
			loop->is_giving_up = agent->is_ending;
			agent->is_ending = true;
			/* Ctrl-C in a terminal has reached the command as well. */
			if (info.ssi_code != SI_KERNEL)
				command_signal(loop->command, (int)info.ssi_signo);
		}
		if (info.ssi_signo == SIGCHLD &&
		    command_has_ended(loop->command, &loop->exit_status))
			agent->is_ending = true;
	}
}

static int serve_processes(struct agent *agent, struct loop *loop)
{
	if (loop->has_served_processes)
		return 0;
	loop->has_served_processes = true;
	return process_watch_follow(agent->watch);
}

static int serve_stacks(struct agent *agent, struct loop *loop)
{
	struct slice slice;
	int got;

	if (loop->has_served_stacks)
		return 0;
	loop->has_served_stacks = true;
	slice = slice_begin(STACKS_NS);
	got = stack_intake_serve(&agent->stacks, &slice);
	loop->has_more_stacks = got > 0;
	return got < 0 ? got : 0;
}

static void look_at_processes(struct agent *agent, struct loop *loop)
{
	const struct slice slice = slice_begin(IDENTITIES_NS);

	loop->has_more_identities = identities_step(agent->services.identities, &slice);
}

static bool has_backlog(const struct agent *agent, const struct loop *loop)
{
	return loop->has_more_stacks || loop->has_more_identities ||
	       process_watch_has_more(agent->watch);
}

/* The first second belongs to what has just started. */
static void prepare_names(const struct agent *agent, uint64_t now_ns)
{
	const struct slice slice = slice_begin(PREPARE_NS);

	if (now_ns - agent->started_ns >= NS_PER_SEC)
		naming_prepare(agent->services.naming, &slice);
}

/* CPUs come and go. */
static void follow_cpus(struct agent *agent, struct loop *loop)
{
	int err;

	process_watch_follow_cpus(agent->watch);
	err = cpu_events_follow(agent->cpu_events);
	if (err && !loop->is_unsampled_told)
		log_warn_errno(err, "cannot sample a CPU that came online, whose time is missing "
				    "from the profiles; restart pyprofd");
	loop->is_unsampled_told = err;
}

static void slow_tick(struct agent *agent, struct loop *loop)
{
	uint64_t lost = agent->summary.loss[PP_LOSS_EVENTS_FULL];

	follow_cpus(agent, loop);
	stages_follow_users(agent, mono_ns());
	live_serve(agent->live); /* closes connections that are late */
	server_turn(loop->server, mono_ns());
	window_facts_update(&agent->facts);
	window_facts_tell_quotas(&agent->facts);
	loop->has_unused_files = true;
	if (agent->summary.loss[PP_LOSS_EVENTS_FULL] != lost)
		process_watch_want_rescan(agent->watch);
	if (!agent->profiles.is_open)
		window_forget(&agent->window);
}

static uint64_t questions_ns(const struct agent *agent)
{
	struct foreign_stats stats = {0};

	foreign_get_stats(agent->services.foreign, &stats);
	return stats.count[FOREIGN_COST_CPU_NS];
}

/* Returns whether this turn has time for a step that may ask about a file. */
static bool has_time(const struct agent *agent, struct loop *loop)
{
	return turn_questions_allow(&loop->questions, questions_ns(agent));
}

static uint64_t find_end(const void *processes, uint32_t pid, uint32_t generation)
{
	const struct pp_process_id id = {.tgid = pid, .generation = generation};
	const struct process *process = process_table_find(processes, id);

	return process ? process->exit_ns : KEEPER_GONE;
}

static void tick(struct agent *agent, struct loop *loop, uint64_t now_ns)
{
	uint64_t expirations;

	(void)!read(loop->tick, &expirations, sizeof(expirations));
	/* A tick that a long window has delayed is followed by the next one at once; memory that
	 * was freed in between must rest for a whole tick. */
	if (now_ns - loop->ticked_ns < LOOP_TICK_NS / 4)
		return;
	loop->ticked_ns = now_ns;
	service_tick(&loop->service, now_ns);
	(void)serve_stacks(agent, loop);
	stack_intake_give_tokens(&agent->stacks, stages_miss_tokens(agent, LOOP_TICK_NS));
	row_store_tick(agent->rows);
	context_table_tick(agent->services.contexts);
	thread_names_tick(agent->services.thread_names);
	prepare_names(agent, now_ns);
	process_watch_tick(agent->watch);
	agent->is_ending |= sources_tick(&agent->sources, now_ns);
	if (agent->timeline)
		timeline_tick(agent->timeline);
	keeper_find_ends(agent->keeper, now_ns, find_end, agent->services.processes);
	if (loop->has_unused_files && has_time(agent, loop))
		loop->has_unused_files = window_close_files(&agent->window);
	if (now_ns < loop->next_slow_ns)
		return;
	loop->next_slow_ns = now_ns + SLOW_TICK_NS;
	slow_tick(agent, loop);
	progress_update(&agent->progress, &agent->summary, now_ns);
}

/* While the loop is in one turn nobody is served: no ring, no client. */
static void note_turn(const struct loop *loop, struct summary *summary)
{
	uint64_t turn_ns = loop->woken_ns ? mono_ns() - loop->woken_ns : 0;

	if (turn_ns > summary->loop_stall_max_ns)
		summary->loop_stall_max_ns = turn_ns;
}

/* Lets records gather when they come one by one, and each wakes the loop: a program that changes
 * its executable mappings all the time would cost a quarter of a CPU in wake-ups alone.  The rings
 * hold what comes meanwhile. */
static void moderate(struct loop *loop)
{
	const struct timespec gather = {.tv_nsec = GATHER_NS};

	if (loop->woken_ns - loop->turns_since_ns >= TURNS_PERIOD_NS) {
		loop->turns_since_ns = loop->woken_ns;
		loop->turns = 0;
	}
	if (++loop->turns > TURNS_MAX)
		(void)nanosleep(&gather, NULL);
}

int loop_serve(struct agent *agent, struct loop *loop, int timeout_ms)
{
	struct epoll_event event[8];
	int count, err = 0, wait_err;

	note_turn(loop, &agent->summary);
	loop->has_served_processes = loop->has_served_stacks = false;
	if (has_backlog(agent, loop) || window_is_closing(&agent->window))
		timeout_ms = 0;
	else
		moderate(loop);
	count = epoll_wait(loop->epoll, event, ARRAY_SIZE(event), timeout_ms);
	wait_err = count < 0 && errno != EINTR ? -errno : 0;
	loop->woken_ns = mono_ns();
	turn_questions_begin(&loop->questions, questions_ns(agent));
	for (int i = 0; i < count && !err; i++) {
		switch ((enum wake)event[i].data.u32) {
		case WAKES_SIGNAL:
			read_signals(agent, loop);
			break;
		case WAKES_TICK:
			tick(agent, loop, mono_ns());
			break;
		case WAKES_STACKS:
			/* Processes first: an incomplete stack may be of a new one. */
			err = serve_processes(agent, loop);
			if (!err)
				err = serve_stacks(agent, loop);
			break;
		case WAKES_SAMPLING:
			cpu_events_vary(agent->cpu_events);
			break;
		case WAKES_TIMELINE:
			timeline_tick(agent->timeline);
			break;
		case WAKES_LIVE:
			live_serve(agent->live);
			break;
		case WAKES_RELOAD:
			finish_reload(agent, loop);
			break;
		case WAKES_EVENTS:
		case WAKES_SIDEBAND:
			err = serve_processes(agent, loop);
			break;
		}
	}
	if (!err && process_watch_has_more(agent->watch))
		err = serve_processes(agent, loop);
	if (!err && loop->has_more_stacks)
		err = serve_stacks(agent, loop);
	look_at_processes(agent, loop);
	return wait_err ? wait_err : err;
}

/* Returns how long the end of a window waits for a backlog to be served in turns. */
static uint64_t backlog_max_ns(const struct agent *agent)
{
	const uint64_t share_ns = agent->options->interval_ns / BACKLOG_MAX_SHARE;

	return share_ns < BACKLOG_MAX_NS ? share_ns : BACKLOG_MAX_NS;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns when the open window is cut for clients that watch, unless it ends soon anyway. */
static uint64_t find_part_end(const struct agent *agent, const struct loop *loop)
{
	uint64_t due_ns = top_due_ns(live_top(agent->live), agent->window.started_ns);

	return due_ns < UINT64_MAX && due_ns + PART_MIN_NS < loop->window_ends_ns ? due_ns
										  : UINT64_MAX;
}

/* After a pause (SIGSTOP, a suspended guest) the window that was closed has covered it all; the
 * ends that it missed do not make a burst of empty windows. */
static void find_window_end(const struct agent *agent, struct loop *loop)
{
	const uint64_t late_ns = agent->window.started_ns - loop->window_ends_ns;
	uint64_t missed;

	loop->window_ends_ns = window_next_end(&agent->window, loop->window_ends_ns, &missed);
	if (late_ns < agent->options->interval_ns)
		return;
	loop->pauses++;
	/* The first, the second, the fourth ...: a machine too slow for its windows has many. */
	if (!(loop->pauses & (loop->pauses - 1)))
		log_warn("pyprofd could not run for %.1f s: one window covers that time, in place "
			 "of %llu (%llu such pauses so far)",
			 (double)late_ns / (double)NS_PER_SEC, (unsigned long long)missed + 1,
			 (unsigned long long)loop->pauses);
}

/* A window's end waits for a while for what is served in turns. */
static bool must_wait(struct agent *agent, const struct loop *loop, uint64_t now_ns)
{
	const bool has_work = sources_hurry(&agent->sources);

	return (has_work || has_backlog(agent, loop)) &&
	       now_ns - loop->window_ends_ns < backlog_max_ns(agent);
}

/* The window that has begun may have another rate than the one that was cut. */
static void govern(struct agent *agent)
{
	struct rate *rate = &agent->rate;

	if (rate->cap_ppm || rate->wanted_steps)
		rate_govern(rate, window_facts_cost_ns(&agent->facts), mono_ns());
	rate_follow(rate);
}

/* Returns whether to cut the open window, so that what somebody wants to keep is written; one that
 * ends by itself soon is awaited. */
static bool must_keep(const struct agent *agent, const struct loop *loop, uint64_t now_ns)
{
	return now_ns + PART_MIN_NS < loop->window_ends_ns &&
	       keeper_wants_cut(agent->keeper, agent->window.profile_started_ns);
}

/* Ends a window that is due, or goes on with one that has ended: one that is due meanwhile
 * waits. */
static int serve_windows(struct agent *agent, struct loop *loop)
{
	const struct slice slice = slice_begin(CLOSING_NS);
	const uint64_t now_ns = mono_ns();
	int more;

	if (!window_is_closing(&agent->window)) {
		if (now_ns >= loop->window_ends_ns && !must_wait(agent, loop, now_ns)) {
			window_cut(&agent->window, WINDOW_WHOLE);
			govern(agent);
			find_window_end(agent, loop);
		} else if (must_keep(agent, loop, now_ns)) {
			/* The next one ends when this one would have ended. */
			window_cut(&agent->window, WINDOW_WHOLE);
			govern(agent);
		} else if (now_ns >= find_part_end(agent, loop)) {
			window_cut(&agent->window, WINDOW_PART);
		}
		return 0;
	}
	if (!has_time(agent, loop))
		return 0;
	more = window_step(&agent->window, &slice);
	if (more)
		return more < 0 ? more : 0;
	agent->summary.rate_steps = agent->rate.wanted_steps;
	return window_open(&agent->window, agent->started_ns);
}

/* Returns how long the loop may sleep. */
static int find_timeout_ms(const struct agent *agent, const struct loop *loop)
{
	const uint64_t ends_ns = earlier(find_part_end(agent, loop),
					 earlier(loop->window_ends_ns, loop->all_ends_ns));

	return live_timeout_ms(agent->live,
			       sources_timeout_ms(&agent->sources, ms_until(ends_ns, INT_MAX)));
}

int loop_run_windows(struct agent *agent, struct loop *loop)
{
	int err = 0;

	while (!agent->is_ending && !err && mono_ns() < loop->all_ends_ns) {
		err = serve_windows(agent, loop);
		if (!err)
			err = loop_serve(agent, loop, find_timeout_ms(agent, loop));
		if (!err)
			err = tables_relieve(&agent->tables);
		if (!err) {
			sources_step(&agent->sources);
			if (has_time(agent, loop))
				live_step(agent->live);
		}
	}
	return err;
}
