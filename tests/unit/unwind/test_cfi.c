/* SPDX-License-Identifier: BSD-2-Clause */
#include "cfi_fixture.h"

#include <errno.h>

/* def_cfa_offset 16; rbp at CFA-16 */
#define PUSHED_RBP "\x0e\x10\x86\x02"

static const struct pp_rule no_info = {.kind = PP_RULE_NO_INFO};
static const struct pp_rule stop = {.kind = PP_RULE_STOP};
static const struct pp_rule signal_frame = {.kind = PP_RULE_SIGNAL};
static const struct pp_rule entry = {.kind = PP_RULE_CFA_SP, .cfa_offset = 8, .ra_offset = -8};
static const struct pp_rule pushed_rbp = {.kind = PP_RULE_CFA_SP,
					  .cfa_offset = 16,
					  .fp_kind = PP_FP_AT_CFA,
					  .fp_offset = -16,
					  .ra_offset = -8};
static const struct pp_rule rbp_frame = {.kind = PP_RULE_CFA_FP,
					 .cfa_offset = 16,
					 .fp_kind = PP_FP_AT_CFA,
					 .fp_offset = -16,
					 .ra_offset = -8};

static void cfi_rule_at__follows_a_function_with_two_exits(void **state)
{
	struct frame_builder frame = {0};
	struct fixture fixture;
	size_t cie = CIE(&frame, X86_CIE);

	(void)state;
	/* push %rbp; mov %rsp,%rbp; …; remember; pop; ret; restore; args_size; rbp restored */
	FDE(&frame, cie, TEXT, 0x40,
	    "\x41" PUSHED_RBP
	    "\x43\x0d\x06\x4c\x0a\xc6\x0c\x07\x08\x41\x0b\x2e\x10\x4f\xc6\x0c\x07\x08");
	open_fixture(&fixture, EM_X86_64, &frame);
	expect_rule(&fixture, TEXT, entry);
	expect_rule(&fixture, TEXT + 1, pushed_rbp);
	expect_rule(&fixture, TEXT + 3, pushed_rbp);
	expect_rule(&fixture, TEXT + 4, rbp_frame);
	expect_rule(&fixture, TEXT + 0xf, rbp_frame);
	expect_rule(&fixture, TEXT + 0x10, entry);
	expect_rule(&fixture, TEXT + 0x11, rbp_frame);
	expect_rule(&fixture, TEXT + 0x1f, rbp_frame);
	expect_rule(&fixture, TEXT + 0x20, entry);
	expect_rule(&fixture, TEXT + 0x3f, entry);
	expect_rule(&fixture, TEXT + 0x40, no_info);
	expect_rule(&fixture, TEXT - 1, no_info);
	expect_rule(&fixture, UINT64_MAX, no_info);
	close_fixture(&fixture);
}

static void cfi_rule_at__function_set_outermost_has_no_caller(void **state)
{
	struct frame_builder frame = {0};
	struct fixture fixture;
	size_t cie = CIE(&frame, X86_CIE);

	(void)state;
	FDE(&frame, cie, TEXT, 0x40, "\x41" PUSHED_RBP);
	FDE(&frame, cie, TEXT + 0x40, 0x40, "\x41" PUSHED_RBP);
	open_fixture(&fixture, EM_X86_64, &frame);
	cfi_set_outermost(fixture.cfi, TEXT + 0x40);
	expect_rule(&fixture, TEXT + 0x3f, pushed_rbp);
	expect_rule(&fixture, TEXT + 0x40, stop);
	expect_rule(&fixture, TEXT + 0x7f, stop);
	expect_rule(&fixture, TEXT + 0x80, no_info);
	close_fixture(&fixture);
}

