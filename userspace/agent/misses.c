/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks that the kernel side could not finish: walked on from the registers and the copy of the
 * stack that came with them, counted here, and their code's rows loaded for the next time.  Stacks of
 * threads that sleep (sweep_walk.c) come the same way, nothing walked yet. */
#include "agent/agent.h"
#include "agent/miss_python.h"

#include <errno.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/page_cache.h"
#include "finish/stack_finish.h"
#include "finish/stack_resume.h"
#include "symbolize/stitch.h"

#define RECORD_BYTES (sizeof(struct pp_stack_record) + STITCH_STACK_FRAMES * sizeof(struct pp_frame))

/* What the agent may cost for this, and how much is taken for a walk until some were measured. */
#define BUDGET_PERCENT 30U
#define FIRST_WALK_NS 500000U
#define MEAN_SHIFT 4U /* an average of some 16 walks */
#define TOKENS_BESIDE 48U /* of new code, which comes in bursts */

/* What was found at an address: return addresses repeat from level to level. */
#define SITES 256U
struct site {
	uint64_t pc; /* 0: none */
	uint64_t vaddr;
	uint32_t file;
	struct pp_rule rule;
};

/* Beyond the copy the live stack is read, which may have changed.  While the last words of the copy by
 * which the walk went are still there, no call has returned from there: what lies deeper is the same. */
struct join {
	struct page_witness word[PAGE_WITNESSES];
	uint32_t count; /* of all that were noted: the last ones are kept */
	bool is_passed;
	uint16_t native_stored; /* where it was passed */
	uint32_t native_count;
};

/* One walk. */
struct finish {
	struct agent *agent;
	const struct decoded_miss *miss;
	struct process *process;
	const struct pp_python *python; /* NULL: none */
	struct file *interpreter;	/* python's */
	struct pp_stack_record *record; /* owned; python frames, then native ones */
	const struct pp_segment *segment; /* segment_count of them */
	uint32_t segment_count, segment_next;
	uint32_t since_run; /* as in struct pp_walk */
	bool foldable;
	bool is_searching; /* reads say nothing of the walk */
	struct join join;
	struct site site[SITES];
	struct page_cache live; /* what the copy of the stack does not hold */
};

static int look_up(void *context, uint64_t pc, uint32_t *ret_file, uint64_t *ret_vaddr,
		struct pp_rule *ret_rule)
{
	struct finish *finish = context;
	const struct mapping *mapping;
	struct file *file;
	int err = process_find_mapping(finish->process, pc, &mapping);

	if (err)
		return err;
	file = file_table_find(finish->agent->files, mapping->file);
	*ret_rule = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	if (!file || !file->has_pages) {
		*ret_file = PP_FILE_ANONYMOUS;
		*ret_vaddr = pc;
		return 0;
	}
	*ret_file = file->id;
	*ret_vaddr = pc - mapping->bias;
	/* Already loaded pages are left alone: cheap. */
	(void)file_table_load_at(finish->agent->files, file, *ret_vaddr);
	return file_rule_at(finish->agent->files, file, *ret_vaddr, ret_rule);
}

static int find(void *context, uint64_t pc, uint32_t *ret_file, uint64_t *ret_vaddr,
		struct pp_rule *ret_rule)
{
	struct finish *finish = context;
	struct site *site = &finish->site[pc * 0x9e3779b97f4a7c15ULL >> 56];
	int err;

	if (!pc || site->pc != pc) {
		site->pc = 0;
		err = look_up(finish, pc, &site->file, &site->vaddr, &site->rule);
		if (err)
			return err;
		site->pc = pc;
	}
	*ret_file = site->file;
	*ret_vaddr = site->vaddr;
	*ret_rule = site->rule;
	return 0;
}

static void join_note(struct join *join, uint64_t address, const void *buffer, size_t size)
{
	for (size_t at = 0; at + 8 <= size; at += 8) {
		struct page_witness *word = &join->word[join->count++ % PAGE_WITNESSES];

		word->address = address + at;
		word->mask = UINT64_MAX;
		memcpy(&word->word, (const uint8_t *)buffer + at, sizeof(word->word));
	}
}

