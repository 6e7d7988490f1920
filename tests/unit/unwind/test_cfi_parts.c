/* SPDX-License-Identifier: BSD-2-Clause */
/* Files with more than one description of their code: .debug_frame beside .eh_frame, compressed
 * sections, Go's table, the ends of coroutines. */
#include <errno.h>
#include <zlib.h>

#include "cfi_fixture.h"

#define DEBUG_LOW 0x40U
/* CIE: CFA rsp+8; FDE of 64 bytes at TEXT + DEBUG_LOW whose CFA is rsp+24 */
static const char debug_frame[] =
	"\x14\0\0\0\xff\xff\xff\xff\x04\0\x08\0\x01\x78\x10\x0c\x07\x08\x90\x01\0\0\0\0"
	"\x18\0\0\0\0\0\0\0\x40\0\x01\0\0\0\0\0\x40\0\0\0\0\0\0\0\x0e\x18\0\0";

static const struct pp_rule no_info = {.kind = PP_RULE_NO_INFO}, stop = {.kind = PP_RULE_STOP};

/* .eh_frame has [TEXT, TEXT + 16) and, behind a gap, 16 bytes more. */
static void build_eh_frame(struct fixture *fixture)
{
	struct frame_builder frame = {0};
	size_t cie = CIE(&frame, X86_CIE);

	FDE(&frame, cie, TEXT, 16, "\x0e\x10");
	FDE(&frame, cie, TEXT + 0x100, 16, "\x0e\x20");
	put_u32(&frame, 0);
	build_elf(&fixture->elf, EM_X86_64, NULL, 0, ".eh_frame", frame.data, frame.size);
}

static void expect_both(struct fixture *fixture)
{
	expect_compiled(fixture, "eh_frame", TEXT, (struct pp_rule)SP(16), 0);
	expect_compiled(fixture, "behind it", TEXT + 0x20, no_info, 0);
	expect_compiled(fixture, "debug_frame", TEXT + DEBUG_LOW, (struct pp_rule)SP(24), 0);
	expect_compiled(fixture, "its end", TEXT + DEBUG_LOW + 63, (struct pp_rule)SP(24), 0);
	expect_compiled(fixture, "behind that", TEXT + DEBUG_LOW + 64, no_info, 0);
	expect_compiled(fixture, "eh_frame again", TEXT + 0x100, (struct pp_rule)SP(32), 0);
	expect_compiled(fixture, "behind all", TEXT + 0x110, no_info, 0);
}

static void cfi__code_that_eh_frame_lacks_is_in_debug_frame(void **state)
{
	struct cfi_rows rows = {0};
	struct cfi_range range;
	struct fixture fixture;

	(void)state;
	build_eh_frame(&fixture);
	build_section(&fixture.elf, ".debug_frame", debug_frame, sizeof(debug_frame) - 1, 0);
	assert_int_equal(open_elf(&fixture), 0);
	assert_int_equal(cfi_fde_count(fixture.cfi), 3);
	expect_both(&fixture);
	/* All at once, in order: two functions, the third between them, what none covers. */
	assert_int_equal(cfi_compile(fixture.cfi, TEXT - 16, TEXT + 0x200, &rows, NULL), 0);
	assert_int_equal(rows.count, 7);
	for (size_t i = 1; i < rows.count; i++)
		assert_true(rows.row[i].vaddr > rows.row[i - 1].vaddr);
	assert_int_equal(rows.row[3].vaddr, TEXT + DEBUG_LOW);
	assert_int_equal(rows.row[3].rule.cfa_offset, 24);
	free(rows.row);
	assert_int_equal(cfi_fde_find(fixture.cfi, TEXT + 0x50, &range), 0);
	assert_int_equal(range.low, TEXT + DEBUG_LOW);
	assert_int_equal(cfi_fde_at(fixture.cfi, 2, &range), 0);
	assert_int_equal(range.low, TEXT + DEBUG_LOW);
	assert_int_equal(cfi_fde_find(fixture.cfi, TEXT + 0x90, &range), -ENOENT);
	close_fixture(&fixture);
}

