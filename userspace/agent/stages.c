/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens every stage in the order of the data, and gives each what it borrows. */
#include "agent/stages.h"

#include <errno.h>
#include <string.h>

#include <pyprofd/config.h>

#include "agent/live.h"
#include "agent/naming.h"
#include "agent/timeline.h"
#include "agent/window_facts.h"
#include "attach/cpu_events.h"
#include "attach/probe_links.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/who_answers.h"
#include "discover/cpus.h"
#include "discover/proc_scan.h"
#include "discover/sideband.h"
#include "drain/incomplete_queue.h"
#include "drain/ring.h"
#include "drain/text_table.h"
#include "finish/unwind_python.h"
#include "options/host_check.h"
#include "options/options.h"
#include "probes/probes.h"
#include "processes/identities.h"
#include "processes/process_watch.h"
#include "processes/thread_names.h"
#include "store/keeper.h"
#include "unwind/row_store.h"
#include "windows/modules.h"

#define PROBE_MAP_BYTES (2ULL << 20)
#define RANGES_AGAIN_NS (10 * NS_PER_SEC)

/* ---- what the ring of stacks brings ---- */

static void on_stack(void *context, const struct decoded_stack *stack)
{
	struct agent *agent = context;

	(void)dictionary_add_stack(agent->services.dictionary, stack);
	identities_want(agent->services.identities, stack->record->id);
	if (stack->record->python_count)
		thread_names_want(agent->services.thread_names, stack->record->id);
}

static void on_kernel(void *context, const struct decoded_kernel *kernel)
{
	struct agent *agent = context;

	(void)dictionary_add_kernel(agent->services.dictionary, kernel);
}

static void on_code(void *context, const struct pp_code_record *record)
{
	struct agent *agent = context;
	const struct python_info *info =
		context_table_python_info(agent->services.contexts, record->python);
	struct python_code *code;
	uint32_t index;

	if (info &&
	    !python_code_from_record(record, &info->bpf, (pid_t)record->process.tgid, &code))
		(void)dictionary_add_code(agent->services.dictionary, record->process, code,
					  &index);
}

static void on_incomplete(void *context, const struct decoded_incomplete *incomplete)
{
	struct agent *agent = context;

	incomplete_counts_on_record(&agent->incomplete, incomplete);
}

static void on_text(void *context, const struct pp_text_record *record, size_t bytes)
{
	struct agent *agent = context;
	struct process *process = process_table_find(agent->services.processes, record->process);

	(void)text_table_add(agent->services.texts, record->id,
			     process ? process_user_kept(process) : UINT32_MAX,
			     (const char *)record->bytes, bytes);
}

static int read_raw_code(void *context, struct pp_process_id id, uint8_t python, uint64_t address,
			 struct python_code **ret_code)
{
	struct agent *agent = context;
	const struct python_info *info =
		context_table_python_info(agent->services.contexts, python);
	struct process *process = process_table_find(agent->services.processes, id);
	struct process_python *where = process ? context_table_python(process) : NULL;

	if (!info || !where)
		return -ESRCH;
	return python_code_read(
		(pid_t)id.tgid, &info->bpf, where->bias, address,
		pp_user_key(process_user_kept(process),
			    kernel_side_config(agent->services.kernel)->name_secret),
		ret_code);
}

/* ---- what finish/ asks for ---- */

static struct process *find_process(void *context, struct pp_process_id id)
{
	struct agent *agent = context;

	return process_watch_find(agent->watch, id);
}

static int follow_processes(void *context)
{
	struct agent *agent = context;

	return process_watch_take_in(agent->watch);
}

static void want_names(void *context, struct pp_process_id id)
{
	struct agent *agent = context;

	thread_names_want(agent->services.thread_names, id);
	identities_want(agent->services.identities, id);
}

static void send_again(void *context, uint64_t hash)
{
	struct agent *agent = context;

	kernel_side_send_again(agent->services.kernel, hash);
}