/* The first read beyond the copy.  A run may still take the frames before it away. */
static void join_pass(struct finish *finish)
{
	const struct pp_stack_record *record = finish->record;
	uint32_t folded =
		finish->foldable && finish->since_run <= PP_MAX_FOLDED_FRAMES ? finish->since_run : 0;

	finish->join.is_passed = true;
	finish->join.native_stored = (uint16_t)(record->native_stored - folded);
	finish->join.native_count = record->native_count - folded;
	page_cache_watch(&finish->live, finish->join.word, finish->join.count);
}

/* The copy first; deeper than it, the live stack. */
static int read_stack(void *context, uint64_t address, void *buffer, size_t size)
{
	struct finish *finish = context;
	const struct pp_miss_record *record = finish->miss->record;
	uint64_t at = address - record->stack_start;
	/* Other sizes are code. */
	bool is_step = !finish->is_searching && size % sizeof(uint64_t) == 0 &&
		       address >= record->stack_start;

	if (address >= record->stack_start && at <= record->stack_bytes &&
	    size <= record->stack_bytes - at) {
		memcpy(buffer, finish->miss->stack + at, size);
		if (is_step && !finish->join.is_passed)
			join_note(&finish->join, address, buffer, size);
		return 0;
	}
	if (finish->process->exit_ns)
		return -EFAULT;
	if (is_step && !finish->join.is_passed)
		join_pass(finish);
	return page_cache_read(&finish->live, address, buffer, size) ? -EFAULT : 0;
}

static bool push(struct finish *finish, uint64_t where, uint32_t what, enum pp_frame_kind kind)
{
	struct pp_stack_record *record = finish->record;
	size_t at = (size_t)record->python_stored + record->native_stored;

	if (at >= STITCH_STACK_FRAMES)
		return false;
	record->frame[at] = (struct pp_frame){.where = where, .what = what, .kind = kind};
	record->native_stored++;
	record->native_count++;
	return true;
}

static bool in_eval(const struct pp_python *python, uint64_t vaddr)
{
	for (uint32_t i = 0; i < python->eval_range_count && i < PP_MAX_EVAL_RANGES; i++)
		if (vaddr >= python->eval[i].low && vaddr < python->eval[i].high)
			return true;
	return false;
}

/* As place_run() in bpf/lib/walk_native.bpf.h: the interpreter's own few frames between two
 * activations are dropped. */
static bool place_run(struct finish *finish, uint64_t frames)
{
	struct pp_stack_record *record = finish->record;

	if (finish->foldable && finish->since_run <= PP_MAX_FOLDED_FRAMES &&
	    !finish->agent->options->raw) {
		record->native_stored -= (uint16_t)finish->since_run;
		record->native_count -= finish->since_run;
	}
	finish->since_run = 0;
	finish->foldable = true;
	return push(finish, frames, 0, PP_FRAME_PYTHON_RUN);
}

static const struct pp_segment *next_segment(const struct finish *finish)
{
	return finish->segment_next < finish->segment_count ?
		       &finish->segment[finish->segment_next] :
		       NULL;
}

/* As push_eval() in bpf/lib/walk_native.bpf.h: whether this frame of the interpreter's is an eval
 * activation, and how many Python frames it runs. */
static bool is_activation(struct finish *finish, uint64_t vaddr, uint64_t low, uint64_t cfa,
			  uint64_t *ret_frames)
{
	const struct pp_segment *segment = next_segment(finish);

	if (finish->python->chain == PP_CHAIN_FRAME_OBJECT && in_eval(finish->python, vaddr)) {
		*ret_frames = 1;
		return true;
	}
	if (!segment || segment->mark < low || segment->mark >= cfa)
		return false;
	finish->segment_next++;
	*ret_frames = segment->frames;
	return true;
}