static void cfi__compressed_section_is_read(void **state)
{
	uint8_t bytes[512] = {0};
	Elf64_Chdr header = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = sizeof(debug_frame) - 1};
	uLongf size = sizeof(bytes) - sizeof(header);
	struct fixture fixture;

	(void)state;
	assert_int_equal(compress(bytes + sizeof(header), &size, (const Bytef *)debug_frame,
				  sizeof(debug_frame) - 1),
			 Z_OK);
	size += sizeof(header);
	memcpy(bytes, &header, sizeof(header));
	build_eh_frame(&fixture);
	build_section(&fixture.elf, ".debug_frame", bytes, size, SHF_COMPRESSED);
	assert_int_equal(open_elf(&fixture), 0);
	expect_both(&fixture);
	close_fixture(&fixture);
	/* Damaged, of another size, by another method, larger than what is read: without it. */
	for (size_t i = 0; i < 4; i++) {
		uint8_t *damaged = fixture.elf.data + BUILT_SECOND;
		const uint64_t large = (8U << 20) + 1;
		const uint32_t zstd = 2;

		build_section(&fixture.elf, ".debug_frame", bytes, size, SHF_COMPRESSED);
		if (i == 0)
			damaged[sizeof(header) + 8] ^= 0xff;
		else if (i == 1)
			damaged[8]--;
		else if (i == 2)
			memcpy(damaged, &zstd, sizeof(zstd));
		else
			memcpy(damaged + 8, &large, sizeof(large));
		assert_int_equal(open_elf(&fixture), 0);
		assert_int_equal(cfi_fde_count(fixture.cfi), 2);
		expect_rule(&fixture, TEXT + DEBUG_LOW, no_info);
		close_fixture(&fixture);
	}
}

static void cfi__nothing_calls_what_a_coroutine_returns_to(void **state)
{
	struct fixture fixture;
	struct cfi_rows rows = {0};

	(void)state;
	build_eh_frame(&fixture);
	assert_int_equal(open_elf(&fixture), 0);
	cfi_add_root(fixture.cfi, TEXT + 0x100);
	cfi_add_root(fixture.cfi, TEXT + 8);
	expect_rule(&fixture, TEXT + 0xfe, no_info);
	expect_rule(&fixture, TEXT + 0xff, stop); /* where its caller is looked up */
	expect_rule(&fixture, TEXT + 0x100, (struct pp_rule)SP(32));
	assert_int_equal(cfi_compile(fixture.cfi, TEXT, TEXT + 0x200, &rows, NULL), 0);
	assert_int_equal(rows.count, 7);
	assert_int_equal(rows.row[1].vaddr, TEXT + 7);
	assert_int_equal(rows.row[1].rule.kind, PP_RULE_STOP);
	assert_int_equal(rows.row[2].vaddr, TEXT + 8);
	assert_int_equal(rows.row[2].rule.cfa_offset, 16);
	assert_int_equal(rows.row[4].vaddr, TEXT + 0xff);
	assert_int_equal(rows.row[5].rule.cfa_offset, 32);
	free(rows.row);
	close_fixture(&fixture);
}

/* ---- Go ---- */

#define GO_NAMES 72U
#define GO_STEPS 512U
#define GO_FUNCTIONS 1024U
#define GO_RECORDS 512U /* behind GO_FUNCTIONS: the functions' records */

/* A table of functions that follow each other in TEXT. */
struct go_builder {
	uint8_t data[4096];
	uint32_t count, names, steps;
	uint64_t end;
};

static void go_put(struct go_builder *go, size_t at, const void *bytes, size_t size)
{
	memcpy(go->data + at, bytes, size);
}

