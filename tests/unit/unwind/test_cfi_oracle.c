/* SPDX-License-Identifier: BSD-2-Clause */
/* Evaluates our rules and libdw's location expressions on the same synthetic registers and memory,
 * and compares the resulting numbers, not the form of the rules. */
#include "unwind/cfi.h"

#include "base/clock.h"

#include <cmocka.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>

#define PCS_PER_FILE 5000
#define MAX_PADDING 16
#define STACK_VALUES 16

struct oracle {
	struct elf_image *image;
	struct cfi *cfi;
	Elf *elf;
	Dwarf_CFI *dwarf;
	int fp, sp, ra;
	uint64_t random;
	/* what was seen */
	int compared, gaps, paddings, signals, stops, plts, derefs, others;
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 16;
}

static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 31) * 0x7fb5d329728ea185ULL;
	return (value ^ value >> 27) * 0x81dadef4bc2dd44dULL;
}

/* Registers look like a stack's, so that sums do not wrap. */
static uint64_t register_value(uint64_t seed, uint64_t reg, uint64_t pc,
			       const struct oracle *oracle)
{
	if ((int)reg == oracle->ra && oracle->ra == 16)
		return pc;
	return 0x7f0000000000 + (mix(seed + reg) & 0xfffffff8);
}

static uint64_t memory(uint64_t address)
{
	return mix(address) & 0x7fffffffffff;
}

/* operand[0] = operand[0] op operand[1] */
static bool binary(uint8_t op, uint64_t *operand)
{
	switch (op) {
	case DW_OP_plus:
		operand[0] += operand[1];
		return true;
	case DW_OP_minus:
		operand[0] -= operand[1];
		return true;
	case DW_OP_and:
		operand[0] &= operand[1];
		return true;
	case DW_OP_ge:
		operand[0] = (int64_t)operand[0] >= (int64_t)operand[1];
		return true;
	case DW_OP_shl:
		operand[0] <<= operand[1] & 63;
		return true;
	default:
		return false;
	}
}

/* What a DWARF location says.  false: an operation that no test file should need. */
static bool evaluate(const struct oracle *oracle, uint64_t seed, uint64_t pc, uint64_t cfa,
		     const Dwarf_Op *ops, size_t count, uint64_t *ret_value, bool *ret_is_value)
{
	uint64_t stack[STACK_VALUES];
	int depth = 0;

	*ret_is_value = false;
	for (size_t i = 0; i < count; i++) {
		uint8_t op = ops[i].atom;

		if (depth >= STACK_VALUES - 1)
			return false;
		if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
			stack[depth++] =
				register_value(seed, op - DW_OP_breg0, pc, oracle) + ops[i].number;
		else if (op == DW_OP_bregx)
			stack[depth++] =
				register_value(seed, ops[i].number, pc, oracle) + ops[i].number2;
		else if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
			stack[depth++] = op - DW_OP_lit0;
		else if (op == DW_OP_const1u || op == DW_OP_const1s || op == DW_OP_const2u ||
			 op == DW_OP_const2s)
			stack[depth++] = ops[i].number;
		else if (op == DW_OP_call_frame_cfa)
			stack[depth++] = cfa;
		else if (op == DW_OP_stack_value)
			*ret_is_value = true;
		else if (depth >= 1 && op == DW_OP_plus_uconst)
			stack[depth - 1] += ops[i].number;
		else if (depth >= 1 && op == DW_OP_deref)
			stack[depth - 1] = memory(stack[depth - 1]);
		else if (depth >= 2 && binary(op, &stack[depth - 2]))
			depth--;
		else
			return false;
	}
	if (!depth)
		return false;
	*ret_value = stack[depth - 1];
	return true;
}

