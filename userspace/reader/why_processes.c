/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/why_processes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "profile/record.h"
#include "reader/text.h"

/* ---- the lines of findings ---- */

static int compare_codes(const void *left, const void *right)
{
	const struct why_weight *a = left, *b = right;

	return ORDER(a->process, b->process)
		       ?: ORDER(a->finding, b->finding) ?: ORDER(a->code, b->code);
}

static int compare_weights(const void *left, const void *right)
{
	const struct why_weight *a = left, *b = right;

	return ORDER(b->weight, a->weight) ?: ORDER(a->code, b->code);
}

/* Sums up what is of the same code in a sorted list.  Returns how many are left. */
static uint32_t sum_up(struct why_weight *weight, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (kept && !compare_codes(&weight[kept - 1], &weight[i]))
			weight[kept - 1].weight += weight[i].weight;
		else
			weight[kept++] = weight[i];
	}
	return kept;
}

static int set_line(struct why_line *line, const struct code_table *table, const struct code *code)
{
	char place[TEXT_PLACE_BYTES];

	*line = (struct why_line){.name = strdup(code_name(table, code)),
				  .file = strdup(code_text(table, code->file)),
				  .place = strdup(text_place(table, code, place)),
				  .line = code_line(code)};
	return line->name && line->file && line->place ? 0 : -ENOMEM;
}

static int take_group(struct why_lines *lines, const struct code_table *code,
		      struct why_weight *weight, uint32_t count)
{
	double all = 0;
	int err = 0;

	for (uint32_t i = 0; i < count; i++)
		all += weight[i].weight;
	qsort(weight, count, sizeof(*weight), compare_weights);
	for (uint32_t i = 0; i < count && lines->count < WHY_LINES && !err; i++) {
		struct why_line *line = &lines->line[lines->count++];

		err = set_line(line, code, &code->code[weight[i].code]);
		line->share = weight[i].weight / all;
	}
	return err;
}

/* Sets each finding's lines to those with most weight; sorts the weights. */
static int take_lines(struct why_processes *processes, const struct code_table *code,
		      struct why_weight *weight, uint32_t count)
{
	int err = 0;

	if (!count)
		return 0;
	qsort(weight, count, sizeof(*weight), compare_codes);
	count = sum_up(weight, count);
	for (uint32_t i = 0, next; i < count && !err; i = next) {
		for (next = i + 1; next < count && weight[next].process == weight[i].process &&
				   weight[next].finding == weight[i].finding;
		     next++)
			;
		err = take_group(&processes->process[weight[i].process].lines[weight[i].finding],
				 code, &weight[i], next - i);
	}
	return err;
}

static void release_lines(struct why_lines *lines)
{
	for (unsigned int i = 0; i < lines->count; i++) {
		free(lines->line[i].name);
		free(lines->line[i].file);
		free(lines->line[i].place);
	}
	lines->count = 0;
}

void why_processes_release(struct why_processes *processes)
{
	for (uint32_t i = 0; i < processes->count; i++) {
		for (unsigned int k = 0; k < GPU_PROCESS_FINDINGS; k++)
			release_lines(&processes->process[i].lines[k]);
		free(processes->process[i].comm);
	}
	free(processes->process);
	free(processes->thread);
	index_table_release(&processes->by_pid);
	index_table_release(&processes->by_tid);
	*processes = (struct why_processes){0};
}

/* ---- who ---- */

static bool pid_equal(const void *context, uint32_t index, const void *key)
{
	return ((const struct why_processes *)context)->process[index].pid == *(const int64_t *)key;
}

/* Finds a process, or adds it; *ret_process is NULL where there is none, or no room. */
static int find_process(struct why_processes *processes, int64_t pid, bool adds,
			struct why_process **ret_process)
{
	const uint32_t hash = (uint32_t)XXH3_64bits(&pid, sizeof(pid));
	uint32_t at;
	int err;

