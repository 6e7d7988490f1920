/* SPDX-License-Identifier: BSD-2-Clause */
/* Heads of CIEs and FDEs, and .eh_frame_hdr, each form that is read and each that is not. LSB Core,
 * 10.6; DWARF 5, 6.4.1. */
#include "cfi_fixture.h"

#include <errno.h>

/* Opens a section of `tested` and, behind it, one sane FDE at TEXT + 0x100. Returns the number of
 * FDEs found. */
static size_t count_fdes(const struct frame_builder *tested, uint64_t vaddr, bool has_rule,
			 const char *what)
{
	struct frame_builder frame = *tested;
	struct fixture fixture;
	struct pp_rule rule;
	size_t cie = CIE(&frame, X86_CIE), count;

	FDE(&frame, cie, TEXT + 0x100, 16, "");
	open_fixture(&fixture, EM_X86_64, &frame);
	count = cfi_fde_count(fixture.cfi);
	assert_int_equal(cfi_rule_at(fixture.cfi, TEXT + 0x100, &rule), 0);
	assert_int_equal(rule.kind, PP_RULE_CFA_SP);
	assert_int_equal(cfi_rule_at(fixture.cfi, vaddr, &rule), 0);
	if ((rule.kind == PP_RULE_CFA_SP && rule.cfa_offset == 8) != has_rule)
		fail_msg("%s: kind %d, offset %d, %zu FDEs", what, rule.kind, rule.cfa_offset,
			 count);
	close_fixture(&fixture);
	return count;
}

