/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Compares the agent's walk with that of bpf/lib on random rules and stacks: the results must be
 * equal. */
#include "host.h"

#include <lib/walk.bpf.h>

#include "finish/stack_finish.h"

#define SP (STACK + 0x1000)
#define STACK_WORDS 256U
#define SEEDS 10000U
#define TRAMPOLINE 0x7fffffffe000ULL /* mapped, but in no file or set of mappings */

static uint64_t random_state;

/* xorshift64* */
static uint32_t draw(uint32_t below)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (uint32_t)(random_state * 0x2545f4914f6cdd1dULL >> 33) % below;
}

/* Mostly what compilers make, now and then what they do not. */
static struct pp_rule draw_rule(void)
{
	struct pp_rule usual = {.kind = PP_RULE_CFA_SP,
				.cfa_offset = 8 + 8 * (int32_t)draw(4),
				.fp_kind = (uint8_t)draw(PP_FP_AT_CFA + 1),
				.fp_offset = -16,
				.ra_offset = -8};
	static const uint8_t kinds[] = {PP_RULE_CFA_SP, PP_RULE_CFA_SP,	   PP_RULE_CFA_SP,
					PP_RULE_CFA_FP, PP_RULE_CFA_DEREF, PP_RULE_CFA_REGISTER,
					PP_RULE_PLT,	PP_RULE_SIGNAL,	   PP_RULE_NO_INFO,
					PP_RULE_STOP};
	struct pp_rule rule = {.kind = kinds[draw(sizeof(kinds))],
			       .cfa_register = (uint8_t)draw(PP_REG_COUNT),
			       .cfa_offset = 8 * (int32_t)draw(24),
			       .fp_kind = (uint8_t)draw(PP_FP_UNDEFINED + 1),
			       .fp_offset = -8 * (int32_t)draw(8),
			       .ra_offset = -8,
			       .cfa_add = (int16_t)(8 * draw(4))};

	if (draw(4))
		return usual;
	if (rule.kind == PP_RULE_NO_INFO || rule.kind == PP_RULE_STOP ||
	    rule.kind == PP_RULE_SIGNAL)
		return (struct pp_rule){.kind = rule.kind};
	if (rule.kind == PP_RULE_CFA_DEREF)
		rule.cfa_register = draw(2) ? PP_REG_FP : PP_REG_SP;
	if (!draw(8)) {
		rule.ra_kind = PP_RA_REGISTER;
		rule.ra_offset = (int16_t)draw(PP_REG_COUNT);
	} else if (!draw(16)) {
		rule.ra_kind = PP_RA_UNDEFINED;
	}
	return rule;
}

static uint64_t draw_word(void)
{
	switch (draw(16)) {
	case 0:
		return SP + 8 * draw(STACK_WORDS);
	case 1:
	case 3:
	case 4:
		return draw(4) ? ANONYMOUS + draw(ANONYMOUS_BYTES) : draw(1000);
	case 2:
		return interpreter_pc(draw(FUNCTIONS));
	default:
		return library_pc(draw(FUNCTIONS));
	}
}

static int find(void *context, uint64_t pc, uint32_t *ret_file, uint64_t *ret_vaddr,
		struct pp_rule *ret_rule)
{
	(void)context;
	*ret_rule = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	if (pc >= LIBRARY && pc < LIBRARY + FILE_BYTES) {
		*ret_file = LIBRARY_FILE;
		*ret_vaddr = pc - LIBRARY;
		*ret_rule = *library_rule((uint32_t)(*ret_vaddr / FUNCTION_BYTES));
	} else if (pc >= INTERPRETER && pc < INTERPRETER + FILE_BYTES) {
		*ret_file = INTERPRETER_FILE;
		*ret_vaddr = pc - INTERPRETER;
		*ret_rule = *interpreter_rule((uint32_t)(*ret_vaddr / FUNCTION_BYTES));
	} else if (pc >= ANONYMOUS && pc < ANONYMOUS + ANONYMOUS_BYTES) {
		*ret_file = PP_FILE_ANONYMOUS;
		*ret_vaddr = pc;
	} else {
		return -ENOENT;
	}
	return 0;
}

static int read_memory(void *context, uint64_t address, void *buffer, size_t size)
{
	(void)context;
	return (int)bpf_probe_read_user(buffer, (uint32_t)size, (const void *)address);
}

static struct pp_frame finished[PP_MAX_STEPS];
static uint32_t finished_count;

static bool on_frame(void *context, uint32_t file, uint64_t vaddr, uint64_t low, uint64_t cfa)
{
	(void)context;
	(void)low;
	(void)cfa;
	finished[finished_count++] =
		(struct pp_frame){.where = vaddr,
				  .what = file,
				  .kind = file == PP_FILE_ANONYMOUS ? PP_FRAME_ANONYMOUS
					  : file == PP_FILE_NONE    ? PP_FRAME_GAP
								    : PP_FRAME_NATIVE};
	return true;
}

#define RETURNS 4U
static struct return_instance instance[RETURNS];
static struct pp_return returns[RETURNS];
static struct uprobe_task utask;

/* Return probes: some words that are return addresses, or not, are those of the kernel's
 * trampoline, which lies outside of all files. */
