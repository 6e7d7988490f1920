/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines of chosen functions (include/pyprofd/calls.h).  A hit of a known line walks nothing. */
#include "lib/call_hit.bpf.h"
#include "lib/identify.bpf.h"

#include <pyprofd/calls.h>

/* What a hit of a known line does: the time since the last event of its function in this thread
 * goes to the line that was running.  No locks: a thread that is in an interpreter's probe holds
 * the GIL, and only its own hits change what is a thread's. */

/* The maps of exact lines alone. */

MAP(line_target, ARRAY, 1, __u32, struct pp_line_target);

/* By the process and the addresses of names: whether lines of the function count. */
MAP(line_functions, LRU_HASH, PP_LINE_FUNCTIONS_MAX, __u64, __u32);

MAP(line_rows, HASH, PP_LINE_ROWS_MAX, __u64, struct pp_line_row);

MAP(line_threads, LRU_HASH, PP_LINE_THREADS_MAX, __u32, struct pp_line_thread);

MAP(line_runs, LRU_HASH, PP_LINE_THREADS_MAX, struct pp_line_run_key, struct pp_line_run);

MAP(line_costs, ARRAY, 1, __u32, struct pp_line_costs);

MAP(line_sums, PERCPU_ARRAY, 1, __u32, struct pp_line_sums);

/* ---- sums ---- */

static __always_inline struct pp_line_sums *line_sums_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&line_sums, &zero);
}

static __always_inline void line_count_unread(void)
{
	struct pp_line_sums *sums = line_sums_get();

	if (sums)
		sums->unread++;
}

static __always_inline void line_count_unnoted(void)
{
	struct pp_line_sums *sums = line_sums_get();

	if (sums)
		sums->unnoted++;
}

/* Adds what the hit costs to the thread. */
static __always_inline void line_count_hit(struct pp_line_thread *thread, bool is_wanted)
{
	__u32 zero = 0;
	const struct pp_line_costs *costs = bpf_map_lookup_elem(&line_costs, &zero);
	struct pp_line_sums *sums = line_sums_get();

	if (costs)
		thread->cost_ns += is_wanted ? costs->wanted_ns : costs->other_ns;
	if (!sums)
		return;
	sums->hits++;
	sums->wanted += is_wanted;
}

/* ---- threads ---- */

/* Returns the thread's state, which begins with its first hit; NULL: there is no room. */
static __always_inline struct pp_line_thread *line_thread(const struct call_hit *h)
{
	struct pp_line_thread *thread = bpf_map_lookup_elem(&line_threads, &h->tid), fresh = {};
	struct task_struct *task = h->task, *leader;

	if (likely(thread && thread->start_time == h->start_time))
		return thread;
	leader = CURRENT_READ(task, group_leader);
	fresh.start_time = h->start_time;
	fresh.process = hash_mix(h->tgid, BPF_CORE_READ(leader, start_time));
	bpf_map_update_elem(&line_threads, &h->tid, &fresh, BPF_ANY);
	return bpf_map_lookup_elem(&line_threads, &h->tid);
}

/* Names a function in a process. */
static __always_inline __u64 line_function(const struct pp_line_thread *thread,
					   const struct call_hit *h)
{
	return hash_mix(thread->process, h->names);
}

/* ---- the lines that a function's activations are in ---- */

static __always_inline __u64 line_row_id(__u64 function, __u64 line)
{
	return hash_mix(function, line) | 1;
}

__noinline int run_make(__u64 function, __u64 thread_key, __u32 tid, __u32 tgid)
{
	struct pp_line_run_key key = {.function = function, .thread = thread_key};
	struct pp_line_run run = {.tid = tid, .tgid = tgid};

	return bpf_map_update_elem(&line_runs, &key, &run, BPF_NOEXIST) ? 1 : 0;
}

static __always_inline struct pp_line_run *run_get(const struct call_hit *h, __u64 function)
{
	struct pp_line_run_key key = {.function = function, .thread = h->start_time ^ h->tid};
	struct pp_line_run *run = bpf_map_lookup_elem(&line_runs, &key);

	if (likely(run))
		return run;
	run_make(function, key.thread, h->tid, h->tgid);
	return bpf_map_lookup_elem(&line_runs, &key);
}

