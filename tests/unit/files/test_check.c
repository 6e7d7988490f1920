/* SPDX-License-Identifier: BSD-2-Clause */
/* What the child may say of files, at each bound, and the lines of perf maps that it reads. */
#include "files/check.h"

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "files/decode.h"
#include "files/protocol.h"

#define ROWS_MAX 4U

uint32_t python_code_rows_max(const struct python_code_raw *raw)
{
	(void)raw;
	return ROWS_MAX;
}

/* ---- code objects ---- */

/* Returns whether one is sound with a name of so many bytes, for one of `raw`, and so many rows. */
static bool is_code_sound(uint32_t name_bytes, uint32_t raw_bytes, uint32_t rows)
{
	const struct foreign_code code = {.row_count = rows, .name_bytes = name_bytes};
	const struct python_code_raw object = {.size = 4096, .name_bytes = (uint16_t)raw_bytes};
	const struct python_code_raw *const raw = &object;
	static union {
		struct foreign_codes head;
		uint8_t bytes[1024];
	} codes;

	codes.head = (struct foreign_codes){
		.next = 4096, .count = 1, .bytes = (uint32_t)foreign_code_bytes(&code)};
	memset(codes.head.code, 0, sizeof(codes) - sizeof(codes.head));
	memcpy(codes.head.code, &code, sizeof(code));
	for (uint32_t i = 0; i < rows; i++) {
		const struct line_row row = {.start = i, .line = 1};

		memcpy(codes.head.code + sizeof(code) + i * sizeof(row), &row, sizeof(row));
	}
	memset(codes.head.code + sizeof(code) + rows * sizeof(struct line_row), 'n', name_bytes);
	return foreign_codes_are_sound(&codes.head, sizeof(codes.head) + codes.head.bytes, &raw, 1);
}

static void codes__names_grow_by_three_at_most(void **state)
{
	(void)state;
	assert_true(is_code_sound(0, 0, 1));
	assert_true(is_code_sound(30, 10, 1));
	assert_false(is_code_sound(31, 10, 1));
}

static void codes__have_rows_as_many_as_the_table_can_have(void **state)
{
	(void)state;
	assert_false(is_code_sound(3, 10, 0));
	assert_true(is_code_sound(3, 10, ROWS_MAX));
	assert_false(is_code_sound(3, 10, ROWS_MAX + 1));
}

/* ---- facts ---- */

static struct foreign_facts sound_facts(void)
{
	struct foreign_facts facts = {.segment_count = 2, .python_error = -ENOENT};

	facts.segment[0] = (struct foreign_segment){
		.vaddr = 0x1000, .offset = 0x2000, .file_size = 0x100, .memory_size = 0x100};
	facts.segment[1] = (struct foreign_segment){
		.vaddr = 0x8000, .offset = 0x3000, .file_size = 0, .memory_size = 0x100};
	strcpy(facts.debug.link, "a.debug");
	strcpy(facts.reason, "a reason: ~ ");
	return facts;
}

static void facts__within_their_bounds_are_sound(void **state)
{
	struct foreign_facts facts = sound_facts();

	(void)state;
	assert_true(foreign_facts_are_sound(&facts));
	facts.debug.build_id_bytes = sizeof(facts.debug.build_id);
	memset(facts.debug.link, 'a', sizeof(facts.debug.link) - 1);
	memset(facts.reason, 'a', sizeof(facts.reason) - 1);
	facts.segment_count = FOREIGN_MAX_SEGMENTS;
	/* The last byte of memory is the end of no segment. */
	facts.segment[7].vaddr = UINT64_MAX - 0x100;
	facts.segment[7].memory_size = facts.segment[7].file_size = 0x100;
	facts.segment[7].offset = UINT64_MAX - 0x100;
	assert_true(foreign_facts_are_sound(&facts));
	facts = (struct foreign_facts){.rows_error = -ENODATA};
	assert_true(foreign_facts_are_sound(&facts));
	facts.rows_error = -EBADMSG;
	assert_true(foreign_facts_are_sound(&facts));
	facts.rows_error = -E2BIG;
	assert_true(foreign_facts_are_sound(&facts));
}