static void prepare_finisher(struct agent *agent)
{
	agent->finisher = (struct finisher){
		.files = agent->services.files,
		.contexts = agent->services.contexts,
		.kernel = agent->services.kernel,
		.dictionary = agent->services.dictionary,
		.processes = agent->services.processes,
		.python = agent->unwind_python,
		.secret = kernel_side_config(agent->services.kernel)->name_secret,
		.raw = agent->options->raw,
		.no_kernel = agent->options->no_kernel,
		.is_filtered = agent->services.is_filtered,
		.context = agent,
		.find_process = find_process,
		.follow_processes = follow_processes,
		.want_names = want_names,
		.send_again = send_again,
	};
	agent->incomplete = (struct incomplete_counts){.finisher = &agent->finisher,
						       .counts = &agent->tables.counts,
						       .queue = agent->incomplete_queue};
}

/* ---- opening ---- */

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
	agent->services.is_filtered = options->pid_count || options->uid_count || options->comm ||
				      options->cgroup || options->command;
	return err ? log_error_errno(err, "cannot use the filters") : 0;
}

/* Counts nothing yet. */
static uint32_t config_flags(const struct agent *agent, bool waits)
{
	const struct options *options = agent->options;

	return (agent->services.is_filtered ? PP_CONFIG_FILTER : 0) |
	       (options->comm ? PP_CONFIG_BY_NAME : 0) |
	       (options->no_kernel ? PP_CONFIG_NO_KERNEL : 0) |
	       (options->events & PP_CAPTURE_GIL || options->timeline ? PP_CONFIG_BLAME : 0) |
	       /* A PMU's interrupt may hit a switch; a timer's cannot. */
	       (waits && options->clock == OPTIONS_CLOCK_CPU ? PP_CONFIG_SEE_RUNNING : 0) |
	       (options->clock == OPTIONS_CLOCK_CYCLES ? PP_CONFIG_NMI : 0) | PP_CONFIG_PAUSED;
}

/* Who wants CUDA's calls to be slowed down by less than they may be has fewer stacks as well. */
static uint32_t cuda_walk_shift(uint32_t slowdown_ppm)
{
	uint32_t shift = 0;

	while (slowdown_ppm && OPTIONS_SLOWDOWN_LAUNCH_PPM >> shift > slowdown_ppm)
		shift++;
	return shift;
}

static void configure_kernel(const struct agent *agent, bool waits)
{
	const struct walk_budgets budgets =
		walk_budgets_of(agent->options, agent->services.online_cpus);
	volatile struct pp_config *config = kernel_side_config(agent->services.kernel);

	config->flags = config_flags(agent, waits);
	/* Without waits the switches serve the timeline alone: nothing is summed up. */
	config->wait_min_ns = waits ? agent->options->offcpu_min_ns : UINT64_MAX;
	config->sample_budget_ns = budgets.sample_ns;
	config->switch_budget_ns = budgets.switch_ns;
	config->memory_budget_ns = budgets.memory_ns;
	config->memory_shift_min = budgets.memory_shift_min;
	config->cuda_walk_shift = cuda_walk_shift(agent->options->slowdown_ppm);
}

/* Returns what the maps of objects that are loaded later take, with 4 CPUs. */
static uint64_t later_map_bytes(uint32_t events)
{
	return events & (PP_CAPTURE_GC | PP_CAPTURE_IMPORT | PP_CAPTURE_PROBE) ? PROBE_MAP_BYTES
									       : 0;
}

/* Whether calls of CUDA may be probed: probes_new(). */
static bool may_see_cuda(const struct options *options)
{
	return options->events & PP_CAPTURE_CUDA &&
	       (!options->events_are_default || probe_links_can_share());
}