/* Returns where the innermost activation has its row; NULL: there is none, or it is too deep. */
static __always_inline __u64 *run_row(struct pp_line_run *run)
{
	__u32 at = run->depth - 1;

	BARRIER(at);
	return at < PP_LINE_DEPTH ? &run->row[at & (PP_LINE_DEPTH - 1)] : NULL;
}

static __always_inline void run_set_row(struct pp_line_run *run, __u64 id)
{
	__u64 *row = run_row(run);

	if (row)
		*row = id;
}

/* Returns the bit of the innermost activation; 0: it has none. */
static __always_inline __u32 run_bit(const struct pp_line_run *run)
{
	__u32 at = run->depth - 1;

	return at < PP_LINE_DEPTH ? 1U << (at & (PP_LINE_DEPTH - 1)) : 0;
}

/* Adds the time since the function's last event to the line that was running. */
static __always_inline void run_pass(const struct call_hit *h, const struct pp_line_thread *thread,
				     struct pp_line_run *run)
{
	__u64 passed_ns = h->now_ns - run->since_ns, cost_ns = thread->cost_ns - run->cost_ns;
	const __u64 *id = run_row(run);
	struct pp_line_row *row = id && *id ? bpf_map_lookup_elem(&line_rows, id) : NULL;
	struct pp_line_sums *sums = line_sums_get();

	if (cost_ns > passed_ns)
		cost_ns = passed_ns;
	if (row)
		row->ns += passed_ns - cost_ns;
	if (row && sums)
		sums->cost_ns += cost_ns;
	run->since_ns = h->now_ns;
	run->cost_ns = thread->cost_ns;
}

/* A function is called, or a generator goes on in the line where it has yielded. */
static __always_inline void run_enter(const struct call_hit *h, const struct pp_line_thread *thread,
				      struct pp_line_run *run, __u64 function)
{
	const __u64 id = line_row_id(function, h->line);
	struct pp_line_sums *sums = line_sums_get();

	run_pass(h, thread, run);
	run->depth++;
	run->told &= ~run_bit(run);
	run_set_row(run, bpf_map_lookup_elem(&line_rows, &id) ? id : 0);
	if (sums && run->depth > PP_LINE_DEPTH)
		sums->too_deep++;
}

/* Returns whether no line has begun since the function was called or went on. */
static __always_inline bool run_leave(const struct call_hit *h, const struct pp_line_thread *thread,
				      struct pp_line_run *run)
{
	const __u32 bit = run_bit(run);
	bool is_untold = bit && !(run->told & bit);

	run_pass(h, thread, run);
	if (!run->depth)
		return false; /* it was called before the start, and no line has begun since */
	run_set_row(run, 0);
	run->depth--;
	return is_untold;
}

/* ---- which functions count ---- */

/* What is read of a function's names, in place of the frames of a walk. */
struct line_names {
	char file[PP_LINE_PATH_BYTES];
	char name[PP_LINE_NAME_BYTES];
};
_Static_assert(sizeof(struct line_names) <= sizeof(((struct walk_output *)NULL)->frame),
	       "a function's names have room in the frames of a walk");

static __always_inline bool file_is_wanted(const struct line_names *names, long bytes,
					   const struct pp_line_target *target)
{
	const __u32 from = bytes - 1 - target->file_bytes;

	if (bytes <= (long)target->file_bytes)
		return false;
	for (__u32 i = 0; i < PP_LINE_FILE_BYTES; i++) {
		if (i == target->file_bytes)
			break;
		if (names->file[from + i & (PP_LINE_PATH_BYTES - 1)] != target->file[i])
			return false;
	}
	return !from || names->file[from - 1 & (PP_LINE_PATH_BYTES - 1)] == '/';
}

static __always_inline bool name_is_wanted(const struct line_names *names, long bytes,
					   const struct pp_line_target *target)
{
	if (!target->name_bytes)
		return true;
	if (bytes != (long)target->name_bytes + 1)
		return false;
	for (__u32 i = 0; i < PP_LINE_NAME_BYTES; i++) {
		if (i == target->name_bytes)
			break;
		if (names->name[i] != target->name[i])
			return false;
	}
	return true;
}