static void cfi_open__cie_of_a_known_form_only(void **state)
{
	static const struct {
		const char *what;
		const char *bytes;
		size_t size;
		bool is_good;
	} cases[] = {
		{"version 1", BYTES(X86_CIE), true},
		{"version 3", BYTES("\x03zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"), true},
		{"version 3, RA of two bytes",
		 BYTES("\x03zR\0\x01\x78\x90\x00\x01\x1b\x0c\x07\x08\x90\x01"), true},
		{"version 4", BYTES("\x04zR\0\x08\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"),
		 false},
		{"version 2", BYTES("\x02zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"), false},
		{"version 0", BYTES("\0zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"), false},
		{"version 5", BYTES("\x05zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"), false},
		{"code by 0", BYTES("\x01zR\0\0\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"), false},
		{"code by 64", BYTES("\x01zR\0\x40\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"), true},
		{"code by 65", BYTES("\x01zR\0\x41\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"), false},
		{"no z", BYTES("\x01R\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"), false},
		{"eh",
		 BYTES("\x01"
		       "eh\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"),
		 false},
		{"P: 4 bytes, L, R",
		 BYTES("\x01zPLR\0\x01\x78\x10\x07\x9b\1\2\3\4\x1b\x1b"
		       "\x0c\x07\x08\x90\x01"),
		 true},
		{"L of another encoding, R",
		 BYTES("\x01zLR\0\x01\x78\x10\x02\xff\x1b"
		       "\x0c\x07\x08\x90\x01"),
		 true},
		{"P: 8 bytes",
		 BYTES("\x01zPR\0\x01\x78\x10\x0a\0\1\2\3\4\5\6\7\x08\x1b"
		       "\x0c\x07\x08\x90\x01"),
		 true},
		{"P: 2 bytes", BYTES("\x01zPR\0\x01\x78\x10\x04\x0a\1\2\x1b\x0c\x07\x08\x90\x01"),
		 true},
		{"P: uleb", BYTES("\x01zPR\0\x01\x78\x10\x04\x01\x81\x02\x1b\x0c\x07\x08\x90\x01"),
		 true},
		{"P: sleb", BYTES("\x01zPR\0\x01\x78\x10\x04\x09\x81\x02\x1b\x0c\x07\x08\x90\x01"),
		 true},
		{"P: no such format",
		 BYTES("\x01zPR\0\x01\x78\x10\x02\x05\x1b\x0c\x07\x08\x90\x01"), false},
		{"P: longer than the data",
		 BYTES("\x01zRP\0\x01\x78\x10\x03\x1b\x0b\1\x0c\x07\x08\x90\x01"), false},
		{"B and G", BYTES("\x01zRBG\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"), true},
		{"B before R", BYTES("\x01zBR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"), true},
		{"G before R", BYTES("\x01zGR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"), true},
		{"unknown letter", BYTES("\x01zRX\0\x01\x78\x10\x03\x1b\1\2\x0c\x07\x08\x90\x01"),
		 true},
		{"unknown letter without data",
		 BYTES("\x01zRRX\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"), false},
		{"R without data", BYTES("\x01zR\0\x01\x78\x10\0"), false},
		{"data beyond the record", BYTES("\x01zR\0\x01\x78\x10\x0a\x1b\x0c\x07\x08"),
		 false},
		{"indirect", BYTES("\x01zR\0\x01\x78\x10\x01\x9b\x0c\x07\x08\x90\x01"), false},
		{"relative to data", BYTES("\x01zR\0\x01\x78\x10\x01\x3b\x0c\x07\x08\x90\x01"),
		 false},
		{"no such format", BYTES("\x01zR\0\x01\x78\x10\x01\x15\x0c\x07\x08\x90\x01"),
		 false},
		{"a row in it", BYTES("\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\x41"),
		 false},
		{"restore without remember",
		 BYTES("\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\x0b"), false},
		{"instructions cut", BYTES("\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x88"), false},
		{"augmentation without an end", BYTES("\x01zR"), false},
		{"head cut", BYTES("\x01zR\0\x01\xf8"), false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frame_builder frame = {0};
		size_t cie = put_cie(&frame, cases[i].bytes, cases[i].size);

		FDE(&frame, cie, TEXT, 16, "");
		assert_int_equal(count_fdes(&frame, TEXT, cases[i].is_good, cases[i].what),
				 1 + cases[i].is_good);
	}
}

/* A CIE with one encoding of addresses, and an FDE whose addresses are `fde`. */
static void put_encoded(struct frame_builder *frame, char encoding, const void *fde, size_t size)
{
	char bytes[] = X86_CIE;
	size_t cie;

	bytes[8] = encoding;
	cie = put_cie(frame, bytes, sizeof(bytes) - 1);
	put_u32(frame, (uint32_t)size + 5);
	put_u32(frame, (uint32_t)(frame->size - cie));
	put_bytes(frame, fde, size);
	put_bytes(frame, "", 1);
}

static void cfi_open__addresses_of_each_encoding_are_read(void **state)
{
	static const struct {
		const char *what;
		const char *bytes; /* low 0x10008, size 16 */
		size_t size;
		bool is_good;
		uint8_t encoding;
	} cases[] = {
		{"absptr", BYTES("\x08\0\x01\0\0\0\0\0\x10\0\0\0\0\0\0\0"), true, 0x00},
		{"udata8", BYTES("\x08\0\x01\0\0\0\0\0\x10\0\0\0\0\0\0\0"), true, 0x04},
		{"sdata8", BYTES("\x08\0\x01\0\0\0\0\0\x10\0\0\0\0\0\0\0"), true, 0x0c},
		{"udata4", BYTES("\x08\0\x01\0\x10\0\0\0"), true, 0x03},
		{"sdata4", BYTES("\x08\0\x01\0\x10\0\0\0"), true, 0x0b},
		{"uleb", BYTES("\x88\x80\x04\x10"), true, 0x01},
		{"sleb", BYTES("\x88\x80\x04\x10"), true, 0x09},
		/* PC-relative: the field lies at 0x400 + 22 + 8 */
		{"pcrel udata2", BYTES("\xea\xfb\x10\0"), true, 0x12},
		{"pcrel sdata2 is negative", BYTES("\xea\xfb\x10\0"), false, 0x1a},
		{"cut", BYTES("\x08\0\x01\0\0\0\0"), false, 0x00},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frame_builder frame = {0};

		put_encoded(&frame, (char)cases[i].encoding, cases[i].bytes, cases[i].size);
		count_fdes(&frame, TEXT + 8, cases[i].is_good, cases[i].what);
		count_fdes(&frame, TEXT + 7, false, cases[i].what);
		if (cases[i].is_good)
			count_fdes(&frame, TEXT + 8 + 15, true, cases[i].what);
	}
}

/* The size is never relative, whatever the address is. */
static void cfi_open__code_that_wraps_or_is_empty_is_left_out(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		size_t fdes;
	} cases[] = {
		{BYTES("\x08\0\x01\0\0\0\0\0\xf7\xff\xfe\xff\xff\xff\xff\xff"),
		 2}, /* to 2^64 - 1 */
		{BYTES("\x08\0\x01\0\0\0\0\0\xf8\xff\xfe\xff\xff\xff\xff\xff"), 1},
		{BYTES("\x08\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0"), 1},
		{BYTES("\x08\0\x01\0\0\0\0\0\x01\0\0\0\0\0\0\0"), 2},
		{BYTES("\xff\xff\x02\0\0\0\0\0\x01\0\0\0\0\0\0\0"),
		 2}, /* the segment's last byte */
		{BYTES("\0\0\x03\0\0\0\0\0\x01\0\0\0\0\0\0\0"), 1},
		{BYTES("\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"), 2}, /* its first */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frame_builder frame = {0};
		struct fixture fixture;
		size_t cie;

		put_encoded(&frame, 0, cases[i].bytes, cases[i].size);
		cie = CIE(&frame, X86_CIE);
		FDE(&frame, cie, TEXT + 0x100, 16, "");
		open_fixture(&fixture, EM_X86_64, &frame);
		assert_int_equal(cfi_fde_count(fixture.cfi), cases[i].fdes);
		close_fixture(&fixture);
	}
}

