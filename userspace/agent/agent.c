/* SPDX-License-Identifier: BSD-2-Clause */
/* The spine: every stage is opened in the order of the data, then one loop (loop.c) serves them. */
#include "agent/agent.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/coverage.h"
#include "agent/finishing.h"
#include "agent/live.h"
#include "agent/loop.h"
#include "agent/miss_counts.h"
#include "agent/naming.h"
#include "agent/process_watch.h"
#include "agent/sweeps.h"
#include "agent/thread_names.h"
#include "agent/timeline.h"
#include "agent/top.h"
#include "agent/waits.h"
#include "agent/walk_budgets.h"
#include "agent/window.h"
#include "agent/window_facts.h"
#include "base/clock.h"
#include "base/log.h"
#include "discover/cpus.h"
#include "elf/elf_guard.h"
#include "finish/miss_python.h"
#include "ledger/ledger_sums.h"
#include "options/host_check.h"

#define WANTED_FDS 65536U
#define AGENT_NICE (-10) /* and Nice= in deploy/systemd/pyprofd.service */

/* ---- what the rings bring ---- */

static void on_stack(void *context, const struct decoded_stack *stack)
{
	struct agent *agent = context;

	(void)dictionary_add_stack(agent->dictionary, stack);
	if (stack->record->python_count)
		thread_names_want(agent->thread_names, stack->record->id);
}

static void on_kernel(void *context, const struct decoded_kernel *kernel)
{
	struct agent *agent = context;

	(void)dictionary_add_kernel(agent->dictionary, kernel);
}

static void on_code(void *context, const struct pp_code_record *record)
{
	struct agent *agent = context;
	const struct python_info *info = image_table_python_info(agent->images, record->python);
	struct python_code *code;
	uint32_t index;

	if (info && !python_code_from_record(record, &info->bpf, (pid_t)record->process.tgid, &code))
		(void)dictionary_add_code(agent->dictionary, record->process, code, &index);
}

static int read_raw_code(void *context, struct pp_process_id id, uint8_t python, uint64_t address,
			 struct python_code **ret_code)
{
	struct agent *agent = context;
	const struct python_info *info = image_table_python_info(agent->images, python);
	struct process *process = process_table_find(agent->processes, id);
	struct process_python *where = process ? image_table_python(process) : NULL;

	if (!info || !where)
		return -ESRCH;
	return python_code_read((pid_t)id.tgid, &info->bpf, where->bias, address, ret_code);
}

/* ---- start ---- */

/* Nothing is counted yet. */
static uint32_t config_flags(const struct agent *agent, bool waits)
{
	const struct options *options = agent->options;

	return (agent->is_filtered ? PP_CONFIG_FILTER : 0) |
	       (options->comm ? PP_CONFIG_BY_NAME : 0) |
	       (options->no_kernel ? PP_CONFIG_NO_KERNEL : 0) |
	       (options->events & PP_CAPTURE_GIL || options->timeline ? PP_CONFIG_BLAME : 0) |
	       /* A PMU's interrupt may hit a switch; a timer's cannot. */
	       (waits && options->clock == OPTIONS_CLOCK_CPU ? PP_CONFIG_SEE_RUNNING : 0) |
	       (options->clock == OPTIONS_CLOCK_CYCLES ? PP_CONFIG_NMI : 0) | PP_CONFIG_PAUSED;
}

static int open_kernel(struct agent *agent)
{
	bool waits = agent->options->events & PP_CAPTURES_OF_WAITS;
	struct kernel_side_options options = {
		.hz = agent->options->hz,
		.interval_ns = agent->options->interval_ns,
		.budget_bytes = agent->options->budget_bytes,
		.waits = waits || agent->options->timeline,
		.timeline = agent->options->timeline,
		.wakers = agent->options->wakers,
	};
	const struct walk_budgets budgets = walk_budgets_of(agent->options);
	CLEANUP(cpu_list_release) struct cpu_list online = {};
	char why[512] = "";
	int err = cpus_possible_count(&options.cpu_count);

	if (!err)
		err = cpus_online(&online);
	if (err)
		return log_error_errno(err, "cannot read the list of CPUs");
	options.online_count = agent->online_cpus = (uint32_t)online.count;
	err = kernel_side_open(&options, why, sizeof(why), &agent->kernel);
	if (err) {
		log_error("%s", why[0] ? why : strerror(-err));
		return err;
	}
	err = kernel_side_follow_cpus(agent->kernel, online.cpu, online.count);
	if (err)
		return log_error_errno(err, "cannot give the CPUs their memory");
	kernel_side_config(agent->kernel)->flags = config_flags(agent, waits);
	/* Only the timeline wants them: no sums. */
	kernel_side_config(agent->kernel)->wait_min_ns =
		waits ? agent->options->offcpu_min_ns : UINT64_MAX;
	kernel_side_config(agent->kernel)->sample_budget_ns = budgets.sample_ns;
	kernel_side_config(agent->kernel)->switch_budget_ns = budgets.switch_ns;
	agent->epoch = kernel_side_config(agent->kernel)->epoch = 1;
	return 0;
}