static void cfi_rule_at__long_advances_and_extended_registers_are_read(void **state)
{
	struct frame_builder frame = {0};
	struct fixture fixture;
	size_t cie = CIE(&frame, X86_CIE);
	struct pp_rule expected = pushed_rbp;

	(void)state;
	/* advance_loc1 0x80; offset_extended rbp; advance_loc2 0x100; def_cfa_sf rsp -3*-8;
	 * offset_extended_sf rbp 3*-8; advance_loc4 0x200; GNU_negative_offset_extended rbp;
	 * advance; restore_extended rbp; same_value r12 */
	FDE(&frame, cie, TEXT, 0x400,
	    "\x02\x80\x05\x06\x02\x0e\x10"
	    "\x03\x00\x01\x12\x07\x7d\x11\x06\x03"
	    "\x04\x00\x02\x00\x00\x2f\x06\x05"
	    "\x41\x06\x06\x08\x0c");
	open_fixture(&fixture, EM_X86_64, &frame);
	expect_rule(&fixture, TEXT + 0x7f, entry);
	expect_rule(&fixture, TEXT + 0x80, expected);
	expected.cfa_offset = 24;
	expected.fp_offset = -24;
	expect_rule(&fixture, TEXT + 0x180, expected);
	expected.fp_offset = 40;
	expect_rule(&fixture, TEXT + 0x380, expected);
	expected.fp_kind = PP_FP_SAME;
	expected.fp_offset = 0;
	expect_rule(&fixture, TEXT + 0x381, expected);
	close_fixture(&fixture);
}

static void cfi_rule_at__expressions_of_known_shape_become_rules(void **state)
{
	struct frame_builder frame = {0};
	struct fixture fixture;
	size_t cie = CIE(&frame, X86_CIE);

	(void)state;
	/* CFA = *(rbp-8); then with rbp at *(rbp+0): code that realigns its stack */
	FDE(&frame, cie, TEXT, 16, "\x0f\x03\x76\x78\x06\x41\x10\x06\x02\x76\x00");
	/* CFA = *(rsp+16) + 8, by plus_uconst, by lit8 plus, and by const1s -8 minus */
	FDE(&frame, cie, TEXT + 16, 16,
	    "\x0f\x05\x77\x10\x06\x23\x08\x41\x0f\x05\x77\x10\x06\x38\x22"
	    "\x41\x0f\x06\x77\x10\x06\x09\xf8\x1c");
	/* CFA = r10 + 0 */
	FDE(&frame, cie, TEXT + 32, 16, "\x0c\x0a\x00");
	/* lazy and plain PLT */
	FDE(&frame, cie, TEXT + 48, 16, "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22");
	FDE(&frame, cie, TEXT + 64, 16, "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3a\x2a\x33\x24\x22");
	/* CFA = *(rbp) * something: no rule */
	FDE(&frame, cie, TEXT + 80, 16, "\x0f\x05\x76\x00\x06\x32\x1e");
	/* RA in rdi */
	FDE(&frame, cie, TEXT + 96, 16, "\x09\x10\x05");
	/* RA undefined; and 1 byte later rbp undefined */
	FDE(&frame, cie, TEXT + 112, 16, "\x0a\x07\x10\x41\x0b\x07\x06");
	/* rbp = CFA - 16 as a value */
	FDE(&frame, cie, TEXT + 128, 16, "\x14\x06\x02");
	open_fixture(&fixture, EM_X86_64, &frame);
	expect_rule(&fixture, TEXT,
		    (struct pp_rule){.kind = PP_RULE_CFA_DEREF,
				     .cfa_register = 6,
				     .cfa_offset = -8,
				     .ra_offset = -8});
	expect_rule(&fixture, TEXT + 1,
		    (struct pp_rule){.kind = PP_RULE_CFA_DEREF,
				     .cfa_register = 6,
				     .cfa_offset = -8,
				     .fp_kind = PP_FP_AT_FP,
				     .ra_offset = -8});
	for (int i = 0; i < 3; i++)
		expect_rule(&fixture, TEXT + 16 + i,
			    (struct pp_rule){.kind = PP_RULE_CFA_DEREF,
					     .cfa_register = 7,
					     .cfa_offset = 16,
					     .cfa_add = 8,
					     .ra_offset = -8});
	expect_rule(&fixture, TEXT + 32,
		    (struct pp_rule){
			    .kind = PP_RULE_CFA_REGISTER, .cfa_register = 10, .ra_offset = -8});
	expect_rule(&fixture, TEXT + 48,
		    (struct pp_rule){.kind = PP_RULE_PLT, .cfa_offset = 11, .ra_offset = -8});
	expect_rule(&fixture, TEXT + 64,
		    (struct pp_rule){.kind = PP_RULE_PLT, .cfa_offset = 10, .ra_offset = -8});
	expect_rule(&fixture, TEXT + 80, no_info);
	expect_rule(&fixture, TEXT + 96,
		    (struct pp_rule){.kind = PP_RULE_CFA_SP,
				     .ra_kind = PP_RA_REGISTER,
				     .cfa_offset = 8,
				     .ra_offset = 5});
	expect_rule(&fixture, TEXT + 112, stop);
	expect_rule(&fixture, TEXT + 113,
		    (struct pp_rule){.kind = PP_RULE_CFA_SP,
				     .cfa_offset = 8,
				     .fp_kind = PP_FP_UNDEFINED,
				     .ra_offset = -8});
	expect_rule(&fixture, TEXT + 128,
		    (struct pp_rule){.kind = PP_RULE_CFA_SP,
				     .cfa_offset = 8,
				     .fp_kind = PP_FP_UNDEFINED,
				     .ra_offset = -8});
	close_fixture(&fixture);
}