/* An extended length has 8 bytes; in .eh_frame the CIE pointer behind it has 4, in .debug_frame
 * 8. */
static void cfi_open__records_with_an_extended_length_are_read(void **state)
{
	struct frame_builder frame = {0};
	size_t cie, at;

	(void)state;
	cie = frame.size;
	put_bytes(&frame, "\xff\xff\xff\xff\x12\0\0\0\0\0\0\0\0\0\0\0", 16);
	put_bytes(&frame, X86_CIE, sizeof(X86_CIE) - 1);
	put_bytes(&frame, "\xff\xff\xff\xff\x0d\0\0\0\0\0\0\0", 12);
	at = frame.size;
	put_u32(&frame, (uint32_t)(at - cie));
	put_u32(&frame, TEXT - (uint32_t)(BUILT_FRAME + frame.size));
	put_u32(&frame, 16);
	put_bytes(&frame, "", 1);
	assert_int_equal(count_fdes(&frame, TEXT, true, "extended"), 2);
}

static void cfi_open__debug_frame_of_64_bits_is_read(void **state)
{
	static const char frame[] =
		/* CIE: id ~0, version 4, "", address size 8, code 1, data -8, RA 16 */
		"\xff\xff\xff\xff\x14\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"
		"\x04\0\x08\0\x01\x78\x10\x0c\x07\x08\x90\x01"
		/* FDE: CIE at 0, 0x10020, 16 bytes */
		"\xff\xff\xff\xff\x18\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
		"\x20\0\x01\0\0\0\0\0\x10\0\0\0\0\0\0";
	struct fixture fixture;

	(void)state;
	build_elf(&fixture.elf, EM_X86_64, NULL, 0, ".debug_frame", frame, sizeof(frame));
	assert_int_equal(open_elf(&fixture), 0);
	assert_int_equal(cfi_fde_count(fixture.cfi), 1);
	expect_compiled(&fixture, "64 bit", TEXT + 0x20, (struct pp_rule)SP(8), 0);
	close_fixture(&fixture);
	/* an address size of 4; a segment selector */
	for (size_t i = 0; i < 2; i++) {
		((char *)fixture.elf.data)[BUILT_FRAME + 22] = i ? 8 : 4;
		((char *)fixture.elf.data)[BUILT_FRAME + 23] = (char)i;
		assert_int_equal(open_elf(&fixture), -EBADMSG);
		close_fixture(&fixture);
	}
}

/* The CIE pointer of .debug_frame counts from the section's begin. */
static void cfi_open__debug_frame_names_its_cie_by_offset(void **state)
{
	static const char frame[] =
		/* CIEs at 0 and 24: CFA rsp+8 and rsp+16 */
		"\x14\0\0\0\xff\xff\xff\xff\x04\0\x08\0\x01\x78\x10\x0c\x07\x08\x90\x01\0\0\0\0"
		"\x14\0\0\0\xff\xff\xff\xff\x04\0\x08\0\x01\x78\x10\x0c\x07\x10\x90\x01\0\0\0\0"
		"\x14\0\0\0\x18\0\0\0\x20\0\x01\0\0\0\0\0\x10\0\0\0\0\0\0";
	struct fixture fixture;

	(void)state;
	build_elf(&fixture.elf, EM_X86_64, NULL, 0, ".debug_frame", frame, sizeof(frame));
	assert_int_equal(open_elf(&fixture), 0);
	assert_int_equal(cfi_fde_count(fixture.cfi), 1);
	expect_compiled(&fixture, "second CIE", TEXT + 0x20, (struct pp_rule)SP(16), 0);
	close_fixture(&fixture);
}