	*ret_process = NULL;
	if (!index_table_find(&processes->by_pid, hash, pid_equal, processes, &pid, &at)) {
		if (!adds)
			return 0;
		if (processes->count == WHY_PROCESSES_MAX) {
			processes->left_out++;
			return 0;
		}
		err = INDEX_RESERVE(&processes->by_pid, hash, processes->process, processes->count,
				    processes->capacity);
		if (err)
			return err;
		at = processes->count++;
		processes->process[at] =
			(struct why_process){.pid = pid, .late_ns = UINT64_MAX, .lead = UINT32_MAX};
	}
	*ret_process = &processes->process[at];
	return 0;
}

static bool tid_equal(const void *context, uint32_t index, const void *key)
{
	const struct why_thread *thread = &((const struct why_processes *)context)->thread[index];
	const int64_t *pair = key;

	return thread->process == pair[0] && thread->tid == pair[1];
}

static int find_thread(struct why_processes *processes, uint32_t process, int64_t tid,
		       struct why_thread **ret_thread)
{
	const int64_t pair[] = {process, tid};
	const uint32_t hash = (uint32_t)XXH3_64bits(pair, sizeof(pair));
	uint32_t at;
	int err;

	*ret_thread = NULL;
	if (!index_table_find(&processes->by_tid, hash, tid_equal, processes, pair, &at)) {
		if (processes->thread_count == WHY_THREADS_MAX) {
			processes->left_out++;
			return 0;
		}
		err = INDEX_RESERVE(&processes->by_tid, hash, processes->thread,
				    processes->thread_count, processes->thread_capacity);
		if (err)
			return err;
		at = processes->thread_count++;
		processes->thread[at] = (struct why_thread){.process = process, .tid = tid};
	}
	*ret_thread = &processes->thread[at];
	return 0;
}

/* Memory of the device that no pool gives: what a caching allocator asks the driver for. */
static bool is_allocation(const char *api, enum gpu_class class)
{
	return (class == GPU_ALLOC || class == GPU_FREE) && !strstr(api, "Async");
}

/* ---- windows ---- */

static void end_window(struct why_process *process)
{
	struct gpu_sums *sums = &process->sums;
	const double each = process->window_launches / process->window_syncs;

	if (process->window_launches > 0 && process->window_syncs > 0) {
		if (!sums->windows_with_syncs || each < sums->launches_per_sync_min)
			sums->launches_per_sync_min = each;
		sums->launches_per_sync_max = fmax(sums->launches_per_sync_max, each);
		sums->windows_with_syncs++;
	}
	process->window_launches = process->window_syncs = 0;
}

static void begin_window(const struct why_processes *processes, struct why_process *process,
			 const struct profile_window *window)
{
	if (process->window == processes->windows)
		return;
	end_window(process);
	if (!process->window) {
		process->begin_ns = processes->recorded_ns;
		process->begin_wall_ns = window->start_wall_ns;
	}
	if (process->late_ns == UINT64_MAX &&
	    processes->recorded_ns - process->begin_ns >= GPU_ALLOC_AFTER_NS)
		process->late_ns = processes->recorded_ns;
	process->window = processes->windows;
}

int why_add_window(struct why_processes *processes, struct profile *profile,
		   const struct profile_window *window)
{
	int err = 0;

	processes->windows++;
	for (size_t i = 0; i < window->delta_count && !err; i++) {
		const struct profile_delta *delta = &window->delta[i];
		const char *api = record_text(profile, delta->row, "api");
		const enum gpu_class class = gpu_class_of(api);
		struct why_process *process;

		err = find_process(processes, record_number(profile, delta->row, "pid"), true,
				   &process);
		if (err || !process || delta->value <= 0)
			continue;
		begin_window(processes, process, window);
		process->end_ns = processes->recorded_ns + window->duration_ns;
		process->end_wall_ns = window->start_wall_ns + window->duration_ns;
		if (class == GPU_LAUNCH)
			process->window_launches += (double)delta->value;
		else if (class == GPU_SYNC)
			process->window_syncs += (double)delta->value;
		else if (is_allocation(api, class) && process->late_ns != UINT64_MAX)
			process->late_allocs += (double)delta->value;
	}
	processes->recorded_ns += window->duration_ns;
	return err;
}

