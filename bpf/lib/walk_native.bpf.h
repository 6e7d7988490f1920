/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Unwinds native frames, leaf to root, and puts each segment of Python frames where its anchor
 * lies.  userspace/finish/stack_finish.c follows the same rules. */
#ifndef BPF_LIB_WALK_NATIVE_H
#define BPF_LIB_WALK_NATIVE_H

#include "lib/frames.bpf.h"
#include "lib/return_probe.bpf.h"
#include "lib/walk.bpf.h"
#include "lib/walk_code.bpf.h"

/* A frame pointer that is followed without unwind information stays within this of the stack
 * pointer: larger frames exist, but garbage is more likely.  One that does not points into another
 * stack (cgo, split stacks), where a return address must follow a call. */
#define MAX_FRAME_BYTES (4U << 20)

/* Reads the window of stack words from here up.  Near the end of the stack, where that fails, it
 * reads two words.  Returns nonzero when not even one can be read. */
__noinline int walk_fill_window(__u32 slot, __u64 address)
{
	struct pp_walk *w = walk_get(slot);

	if (!w)
		return 1;
	w->window_start = address;
	w->window_bytes = WALK_WINDOW_BYTES;
	if (!bpf_probe_read_user(w->window, WALK_WINDOW_BYTES, (const void *)address))
		return 0;
	w->window_bytes = 16;
	if (!bpf_probe_read_user(w->window, 16, (const void *)address))
		return 0;
	w->window_bytes = 8;
	if (!bpf_probe_read_user(w->window, 8, (const void *)address))
		return 0;
	w->window_bytes = 0;
	return 1;
}

/* Reads a word of the stack. */
static __always_inline bool read_word(struct pp_walk *w, __u32 slot, __u64 address, __u64 *word)
{
	__u64 at = address - w->window_start;

	if (unlikely(at > WALK_WINDOW_BYTES - 8 || at + 8 > w->window_bytes)) {
		if (walk_fill_window(slot, address))
			return false;
		at = 0;
	}
	BARRIER(at);
	if (at > WALK_WINDOW_BYTES - 8)
		return false;
	*word = *(__u64 *)(w->window + at);
	return true;
}

#if defined(__TARGET_ARCH_arm64)
/* Return addresses may be signed: user addresses have 48 bits (as
 * userspace/finish/stack_finish.c). */
#define CODE_ADDRESS(pc) ((pc) & 0xffffffffffffULL)
#else
#define CODE_ADDRESS(pc) (pc)
#endif

/* ---- leaving one frame: each sets *cfa and the caller's pc, sp, fp ---- */

static __always_inline enum pp_stop leave_bare_leaf(struct pp_walk *w, __u32 slot, bool is_pushed,
						    __u64 *cfa)
{
	__u64 at = w->sp;

	if (is_pushed && !read_word(w, slot, at, &w->fp))
		return PP_STOP_NO_INFO;
	at += 8 * is_pushed;
	if (!read_word(w, slot, at, &w->pc))
		return PP_STOP_NO_INFO;
	*cfa = at + 8;
	return PP_STOP_NONE;
}

static __always_inline enum pp_stop leave_by_frame_pointer(struct pp_walk *w, __u32 slot,
							   __u64 *cfa)
{
	__u64 fp, pc;

	if (w->leaf == PP_LEAF_BARE || w->leaf == PP_LEAF_PUSHED)
		return leave_bare_leaf(w, slot, w->leaf == PP_LEAF_PUSHED, cfa);
	/* psABI x86-64 3.4.1: 0 marks the deepest frame.  Go's runtime.goexit. */
	if (!w->fp && w->by_frame_pointer)
		return PP_STOP_ROOT;
	if (w->fp & 7)
		return PP_STOP_NO_INFO;
	if (!read_word(w, slot, w->fp, &fp) || !read_word(w, slot, w->fp + 8, &pc))
		return PP_STOP_NO_INFO;
	*cfa = w->fp + 16;
	/* If the value is no return address, the frame pointer was none either. */
	if (!pc || (!walk_find_range(slot, pc - 1) && w->range.file != PP_FILE_NONE))
		w->pc = pc;
	else if (true_return_address(slot, *cfa - RETURN_ADDRESS_BELOW_CFA))
		return PP_STOP_NO_INFO;
	w->fp = fp;
	return PP_STOP_NONE;
}