/* As push_frame() there. */
static bool on_frame(void *context, uint32_t file, uint64_t vaddr, uint64_t low, uint64_t cfa)
{
	struct finish *finish = context;
	bool own = finish->python && file == finish->python->file;
	const struct pp_segment *segment;
	uint64_t frames;

	if (own && is_activation(finish, vaddr, low, cfa, &frames))
		return place_run(finish, frames);
	segment = next_segment(finish);
	if (segment && segment->mark && segment->mark < low) {
		finish->segment_next++;
		finish->foldable = false;
		if (!place_run(finish, segment->frames))
			return false;
	}
	finish->since_run++;
	finish->foldable &= own;
	return push(finish, vaddr, file,
		    file == PP_FILE_ANONYMOUS ? PP_FRAME_ANONYMOUS : PP_FRAME_NATIVE);
}

/* A full native area ends in a ring: its frames in order, and a gap where some were left out. */
static void unroll_native(struct pp_stack_record *record, const struct pp_frame *native)
{
	struct pp_frame *to = record->frame + record->python_stored;
	uint32_t ring = record->native_stored / PP_ROOT_SHARE, leaf = record->native_stored - ring;
	uint32_t omitted = record->native_count - record->native_stored;

	to[leaf] = (struct pp_frame){.where = omitted, .kind = PP_FRAME_GAP};
	for (uint32_t i = 0; i < ring; i++)
		to[leaf + 1 + i] = native[leaf + (record->native_count - leaf + i) % ring];
	record->native_stored++;
	record->native_count = record->native_stored;
}

/* What the kernel side walked already. */
static void take_walked(struct finish *finish)
{
	const struct pp_miss_record *miss = finish->miss->record;
	struct pp_stack_record *record = finish->record;

	*record = (struct pp_stack_record){
		.id = miss->key.id,
		.python_stored = miss->python_stored,
		.python_count = miss->python_count,
		.native_stored = miss->native_stored,
		.native_count = miss->native_count,
		.stop = miss->stop,
		.py_stop = miss->py_stop,
		.python = miss->python,
	};
	memcpy(record->frame, finish->miss->python,
	       ((size_t)miss->python_stored + miss->native_stored) * sizeof(struct pp_frame));
	if (miss->native_count > miss->native_stored)
		unroll_native(record, finish->miss->native);
	finish->segment = finish->miss->segment;
	finish->segment_count = miss->segment_count;
	finish->since_run = miss->since_run;
	finish->foldable = miss->foldable;
}

/* As in bpf/lib/walk_native.bpf.h.  A caller outside of all mappings was no return address. */
static bool may_resume(enum pp_stop stop, const struct finish_state *state)
{
	return stop == PP_STOP_NO_INFO || stop == PP_STOP_READ_FAULT || stop == PP_STOP_BAD_RULE ||
	       stop == PP_STOP_NOT_MOVING || (stop == PP_STOP_NO_MAPPING && !state->is_leaf);
}

/* Looks for the distance from mark to CFA until three stacks agree; then the kernel side knows it too. */
static bool learn_resync(struct finish *finish, const struct finish_callbacks *callbacks,
			 uint64_t sp, uint64_t mark)
{
	struct pp_resync *known = &finish->interpreter->resync, found;
	int err;

	if (known->agreed >= PP_RESYNC_AGREED)
		return true;
	if (known->asked >= PP_RESYNC_MAX_ASKED)
		return false;
	known->asked++;
	finish->is_searching = true;
	err = stack_resume_find(callbacks, finish->interpreter->id, sp, mark, &found);
	finish->is_searching = false;
	if (err)
		return false;
	if (found.cfa_minus_mark != known->cfa_minus_mark || found.fp_offset != known->fp_offset)
		known->agreed = 0;
	known->cfa_minus_mark = found.cfa_minus_mark;
	known->fp_offset = found.fp_offset;
	if (++known->agreed < PP_RESYNC_AGREED)
		return false;
	(void)kernel_side_set_resync(finish->agent->kernel, finish->interpreter->python_index - 1,
				     known);
	return true;
}

