/* SPDX-License-Identifier: BSD-2-Clause */
/* The limits of CFA instructions and expressions, each from both sides. DWARF 5, 6.4.2. */
#include "cfi_fixture.h"

#define REGISTER(reg, offset)                                                                      \
	RULE(.kind = PP_RULE_CFA_REGISTER, .cfa_register = (reg), .cfa_offset = (offset))
#define DEREF(add)                                                                                 \
	RULE(.kind = PP_RULE_CFA_DEREF, .cfa_register = 7, .cfa_offset = 16, .cfa_add = (add))
#define PLT(at) RULE(.kind = PP_RULE_PLT, .cfa_offset = (at))
#define FP(how, offset)                                                                            \
	RULE(.kind = PP_RULE_CFA_SP, .cfa_offset = 8, .fp_kind = (how), .fp_offset = (offset))
#define NO_RULE {.kind = PP_RULE_NO_INFO}
#define TIMES_4(s) s s s s
#define TIMES_32(s) TIMES_4(TIMES_4(s)) TIMES_4(TIMES_4(s))

struct instructions {
	const char *what;
	const char *bytes;
	size_t size;
	struct pp_rule rule; /* at the FDE's first byte */
	size_t bad;	     /* the FDE is damaged, not only beyond our rules */
};

static void expect_each(uint16_t machine, const char *cie_bytes, size_t cie_size,
			const struct instructions *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct frame_builder frame = {0};
		struct fixture fixture;
		size_t cie = put_cie(&frame, cie_bytes, cie_size);

		put_fde(&frame, cie, TEXT, 16, cases[i].bytes, cases[i].size);
		open_fixture(&fixture, machine, &frame);
		expect_compiled(&fixture, cases[i].what, TEXT, cases[i].rule, cases[i].bad);
		close_fixture(&fixture);
	}
}

#define EXPECT_EACH(machine, cie, cases)                                                           \
	expect_each(machine, cie, sizeof(cie) - 1, cases, sizeof(cases) / sizeof(cases[0]))

static void cfi_rule_at__cfa_of_a_register_within_bounds(void **state)
{
	static const struct instructions cases[] = {
		{"no instruction", BYTES(""), SP(8), 0},
		{"last register", BYTES("\x0c\x0f\x00"), REGISTER(15, 0), 0},
		{"no such register", BYTES("\x0c\x10\x00"), NO_RULE, 0},
		{"register 255", BYTES("\x0c\xff\x01\x00"), NO_RULE, 0},
		{"register 256", BYTES("\x0c\x80\x02\x00"), NO_RULE, 1},
		{"register 256 + rsp", BYTES("\x0c\x87\x02\x00"), NO_RULE, 1},
		{"2^31 - 1", BYTES("\x0e\xff\xff\xff\xff\x07"), SP(INT32_MAX), 0},
		{"2^31", BYTES("\x0e\x80\x80\x80\x80\x08"), NO_RULE, 1},
		{"2^32 + 16", BYTES("\x0e\x90\x80\x80\x80\x10"), NO_RULE, 1},
		{"def_cfa 2^32 + 16", BYTES("\x0c\x07\x90\x80\x80\x80\x10"), NO_RULE, 1},
		{"sf: -2^31", BYTES("\x12\x07\x80\x80\x80\x80\x01"), SP(INT32_MIN), 0},
		{"sf: -2^31 - 8", BYTES("\x12\x07\x81\x80\x80\x80\x01"), NO_RULE, 1},
		{"sf: 2^62 * -8", BYTES("\x12\x07\x80\x80\x80\x80\x80\x80\x80\x80\xc0\x00"),
		 NO_RULE, 1},
		{"offset_sf: -3 * -8", BYTES("\x13\x7d"), SP(24), 0},
		{"register: rbp", BYTES("\x0d\x06"), RULE(.kind = PP_RULE_CFA_FP, .cfa_offset = 8),
		 0},
		{"register after an expression", BYTES("\x0f\x03\x77\x08\x06\x0d\x06"), NO_RULE, 1},
		{"offset after an expression", BYTES("\x0f\x03\x77\x08\x06\x0e\x10"), NO_RULE, 1},
		{"offset_sf after an expression", BYTES("\x0f\x03\x77\x08\x06\x13\x7e"), NO_RULE,
		 1},
		{"def_cfa after an expression", BYTES("\x0f\x03\x77\x08\x06\x0c\x07\x10"), SP(16),
		 0},
	};

	(void)state;
	EXPECT_EACH(EM_X86_64, X86_CIE, cases);
}

