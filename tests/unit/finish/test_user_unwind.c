/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks of a process that is this one, whose code is invented: a library's function n lies at
 * n * 0x100 and has a frame of 16 bytes. */
#include "finish/user_unwind.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "finish/stack_finish.h"
#include "finish/unwind_python.h"

#define LIBRARY 0x10000ULL
#define LIBRARY_FILE 16U
#define ANONYMOUS 0x50000ULL
#define CODE_BYTES 0x10000ULL
#define INTERPRETER_FILE 17U
#define PYTHON_INDEX 4U
#define ANCHOR ((uint64_t)&live[1])
#define WORDS 64U
#define FIRST_WITHOUT_ROWS 200U /* functions from this one on have no rules */

static struct file library = {.id = LIBRARY_FILE, .has_pages = true};
static struct pp_rule rules[256];
static struct process process;
static struct finisher finisher;
static unsigned int look_ups, loads, named;

/* The live stack, and what the kernel side copied of it. */
static uint64_t live[WORDS];
static struct {
	struct pp_incomplete_record record;
	struct pp_frame frame[4];
	uint64_t copy[WORDS];
} incomplete;

static uint64_t pc_of(unsigned int function)
{
	return LIBRARY + function * 0x100 + 0x10;
}

/* ---- instead of attach/ and python/ ---- */

int process_find_mapping(const struct process *asked, uint64_t address,
			 const struct mapping **ret_mapping)
{
	static const struct mapping code = {.file = LIBRARY_FILE, .bias = LIBRARY},
				    anonymous = {.file = PP_FILE_ANONYMOUS};

	assert_ptr_equal(asked, &process);
	look_ups++;
	if (address >= LIBRARY && address < LIBRARY + CODE_BYTES)
		*ret_mapping = &code;
	else if (address >= ANONYMOUS && address < ANONYMOUS + CODE_BYTES)
		*ret_mapping = &anonymous;
	else
		return -ENOENT;
	return 0;
}

struct file *file_table_find(const struct file_table *table, uint32_t id)
{
	(void)table;
	return id == LIBRARY_FILE ? &library : NULL;
}

int file_table_load_at(struct file_table *table, struct file *file, uint64_t vaddr)
{
	(void)table;
	(void)vaddr;
	assert_ptr_equal(file, &library);
	loads++;
	return 0;
}

int file_rule_at(struct file_table *table, struct file *file, uint64_t vaddr,
		 struct pp_rule *ret_rule)
{
	(void)table;
	(void)file;
	if (vaddr / 0x100 >= FIRST_WITHOUT_ROWS)
		return -ENOENT;
	*ret_rule = rules[vaddr / 0x100];
	return 0;
}

static struct pp_resync published;
static unsigned int publications, searches, resumptions;

int kernel_side_set_resync(struct kernel_side *side, uint32_t index, const struct pp_resync *resync)
{
	(void)side;
	assert_int_equal(index, PYTHON_INDEX - 1);
	published = *resync;
	publications++;
	return 0;
}

static int search_result, resume_result;
static uint64_t search_pc[2]; /* the search looks at these: the second has no rule */
static struct pp_resync found;

int stack_resume_find(const struct finish_callbacks *callbacks, uint32_t file, uint64_t sp,
		      uint64_t anchor, struct pp_resync *ret_resync)
{
	uint64_t word;

	assert_int_equal(file, INTERPRETER_FILE);
	assert_int_equal(sp, (uint64_t)live);
	assert_int_equal(anchor, ANCHOR);
	/* What a search reads, in the copy and beyond, is no step of the walk. */
	assert_int_equal(
		callbacks->read(callbacks->context, (uint64_t)&live[2], &word, sizeof(word)), 0);
	assert_int_equal(callbacks->read(callbacks->context, (uint64_t)&live[WORDS - 1], &word,
					 sizeof(word)),
			 0);
	if (search_pc[0]) {
		struct pp_rule rule;
		uint64_t vaddr;
		uint32_t at;

		assert_int_equal(
			callbacks->find(callbacks->context, search_pc[0], &at, &vaddr, &rule), 0);
		assert_int_not_equal(
			callbacks->find(callbacks->context, search_pc[1], &at, &vaddr, &rule), 0);
	}
	searches++;
	*ret_resync = found;
	return search_result;
}