/* Reads the names of a function, and remembers whether its lines count.  Returns nonzero when they
 * cannot be read. */
static __always_inline int function_judge(struct pp_walk *w, __u64 function, __u64 file, __u64 name)
{
	struct line_names *names = (struct line_names *)w->out.frame;
	__u32 zero = 0, is_wanted;
	const struct pp_line_target *target = bpf_map_lookup_elem(&line_target, &zero);
	long file_bytes, name_bytes;

	if (!target)
		return 1;
	file_bytes = bpf_probe_read_user_str(names->file, sizeof(names->file), (void *)file);
	name_bytes = bpf_probe_read_user_str(names->name, sizeof(names->name), (void *)name);
	if (file_bytes <= 0 || name_bytes <= 0)
		return 1;
	is_wanted = file_is_wanted(names, file_bytes, target) &&
		    name_is_wanted(names, name_bytes, target);
	return bpf_map_update_elem(&line_functions, &function, &is_wanted, BPF_ANY) ? 1 : 0;
}

/* A function of its own has its own stack: a walk leaves little of the 512 bytes. */
__noinline int function_find(__u64 function, __u64 file, __u64 name)
{
	struct scratch taken;
	int err;

	scratch_enter_pool(&taken);
	if (!taken.walk)
		return 1;
	err = function_judge(taken.walk, function, file, name);
	scratch_leave(&taken);
	return err;
}

/* The line of our own says whether it counts. */
static __always_inline int function_of_ours(const struct call_hit *h, __u64 function)
{
	__u32 is_wanted = h->line != 0;

	return bpf_map_update_elem(&line_functions, &function, &is_wanted, BPF_ANY) ? 1 : 0;
}

/* Returns whether the lines of the function count. */
static __always_inline bool function_is_wanted(const struct call_hit *h, __u64 function, void *ctx)
{
	const __u32 *is_wanted = bpf_map_lookup_elem(&line_functions, &function);

	if (likely(is_wanted))
		return *is_wanted;
	if (!(h->site->is_ours
		      ? function_of_ours(h, function)
		      : function_find(function, argument(ctx, &h->site->arg[PP_CALL_ARG_FILE]),
				      argument(ctx, &h->site->arg[PP_CALL_ARG_NAME]))))
		is_wanted = bpf_map_lookup_elem(&line_functions, &function);
	if (!is_wanted)
		line_count_unread();
	return is_wanted && *is_wanted;
}

/* ---- rows ---- */

/* Makes a row; w holds the frame that is in the line. */
__noinline int row_make(__u32 slot, __u64 id, __u32 line, __u32 event)
{
	struct pp_walk *w = walk_get(slot);
	struct pp_line_row row = {.line = line};

	if (!w)
		return 1;
	row.hits = event == PP_CALL_LINE;
	row.untold = event == PP_CALL_RETURN;
	row.id = w->id;
	row.code = leaf_code(w);
	if (w->python_count)
		row.instruction = w->out.frame[0].what;
	return bpf_map_update_elem(&line_rows, &id, &row, BPF_NOEXIST) ? 1 : 0;
}

/* Walks the frame that a line is in, and makes its row. */
static __always_inline int row_walk(struct call_hit *h, __u64 id, void *ctx)
{
	struct pp_config *cfg = config_get();
	struct task_struct *task = h->task;
	struct scratch taken;
	bool is_ours = h->site->is_ours;
	int err = 1;

	if (!cfg)
		return 1;
	scratch_enter_pool(&taken);
	if (!taken.walk)
		return 1;
	if (identify(taken.walk, task, (__u64)h->tgid << 32 | h->tid, CURRENT_READ(task, flags),
		     false, cfg) ||
	    is_ours) {
		walk_reset(taken.walk, 0, h->now_ns, PP_SAMPLE_WALK_NS);
		if (!is_ours)
			walk_frames(h, taken.walk, taken.slot, ctx, false);
		err = row_make(taken.slot, id, h->line, h->event);
	}
	scratch_leave(&taken);
	return err;
}