static void cfi_rule_at__aarch64_leaf_frame_and_signed_return_address(void **state)
{
	struct frame_builder frame = {0};
	struct fixture fixture;
	size_t cie = CIE(&frame, ARM_CIE);

	(void)state;
	/* paciasp: negate_ra_state; stp x29,x30,[sp,-48]!: offset 48, x29 CFA-48, x30 CFA-40;
	 * mov x29,sp: CFA x29+48; epilogue; autiasp */
	FDE(&frame, cie, TEXT, 0x40,
	    "\x41\x2d\x41\x0e\x30\x9d\x06\x9e\x05\x41\x0d\x1d\x44\x0c\x1f\x00\xdd\xde\x41\x2d");
	FDE(&frame, cie, TEXT + 0x40, 0x40, "\x07\x1e");
	open_fixture(&fixture, EM_AARCH64, &frame);
	expect_rule(&fixture, TEXT,
		    (struct pp_rule){.kind = PP_RULE_CFA_SP, .ra_kind = PP_RA_REGISTER});
	expect_rule(&fixture, TEXT + 8,
		    (struct pp_rule){.kind = PP_RULE_CFA_SP,
				     .cfa_offset = 48,
				     .fp_kind = PP_FP_AT_CFA,
				     .fp_offset = -48,
				     .ra_offset = -40});
	expect_rule(&fixture, TEXT + 12,
		    (struct pp_rule){.kind = PP_RULE_CFA_FP,
				     .cfa_offset = 48,
				     .fp_kind = PP_FP_AT_CFA,
				     .fp_offset = -48,
				     .ra_offset = -40});
	expect_rule(&fixture, TEXT + 0x20,
		    (struct pp_rule){.kind = PP_RULE_CFA_SP, .ra_kind = PP_RA_REGISTER});
	expect_rule(&fixture, TEXT + 0x40, stop);
	close_fixture(&fixture);
}

static void cfi_rule_at__padding_keeps_the_rule_and_a_gap_has_none(void **state)
{
	struct frame_builder frame = {0};
	struct fixture fixture;
	size_t cie = CIE(&frame, X86_CIE);

	(void)state;
	FDE(&frame, cie, TEXT, 4, "\x41" PUSHED_RBP);
	FDE(&frame, cie, TEXT + 20, 4, "\x41" PUSHED_RBP);
	FDE(&frame, cie, TEXT + 41, 4, "");
	open_fixture(&fixture, EM_X86_64, &frame);
	expect_rule(&fixture, TEXT + 4, pushed_rbp); /* 16 bytes */
	expect_rule(&fixture, TEXT + 19, pushed_rbp);
	expect_rule(&fixture, TEXT + 20, entry);
	expect_rule(&fixture, TEXT + 23, pushed_rbp);
	expect_rule(&fixture, TEXT + 24, no_info); /* 17 bytes */
	expect_rule(&fixture, TEXT + 40, no_info);
	expect_rule(&fixture, TEXT + 45, no_info); /* after the last */
	close_fixture(&fixture);
}

