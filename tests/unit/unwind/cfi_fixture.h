/* SPDX-License-Identifier: BSD-2-Clause */
/* Hand-made unwind information (build_elf.h), opened, and what its rules are compared with. */
#ifndef TESTS_CFI_FIXTURE_H
#define TESTS_CFI_FIXTURE_H

#include "unwind/cfi.h"

#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>

#include "build_elf.h"

/* version 1, "zR", code 1, data -8, RA 16, pcrel sdata4; CFA rsp+8, RA at CFA-8 */
#define X86_CIE "\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"
#define X86_SIGNAL_CIE "\x01zRS\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"
/* version 1, "zR", code 4, data -8, RA x30; CFA sp+0 */
#define ARM_CIE "\x01zR\0\x04\x78\x1e\x01\x1b\x0c\x1f\x00"
#define TEXT BUILT_TEXT
#define BYTES(literal) literal, sizeof(literal) - 1

struct fixture {
	struct built_elf elf;
	struct elf_image *image;
	struct cfi *cfi; /* NULL when the result is not 0 */
};

static inline int open_elf(struct fixture *fixture)
{
	fixture->cfi = NULL;
	assert_int_equal(elf_image_from_memory(fixture->elf.data, BUILT_SIZE, &fixture->image), 0);
	return cfi_open(fixture->image, &fixture->cfi);
}

static inline void open_fixture(struct fixture *fixture, uint16_t machine,
				struct frame_builder *frame)
{
	put_u32(frame, 0);
	build_elf(&fixture->elf, machine, NULL, 0, ".eh_frame", frame->data, frame->size);
	assert_int_equal(open_elf(fixture), 0);
}

static inline void close_fixture(struct fixture *fixture)
{
	cfi_free(fixture->cfi);
	elf_image_free(fixture->image);
}

/* Expects the rule that holds at vaddr. */
static inline void expect_rule(struct fixture *fixture, uint64_t vaddr, struct pp_rule expected)
{
	struct pp_rule rule;

	assert_int_equal(cfi_rule_at(fixture->cfi, vaddr, &rule), 0);
	if (memcmp(&rule, &expected, sizeof(rule)))
		print_message("%lx: kind %d reg %d cfa %d add %d fp %d %d ra %d %d\n", vaddr,
			      rule.kind, rule.cfa_register, rule.cfa_offset, rule.cfa_add,
			      rule.fp_kind, rule.fp_offset, rule.ra_kind, rule.ra_offset);
	assert_memory_equal(&rule, &expected, sizeof(rule));
}

/* The same, also by compiling the range, in which `bad_expected` FDEs are damaged. */
static inline void expect_compiled(struct fixture *fixture, const char *what, uint64_t vaddr,
				   struct pp_rule expected, size_t bad_expected)
{
	struct cfi_rows rows = {0};
	size_t bad;

	assert_int_equal(cfi_compile(fixture->cfi, vaddr, vaddr + 1, &rows, &bad), 0);
	if (rows.count != 1 || rows.row[0].vaddr != vaddr || bad != bad_expected ||
	    memcmp(&rows.row[0].rule, &expected, sizeof(expected)))
		print_message("%s: %zu rows, %zu damaged\n", what, rows.count, bad);
	expect_rule(fixture, vaddr, expected);
	assert_int_equal(rows.count, 1);
	assert_int_equal(rows.row[0].vaddr, vaddr);
	assert_memory_equal(&rows.row[0].rule, &expected, sizeof(expected));
	assert_int_equal(bad, bad_expected);
	free(rows.row);
}

/* A rule of x86-64; CFA = rsp + offset. */
#define RULE(...) {.ra_offset = -8, __VA_ARGS__}
#define SP(offset) RULE(.kind = PP_RULE_CFA_SP, .cfa_offset = (offset))

#endif