/* The activation was called by function 2, whose frame is the second one. */
int stack_resume_at(const struct finish_callbacks *callbacks, const struct pp_resync *resync,
		    uint64_t anchor, struct finish_state *state)
{
	(void)callbacks;
	assert_int_equal(anchor, ANCHOR);
	assert_int_equal(resync->cfa_minus_anchor, found.cfa_minus_anchor);
	resumptions++;
	if (resume_result)
		return resume_result;
	state->pc = pc_of(2);
	state->sp = (uint64_t)&live[2];
	state->is_leaf = false;
	return 0;
}

int context_table_find_files(struct context_table *table, struct process *asked,
			     const struct slice *slice)
{
	(void)table;
	assert_ptr_equal(asked, &process);
	assert_non_null(slice); /* one stack does not keep the loop for long */
	return 0;
}

static struct python_info python_info;
static struct file interpreter;
static struct process_python process_python;
static bool is_python;
static uint64_t anchor_now;
static unsigned int python_resumptions;
static const struct python_frames *python_frames; /* NULL: they cannot be resumed */

struct process_python *context_table_python(struct process *asked)
{
	assert_ptr_equal(asked, &process);
	return is_python ? &process_python : NULL;
}

const struct python_frames *unwind_python_resume(struct unwind_python *python,
						 struct process *asked,
						 const struct decoded_incomplete *decoded,
						 struct pp_stack_record *record)
{
	(void)python;
	(void)record;
	assert_ptr_equal(asked, &process);
	assert_ptr_equal(decoded->record, &incomplete.record);
	python_resumptions++;
	return python_frames;
}

void unwind_python_name(struct unwind_python *python, struct process *asked,
			struct pp_stack_record *record)
{
	(void)python;
	(void)record;
	assert_ptr_equal(asked, &process);
	named++;
}

static const struct pp_stack_record *described;

int dictionary_add_stack(struct dictionary *dictionary, const struct decoded_stack *stack)
{
	(void)dictionary;
	assert_ptr_equal(stack->python, described->frame);
	assert_ptr_equal(stack->native, described->frame + described->python_stored);
	assert_ptr_equal(stack->record, described);
	return -ENOSPC;
}

/* ---- stacks ---- */

/* Function 1 is the leaf, 2 to `count` call it one after the other, and 0 is the root. */
static int setup(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 256; i++)
		rules[i] =
			(struct pp_rule){.kind = PP_RULE_CFA_SP, .cfa_offset = 16, .ra_offset = -8};
	rules[0] = (struct pp_rule){.kind = PP_RULE_STOP};
	look_ups = loads = named = 0;
	publications = searches = resumptions = 0;
	search_result = resume_result = 0;
	search_pc[0] = 0;
	python_resumptions = 0;
	python_frames = NULL;
	is_python = false;
	anchor_now = ANCHOR;
	process = (struct process){.id = {.tgid = (uint32_t)getpid(), .generation = 3}};
	for (unsigned int i = 0; i < WORDS; i++)
		live[i] = 0x1111 * i;
	for (unsigned int i = 0; i < 8; i++)
		live[2 * i + 1] = pc_of(i < 7 ? i + 2 : 0);
	memset(&incomplete, 0, sizeof(incomplete));
	incomplete.record = (struct pp_incomplete_record){
		.key = {.id = process.id},
		.pc = pc_of(1),
		.sp = (uint64_t)live,
		.stack_start = (uint64_t)live,
		.stack_bytes = sizeof(incomplete.copy),
		.is_leaf = 1,
		.stop = PP_STOP_NO_ROWS,
	};
	memcpy(incomplete.copy, live, sizeof(live));
	return 0;
}

static struct pp_stack_record *unwind(struct process *of)
{
	const struct pp_segment segment = {.anchor = anchor_now, .frames = 2};
	const struct decoded_incomplete decoded = {
		.record = &incomplete.record,
		.python = incomplete.frame,
		.native = incomplete.frame + incomplete.record.python_stored,
		.segment = &segment,
		.stack = (const uint8_t *)incomplete.copy,
	};
	struct pp_stack_record *record = NULL;

	assert_int_equal(user_unwind(&finisher, of, &decoded, &record), 0);
	assert_int_equal(record->hash & 1, 1);
	return record;
}