static void cfi_rule_at__signal_frame_covers_the_byte_before(void **state)
{
	struct frame_builder frame = {0};
	struct fixture fixture;
	size_t plain = CIE(&frame, X86_CIE), cie = CIE(&frame, X86_SIGNAL_CIE);
	static const uint8_t trampoline[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};

	(void)state;
	/* after padding; right after other code, but early; right after other code, not early */
	FDE(&frame, plain, TEXT, 8, "");
	FDE(&frame, cie, TEXT + 16, 16, "");
	FDE(&frame, plain, TEXT + 32, 16, "");
	FDE(&frame, cie, TEXT + 48, 16, "");
	FDE(&frame, plain, TEXT + 64, 16, "");
	FDE(&frame, cie, TEXT + 80, 16, "");
	open_fixture(&fixture, EM_X86_64, &frame);
	memcpy(fixture.elf.data + TEXT + 49, trampoline, sizeof(trampoline));
	memcpy(fixture.elf.data + TEXT + 80, trampoline, sizeof(trampoline));
	expect_rule(&fixture, TEXT + 14, entry);
	expect_rule(&fixture, TEXT + 15, signal_frame);
	expect_rule(&fixture, TEXT + 16, signal_frame);
	expect_rule(&fixture, TEXT + 31, signal_frame);
	expect_rule(&fixture, TEXT + 47, entry);
	expect_rule(&fixture, TEXT + 48, signal_frame);
	expect_rule(&fixture, TEXT + 78, entry);
	expect_rule(&fixture, TEXT + 79, signal_frame);
	close_fixture(&fixture);
}

static void cfi_rule_at__aarch64_signal_frame_covers_the_byte_before(void **state)
{
	/* mov x8,#139; svc #0 */
	static const uint32_t trampoline[] = {0xd2801168, 0xd4000001};

	(void)state;
	for (size_t damaged = 0; damaged <= sizeof(trampoline); damaged++) {
		struct frame_builder frame = {0};
		struct fixture fixture;
		size_t plain = CIE(&frame, ARM_CIE);
		size_t cie = CIE(&frame, "\x01zRS\0\x04\x78\x1e\x01\x1b\x0c\x1f\x00");
		struct pp_rule rule;

		FDE(&frame, plain, TEXT, 16, "");
		FDE(&frame, cie, TEXT + 16, 16, "");
		open_fixture(&fixture, EM_AARCH64, &frame);
		memcpy(fixture.elf.data + TEXT + 16, trampoline, sizeof(trampoline));
		if (damaged < sizeof(trampoline))
			fixture.elf.data[TEXT + 16 + damaged] ^= 1;
		expect_rule(&fixture, TEXT + 16, signal_frame);
		assert_int_equal(cfi_rule_at(fixture.cfi, TEXT + 15, &rule), 0);
		assert_int_equal(rule.kind,
				 damaged < sizeof(trampoline) ? PP_RULE_CFA_SP : PP_RULE_SIGNAL);
		close_fixture(&fixture);
	}
}

static void cfi_compile__damaged_fde_has_no_rule_and_counts(void **state)
{
	struct frame_builder frame = {0};
	struct cfi_rows rows = {0};
	struct fixture fixture;
	size_t cie = CIE(&frame, X86_CIE), bad_fdes;

	(void)state;
	FDE(&frame, cie, TEXT, 16, "\x41" PUSHED_RBP);
	FDE(&frame, cie, TEXT + 16, 16, "\x41" PUSHED_RBP "\x41\x0b"); /* restore, not remembered */
	FDE(&frame, cie, TEXT + 32, 16, "\x41\x3f");		       /* no such instruction */
	FDE(&frame, cie, TEXT + 48, 16, "\x41\x0e\x80");	       /* cut off */
	FDE(&frame, cie, TEXT + 64, 16, "");
	open_fixture(&fixture, EM_X86_64, &frame);
	assert_int_equal(cfi_compile(fixture.cfi, TEXT - 8, TEXT + 128, &rows, &bad_fdes), 0);
	assert_int_equal(bad_fdes, 3);
	assert_int_equal(rows.count, 6);
	assert_int_equal(rows.row[0].vaddr, TEXT - 8);
	assert_int_equal(rows.row[0].rule.kind, PP_RULE_NO_INFO);
	assert_int_equal(rows.row[1].vaddr, TEXT);
	assert_int_equal(rows.row[2].vaddr, TEXT + 1);
	assert_int_equal(rows.row[3].vaddr, TEXT + 16);
	assert_int_equal(rows.row[3].rule.kind, PP_RULE_NO_INFO);
	assert_int_equal(rows.row[4].vaddr, TEXT + 64);
	assert_memory_equal(&rows.row[4].rule, &entry, sizeof(entry));
	assert_int_equal(rows.row[5].vaddr, TEXT + 80);
	free(rows.row);
	close_fixture(&fixture);
}