static void cfi_open__fde_needs_a_cie(void **state)
{
	struct frame_builder frame = {0};
	size_t cie = CIE(&frame, X86_CIE);
	size_t fde = FDE(&frame, cie, TEXT, 16, "");

	(void)state;
	FDE(&frame, fde, TEXT + 16, 16, "");
	FDE(&frame, cie + 4096, TEXT + 32, 16, "");
	assert_int_equal(count_fdes(&frame, TEXT, true, "by its CIE"), 2);
	assert_int_equal(count_fdes(&frame, TEXT + 16, false, "by an FDE"), 2);
	assert_int_equal(count_fdes(&frame, TEXT + 32, false, "by nothing"), 2);
}

/* More CIEs than the cache has slots, every second one a signal's: each FDE follows its own. */
static void cfi_rule_at__many_cies_are_told_apart(void **state)
{
	enum { CIES = 80 };
	static const struct pp_rule signal_frame = {.kind = PP_RULE_SIGNAL};
	struct frame_builder frame = {0};
	struct fixture fixture;
	size_t cie[CIES];

	(void)state;
	for (int i = 0; i < CIES; i++) {
		char bytes[] = X86_CIE;

		bytes[11] = (char)(8 + i);
		cie[i] = i % 2 ? CIE(&frame, X86_SIGNAL_CIE)
			       : put_cie(&frame, bytes, sizeof(bytes) - 1);
	}
	for (int i = 0; i < CIES; i++)
		FDE(&frame, cie[i], TEXT + 16 * (uint32_t)i, 16, "");
	open_fixture(&fixture, EM_X86_64, &frame);
	assert_int_equal(cfi_fde_count(fixture.cfi), CIES);
	for (int i = 0; i < CIES; i++)
		expect_compiled(&fixture, "of its CIE", TEXT + 16 * (uint64_t)i,
				i % 2 ? signal_frame : (struct pp_rule)SP(8 + i), 0);
	close_fixture(&fixture);
}

/* Two addresses of one slot of the memo. */
static void cfi_rule_at__answers_are_kept_by_address(void **state)
{
	struct frame_builder frame = {0};
	struct fixture fixture;
	size_t cie = CIE(&frame, X86_CIE);
	struct pp_rule rule;

	(void)state;
	FDE(&frame, cie, TEXT, 256, "");
	FDE(&frame, cie, TEXT + 256, 256, "\x0e\x10");
	open_fixture(&fixture, EM_X86_64, &frame);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(cfi_rule_at(fixture.cfi, TEXT + 7 + 256 * (i % 3 / 2), &rule), 0);
		assert_int_equal(rule.cfa_offset, i % 3 / 2 ? 16 : 8);
	}
	close_fixture(&fixture);
}

/* ---- .eh_frame_hdr ---- */

struct header {
	uint8_t version, pointer, count_encoding, table;
	uint32_t count, size; /* size: of the header; 0: what the table needs */
	int64_t frame_error;  /* added to the pointer to .eh_frame */
};

/* Three FDEs, of which the header's table names two.  Returns what cfi_open() does. */
static int open_with_header(struct fixture *fixture, const struct header *header, bool has_sections,
			    uint32_t second_start, uint32_t second_record)
{
	struct frame_builder frame = {0}, hdr = {0};
	size_t cie = CIE(&frame, X86_CIE), first, second;

	first = FDE(&frame, cie, TEXT, 16, "");
	second = FDE(&frame, cie, TEXT + 64, 16, "\x0e\x10");
	FDE(&frame, cie, TEXT + 128, 16, "\x0e\x18");
	put_u32(&frame, 0);
	put_bytes(&hdr, header, 4);
	put_u32(&hdr, (uint32_t)(BUILT_FRAME - (BUILT_HDR + 4) + header->frame_error));
	put_u32(&hdr, header->count);
	put_u32(&hdr, TEXT - BUILT_HDR);
	put_u32(&hdr, BUILT_FRAME + (uint32_t)first - BUILT_HDR);
	put_u32(&hdr, second_start - BUILT_HDR);
	put_u32(&hdr, second_record ? second_record : BUILT_FRAME + (uint32_t)second - BUILT_HDR);
	build_elf(&fixture->elf, EM_X86_64, hdr.data, header->size ? header->size : hdr.size,
		  ".eh_frame", frame.data, frame.size);
	if (!has_sections)
		((Elf64_Ehdr *)fixture->elf.data)->e_shnum = 0;
	return open_elf(fixture);
}

