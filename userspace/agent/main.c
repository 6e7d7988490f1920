/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprofd.  The spine: the stages are opened (stages.c), then one loop serves them (loop.c) until
 * the end. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/command.h"
#include "agent/loop.h"
#include "agent/reload.h"
#include "agent/server.h"
#include "agent/stages.h"
#include "agent/timeline.h"
#include "attach/cpu_events.h"
#include "attach/probe_links.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/task.h"
#include "child/children.h"
#include "child/perf_opener.h"
#include "doctor/doctor.h"
#include "files/client.h"
#include "files/opening.h"
#include "files/serve.h"
#include "gauges/child.h"
#include "options/host_check.h"
#include "options/options.h"
#include "peek/child.h"
#include "peek/client.h"
#include "processes/process_watch.h"
#include "store/keeper.h"
#include "store/merger.h"
#include "store/output.h"

#define OWN_PROGRAM "/proc/self/exe" /* what children are: be_child() */
#define WANTED_FDS 65536U
#define AGENT_NICE (-10)		  /* and Nice= in deploy/systemd/pyprofd.service */
#define SOURCES_WAIT_NS (10 * NS_PER_SEC) /* until all sources are attached */
#define SOURCES_LOOK_MS 10

static int wait_delay(struct agent *agent, struct loop *loop)
{
	uint64_t until_ns = mono_ns() + agent->options->delay_ns;
	int err = 0;

	while (agent->options->delay_ns && mono_ns() < until_ns && !agent->is_ending && !err)
		err = loop_serve(agent, loop, (int)((until_ns - mono_ns()) / NS_PER_MS) + 1);
	return err;
}

/* From the first sample to the last. */
static int profile_all(struct agent *agent, struct loop *loop)
{
	volatile struct pp_config *config = kernel_side_config(agent->services.kernel);
	int err = wait_delay(agent, loop), closed, traced;

	if (!err)
		err = stages_start_window(agent);
	if (err)
		return err;
	loop->window_ends_ns = agent->started_ns + agent->options->interval_ns;
	loop->all_ends_ns = agent->options->duration_ns
				    ? agent->started_ns + agent->options->duration_ns
				    : UINT64_MAX;
	stack_intake_give_tokens(&agent->stacks, stages_miss_tokens(agent, LOOP_TICK_NS));
	config->flags &= ~(uint32_t)PP_CONFIG_PAUSED;
	err = sources_begin(&agent->sources, agent->started_ns);
	if (err)
		return err;
	command_release(loop->command);
	service_ready(&loop->service, mono_ns());
	err = loop_run_windows(agent, loop);
	if (!err)
		err = sources_end(&agent->sources);
	config->flags |= PP_CONFIG_PAUSED;
	service_stopping(&loop->service);
	agent->window.paused_ns = mono_ns();
	traced = timeline_close(agent->timeline);
	closed = agent->profiles.is_open ? window_close(&agent->window, WINDOW_LAST) : 0;
	keeper_finish(agent->keeper);
	/* The profile is over, the command's exit status still counts. */
	while (!err && !loop->is_giving_up && command_is_running(loop->command))
		err = loop_serve(agent, loop, -1);
	if (!err)
		err = closed;
	return err ? err : traced;
}

static int start_command(struct agent *agent, struct loop *loop)
{
	OWNED(command_user) struct command_user *user = NULL;
	struct command_setting setting = loop->command_setting;
	uint32_t pid;
	int err;

	if (!agent->options->command)
		return 0;
	err = agent->options->as_root ? 0 : command_user_find(&user);
	if (err == -EINVAL) {
		log_error("SUDO_UID and SUDO_GID do not name a user to run '%s' as: unset them, or "
			  "give --set capture.as-root=yes",
			  agent->options->command[0]);
		return err;
	}
	setting.user = user;
	if (!err)
		err = command_start(agent->options->command, &setting, &loop->command, &pid);
	if (err)
		return log_error_errno(err, "cannot start '%s'", agent->options->command[0]);
	err = target_add_pid(&agent->filter, pid);
	if (err)
		return err;
	return process_watch_follow(agent->watch);
}

/* Who names probes, or runs a command, wants their hits from the beginning on.  So does who wants
 * some seconds of the calls of CUDA: loading its programs takes one, and more where the CPUs are
 * busy.  A run without an end goes on with what is there. */