/* Nothing was where the distance says: it is looked for once more. */
static void doubt_resync(struct pp_resync *known)
{
	known->agreed--;
	if (known->asked)
		known->asked--;
}

/* As resync_at_mark() there: a walk that is stuck goes on at the next activation. */
static bool resume(struct finish *finish, const struct finish_callbacks *callbacks,
		   struct finish_state *state)
{
	const struct pp_segment *segment = next_segment(finish);

	if (!segment || !segment->mark || !finish->interpreter ||
	    !learn_resync(finish, callbacks, state->sp, segment->mark))
		return false;
	if (stack_resume_at(callbacks, &finish->interpreter->resync, segment->mark, state)) {
		doubt_resync(&finish->interpreter->resync);
		return false;
	}
	if (!push(finish, 0, 0, PP_FRAME_GAP))
		return false;
	finish->foldable = false;
	finish->segment_next++;
	return place_run(finish, segment->frames);
}

static void walk(struct finish *finish)
{
	const struct pp_miss_record *miss = finish->miss->record;
	struct finish_state state = {
		.pc = miss->pc, .sp = miss->sp, .fp = miss->fp, .is_leaf = miss->is_leaf,
		.first_word = miss->first_word, .thread_pointer = miss->thread_pointer};
	const struct finish_callbacks callbacks = {
		.context = finish, .find = find, .read = read_stack, .frame = on_frame};
	enum pp_stop stop;

	memcpy(state.registers, miss->registers, sizeof(state.registers));
#if !defined(__aarch64__)
	/* A call pushes its return address. */
	if (!miss->is_leaf)
		join_note(&finish->join, miss->sp - sizeof(miss->pc), &miss->pc, sizeof(miss->pc));
#endif
	/* What the kernel side was stuck at, it has pushed. */
	stop = may_resume(miss->stop, &state) && miss->stop != PP_STOP_NO_MAPPING ?
		       miss->stop :
		       stack_finish(&state, &callbacks);
	while (!finish->live.is_stale && may_resume(stop, &state) &&
	       resume(finish, &callbacks, &state))
		stop = stack_finish(&state, &callbacks);
	if (finish->join.is_passed && !page_cache_holds(&finish->live)) {
		finish->record->native_stored = finish->join.native_stored;
		finish->record->native_count = finish->join.native_count;
		stop = PP_STOP_TORN;
	}
	/* Nothing was missed where nothing was walked before. */
	if (stop == PP_STOP_ROOT && miss->stop != PP_STOP_NONE)
		stop = PP_STOP_FINISHED;
	finish->record->stop = (uint8_t)stop;
}

/* The hash of its frames: equal stacks of one process are one.  Python frames that are addresses mean
 * something in one process only. */
static void set_hash(struct pp_stack_record *record)
{
	size_t frames = (size_t)record->python_stored + record->native_stored;
	uint64_t seed = 0;

	if (record->python_stored && record->frame[0].kind == PP_FRAME_PYTHON_RAW)
		seed = (uint64_t)record->id.generation << 32 | record->id.tgid;
	record->hash =
		XXH3_64bits_withSeed(record->frame, frames * sizeof(struct pp_frame), seed) | 1;
}

int misses_describe(struct agent *agent, const struct pp_stack_record *record)
{
	const struct decoded_stack stack = {
		.record = record,
		.python = record->frame,
		.native = record->frame + record->python_stored,
	};

	return dictionary_add_stack(agent->dictionary, &stack);
}

static void finish_init(struct finish *finish, struct agent *agent, struct process *process,
			const struct decoded_miss *miss, struct pp_stack_record *record)
{
	memset(finish, 0, offsetof(struct finish, live));
	finish->agent = agent;
	finish->miss = miss;
	finish->process = process;
	finish->record = record;
	page_cache_init(&finish->live, (pid_t)miss->record->key.id.tgid);
}