/* ---- calls ---- */

/* Which values of a sample are calls and waits. */
struct columns {
	int calls, wait;
};

static int add_row(struct why_processes *processes, const struct profile *profile, uint32_t row,
		   const struct columns *at)
{
	const int64_t *value = profile_row_values(profile, row);
	const double calls = (double)value[at->calls], wait_ns = (double)value[at->wait];
	const enum gpu_class class = gpu_class_of(record_text(profile, row, "api"));
	struct why_process *process;
	struct why_thread *thread = NULL;
	int err = find_process(processes, record_number(profile, row, "pid"), true, &process);

	if (!err && process && !process->comm) {
		process->comm = strdup(record_text(profile, row, "comm"));
		err = process->comm ? 0 : -ENOMEM;
	}
	if (!err && process)
		err = find_thread(processes, (uint32_t)(process - processes->process),
				  record_number(profile, row, "tid"), &thread);
	if (err || !thread)
		return err;
	thread->calls += calls;
	thread->launches += class == GPU_LAUNCH ? calls : 0;
	thread->graph_launches += class == GPU_GRAPH ? calls : 0;
	thread->syncs += class == GPU_SYNC ? calls : 0;
	thread->sync_wait_ns += class == GPU_SYNC ? wait_ns : 0;
	thread->copy_wait_ns += class == GPU_COPY ? wait_ns : 0;
	return 0;
}

/* Returns whether a thread launches more than another one; of threads that do not launch, the one
 * that calls more. */
static bool leads(const struct why_thread *thread, const struct why_thread *other)
{
	const double own = thread->launches + thread->graph_launches;
	const double others = other->launches + other->graph_launches;

	return own > others || (own >= others && thread->calls > other->calls);
}

static void choose_leads(struct why_processes *processes)
{
	for (uint32_t i = 0; i < processes->thread_count; i++) {
		const struct why_thread *thread = &processes->thread[i];
		struct why_process *process = &processes->process[thread->process];

		if (process->lead == UINT32_MAX || leads(thread, &processes->thread[process->lead]))
			process->lead = i;
	}
	for (uint32_t i = 0; i < processes->count; i++) {
		struct why_process *process = &processes->process[i];
		const struct why_thread *lead;

		if (process->lead == UINT32_MAX)
			continue;
		lead = &processes->thread[process->lead];
		process->sums.launches = lead->launches;
		process->sums.graph_launches = lead->graph_launches;
		process->sums.syncs = lead->syncs;
		process->sums.sync_wait_ns = lead->sync_wait_ns;
		process->sums.copy_wait_ns = lead->copy_wait_ns;
	}
}

/* ---- lines of calls ---- */

/* Returns which findings come from a thread's calls of a class, as bits. */
static uint32_t findings_of(const char *api, enum gpu_class class, bool is_lead)
{
	const uint32_t of_lead = is_lead ? UINT32_MAX : 0;

	if (is_allocation(api, class))
		return 1U << GPU_FINDING_ALLOC;
	switch (class) {
	case GPU_LAUNCH:
		return (1U << GPU_FINDING_LAUNCH | 1U << GPU_FINDING_GRAPH) & of_lead;
	case GPU_SYNC:
		return 1U << GPU_FINDING_SYNC & of_lead;
	case GPU_COPY:
		return (1U << GPU_FINDING_COPY & of_lead) | 1U << GPU_FINDING_TINY;
	default:
		return 0;
	}
}

struct weights {
	struct why_weight *weight; /* owned */
	uint32_t count, capacity;
};

static void release_weights(struct weights *weights)
{
	free(weights->weight);
}