/* The frames are the leaf and its callers, `count` of them. */
static void expect(struct pp_stack_record *record, unsigned int count, enum pp_stop stop)
{
	assert_int_equal(record->stop, stop);
	assert_int_equal(record->native_stored, count);
	assert_int_equal(record->native_count, count);
	for (unsigned int i = 0; i < count; i++) {
		const uint64_t function = i < 8 ? i + 1 : 0;

		assert_int_equal(record->frame[i].kind, PP_FRAME_NATIVE);
		assert_int_equal(record->frame[i].what, LIBRARY_FILE);
		/* A call lies before its return address. */
		assert_int_equal(record->frame[i].where, function * 0x100 + 0x10 - (i > 0));
	}
	free(record);
}

static void user_unwind__walks_the_copy_to_the_root(void **state)
{
	(void)state;
	/* The live stack has nothing to say. */
	memset(live, 0, sizeof(live));
	expect(unwind(&process), 9, PP_STOP_FINISHED);
	assert_int_equal(named, 1);
	/* A scanned thread's walk began here. */
	incomplete.record.stop = PP_STOP_NONE;
	expect(unwind(&process), 9, PP_STOP_ROOT);
}

static void user_unwind__goes_on_in_the_live_stack(void **state)
{
	(void)state;
	for (uint32_t words = 0; words <= 18; words++) {
		incomplete.record.stack_bytes = words * 8;
		memset((uint8_t *)incomplete.copy + words * 8, 0xee, sizeof(live) - words * 8);
		expect(unwind(&process), 9, PP_STOP_FINISHED);
		setup(NULL);
	}
}

/* The copy's last return address is another one by now: what lies beyond is of another call. */
static void user_unwind__that_the_stack_changed_keeps_the_copys_frames(void **state)
{
	(void)state;
	incomplete.record.stack_bytes = 8 * 8; /* 4 return addresses */
	live[7] = pc_of(9);
	expect(unwind(&process), 4, PP_STOP_TORN);
	/* As long as nothing beyond the copy is read that does not matter. */
	incomplete.record.stack_bytes = sizeof(incomplete.copy);
	expect(unwind(&process), 9, PP_STOP_FINISHED);
}

static void user_unwind__process_that_ended_has_the_copy_only(void **state)
{
	(void)state;
	process.exit_ns = 1;
	expect(unwind(&process), 9, PP_STOP_FINISHED);
	incomplete.record.stack_bytes = 8 * 8;
	expect(unwind(&process), 5, PP_STOP_READ_FAULT);
}

/* The stack is gone: whether it changed cannot be known. */
static void user_unwind__stack_that_is_gone_counts_as_changed(void **state)
{
	(void)state;
	incomplete.record.stack_start = incomplete.record.sp = 0x1000;
	incomplete.record.stack_bytes = 8 * 8;
	expect(unwind(&process), 4, PP_STOP_TORN);
}

/* Frames of recursion are looked up once. */
static void user_unwind__equal_addresses_are_looked_up_once(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 7; i++)
		incomplete.copy[2 * i + 1] = pc_of(2);
	free(unwind(&process));
	/* The leaf, function 2, the root. */
	assert_int_equal(look_ups, 3);
	assert_int_equal(loads, 3);
}

static void user_unwind__code_without_a_file_is_anonymous(void **state)
{
	struct pp_stack_record *record;

	(void)state;
	incomplete.record.pc = ANONYMOUS + 0x20;
	record = unwind(&process);
	assert_int_equal(record->native_stored, 1);
	assert_int_equal(record->stop, PP_STOP_NO_INFO);
	assert_int_equal(record->frame[0].kind, PP_FRAME_ANONYMOUS);
	assert_int_equal(record->frame[0].where, ANONYMOUS + 0x20);
	free(record);
	library.has_pages = false;
	incomplete.record.pc = pc_of(1);
	record = unwind(&process);
	library.has_pages = true;
	assert_int_equal(record->frame[0].kind, PP_FRAME_ANONYMOUS);
	assert_int_equal(record->frame[0].where, pc_of(1));
	free(record);
}

/* Not even that of another address that was looked up before. */
static void user_unwind__code_without_a_file_has_no_rule(void **state)
{
	struct pp_stack_record *record;

	(void)state;
	for (unsigned int i = 1; i < 0x1000; i++) {
		incomplete.copy[1] = ANONYMOUS + i;
		record = unwind(&process);
		assert_int_equal(record->stop, PP_STOP_NO_INFO);
		assert_int_equal(record->native_stored, 2);
		free(record);
	}
}