static bool awaits_sources(const struct options *options)
{
	const bool is_short = options->duration_ns && !options->events_are_default;
	const uint32_t awaited = PP_CAPTURE_PROBE | PP_CAPTURES_EXACT | PP_CAPTURE_ALLOC |
				 (is_short ? PP_CAPTURE_CUDA : 0U);

	return options->command || options->events & awaited;
}

static int await_sources(struct agent *agent, struct loop *loop)
{
	const uint64_t until_ns = mono_ns() + SOURCES_WAIT_NS;
	int are_ready = 0, err = 0;

	if (agent->options->command)
		sources_prepare(&agent->sources, command_pid(loop->command),
				agent->options->command[0]);
	else if (!awaits_sources(agent->options))
		return 0;
	while (!err && !agent->is_ending && !(are_ready = sources_are_ready(&agent->sources)) &&
	       mono_ns() < until_ns)
		err = loop_serve(agent, loop, SOURCES_LOOK_MS);
	agent->is_ending |= sources_tick(&agent->sources, mono_ns());
	if (!err && !agent->is_ending && !are_ready)
		log_warn("not all probes are there after %llu s: the run begins without them, and "
			 "their first hits are missing",
			 SOURCES_WAIT_NS / NS_PER_SEC);
	return are_ready < 0 ? are_ready : err;
}

/* ---- the spine ---- */

static int run(struct agent *agent, struct loop *loop)
{
	const struct options *options = agent->options;
	int err = stages_open(agent);

	if (!err)
		err = output_merge_by(agent->output, agent->services.child_program);
	if (!err) {
		err = loop_open(loop, agent);
		if (err)
			return log_error_errno(err, "cannot wait for the kernel's records");
	}
	if (!err)
		err = start_command(agent, loop);
	if (!err) {
		peek_await(agent->peek);
		if (!foreign_await(agent->services.foreign))
			log_error("cannot start the child that parses files: stacks "
				  "end early, and no interpreter is known");
		stages_follow_users(agent, mono_ns());
		err = process_watch_start(agent->watch);
	}
	if (!err)
		err = sources_check(&agent->sources);
	if (!err)
		err = stages_open_sampling(agent);
	if (!err)
		err = loop_watch_sampling(loop, agent);
	if (!err)
		err = await_sources(agent, loop);
	if (err)
		return err;
	if (options->output_kind == OPTIONS_OUTPUT_DIRECTORY && !options->quiet)
		log_info("profiling at %u Hz on %u CPUs; profiles go to %s", options->hz,
			 cpu_events_count(agent->cpu_events), options->output);
	return profile_all(agent, loop);
}

/* Rows that come late cut stacks, so the agent's few milliseconds go before other work. */
static void raise_priority(int given)
{
	if (given > AGENT_NICE && setpriority(PRIO_PROCESS, 0, AGENT_NICE))
		log_warn("cannot run at nice %d (%s) and stays at %d: stacks may be cut while the "
			 "CPUs are busy; grant CAP_SYS_NICE, or set Nice=%d in the unit",
			 AGENT_NICE, strerror(errno), given, AGENT_NICE);
}

/* Mapped files are kept open from their discovery on. */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= WANTED_FDS)
		return;
	limit.rlim_cur = limit.rlim_max < WANTED_FDS ? limit.rlim_max : WANTED_FDS;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Tells why there is no profile, unless a stage has done so. */
static void explain_end(int err)
{
	struct rlimit limit = {0};

	if (log_has_error())
		return;
	if (err == -EMFILE && !getrlimit(RLIMIT_NOFILE, &limit))
		log_error("pyprofd needs more than the %llu open files that it may have: raise "
			  "the limit (ulimit -n, LimitNOFILE= in a unit)",
			  (unsigned long long)limit.rlim_cur);
	else if (err == -ENOMEM && !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY)
		log_error("pyprofd needs more than the %llu MiB of address space that it may have: "
			  "raise the limit (ulimit -v, LimitAS= in a unit)",
			  (unsigned long long)limit.rlim_cur >> 20);
	else
		log_error_errno(err, "pyprofd cannot go on");
}