static int open_tables(struct agent *agent)
{
	char why[HOST_WHY_BYTES];
	int err = row_store_new(kernel_side_row_memory(agent->kernel), &agent->rows);

	if (!err)
		err = file_table_new(agent->rows, &agent->files);
	if (!err)
		err = image_table_new(agent->kernel, agent->files, &agent->images);
	if (!err)
		err = process_table_new(&agent->processes);
	if (!err)
		err = dictionary_new(window_dictionary_bytes(agent), &agent->dictionary);
	if (!err)
		err = miss_python_new(agent->dictionary, &agent->miss_python);
	if (!err)
		err = thread_names_new(agent, &agent->thread_names);
	if (!err)
		err = naming_new(agent, &agent->naming);
	if (err)
		return log_error_errno(err, "cannot start");
	finishing_prepare(agent);
	dictionary_set_epoch(agent->dictionary, agent->epoch);
	dictionary_set_reader(agent->dictionary, read_raw_code, agent);
	err = sideband_open(NULL, &agent->sideband);
	if (err) {
		host_explain_perf(&host_paths_real, err, why, sizeof(why));
		log_error("%s", why);
	}
	return err;
}

static int open_rings(struct agent *agent)
{
	const struct drain_handlers handlers = {
		.context = agent,
		.stack = on_stack,
		.kernel = on_kernel,
		.code = on_code,
		.miss = miss_counts_on_record,
		.event = process_watch_on_event,
	};
	int err = ring_new(kernel_side_stacks_ring(agent->kernel), RING_STACKS, &handlers,
			   &agent->stacks_ring);

	if (!err)
		err = ring_new(kernel_side_events_ring(agent->kernel), RING_EVENTS, &handlers,
			       &agent->events_ring);
	if (err)
		return log_error_errno(err, "cannot read the rings");
	return timeline_open(agent);
}

static int fill_filter(struct agent *agent)
{
	const struct options *options = agent->options;
	struct target_filter *filter = &agent->filter;
	int err = 0;

	for (size_t i = 0; i < options->pid_count && !err; i++)
		err = target_add_pid(filter, (uint32_t)options->pid[i]);
	for (size_t i = 0; i < options->uid_count && !err; i++)
		err = target_add_uid(filter, options->uid[i]);
	if (!err && options->comm)
		err = target_set_comm(filter, options->comm);
	if (!err && options->cgroup)
		err = target_set_cgroup(filter, options->cgroup);
	agent->is_filtered = options->pid_count || options->uid_count || options->comm ||
			     options->cgroup || options->command;
	return err ? log_error_errno(err, "cannot use the filters") : 0;
}

static int open_sampling(struct agent *agent)
{
	const struct options *options = agent->options;
	int err = cpu_events_new(kernel_side_sample_program(agent->kernel), options->hz,
				 options->clock == OPTIONS_CLOCK_CYCLES, &agent->cpu_events);

	if (err == -ENOENT || err == -EOPNOTSUPP)
		log_error("this machine has no hardware counter for --clock cycles; use --clock cpu");
	else if (err)
		log_error_errno(err, "cannot open the sampling events");
	else
		kernel_side_config(agent->kernel)->sample_period_ns =
			(uint32_t)cpu_events_period_ns(agent->cpu_events);
	return err;
}

/* ---- from the first sample to the last ---- */

static int wait_delay(struct agent *agent, struct loop *loop)
{
	uint64_t until_ns = mono_ns() + agent->options->delay_ns;
	int err = 0;

	while (agent->options->delay_ns && mono_ns() < until_ns && !agent->is_ending && !err)
		err = loop_serve(agent, loop, (int)((until_ns - mono_ns()) / NS_PER_MS) + 1);
	return err;
}

static int profile_all(struct agent *agent, struct loop *loop)
{
	volatile struct pp_config *config = kernel_side_config(agent->kernel);
	int err = wait_delay(agent, loop), closed, traced;

	if (err)
		return err;
	agent->started_ns = mono_ns();
	window_facts_start(agent);
	err = coverage_new(agent, &agent->coverage);
	if (!err)
		err = window_open(agent);
	if (err)
		return err;
	loop->window_ends_ns = agent->started_ns + agent->options->interval_ns;
	loop->all_ends_ns = agent->options->duration_ns ?
				    agent->started_ns + agent->options->duration_ns :
				    UINT64_MAX;
	config->miss_tokens = miss_counts_tokens(agent, LOOP_TICK_NS);
	config->flags &= ~(uint32_t)PP_CONFIG_PAUSED;
	command_release(loop->command);
	waits_start(agent);
	sweeps_start(agent->sweeps);
	err = loop_run_windows(agent, loop);
	config->flags |= PP_CONFIG_PAUSED;
	agent->paused_ns = mono_ns();
	traced = timeline_close(agent->timeline);
	closed = agent->profiles.is_open ? window_close(agent, WINDOW_LAST) : 0;
	/* The profile is over, the command's exit status still counts. */
	while (!err && !loop->is_giving_up && command_is_running(loop->command))
		err = loop_serve(agent, loop, -1);
	if (!err)
		err = closed;
	return err ? err : traced;
}