static void facts__that_cannot_be_are_refused(void **state)
{
	struct foreign_facts facts[16];
	size_t count = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
		facts[i] = sound_facts();
	facts[count++].debug.build_id_bytes = sizeof(facts->debug.build_id) + 1;
	memset(facts[count].debug.link, 'a', sizeof(facts->debug.link));
	count++;
	facts[count++].debug.link[6] = '/';
	facts[count++].segment_count = FOREIGN_MAX_SEGMENTS + 1;
	facts[count++].rows_error = -EIO;
	facts[count++].rows_error = 1;
	memset(facts[count].reason, 'a', sizeof(facts->reason));
	count++;
	facts[count++].reason[3] = '\n';
	facts[count++].reason[0] = '\n';
	facts[count++].reason[3] = '\x7f';
	facts[count++].segment[0].file_size = 0x101;
	facts[count++].segment[1].file_size = 0x101;
	facts[count++].segment[1].vaddr = UINT64_MAX - 0xff;
	facts[count].segment[0].offset = UINT64_MAX - 0xff;
	count++;
	for (size_t i = 0; i < count; i++)
		if (foreign_facts_are_sound(&facts[i]))
			fail_msg("lie %zu", i);
}

/* ---- rows ---- */

static void rows__ascend_from_low_on_below_high(void **state)
{
	struct cfi_row row[] = {{.vaddr = 100}, {.vaddr = 101}, {.vaddr = 199}};

	(void)state;
	assert_true(foreign_rows_are_sound(row, 3, 100, 200));
	assert_true(foreign_rows_are_sound(row, 1, 100, 101));
	assert_false(foreign_rows_are_sound(row, 0, 100, 200));
	assert_false(foreign_rows_are_sound(row, 3, 99, 200));
	assert_false(foreign_rows_are_sound(row, 3, 101, 200));
	assert_false(foreign_rows_are_sound(row, 3, 100, 199));
	row[1].vaddr = 100;
	assert_false(foreign_rows_are_sound(row, 3, 100, 200));
	row[1].vaddr = 199;
	assert_false(foreign_rows_are_sound(row, 3, 100, 200));
	row[1].vaddr = 250;
	assert_false(foreign_rows_are_sound(row, 3, 100, 200));
}

static bool is_rule_sound(struct pp_rule rule)
{
	const struct cfi_row row[] = {{.vaddr = 0}, {.vaddr = 1, .rule = rule}};
	const bool is_sound = foreign_rows_are_sound(row, 2, 0, 2);

	/* Each row is looked at. */
	assert_int_equal(foreign_rows_are_sound(row + 1, 1, 1, 2), is_sound);
	return is_sound;
}

static void rows__have_rules_that_a_walk_knows(void **state)
{
	(void)state;
	assert_true(is_rule_sound((struct pp_rule){.kind = PP_RULE_SIGNAL}));
	assert_false(is_rule_sound((struct pp_rule){.kind = PP_RULE_SIGNAL + 1}));
	assert_true(is_rule_sound((struct pp_rule){.cfa_register = 31}));
	assert_false(is_rule_sound((struct pp_rule){.cfa_register = 32}));
	assert_true(is_rule_sound((struct pp_rule){.fp_kind = PP_FP_UNDEFINED}));
	assert_false(is_rule_sound((struct pp_rule){.fp_kind = PP_FP_UNDEFINED + 1}));
	assert_true(is_rule_sound((struct pp_rule){.ra_kind = PP_RA_UNDEFINED}));
	assert_false(is_rule_sound((struct pp_rule){.ra_kind = PP_RA_UNDEFINED + 1}));
	assert_true(is_rule_sound((struct pp_rule){.ra_kind = PP_RA_REGISTER, .ra_offset = 0}));
	assert_true(is_rule_sound((struct pp_rule){.ra_kind = PP_RA_REGISTER, .ra_offset = 31}));
	assert_false(is_rule_sound((struct pp_rule){.ra_kind = PP_RA_REGISTER, .ra_offset = 32}));
	assert_false(is_rule_sound((struct pp_rule){.ra_kind = PP_RA_REGISTER, .ra_offset = -1}));
	/* Of others it is a distance. */
	assert_true(is_rule_sound((struct pp_rule){.ra_kind = PP_RA_AT_CFA, .ra_offset = -8}));
}

/* ---- names ---- */

#define VADDRS 3U
#define TEXT 100U