static void print_summary(struct agent *agent)
{
	struct foreign_stats parsing = {0};
	struct peek_stats reads = {0};

	foreign_get_stats(agent->services.foreign, &parsing);
	log_debug("elf child: %" PRIu64 " late, %" PRIu64 " ended, %" PRIu64 " without it, %" PRIu64
		  " starts",
		  parsing.late, parsing.ended, parsing.none, parsing.starts);
	log_debug("opener child: %" PRIu64 " requests, %" PRIu64 " late, %" PRIu64
		  " starts, %" PRIu64 " us of CPU time",
		  parsing.opener.asked, parsing.opener.late, parsing.opener.starts,
		  (uint64_t)(parsing.opener.cpu_ns / NS_PER_US));
	peek_get_stats(agent->peek, &reads);
	log_debug("memory child: %" PRIu64 " reads, %" PRIu64 " starts, %" PRIu64 " us of CPU time",
		  reads.reads, reads.starts, (uint64_t)(reads.cpu_ns / NS_PER_US));
	log_debug("incomplete stacks: %.2f ms each, the longest wait in the queue %.1f ms",
		  (double)agent->incomplete.mean_ns / NS_PER_MS,
		  (double)agent->incomplete.age_max_ns / NS_PER_MS);
	window_facts_update(&agent->facts);
	agent->summary.own_map_bytes = kernel_side_map_bytes(agent->services.kernel);
	progress_finish(&agent->progress, &agent->summary, agent->options->quiet);
	if (!agent->options->quiet)
		sources_print(&agent->sources, stderr);
}

/* What pyprofd does takes these. */
#define NEEDED_CAPABILITIES                                                                        \
	(CAPABILITY_BIT(CAP_BPF) | CAPABILITY_BIT(CAP_PERFMON) | CAPABILITY_BIT(CAP_SYS_PTRACE) |  \
	 CAPABILITY_BIT(CAP_SYSLOG) | CAPABILITY_BIT(CAP_DAC_READ_SEARCH) |                        \
	 CAPABILITY_BIT(CAP_CHECKPOINT_RESTORE))
/* What root uses besides: to write where others may not, to give a profile to the user behind sudo,
 * to run a command as that user and stop it, to go before other work, to lock memory. */
#define ROOT_CAPABILITIES                                                                          \
	(CAPABILITY_BIT(CAP_DAC_OVERRIDE) | CAPABILITY_BIT(CAP_CHOWN) |                            \
	 CAPABILITY_BIT(CAP_FOWNER) | CAPABILITY_BIT(CAP_SETUID) | CAPABILITY_BIT(CAP_SETGID) |    \
	 CAPABILITY_BIT(CAP_KILL) | CAPABILITY_BIT(CAP_SYS_NICE) |                                 \
	 CAPABILITY_BIT(CAP_SYS_RESOURCE) | CAPABILITY_BIT(CAP_IPC_LOCK))

/* Those for which CAP_SYS_ADMIN can stand: host_check.c. */
#define ADMIN_STANDS_FOR                                                                           \
	(CAPABILITY_BIT(CAP_BPF) | CAPABILITY_BIT(CAP_PERFMON) |                                   \
	 CAPABILITY_BIT(CAP_CHECKPOINT_RESTORE))

/* Gives up all other capabilities, CAP_SYS_ADMIN above all: perf events that take it are opened by
 * a child. */
static void give_up_capabilities(const struct options *options)
{
	uint64_t kept = NEEDED_CAPABILITIES | ROOT_CAPABILITIES;
	int err;

	if (!capabilities_are_held(ADMIN_STANDS_FOR)) {
		kept |= CAPABILITY_BIT(CAP_SYS_ADMIN);
		log_warn("CAP_SYS_ADMIN stands for capabilities that are missing, and is kept; "
			 "grant CAP_BPF, CAP_PERFMON and CAP_CHECKPOINT_RESTORE in its place");
	}
	/* Only for who asks for probes: perf events of user probes take it since a fix of 2024
	 * ("Revert to requiring CAP_SYS_ADMIN for uprobes", also in 5.10.y and 6.1.y).  Drop when
	 * the oldest kernel has uprobe_multi. */
	if (options->events & PP_CAPTURES_OF_PROBES && !options->events_are_default &&
	    !probe_links_can_share())
		kept |= CAPABILITY_BIT(CAP_SYS_ADMIN);
	err = capabilities_keep(kept, kept);
	if (err)
		log_warn_errno(err, "cannot give up the capabilities that pyprofd does not need");
}