#if !defined(__TARGET_ARCH_arm64)
/* CPython's perf trampoline (Python/asm_trampoline.S, 3.12+): the return address in it points to
 * `add $8,%rsp; ret`; its copies lie in anonymous memory and have no FDE. */
#define TRAMPOLINE_TAIL 0xc308c48348ULL
#define TRAMPOLINE_TAIL_MASK 0xffffffffffULL

static __always_inline bool leave_trampoline(struct pp_walk *w, __u64 *cfa)
{
	__u64 code = 0;

	if (w->is_leaf || bpf_probe_read_user(&code, 5, (const void *)w->pc) ||
	    (code & TRAMPOLINE_TAIL_MASK) != TRAMPOLINE_TAIL)
		return false;
	*cfa = w->sp + 16;
	return !bpf_probe_read_user(&w->pc, 8, (const void *)(*cfa - 8));
}

/* struct rt_sigframe as the restorer sees it (arch/x86/include/asm/sigframe.h): sp points to the
 * ucontext, whose mcontext begins at 40 with r8..r15 di si bp bx dx ax cx sp ip. */
#define SIGNAL_REGISTERS_OFFSET 40
static __always_inline enum pp_stop leave_signal_frame(struct pp_walk *w, __u64 *cfa)
{
	__u64 *r = w->registers;

	if (bpf_probe_read_user(w->bytes, 128, (const void *)(w->sp + SIGNAL_REGISTERS_OFFSET)) ||
	    bpf_probe_read_user(&w->pc, 8, (const void *)(w->sp + SIGNAL_REGISTERS_OFFSET + 128)))
		return PP_STOP_READ_FAULT;
	const __u64 *saved = (const __u64 *)w->bytes;

#pragma unroll
	for (int i = 0; i < 8; i++)
		r[8 + i] = saved[i];
	r[5] = saved[8];
	r[4] = saved[9];
	r[6] = saved[10];
	r[3] = saved[11];
	r[1] = saved[12];
	r[0] = saved[13];
	r[2] = saved[14];
	r[7] = saved[15];
	*cfa = saved[15];
	w->fp = saved[10];
	return PP_STOP_NONE;
}
#else
static __always_inline bool leave_trampoline(struct pp_walk *w, __u64 *cfa)
{
	return false;
}

/* struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo 128, ucontext with regs[31] sp pc at
 * 312 from sp. */
#define SIGNAL_REGISTERS_OFFSET 312
static __always_inline enum pp_stop leave_signal_frame(struct pp_walk *w, __u64 *cfa)
{
	__u64 at = w->sp + SIGNAL_REGISTERS_OFFSET;

	if (bpf_probe_read_user(w->registers, 31 * 8, (const void *)at) ||
	    bpf_probe_read_user(cfa, 8, (const void *)(at + 31 * 8)) ||
	    bpf_probe_read_user(&w->pc, 8, (const void *)(at + 32 * 8)))
		return PP_STOP_READ_FAULT;
	w->fp = w->registers[PP_REG_FP];
	return PP_STOP_NONE;
}
#endif