static union {
	struct foreign_names head;
	uint8_t bytes[sizeof(struct foreign_names) + VADDRS * sizeof(struct foreign_name) + 8192];
} names;
static const uint64_t vaddr[FOREIGN_MAX_NAMES + 1] = {10, 20, 30};

static void set_names(void)
{
	memset(&names, 0, sizeof(names));
	names.head.count = VADDRS;
	names.head.text_bytes = TEXT;
	for (uint32_t i = 0; i < VADDRS; i++)
		names.head.name[i] = (struct foreign_name){.low = vaddr[i],
							   .high = vaddr[i] + 1,
							   .name_bytes = TEXT,
							   .system_at = TEXT};
}

static bool names_are_sound(uint32_t text)
{
	return foreign_names_are_sound(&names.head, foreign_text_at(VADDRS) + text, vaddr, VADDRS);
}

static void names__within_their_bounds_are_sound(void **state)
{
	(void)state;
	set_names();
	assert_true(names_are_sound(TEXT));
	assert_true(names_are_sound(TEXT + 1));
	names.head.count = 1;
	assert_true(names_are_sound(TEXT));
	names.head.name[0].name_at = TEXT - 1;
	names.head.name[0].name_bytes = 1;
	names.head.name[0].low = 0;
	names.head.name[0].high = UINT64_MAX;
	assert_true(names_are_sound(TEXT));
	names.head.text_bytes = 5000;
	names.head.name[0].name_at = 0;
	names.head.name[0].name_bytes = FOREIGN_NAME_MAX_BYTES;
	assert_true(names_are_sound(5000));
	names.head.name[0].name_bytes++;
	assert_false(names_are_sound(5000));
}

static void names__that_cannot_be_are_refused(void **state)
{
	(void)state;
	set_names();
	assert_false(names_are_sound(TEXT - 1));
	assert_false(
		foreign_names_are_sound(&names.head, foreign_text_at(VADDRS) - 1, vaddr, VADDRS));
	names.head.text_bytes = 0;
	assert_false(
		foreign_names_are_sound(&names.head, foreign_text_at(VADDRS) - 1, vaddr, VADDRS));
	set_names();
	assert_false(
		foreign_names_are_sound(&names.head, SIZE_MAX / 2, vaddr, FOREIGN_MAX_NAMES + 1));
	assert_true(foreign_names_are_sound(&names.head, SIZE_MAX / 2, vaddr, FOREIGN_MAX_NAMES));
	names.head.count = 0;
	assert_false(names_are_sound(TEXT));
	names.head.count = VADDRS + 1;
	names.head.name[VADDRS] = names.head.name[0];
	names.head.name[VADDRS].low = 0;
	assert_false(names_are_sound(TEXT));
	for (uint32_t i = 0; i < VADDRS; i++) {
		struct foreign_name *name = &names.head.name[i];

		set_names();
		name->low++;
		assert_false(names_are_sound(TEXT));
		set_names();
		name->high--;
		assert_false(names_are_sound(TEXT));
		set_names();
		name->name_at = 1;
		assert_false(names_are_sound(TEXT));
		set_names();
		name->name_at = TEXT + 1;
		name->name_bytes = 0;
		assert_false(names_are_sound(TEXT));
		set_names();
		name->name_at = UINT32_MAX;
		assert_false(names_are_sound(TEXT));
		set_names();
		name->system_bytes = 1;
		assert_false(names_are_sound(TEXT));
		set_names();
		name->system_at = TEXT + 1;
		assert_false(names_are_sound(TEXT));
	}
}

/* ---- lines, as the child writes them ---- */

#define ROOM 4096U

static union {
	struct foreign_lines head;
	uint8_t bytes[sizeof(struct foreign_lines) + FOREIGN_MEMORY_BYTES];
} lines;
static uint32_t lines_size;

/* Reads a perf map from `from` on. */
static int read_text(const char *text, size_t size, uint64_t from, uint64_t to, size_t room)
{
	OWNED_FD int fd = memfd_create("map", MFD_CLOEXEC);
	int err;

	assert_int_equal(write(fd, text, size), (ssize_t)size);
	memset(&lines, 0xee, sizeof(lines));
	err = perf_lines_read(fd, from, to, lines.bytes, room, &lines_size);
	if (err)
		return err;
	assert_true(lines_size <= room);
	assert_int_equal(lines_size, sizeof(lines.head) + lines.head.bytes);
	assert_int_equal(lines.bytes[lines_size], 0xee);
	assert_true(foreign_lines_are_sound(&lines.head, lines_size, from, to));
	return 0;
}