static int open_kernel(struct agent *agent)
{
	bool waits = agent->options->events & PP_CAPTURES_OF_WAITS;
	struct kernel_side_options options = {
		.sizes = {.hz = agent->options->hz,
			  .interval_ns = agent->options->interval_ns,
			  .budget_bytes = agent->options->budget_bytes,
			  .later_bytes = later_map_bytes(agent->options->events),
			  .waits = waits || agent->options->timeline,
			  .events = agent->options->events & ~(uint32_t)PP_CAPTURE_CPU},
		.timeline = agent->options->timeline,
		.wakers = agent->options->events & PP_CAPTURE_WAKERS,
		.victims = agent->keeper,
		.gpu = may_see_cuda(agent->options),
	};
	CLEANUP(cpu_list_release) struct cpu_list online = {};
	char why[512] = "";
	int err = cpus_possible_count(&options.sizes.cpu_count);

	if (!err)
		err = cpus_online(&online);
	if (err)
		return log_error_errno(err, "cannot read the list of CPUs");
	options.sizes.online_count = agent->services.online_cpus = (uint32_t)online.count;
	err = kernel_side_open(&options, why, sizeof(why), &agent->services.kernel);
	if (err) {
		log_error("%s", why[0] ? why : strerror(-err));
		return err;
	}
	err = kernel_side_follow_cpus(agent->services.kernel, online.cpu, online.count);
	if (err)
		return log_error_errno(err, "cannot allocate memory for the walks of each CPU");
	configure_kernel(agent, waits);
	agent->tables.kernel = agent->services.kernel;
	agent->tables.has_wakers = agent->options->events & PP_CAPTURE_WAKERS;
	return 0;
}

/* Who answers for what has ended and is forgotten is not known: all of it shares one share. */
static uint32_t user_of(void *context, struct pp_process_id id)
{
	struct agent *agent = context;
	struct process *process = process_table_find(agent->services.processes, id);

	return process ? process_user_kept(process) : UINT32_MAX;
}

static int open_dictionary(struct agent *agent)
{
	struct services *services = &agent->services;
	int err =
		dictionary_new(dictionary_limit(agent->options->budget_bytes, services->online_cpus,
						process_table_live_count(services->processes)),
			       &services->dictionary);

	if (err)
		return err;
	agent->epochs = (struct epochs){.services = services};
	epochs_start(&agent->epochs);
	dictionary_set_reader(services->dictionary, read_raw_code, agent);
	dictionary_set_users(services->dictionary, user_of, agent);
	return 0;
}

static int open_names(struct agent *agent)
{
	struct services *services = &agent->services;
	int err = thread_names_new(services->processes, &services->thread_names);

	if (!err)
		err = identities_new(services->processes, &services->identities);
	if (!err)
		err = modules_new(services->files, &agent->profiles, &agent->modules);
	return err ? err : naming_new(services, &services->naming);
}

static int open_tables(struct agent *agent)
{
	const uint64_t secret = kernel_side_config(agent->services.kernel)->name_secret;
	int err = row_store_new(kernel_side_row_memory(agent->services.kernel), &agent->rows);

	if (!err)
		err = file_table_new(agent->rows, agent->services.foreign, &agent->services.files);
	if (!err)
		err = context_table_new(agent->services.kernel, agent->services.files,
					&agent->services.contexts);
	if (!err)
		err = process_table_new(&agent->services.processes);
	if (!err)
		err = text_table_new(&agent->services.texts);
	if (!err)
		err = open_dictionary(agent);
	if (!err)
		err = unwind_python_new(agent->services.dictionary, secret, &agent->unwind_python);
	if (!err)
		err = open_names(agent);
	if (!err)
		err = incomplete_queue_new(incomplete_queue_limit(agent->options->budget_bytes,
								  agent->services.online_cpus),
					   &agent->incomplete_queue);
	if (err)
		return log_error_errno(err, "cannot create the tables");
	prepare_finisher(agent);
	return 0;
}

static void on_files(void *context, const struct process *process, bool is_new)
{
	struct agent *agent = context;

	sources_see_process(&agent->sources, process, is_new);
}

static void on_end(void *context, struct pp_process_id id)
{
	struct agent *agent = context;

	sources_forget_process(&agent->sources, id);
}