/* The third FDE has a rule only where the section itself was walked. */
static void cfi_open__header_table_is_used_only_when_it_can_be_searched(void **state)
{
	static const struct header sane = {1, 0x1b, 0x03, 0x3b, 2, 0, 0};
	static const struct {
		const char *what;
		struct header header;
		uint32_t second_start, second_record;
		bool is_used;
	} cases[] = {
		{"sane", sane, TEXT + 64, 0, true},
		{"same start twice", sane, TEXT, 0, true},
		{"not sorted", sane, TEXT - 1, 0, false},
		{"record beyond the section", sane, TEXT + 64, BUILT_FRAME + 0xc00 - BUILT_HDR,
		 false},
		{"record at the section's end", sane, TEXT + 64, BUILT_FRAME + 81 - BUILT_HDR,
		 false},
		{"record before the section", sane, TEXT + 64, BUILT_FRAME - 1 - BUILT_HDR, false},
		{"more entries than room", {1, 0x1b, 0x03, 0x3b, 3, 0, 0}, TEXT + 64, 0, false},
		{"just room", {1, 0x1b, 0x03, 0x3b, 2, 28, 0}, TEXT + 64, 0, true},
		{"one byte short", {1, 0x1b, 0x03, 0x3b, 2, 27, 0}, TEXT + 64, 0, false},
		{"no entry", {1, 0x1b, 0x03, 0x3b, 0, 0, 0}, TEXT + 64, 0, false},
		{"another count", {1, 0x1b, 0xff, 0x3b, 2, 0, 0}, TEXT + 64, 0, false},
		{"another table", {1, 0x1b, 0x03, 0x1b, 2, 0, 0}, TEXT + 64, 0, false},
		{"version 2", {2, 0x1b, 0x03, 0x3b, 2, 0, 0}, TEXT + 64, 0, false},
		{"cut", {1, 0x1b, 0x03, 0x3b, 2, 7, 0}, TEXT + 64, 0, false},
	};
	struct fixture fixture;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pp_rule rule;

		assert_int_equal(open_with_header(&fixture, &cases[i].header, true,
						  cases[i].second_start, cases[i].second_record),
				 0);
		assert_int_equal(cfi_rule_at(fixture.cfi, TEXT + 128, &rule), 0);
		if ((rule.kind == PP_RULE_NO_INFO) != cases[i].is_used)
			fail_msg("%s: kind %d", cases[i].what, rule.kind);
		assert_int_equal(cfi_fde_count(fixture.cfi), cases[i].is_used ? 2 : 3);
		close_fixture(&fixture);
	}
}

/* A file without sections: only the header says where .eh_frame is. */
static void cfi_open__without_sections_the_header_must_be_right(void **state)
{
	static const struct {
		const char *what;
		struct header header;
		int result;
		size_t fdes;
	} cases[] = {
		{"sane", {1, 0x1b, 0x03, 0x3b, 2, 0, 0}, 0, 2},
		{"walked up to the zero word", {1, 0x1b, 0x03, 0x3b, 0, 0, 0}, 0, 3},
		{"relative to the header", {1, 0x3b, 0x03, 0x3b, 2, 0, 4}, 0, 2},
		{"relative to nothing known", {1, 0x2b, 0x03, 0x3b, 2, 0, 4}, -EBADMSG, 0},
		{"version 2", {2, 0x1b, 0x03, 0x3b, 2, 0, 0}, -EBADMSG, 0},
		{"in no segment", {1, 0x1b, 0x03, 0x3b, 2, 0, BUILT_SIZE}, -EBADMSG, 0},
		{"just behind the segment",
		 {1, 0x1b, 0x03, 0x3b, 2, 0, BUILT_SIZE - BUILT_FRAME},
		 -EBADMSG,
		 0},
		{"cut", {1, 0x1b, 0x03, 0x3b, 2, 7, 0}, -EBADMSG, 0},
	};
	struct fixture fixture;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int result = open_with_header(&fixture, &cases[i].header, false, TEXT + 64, 0);

		if (result != cases[i].result)
			fail_msg("%s: %d", cases[i].what, result);
		if (!result)
			assert_int_equal(cfi_fde_count(fixture.cfi), cases[i].fdes);
		close_fixture(&fixture);
	}
}