static int start_command(struct agent *agent, struct loop *loop)
{
	uint32_t pid;
	int err;

	if (!agent->options->command)
		return 0;
	err = command_start(agent->options->command, &loop->command_setting, &loop->command, &pid);
	if (err)
		return log_error_errno(err, "cannot start '%s'", agent->options->command[0]);
	err = target_add_pid(&agent->filter, pid);
	if (err)
		return err;
	return process_watch_follow(agent);
}

static int run(struct agent *agent, struct loop *loop)
{
	const struct options *options = agent->options;
	int err = output_open(options, &agent->output);

	if (!err)
		err = fill_filter(agent);
	if (!err)
		err = open_kernel(agent);
	if (!err)
		err = open_tables(agent);
	if (!err)
		err = waits_open(agent);
	if (!err)
		err = open_rings(agent);
	if (!err)
		err = live_open(agent, &agent->live);
	if (!err)
		err = loop_open(loop, agent);
	if (!err)
		err = start_command(agent, loop);
	if (!err)
		err = process_watch_start(agent);
	if (!err)
		err = open_sampling(agent);
	if (err)
		return err;
	if (options->output_kind == OPTIONS_OUTPUT_DIRECTORY && !options->quiet)
		log_info("profiling at %u Hz on %u CPUs; profiles go to %s", options->hz,
			 cpu_events_count(agent->cpu_events), options->output);
	return profile_all(agent, loop);
}

static void release(struct agent *agent)
{
	top_free(agent->top);
	live_free(agent->live);
	cpu_events_free(agent->cpu_events);
	profiles_close(&agent->profiles);
	waits_release(agent);
	timeline_free(agent->timeline);
	intern_free(agent->strings);
	output_free(agent->output);
	ring_free(agent->stacks_ring);
	ring_free(agent->events_ring);
	naming_free(agent->naming);
	thread_names_free(agent->thread_names);
	counts_release(&agent->finished);
	miss_python_free(agent->miss_python);
	wakes_release(&agent->woken);
	coverage_free(agent->coverage);
	dictionary_free(agent->dictionary);
	sideband_free(agent->sideband);
	process_watch_release(agent);
	process_table_free(agent->processes);
	image_table_free(agent->images);
	file_table_free(agent->files);
	row_store_free(agent->rows);
	kernel_side_free(agent->kernel);
	target_filter_release(&agent->filter);
}

/* Rows that come late cut stacks: the agent's few milliseconds go first. */
static void raise_priority(int given)
{
	if (given > AGENT_NICE && setpriority(PRIO_PROCESS, 0, AGENT_NICE))
		log_warn("cannot run at nice %d (%s) and stays at %d: stacks may be cut while the "
			 "CPUs are busy; grant CAP_SYS_NICE, or set Nice=%d in the unit",
			 AGENT_NICE, strerror(errno), given, AGENT_NICE);
}

/* Files are kept open from their discovery on. */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= WANTED_FDS)
		return;
	limit.rlim_cur = limit.rlim_max < WANTED_FDS ? limit.rlim_max : WANTED_FDS;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int agent_run(const struct options *options)
{
	struct agent agent = {.options = options};
	struct loop loop = {.epoll = -1, .signals = -1, .tick = -1};
	int err;

	loop.command_setting.nice = getpriority(PRIO_PROCESS, 0);
	getrlimit(RLIMIT_NOFILE, &loop.command_setting.files);
	getrlimit(RLIMIT_MEMLOCK, &loop.command_setting.locked_memory);
	raise_fd_limit();
	raise_priority(loop.command_setting.nice);
	err = elf_guard_install();
	if (err) {
		log_error_errno(err, "cannot install the SIGBUS handler");
		return OPTIONS_EXIT_FAILURE;
	}
	progress_init(&agent.progress, stderr, options->quiet);
	err = run(&agent, &loop);
	if (agent.started_ns) {
		window_facts_update(&agent);
		agent.summary.own_map_bytes = kernel_side_map_bytes(agent.kernel);
		progress_finish(&agent.progress, &agent.summary, options->quiet);
		if (agent.run_ledger && !options->quiet)
			ledger_sums_print(agent.run_ledger, stderr);
	}
	release(&agent);
	loop_close(&loop);
	return err ? OPTIONS_EXIT_FAILURE : loop.exit_status;
}