static void cfi_compile__appends_and_begins_with_the_rule_in_force(void **state)
{
	struct frame_builder frame = {0};
	struct cfi_rows rows = {0};
	struct fixture fixture;
	size_t cie = CIE(&frame, X86_CIE);

	(void)state;
	FDE(&frame, cie, TEXT, 16, "\x41" PUSHED_RBP "\x48\x0d\x06");
	open_fixture(&fixture, EM_X86_64, &frame);
	assert_int_equal(cfi_compile(fixture.cfi, TEXT + 4, TEXT + 8, &rows, NULL), 0);
	assert_int_equal(cfi_compile(fixture.cfi, TEXT + 8, TEXT + 12, &rows, NULL), 0);
	assert_int_equal(rows.count, 3);
	assert_int_equal(rows.row[0].vaddr, TEXT + 4);
	assert_memory_equal(&rows.row[0].rule, &pushed_rbp, sizeof(pushed_rbp));
	assert_int_equal(rows.row[1].vaddr, TEXT + 8);
	assert_memory_equal(&rows.row[1].rule, &pushed_rbp, sizeof(pushed_rbp));
	assert_int_equal(rows.row[2].vaddr, TEXT + 9);
	assert_memory_equal(&rows.row[2].rule, &rbp_frame, sizeof(rbp_frame));
	free(rows.row);
	close_fixture(&fixture);
}

static void cfi_fde_find__tells_the_covering_fde_only(void **state)
{
	struct frame_builder frame = {0};
	struct fixture fixture;
	size_t cie = CIE(&frame, X86_CIE);
	struct cfi_range range = {.low = 1, .high = 2};

	(void)state;
	FDE(&frame, cie, TEXT + 64, 0, "");
	FDE(&frame, cie, TEXT + 64, 16, "");
	open_fixture(&fixture, EM_X86_64, &frame);
	assert_int_equal(cfi_fde_find(fixture.cfi, TEXT + 63, &range), -ENOENT);
	assert_int_equal(cfi_fde_find(fixture.cfi, TEXT + 80, &range), -ENOENT);
	assert_int_equal(range.low, 1);
	assert_int_equal(cfi_fde_find(fixture.cfi, TEXT + 79, &range), 0);
	assert_int_equal(range.low, TEXT + 64);
	assert_int_equal(range.high, TEXT + 80);
	close_fixture(&fixture);
}

/* Beyond 2 GiB, as a program that is linked for a fixed place. */
static void cfi_open__image_at_a_high_address_has_its_rules(void **state)
{
	const uint64_t base = 0x7f1200000000;
	struct frame_builder frame = {0};
	struct fixture fixture;
	size_t cie = CIE(&frame, X86_CIE);

	(void)state;
	FDE(&frame, cie, TEXT, 16, "\x41" PUSHED_RBP);
	put_u32(&frame, 0);
	build_elf(&fixture.elf, EM_X86_64, NULL, 0, ".eh_frame", frame.data, frame.size);
	((Elf64_Phdr *)(fixture.elf.data + sizeof(Elf64_Ehdr)))->p_vaddr = base;
	((Elf64_Shdr *)(fixture.elf.data + BUILT_SECTIONS))[2].sh_addr += base;
	assert_int_equal(open_elf(&fixture), 0);
	expect_rule(&fixture, base + TEXT, entry);
	expect_rule(&fixture, base + TEXT + 1, pushed_rbp);
	expect_rule(&fixture, TEXT + 1, no_info);
	close_fixture(&fixture);
}

/* .eh_frame_hdr: version 1; pcrel sdata4 to .eh_frame; udata4 count; datarel sdata4 table */
static void put_hdr(struct frame_builder *hdr, uint32_t count)
{
	put_bytes(hdr, "\x01\x1b\x03\x3b", 4);
	put_u32(hdr, BUILT_FRAME - (BUILT_HDR + 4));
	put_u32(hdr, count);
}

static void put_hdr_entry(struct frame_builder *hdr, uint32_t start, size_t fde)
{
	put_u32(hdr, start - BUILT_HDR);
	put_u32(hdr, BUILT_FRAME + (uint32_t)fde - BUILT_HDR);
}