static int put_weight(struct weights *weights, const struct why_weight *weight)
{
	int err;

	if (weight->weight <= 0)
		return 0;
	err = ARRAY_RESERVE(weights->weight, weights->count, weights->capacity);
	if (!err)
		weights->weight[weights->count++] = *weight;
	return err;
}

/* Adds what a sample tells of its line. */
static int add_weights(const struct why_processes *processes, struct gpu_table *table, uint32_t row,
		       const struct columns *at, uint32_t process, struct weights *weights)
{
	const struct profile *profile = table->profile;
	const struct stack *stack = &profile->stacks.stack[profile->row[row].stack];
	const int64_t *value = profile_row_values(profile, row);
	const char *api = record_text(profile, row, "api");
	const uint32_t lead = processes->process[process].lead;
	const uint32_t findings =
		findings_of(api, gpu_class_of(api),
			    processes->thread[lead].tid == record_number(profile, row, "tid"));
	struct why_weight weight = {.process = process};
	int err;

	if (!findings || !stack->count)
		return 0;
	err = code_table_of_location(
		&table->code, stack->location[gpu_stack_place(profile, stack, api)], &weight.code);
	for (; weight.finding < GPU_PROCESS_FINDINGS && !err; weight.finding++) {
		const bool waits =
			weight.finding == GPU_FINDING_SYNC || weight.finding == GPU_FINDING_COPY;

		if (!(findings & 1U << weight.finding))
			continue;
		weight.weight = (double)value[waits ? at->wait : at->calls];
		err = put_weight(weights, &weight);
	}
	return err;
}

static int add_lines(struct why_processes *processes, struct gpu_table *table,
		     const struct columns *at)
{
	CLEANUP(release_weights) struct weights weights = {0};
	const struct profile *profile = table->profile;
	int err = 0;

	for (uint32_t i = 0; i < profile->row_count && !err; i++) {
		struct why_process *process;

		err = find_process(processes, record_number(profile, i, "pid"), false, &process);
		if (!err && process && process->lead != UINT32_MAX)
			err = add_weights(processes, table, i, at,
					  (uint32_t)(process - processes->process), &weights);
	}
	return err ? err : take_lines(processes, &table->code, weights.weight, weights.count);
}

/* ---- sums of calls ---- */

/* The copies that came from one line, by their mean size. */
struct size {
	uint32_t process;
	double bytes, calls;
};

static int compare_sizes(const void *left, const void *right)
{
	const struct size *a = left, *b = right;

	return ORDER(a->process, b->process) ?: ORDER(a->bytes, b->bytes);
}

static void take_median(struct why_process *process, const struct size *size, uint32_t count)
{
	double calls = 0, before = 0;

	for (uint32_t i = 0; i < count; i++)
		calls += size[i].calls;
	for (uint32_t i = 0; i < count; i++) {
		before += size[i].calls;
		if (before >= calls / 2) {
			process->sums.copy_median_bytes = size[i].bytes;
			return;
		}
	}
}

static int find_medians(struct why_processes *processes, const struct gpu_table *table,
			const uint32_t *process_of)
{
	OWNED_MEM struct size *size = calloc((size_t)table->line_count + 1, sizeof(*size));
	uint32_t count = 0, next;

	if (!size)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->line_count; i++) {
		const struct gpu_line *line = &table->line[i];
		const double calls = (double)line->value[GPU_CALLS];

		if (table->call[line->call].class == GPU_COPY && calls > 0 &&
		    process_of[line->call] != UINT32_MAX)
			size[count++] =
				(struct size){.process = process_of[line->call],
					      .bytes = (double)line->value[GPU_BYTES] / calls,
					      .calls = calls};
	}
	qsort(size, count, sizeof(*size), compare_sizes);
	for (uint32_t i = 0; i < count; i = next) {
		for (next = i + 1; next < count && size[next].process == size[i].process; next++)
			;
		take_median(&processes->process[size[i].process], &size[i], next - i);
	}
	return 0;
}