/* Python's frames first, as their marks are looked for among the native ones. */
static void finish_all(struct finish *finish)
{
	const struct pp_miss_record *miss = finish->miss->record;
	const struct python_frames *frames = NULL;
	struct process_python *python;

	(void)image_table_find_files(finish->agent->images, finish->process);
	python = image_table_python(finish->process);
	finish->interpreter = python ? python->file : NULL;
	finish->python = finish->interpreter ? &finish->interpreter->python->bpf : NULL;
	if (miss->py_stop == PP_PY_STOP_MAX_TIME && finish->python && !miss->native_stored)
		frames = miss_python_resume(finish->agent->miss_python, finish->process,
					    finish->miss, finish->record);
	if (frames) {
		finish->segment = frames->segment;
		finish->segment_count = frames->segment_count;
	}
	if (miss->stop != PP_STOP_ROOT)
		walk(finish);
	miss_python_name(finish->agent->miss_python, finish->process, finish->record);
}

int misses_finish(struct agent *agent, struct process *process, const struct decoded_miss *miss,
		  struct pp_stack_record **ret_record)
{
	OWNED_MEM struct pp_stack_record *record = malloc(RECORD_BYTES);
	struct finish finish;

	if (!record)
		return -ENOMEM;
	finish_init(&finish, agent, process, miss, record);
	take_walked(&finish);
	if (process)
		finish_all(&finish);
	set_hash(record);
	*ret_record = TAKE(record);
	return 0;
}

static bool lacks_mapping(enum pp_stop stop)
{
	return stop == PP_STOP_NO_MAPPING || stop == PP_STOP_NO_IMAGE;
}

static void finish_record(struct agent *agent, const struct decoded_miss *miss)
{
	OWNED_MEM struct pp_stack_record *record = NULL;
	struct process *process = lives_find(agent, miss->record->key.id);
	struct pp_count_key key = miss->record->key;
	struct pp_count one = {.samples = 1, .weight = miss->record->weight};

	if (process && lacks_mapping(miss->record->stop)) {
		/* It may be in the side-band now. */
		(void)lives_follow(agent);
		process = lives_find(agent, miss->record->key.id);
	}
	if (misses_finish(agent, process, miss, &record))
		return;
	if (key.user_stack) { /* of a wait, which is counted under this hash elsewhere */
		(void)misses_describe(agent, record);
		(void)dictionary_add_alias(agent->dictionary, key.user_stack, record->hash);
		return;
	}
	(void)misses_describe(agent, record);
	key.user_stack = record->hash;
	key.flags &= ~(0xffU << PP_COUNT_STOP_SHIFT | 0xffU << PP_COUNT_PY_STOP_SHIFT);
	key.flags |= (uint32_t)record->stop << PP_COUNT_STOP_SHIFT |
		     (uint32_t)record->py_stop << PP_COUNT_PY_STOP_SHIFT;
	(void)counts_add(&agent->finished, &key, &one);
}

void misses_on_record(void *context, const struct decoded_miss *miss)
{
	struct agent *agent = context;
	uint64_t started_ns = mono_ns(), spent_ns;

	finish_record(agent, miss);
	spent_ns = mono_ns() - started_ns;
	if (!agent->miss_mean_ns)
		agent->miss_mean_ns = FIRST_WALK_NS;
	agent->miss_mean_ns += (spent_ns >> MEAN_SHIFT) - (agent->miss_mean_ns >> MEAN_SHIFT);
}

int64_t misses_tokens(const struct agent *agent, uint64_t tick_ns)
{
	uint64_t mean_ns = agent->miss_mean_ns ? agent->miss_mean_ns : FIRST_WALK_NS;
	uint64_t affordable = tick_ns * BUDGET_PERCENT / 100 / mean_ns;
	uint64_t wanted = (uint64_t)agent->options->hz * cpu_events_count(agent->cpu_events) *
			  tick_ns / NS_PER_SEC;

	/* A tick may be late. */
	wanted += wanted / 4 + TOKENS_BESIDE;
	if (affordable < TOKENS_BESIDE)
		affordable = TOKENS_BESIDE;
	return (int64_t)(wanted < affordable ? wanted : affordable);
}