/* One line, and what it becomes; name NULL: nothing, it is passed over. */
static void expect_line(const char *text, uint64_t start, uint32_t code_bytes, const char *name)
{
	const size_t size = strlen(text);
	struct foreign_line line;

	assert_int_equal(read_text(text, size, 0, size, ROOM), 0);
	assert_int_equal(lines.head.next, size);
	if (lines.head.count != (name != NULL))
		fail_msg("%s", text);
	if (!name)
		return;
	memcpy(&line, lines.head.line, sizeof(line));
	assert_int_equal(line.start, start);
	assert_int_equal(line.code_bytes, code_bytes);
	assert_int_equal(line.name_bytes, strlen(name));
	assert_memory_equal(lines.head.line + sizeof(line), name, strlen(name));
}

static void lines__have_two_numbers_and_a_name(void **state)
{
	(void)state;
	expect_line("7f10 20 name\n", 0x7f10, 0x20, "name");
	expect_line("0123456789abcdef ABCDEF f(int)\n", 0x0123456789abcdef, 0xabcdef, "f(int)");
	expect_line("0x7f10 0X20 a b\n", 0x7f10, 0x20, "a b");
	expect_line("7f10   20   spaces\r\n", 0x7f10, 0x20, "spaces");
	expect_line("9 ffffffff x\n", 9, UINT32_MAX, "x");
	expect_line("fffffffffffffff0 f x\n", 0xfffffffffffffff0, 15, "x");
	expect_line("0 1 tab\there\x1f\n", 0, 1, "tab?here?");
	expect_line("0 1 \xc3\xa9~\x7f\n", 0, 1, "\xc3\xa9~\x7f");
	expect_line("0 1 py:\n", 0, 1, "py:");
	expect_line("0 1 py:_x\n", 0, 1, "py:_x");
	/* No number, too large a one, or no name. */
	expect_line("name\n", 0, 0, NULL);
	expect_line("\n", 0, 0, NULL);
	expect_line("7f10\n", 0, 0, NULL);
	expect_line("7f10 20\n", 0, 0, NULL);
	expect_line("7f10 20 \n", 0, 0, NULL);
	expect_line("7f10 20 \r\n", 0, 0, NULL);
	expect_line("7f10 20x\n", 0, 0, NULL);
	expect_line("7f10 20x y\n", 0, 0, NULL);
	expect_line("7g10 20 x\n", 0, 0, NULL);
	expect_line("7f1@ 20 x\n", 0, 0, NULL);
	expect_line("7f1: 20 x\n", 0, 0, NULL);
	expect_line("7f1/ 20 x\n", 0, 0, NULL);
	expect_line("7f1` 20 x\n", 0, 0, NULL);
	expect_line("0x 20 x\n", 0, 0, NULL);
	expect_line("1x10 20 x\n", 0, 0, NULL);
	expect_line("0y10 20 x\n", 0, 0, NULL);
	expect_line(" 7f10 20 x\n", 0, 0, NULL);
	expect_line("10123456789abcdef 20 x\n", 0, 0, NULL);
	expect_line("7f10 100000000 x\n", 0, 0, NULL);
	expect_line("7f10 0 x\n", 0, 0, NULL);
	expect_line("fffffffffffffff0 10 x\n", 0, 0, NULL);
	/* Python's own. */
	expect_line("0 1 py::f:a.py\n", 0, 0, NULL);
	expect_line("0 1 py::\n", 0, 0, NULL);
}

static void lines__long_names_are_cut(void **state)
{
	char text[2000] = "10 20 ", name[2000];

	(void)state;
	for (size_t size = FOREIGN_LINE_NAME_BYTES - 1; size <= FOREIGN_LINE_NAME_BYTES + 1;
	     size++) {
		memset(text + 6, 'n', size);
		strcpy(text + 6 + size, "\n");
		memset(name, 'n', sizeof(name));
		name[size < FOREIGN_LINE_NAME_BYTES ? size : FOREIGN_LINE_NAME_BYTES] = '\0';
		expect_line(text, 0x10, 0x20, name);
	}
}