static void add_call(struct gpu_sums *sums, const struct gpu_table *table,
		     const struct gpu_call *call)
{
	const double calls = (double)call->value[GPU_CALLS];

	if (call->class == GPU_COPY)
		sums->copies += calls;
	if (is_allocation(gpu_text(table, call->is.api), call->class)) {
		sums->allocs += calls;
		sums->alloc_host_ns += (double)call->value[GPU_HOST];
	}
	if (!call->is_whole)
		return;
	sums->nodes += (double)call->sums->value[PP_EXACT_NODES];
	if (call->class == GPU_LAUNCH)
		sums->captured += (double)call->sums->value[PP_EXACT_CAPTURED];
}

/* Returns the median synchronisation of a process: by its histogram, else the mean. */
static double median_wait_ns(const struct why_process *process, const struct gpu_table *table,
			     const uint32_t *process_of, uint32_t number)
{
	struct cuda_sums all = {0};
	double median;

	for (uint32_t i = 0; i < table->call_count; i++)
		if (process_of[i] == number && table->call[i].class == GPU_SYNC &&
		    table->call[i].is_whole)
			cuda_sums_add(&all, table->call[i].sums);
	median = cuda_sums_quantile(&all, 0.5);
	if (isnan(median) && process->sums.syncs > 0)
		median = process->sums.sync_wait_ns / process->sums.syncs;
	return median;
}

static int add_calls(struct why_processes *processes, const struct gpu_table *table,
		     uint32_t *process_of)
{
	int err = 0;

	for (uint32_t i = 0; i < table->call_count && !err; i++) {
		struct why_process *process;

		process_of[i] = UINT32_MAX;
		err = find_process(processes, table->call[i].is.pid, false, &process);
		if (err || !process)
			continue;
		process_of[i] = (uint32_t)(process - processes->process);
		add_call(&process->sums, table, &table->call[i]);
	}
	return err;
}

static void end_windows(struct why_processes *processes)
{
	for (uint32_t i = 0; i < processes->count; i++) {
		struct why_process *process = &processes->process[i];
		struct gpu_sums *sums = &process->sums;

		end_window(process);
		sums->wall_ns = (double)(process->end_ns - process->begin_ns);
		sums->alloc_wall_ns = sums->wall_ns;
		if (process->late_ns == UINT64_MAX)
			continue;
		sums->alloc_wall_ns = (double)(process->end_ns - process->late_ns);
		sums->alloc_host_ns *= sums->allocs > 0 ? process->late_allocs / sums->allocs : 0;
		sums->allocs = process->late_allocs;
	}
}

int why_add_calls(struct why_processes *processes, struct gpu_table *table)
{
	OWNED_MEM uint32_t *process_of = calloc((size_t)table->call_count + 1, sizeof(*process_of));
	const struct profile_options *options = &table->profile->options;
	const struct columns at = {.calls = profile_find_value(options, "calls", NULL),
				   .wait = profile_find_value(options, "cuda_wait", NULL)};
	int err = process_of ? 0 : -ENOMEM;

	if (!err && (at.calls < 0 || at.wait < 0))
		return -EPROTO;
	for (uint32_t i = 0; !err && i < table->profile->row_count; i++)
		err = add_row(processes, table->profile, i, &at);
	for (uint32_t i = 0; i < processes->count; i++)
		processes->process[i].sums.copy_median_bytes = NAN;
	choose_leads(processes);
	if (!err)
		err = add_calls(processes, table, process_of);
	if (!err)
		err = find_medians(processes, table, process_of);
	for (uint32_t i = 0; i < processes->count && !err; i++)
		processes->process[i].sums.median_wait_ns =
			median_wait_ns(&processes->process[i], table, process_of, i);
	end_windows(processes);
	return err ? err : add_lines(processes, table, &at);
}

/* ---- judging ---- */