static __always_inline enum pp_stop rule_cfa(struct pp_walk *w, const struct pp_rule *rule,
					     __u64 *cfa)
{
	__u64 base;
	__u32 reg = rule->cfa_register;

	switch (rule->kind) {
	case PP_RULE_CFA_SP:
		*cfa = w->sp + (__s64)rule->cfa_offset;
		return PP_STOP_NONE;
	case PP_RULE_CFA_FP:
		*cfa = w->fp + (__s64)rule->cfa_offset;
		return PP_STOP_NONE;
	case PP_RULE_PLT:
		*cfa = w->sp + 8 + (((w->pc & 15) >= (__u32)rule->cfa_offset) << 3);
		return PP_STOP_NONE;
	}
	if (reg == PP_REG_FP)
		base = w->fp;
	else if (reg == PP_REG_SP)
		base = w->sp;
	else if (!w->is_leaf)
		return PP_STOP_BAD_RULE;
	else
		base = w->registers[reg & (PP_REG_COUNT - 1)];
	if (rule->kind == PP_RULE_CFA_REGISTER) {
		*cfa = base + (__s64)rule->cfa_offset;
		return PP_STOP_NONE;
	}
	if (bpf_probe_read_user(&base, 8, (const void *)(base + (__s64)rule->cfa_offset)))
		return PP_STOP_READ_FAULT;
	*cfa = base + (__s64)rule->cfa_add;
	return PP_STOP_NONE;
}

/* Saved frame pointer and return address, relative to the CFA. */
static __always_inline enum pp_stop rule_caller(struct pp_walk *w, __u32 slot,
						const struct pp_rule *rule, __u64 cfa)
{
	__u64 fp = w->fp;

	/* Read the lower address first: the upper one comes along. */
	if (rule->fp_kind == PP_FP_AT_CFA || rule->fp_kind == PP_FP_AT_FP) {
		__u64 base = rule->fp_kind == PP_FP_AT_CFA ? cfa : fp;

		if (!read_word(w, slot, base + (__s64)rule->fp_offset, &fp))
			return PP_STOP_READ_FAULT;
	}
	if (rule->ra_kind == PP_RA_REGISTER) {
		if (!w->is_leaf)
			return PP_STOP_BAD_RULE;
#if defined(__TARGET_ARCH_arm64)
		w->pc = w->registers[PP_REG_RA];
#else
		w->pc = w->registers[(__u16)rule->ra_offset & (PP_REG_COUNT - 1)];
#endif
	} else if (!read_word(w, slot, cfa + (__s64)rule->ra_offset, &w->pc)) {
		return PP_STOP_READ_FAULT;
	}
	w->fp = fp;
	return PP_STOP_NONE;
}

static __always_inline enum pp_stop leave_by_rule(struct pp_walk *w, __u32 slot,
						  const struct pp_rule *rule, __u64 *cfa)
{
	enum pp_stop stop;

	if (rule->kind == PP_RULE_SIGNAL)
		return leave_signal_frame(w, cfa);
	if (rule->kind == PP_RULE_NO_INFO)
		return leave_by_frame_pointer(w, slot, cfa);
	stop = rule_cfa(w, rule, cfa);
	if (stop)
		return stop;
	return rule_caller(w, slot, rule, *cfa);
}

/* ---- Python segments ---- */

/* Puts the next segment of Python frames here.  The interpreter's own few frames between two
 * activations are dropped: they only say "a Python function called a Python function". */
static __always_inline void place_segment(struct pp_walk *w, __u64 frames)
{
	if (w->foldable && w->since_segment <= PP_MAX_FOLDED_FRAMES &&
	    !(w->context.flags & PP_CONTEXT_NO_FOLD) && w->native_count < w->native_room) {
		w->native_count -= w->since_segment;
		w->native_stored = w->native_count;
	}
	native_push(w, frames, 0, PP_FRAME_SEGMENT);
	w->since_segment = 0;
	w->foldable = 1;
}

static __always_inline struct pp_segment *next_segment(struct pp_walk *w)
{
	__u32 at = w->segment_next;

	if (at >= w->segment_count)
		return 0;
	BARRIER(at);
	return &w->segment[at & (PP_MAX_SEGMENTS - 1)];
}

static __always_inline bool in_eval_range(const struct pp_python *py, __u64 address)
{
#pragma unroll
	for (__u32 i = 0; i < PP_MAX_EVAL_RANGES; i++)
		if (i < py->eval_range_count && address >= py->eval[i].low &&
		    address < py->eval[i].high)
			return true;
	return false;
}

