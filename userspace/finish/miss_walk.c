/* SPDX-License-Identifier: BSD-2-Clause */
#include "finish/miss_walk.h"

#include <errno.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/page_cache.h"
#include "finish/miss_frames.h"
#include "finish/miss_python.h"
#include "finish/stack_finish.h"
#include "finish/stack_resume.h"

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
	const struct finisher *finisher;
	const struct decoded_miss *miss;
	struct process *process;
	struct file *interpreter; /* NULL: none */
	struct miss_frames frames;
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
	file = file_table_find(finish->finisher->files, mapping->file);
	*ret_rule = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	if (!file || !file->has_pages) {
		*ret_file = PP_FILE_ANONYMOUS;
		*ret_vaddr = pc;
		return 0;
	}
	*ret_file = file->id;
	*ret_vaddr = pc - mapping->bias;
	/* Already loaded pages are left alone: cheap. */
	(void)file_table_load_at(finish->finisher->files, file, *ret_vaddr);
	return file_rule_at(finish->finisher->files, file, *ret_vaddr, ret_rule);
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
	const struct pp_stack_record *record = finish->frames.record;
	uint32_t folded = miss_frames_foldable(&finish->frames);

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
	(void)kernel_side_set_resync(finish->finisher->kernel,
				     finish->interpreter->python_index - 1, known);
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
	const struct pp_segment *segment = miss_frames_next_run(&finish->frames);

	if (!segment || !segment->mark || !finish->interpreter ||
	    !learn_resync(finish, callbacks, state->sp, segment->mark))
		return false;
	if (stack_resume_at(callbacks, &finish->interpreter->resync, segment->mark, state)) {
		doubt_resync(&finish->interpreter->resync);
		return false;
	}
	return miss_frames_skip(&finish->frames);
}

static bool on_frame(void *context, uint32_t file, uint64_t vaddr, uint64_t low, uint64_t cfa)
{
	struct finish *finish = context;

	return miss_frames_add(&finish->frames, file, vaddr, low, cfa);
}

static void walk(struct finish *finish)
{
	const struct pp_miss_record *miss = finish->miss->record;
	struct finish_state state = {.pc = miss->pc,
				     .sp = miss->sp,
				     .fp = miss->fp,
				     .is_leaf = miss->is_leaf,
				     .first_word = miss->first_word,
				     .thread_pointer = miss->thread_pointer};
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
	stop = may_resume(miss->stop, &state) && miss->stop != PP_STOP_NO_MAPPING
		       ? miss->stop
		       : stack_finish(&state, &callbacks);
	while (!finish->live.is_stale && may_resume(stop, &state) &&
	       resume(finish, &callbacks, &state))
		stop = stack_finish(&state, &callbacks);
	if (finish->join.is_passed && !page_cache_holds(&finish->live)) {
		finish->frames.record->native_stored = finish->join.native_stored;
		finish->frames.record->native_count = finish->join.native_count;
		stop = PP_STOP_TORN;
	}
	/* Nothing was missed where nothing was walked before. */
	if (stop == PP_STOP_ROOT && miss->stop != PP_STOP_NONE)
		stop = PP_STOP_FINISHED;
	finish->frames.record->stop = (uint8_t)stop;
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

int miss_describe(struct dictionary *dictionary, const struct pp_stack_record *record)
{
	const struct decoded_stack stack = {
		.record = record,
		.python = record->frame,
		.native = record->frame + record->python_stored,
	};

	return dictionary_add_stack(dictionary, &stack);
}

static void finish_init(struct finish *finish, const struct finisher *finisher,
			struct process *process, const struct decoded_miss *miss,
			struct pp_stack_record *record)
{
	memset(finish, 0, offsetof(struct finish, live));
	finish->finisher = finisher;
	finish->miss = miss;
	finish->process = process;
	miss_frames_begin(&finish->frames, miss, record);
	finish->frames.raw = finisher->raw;
	page_cache_init(&finish->live, (pid_t)miss->record->key.id.tgid);
}

/* Python's frames first, as their marks are looked for among the native ones. */
static void finish_all(struct finish *finish)
{
	const struct pp_miss_record *miss = finish->miss->record;
	const struct python_frames *frames = NULL;
	struct process_python *python;

	(void)image_table_find_files(finish->finisher->images, finish->process);
	python = image_table_python(finish->process);
	finish->interpreter = python ? python->file : NULL;
	finish->frames.python = finish->interpreter ? &finish->interpreter->python->bpf : NULL;
	if (miss->py_stop == PP_PY_STOP_MAX_TIME && finish->frames.python && !miss->native_stored)
		frames = miss_python_resume(finish->finisher->python, finish->process, finish->miss,
					    finish->frames.record);
	if (frames) {
		finish->frames.segment = frames->segment;
		finish->frames.segment_count = frames->segment_count;
	}
	if (miss->stop != PP_STOP_ROOT)
		walk(finish);
	miss_python_name(finish->finisher->python, finish->process, finish->frames.record);
}

int miss_walk(const struct finisher *finisher, struct process *process,
	      const struct decoded_miss *miss, struct pp_stack_record **ret_record)
{
	OWNED_MEM struct pp_stack_record *record = malloc(miss_frames_record_bytes());
	struct finish finish;

	if (!record)
		return -ENOMEM;
	finish_init(&finish, finisher, process, miss, record);
	if (process)
		finish_all(&finish);
	set_hash(record);
	*ret_record = TAKE(record);
	return 0;
}