/* A frame pointer that leads nowhere, into memory that is no part of the stack. */
static void user_unwind__memory_that_cannot_be_read_ends_the_walk(void **state)
{
	(void)state;
	rules[1].kind = PP_RULE_CFA_FP;
	incomplete.record.fp = 0x1000;
	expect(unwind(&process), 1, PP_STOP_READ_FAULT);
}

static void user_unwind__leafs_rule_may_use_any_register(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < PP_REG_COUNT; i++) {
		if (i == PP_REG_SP || i == PP_REG_FP)
			continue;
		rules[1].kind = PP_RULE_CFA_REGISTER;
		rules[1].cfa_register = (uint8_t)i;
		memset(incomplete.record.registers, 0, sizeof(incomplete.record.registers));
		incomplete.record.registers[i] = (uint64_t)live;
		expect(unwind(&process), 9, PP_STOP_FINISHED);
	}
}

/* Of a library that stands for the interpreter: function 1 is an activation, behind two frames of
 * its way there. */
static void user_unwind__raw_keeps_the_interpreters_frames(void **state)
{
	(void)state;
	is_python = true;
	python_info = (struct python_info){.bpf = {.file = LIBRARY_FILE, .chain = PP_CHAIN_SHIM}};
	interpreter = (struct file){.id = LIBRARY_FILE, .python = &python_info};
	process_python = (struct process_python){.file = &interpreter};
	incomplete.record.segment_count = 1;
	incomplete.record.native_stored = incomplete.record.native_count = 2;
	incomplete.record.since_segment = 2;
	incomplete.record.foldable = 1;
	for (unsigned int raw = 0; raw < 2; raw++) {
		struct pp_stack_record *record;

		finisher.raw = raw;
		record = unwind(&process);
		finisher.raw = false;
		assert_int_equal(record->native_stored, 9 + 2 * raw);
		assert_int_equal(record->frame[2 * raw].kind, PP_FRAME_SEGMENT);
		free(record);
	}
}

static void user_unwind_leave_out__keeps_the_kernel_sides_frames(void **state)
{
	const struct decoded_incomplete decoded = {.record = &incomplete.record,
						   .python = incomplete.frame,
						   .native = incomplete.frame,
						   .stack = (const uint8_t *)incomplete.copy};
	struct pp_stack_record *left_out, *whole;

	(void)state;
	incomplete.record.native_stored = incomplete.record.native_count = 1;
	incomplete.frame[0] = (struct pp_frame){.where = 5, .kind = PP_FRAME_NATIVE, .what = 1};
	assert_int_equal(user_unwind_leave_out(&finisher, &decoded, &left_out), 0);
	assert_int_equal(left_out->stop, PP_STOP_LEFT_OUT);
	assert_int_equal(left_out->native_stored, 1);
	assert_int_equal(left_out->frame[0].where, 5);
	assert_int_equal(left_out->hash & 1, 1);
	/* A whole stack of the same frames is another one. */
	incomplete.record.stop = PP_STOP_ROOT;
	whole = unwind(&process);
	assert_int_not_equal(left_out->hash, whole->hash);
	/* So is one that was left out with another frame. */
	free(whole);
	incomplete.frame[0].where = 6;
	assert_int_equal(user_unwind_leave_out(&finisher, &decoded, &whole), 0);
	assert_int_not_equal(left_out->hash, whole->hash);
	free(whole);
	free(left_out);
}

/* At the root nothing is left to walk; without a process nothing can be. */
static void user_unwind__keeps_what_was_walked(void **state)
{
	struct pp_stack_record *record;

	(void)state;
	incomplete.record.native_stored = 2;
	incomplete.record.native_count = 2;
	incomplete.frame[0] = (struct pp_frame){.where = 5, .kind = PP_FRAME_NATIVE, .what = 1};
	incomplete.frame[1] = (struct pp_frame){.where = 6, .kind = PP_FRAME_NATIVE, .what = 1};
	incomplete.record.stop = PP_STOP_ROOT;
	record = unwind(&process);
	assert_int_equal(record->native_stored, 2);
	assert_int_equal(record->stop, PP_STOP_ROOT);
	assert_int_equal(named, 1);
	free(record);
	incomplete.record.stop = PP_STOP_NO_ROWS;
	record = unwind(NULL);
	assert_int_equal(record->native_stored, 2);
	assert_int_equal(record->frame[1].where, 6);
	assert_int_equal(record->stop, PP_STOP_NO_ROWS);
	assert_int_equal(named, 1);
	free(record);
	/* The walk goes on behind them. */
	record = unwind(&process);
	assert_int_equal(record->native_stored, 2 + 9);
	assert_int_equal(record->stop, PP_STOP_FINISHED);
	assert_int_equal(named, 2);
	free(record);
}