/* Confirms or weakens the learned distance: each unwind that agrees adds to its confidence, up to
 * PP_RESYNC_SURE, and each that does not takes one away, so that a wrong or outdated distance is
 * unlearned. */
static __always_inline void learn_resync(struct pp_resync *resync, const struct pp_rule *rule,
					 __u64 cfa, __u64 anchor)
{
	__s64 distance = cfa - anchor;

	if (rule->kind == PP_RULE_NO_INFO || rule->fp_kind != PP_FP_AT_CFA)
		return;
	if (resync->cfa_minus_anchor == distance && resync->fp_offset == rule->fp_offset) {
		if (resync->agreed < PP_RESYNC_SURE)
			resync->agreed++;
		return;
	}
	if (resync->agreed >= PP_RESYNC_AGREED) {
		resync->agreed--;
		return;
	}
	resync->cfa_minus_anchor = distance;
	resync->fp_offset = rule->fp_offset;
	resync->agreed = 1;
}

/* Continues a native walk that is stuck at w->sp at the next eval activation, whose CFA is at a
 * fixed distance from its anchor. */
static __always_inline bool resync_at_anchor(struct pp_walk *w, const struct pp_resync *resync)
{
	struct pp_segment *segment = next_segment(w);
	__u64 cfa;

	if (!segment || !segment->anchor || !resync || resync->agreed < PP_RESYNC_AGREED)
		return false;
	cfa = segment->anchor + resync->cfa_minus_anchor;
	if (cfa <= w->sp || bpf_probe_read_user(&w->pc, 8, (const void *)(cfa - 8)) ||
	    bpf_probe_read_user(&w->fp, 8, (const void *)(cfa + resync->fp_offset)))
		return false;
	native_push(w, 0, 0, PP_FRAME_GAP);
	w->foldable = 0;
	place_segment(w, segment->frames);
	w->segment_next++;
	w->sp = cfa;
	w->is_leaf = 0;
	w->by_frame_pointer = 0;
	return true;
}

/* The surroundings of one step: the process's interpreter, 0 if it has none. */
struct interpreter {
	struct pp_python *python;
	struct pp_resync *resync;
};

static __always_inline struct interpreter interpreter_of(const struct pp_walk *w)
{
	struct interpreter found = {.python = python_of(w)};
	__u32 index = w->context.python - 1;

	if (found.python)
		found.resync = bpf_map_lookup_elem(&resyncs, &index);
	return found;
}

static __always_inline void place_eval(struct pp_walk *w, const struct walk_site *site,
				       __u64 frames)
{
	if (w->context.flags & PP_CONTEXT_NO_FOLD)
		native_push(w, site->address, site->file, PP_FRAME_EVAL);
	place_segment(w, frames);
}

/* Handles a frame of the interpreter's file.  Returns true when it is an eval activation, whose
 * segment is then placed. */
static __always_inline bool push_eval(struct pp_walk *w, const struct interpreter *interpreter,
				      const struct walk_site *site, __u64 low, __u64 cfa)
{
	const struct pp_python *py = interpreter->python;
	struct pp_segment *segment;

	if (py->chain == PP_CHAIN_FRAME_OBJECT && in_eval_range(py, site->address)) {
		place_eval(w, site, 1);
		return true;
	}
	segment = next_segment(w);
	if (!segment || segment->anchor < low || segment->anchor >= cfa)
		return false;
	if (interpreter->resync)
		learn_resync(interpreter->resync, &site->rule, cfa, segment->anchor);
	place_eval(w, site, segment->frames);
	w->segment_next++;
	return true;
}