/* steps: pairs of how far the stack pointer moves (zigzag) and for how many bytes. */
static void go_add(struct go_builder *go, const char *name, uint32_t size, uint8_t flags,
		   const char *steps, size_t steps_size)
{
	const uint32_t entry = (uint32_t)(go->end - TEXT), record = GO_RECORDS + 64 * go->count;
	const uint32_t head[5] = {entry, go->names, 0, 0, go->steps};
	const uint32_t row[3] = {entry, record, entry + size};

	go_put(go, GO_NAMES + go->names, name, strlen(name) + 1);
	go_put(go, GO_STEPS + go->steps, steps, steps_size);
	go_put(go, GO_FUNCTIONS + record, head, sizeof(head));
	go->data[GO_FUNCTIONS + record + 41] = flags;
	go_put(go, GO_FUNCTIONS + 8 * (size_t)go->count, row, sizeof(row));
	go->names += (uint32_t)strlen(name) + 1;
	go->steps += (uint32_t)steps_size + 1;
	go->end += size;
	go->count++;
}
#define GO_ADD(go, name, size, flags, steps) go_add(go, name, size, flags, steps, sizeof(steps) - 1)

static void go_finish(struct go_builder *go)
{
	static const uint8_t head[] = {0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8};
	const uint64_t words[8] = {go->count, 0, TEXT, GO_NAMES, 0, 0, GO_STEPS, GO_FUNCTIONS};

	go_put(go, 0, head, sizeof(head));
	go_put(go, 8, words, sizeof(words));
}

/* main.work: push %rbp at its begin, 32 bytes more, both gone 4 bytes before the end. */
#define WORK_STEPS "\x02\x01\x10\x03\x40\x38\x4f\x04"