static uint64_t hash_of_record(void)
{
	struct pp_stack_record *record = unwind(&process);
	const uint64_t hash = record->hash;

	free(record);
	return hash;
}

static uint64_t hash_of(enum pp_frame_kind kind, uint32_t generation, uint64_t where)
{
	incomplete.record.stop = PP_STOP_ROOT;
	incomplete.record.key.id.generation = generation;
	incomplete.record.python_stored = 1;
	incomplete.record.python_count = 1;
	incomplete.frame[0] = (struct pp_frame){.where = where, .kind = (uint16_t)kind};
	return hash_of_record();
}

/* The address of a code object says something in one process only. */
static void user_unwind__equal_stacks_have_one_hash(void **state)
{
	const uint64_t hash = hash_of(PP_FRAME_PYTHON, 3, 77),
		       raw = hash_of(PP_FRAME_PYTHON_RAW, 3, 77);
	uint64_t other;

	(void)state;
	assert_int_equal(hash_of(PP_FRAME_PYTHON, 3, 77), hash);
	assert_int_equal(hash_of(PP_FRAME_PYTHON, 4, 77), hash);
	assert_int_not_equal(hash_of(PP_FRAME_PYTHON, 3, 78), hash);
	assert_int_equal(hash_of(PP_FRAME_PYTHON_RAW, 3, 77), raw);
	assert_int_not_equal(hash_of(PP_FRAME_PYTHON_RAW, 4, 77), raw);
	assert_int_not_equal(hash_of(PP_FRAME_PYTHON_RAW, 3, 78), raw);
	/* So does all of each frame. */
	incomplete.record.python_stored = incomplete.record.python_count = 2;
	incomplete.frame[1] = (struct pp_frame){.where = 77, .kind = PP_FRAME_PYTHON};
	other = hash_of_record();
	incomplete.frame[1].what = 1;
	assert_int_not_equal(hash_of_record(), other);
}

/* The leaf is JIT code, which an activation of the interpreter called. */
static void setup_stuck(uint32_t agreed, uint32_t asked)
{
	setup(NULL);
	is_python = true;
	python_info =
		(struct python_info){.bpf = {.file = INTERPRETER_FILE, .chain = PP_CHAIN_SHIM}};
	interpreter = (struct file){.id = INTERPRETER_FILE,
				    .python = &python_info,
				    .python_index = PYTHON_INDEX,
				    .resync = {.cfa_minus_anchor = 0x40,
					       .fp_offset = -16,
					       .agreed = agreed,
					       .asked = asked}};
	process_python = (struct process_python){.file = &interpreter};
	found = (struct pp_resync){.cfa_minus_anchor = 0x40, .fp_offset = -16};
	incomplete.record.pc = ANONYMOUS + 0x20;
	incomplete.record.segment_count = 1;
}

static void expect_stuck(void)
{
	struct pp_stack_record *record = unwind(&process);

	assert_int_equal(record->stop, PP_STOP_NO_INFO);
	assert_int_equal(record->native_stored, 1);
	free(record);
}

/* Behind the JIT code a gap, the activation's Python frames, and functions 2 to 8 and 0. */
static void expect_resumed(void)
{
	struct pp_stack_record *record = unwind(&process);

	assert_int_equal(record->stop, PP_STOP_FINISHED);
	assert_int_equal(record->native_stored, 3 + 8);
	assert_int_equal(record->frame[0].kind, PP_FRAME_ANONYMOUS);
	assert_int_equal(record->frame[1].kind, PP_FRAME_GAP);
	assert_int_equal(record->frame[2].kind, PP_FRAME_SEGMENT);
	assert_int_equal(record->frame[2].where, 2);
	assert_int_equal(record->frame[3].where, 0x20f);
	free(record);
}