/* Pushes the frame [low, cfa), or the Python segment that it executes. */
static __always_inline void push_frame(struct pp_walk *w, const struct interpreter *interpreter,
				       const struct walk_site *site, __u64 low, __u64 cfa)
{
	bool own = interpreter->python && site->file == interpreter->python->file;
	struct pp_segment *segment;

	if (own && push_eval(w, interpreter, site, low, cfa))
		return;
	segment = next_segment(w);
	if (segment && segment->anchor && segment->anchor < low) {
		/* The activation was passed unseen (code without frame pointers): keep the order of
		 * the segments. */
		w->foldable = 0;
		place_segment(w, segment->frames);
		w->segment_next++;
	}
	native_push(w, site->address, site->file,
		    site->file == PP_FILE_ANONYMOUS ? PP_FRAME_ANONYMOUS : PP_FRAME_NATIVE);
	w->since_segment++;
	if (!own)
		w->foldable = 0;
}

/* Reads the caller's pc and fp from the stack, relative to a CFA that sp or fp gives. */
static __always_inline bool rule_is_plain(const struct pp_rule *rule)
{
	return (rule->kind == PP_RULE_CFA_SP || rule->kind == PP_RULE_CFA_FP) &&
	       rule->ra_kind == PP_RA_AT_CFA && rule->fp_kind != PP_FP_AT_FP;
}

/* A return address may be the first of the next function: the call lies one before. */
static __always_inline __u64 frame_pc(const struct pp_walk *w)
{
	return CODE_ADDRESS(w->pc) - !w->is_leaf;
}

static __always_inline struct walk_site *site_of(struct pp_walk *w, __u64 pc)
{
	__u64 at = pc * 0x9e3779b97f4a7c15ULL >> 56;

	BARRIER(at);
	return &w->site[at & (WALK_SITES - 1)];
}

/* Looks up the frame at pc in its call site's memo.  Anonymous memory has no rule, which its file
 * number says. */
__noinline int walk_place_frame(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	const struct pp_range *range;
	struct walk_site *site;
	struct pp_rule *rule;
	__u64 pc;

	if (!w || !w->context.map_set)
		return PP_STOP_NO_IMAGE;
	range = &w->range;
	pc = frame_pc(w);
	site = site_of(w, pc);
	site->map_version = 0;
	if (walk_find_range(slot, pc) || range->file == PP_FILE_NONE)
		return PP_STOP_NO_MAPPING;
	site->pc = pc;
	site->file = range->file;
	if (range->file == PP_FILE_ANONYMOUS) {
		site->address = pc;
		return PP_STOP_NONE;
	}
	rule = find_rule(range, pc - range->bias);
	if (!rule)
		return PP_STOP_NO_ROWS;
	site->address = pc - range->bias;
	site->rule = *rule;
	site->is_plain = rule_is_plain(&site->rule);
	site->map_version = w->context.map_version;
	return PP_STOP_NONE;
}

static __always_inline bool may_resync(enum pp_stop stop)
{
	return stop == PP_STOP_NO_INFO || stop == PP_STOP_READ_FAULT || stop == PP_STOP_BAD_RULE ||
	       stop == PP_STOP_NOT_MOVING;
}

/* No unwind has succeeded here yet (all are in JIT code), so the agent looks for the activation's
 * frame. */
static __always_inline bool wants_resume(const struct pp_walk *w, const struct pp_resync *resync)
{
	struct pp_segment *segment = next_segment((struct pp_walk *)w);

	return segment && segment->anchor && resync && resync->agreed < PP_RESYNC_AGREED &&
	       resync->asked < PP_RESYNC_MAX_ASKED;
}

/* Ends the walk unless it can go on at the next eval activation. */
static __always_inline int end_or_resync(struct pp_walk *w, const struct interpreter *interpreter,
					 enum pp_stop stop, bool may)
{
	if (may && resync_at_anchor(w, interpreter->resync))
		return 0;
	w->stop = stop;
	w->is_resumable = may && wants_resume(w, interpreter->resync);
	return 1;
}

/* Returns whether a walk without unwind information for this code is at the root of the stack. */
static __always_inline bool is_at_root(const struct pp_walk *w)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	return pp_is_root(w->sp, w->is_leaf, task_first_word(task), w->thread_pointer);
}