static void on_victim(void *context, struct process *process, uint64_t time_ns)
{
	struct agent *agent = context;

	keeper_add_victim(agent->keeper,
			  &(struct keeper_victim){.pid = process->id.tgid,
						  .generation = process->id.generation,
						  .uid = process_user_kept(process),
						  .comm = process->comm,
						  .begun_ns = process->start_ns,
						  .time_ns = time_ns});
}

#define SOURCE_DECLARE(id, name, captures) extern const struct source name##_source;
PP_SOURCES(SOURCE_DECLARE)

static int open_sources(struct agent *agent)
{
#define SOURCE_OF(id, name, captures) &name##_source,
	static const struct source *const table[] = {PP_SOURCES(SOURCE_OF)};

	agent->sources.table = table;
	return sources_open(&agent->sources, &agent->services);
}

static int open_watch(struct agent *agent)
{
	struct process_watch_sources sources = {
		.options = agent->options,
		.kernel = agent->services.kernel,
		.contexts = agent->services.contexts,
		.processes = agent->services.processes,
		.filter = agent->services.is_filtered ? &agent->filter : NULL,
		.online_cpus = agent->services.online_cpus,
		.on_files = on_files,
		.on_end = on_end,
		.on_victim = agent->keeper ? on_victim : NULL,
		.context = agent};
	char why[HOST_WHY_BYTES];
	const struct sideband_options options = {.opener = agent->opener};
	int err = sideband_open(&options, &agent->sideband);

	if (err) {
		host_explain_perf(&host_paths_real, err, why, sizeof(why));
		log_error("%s", why);
		return err;
	}
	sources.sideband = agent->sideband;
	err = process_watch_new(&sources, &agent->watch);
	return err ? log_error_errno(err, "cannot read the events ring") : 0;
}

static int open_stacks_ring(struct agent *agent)
{
	const struct drain_handlers handlers = {.context = agent,
						.stack = on_stack,
						.kernel = on_kernel,
						.code = on_code,
						.incomplete = on_incomplete,
						.text = on_text};
	int err = ring_new(kernel_side_parts(agent->services.kernel).stacks, RING_STACKS, &handlers,
			   &agent->stacks_ring);

	agent->stacks = (struct stack_intake){.kernel = agent->services.kernel,
					      .ring = agent->stacks_ring,
					      .incomplete = &agent->incomplete};
	return err ? log_error_errno(err, "cannot read the ring of stacks") : 0;
}

static int open_timeline(struct agent *agent)
{
	const struct timeline_sources sources = {
		.services = &agent->services, .watch = agent->watch, .stacks = &agent->stacks};

	return timeline_open(&sources, &agent->timeline);
}

static int open_live(struct agent *agent)
{
	const int err = live_open(&agent->services, &agent->live);

	agent->services.top = live_top(agent->live);
	return err;
}

static void prepare_window(struct agent *agent)
{
	agent->samples =
		(struct samples){.services = &agent->services,
				 .modules = agent->modules,
				 .tables = &agent->tables,
				 .profiles = &agent->profiles,
				 .shares = &agent->shares,
				 .probes = probes_plan(agent->sources.state[PP_SOURCE_PROBES])};
	agent->facts = (struct window_facts){.services = &agent->services,
					     .watch = agent->watch,
					     .stacks_ring = agent->stacks_ring,
					     .rows = agent->rows,
					     .incomplete = &agent->incomplete,
					     .profile_quota = &agent->shares.quota,
					     .tables = &agent->tables,
					     .peek = agent->peek,
					     .output = agent->output,
					     .keeper = agent->keeper};
	agent->window = (struct window){.services = &agent->services,
					.samples = &agent->samples,
					.stacks = &agent->stacks,
					.watch = agent->watch,
					.epochs = &agent->epochs,
					.live = agent->live,
					.facts = &agent->facts,
					.output = agent->output};
}

static int open_output(struct agent *agent)
{
	int err = output_open(agent->options, &agent->output);

	if (!err)
		agent->keeper = output_keeper(agent->output);
	return err;
}