static uint64_t rule_cfa(const struct oracle *oracle, const struct pp_rule *rule, uint64_t seed,
			 uint64_t pc)
{
	uint64_t sp = register_value(seed, (uint64_t)oracle->sp, pc, oracle);
	uint64_t fp = register_value(seed, (uint64_t)oracle->fp, pc, oracle);
	uint64_t any = register_value(seed, rule->cfa_register, pc, oracle);

	switch (rule->kind) {
	case PP_RULE_CFA_SP:
		return sp + (uint64_t)rule->cfa_offset;
	case PP_RULE_CFA_FP:
		return fp + (uint64_t)rule->cfa_offset;
	case PP_RULE_CFA_REGISTER:
		return any + (uint64_t)rule->cfa_offset;
	case PP_RULE_CFA_DEREF:
		return memory(any + (uint64_t)rule->cfa_offset) + (uint64_t)rule->cfa_add;
	case PP_RULE_PLT:
		return sp + 8 + ((pc & 15) >= (uint64_t)rule->cfa_offset) * 8;
	default:
		fail_msg("no CFA in a rule of kind %d", rule->kind);
		return 0;
	}
}

/* libdw on one register of the caller: how it was saved, and the value that this gives. */
enum saved { SAVED_SAME, SAVED_UNDEFINED, SAVED_AT, SAVED_OTHER };
static enum saved truth_register(const struct oracle *oracle, Dwarf_Frame *frame, int reg,
				 uint64_t seed, uint64_t pc, uint64_t cfa, uint64_t *ret_value)
{
	Dwarf_Op memory_ops[3], *ops;
	bool is_value;
	size_t count;

	assert_int_equal(dwarf_frame_register(frame, reg, memory_ops, &ops, &count), 0);
	if (!count)
		return ops ? SAVED_UNDEFINED : SAVED_SAME;
	if (!evaluate(oracle, seed, pc, cfa, ops, count, ret_value, &is_value) || is_value)
		return SAVED_OTHER;
	*ret_value = memory(*ret_value);
	return SAVED_AT;
}

static void check_fp(const struct oracle *oracle, Dwarf_Frame *frame, const struct pp_rule *rule,
		     uint64_t seed, uint64_t pc, uint64_t cfa)
{
	uint64_t fp = register_value(seed, (uint64_t)oracle->fp, pc, oracle), truth = 0, ours = 0;
	enum saved saved = truth_register(oracle, frame, oracle->fp, seed, pc, cfa, &truth);

	switch (rule->fp_kind) {
	case PP_FP_SAME:
		if (saved != SAVED_SAME)
			fail_msg("pc %lx: fp is not the same (%d)", pc, saved);
		return;
	case PP_FP_AT_CFA:
		ours = memory(cfa + (uint64_t)rule->fp_offset);
		break;
	case PP_FP_AT_FP:
		ours = memory(fp + (uint64_t)rule->fp_offset);
		break;
	case PP_FP_UNDEFINED:
		if (saved != SAVED_UNDEFINED && saved != SAVED_OTHER)
			fail_msg("pc %lx: fp is not undefined (%d)", pc, saved);
		return;
	}
	if (saved != SAVED_AT || ours != truth)
		fail_msg("pc %lx: fp %lx, libdw (%d) %lx", pc, ours, saved, truth);
}

static void check_ra(const struct oracle *oracle, Dwarf_Frame *frame, const struct pp_rule *rule,
		     uint64_t seed, uint64_t pc, uint64_t cfa)
{
	uint64_t truth = 0, ours;
	enum saved saved = truth_register(oracle, frame, oracle->ra, seed, pc, cfa, &truth);

	if (rule->ra_kind == PP_RA_REGISTER && rule->ra_offset) {
		Dwarf_Op memory_ops[3], *ops;
		size_t count;

		assert_int_equal(dwarf_frame_register(frame, oracle->ra, memory_ops, &ops, &count),
				 0);
		if (count != 1 || ops[0].atom != DW_OP_regx ||
		    ops[0].number != (uint64_t)rule->ra_offset)
			fail_msg("pc %lx: the return address is not in %d", pc, rule->ra_offset);
		return;
	}
	if (rule->ra_kind == PP_RA_REGISTER) {
		if (saved != SAVED_SAME)
			fail_msg("pc %lx: the return address is not in LR (%d)", pc, saved);
		return;
	}
	ours = memory(cfa + (uint64_t)(int64_t)rule->ra_offset);
	if (saved != SAVED_AT || ours != truth)
		fail_msg("pc %lx: return address %lx, libdw (%d) %lx", pc, ours, saved, truth);
}