/* Three searches that agree teach the kernel side. */
static void user_unwind__learns_where_to_resume(void **state)
{
	(void)state;
	setup_stuck(0, 0);
	expect_stuck();
	assert_int_equal(interpreter.resync.agreed, 1);
	expect_stuck();
	assert_int_equal(interpreter.resync.agreed, 2);
	assert_int_equal(publications, 0);
	assert_int_equal(resumptions, 0);
	expect_resumed();
	assert_int_equal(searches, 3);
	assert_int_equal(publications, 1);
	assert_int_equal(published.agreed, 3);
	assert_int_equal(published.cfa_minus_anchor, 0x40);
	assert_int_equal(published.fp_offset, -16);
	/* From then on nothing is searched. */
	expect_resumed();
	assert_int_equal(searches, 3);
	assert_int_equal(interpreter.resync.asked, 3);
	assert_int_equal(resumptions, 2);
}

static void user_unwind__another_distance_is_learnt_from_the_start(void **state)
{
	(void)state;
	setup_stuck(2, 2);
	found.cfa_minus_anchor = 0x48;
	expect_stuck();
	assert_int_equal(interpreter.resync.agreed, 1);
	assert_int_equal(interpreter.resync.cfa_minus_anchor, 0x48);
	setup_stuck(2, 2);
	found.fp_offset = -24;
	expect_stuck();
	assert_int_equal(interpreter.resync.agreed, 1);
	assert_int_equal(interpreter.resync.fp_offset, -24);
	/* Nothing found changes nothing. */
	setup_stuck(2, 2);
	search_result = -ENOENT;
	expect_stuck();
	assert_int_equal(interpreter.resync.agreed, 2);
	assert_int_equal(interpreter.resync.asked, 3);
}

/* The words that the walk used tell whether the stack changed, those of the search do not. */
static void user_unwind__search_is_no_part_of_the_walk(void **state)
{
	struct pp_stack_record *record;

	(void)state;
	setup_stuck(2, 2);
	incomplete.record.stack_bytes = 4 * 8;
	live[2]++;
	expect_resumed();
	assert_int_equal(searches, 1);
	setup_stuck(2, 2);
	incomplete.record.stack_bytes = 4 * 8;
	live[3] = pc_of(9);
	record = unwind(&process);
	assert_int_equal(searches, 1);
	assert_int_equal(record->stop, PP_STOP_TORN);
	/* The JIT code, the gap, the activation, and function 2, whose caller is in doubt. */
	assert_int_equal(record->native_stored, 4);
	free(record);
}

static void user_unwind__resumes_at_an_anchor_of_an_interpreter(void **state)
{
	(void)state;
	setup_stuck(3, 3);
	anchor_now = 0;
	expect_stuck();
	setup_stuck(3, 3);
	is_python = false;
	expect_stuck();
	setup_stuck(3, 3);
	incomplete.record.segment_count = 0;
	expect_stuck();
	assert_int_equal(searches + resumptions, 0);
}

/* Both words that a frame pointer leads to: the second is the return address. */
static void user_unwind__each_word_of_a_step_is_watched(void **state)
{
	(void)state;
	for (unsigned int changed = 0; changed <= 2; changed++) {
		setup(NULL);
		rules[1] = (struct pp_rule){.kind = PP_RULE_NO_INFO};
		incomplete.record.fp = (uint64_t)live;
		incomplete.record.stack_bytes = 2 * 8;
		if (changed)
			live[changed - 1]++;
		expect(unwind(&process), changed ? 1 : 9,
		       changed ? PP_STOP_TORN : PP_STOP_FINISHED);
	}
}

static void user_unwind__searches_64_times(void **state)
{
	(void)state;
	setup_stuck(0, 63);
	expect_stuck();
	assert_int_equal(searches, 1);
	assert_int_equal(interpreter.resync.asked, 64);
	expect_stuck();
	assert_int_equal(searches, 1);
	assert_int_equal(interpreter.resync.asked, 64);
}

/* A distance that leads nowhere is searched again. */
static void user_unwind__doubts_a_distance_that_fails(void **state)
{
	(void)state;
	setup_stuck(3, 5);
	resume_result = -EFAULT;
	expect_stuck();
	assert_int_equal(interpreter.resync.agreed, 2);
	assert_int_equal(interpreter.resync.asked, 4);
	setup_stuck(3, 0);
	resume_result = -EFAULT;
	expect_stuck();
	assert_int_equal(interpreter.resync.agreed, 2);
	assert_int_equal(interpreter.resync.asked, 0);
}

