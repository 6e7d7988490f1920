/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "interpreters.h"
#include "python/python_code.h"
#include "python/python_offsets.h"

#define RECORD_ID 0x1234567890abcdefULL

static const struct pp_python *layout_of(unsigned int major, unsigned int minor)
{
	return &python_layout_find(major, minor, false)->info.bpf;
}

/* As the child does it, with the size of the line table. */
static uint32_t decode(struct python_code *code)
{
	const uint32_t line_table_bytes = code->raw->line_table_bytes;
	struct python_code_text text;

	assert_true(python_code_raw_is_sound(code->raw));
	assert_int_equal(python_code_text_decode(code->raw, &text), 0);
	assert_in_range(text.row_count, 1, python_code_rows_max(code->raw));
	python_code_set_text(code, &text);
	assert_null(code->raw);
	return line_table_bytes;
}

/* A record of 3 parts; the caller frees it. */
static struct pp_code_record *record_of(const void *name, uint16_t name_bytes, uint8_t name_kind,
					const char *filename, const void *table,
					uint32_t table_bytes)
{
	size_t size = sizeof(struct pp_code_record) + name_bytes + strlen(filename) + table_bytes;
	struct pp_code_record *record = calloc(1, size);

	assert_non_null(record);
	record->record.type = PP_RECORD_CODE;
	record->record.size = (uint32_t)size;
	record->id = RECORD_ID;
	record->first_line = 40;
	record->code_flags = 67;
	record->name_bytes = name_bytes;
	record->name_kind = name_kind;
	record->filename_bytes = (uint16_t)strlen(filename);
	record->filename_kind = 1;
	record->line_table_bytes = table_bytes;
	memcpy(record->bytes, name, name_bytes);
	memcpy(record->bytes + name_bytes, filename, strlen(filename));
	memcpy(record->bytes + name_bytes + strlen(filename), table, table_bytes);
	return record;
}

static void assert_name(const void *name, uint16_t name_bytes, uint8_t kind,
			const struct pp_python *layout, const char *expected)
{
	struct pp_code_record *record = record_of(name, name_bytes, kind, "a.py", "\x80\x00", 2);
	struct python_code *code;

	assert_int_equal(python_code_from_record(record, layout, 0, &code), 0);
	decode(code);
	assert_string_equal(code->name, expected);
	assert_string_equal(code->filename, "a.py");
	assert_false(code->is_truncated);
	python_code_free(code);
	free(record);
}