static void check_no_info(struct oracle *oracle, Dwarf_Frame *frame, uint64_t pc, uint64_t seed)
{
	uint64_t truth_cfa = 0, value;
	bool is_value;
	Dwarf_Op *ops;
	size_t count;

	/* Only what no rule can say may be given up. */
	if (!dwarf_frame_cfa(frame, &ops, &count) && count &&
	    evaluate(oracle, seed, pc, 0, ops, count, &truth_cfa, &is_value) && count <= 2 &&
	    truth_register(oracle, frame, oracle->ra, seed, pc, truth_cfa, &value) == SAVED_AT &&
	    value == memory(truth_cfa - 8))
		fail_msg("pc %lx: no rule, though libdw has one", pc);
	oracle->others++;
}

static void check_frame(struct oracle *oracle, Dwarf_Frame *frame, const struct pp_rule *rule,
			uint64_t pc)
{
	const uint64_t seed = next_random(&oracle->random);
	uint64_t cfa, truth_cfa, value;
	bool is_signal, is_value;
	Dwarf_Op *ops;
	size_t count;

	dwarf_frame_info(frame, NULL, NULL, &is_signal);
	assert_int_equal(rule->kind == PP_RULE_SIGNAL, is_signal);
	oracle->signals += is_signal;
	if (is_signal)
		return;
	if (truth_register(oracle, frame, oracle->ra, seed, pc, 0, &value) == SAVED_UNDEFINED) {
		assert_int_equal(rule->kind, PP_RULE_STOP);
		oracle->stops++;
		return;
	}
	if (rule->kind == PP_RULE_NO_INFO) {
		check_no_info(oracle, frame, pc, seed);
		return;
	}
	assert_int_equal(dwarf_frame_cfa(frame, &ops, &count), 0);
	assert_true(evaluate(oracle, seed, pc, 0, ops, count, &truth_cfa, &is_value));
	cfa = rule_cfa(oracle, rule, seed, pc);
	if (cfa != truth_cfa)
		fail_msg("pc %lx: CFA %lx, libdw %lx", pc, cfa, truth_cfa);
	check_fp(oracle, frame, rule, seed, pc, cfa);
	check_ra(oracle, frame, rule, seed, pc, cfa);
	oracle->compared++;
	oracle->plts += rule->kind == PP_RULE_PLT;
	oracle->derefs += rule->kind == PP_RULE_CFA_DEREF || rule->fp_kind == PP_FP_AT_FP;
}

static void check_pc(struct oracle *oracle, uint64_t pc)
{
	struct pp_rule rule, before;
	Dwarf_Frame *frame = NULL;

	assert_int_equal(cfi_rule_at(oracle->cfi, pc, &rule), 0);
	if (!dwarf_cfi_addrframe(oracle->dwarf, pc, &frame)) {
		check_frame(oracle, frame, &rule, pc);
		free(frame);
		return;
	}
	oracle->gaps++;
	if (rule.kind == PP_RULE_NO_INFO)
		return;
	/* Padding keeps the rule of the code before it. */
	for (uint64_t back = 1; back <= MAX_PADDING; back++) {
		if (dwarf_cfi_addrframe(oracle->dwarf, pc - back, &frame))
			continue;
		free(frame);
		cfi_rule_at(oracle->cfi, pc - back, &before);
		assert_memory_equal(&rule, &before, sizeof(rule));
		oracle->paddings++;
		return;
	}
	fail_msg("pc %lx: a rule where no FDE is near", pc);
}

static uint64_t random_pc(struct oracle *oracle)
{
	const struct elf_image *image = oracle->image;
	uint64_t total = 0, at;

	for (size_t i = 0; i < image->segment_count; i++)
		if (image->segment[i].executable)
			total += image->segment[i].file_size;
	at = next_random(&oracle->random) % total;
	for (size_t i = 0; i < image->segment_count; i++) {
		if (!image->segment[i].executable)
			continue;
		if (at < image->segment[i].file_size)
			return image->segment[i].vaddr + at;
		at -= image->segment[i].file_size;
	}
	return 0;
}