static __always_inline bool site_is_signal(const struct walk_site *site)
{
	return site->file != PP_FILE_ANONYMOUS && site->rule.kind == PP_RULE_SIGNAL;
}

static __always_inline bool has_no_info(const struct walk_site *site)
{
	return site->file == PP_FILE_ANONYMOUS || site->rule.kind == PP_RULE_NO_INFO;
}

static __always_inline bool is_outermost(const struct walk_site *site)
{
	return site->file != PP_FILE_ANONYMOUS &&
	       (site->rule.kind == PP_RULE_STOP || site->rule.ra_kind == PP_RA_UNDEFINED);
}

/* The caller's frame lies on another stack, if it is one. */
static __always_inline enum pp_stop change_stacks(struct pp_walk *w, __u32 slot)
{
	__u64 target;

	if (w->stack_changes >= PP_MAX_STACK_CHANGES ||
	    !follows_call(w, slot, CODE_ADDRESS(w->pc), &target))
		return w->by_frame_pointer ? PP_STOP_NO_INFO : PP_STOP_NOT_MOVING;
	w->stack_changes++;
	return PP_STOP_NONE;
}

/* Leaves the frame whose memo entry is known: sets the caller's pc and fp, and w->cfa, which is its
 * sp.  Not inlined: the verifier sees each way to leave a frame once, and not with each way to what
 * follows. */
__noinline int walk_leave_frame(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	const struct walk_site *site;
	enum pp_stop stop;
	__u64 fp, cfa = 0;

	if (!w)
		return PP_STOP_NO_IMAGE;
	fp = w->fp;
	site = site_of(w, frame_pc(w));
	if (site->file == PP_FILE_ANONYMOUS)
		stop = leave_by_frame_pointer(w, slot, &cfa);
	else
		stop = leave_by_rule(w, slot, &site->rule, &cfa);
	w->cfa = cfa;
	w->by_frame_pointer = has_no_info(site) && cfa == fp + 16;
	if (stop || site_is_signal(site)) /* which may change stacks */
		return stop;
	/* Only the leaf may have no frame at all. */
	if (cfa == w->sp && !w->is_leaf)
		return PP_STOP_NOT_MOVING;
	if (cfa < w->sp || (w->by_frame_pointer && fp - w->sp > MAX_FRAME_BYTES))
		return change_stacks(w, slot);
	return PP_STOP_NONE;
}

/* Takes a step from a frame whose memo entry is known.  Returns nonzero when the walk is over;
 * w->stop says why. */
static __always_inline int step_frame(struct pp_walk *w, __u32 slot,
				      const struct interpreter *interpreter,
				      const struct walk_site *site)
{
	__u64 low = w->sp, cfa = 0;
	enum pp_stop stop;

	if (site->file == PP_FILE_ANONYMOUS && leave_trampoline(w, &cfa)) {
		w->sp = cfa;
		return 0; /* one more eval activation follows; the frame says nothing */
	}
	if (is_outermost(site)) {
		push_frame(w, interpreter, site, low, low);
		w->stop = PP_STOP_ROOT;
		return 1;
	}
	w->leaf = PP_LEAF_FRAMED;
	if (w->is_leaf && has_no_info(site))
		walk_leaf(slot);
	stop = walk_leave_frame(slot);
	push_frame(w, interpreter, site, low, stop ? low : w->cfa);
	if (w->leaf == PP_LEAF_UNSURE) {
		w->is_unsure = 1;
		native_push(w, 0, 0, PP_FRAME_GAP);
		w->foldable = 0;
	}
	if (stop == PP_STOP_NO_INFO && is_at_root(w)) {
		w->stop = PP_STOP_ROOT;
		return 1;
	}
	if (stop)
		return end_or_resync(w, interpreter, stop, may_resync(stop));
	w->sp = w->cfa;
	w->is_leaf = site_is_signal(site);
	if (!w->pc)
		w->stop = PP_STOP_ROOT;
	return !w->pc;
}