static void cfi_compile__damage_behind_the_header_table_is_counted(void **state)
{
	static const struct header sane = {1, 0x1b, 0x03, 0x3b, 2, 0, 0};
	/* Beside the first FDE's end: another FDE's start, the CIE, the end's zero word. */
	static const uint32_t record[] = {0, BUILT_FRAME - BUILT_HDR,
					  BUILT_FRAME - BUILT_HDR + 22 + 17 + 19 + 19};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(record); i++) {
		struct cfi_rows rows = {0};
		struct fixture fixture;
		size_t bad = 7;

		assert_int_equal(open_with_header(&fixture, &sane, true, TEXT + 16, record[i]), 0);
		assert_int_equal(cfi_fde_count(fixture.cfi), 2);
		assert_int_equal(cfi_compile(fixture.cfi, TEXT, TEXT + 128, &rows, &bad), 0);
		assert_int_equal(bad, 1);
		assert_int_equal(rows.count, 2);
		assert_int_equal(rows.row[1].vaddr, TEXT + 16);
		assert_int_equal(rows.row[1].rule.kind, PP_RULE_NO_INFO);
		assert_int_equal(cfi_compile(fixture.cfi, TEXT, TEXT + 15, &rows, &bad), 0);
		assert_int_equal(bad, 0);
		free(rows.row);
		close_fixture(&fixture);
	}
}

/* A section without bytes is none; one that is there and says nothing is damaged. */
static void cfi_open__section_without_bytes_is_none(void **state)
{
	static const uint8_t zeros[8];
	static const struct {
		size_t size;
		uint32_t type;
		uint64_t flags;
		int result;
	} cases[] = {
		{8, SHT_PROGBITS, 0, -EBADMSG},
		{0, SHT_PROGBITS, 0, -ENODATA},
		{8, SHT_NOBITS, 0, -ENODATA},
		{8, SHT_PROGBITS, SHF_COMPRESSED, -EBADMSG}, /* too short for its header */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture fixture;
		Elf64_Shdr *section = (Elf64_Shdr *)(fixture.elf.data + BUILT_SECTIONS);

		build_elf(&fixture.elf, EM_X86_64, NULL, 0, ".eh_frame", zeros, cases[i].size);
		section[2].sh_type = cases[i].type;
		section[2].sh_flags = cases[i].flags;
		assert_int_equal(open_elf(&fixture), cases[i].result);
		close_fixture(&fixture);
	}
}

/* A table that names one FDE over and over costs no more than the section's size and 64 KiB of
 * instructions. */
static void cfi_compile__instructions_are_bounded_by_the_section(void **state)
{
	enum { PROGRAM = 2048, FITTING = 34 };
	static const char nops[PROGRAM];

	(void)state;
	for (uint32_t count = FITTING; count <= FITTING + 1; count++) {
		struct frame_builder frame = {0}, hdr = {0};
		struct cfi_rows rows = {0};
		struct fixture fixture;
		size_t cie = CIE(&frame, X86_CIE), bad = 7;
		size_t fde = put_fde(&frame, cie, TEXT, 16, nops, PROGRAM);

		put_bytes(&hdr, "\x01\x1b\x03\x3b", 4);
		put_u32(&hdr, BUILT_FRAME - (BUILT_HDR + 4));
		put_u32(&hdr, count);
		for (uint32_t i = 0; i < count; i++) {
			put_u32(&hdr, TEXT - BUILT_HDR);
			put_u32(&hdr, BUILT_FRAME + (uint32_t)fde - BUILT_HDR);
		}
		/* the size makes the budget a whole number of runs */
		build_elf(&fixture.elf, EM_X86_64, hdr.data, hdr.size, ".eh_frame", frame.data,
			  FITTING * PROGRAM - 65536);
		assert_int_equal(open_elf(&fixture), 0);
		assert_int_equal(cfi_fde_count(fixture.cfi), count);
		assert_int_equal(cfi_compile(fixture.cfi, TEXT, TEXT + 16, &rows, &bad), 0);
		assert_int_equal(bad, count - FITTING);
		free(rows.row);
		close_fixture(&fixture);
	}
}