/* Runs until the end that the options or a signal give.  Returns the exit status. */
static int run_agent(struct options *options)
{
	OWNED(reload) struct reload *reload = NULL;
	OWNED(server) struct server *server = NULL;
	OWNED(perf_opener) struct perf_opener *opener = NULL;
	OWNED(peek) struct peek *peek = NULL;
	OWNED(foreign) struct foreign *foreign = NULL;
	struct agent agent = {
		.options = options, .rate.options = options, .services.child_program = OWN_PROGRAM};
	struct loop loop = {.epoll = -1, .signals = -1, .tick = -1};
	int err;

	loop.command_setting.nice = getpriority(PRIO_PROCESS, 0);
	getrlimit(RLIMIT_NOFILE, &loop.command_setting.files);
	getrlimit(RLIMIT_MEMLOCK, &loop.command_setting.locked_memory);
	/* `systemctl kill` sends it to all processes of a service: children inherit this, and the
	 * loop takes the signal by a descriptor, for which it is blocked. */
	loop.command_setting.on_usr1 = signal(SIGUSR1, SIG_IGN);
	raise_fd_limit();
	raise_priority(loop.command_setting.nice);
	err = service_open(&loop.service);
	if (err)
		log_warn_errno(err, "cannot tell the service manager (NOTIFY_SOCKET) how it goes");
	err = peek_new(OWN_PROGRAM, &peek);
	if (!err && (config_path(options->config) || options->config_is_missing))
		err = reload_new(options, &reload);
	loop.reload = reload;
	if (!err)
		err = foreign_new(OWN_PROGRAM, &foreign);
	if (!err)
		err = perf_opener_new(OWN_PROGRAM, PERF_PARANOID_PATH, &opener);
	if (err) {
		log_error_errno(err, "cannot start");
		return OPTIONS_EXIT_FAILURE;
	}
	give_up_capabilities(options);
	agent.opener = opener;
	err = server_new(options, NULL, &server);
	if (err)
		log_warn_errno(err, "cannot start pyprofd-serve");
	loop.server = server;
	/* From here on nobody else reads other processes' memory. */
	agent.peek = peek;
	agent.services.foreign = foreign;
	process_access_by(&peek_access, peek);
	progress_init(&agent.progress, stderr, options->quiet);
	err = run(&agent, &loop);
	if (err)
		explain_end(err);
	if (agent.started_ns)
		print_summary(&agent);
	stages_release(&agent);
	loop_close(&loop);
	process_access_by(NULL, NULL);
	if (err == -ENXIO)
		return OPTIONS_EXIT_USAGE;
	return err ? OPTIONS_EXIT_FAILURE : loop.exit_status;
}

/* ---- the program ---- */

/* This program, started under a child's name, is that child. */
static void be_child(enum child_kind kind)
{
	static void (*const child_main[CHILD_KINDS])(void) = {
		[CHILD_MEMORY] = peek_child_main,   [CHILD_OPENER] = opening_child_main,
		[CHILD_FILES] = foreign_child_main, [CHILD_EVENTS] = perf_child_main,
		[CHILD_STORE] = merge_child_main,   [CHILD_GAUGES] = gauges_child_main,
	};

	if (kind < CHILD_KINDS && child_main[kind])
		child_main[kind]();
}

int main(int argc, char **argv)
{
	CLEANUP(options_release) struct options options = {};
	char why[HOST_WHY_BYTES] = "";
	int err;

	be_child(child_named(argv[0]));
	err = options_parse(argc, argv, &options);
	if (err == -ENOMEM) {
		log_error_errno(err, "cannot read the options");
		return OPTIONS_EXIT_FAILURE;
	}
	if (err)
		return err > 0 ? 0 : OPTIONS_EXIT_USAGE;
	log_set_level(options_log_level(&options));
	if (options.doctor)
		return doctor_run(&options, OWN_PROGRAM, stdout);
	if (options.config_is_missing)
		log_warn("%s does not exist: the defaults count", OPTIONS_CONFIG_DEFAULT);
	err = host_check(&host_paths_real, &options, why, sizeof(why));
	if (err) {
		log_error("%s", why);
		return OPTIONS_EXIT_FAILURE;
	}
	if (why[0])
		log_warn("%s", why);
	return run_agent(&options);
}