int stages_open(struct agent *agent)
{
	static int (*const open[])(struct agent *) = {open_output,	fill_filter,   open_kernel,
						      open_tables,	open_sources,  open_watch,
						      open_stacks_ring, open_timeline, open_live};
	int err = 0;

	agent->services.options = agent->options;
	agent->services.finisher = &agent->finisher;
	agent->services.summary = &agent->summary;
	agent->services.sources = &agent->sources;
	for (size_t i = 0; i < ARRAY_SIZE(open) && !err; i++)
		err = open[i](agent);
	if (!err)
		prepare_window(agent);
	return err;
}

void stages_follow_users(struct agent *agent, uint64_t now_ns)
{
	const struct who_ranges *ranges;

	if (now_ns < agent->users_next_ns)
		return;
	agent->users_next_ns = now_ns + RANGES_AGAIN_NS;
	if (!who_answers_follow(&ranges))
		return;
	kernel_side_set_user_ranges(agent->services.kernel, ranges->range, ranges->count);
	if (ranges->left_out)
		log_warn("/etc/subuid has %u ranges more than the %u that are looked at; their ids "
			 "have shares of their own",
			 ranges->left_out, PP_USER_RANGES);
}

int stages_open_sampling(struct agent *agent)
{
	const struct options *options = agent->options;
	const struct cpu_events_options wanted = {
		.program = kernel_side_parts(agent->services.kernel).sample_program,
		.hz = options->hz,
		.use_cycles = options->clock == OPTIONS_CLOCK_CYCLES,
		.timers = kernel_side_parts(agent->services.kernel).timers,
		.opener = agent->opener};
	int err = cpu_events_new(&wanted, &agent->cpu_events);

	if (err == -ENOENT || err == -EOPNOTSUPP)
		log_error("this machine has no hardware counter for clock=cycles; use clock=cpu");
	else if (err)
		log_error_errno(err, "cannot open the sampling events");
	agent->rate.events = agent->cpu_events;
	agent->rate.kernel = agent->services.kernel;
	rate_init(&agent->rate);
	return err;
}

int stages_start_window(struct agent *agent)
{
	int err = 0;

	agent->started_ns = agent->facts.started_ns = mono_ns();
	window_facts_start(&agent->facts, &agent->window.facts_told);
	/* The ledger knows the CPU time of chosen processes exactly. */
	if (!agent->services.is_filtered || !agent->sources.state[PP_SOURCE_WAITS])
		err = coverage_new(agent->services.is_filtered ? agent->services.processes : NULL,
				   &agent->coverage);
	agent->window.coverage = agent->coverage;
	return err ? err : window_open(&agent->window, agent->started_ns);
}

int64_t stages_miss_tokens(const struct agent *agent, uint64_t tick_ns)
{
	uint64_t samples_per_s = (uint64_t)agent->options->hz * cpu_events_count(agent->cpu_events);

	return incomplete_counts_tokens(&agent->incomplete, samples_per_s, tick_ns);
}

void stages_release(struct agent *agent)
{
	bool has_ended;

	live_free(agent->live);
	has_ended = sources_close(&agent->sources);
	cpu_events_free(agent->cpu_events);
	window_release(&agent->window);
	timeline_free(agent->timeline);
	output_free(agent->output);
	ring_free(agent->stacks_ring);
	incomplete_queue_free(agent->incomplete_queue);
	naming_free(agent->services.naming);
	modules_free(agent->modules);
	thread_names_free(agent->services.thread_names);
	identities_free(agent->services.identities);
	tables_release(&agent->tables);
	unwind_python_free(agent->unwind_python);
	coverage_free(agent->coverage);
	dictionary_free(agent->services.dictionary);
	text_table_free(agent->services.texts);
	sideband_free(agent->sideband);
	process_watch_free(agent->watch);
	process_table_free(agent->services.processes);
	context_table_free(agent->services.contexts);
	file_table_free(agent->services.files);
	row_store_free(agent->rows);
	if (has_ended)
		kernel_side_free(agent->services.kernel);
	target_filter_release(&agent->filter);
}