static __always_inline bool site_is_known(const struct pp_walk *w, const struct walk_site *site,
					  __u64 pc)
{
	return site->pc == pc && site->map_version == w->context.map_version && w->context.map_set;
}

/* Returns whether a segment of Python frames ends in or below the frame that ends at cfa, or that
 * frame is one of the interpreter's eval activations. */
static __always_inline bool may_hold_segment(struct pp_walk *w, const struct pp_python *py,
					     const struct walk_site *site, bool own, __u64 cfa)
{
	const struct pp_segment *segment = next_segment(w);

	if (segment && segment->anchor && segment->anchor < cfa)
		return true;
	return own && py->chain == PP_CHAIN_FRAME_OBJECT && in_eval_range(py, site->address);
}

/* Takes a step from a usual frame.  Returns false, with nothing done, when the frame is another
 * kind, the outermost, or cannot be read. */
static __always_inline bool plain_frame(struct pp_walk *w, __u32 slot, const struct pp_python *py,
					const struct walk_site *site)
{
	bool own = py && site->file == py->file;
	__u64 cfa, fp = w->fp, pc;

	cfa = (site->rule.kind == PP_RULE_CFA_SP ? w->sp : fp) + (__s64)site->rule.cfa_offset;
	if (cfa <= w->sp || may_hold_segment(w, py, site, own, cfa))
		return false;
	/* Read the lower address first: the upper one comes along. */
	if (site->rule.fp_kind == PP_FP_AT_CFA &&
	    !read_word(w, slot, cfa + (__s64)site->rule.fp_offset, &fp))
		return false;
	if (!read_word(w, slot, cfa + (__s64)site->rule.ra_offset, &pc) || !pc)
		return false;
	native_push(w, site->address, site->file, PP_FRAME_NATIVE);
	w->since_segment++;
	w->foldable &= own;
	w->fp = fp;
	w->pc = pc;
	w->sp = cfa;
	w->is_leaf = 0;
	w->by_frame_pointer = 0;
	return true;
}

/* Takes a step from a plain frame.  Returns false, with nothing done, for others: walk_any_step()
 * knows them. */
static __always_inline bool walk_plain_step(struct pp_walk *w, __u32 slot,
					    const struct pp_python *py)
{
	__u64 pc = frame_pc(w);
	struct walk_site *site = site_of(w, pc);

	if (!site_is_known(w, site, pc) || !site->is_plain || walk_clock_is_due(w) ||
	    !plain_frame(w, slot, py, site))
		return false;
	w->steps++;
	return true;
}

/* Takes a step from a frame of any kind.  Returns nonzero when the walk is over; w->stop says
 * why. */
__noinline int walk_any_step(__u32 slot)
{
	struct pp_walk *w = walk_get(slot);
	struct interpreter interpreter;
	struct walk_site *site;
	enum pp_stop stop;
	__u64 pc;

	if (!w)
		return 1;
	if (walk_clock_step(w)) {
		w->stop = PP_STOP_MAX_TIME;
		return 1;
	}
	interpreter = interpreter_of(w);
	pc = frame_pc(w);
	site = site_of(w, pc);
	if (!site_is_known(w, site, pc)) {
		stop = walk_place_frame(slot);
		if (w->is_urgent)
			walk_clock_hurry(w); /* a search in cold tables: up to some us */
		if ((stop == PP_STOP_NO_MAPPING || (!stop && site->file == PP_FILE_ANONYMOUS)) &&
		    !w->is_leaf && !true_return_address(slot, w->sp - RETURN_ADDRESS_BELOW_CFA))
			return 0; /* the walk goes on there */
		/* A caller outside all mappings was no return address; a leaf there is new code. */
		if (stop)
			return end_or_resync(w, &interpreter, stop,
					     stop == PP_STOP_NO_MAPPING && !w->is_leaf);
	}
	return step_frame(w, slot, &interpreter, site);
}

#endif