/* Returns the most time that a finding loses; below 0: there is no finding. */
static double most_lost(const struct why_process *process)
{
	const struct gpu_finding *first = &process->finding[0];

	if (first->verdict != GPU_FOUND)
		return -INFINITY;
	return isnan(first->lost_ns) ? 0 : first->lost_ns;
}

static int compare_processes(const void *left, const void *right)
{
	const struct why_process *a = left, *b = right;

	return ORDER(most_lost(b), most_lost(a)) ?: ORDER(a->pid, b->pid);
}

void why_judge(struct why_processes *processes, bool is_scaled)
{
	for (uint32_t i = 0; i < processes->count; i++) {
		processes->process[i].sums.is_scaled = is_scaled;
		gpu_findings_judge(&processes->process[i].sums, processes->process[i].finding);
	}
	if (processes->count)
		qsort(processes->process, processes->count, sizeof(processes->process[0]),
		      compare_processes);
	/* The order has changed. */
	index_table_release(&processes->by_pid);
}

/* ---- samples of the threads that launch ---- */

void why_samples_init(struct why_samples *samples, struct why_processes *processes)
{
	*samples = (struct why_samples){.processes = processes};
}

void why_samples_release(struct why_samples *samples)
{
	code_table_release(&samples->code);
	free(samples->weight);
	*samples = (struct why_samples){0};
}

static const struct frame *frame_at(const struct why_samples *samples, const struct stack *stack,
				    uint32_t i)
{
	return &samples->profile->stacks.location[stack->location[i]];
}

/* Returns the innermost frame of Python, or stack->count. */
static uint32_t python_of(const struct why_samples *samples, const struct stack *stack)
{
	uint32_t i = 0;

	while (i < stack->count && frame_at(samples, stack, i)->kind != FRAME_PYTHON)
		i++;
	return i;
}

/* Returns whether a thread on the CPU runs Python: the interpreter's own functions are that, too,
 * as far as no other code called them. */
static bool runs_python(const struct why_samples *samples, const struct stack *stack)
{
	const uint32_t python = python_of(samples, stack);

	for (uint32_t i = 0; i < python && python < stack->count; i++)
		if (!strstr(path_base(frame_module_path(samples->profile,
							frame_at(samples, stack, i))),
			    "python"))
			return false;
	return python < stack->count;
}

/* Returns the ledger's group of a wait; on the CPU, whether it is Python. */
static unsigned int part_of(const struct why_samples *samples, uint32_t row,
			    const struct stack *stack)
{
#define WAIT_LABEL(id, label, group) [PP_WAIT_##id] = label,
	static const char *const labels[PP_WAIT_COUNT] = {PP_WAITS(WAIT_LABEL)};
	static const unsigned int ledgers[PP_WAIT_COUNT] = PP_WAIT_LEDGERS;
	const char *wait = record_text(samples->profile, row, "wait");

	if (!wait[0])
		return runs_python(samples, stack) ? PP_LEDGER_CPU : GPU_PART_NATIVE;
	for (unsigned int i = 0; i < PP_WAIT_COUNT; i++)
		if (!strcmp(labels[i], wait))
			return ledgers[i] == PP_LEDGER_CPU ? PP_LEDGER_UNKNOWN : ledgers[i];
	return PP_LEDGER_UNKNOWN;
}

/* Returns the class of the function of CUDA that a stack is in; GPU_OTHER: of none that matters. */
static enum gpu_class class_of(const struct why_samples *samples, const struct stack *stack)
{
	const uint32_t python = python_of(samples, stack);

	for (uint32_t i = 0; i < python; i++) {
		const char *name = frame_name(samples->profile, frame_at(samples, stack, i));
		const enum gpu_class class =
			strncmp(name, "cu", 2) ? GPU_OTHER : gpu_class_of(name);

		if (class != GPU_OTHER)
			return class;
	}
	return GPU_OTHER;
}