static void cfi_rule_at__cfa_expressions_within_bounds(void **state)
{
	static const struct instructions cases[] = {
		{"rax", BYTES("\x0f\x02\x70\x08"), REGISTER(0, 8), 0},
		{"below breg0", BYTES("\x0f\x02\x6f\x08"), NO_RULE, 0},
		{"breg15", BYTES("\x0f\x02\x7f\x08"), REGISTER(15, 8), 0},
		{"breg16", BYTES("\x0f\x02\x80\x08"), NO_RULE, 0},
		{"regx", BYTES("\x0f\x03\x90\x07\x08"), NO_RULE, 0},
		{"bregx rsp", BYTES("\x0f\x03\x92\x07\x08"), SP(8), 0},
		{"bregx 256 + rsp", BYTES("\x0f\x04\x92\x87\x02\x08"), NO_RULE, 0},
		{"deref of breg15", BYTES("\x0f\x03\x7f\x08\x06"),
		 RULE(.kind = PP_RULE_CFA_DEREF, .cfa_register = 15, .cfa_offset = 8), 0},
		/* DW_CFA_restore_extended has the number of DW_OP_deref. */
		{"deref behind it", BYTES("\x0f\x02\x77\x08\x06\x10"), SP(8), 0},
		{"deref of breg16", BYTES("\x0f\x03\x80\x08\x06"), NO_RULE, 0},
		{"empty", BYTES("\x0f\x00"), NO_RULE, 0},
		{"offset missing", BYTES("\x0f\x01\x77"), NO_RULE, 0},
		{"offset cut", BYTES("\x0f\x02\x77\x88"), NO_RULE, 0},
		{"block longer than the FDE", BYTES("\x0f\x03\x77\x08"), NO_RULE, 1},
		{"2^31 - 1", BYTES("\x0f\x06\x77\xff\xff\xff\xff\x07"), SP(INT32_MAX), 0},
		{"2^31", BYTES("\x0f\x06\x77\x80\x80\x80\x80\x08"), NO_RULE, 0},
		{"2^31 - 1 + 1", BYTES("\x0f\x08\x77\xff\xff\xff\xff\x07\x23\x01"), NO_RULE, 0},
		{"-2^31", BYTES("\x0f\x06\x77\x80\x80\x80\x80\x78"), SP(INT32_MIN), 0},
		{"2^63 - 1 + 2^63 - 1",
		 BYTES("\x0f\x15\x77\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00"
		       "\x23\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
		 NO_RULE, 0},
		{"8 + 8", BYTES("\x0f\x04\x77\x08\x23\x08"), SP(16), 0},
		{"8 - 3", BYTES("\x0f\x04\x77\x08\x33\x1c"), SP(5), 0},
		{"8 + 40000", BYTES("\x0f\x06\x77\x08\x23\xc0\xb8\x02"), SP(40008), 0},
	};

	(void)state;
	EXPECT_EACH(EM_X86_64, X86_CIE, cases);
}

/* Each begins with *(rsp + 16). */
static void cfi_rule_at__addends_within_bounds(void **state)
{
	static const struct instructions cases[] = {
		{"nothing", BYTES("\x0f\x03\x77\x10\x06"), DEREF(0), 0},
		{"lit0", BYTES("\x0f\x05\x77\x10\x06\x30\x22"), DEREF(0), 0},
		{"lit31", BYTES("\x0f\x05\x77\x10\x06\x4f\x22"), DEREF(31), 0},
		{"lit31 minus", BYTES("\x0f\x05\x77\x10\x06\x4f\x1c"), DEREF(-31), 0},
		{"below lit0", BYTES("\x0f\x05\x77\x10\x06\x2f\x22"), NO_RULE, 0},
		{"above lit31", BYTES("\x0f\x05\x77\x10\x06\x50\x22"), NO_RULE, 0},
		{"const1u 255", BYTES("\x0f\x06\x77\x10\x06\x08\xff\x22"), DEREF(255), 0},
		{"const1s -128", BYTES("\x0f\x06\x77\x10\x06\x09\x80\x22"), DEREF(-128), 0},
		{"const2u 32767", BYTES("\x0f\x07\x77\x10\x06\x0a\xff\x7f\x22"), DEREF(32767), 0},
		{"const2u 32768", BYTES("\x0f\x07\x77\x10\x06\x0a\x00\x80\x22"), NO_RULE, 0},
		{"const2s -32768", BYTES("\x0f\x07\x77\x10\x06\x0b\x00\x80\x22"), DEREF(-32768), 0},
		{"const2s minus -32768", BYTES("\x0f\x07\x77\x10\x06\x0b\x00\x80\x1c"), NO_RULE, 0},
		{"const4u", BYTES("\x0f\x09\x77\x10\x06\x0c\x08\0\0\0\x22"), NO_RULE, 0},
		{"uconst 32767", BYTES("\x0f\x07\x77\x10\x06\x23\xff\xff\x01"), DEREF(32767), 0},
		{"uconst 32768", BYTES("\x0f\x07\x77\x10\x06\x23\x80\x80\x02"), NO_RULE, 0},
		{"uconst cut", BYTES("\x0f\x05\x77\x10\x06\x23\x88"), NO_RULE, 0},
		{"uconst and more", BYTES("\x0f\x06\x77\x10\x06\x23\x08\x06"), NO_RULE, 0},
		{"mul", BYTES("\x0f\x05\x77\x10\x06\x38\x1e"), NO_RULE, 0},
		{"no operator", BYTES("\x0f\x04\x77\x10\x06\x38"), NO_RULE, 0},
		{"two operators", BYTES("\x0f\x06\x77\x10\x06\x38\x22\x22"), NO_RULE, 0},
		{"const1u cut", BYTES("\x0f\x04\x77\x10\x06\x08"), NO_RULE, 0},
		{"two derefs", BYTES("\x0f\x04\x77\x10\x06\x06"), NO_RULE, 0},
		{"offset 2^31", BYTES("\x0f\x07\x77\x80\x80\x80\x80\x08\x06"), NO_RULE, 0},
	};

	(void)state;
	EXPECT_EACH(EM_X86_64, X86_CIE, cases);
}

static void cfi_rule_at__only_the_linkers_plt_expression_is_a_plt(void **state)
{
	static const char plt[] = "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22";
	static const struct instructions cases[] = {
		{"pushes at 0", BYTES("\x0f\x0b\x77\x08\x80\0\x3f\x1a\x30\x2a\x33\x24\x22"), PLT(0),
		 0},
		{"pushes at 15", BYTES("\x0f\x0b\x77\x08\x80\0\x3f\x1a\x3f\x2a\x33\x24\x22"),
		 PLT(15), 0},
		{"below lit0", BYTES("\x0f\x0b\x77\x08\x80\0\x3f\x1a\x2f\x2a\x33\x24\x22"), NO_RULE,
		 0},
		{"lit16", BYTES("\x0f\x0b\x77\x08\x80\0\x3f\x1a\x40\x2a\x33\x24\x22"), NO_RULE, 0},
		{"longer", BYTES("\x0f\x0c\x77\x08\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22\x96"), NO_RULE,
		 0},
	};
	char other[sizeof(plt)];

	(void)state;
	EXPECT_EACH(EM_X86_64, X86_CIE, cases);
	for (size_t at = 2; at < sizeof(plt) - 1; at++) {
		struct instructions damaged = {"another byte", other, sizeof(plt) - 1, NO_RULE, 0};

		if (at == 8)
			continue;
		memcpy(other, plt, sizeof(plt));
		other[at] ^= 1;
		expect_each(EM_X86_64, X86_CIE, sizeof(X86_CIE) - 1, &damaged, 1);
	}
}

static void cfi_rule_at__saved_registers_within_bounds(void **state)
{
	static const struct instructions cases[] = {
		{"rbp at -2^31", BYTES("\x86\x80\x80\x80\x80\x01"), FP(PP_FP_AT_CFA, INT32_MIN), 0},
		{"rbp at -2^31 - 8", BYTES("\x86\x81\x80\x80\x80\x01"), FP(PP_FP_UNDEFINED, 0), 0},
		{"rbp at 2^62 * -8", BYTES("\x11\x06\x80\x80\x80\x80\x80\x80\x80\x80\xc0\x00"),
		 FP(PP_FP_UNDEFINED, 0), 0},
		{"rbp at -(2) * -8", BYTES("\x2f\x06\x02"), FP(PP_FP_AT_CFA, 16), 0},
		{"rbp in rbp", BYTES("\x09\x06\x06"), FP(PP_FP_SAME, 0), 0},
		{"rbp in rax", BYTES("\x09\x06\x00"), FP(PP_FP_UNDEFINED, 0), 0},
		{"rbp in 256 + 6", BYTES("\x09\x06\x86\x02"), FP(PP_FP_UNDEFINED, 0), 0},
		{"rbp at *(rbp + 8)", BYTES("\x10\x06\x02\x76\x08"), FP(PP_FP_AT_FP, 8), 0},
		{"rbp at *(rbp + 8 + 8)", BYTES("\x10\x06\x04\x76\x08\x23\x08"),
		 FP(PP_FP_AT_FP, 16), 0},
		{"rbp at *(rsp + 8)", BYTES("\x10\x06\x02\x77\x08"), FP(PP_FP_UNDEFINED, 0), 0},
		{"rbp at *(rbp + 2^31 - 1)", BYTES("\x10\x06\x06\x76\xff\xff\xff\xff\x07"),
		 FP(PP_FP_AT_FP, INT32_MAX), 0},
		{"rbp at *(rbp + 2^31)", BYTES("\x10\x06\x06\x76\x80\x80\x80\x80\x08"),
		 FP(PP_FP_UNDEFINED, 0), 0},
		{"rbp by no base", BYTES("\x10\x06\x01\x30"), FP(PP_FP_UNDEFINED, 0), 0},
		{"rbp by a bad addend", BYTES("\x10\x06\x03\x76\x08\x96"), FP(PP_FP_UNDEFINED, 0),
		 0},
		{"rbp a value", BYTES("\x16\x06\x01\x30"), FP(PP_FP_UNDEFINED, 0), 0},
		{"rbp a value at an offset, sf", BYTES("\x15\x06\x7e"), FP(PP_FP_UNDEFINED, 0), 0},
		{"rbp undefined, then restored", BYTES("\x07\x06\xc6"), FP(PP_FP_SAME, 0), 0},
		{"rbp saved, then the same", BYTES("\x86\x02\x08\x06"), FP(PP_FP_SAME, 0), 0},
		{"other registers", BYTES("\x83\x02\x05\x0c\x03\x07\x03\x08\x0d\x09\x0e\x0f"),
		 SP(8), 0},
		{"RA at -16", BYTES("\x90\x02"), NO_RULE, 0},
		{"RA at -16, extended", BYTES("\x05\x10\x02"), NO_RULE, 0},
		{"RA at -16, then restored", BYTES("\x90\x02\xd0"), SP(8), 0},
		{"RA at -16, then restored, extended", BYTES("\x90\x02\x06\x10"), SP(8), 0},
		{"another restored", BYTES("\x90\x02\xc3"), NO_RULE, 0},
		{"RA the same", BYTES("\x08\x10"), NO_RULE, 0},
		{"RA by an expression", BYTES("\x10\x10\x02\x76\x08"), NO_RULE, 0},
		{"RA in the last register",
		 BYTES("\x09\x10\x0f"),
		 {.kind = PP_RULE_CFA_SP,
		  .cfa_offset = 8,
		  .ra_kind = PP_RA_REGISTER,
		  .ra_offset = 15},
		 0},
		{"RA in itself", BYTES("\x09\x10\x10"), NO_RULE, 0},
		{"RA undefined", BYTES("\x07\x10"), {.kind = PP_RULE_STOP}, 0},
	};

	(void)state;
#if defined(__x86_64__) /* PP_REG_COUNT is the build's machine */
	EXPECT_EACH(EM_X86_64, X86_CIE, cases);
#else
	(void)cases;
#endif
}

static void cfi_rule_at__state_is_remembered_32_deep(void **state)
{
	static const struct instructions cases[] = {
		{"32", BYTES(TIMES_32("\x0a") "\x0e\x10\x0b"), SP(8), 0},
		{"33", BYTES(TIMES_32("\x0a") "\x0a"), NO_RULE, 1},
		{"32 back", BYTES(TIMES_32("\x0a") "\x0e\x10" TIMES_32("\x0b")), SP(8), 0},
		{"33 back", BYTES(TIMES_32("\x0a") "\x0e\x10" TIMES_32("\x0b") "\x0b"), NO_RULE, 1},
		{"the last comes first", BYTES("\x0a\x0e\x10\x0a\x0e\x18\x0b"), SP(16), 0},
	};

	(void)state;
	EXPECT_EACH(EM_X86_64, X86_CIE, cases);
}

static void cfi_rule_at__instructions_without_effect_are_read_over(void **state)
{
	static const struct instructions cases[] = {
		{"nop", BYTES("\0\0\x0e\x10\0"), SP(16), 0},
		{"GNU_args_size", BYTES("\x2e\x88\x01\x0e\x10"), SP(16), 0},
		{"GNU_window_save", BYTES("\x2d\x0e\x10"), SP(16), 0},
		{"negate_ra_state_with_pc", BYTES("\x2c\x0e\x10"), SP(16), 0},
		{"val_expression", BYTES("\x16\x03\x02\x77\x08\x0e\x10"), SP(16), 0},
		{"val_offset", BYTES("\x14\x03\x82\x01\x0e\x10"), SP(16), 0},
		{"expression", BYTES("\x10\x03\x02\x77\x08\x0e\x10"), SP(16), 0},
		{"no such instruction", BYTES("\x0e\x10\x3f"), NO_RULE, 1},
		{"no such instruction, low", BYTES("\x0e\x10\x17"), NO_RULE, 1},
		{"GNU_args_size cut", BYTES("\x0e\x10\x2e\x88"), NO_RULE, 1},
		{"offset cut", BYTES("\x0e\x10\x86"), NO_RULE, 1},
		{"number of many bytes", BYTES("\x0e\x90\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"),
		 SP(16), 0},
		/* Bits above the 64th are dropped: DWARF 5, 7.6 has no bound. */
		{"signed number of many bytes",
		 BYTES("\x13\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), SP(24), 0},
	};

	(void)state;
	EXPECT_EACH(EM_X86_64, X86_CIE, cases);
}

static void cfi_rule_at__aarch64_return_address_within_bounds(void **state)
{
	static const struct instructions cases[] = {
		{"in the link register",
		 BYTES(""),
		 {.kind = PP_RULE_CFA_SP, .ra_kind = PP_RA_REGISTER},
		 0},
		{"register 31 is sp",
		 BYTES("\x0f\x02\x8f\x08"),
		 {.kind = PP_RULE_CFA_SP, .cfa_offset = 8, .ra_kind = PP_RA_REGISTER},
		 0},
		{"register 32", BYTES("\x0c\x20\x00"), NO_RULE, 0},
		{"at -32768",
		 BYTES("\x9e\x80\x20"),
		 {.kind = PP_RULE_CFA_SP, .ra_offset = -32768},
		 0},
		{"at -32776", BYTES("\x9e\x81\x20"), NO_RULE, 0},
		{"moved to x30",
		 BYTES("\x9e\x01\x09\x1e\x1e"),
		 {.kind = PP_RULE_CFA_SP, .ra_kind = PP_RA_REGISTER},
		 0},
		{"moved to x15", BYTES("\x09\x1e\x0f"), NO_RULE, 0},
		{"by an expression", BYTES("\x10\x1e\x02\x8f\x08"), NO_RULE, 0},
		{"a PLT of x86-64", BYTES("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"),
		 NO_RULE, 0},
	};

	(void)state;
	EXPECT_EACH(EM_AARCH64, ARM_CIE, cases);
}

/* ---- where rows begin ---- */

struct advance {
	const char *what;
	const char *bytes;
	size_t size;
	uint64_t offset; /* of the second row in the FDE of 0x200 bytes; 0: there is none */
	size_t bad;
};

static void cfi_compile__rows_begin_where_the_location_says(void **state)
{
	static const struct advance cases[] = {
		{"by 0", BYTES("\x40\x0e\x10\x42\x0e\x18"), 2, 0},
		{"to the last byte", BYTES("\x03\xff\x01\x0e\x10"), 0x1ff, 0},
		{"to the end, after which nothing is read", BYTES("\x03\x00\x02\x3f"), 0, 0},
		{"beyond the end", BYTES("\x04\x00\x00\x00\x80\x3f"), 0, 0},
		{"by 8 bytes", BYTES("\x1d\x09\0\0\0\0\0\0\0\x0e\x10"), 9, 0},
		{"by 2^32 - 1", BYTES("\x1d\xff\xff\xff\xff\0\0\0\0\x3f"), 0, 0},
		{"by 2^32", BYTES("\x1d\0\0\0\0\x01\0\0\0"), 0, 1},
		{"cut", BYTES("\x04\x01\0\0"), 0, 1},
		{"two instructions behind", BYTES("\x43\x0e\x10\x43\x3f"), 0, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frame_builder frame = {0};
		struct cfi_rows rows = {0};
		struct fixture fixture;
		size_t cie = CIE(&frame, X86_CIE), bad = 0;

		put_fde(&frame, cie, TEXT, 0x200, cases[i].bytes, cases[i].size);
		open_fixture(&fixture, EM_X86_64, &frame);
		assert_int_equal(cfi_compile(fixture.cfi, TEXT, TEXT + 0x200, &rows, &bad), 0);
		if (bad != cases[i].bad || rows.count != 1U + !!cases[i].offset ||
		    (cases[i].offset && rows.row[1].vaddr != TEXT + cases[i].offset))
			fail_msg("%s: %zu rows, %zu damaged", cases[i].what, rows.count, bad);
		assert_int_equal(rows.row[0].rule.kind, bad ? PP_RULE_NO_INFO : PP_RULE_CFA_SP);
		free(rows.row);
		close_fixture(&fixture);
	}
}

static void cfi_compile__set_loc_goes_forward_only(void **state)
{
	static const struct {
		uint32_t from, to; /* two set_loc of one FDE */
		size_t rows, bad;
	} cases[] = {{5, 9, 3, 0}, {0, 9, 2, 0}, {5, 5, 2, 0}, {5, 4, 1, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frame_builder frame = {0}, program = {0};
		struct cfi_rows rows = {0};
		struct fixture fixture;
		size_t cie = CIE(&frame, X86_CIE), bad = 0;
		/* length, CIE pointer, low, size, augmentation's size */
		uint32_t at = (uint32_t)(BUILT_FRAME + frame.size + 17);

		put_bytes(&program, "\x01", 1);
		put_u32(&program, TEXT + cases[i].from - (at + 1));
		put_bytes(&program, "\x0e\x10\x01", 3);
		put_u32(&program, TEXT + cases[i].to - (at + 8));
		put_bytes(&program, "\x0e\x18", 2);
		put_fde(&frame, cie, TEXT, 16, (const char *)program.data, program.size);
		open_fixture(&fixture, EM_X86_64, &frame);
		assert_int_equal(cfi_compile(fixture.cfi, TEXT, TEXT + 16, &rows, &bad), 0);
		assert_int_equal(bad, cases[i].bad);
		assert_int_equal(rows.count, cases[i].rows);
		if (!bad) {
			assert_int_equal(rows.row[rows.count - 1].vaddr, TEXT + cases[i].to);
			assert_int_equal(rows.row[rows.count - 1].rule.cfa_offset, 24);
		}
		free(rows.row);
		close_fixture(&fixture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cfi_rule_at__cfa_of_a_register_within_bounds),
		cmocka_unit_test(cfi_rule_at__cfa_expressions_within_bounds),
		cmocka_unit_test(cfi_rule_at__addends_within_bounds),
		cmocka_unit_test(cfi_rule_at__only_the_linkers_plt_expression_is_a_plt),
		cmocka_unit_test(cfi_rule_at__saved_registers_within_bounds),
		cmocka_unit_test(cfi_rule_at__state_is_remembered_32_deep),
		cmocka_unit_test(cfi_rule_at__instructions_without_effect_are_read_over),
		cmocka_unit_test(cfi_rule_at__aarch64_return_address_within_bounds),
		cmocka_unit_test(cfi_compile__rows_begin_where_the_location_says),
		cmocka_unit_test(cfi_compile__set_loc_goes_forward_only),
	};

	return cmocka_run_group_tests_name("unwind/cfi_rule", tests, NULL, NULL);
}