/* The table leaves the second FDE out, so that its use shows. */
static void open_with_hdr(struct fixture *fixture, bool is_sorted, bool has_sections)
{
	struct frame_builder frame = {0}, hdr = {0};
	size_t cie = CIE(&frame, X86_CIE);
	size_t first = FDE(&frame, cie, TEXT, 16, "");
	size_t last;

	FDE(&frame, cie, TEXT + 64, 16, "");
	/* an empty FDE where another starts */
	FDE(&frame, cie, TEXT + 128, 0, "");
	last = FDE(&frame, cie, TEXT + 128, 16, PUSHED_RBP);
	put_u32(&frame, 0);
	put_hdr(&hdr, 3);
	put_hdr_entry(&hdr, is_sorted ? TEXT : TEXT + 128, is_sorted ? first : last);
	put_hdr_entry(&hdr, TEXT + 128, last);
	put_hdr_entry(&hdr, is_sorted ? TEXT + 128 : TEXT, is_sorted ? last - 17 : first);
	build_elf(&fixture->elf, EM_X86_64, hdr.data, hdr.size, ".eh_frame", frame.data,
		  frame.size);
	if (!has_sections)
		((Elf64_Ehdr *)fixture->elf.data)->e_shnum = 0;
	assert_int_equal(open_elf(fixture), 0);
}

static void cfi_open__header_table_is_used_where_it_lies(void **state)
{
	struct fixture fixture;

	(void)state;
	for (int has_sections = 0; has_sections < 2; has_sections++) {
		open_with_hdr(&fixture, true, has_sections);
		assert_int_equal(cfi_fde_count(fixture.cfi), 3);
		expect_rule(&fixture, TEXT, entry);
		expect_rule(&fixture, TEXT + 64, no_info);
		expect_rule(&fixture, TEXT + 128, pushed_rbp);
		close_fixture(&fixture);
	}
}

/* The header is right where a section's address is not. */
static void cfi_open__section_elsewhere_is_not_what_the_header_means(void **state)
{
	struct fixture fixture;

	(void)state;
	open_with_hdr(&fixture, true, true);
	close_fixture(&fixture);
	((Elf64_Shdr *)(fixture.elf.data + BUILT_SECTIONS))[2].sh_addr += 64;
	assert_int_equal(open_elf(&fixture), 0);
	expect_rule(&fixture, TEXT, entry);
	expect_rule(&fixture, TEXT + 128, pushed_rbp);
	close_fixture(&fixture);
}

static void cfi_open__unsorted_header_table_is_not_trusted(void **state)
{
	struct fixture fixture;

	(void)state;
	for (int has_sections = 0; has_sections < 2; has_sections++) {
		open_with_hdr(&fixture, false, has_sections);
		assert_int_equal(cfi_fde_count(fixture.cfi), 3); /* without the empty one */
		expect_rule(&fixture, TEXT, entry);
		expect_rule(&fixture, TEXT + 64, entry);
		expect_rule(&fixture, TEXT + 128, pushed_rbp);
		close_fixture(&fixture);
	}
}

static void cfi_open__debug_frame_is_the_last_resort(void **state)
{
	static const char frame[] =
		/* CIE: id ~0, version 4, "", address size 8, code 1, data -8, RA 16 */
		"\x14\0\0\0\xff\xff\xff\xff\x04\0\x08\0\x01\x78\x10\x0c\x07\x08\x90\x01"
		"\0\0\0\0"
		/* FDEs with absolute addresses: TEXT + 32; and in no segment, as of dropped code */
		"\x18\0\0\0\0\0\0\0\x20\0\x01\0\0\0\0\0\x10\0\0\0\0\0\0\0\x0e\x10\x86\x02"
		"\x14\0\0\0\0\0\0\0\0\0\x40\0\0\0\0\0\x10\0\0\0\0\0\0";
	struct fixture fixture;

	(void)state;
	build_elf(&fixture.elf, EM_X86_64, NULL, 0, ".debug_frame", frame, sizeof(frame));
	assert_int_equal(open_elf(&fixture), 0);
	assert_int_equal(cfi_fde_count(fixture.cfi), 1);
	expect_rule(&fixture, TEXT + 0x20, pushed_rbp);
	expect_rule(&fixture, TEXT + 0x30, no_info);
	close_fixture(&fixture);
}