static void record__names_of_every_kind_become_utf8(void **state)
{
	static const uint16_t two[] = {'f', 0x3b1, 0x4e2d, 0xd83d, 0xdc0d, 0xffff};
	static const uint32_t four[] = {'f', 0xe9, 0x1f40d, 0x110000, 0xdfff, 0xffffffff};
	const struct pp_python *layout = layout_of(3, 12);

	(void)state;
	assert_name("main", 4, 1, layout, "main");
	assert_name("d\xe9j\xff\0x", 6, 1, layout, "d\xc3\xa9j\xc3\xbf\xef\xbf\xbdx");
	assert_name(two, sizeof(two), 2, layout,
		    "f\xce\xb1\xe4\xb8\xad\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbf");
	assert_name(four, sizeof(four), 4, layout,
		    "f\xc3\xa9\xf0\x9f\x90\x8d\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

static void record__bytes_of_27_are_utf8_or_replaced(void **state)
{
	const struct pp_python *layout = layout_of(2, 7);

	(void)state;
	assert_name("d\xc3\xa9j\xe4\xb8\xad", 7, 1, layout, "d\xc3\xa9j\xe4\xb8\xad");
	assert_name("d\xe9j", 3, 1, layout, "d\xef\xbf\xbdj");
	/* Overlong, a surrogate, and a character that the end cuts. */
	assert_name("\xc0\x80", 2, 1, layout, "\xef\xbf\xbd\xef\xbf\xbd");
	assert_name("\xed\xa0\x80", 3, 1, layout, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	assert_name("x\xe4\xb8", 3, 1, layout, "x\xef\xbf\xbd\xef\xbf\xbd");
}

static void record__sizes_that_do_not_add_up_are_refused(void **state)
{
	struct pp_code_record *record = record_of("f", 1, 1, "a.py", "\x80\x00", 2);
	struct python_code *code = NULL;

	(void)state;
	record->record.size++;
	assert_int_equal(python_code_from_record(record, layout_of(3, 12), 0, &code), -EBADMSG);
	record->record.size -= 2;
	assert_int_equal(python_code_from_record(record, layout_of(3, 12), 0, &code), -EBADMSG);
	record->record.size = sizeof(*record) - 1;
	assert_int_equal(python_code_from_record(record, layout_of(3, 12), 0, &code), -EBADMSG);
	record->record.size = sizeof(*record) + 7;
	record->name_kind = 3;
	assert_int_equal(python_code_from_record(record, layout_of(3, 12), 0, &code), -EBADMSG);
	assert_null(code);
	free(record);
}

/* Gives a code object of a version its lines. */
static void set_lines(struct python_code *code, const uint8_t *table, size_t size)
{
	static struct line_row row[8];

	code->row = row;
	code->row_count =
		(uint32_t)line_table_rows(line_table_format(code->major, code->minor), table, size,
					  code->first_line, row, ARRAY_SIZE(row));
}

/* 2.7's lines only grow; since 3.6 a step may lead back. */
static void line__steps_back_since_3_6(void **state)
{
	uint8_t lnotab[] = {2, 0xff};
	struct python_code code = {.first_line = 40, .major = 2, .minor = 7};

	(void)state;
	set_lines(&code, lnotab, sizeof(lnotab));
	assert_int_equal(python_code_line(&code, 2), 40 + 255);
	code.major = 3;
	set_lines(&code, lnotab, sizeof(lnotab));
	assert_int_equal(python_code_line(&code, 2), 39);
}

static void line__what_is_understood_by_version(void **state)
{
	uint8_t lnotab[] = {2, 1, 4, 3}, table_310[] = {2, 1, 4, 3, 4, 0x80},
		table_311[] = {0xd8, 0, 0, 0xd9, 0, 0, 0xf9};
	struct python_code code = {.first_line = 40, .major = 3, .minor = 9};

	(void)state;
	set_lines(&code, lnotab, sizeof(lnotab));
	assert_int_equal(python_code_line(&code, (uint32_t)-1), 40);
	assert_int_equal(python_code_line(&code, 0), 40);
	assert_int_equal(python_code_line(&code, 2), 41);
	assert_int_equal(python_code_line(&code, 6), 44);
	/* 3.10: f_lasti counts code units. */
	code.minor = 10;
	set_lines(&code, table_310, sizeof(table_310));
	assert_int_equal(python_code_line(&code, (uint32_t)-1), 40);
	assert_int_equal(python_code_line(&code, 0), 41);
	assert_int_equal(python_code_line(&code, 1), 44);
	assert_int_equal(python_code_line(&code, 3), 40); /* no line */
	/* 3.11+: from the code object's address; 3.12's frame that has not begun is at -2. */
	code.minor = 11;
	code.code_adaptive = 184;
	set_lines(&code, table_311, sizeof(table_311));
	assert_int_equal(python_code_line(&code, 184), 41);
	assert_int_equal(python_code_line(&code, 186), 42);
	code.minor = 12;
	code.code_adaptive = 192;
	set_lines(&code, table_311, sizeof(table_311));
	assert_int_equal(python_code_line(&code, 190), 40);
	assert_int_equal(python_code_line(&code, 192), 41);
	assert_int_equal(python_code_line(&code, 194), 42);
	assert_int_equal(python_code_line(&code, 196), 42);
	assert_int_equal(python_code_line(&code, 198), 40); /* no line */
	assert_int_equal(python_code_line(&code, 0), 40);
	assert_int_equal(python_code_line(&code, (uint32_t)-8), 40);
}

/* A code object as 3.12 lays it out, in this process's own memory. */
struct fake_code {
	uint8_t head[208];
	uint8_t name[40 + 6000];
	uint8_t filename[40 + 700];
	uint8_t table[32 + 5000];
};

static void put_u64(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

static void fake_ascii(uint8_t *string, char filler, uint64_t length)
{
	put_u64(string + 16, length);
	put_u64(string + 32, 1 << 2 | 1 << 5 | 1 << 6);
	memset(string + 40, filler, length);
}

static struct fake_code *fake_code_new(uint64_t name_length, uint64_t table_length)
{
	struct fake_code *fake = calloc(1, sizeof(*fake));

	assert_non_null(fake);
	put_u64(fake->head + 8, 0x5000 + 0x77);
	put_u64(fake->head + 48, 67);
	put_u64(fake->head + 68, 40);
	put_u64(fake->head + 112, (uintptr_t)fake->filename);
	put_u64(fake->head + 128, (uintptr_t)fake->name);
	put_u64(fake->head + 136, (uintptr_t)fake->table);
	fake_ascii(fake->name, 'n', name_length);
	fake_ascii(fake->filename, 'f', 10);
	put_u64(fake->table + 16, table_length);
	for (uint64_t at = 0; at + 3 <= table_length && at + 3 <= 5000; at += 3)
		memcpy(fake->table + 32 + at, "\xd8\x00\x00", 3);
	return fake;
}

static struct pp_code_record *truncated_record(const struct fake_code *fake)
{
	struct pp_code_record *record =
		record_of(fake->name + 40, 512, 1, "ffffffffff", fake->table + 32, 2048);

	record->flags = PP_CODE_TRUNCATED;
	record->address = (uintptr_t)fake->head;
	return record;
}

static void truncated_record__is_completed_from_the_live_process(void **state)
{
	struct fake_code *fake = fake_code_new(700, 3000);
	struct pp_code_record *record = truncated_record(fake);
	struct python_code *code;

	(void)state;
	assert_int_equal(python_code_from_record(record, layout_of(3, 12), getpid(), &code), 0);
	assert_false(code->is_truncated);
	assert_int_equal(python_code_bytes(code), sizeof(*code) + code->raw->size);
	assert_int_equal(python_code_line(code, 192 + 2 * 999), code->first_line);
	assert_int_equal(decode(code), 3000);
	assert_int_equal(strlen(code->name), 700);
	assert_int_equal(code->id, RECORD_ID);
	assert_int_equal(python_code_line(code, 192 + 2 * 999), 1040);
	assert_int_equal(python_code_bytes(code),
			 sizeof(*code) + 701 + 11 + code->row_count * sizeof(*code->row));
	python_code_free(code);
	free(record);
	free(fake);
}

static void assert_stays_truncated(const struct pp_code_record *record, pid_t pid)
{
	struct python_code *code;

	assert_int_equal(python_code_from_record(record, layout_of(3, 12), pid, &code), 0);
	assert_true(code->is_truncated);
	assert_int_equal(decode(code), 2048);
	assert_int_equal(strlen(code->name), 512);
	/* 682 whole entries; past the cut the last line it tells. */
	assert_int_equal(python_code_line(code, 192 + 2 * 681), 722);
	assert_int_equal(python_code_line(code, 192 + 2 * 999), 722);
	python_code_free(code);
}

static void truncated_record__of_memory_that_changed_stays_as_it_is(void **state)
{
	struct fake_code *fake = fake_code_new(700, 3000);
	struct pp_code_record *record = truncated_record(fake);

	(void)state;
	assert_stays_truncated(record, 0);
	fake->table[32 + 2047] ^= 1;
	assert_stays_truncated(record, getpid());
	fake->table[32 + 2047] ^= 1;
	put_u64(fake->name + 16, 511);
	assert_stays_truncated(record, getpid());
	put_u64(fake->name + 16, 700);
	fake->head[68]++;
	assert_stays_truncated(record, getpid());
	record->address = 16;
	assert_stays_truncated(record, getpid());
	free(record);
	free(fake);
}

/* What is whole is not read again: the memory may have another object by now. */
static void whole_record__stays_as_it_is(void **state)
{
	struct fake_code *fake = fake_code_new(700, 3000);
	struct pp_code_record *record = truncated_record(fake);
	struct python_code *code;

	(void)state;
	record->flags = 0;
	assert_int_equal(python_code_from_record(record, layout_of(3, 12), getpid(), &code), 0);
	assert_int_equal(decode(code), 2048);
	assert_int_equal(strlen(code->name), 512);
	python_code_free(code);
	free(record);
	free(fake);
}

/* Nothing of the object was resident. */
static void empty_record__has_empty_parts(void **state)
{
	struct pp_code_record *record = record_of("", 0, 0, "", "", 0);
	struct python_code *code;

	(void)state;
	assert_int_equal(python_code_from_record(record, layout_of(3, 12), 0, &code), 0);
	assert_true(code->is_truncated);
	decode(code);
	assert_string_equal(code->name, "");
	assert_string_equal(code->filename, "");
	assert_int_equal(code->first_line, 40);
	python_code_free(code);
	free(record);
}

static void unread_filename__is_read_from_the_live_process(void **state)
{
	struct fake_code *fake = fake_code_new(20, 30);
	struct pp_code_record *record = record_of(fake->name + 40, 20, 1, "", fake->table + 32, 30);
	struct python_code *code;

	(void)state;
	record->filename_kind = 0;
	assert_int_equal(python_code_from_record(record, layout_of(3, 12), 0, &code), 0);
	assert_true(code->is_truncated);
	decode(code);
	assert_string_equal(code->filename, "");
	python_code_free(code);
	record->address = (uintptr_t)fake->head;
	assert_int_equal(python_code_from_record(record, layout_of(3, 12), getpid(), &code), 0);
	assert_false(code->is_truncated);
	decode(code);
	assert_string_equal(code->filename, "ffffffffff");
	python_code_free(code);
	free(record);
	free(fake);
}

static void read__bounds_names_and_refuses_other_objects(void **state)
{
	struct fake_code *fake = fake_code_new(6000, 30);
	struct pp_python layout = *layout_of(3, 12);
	uint64_t address = (uintptr_t)fake->head;
	struct python_code *code = NULL;

	(void)state;
	layout.code_type = 0x5000;
	assert_int_equal(python_code_read(getpid(), &layout, 0x77, address, 0, &code), 0);
	assert_true(code->is_truncated);
	decode(code);
	assert_int_equal(strlen(code->name), PYTHON_MAX_NAME_BYTES);
	assert_string_equal(code->filename, "ffffffffff");
	assert_int_equal(code->first_line, 40);
	assert_int_equal(code->flags, 67);
	python_code_free(code);
	code = NULL;
	assert_int_equal(python_code_read(getpid(), &layout, 0x78, address, 0, &code), -EBADMSG);
	assert_int_equal(python_code_read(getpid(), &layout, 0x77, 16, 0, &code), -EFAULT);
	/* A line table that says it is longer than memory. */
	put_u64(fake->table + 16, ~0ULL);
	assert_int_equal(python_code_read(getpid(), &layout, 0x77, address, 0, &code), -EFAULT);
	put_u64(fake->name + 32, 3 << 2 | 1 << 5);
	assert_int_equal(python_code_read(getpid(), &layout, 0x77, address, 0, &code), -EBADMSG);
	assert_null(code);
	free(fake);
}

/* The object's bytes that are read: up to its last field, wherever a version has that. */
static void read__each_field_may_be_the_last_that_is_read(void **state)
{
	static const size_t fields[] = {
		offsetof(struct pp_python, ob_type),
		offsetof(struct pp_python, code_flags),
		offsetof(struct pp_python, code_first_line),
		offsetof(struct pp_python, code_filename),
		offsetof(struct pp_python, code_line_table),
		offsetof(struct pp_python, code_qualname),
	};
	const uint16_t last = PP_CODE_READ_BYTES - 8;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		struct fake_code *fake = fake_code_new(20, 30);
		struct pp_python layout = *layout_of(3, 12);
		uint16_t *offset = (uint16_t *)((uint8_t *)&layout + fields[i]);
		struct python_code *code = NULL;

		layout.code_type = 0x5000;
		memmove(fake->head + last, fake->head + *offset, 8);
		memset(fake->head + *offset, 0, i == 1 || i == 2 ? 4 : 8);
		*offset = last;
		assert_int_equal(python_code_read(getpid(), &layout, 0x77, (uintptr_t)fake->head, 0,
						  &code),
				 0);
		assert_int_equal(decode(code), 30);
		assert_int_equal(strlen(code->name), 20);
		assert_string_equal(code->filename, "ffffffffff");
		assert_int_equal(code->first_line, 40);
		assert_int_equal(code->flags, 67);
		python_code_free(TAKE(code));
		*offset = last + 1;
		assert_int_equal(python_code_read(getpid(), &layout, 0x77, (uintptr_t)fake->head, 0,
						  &code),
				 -EBADMSG);
		assert_null(code);
		free(fake);
	}
}

/* 2.7 to 3.10 have no qualified name: its last field may be the plain one. */
static void read__name_is_the_qualified_one_where_there_is_one(void **state)
{
	struct fake_code *fake = fake_code_new(20, 30);
	struct pp_python layout = *layout_of(3, 12);
	struct python_code *code = NULL;

	(void)state;
	layout.code_name = PP_CODE_READ_BYTES - 8;
	put_u64(fake->head + layout.code_name, (uintptr_t)fake->filename);
	assert_int_equal(python_code_read(getpid(), &layout, 0, (uintptr_t)fake->head, 0, &code),
			 0);
	decode(code);
	assert_string_equal(code->name, "nnnnnnnnnnnnnnnnnnnn");
	python_code_free(TAKE(code));
	/* behind the other fields */
	layout.code_qualname = 144;
	put_u64(fake->head + 144, (uintptr_t)fake->name);
	assert_int_equal(python_code_read(getpid(), &layout, 0, (uintptr_t)fake->head, 0, &code),
			 0);
	decode(code);
	assert_string_equal(code->name, "nnnnnnnnnnnnnnnnnnnn");
	python_code_free(TAKE(code));
	/* not set yet */
	put_u64(fake->head + layout.code_qualname, 0);
	assert_int_equal(python_code_read(getpid(), &layout, 0, (uintptr_t)fake->head, 0, &code),
			 0);
	decode(code);
	assert_string_equal(code->name, "ffffffffff");
	python_code_free(TAKE(code));
	layout.code_qualname = PP_NO_OFFSET;
	assert_int_equal(python_code_read(getpid(), &layout, 0, (uintptr_t)fake->head, 0, &code),
			 0);
	decode(code);
	assert_string_equal(code->name, "ffffffffff");
	python_code_free(TAKE(code));
	layout.code_name++;
	assert_int_equal(python_code_read(getpid(), &layout, 0, (uintptr_t)fake->head, 0, &code),
			 -EBADMSG);
	free(fake);
}

/* Behind its last field a page may end. */
static void read__object_may_end_where_memory_does(void **state)
{
	uint8_t *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fake_code *fake = fake_code_new(20, 30);
	const struct pp_python *layout = layout_of(3, 12);
	const size_t bytes = layout->code_line_table + 8U;
	struct python_code *code = NULL;

	(void)state;
	assert_true(page != MAP_FAILED);
	munmap(page + 4096, 4096);
	memcpy(page + 4096 - bytes, fake->head, bytes);
	assert_int_equal(
		python_code_read(getpid(), layout, 0, (uintptr_t)page + 4096 - bytes, 0, &code), 0);
	assert_int_equal(decode(code), 30);
	python_code_free(code);
	munmap(page, 4096);
	free(fake);
}

/* 3.13 and later say where bytecode begins; up to 3.10 no version does. */
static void code__bytecode_begins_where_the_layout_says(void **state)
{
	static const struct {
		unsigned int major, minor, code_adaptive;
	} cases[] = {{2, 7, 0}, {3, 12, 192}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pp_python layout = *layout_of(cases[i].major, cases[i].minor);
		struct pp_code_record *record = record_of("f", 1, 1, "a.py", "", 0);
		struct python_code *code;

		if (!cases[i].code_adaptive)
			layout.code_adaptive = PP_NO_OFFSET;
		assert_int_equal(python_code_from_record(record, &layout, 0, &code), 0);
		assert_int_equal(code->code_adaptive, cases[i].code_adaptive);
		assert_int_equal(code->major, cases[i].major);
		assert_int_equal(code->minor, cases[i].minor);
		python_code_free(code);
		free(record);
	}
}

/* From 3.10 on each object has a line table: without one it was not resident. */
static void record__without_a_line_table_is_incomplete_since_3_10(void **state)
{
	static const struct {
		unsigned int major, minor;
		bool is_incomplete;
	} cases[] = {{2, 7, false}, {3, 9, false}, {3, 10, true}, {3, 12, true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pp_code_record *record = record_of("f", 1, 1, "a.py", "", 0);
		struct python_code *code;

		assert_int_equal(python_code_from_record(record,
							 layout_of(cases[i].major, cases[i].minor),
							 0, &code),
				 0);
		assert_int_equal(code->is_truncated, cases[i].is_incomplete);
		python_code_free(code);
		free(record);
	}
}

static void record__line_table_has_a_bound(void **state)
{
	uint8_t *table = calloc(1, PYTHON_MAX_LINE_TABLE_BYTES + 1);

	(void)state;
	assert_non_null(table);
	for (uint32_t more = 0; more < 2; more++) {
		struct pp_code_record *record =
			record_of("f", 1, 1, "a.py", table, PYTHON_MAX_LINE_TABLE_BYTES + more);
		struct python_code *code = NULL;

		assert_int_equal(python_code_from_record(record, layout_of(3, 12), 0, &code),
				 more ? -EBADMSG : 0);
		python_code_free(code);
		free(record);
	}
	free(table);
}

/* The bound counts bytes, not characters. */
static void read__wide_names_are_bounded_by_their_bytes(void **state)
{
	static const struct {
		uint64_t characters, kept;
	} cases[] = {{PYTHON_MAX_NAME_BYTES / 2, PYTHON_MAX_NAME_BYTES / 2},
		     {PYTHON_MAX_NAME_BYTES / 2 + 1, PYTHON_MAX_NAME_BYTES / 2}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_code *fake = fake_code_new(0, 30);
		struct python_code *code;

		put_u64(fake->name + 16, cases[i].characters);
		put_u64(fake->name + 32, 2 << 2 | 1 << 5); /* two bytes a character, compact */
		for (uint64_t at = 0; at < cases[i].characters; at++)
			memcpy(fake->name + 56 + 2 * at, (uint16_t[]){0x3b1}, 2);
		assert_int_equal(python_code_read(getpid(), layout_of(3, 12), 0,
						  (uintptr_t)fake->head, 0, &code),
				 0);
		decode(code);
		assert_int_equal(strlen(code->name), 2 * cases[i].kept); /* of UTF-8 */
		assert_int_equal(code->is_truncated, cases[i].characters > cases[i].kept);
		python_code_free(code);
		free(fake);
	}
}

/* What an object before it left behind does not count. */
static void read__equal_objects_have_one_id(void **state)
{
	uint64_t id[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct fake_code *fake = fake_code_new(i ? 21 : 22, 30), *same;
		struct python_code *code;

		assert_int_equal(python_code_read(getpid(), layout_of(3, 12), 0,
						  (uintptr_t)fake->head, 0, &code),
				 0);
		id[0] = code->id;
		python_code_free(code);
		same = fake_code_new(600, 3000);
		fake_ascii(same->filename, 'g', 700);
		assert_int_equal(python_code_read(getpid(), layout_of(3, 12), 0,
						  (uintptr_t)same->head, 0, &code),
				 0);
		assert_int_not_equal(code->id, id[0]);
		python_code_free(code);
		assert_int_equal(python_code_read(getpid(), layout_of(3, 12), 0,
						  (uintptr_t)fake->head, 0, &code),
				 0);
		id[1] = code->id;
		python_code_free(code);
		assert_true(id[0] == id[1]);
		free(same);
		free(fake);
	}
}

/* What the interpreter prints, as strings: "-" is empty. */
static char *text_of_hex(const char *hex, size_t *ret_size)
{
	size_t size = strcmp(hex, "-") ? strlen(hex) / 2 : 0;
	char *text = calloc(1, size + 1);

	assert_non_null(text);
	for (size_t at = 0; at < size; at++)
		sscanf(hex + 2 * at, "%2hhx", (unsigned char *)&text[at]);
	*ret_size = size;
	return text;
}

static void check_code(pid_t pid, const struct pp_python *layout, char *line)
{
	char *field[6] = {NULL};
	size_t name_size, filename_size, table_size;
	struct python_code *code;

	for (size_t i = 0; i < ARRAY_SIZE(field); i++)
		field[i] = strsep(&line, " \n");
	assert_non_null(field[5]);
	char *name = text_of_hex(field[3], &name_size);
	char *filename = text_of_hex(field[4], &filename_size);
	char *table = text_of_hex(field[5], &table_size);

	assert_int_equal(python_code_read(pid, layout, 0, strtoull(field[0], NULL, 10), 0, &code),
			 0);
	assert_int_equal(code->raw->line_table_bytes, table_size);
	assert_memory_equal(code->raw->part + code->raw->name_bytes + code->raw->filename_bytes,
			    table, table_size);
	decode(code);
	assert_string_equal(code->name, name);
	assert_string_equal(code->filename, filename);
	assert_int_equal(code->first_line, atoi(field[1]));
	assert_int_equal(code->flags, atoi(field[2]));
	assert_false(code->is_truncated);
	python_code_free(code);
	free(name);
	free(filename);
	free(table);
}

static void check_interpreter(const struct interpreter *interpreter)
{
	struct live_python live =
		live_python_start(interpreter, "tests/unit/python/code_oracle.py");
	unsigned int major = 0, minor = 0, count = 0;
	struct pp_python layout;
	char *line = NULL;
	size_t capacity = 0;

	assert_true(live.pid > 0);
	while (getline(&line, &capacity, live.text) > 0 && strcmp(line, "END\n")) {
		if (sscanf(line, "V %u.%u", &major, &minor) == 2) {
			assert_non_null(python_layout_find(major, minor, false));
			layout = *layout_of(major, minor);
		} else if (line[0] == 'T') {
			layout.code_type = strtoull(line + 2, NULL, 10);
		} else if (line[0] == 'C') {
			check_code(live.pid, &layout, line + 2);
			count++;
		}
	}
	live_python_stop(&live);
	free(line);
	print_message("# %s: %u code objects\n", interpreter->label, count);
	assert_true(count >= 8);
}

static void live_code_objects__are_read_as_the_interpreter_has_them(void **state)
{
	(void)state;
	interpreters_check(check_interpreter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record__names_of_every_kind_become_utf8),
		cmocka_unit_test(record__bytes_of_27_are_utf8_or_replaced),
		cmocka_unit_test(record__sizes_that_do_not_add_up_are_refused),
		cmocka_unit_test(line__what_is_understood_by_version),
		cmocka_unit_test(truncated_record__is_completed_from_the_live_process),
		cmocka_unit_test(truncated_record__of_memory_that_changed_stays_as_it_is),
		cmocka_unit_test(unread_filename__is_read_from_the_live_process),
		cmocka_unit_test(read__bounds_names_and_refuses_other_objects),
		cmocka_unit_test(record__without_a_line_table_is_incomplete_since_3_10),
		cmocka_unit_test(record__line_table_has_a_bound),
		cmocka_unit_test(read__wide_names_are_bounded_by_their_bytes),
		cmocka_unit_test(read__equal_objects_have_one_id),
		cmocka_unit_test(line__steps_back_since_3_6),
		cmocka_unit_test(whole_record__stays_as_it_is),
		cmocka_unit_test(empty_record__has_empty_parts),
		cmocka_unit_test(read__each_field_may_be_the_last_that_is_read),
		cmocka_unit_test(read__name_is_the_qualified_one_where_there_is_one),
		cmocka_unit_test(read__object_may_end_where_memory_does),
		cmocka_unit_test(code__bytecode_begins_where_the_layout_says),
		cmocka_unit_test(live_code_objects__are_read_as_the_interpreter_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