static void replace_words(void)
{
	for (uint32_t i = 0; i < RETURNS; i++) {
		returns[i] = (struct pp_return){.stack = SP + 8 * draw(STACK_WORDS / 8),
						.address = library_pc(draw(FUNCTIONS))};
		instance[i] =
			(struct return_instance){.stack = returns[i].stack,
						 .orig_ret_vaddr = returns[i].address,
						 .next = i + 1 < RETURNS ? &instance[i + 1] : NULL};
		if (draw(8))
			put_word(returns[i].stack,
				 draw(2) ? ANONYMOUS + draw(ANONYMOUS_BYTES) : TRAMPOLINE);
	}
	utask.return_instances = draw(4) ? instance : NULL;
	host->task.utask = draw(4) ? &utask : NULL;
}

/* Anonymous code: many calls, prologues and ends of functions. */
static void draw_code(void)
{
	static const uint8_t often[] = {0xe8, 0xff, 0xd0, 0x10, 0x15, 0x54, 0x24, 0xc3,
					0x55, 0x48, 0x89, 0xe5, 0xf3, 0x90, 0x00, 0xff};
	uint8_t code[ANONYMOUS_BYTES];

	for (uint32_t i = 0; i < sizeof(code); i++)
		code[i] = draw(4) ? often[draw(sizeof(often))] : (uint8_t)draw(256);
	put_bytes(ANONYMOUS, code, sizeof(code));
}

static void begin(uint32_t seed, struct finish_state *ret_state)
{
	struct pp_walk *w = &host->walk;

	random_state = seed;
	for (uint32_t i = 0; i < 2 * FUNCTIONS; i++)
		host->rule[i] = draw_rule();
	for (uint32_t i = 0; i < STACK_WORDS; i++)
		put_word(SP + 8 * i, draw_word());
	replace_words();
	draw_code();
	*ret_state = (struct finish_state){.pc = draw(2) ? library_pc(draw(FUNCTIONS))
							 : ANONYMOUS + draw(ANONYMOUS_BYTES),
					   .sp = SP,
					   .fp = draw_word(),
					   .is_leaf = true};
	for (uint32_t i = 0; i < PP_REG_COUNT; i++)
		ret_state->registers[i] = draw_word();
	walk_reset(w, 0, bpf_ktime_get_ns(), PP_SAMPLE_WALK_NS);
	w->context.map_version = seed; /* sites of the last one are of other rules */
	w->pc = ret_state->pc;
	w->sp = ret_state->sp;
	w->fp = ret_state->fp;
	memcpy(w->registers, ret_state->registers, sizeof(w->registers));
	w->is_leaf = 1;
	finished_count = 0;
}

/* Of several things that are wrong with one frame, either may be seen first. */
static enum pp_stop stuck(enum pp_stop stop)
{
	return stop == PP_STOP_BAD_RULE || stop == PP_STOP_NOT_MOVING ? PP_STOP_READ_FAULT : stop;
}

/* Where both ended: what the next frame would be found by. */
static void expect_state(uint32_t seed, const struct finish_state *twin)
{
	const struct pp_walk *w = &host->walk;

	if (w->pc != twin->pc || w->sp != twin->sp || w->fp != twin->fp ||
	    !w->is_leaf != !twin->is_leaf)
		fail_msg("seed %u: pc %llx sp %llx fp %llx leaf %u, the agent %lx %lx %lx %u", seed,
			 w->pc, w->sp, w->fp, w->is_leaf, twin->pc, twin->sp, twin->fp,
			 twin->is_leaf);
	if (twin->is_leaf)
		assert_memory_equal(w->registers, twin->registers, sizeof(twin->registers));
}

static void walk__both_find_the_same_frames_and_stop(void **state)
{
	struct finish_callbacks callbacks = {
		.find = find, .read = read_memory, .frame = on_frame, .returns = returns};
	struct finish_state twin;
	uint32_t deepest = 0;
	enum pp_stop stop;

	(void)state;
	/* Each twice: the second time by what is known of each address. */
	for (uint32_t turn = 2; turn < 2 * (SEEDS + 1); turn++) {
		const uint32_t seed = turn / 2;

		begin(seed, &twin);
		callbacks.return_count = host->task.utask && utask.return_instances ? RETURNS : 0;
		stop = stack_finish(&twin, &callbacks);
		for (uint32_t i = 0; i < PP_MAX_STEPS && !native_step(); i++)
			continue;
		if (stuck(host->walk.stop) != stuck(stop) ||
		    host->walk.native_count != finished_count)
			fail_msg("seed %u: %u frames and stop %u, the agent %u and %u", seed,
				 host->walk.native_count, host->walk.stop, finished_count, stop);
		for (uint32_t i = 0; i < finished_count; i++)
			assert_frame(native_frame(i), finished[i].kind, finished[i].where,
				     finished[i].what);
		if (stop == PP_STOP_ROOT)
			expect_state(seed, &twin);
		if (finished_count > deepest)
			deepest = finished_count;
	}
	/* Not all end at once. */
	assert_true(deepest > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(walk__both_find_the_same_frames_and_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