static int add_starved(struct why_samples *samples, uint32_t process, const struct stack *stack,
		       double ns)
{
	const uint32_t python = python_of(samples, stack);
	uint32_t code;
	int err;

	if (!stack->count)
		return 0;
	err = code_table_of_location(&samples->code,
				     stack->location[python < stack->count ? python : 0], &code);
	if (!err)
		err = ARRAY_RESERVE(samples->weight, samples->weight_count,
				    samples->weight_capacity);
	if (!err)
		samples->weight[samples->weight_count++] =
			(struct why_weight){.process = process,
					    .finding = GPU_FINDING_STARVED,
					    .code = code,
					    .weight = ns};
	return err;
}

/* Adds a sample of a thread that launches. */
static int add_sample(struct why_samples *samples, struct why_process *process, uint32_t row,
		      double ns)
{
	const struct profile *profile = samples->profile;
	const struct stack *stack = &profile->stacks.stack[profile->row[row].stack];
	const char *gpu = record_text(profile, row, "gpu");
	const unsigned int part = part_of(samples, row, stack);
	struct gpu_sums *sums = &process->sums;

	sums->seen_ns += ns;
	sums->labelled_ns += gpu[0] ? ns : 0;
	sums->ready_ns += part == PP_LEDGER_RUN_QUEUE ? ns : 0;
	if (part == PP_LEDGER_CPU || part == GPU_PART_NATIVE) {
		const enum gpu_class class = class_of(samples, stack);

		sums->cpu_ns += ns;
		sums->launch_cpu_ns += class == GPU_LAUNCH || class == GPU_GRAPH ? ns : 0;
		sums->copy_cpu_ns += class == GPU_COPY ? ns : 0;
	}
	if (strcmp(gpu, "drained") != 0)
		return 0;
	sums->drained_ns[part] += ns;
	return add_starved(samples, (uint32_t)(process - samples->processes->process), stack, ns);
}

/* Finds the process whose launching thread a row is of; NULL: none. */
static int find_lead(const struct why_samples *samples, uint32_t row,
		     struct why_process **ret_process)
{
	const struct stored_label *tid =
		profile_find_label(samples->profile, samples->profile->row[row].label_set, "tid");
	struct why_process *process;
	int err = find_process(samples->processes, record_number(samples->profile, row, "pid"),
			       false, &process);

	*ret_process = NULL;
	if (!err && process && process->lead != UINT32_MAX && tid && tid->is_number &&
	    samples->processes->thread[process->lead].tid == tid->value)
		*ret_process = process;
	return err;
}

/* Returns whether a window lies in the time from a process's first call to its last one, as far as
 * windows tell. */
static bool is_of(const struct why_process *process, const struct profile_window *window)
{
	const uint64_t middle_ns = window->start_wall_ns + window->duration_ns / 2;

	return !window->start_wall_ns ||
	       (middle_ns >= process->begin_wall_ns && middle_ns < process->end_wall_ns);
}

int why_samples_add(struct why_samples *samples, const struct profile *profile,
		    const struct profile_window *window)
{
	int err = 0;

	if (!samples->profile)
		code_table_init(&samples->code, profile, CODE_BY_LINE);
	samples->profile = profile;
	for (size_t i = 0; i < window->delta_count && !err; i++) {
		const struct profile_delta *delta = &window->delta[i];
		struct why_process *process;

		err = find_lead(samples, delta->row, &process);
		if (!err && process && delta->value > 0 && is_of(process, window))
			err = add_sample(samples, process, delta->row, (double)delta->value);
	}
	return err;
}

int why_samples_end(struct why_samples *samples, const struct short_paths *short_paths,
		    bool has_waits)
{
	struct why_processes *processes = samples->processes;

	for (uint32_t i = 0; i < processes->count; i++) {
		processes->process[i].sums.has_cpu = true;
		processes->process[i].sums.has_waits = has_waits;
	}
	samples->code.short_paths = short_paths;
	return take_lines(processes, &samples->code, samples->weight, samples->weight_count);
}