static void lines__only_complete_ones_are_read(void **state)
{
	static const char text[] = "10 1 a\n20 1 b\nno line\n30 1 c\n40 1 d";

	(void)state;
	assert_int_equal(read_text(text, sizeof(text) - 1, 0, sizeof(text) - 1, ROOM), 0);
	assert_int_equal(lines.head.count, 3);
	assert_int_equal(lines.head.next, 29);
	/* From another one on, and as far as is wanted. */
	assert_int_equal(read_text(text, sizeof(text) - 1, 7, 20, ROOM), 0);
	assert_int_equal(lines.head.count, 1);
	assert_int_equal(lines.head.next, 14);
	assert_int_equal(read_text(text, sizeof(text) - 1, 7, 14, ROOM), 0);
	assert_int_equal(lines.head.count, 1);
	assert_int_equal(read_text(text, sizeof(text) - 1, 7, 13, ROOM), 0);
	assert_int_equal(lines.head.count, 0);
	assert_int_equal(lines.head.next, 7);
	/* The file has become shorter. */
	assert_int_equal(read_text(text, 7, 0, 1000, ROOM), 0);
	assert_int_equal(lines.head.count, 1);
	assert_int_equal(lines.head.next, 7);
	assert_int_equal(perf_lines_read(-1, 0, 10, lines.bytes, ROOM, &lines_size), -EBADF);
}

static void lines__as_many_as_there_is_room_for(void **state)
{
	static const char text[] = "10 1 abcdefgh\n20 1 abcdefgh\n";
	const size_t one = sizeof(struct foreign_line) + 8;

	(void)state;
	assert_int_equal(read_text(text, 28, 0, 28, sizeof(lines.head) + 2 * one), 0);
	assert_int_equal(lines.head.count, 2);
	assert_int_equal(lines.head.next, 28);
	assert_int_equal(read_text(text, 28, 0, 28, sizeof(lines.head) + 2 * one - 1), 0);
	assert_int_equal(lines.head.count, 1);
	assert_int_equal(lines.head.next, 14);
	assert_int_equal(read_text(text, 28, 14, 28, sizeof(lines.head) + one), 0);
	assert_int_equal(lines.head.count, 1);
}

/* They are read in pieces of 64 KiB, which end somewhere in a line. */
static void lines__of_long_texts_are_all_read(void **state)
{
	enum { COUNT = 10000 };
	char *text = malloc(COUNT * 32);
	size_t size = 0, at = 0;

	(void)state;
	assert_non_null(text);
	for (unsigned int i = 0; i < COUNT; i++)
		size += (size_t)sprintf(text + size, "%x 10 name %u\n", i, i);
	assert_int_equal(read_text(text, size, 0, size, FOREIGN_MEMORY_BYTES), 0);
	assert_int_equal(lines.head.count, COUNT);
	assert_int_equal(lines.head.next, size);
	for (unsigned int i = 0; i < COUNT; i++) {
		struct foreign_line line;

		memcpy(&line, lines.head.line + at, sizeof(line));
		assert_int_equal(line.start, i);
		at += sizeof(line) + line.name_bytes;
	}
	free(text);
}

static void lines__longer_than_64_kib_are_passed_over(void **state)
{
	static char text[3 * FOREIGN_LINE_MAX_BYTES];

	(void)state;
	for (size_t size = FOREIGN_LINE_MAX_BYTES - 2; size < FOREIGN_LINE_MAX_BYTES + 2; size++) {
		memset(text, 'n', sizeof(text));
		memcpy(text, "10 20 ", 6);
		strcpy(text + size, "\n30 1 next\n");
		assert_int_equal(read_text(text, size + 11, 0, size + 11, ROOM), 0);
		assert_int_equal(lines.head.count, size < FOREIGN_LINE_MAX_BYTES ? 2 : 1);
		assert_int_equal(lines.head.next, size + 11);
	}
}

/* ---- lines that lie ---- */

static void set_lines(uint32_t count)
{
	struct foreign_line line = {.start = 0x1000, .code_bytes = 16, .name_bytes = 3};

	memset(&lines, 0, sizeof(lines));
	lines.head.next = 50;
	for (lines.head.count = 0; lines.head.count < count; lines.head.count++) {
		memcpy(lines.head.line + lines.head.bytes, &line, sizeof(line));
		memcpy(lines.head.line + lines.head.bytes + sizeof(line), "abc", 3);
		lines.head.bytes += sizeof(line) + 3;
	}
	lines_size = sizeof(lines.head) + lines.head.bytes;
}

