/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines of chosen functions (include/pyprofd/lines.h).  A hit of a known line walks nothing. */
#include "lib/lines.bpf.h"
#include "lib/identify.bpf.h"
#include "lib/private_stack.bpf.h"

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