/* As many segments as are kept, of which none is code: nothing is read beyond them. */
static void cfi_open__segments_are_looked_through_to_the_last(void **state)
{
	enum { PROGRAM_HEADERS = 0x2d000 };
	static const struct header sane = {1, 0x1b, 0x03, 0x3b, 0, 0, 0};
	struct fixture fixture;

	(void)state;
	for (uint32_t last_is_code = 0; last_is_code < 2; last_is_code++) {
		Elf64_Ehdr *elf = (Elf64_Ehdr *)fixture.elf.data;
		Elf64_Phdr *program = (Elf64_Phdr *)(fixture.elf.data + PROGRAM_HEADERS);

		assert_int_equal(open_with_header(&fixture, &sane, false, TEXT + 64, 0), 0);
		close_fixture(&fixture);
		program[0] = ((Elf64_Phdr *)(fixture.elf.data + elf->e_phoff))[1];
		for (uint32_t i = 1; i <= ELF_MAX_SEGMENTS; i++)
			program[i] = (Elf64_Phdr){.p_type = PT_LOAD,
						  .p_flags = PF_R,
						  .p_offset = 0x20000 + 16 * i,
						  .p_vaddr = 0x20000 + 16 * i,
						  .p_filesz = 16,
						  .p_memsz = 16};
		if (last_is_code)
			program[ELF_MAX_SEGMENTS] = (Elf64_Phdr){.p_type = PT_LOAD,
								 .p_flags = PF_R | PF_X,
								 .p_filesz = 0x20000,
								 .p_memsz = 0x20000};
		else
			program[1] = (Elf64_Phdr){.p_type = PT_LOAD,
						  .p_flags = PF_R,
						  .p_filesz = BUILT_FRAME,
						  .p_memsz = BUILT_FRAME};
		elf->e_phoff = PROGRAM_HEADERS;
		elf->e_phnum = ELF_MAX_SEGMENTS + 1;
		assert_int_equal(open_elf(&fixture), last_is_code ? 0 : -EBADMSG);
		close_fixture(&fixture);
	}
}

static void cfi_compile__the_fde_at_the_end_of_the_range_is_no_part_of_it(void **state)
{
	struct frame_builder frame = {0};
	struct cfi_rows rows = {0};
	struct fixture fixture;
	size_t cie = CIE(&frame, X86_CIE);

	(void)state;
	FDE(&frame, cie, TEXT, 16, "");
	FDE(&frame, cie, TEXT + 16, 16, "\x0e\x10");
	open_fixture(&fixture, EM_X86_64, &frame);
	assert_int_equal(cfi_compile(fixture.cfi, TEXT, TEXT + 16, &rows, NULL), 0);
	assert_int_equal(rows.count, 1);
	assert_int_equal(cfi_compile(fixture.cfi, TEXT, TEXT + 17, &rows, NULL), 0);
	assert_int_equal(rows.count, 3);
	assert_int_equal(rows.row[2].vaddr, TEXT + 16);
	assert_int_equal(rows.row[2].rule.cfa_offset, 16);
	free(rows.row);
	close_fixture(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cfi_open__cie_of_a_known_form_only),
		cmocka_unit_test(cfi_open__addresses_of_each_encoding_are_read),
		cmocka_unit_test(cfi_open__code_that_wraps_or_is_empty_is_left_out),
		cmocka_unit_test(cfi_open__records_with_an_extended_length_are_read),
		cmocka_unit_test(cfi_open__debug_frame_of_64_bits_is_read),
		cmocka_unit_test(cfi_open__debug_frame_names_its_cie_by_offset),
		cmocka_unit_test(cfi_open__fde_needs_a_cie),
		cmocka_unit_test(cfi_rule_at__many_cies_are_told_apart),
		cmocka_unit_test(cfi_rule_at__answers_are_kept_by_address),
		cmocka_unit_test(cfi_open__header_table_is_used_only_when_it_can_be_searched),
		cmocka_unit_test(cfi_open__without_sections_the_header_must_be_right),
		cmocka_unit_test(cfi_compile__damage_behind_the_header_table_is_counted),
		cmocka_unit_test(cfi_open__section_without_bytes_is_none),
		cmocka_unit_test(cfi_compile__instructions_are_bounded_by_the_section),
		cmocka_unit_test(cfi_open__segments_are_looked_through_to_the_last),
		cmocka_unit_test(cfi_compile__the_fde_at_the_end_of_the_range_is_no_part_of_it),
	};

	return cmocka_run_group_tests_name("unwind/cfi_open", tests, NULL, NULL);
}