static bool lines_are_sound(void)
{
	return foreign_lines_are_sound(&lines.head, lines_size, 10, 100);
}

/* Expects that two lines, of which the second is this one, are sound, or not. */
static void expect_second(struct foreign_line line, const char *name, bool is_sound)
{
	set_lines(1);
	memcpy(lines.head.line + lines.head.bytes, &line, sizeof(line));
	memcpy(lines.head.line + lines.head.bytes + sizeof(line), name, line.name_bytes);
	lines.head.bytes += (uint32_t)sizeof(line) + line.name_bytes;
	lines.head.count = 2;
	lines_size = sizeof(lines.head) + lines.head.bytes;
	assert_int_equal(lines_are_sound(), is_sound);
}

static void lines__that_cannot_be_are_refused(void **state)
{
	static char long_name[FOREIGN_LINE_NAME_BYTES + 1];
	const struct foreign_line line = {.start = 0x1000, .code_bytes = 16, .name_bytes = 3};
	struct foreign_line lie = line;

	(void)state;
	set_lines(2);
	assert_true(lines_are_sound());
	/* The last name is longer than what is there. */
	lie.name_bytes = 4;
	memcpy(lines.head.line + sizeof(line) + 3, &lie, sizeof(lie));
	assert_false(lines_are_sound());
	lie = line;
	expect_second(line, "abc", true);
	expect_second(line, "a c", true);
	expect_second(line,
		      "a\x1f"
		      "c",
		      false);
	expect_second(line,
		      "\x1f"
		      "bc",
		      false);
	expect_second(line, "ab\n", false);
	lie.name_bytes = 0;
	expect_second(lie, "", false);
	memset(long_name, 'n', sizeof(long_name));
	lie.name_bytes = FOREIGN_LINE_NAME_BYTES;
	expect_second(lie, long_name, true);
	lie.name_bytes++;
	expect_second(lie, long_name, false);
	lie = line;
	lie.code_bytes = 0;
	expect_second(lie, "abc", false);
	lie = line;
	lie.start = UINT64_MAX - 16;
	expect_second(lie, "abc", true);
	lie.start++;
	expect_second(lie, "abc", false);
}

static void lines__that_do_not_add_up_are_refused(void **state)
{
	(void)state;
	set_lines(0);
	assert_true(lines_are_sound());
	lines_size--;
	assert_false(lines_are_sound());
	lines_size += 2;
	assert_false(lines_are_sound());
	set_lines(2);
	lines.head.bytes--;
	assert_false(lines_are_sound());
	set_lines(2);
	lines.head.count = 1;
	assert_false(lines_are_sound());
	lines.head.count = 3;
	assert_false(lines_are_sound());
	/* Half a line. */
	set_lines(2);
	lines.head.count = 3;
	lines.head.bytes += sizeof(struct foreign_line) - 1;
	lines_size += sizeof(struct foreign_line) - 1;
	assert_false(lines_are_sound());
	set_lines(2);
	lines.head.next = 10;
	assert_true(lines_are_sound());
	lines.head.next = 9;
	assert_false(lines_are_sound());
	lines.head.next = 100;
	assert_true(lines_are_sound());
	lines.head.next = 101;
	assert_false(lines_are_sound());
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(codes__names_grow_by_three_at_most),
		TEST(codes__have_rows_as_many_as_the_table_can_have),
		TEST(facts__within_their_bounds_are_sound),
		TEST(facts__that_cannot_be_are_refused),
		TEST(rows__ascend_from_low_on_below_high),
		TEST(rows__have_rules_that_a_walk_knows),
		TEST(names__within_their_bounds_are_sound),
		TEST(names__that_cannot_be_are_refused),
		TEST(lines__have_two_numbers_and_a_name),
		TEST(lines__long_names_are_cut),
		TEST(lines__only_complete_ones_are_read),
		TEST(lines__as_many_as_there_is_room_for),
		TEST(lines__of_long_texts_are_all_read),
		TEST(lines__longer_than_64_kib_are_passed_over),
		TEST(lines__that_cannot_be_are_refused),
		TEST(lines__that_do_not_add_up_are_refused),
	};

	return cmocka_run_group_tests_name("files/check", tests, NULL, NULL);
}
