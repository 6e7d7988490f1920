/* SPDX-License-Identifier: BSD-2-Clause */
#include "finish/user_unwind.h"

#include <errno.h>
#include <pyprofd/python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/page_cache.h"
#include "base/slice.h"
#include "drain/decode.h"
#include "finish/stack_finish.h"
#include "finish/unwind_python.h"
#include "symbolize/stitch.h"

/* Builds the frame list of an incomplete stack: native frames in the order of the walk, and each
 * segment of Python frames at the native frame that contains its anchor.  Decides as
 * bpf/lib/walk_native.bpf.h does. */

size_t unwind_frames_record_bytes(void)
{
	return sizeof(struct pp_stack_record) + STITCH_STACK_FRAMES * sizeof(struct pp_frame);
}

static bool push(struct unwind_frames *frames, uint64_t where, uint32_t what,
		 enum pp_frame_kind kind)
{
	struct pp_stack_record *record = frames->record;
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

uint32_t unwind_frames_foldable(const struct unwind_frames *frames)
{
	/* Where the record's area was full, most of the frames since then are not in it. */
	return frames->foldable && frames->since_segment <= PP_MAX_FOLDED_FRAMES &&
			       frames->since_segment <= frames->record->native_stored
		       ? frames->since_segment
		       : 0;
}

/* Adds a segment as place_segment() in bpf/lib/walk_native.bpf.h does: a few interpreter frames
 * between two activations are folded away. */
static bool place_segment(struct unwind_frames *frames, uint64_t python_frames)
{
	struct pp_stack_record *record = frames->record;
	const uint32_t folded = frames->raw ? 0 : unwind_frames_foldable(frames);

	record->native_stored -= (uint16_t)folded;
	record->native_count -= folded;
	frames->since_segment = 0;
	frames->foldable = true;
	return push(frames, python_frames, 0, PP_FRAME_SEGMENT);
}

const struct pp_segment *unwind_frames_next_segment(const struct unwind_frames *frames)
{
	return frames->segment_next < frames->segment_count ? &frames->segment[frames->segment_next]
							    : NULL;
}

/* Returns whether an interpreter frame is an eval activation, and how many Python frames it runs,
 * as push_eval() in bpf/lib/walk_native.bpf.h decides. */
static bool is_activation(struct unwind_frames *frames, uint64_t vaddr, uint64_t low, uint64_t cfa,
			  uint64_t *ret_python_frames)
{
	const struct pp_segment *segment = unwind_frames_next_segment(frames);

	if (frames->python->chain == PP_CHAIN_FRAME_OBJECT && in_eval(frames->python, vaddr)) {
		*ret_python_frames = 1;
		return true;
	}
	if (!segment || segment->anchor < low || segment->anchor >= cfa)
		return false;
	frames->segment_next++;
	*ret_python_frames = segment->frames;
	return true;
}

/* Follows push_frame() in bpf/lib/walk_native.bpf.h. */
bool unwind_frames_add(struct unwind_frames *frames, uint32_t file, uint64_t vaddr, uint64_t low,
		       uint64_t cfa)
{
	bool own = frames->python && file == frames->python->file;
	const struct pp_segment *segment;
	uint64_t python_frames;

	if (own && is_activation(frames, vaddr, low, cfa, &python_frames))
		return place_segment(frames, python_frames);
	segment = unwind_frames_next_segment(frames);
	if (segment && segment->anchor && segment->anchor < low) {
		frames->segment_next++;
		frames->foldable = false;
		(void)place_segment(frames, segment->frames); /* full: so it is for the frame */
	}
	frames->since_segment++;
	frames->foldable &= own;
	return push(frames, vaddr, file,
		    file == PP_FILE_ANONYMOUS ? PP_FRAME_ANONYMOUS : PP_FRAME_NATIVE);
}

bool unwind_frames_skip(struct unwind_frames *frames)
{
	const struct pp_segment *segment = unwind_frames_next_segment(frames);

	if (!segment || !push(frames, 0, 0, PP_FRAME_GAP))
		return false;
	frames->foldable = false;
	frames->segment_next++;
	return place_segment(frames, segment->frames);
}

/* When the kernel side's native area was full, its last quarter is a ring of the frames nearest the
 * root.  Copies them in order, behind a gap that holds the number of frames left out. */
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

void unwind_frames_begin(struct unwind_frames *frames, const struct decoded_incomplete *decoded,
			 struct pp_stack_record *record)
{
	const struct pp_incomplete_record *incomplete = decoded->record;