static void build_go(struct fixture *fixture, uint16_t machine)
{
	struct go_builder go = {.end = TEXT};

	GO_ADD(&go, "main.work", 64, 0, WORK_STEPS);
	GO_ADD(&go, "runtime.goexit", 32, 1, "\x02\x20");
	GO_ADD(&go, "runtime.cgocall", 64, 0, "\x02\x01\x10\x01\x60\x3e");
	GO_ADD(&go, "runtime.asmcgocall", 64, 2, "\x02\x40");
	GO_ADD(&go, "runtime.mcall", 64, 2, "\x02\x40");
	GO_ADD(&go, "runtime.morestack", 64, 2, "\x02\x40");
	GO_ADD(&go, "runtime.cgocallback", 64, 2, "\x02\x01\x10\x3f");
	GO_ADD(&go, "runtime.sigreturn__sigaction", 32, 0, "\x02\x20");
	go_finish(&go);
	build_elf(&fixture->elf, machine, NULL, 0, ".gopclntab", go.data, sizeof(go.data));
	fixture->elf.data[TEXT] = 0x55;
	fixture->elf.data[TEXT + 96] = 0x55;
	fixture->elf.data[TEXT + 352] = 0x55;
	memcpy(fixture->elf.data + TEXT + 416, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
	assert_int_equal(open_elf(fixture), 0);
}

static void cfi__go_frames_end_where_its_table_says(void **state)
{
	struct pp_rule pushed = SP(16), full = SP(48);
	struct cfi_range range;
	struct fixture fixture;

	(void)state;
	build_go(&fixture, EM_X86_64);
	assert_int_equal(cfi_fde_count(fixture.cfi), 8);
	pushed.fp_kind = full.fp_kind = PP_FP_AT_CFA;
	pushed.fp_offset = full.fp_offset = -16;
	expect_compiled(&fixture, "before the push", TEXT, (struct pp_rule)SP(8), 0);
	expect_compiled(&fixture, "behind it", TEXT + 1, pushed, 0);
	expect_compiled(&fixture, "the whole frame", TEXT + 4, full, 0);
	expect_compiled(&fixture, "the whole frame", TEXT + 59, full, 0);
	expect_compiled(&fixture, "the frame is gone", TEXT + 60, (struct pp_rule)SP(8), 0);
	expect_compiled(&fixture, "the first function", TEXT + 64, stop, 0);
	expect_compiled(&fixture, "before all", TEXT - 1, no_info, 0);
	expect_compiled(&fixture, "behind all", TEXT + 448, no_info, 0);
	assert_int_equal(cfi_fde_find(fixture.cfi, TEXT + 70, &range), 0);
	assert_int_equal(range.low, TEXT + 64);
	assert_int_equal(range.high, TEXT + 96);
	close_fixture(&fixture);
}

static void cfi__go_functions_of_two_stacks(void **state)
{
	const struct pp_rule unknown = {.kind = PP_RULE_CFA_SP,
					.cfa_offset = 8,
					.ra_kind = PP_RA_REGISTER,
					.ra_offset = PP_REG_SP};
	struct pp_rule by_caller =
		RULE(.kind = PP_RULE_CFA_REGISTER, .cfa_register = PP_REG_FP, .cfa_offset = 8 - 56);
	struct pp_rule by_frame = RULE(.kind = PP_RULE_CFA_REGISTER, .cfa_register = PP_REG_FP,
				       .cfa_offset = 16, .fp_kind = PP_FP_AT_CFA, .fp_offset = -16);
	struct fixture fixture;

	(void)state;
	build_go(&fixture, EM_X86_64);
	expect_compiled(&fixture, "asmcgocall: cgocall has 56 bytes", TEXT + 180, by_caller, 0);
	expect_compiled(&fixture, "mcall never returns", TEXT + 240, stop, 0);
	expect_compiled(&fixture, "nobody knows who calls morestack", TEXT + 300, unknown, 0);
	expect_compiled(&fixture, "cgocallback has a frame", TEXT + 400, by_frame, 0);
	expect_rule(&fixture, TEXT + 414, by_frame);
	expect_rule(&fixture, TEXT + 415, (struct pp_rule){.kind = PP_RULE_SIGNAL});
	expect_rule(&fixture, TEXT + 416, (struct pp_rule){.kind = PP_RULE_SIGNAL});
	close_fixture(&fixture);
}

static void cfi__go_frames_of_aarch64_have_the_return_address_at_sp(void **state)
{
	const struct pp_rule full = {.kind = PP_RULE_CFA_SP,
				     .cfa_offset = 40,
				     .ra_offset = -40,
				     .fp_kind = PP_FP_AT_CFA,
				     .fp_offset = -48};
	struct fixture fixture;

	(void)state;
	build_go(&fixture, EM_AARCH64);
	expect_rule(&fixture, TEXT,
		    (struct pp_rule){.kind = PP_RULE_CFA_SP, .ra_kind = PP_RA_REGISTER});
	expect_rule(&fixture, TEXT + 8, full);
	close_fixture(&fixture);
}

static void cfi__damaged_go_tables_say_nothing(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		int result;
	} cases[] = {
		{8, 0, -ENODATA},				       /* no functions */
		{8, 1ULL << 40, -ENODATA},			       /* too many */
		{24, 0, -ENODATA},				       /* where is its code? */
		{24, 1ULL << 40, -ENODATA},			       /* not there */
		{64, 1ULL << 40, -ENODATA}, {0, 0xffffffff, -ENODATA}, /* another version */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture fixture;

		build_go(&fixture, EM_X86_64);
		close_fixture(&fixture);
		memcpy(fixture.elf.data + BUILT_FRAME + cases[i].at, &cases[i].value,
		       sizeof(cases[i].value));
		assert_int_equal(open_elf(&fixture), cases[i].result);
		close_fixture(&fixture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cfi__code_that_eh_frame_lacks_is_in_debug_frame),
		cmocka_unit_test(cfi__compressed_section_is_read),
		cmocka_unit_test(cfi__nothing_calls_what_a_coroutine_returns_to),
		cmocka_unit_test(cfi__go_frames_end_where_its_table_says),
		cmocka_unit_test(cfi__go_functions_of_two_stacks),
		cmocka_unit_test(cfi__go_frames_of_aarch64_have_the_return_address_at_sp),
		cmocka_unit_test(cfi__damaged_go_tables_say_nothing),
	};

	return cmocka_run_group_tests_name("unwind/cfi_parts", tests, NULL, NULL);
}