/* The kernel side was stuck already and has pushed the frame: it is resumed without a walk. */
static void user_unwind__resumes_only_where_code_says_nothing(void **state)
{
	static const struct {
		enum pp_stop stop;
		bool resumes;
	} cases[] = {{PP_STOP_NO_INFO, true},  {PP_STOP_READ_FAULT, true},
		     {PP_STOP_BAD_RULE, true}, {PP_STOP_NOT_MOVING, true},
		     {PP_STOP_NO_ROWS, false}, {PP_STOP_MAX_TIME, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pp_stack_record *record;

		setup_stuck(3, 3);
		incomplete.record.pc = pc_of(1);
		incomplete.record.stop = (uint8_t)cases[i].stop;
		/* A walk passes the anchor by and never comes to resume. */
		record = unwind(&process);
		assert_int_equal(record->stop, PP_STOP_FINISHED);
		assert_int_equal(resumptions, cases[i].resumes);
		free(record);
	}
}

/* A caller outside of all mappings was no return address; a leaf there is new code. */
static void user_unwind__caller_in_no_mapping_is_resumed(void **state)
{
	struct pp_stack_record *record;

	(void)state;
	setup_stuck(3, 3);
	incomplete.record.pc = 0x999999;
	incomplete.record.is_leaf = 0;
	record = unwind(&process);
	assert_int_equal(record->stop, PP_STOP_FINISHED);
	assert_int_equal(resumptions, 1);
	free(record);
	setup_stuck(3, 3);
	incomplete.record.pc = 0x999999;
	record = unwind(&process);
	assert_int_equal(record->stop, PP_STOP_NO_MAPPING);
	assert_int_equal(resumptions, 0);
	free(record);
}

/* Rows of a site that could not be found must not stay in the cache for the one that was there. */
static void user_unwind__failed_look_up_leaves_no_trace(void **state)
{
	const uint64_t walked = pc_of(3) - 1, least = LIBRARY + FIRST_WITHOUT_ROWS * 0x100;

	(void)state;
	for (uint64_t pc = least; pc < least + 0x1000; pc++) {
		setup_stuck(2, 2);
		search_pc[0] = walked;
		search_pc[1] = pc;
		expect_resumed();
	}
}

#if !defined(__aarch64__)
/* A call has pushed where it returns to: as long as that word is there, so is what lies beyond. */
static void user_unwind__return_address_of_the_innermost_call_is_watched(void **state)
{
	(void)state;
	for (int changed = 0; changed < 2; changed++) {
		struct pp_stack_record *record;

		setup(NULL);
		incomplete.record.is_leaf = 0;
		incomplete.record.pc = pc_of(2); /* at live[1] */
		incomplete.record.sp = incomplete.record.stack_start = (uint64_t)&live[2];
		incomplete.record.stack_bytes = 0;
		live[1] += (uint64_t)changed << 63;
		record = unwind(&process);
		assert_int_equal(record->stop, changed ? PP_STOP_TORN : PP_STOP_FINISHED);
		assert_int_equal(record->native_stored, changed ? 0 : 8);
		free(record);
	}
}

/* The two frames walked might be folded by a segment that is in doubt. */
static void user_unwind__torn_stack_is_without_what_may_be_folded(void **state)
{
	struct pp_stack_record *record;

	(void)state;
	incomplete.record.is_leaf = 0;
	incomplete.record.pc = pc_of(2);
	incomplete.record.sp = incomplete.record.stack_start = (uint64_t)&live[2];
	incomplete.record.stack_bytes = 0;
	incomplete.record.native_stored = incomplete.record.native_count = 3;
	incomplete.record.since_segment = 2;
	incomplete.record.foldable = 1;
	live[1]++;
	record = unwind(&process);
	assert_int_equal(record->stop, PP_STOP_TORN);
	assert_int_equal(record->native_stored, 1);
	assert_int_equal(record->native_count, 1);
	free(record);
}
#endif

/* A walk of Python that ran out of time has not begun with the native frames. */
static void user_unwind__python_frames_are_resumed_first(void **state)
{
	static struct python_frames frames = {.segment_count = 1,
					      .segment = {{.frames = 2}, {.frames = 9}}};
	struct pp_stack_record *record;

	(void)state;
	frames.segment[0].anchor = ANCHOR;
	setup_stuck(3, 3);
	anchor_now = 0; /* what the record has is of before */
	incomplete.record.segment_count = 0;
	incomplete.record.py_stop = PP_PY_STOP_MAX_TIME;
	expect_stuck();
	assert_int_equal(python_resumptions, 1);
	python_frames = &frames;
	expect_resumed();
	assert_int_equal(python_resumptions, 2);
	/* They ended by themselves; the native walk had begun; there is no interpreter. */
	incomplete.record.py_stop = PP_PY_STOP_ROOT;
	expect_stuck();
	incomplete.record.py_stop = PP_PY_STOP_MAX_TIME;
	incomplete.record.native_stored = incomplete.record.native_count = 1;
	record = unwind(&process);
	assert_int_equal(record->native_stored, 1 + 1);
	free(record);
	incomplete.record.native_stored = incomplete.record.native_count = 0;
	is_python = false;
	expect_stuck();
	assert_int_equal(python_resumptions, 2);
}

static void user_unwind_describe__hands_both_parts_over(void **state)
{
	struct pp_stack_record *record;

	(void)state;
	incomplete.record.python_stored = incomplete.record.python_count = 1;
	record = unwind(&process);
	described = record;
	assert_int_equal(user_unwind_describe(NULL, record), -ENOSPC);
	free(record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(user_unwind__walks_the_copy_to_the_root, setup),
		cmocka_unit_test_setup(user_unwind__goes_on_in_the_live_stack, setup),
		cmocka_unit_test_setup(user_unwind__that_the_stack_changed_keeps_the_copys_frames,
				       setup),
		cmocka_unit_test_setup(user_unwind__process_that_ended_has_the_copy_only, setup),
		cmocka_unit_test_setup(user_unwind__stack_that_is_gone_counts_as_changed, setup),
		cmocka_unit_test_setup(user_unwind__equal_addresses_are_looked_up_once, setup),
		cmocka_unit_test_setup(user_unwind__code_without_a_file_is_anonymous, setup),
		cmocka_unit_test_setup(user_unwind__code_without_a_file_has_no_rule, setup),
		cmocka_unit_test_setup(user_unwind__memory_that_cannot_be_read_ends_the_walk,
				       setup),
		cmocka_unit_test_setup(user_unwind__leafs_rule_may_use_any_register, setup),
		cmocka_unit_test_setup(user_unwind__raw_keeps_the_interpreters_frames, setup),
		cmocka_unit_test_setup(user_unwind_leave_out__keeps_the_kernel_sides_frames, setup),
		cmocka_unit_test_setup(user_unwind__keeps_what_was_walked, setup),
		cmocka_unit_test_setup(user_unwind__equal_stacks_have_one_hash, setup),
		cmocka_unit_test_setup(user_unwind__learns_where_to_resume, setup),
		cmocka_unit_test_setup(user_unwind__another_distance_is_learnt_from_the_start,
				       setup),
		cmocka_unit_test_setup(user_unwind__search_is_no_part_of_the_walk, setup),
		cmocka_unit_test_setup(user_unwind__resumes_at_an_anchor_of_an_interpreter, setup),
		cmocka_unit_test_setup(user_unwind__each_word_of_a_step_is_watched, setup),
		cmocka_unit_test_setup(user_unwind__searches_64_times, setup),
		cmocka_unit_test_setup(user_unwind__doubts_a_distance_that_fails, setup),
		cmocka_unit_test_setup(user_unwind__resumes_only_where_code_says_nothing, setup),
		cmocka_unit_test_setup(user_unwind__caller_in_no_mapping_is_resumed, setup),
		cmocka_unit_test_setup(user_unwind__failed_look_up_leaves_no_trace, setup),
#if !defined(__aarch64__)
		cmocka_unit_test_setup(user_unwind__return_address_of_the_innermost_call_is_watched,
				       setup),
		cmocka_unit_test_setup(user_unwind__torn_stack_is_without_what_may_be_folded,
				       setup),
#endif
		cmocka_unit_test_setup(user_unwind__python_frames_are_resumed_first, setup),
		cmocka_unit_test_setup(user_unwind_describe__hands_both_parts_over, setup),
	};

	return cmocka_run_group_tests_name("finish/user_unwind", tests, NULL, NULL);
}