static void cfi_open__nothing_is_enodata_and_garbage_is_ebadmsg(void **state)
{
	static const uint8_t garbage[] = {0xff, 0xff, 0xff, 0x7f, 1, 2, 3};
	struct fixture fixture = {0};

	(void)state;
	build_elf(&fixture.elf, EM_X86_64, NULL, 0, ".other", garbage, sizeof(garbage));
	assert_int_equal(elf_image_from_memory(fixture.elf.data, BUILT_SIZE, &fixture.image), 0);
	assert_int_equal(cfi_open(fixture.image, &fixture.cfi), -ENODATA);
	assert_null(fixture.cfi);
	elf_image_free(fixture.image);
	build_elf(&fixture.elf, EM_X86_64, NULL, 0, ".eh_frame", garbage, sizeof(garbage));
	assert_int_equal(elf_image_from_memory(fixture.elf.data, BUILT_SIZE, &fixture.image), 0);
	assert_int_equal(cfi_open(fixture.image, &fixture.cfi), -EBADMSG);
	assert_null(fixture.cfi);
	elf_image_free(fixture.image);
}

/* Every single byte of a sane section replaced: nothing crashes, and rows stay sorted and agree
 * with the single rules. */
static void cfi_compile__damaged_bytes_never_break_the_rows(void **state)
{
	static const uint8_t values[] = {0, 1, 0x0b, 0x0f, 0x10, 0x40, 0x7f, 0x80, 0xff};
	struct frame_builder frame = {0};
	struct fixture fixture;
	size_t cie = CIE(&frame, X86_CIE), signal_cie = CIE(&frame, X86_SIGNAL_CIE);

	(void)state;
	FDE(&frame, cie, TEXT, 16, "\x41" PUSHED_RBP "\x43\x0d\x06\x43\x0a\xc6\x41\x0b");
	FDE(&frame, cie, TEXT + 16, 8, "\x0f\x03\x76\x78\x06\x41\x10\x06\x02\x76\x00");
	FDE(&frame, signal_cie, TEXT + 32, 8, "");
	put_u32(&frame, 0);
	for (size_t at = 0; at < frame.size * sizeof(values); at++) {
		struct frame_builder broken = frame;
		struct cfi_rows rows = {0};

		broken.data[at / sizeof(values)] = values[at % sizeof(values)];
		build_elf(&fixture.elf, EM_X86_64, NULL, 0, ".eh_frame", broken.data, broken.size);
		assert_int_equal(
			elf_image_from_memory(fixture.elf.data, BUILT_SIZE, &fixture.image), 0);
		if (cfi_open(fixture.image, &fixture.cfi)) {
			elf_image_free(fixture.image);
			continue;
		}
		assert_int_equal(cfi_compile(fixture.cfi, TEXT - 1, TEXT + 64, &rows, NULL), 0);
		for (size_t i = 0; i < rows.count; i++) {
			assert_true(i == 0 || rows.row[i].vaddr > rows.row[i - 1].vaddr);
			expect_rule(&fixture, rows.row[i].vaddr, rows.row[i].rule);
		}
		free(rows.row);
		close_fixture(&fixture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cfi_rule_at__follows_a_function_with_two_exits),
		cmocka_unit_test(cfi_rule_at__function_set_outermost_has_no_caller),
		cmocka_unit_test(cfi_rule_at__long_advances_and_extended_registers_are_read),
		cmocka_unit_test(cfi_rule_at__expressions_of_known_shape_become_rules),
		cmocka_unit_test(cfi_rule_at__aarch64_leaf_frame_and_signed_return_address),
		cmocka_unit_test(cfi_rule_at__padding_keeps_the_rule_and_a_gap_has_none),
		cmocka_unit_test(cfi_rule_at__signal_frame_covers_the_byte_before),
		cmocka_unit_test(cfi_rule_at__aarch64_signal_frame_covers_the_byte_before),
		cmocka_unit_test(cfi_compile__damaged_fde_has_no_rule_and_counts),
		cmocka_unit_test(cfi_compile__appends_and_begins_with_the_rule_in_force),
		cmocka_unit_test(cfi_fde_find__tells_the_covering_fde_only),
		cmocka_unit_test(cfi_open__image_at_a_high_address_has_its_rules),
		cmocka_unit_test(cfi_open__header_table_is_used_where_it_lies),
		cmocka_unit_test(cfi_open__section_elsewhere_is_not_what_the_header_means),
		cmocka_unit_test(cfi_open__unsorted_header_table_is_not_trusted),
		cmocka_unit_test(cfi_open__debug_frame_is_the_last_resort),
		cmocka_unit_test(cfi_open__nothing_is_enodata_and_garbage_is_ebadmsg),
		cmocka_unit_test(cfi_compile__damaged_bytes_never_break_the_rows),
	};

	return cmocka_run_group_tests_name("unwind/cfi", tests, NULL, NULL);
}