/* ---- hits ---- */

/* Return whether the line has no row yet. */
static __always_inline bool line_begins(struct call_hit *h, struct pp_line_thread *thread,
					struct pp_line_run *run, __u64 function)
{
	const __u64 id = line_row_id(function, h->line);
	struct pp_line_row *row;

	run_pass(h, thread, run);
	if (!run->depth)
		run->depth = 1; /* it was called before the start */
	run->told |= run_bit(run);
	run_set_row(run, id);
	row = bpf_map_lookup_elem(&line_rows, &id);
	if (unlikely(!row))
		return true;
	row->hits++;
	return false;
}

static __always_inline bool function_ends(struct call_hit *h, struct pp_line_thread *thread,
					  struct pp_line_run *run, __u64 function)
{
	const __u64 id = line_row_id(function, h->line);
	struct pp_line_row *row;

	if (!run_leave(h, thread, run))
		return false;
	row = bpf_map_lookup_elem(&line_rows, &id);
	if (unlikely(!row))
		return true;
	row->untold++;
	return false;
}

/* Counts a hit.  Returns whether it is of a line that has no row yet. */
static __always_inline bool hit_count(struct call_hit *h, void *ctx)
{
	struct pp_line_thread *thread = line_thread(h);
	struct pp_line_run *run;
	__u64 function;
	bool is_wanted;

	if (!thread)
		return false;
	function = line_function(thread, h);
	is_wanted = function_is_wanted(h, function, ctx);
	line_count_hit(thread, is_wanted);
	run = is_wanted ? run_get(h, function) : NULL;
	if (!run)
		return false;
	switch (h->event) {
	case PP_CALL_LINE:
		return line_begins(h, thread, run, function);
	case PP_CALL_ENTRY:
		run_enter(h, thread, run, function);
		return false;
	default:
		return function_ends(h, thread, run, function);
	}
}

/* A full table stays full, and a walk at each hit would be no bounded cost. */
static __always_inline bool row_may_be_tried(void)
{
	struct pp_line_sums *sums = line_sums_get();

	if (sums && sums->unnoted < PP_LINE_TRIES_MAX)
		return true;
	line_count_unnoted();
	return false;
}

static __noinline int handle_hit(void *ctx, enum pp_call_event event)
{
	struct pp_config *cfg = config_get();
	struct call_hit h;

	if (!cfg || !hit_take(&h, ctx, event) ||
	    (cfg->flags & PP_CONFIG_PAUSED && !h.site->is_ours))
		return 0;
	return hit_count(&h, ctx) && row_may_be_tried();
}

/* Not a part of handle_hit(), for a walk leaves little of the 512 bytes of stack. */
static __noinline int handle_new_line(void *ctx, enum pp_call_event event)
{
	struct pp_line_thread *thread;
	struct call_hit h;

	if (!hit_take(&h, ctx, event))
		return 0;
	thread = bpf_map_lookup_elem(&line_threads, &h.tid);
	if (!thread || row_walk(&h, line_row_id(line_function(thread, &h), h.line), ctx))
		line_count_unnoted();
	/* The walk is no time of the line's. */
	if (thread)
		thread->cost_ns += bpf_ktime_get_ns() - h.now_ns;
	return 0;
}

SEC("uprobe")
int on_line(struct pt_regs *ctx)
{
	REFUSE_PRIVATE_STACK(ctx, probe_programs);
	if (handle_hit(ctx, PP_CALL_LINE))
		handle_new_line(ctx, PP_CALL_LINE);
	return 0;
}

SEC("uprobe")
int on_line_entry(struct pt_regs *ctx)
{
	REFUSE_PRIVATE_STACK(ctx, probe_programs);
	handle_hit(ctx, PP_CALL_ENTRY);
	return 0;
}

SEC("uprobe")
int on_line_return(struct pt_regs *ctx)
{
	REFUSE_PRIVATE_STACK(ctx, probe_programs);
	if (handle_hit(ctx, PP_CALL_RETURN))
		handle_new_line(ctx, PP_CALL_RETURN);
	return 0;
}