	*record = (struct pp_stack_record){
		.id = incomplete->key.id,
		.python_stored = incomplete->python_stored,
		.python_count = incomplete->python_count,
		.native_stored = incomplete->native_stored,
		.native_count = incomplete->native_count,
		.stop = incomplete->stop,
		.py_stop = incomplete->py_stop,
		.python = incomplete->python,
	};
	memcpy(record->frame, decoded->python,
	       ((size_t)incomplete->python_stored + incomplete->native_stored) *
		       sizeof(struct pp_frame));
	if (incomplete->native_count > incomplete->native_stored)
		unroll_native(record, decoded->native);
	*frames = (struct unwind_frames){
		.record = record,
		.segment = decoded->segment,
		.segment_count = incomplete->segment_count,
		.since_segment = incomplete->since_segment,
		.foldable = incomplete->foldable,
	};
}

/* How long one stack may wait for files that were not seen before. */
#define FINISH_FILES_NS (50 * NS_PER_MS)
/* Sets the hash of a stack that was left out apart from that of a whole stack with the same frames:
 * the dictionary keeps one reason for each hash.  Even, as hashes are odd. */
#define LEFT_OUT_HASH 0x9e3779b97f4a7c14ULL
/* A cache of look-ups by pc: recursive calls repeat their return addresses. */
#define SITES 256U
struct site {
	uint64_t pc; /* 0: none */
	uint64_t vaddr;
	uint32_t file;
	struct pp_rule rule;
};

/* Beyond the copied part the walk reads the live stack, which may have changed since.  As long as
 * the last words that the walk used in the copy are unchanged in the live stack, no call there has
 * returned, so everything deeper is unchanged as well. */
struct join {
	struct page_witness word[PAGE_WITNESSES];
	uint32_t count; /* of words noted; only the last PAGE_WITNESSES are kept */
	bool is_passed;
	uint16_t native_stored; /* frames when the walk passed the end of the copy */
	uint32_t native_count;
};

/* The state of one user-space unwind. */
struct finish {
	const struct finisher *finisher;
	const struct decoded_incomplete *incomplete;
	struct process *process;
	struct file *interpreter; /* NULL: none */
	struct unwind_frames frames;
	bool is_searching; /* reads belong to a search, not to the walk */
	struct join join;
	struct site site[SITES];
	struct page_cache live; /* the process's memory beyond the copy of the stack */
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
	/* Cheap when the page is loaded already. */
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

/* Handles the first read beyond the copy: notes how many frames to keep if the live stack turns out
 * to have changed.  The next segment may still fold the last of them away. */
static void join_pass(struct finish *finish)
{
	const struct pp_stack_record *record = finish->frames.record;
	uint32_t folded = unwind_frames_foldable(&finish->frames);

	finish->join.is_passed = true;
	finish->join.native_stored = (uint16_t)(record->native_stored - folded);
	finish->join.native_count = record->native_count - folded;
	page_cache_watch(&finish->live, finish->join.word, finish->join.count);
}

/* Reads the copy of the stack and, beyond its end, the live stack. */
static int read_stack(void *context, uint64_t address, void *buffer, size_t size)
{
	struct finish *finish = context;
	const struct pp_incomplete_record *record = finish->incomplete->record;
	uint64_t at = address - record->stack_start;
	/* A size that is no multiple of a word is a read of code. */
	bool is_step = !finish->is_searching && size % sizeof(uint64_t) == 0 &&
		       address >= record->stack_start;

	if (address >= record->stack_start && at <= record->stack_bytes &&
	    size <= record->stack_bytes - at) {
		memcpy(buffer, finish->incomplete->stack + at, size);
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

/* Returns whether a walk that stopped so may resume at an anchor, as in bpf/lib/walk_native.bpf.h.
 * A caller outside all mappings means that the word was no return address. */
static bool may_resume(enum pp_stop stop, const struct finish_state *state)
{
	return stop == PP_STOP_NO_INFO || stop == PP_STOP_READ_FAULT || stop == PP_STOP_BAD_RULE ||
	       stop == PP_STOP_NOT_MOVING || (stop == PP_STOP_NO_MAPPING && !state->is_leaf);
}

/* Learns the distance from anchor to CFA.  Searches each stack until PP_RESYNC_AGREED of them
 * agree; from then on the kernel side uses the distance, too. */
static bool learn_resync(struct finish *finish, const struct finish_callbacks *callbacks,
			 uint64_t sp, uint64_t anchor)
{
	struct pp_resync *known = &finish->interpreter->resync, found;
	int err;

	if (known->agreed >= PP_RESYNC_AGREED)
		return true;
	if (known->asked >= PP_RESYNC_MAX_ASKED)
		return false;
	known->asked++;
	finish->is_searching = true;
	err = stack_resume_find(callbacks, finish->interpreter->id, sp, anchor, &found);
	finish->is_searching = false;
	if (err)
		return false;
	if (found.cfa_minus_anchor != known->cfa_minus_anchor ||
	    found.fp_offset != known->fp_offset)
		known->agreed = 0;
	known->cfa_minus_anchor = found.cfa_minus_anchor;
	known->fp_offset = found.fp_offset;
	if (++known->agreed < PP_RESYNC_AGREED)
		return false;
	(void)kernel_side_set_resync(finish->finisher->kernel,
				     finish->interpreter->python_index - 1, known);
	return true;
}

/* Resuming failed with the learned distance: takes one agreement back, so that it is searched
 * again. */
static void doubt_resync(struct pp_resync *known)
{
	known->agreed--;
	if (known->asked)
		known->asked--;
}

/* Resumes a stuck walk at the next eval activation, as resync_at_anchor() in the kernel side
 * does. */
static bool resume(struct finish *finish, const struct finish_callbacks *callbacks,
		   struct finish_state *state)
{
	const struct pp_segment *segment = unwind_frames_next_segment(&finish->frames);

	if (!segment || !segment->anchor || !finish->interpreter ||
	    !learn_resync(finish, callbacks, state->sp, segment->anchor))
		return false;
	if (stack_resume_at(callbacks, &finish->interpreter->resync, segment->anchor, state)) {
		doubt_resync(&finish->interpreter->resync);
		return false;
	}
	return unwind_frames_skip(&finish->frames);
}

static bool on_frame(void *context, uint32_t file, uint64_t vaddr, uint64_t low, uint64_t cfa)
{
	struct finish *finish = context;

	if (file == PP_FILE_NONE) {
		finish->frames.foldable = false;
		return push(&finish->frames, 0, 0, PP_FRAME_GAP);
	}
	return unwind_frames_add(&finish->frames, file, vaddr, low, cfa);
}

#if !defined(__aarch64__)
/* Returns whether the kernel has replaced the return address of the call that ends at sp. */
static bool is_replaced(const struct decoded_incomplete *incomplete, uint64_t sp)
{
	for (uint32_t i = 0; i < incomplete->record->return_count; i++)
		if (incomplete->returns[i].stack == sp - sizeof(incomplete->record->pc))
			return true;
	return false;
}
#endif

static void walk(struct finish *finish)
{
	const struct pp_incomplete_record *incomplete = finish->incomplete->record;
	struct finish_state state = {.pc = incomplete->pc,
				     .sp = incomplete->sp,
				     .fp = incomplete->fp,
				     .is_leaf = incomplete->is_leaf,
				     .is_unsure = incomplete->is_unsure != 0,
				     .first_word = incomplete->first_word,
				     .thread_pointer = incomplete->thread_pointer};
	const struct finish_callbacks callbacks = {.context = finish,
						   .find = find,
						   .read = read_stack,
						   .frame = on_frame,
						   .returns = finish->incomplete->returns,
						   .return_count = incomplete->return_count};
	enum pp_stop stop;

	memcpy(state.registers, incomplete->registers, sizeof(state.registers));
#if !defined(__aarch64__)
	/* A call pushes its return address; with a return probe another word is there. */
	if (!incomplete->is_leaf && !is_replaced(finish->incomplete, incomplete->sp))
		join_note(&finish->join, incomplete->sp - sizeof(incomplete->pc), &incomplete->pc,
			  sizeof(incomplete->pc));
#endif
	/* The kernel side has already pushed the frame it was stuck at. */
	stop = may_resume(incomplete->stop, &state) && incomplete->stop != PP_STOP_NO_MAPPING
		       ? incomplete->stop
		       : stack_finish(&state, &callbacks);
	while (!finish->live.is_stale && may_resume(stop, &state) &&
	       resume(finish, &callbacks, &state))
		stop = stack_finish(&state, &callbacks);
	if (finish->join.is_passed && !page_cache_holds(&finish->live)) {
		finish->frames.record->native_stored = finish->join.native_stored;
		finish->frames.record->native_count = finish->join.native_count;
		stop = PP_STOP_TORN;
	}
	if (stop == PP_STOP_ROOT && state.is_unsure)
		stop = PP_STOP_NO_INFO;
	/* A scanned thread's stack was never incomplete: stop NONE means that no walk preceded. */
	if (stop == PP_STOP_ROOT && incomplete->stop != PP_STOP_NONE)
		stop = PP_STOP_FINISHED;
	finish->frames.record->stop = (uint8_t)stop;
}

/* Hashes the frames, in a way that nobody can foresee: equal stacks of one process have one id.
 * Frames that are code objects' addresses are valid in one process only, whose id then seeds the
 * hash, too. */
static void set_hash(struct pp_stack_record *record, uint64_t secret)
{
	size_t frames = (size_t)record->python_stored + record->native_stored;
	uint64_t seed = secret;

	if (record->python_stored && record->frame[0].kind == PP_FRAME_PYTHON_RAW)
		seed ^= (uint64_t)record->id.generation << 32 | record->id.tgid;
	record->hash =
		XXH3_64bits_withSeed(record->frame, frames * sizeof(struct pp_frame), seed) | 1;
}

int user_unwind_leave_out(const struct finisher *finisher,
			  const struct decoded_incomplete *incomplete,
			  struct pp_stack_record **ret_record)
{
	struct pp_stack_record *record = malloc(unwind_frames_record_bytes());
	struct unwind_frames frames;

	if (!record)
		return -ENOMEM;
	unwind_frames_begin(&frames, incomplete, record);
	record->stop = PP_STOP_LEFT_OUT;
	set_hash(record, finisher->secret);
	record->hash ^= LEFT_OUT_HASH;
	*ret_record = record;
	return 0;
}

int user_unwind_describe(struct dictionary *dictionary, const struct pp_stack_record *record)
{
	const struct decoded_stack stack = {
		.record = record,
		.python = record->frame,
		.native = record->frame + record->python_stored,
	};

	return dictionary_add_stack(dictionary, &stack);
}

static void finish_init(struct finish *finish, const struct finisher *finisher,
			struct process *process, const struct decoded_incomplete *incomplete,
			struct pp_stack_record *record)
{
	memset(finish, 0, offsetof(struct finish, live));
	finish->finisher = finisher;
	finish->incomplete = incomplete;
	finish->process = process;
	unwind_frames_begin(&finish->frames, incomplete, record);
	finish->frames.raw = finisher->raw;
	page_cache_init(&finish->live, (pid_t)incomplete->record->key.id.tgid);
}

/* Reads the Python frames first: the native walk places them by their anchors. */
static void finish_all(struct finish *finish)
{
	const struct pp_incomplete_record *incomplete = finish->incomplete->record;
	const struct slice slice = slice_begin(FINISH_FILES_NS);
	const struct python_frames *frames = NULL;
	struct process_python *python;

	(void)context_table_find_files(finish->finisher->contexts, finish->process, &slice);
	python = context_table_python(finish->process);
	finish->interpreter = python ? python->file : NULL;
	finish->frames.python = finish->interpreter ? &finish->interpreter->python->bpf : NULL;
	if (incomplete->py_stop == PP_PY_STOP_MAX_TIME && finish->frames.python &&
	    !incomplete->native_stored)
		frames = unwind_python_resume(finish->finisher->python, finish->process,
					      finish->incomplete, finish->frames.record);
	if (frames) {
		finish->frames.segment = frames->segment;
		finish->frames.segment_count = frames->segment_count;
	}
	if (incomplete->stop != PP_STOP_ROOT)
		walk(finish);
	unwind_python_name(finish->finisher->python, finish->process, finish->frames.record);
}

int user_unwind(const struct finisher *finisher, struct process *process,
		const struct decoded_incomplete *incomplete, struct pp_stack_record **ret_record)
{
	OWNED_MEM struct pp_stack_record *record = malloc(unwind_frames_record_bytes());
	struct finish finish;

	if (!record)
		return -ENOMEM;
	finish_init(&finish, finisher, process, incomplete, record);
	if (process)
		finish_all(&finish);
	set_hash(record, finisher->secret);
	*ret_record = TAKE(record);
	return 0;
}