static void open_oracle(struct oracle *oracle, struct elf_image *image, Elf *elf)
{
	*oracle = (struct oracle){.image = image, .elf = elf, .random = 12345};
	oracle->fp = image->machine == EM_AARCH64 ? 29 : 6;
	oracle->sp = image->machine == EM_AARCH64 ? 31 : 7;
	oracle->ra = image->machine == EM_AARCH64 ? 30 : 16;
	assert_non_null(elf);
	oracle->dwarf = dwarf_getcfi_elf(elf);
	assert_non_null(oracle->dwarf);
	assert_int_equal(cfi_open(image, &oracle->cfi), 0);
}

/* Rows of the whole file say the same as the single rules. */
static void check_rows(struct oracle *oracle, const char *name)
{
	struct cfi_rows rows = {0};
	uint64_t started = mono_ns();
	size_t bad_fdes, low, high;
	struct pp_rule rule;

	assert_int_equal(cfi_compile(oracle->cfi, oracle->image->min_vaddr,
				     oracle->image->max_vaddr, &rows, &bad_fdes),
			 0);
	print_message("%s: %zu FDEs, %zu rows compiled in %.1f ms; %d compared, %d in gaps, "
		      "%d padding, %d signal, %d stop, %d plt, %d expressions, %d without rule\n",
		      name, cfi_fde_count(oracle->cfi), rows.count,
		      (double)(mono_ns() - started) / NS_PER_MS, oracle->compared, oracle->gaps,
		      oracle->paddings, oracle->signals, oracle->stops, oracle->plts,
		      oracle->derefs, oracle->others);
	assert_int_equal(bad_fdes, 0);
	assert_int_equal(rows.row[0].vaddr, oracle->image->min_vaddr);
	for (size_t i = 1; i < rows.count; i++) {
		assert_true(rows.row[i].vaddr > rows.row[i - 1].vaddr);
		assert_memory_not_equal(&rows.row[i].rule, &rows.row[i - 1].rule, sizeof(rule));
	}
	for (int i = 0; i < PCS_PER_FILE; i++) {
		uint64_t pc = random_pc(oracle);

		for (low = 0, high = rows.count; high - low > 1;) {
			size_t middle = (low + high) / 2;

			if (rows.row[middle].vaddr <= pc)
				low = middle;
			else
				high = middle;
		}
		cfi_rule_at(oracle->cfi, pc, &rule);
		assert_memory_equal(&rows.row[low].rule, &rule, sizeof(rule));
	}
	free(rows.row);
}

static void compare_image(struct elf_image *image, Elf *elf, const char *name)
{
	struct oracle oracle;
	struct cfi_range range;

	open_oracle(&oracle, image, elf);
	for (int i = 0; i < PCS_PER_FILE; i++)
		check_pc(&oracle, random_pc(&oracle));
	/* The places where rows are most likely wrong: the first bytes of functions. */
	for (int i = 0; i < PCS_PER_FILE / 10; i++) {
		if (cfi_fde_find(oracle.cfi, random_pc(&oracle), &range))
			continue;
		for (uint64_t pc = range.low; pc < range.high && pc < range.low + 8; pc++)
			check_pc(&oracle, pc);
		check_pc(&oracle, range.high - 1);
	}
	check_rows(&oracle, name);
	assert_true(oracle.compared > 0 || oracle.signals > 0);
	dwarf_cfi_end(oracle.dwarf);
	cfi_free(oracle.cfi);
}

static void compare_file(const char *path)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf;

	assert_true(fd >= 0);
	assert_int_equal(elf_image_open(fd, &image), 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	compare_image(image, elf, strrchr(path, '/') + 1);
	elf_end(elf);
}

/* The first file that matches any of the patterns. */
static void compare_first(const char *const *pattern, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		glob_t found;

		if (!glob(pattern[i], GLOB_TILDE, NULL, &found)) {
			compare_file(found.gl_pathv[found.gl_pathc - 1]);
			globfree(&found);
			return;
		}
		globfree(&found);
	}
	print_message("skipped: no file %s\n", pattern[0]);
	skip();
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *path)
{
	(void)size;
	if (!strstr(info->dlpi_name, "libc.so"))
		return 0;
	*(const char **)path = info->dlpi_name;
	return 1;
}

static void cfi_rule_at__libc_agrees_with_libdw(void **state)
{
	const char *path = NULL;

	(void)state;
	if (!dl_iterate_phdr(find_libc, &path)) {
		print_message("skipped: libc is linked in\n");
		skip();
	}
	compare_file(path);
}

static void cfi_rule_at__libcrypto_agrees_with_libdw(void **state)
{
	static const char *const pattern[] = {"/usr/lib/*/libcrypto.so.[13]*",
					      "/usr/lib64/libcrypto.so.[13]*"};

	(void)state;
	compare_first(pattern, ARRAY_SIZE(pattern));
}

static void cfi_rule_at__python_agrees_with_libdw(void **state)
{
	static const char *const pattern[] = {"~/.pyenv/versions/3.12*/lib/libpython3.12.so.1.0",
					      "/usr/lib/*/libpython3.[0-9]*.so.1.0",
					      "/usr/bin/python3.[0-9]*[0-9]"};

	(void)state;
	compare_first(pattern, ARRAY_SIZE(pattern));
}

static void cfi_rule_at__stack_realigning_code_agrees_with_libdw(void **state)
{
	static const char *const pattern[] = {"/usr/lib/*/libavcodec.so.*",
					      "/usr/lib/*/libx265.so.*",
					      "/usr/lib/*/libopenblas*.so*",
					      "/usr/lib/*/libgmp.so.*", "/usr/lib/*/libm.so.6"};

	(void)state;
	compare_first(pattern, ARRAY_SIZE(pattern));
}

static void cfi_rule_at__aarch64_libc_agrees_with_libdw(void **state)
{
	static const char *const pattern[] = {"/usr/aarch64-linux-gnu/lib/libc.so.6",
					      "/usr/lib/aarch64-linux-gnu/libc.so.6"};

	(void)state;
	compare_first(pattern, ARRAY_SIZE(pattern));
}

static void cfi_rule_at__aarch64_libstdcxx_agrees_with_libdw(void **state)
{
	static const char *const pattern[] = {"/usr/aarch64-linux-gnu/lib/libstdc++.so.6",
					      "/usr/lib/aarch64-linux-gnu/libstdc++.so.6",
					      "/usr/aarch64-linux-gnu/lib/libgcc_s.so.1"};

	(void)state;
	compare_first(pattern, ARRAY_SIZE(pattern));
}

static void cfi_rule_at__vdso_agrees_with_libdw(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	const Elf64_Ehdr *vdso = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	size_t size;
	Elf *elf;

	(void)state;
	if (!vdso) {
		print_message("skipped: no vDSO\n");
		skip();
	}
	size = vdso->e_shoff + (size_t)vdso->e_shentsize * vdso->e_shnum;
	assert_int_equal(elf_image_from_memory(vdso, size, &image), 0);
	elf_version(EV_CURRENT);
	elf = elf_memory((char *)vdso, size);
	compare_image(image, elf, "vdso");
	elf_end(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cfi_rule_at__libc_agrees_with_libdw),
		cmocka_unit_test(cfi_rule_at__libcrypto_agrees_with_libdw),
		cmocka_unit_test(cfi_rule_at__python_agrees_with_libdw),
		cmocka_unit_test(cfi_rule_at__stack_realigning_code_agrees_with_libdw),
		cmocka_unit_test(cfi_rule_at__aarch64_libc_agrees_with_libdw),
		cmocka_unit_test(cfi_rule_at__aarch64_libstdcxx_agrees_with_libdw),
		cmocka_unit_test(cfi_rule_at__vdso_agrees_with_libdw),
	};

	return cmocka_run_group_tests_name("unwind/cfi against libdw", tests, NULL, NULL);
}
