/* SPDX-License-Identifier: BSD-2-Clause */
/* What the child answers about code objects, and what the agent believes of it. */
#include "files/decode.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "files/check.h"

#define CODES 3U

/* Some bytes at a time. */
ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
	return syscall(SYS_pread64, fd, buffer, size < 40 ? size : 40, offset);
}

/* A code object of 3.10 with a table of four lines. */
static const struct python_code_raw *raw_of(const char *name, const char *filename)
{
	static const uint8_t table[] = {2, 1, 4, 1, 2, 1, 2, 1};
	const size_t size =
		sizeof(struct python_code_raw) + strlen(name) + strlen(filename) + sizeof(table);
	struct python_code_raw *raw = calloc(1, size);

	assert_non_null(raw);
	*raw = (struct python_code_raw){.size = (uint32_t)size,
					.first_line = 40,
					.line_table_bytes = sizeof(table),
					.name_bytes = (uint16_t)strlen(name),
					.filename_bytes = (uint16_t)strlen(filename),
					.name_kind = 1,
					.filename_kind = 1,
					.format = LINE_TABLE_310};
	memcpy(raw->part, name, strlen(name));
	memcpy(raw->part + strlen(name), filename, strlen(filename));
	memcpy(raw->part + strlen(name) + strlen(filename), table, sizeof(table));
	return raw;
}

struct fixture {
	const struct python_code_raw *raw[CODES];
	int fd;
	size_t bytes;
	uint32_t size; /* of the answer */
	union {
		struct foreign_codes codes;
		uint8_t bytes[FOREIGN_MEMORY_BYTES];
	} answer;
};
static struct fixture f;

static int decode(uint64_t from, uint64_t to, size_t room)
{
	return code_objects_decode(f.fd, from, to, f.answer.bytes, room, &f.size);
}

static int setup(void **state)
{
	(void)state;
	f.raw[0] = raw_of("main", "/srv/app.py");
	f.raw[1] = raw_of("d\xe9j", "");
	f.raw[2] = raw_of("", "lib.py");
	f.bytes = 0;
	f.fd = memfd_create("codes", MFD_CLOEXEC);
	assert_true(f.fd >= 0);
	for (size_t i = 0; i < CODES; i++) {
		assert_int_equal(write_full(f.fd, f.raw[i], f.raw[i]->size), 0);
		f.bytes += f.raw[i]->size;
	}
	assert_int_equal(decode(0, f.bytes, sizeof(f.answer)), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < CODES; i++)
		free((void *)f.raw[i]);
	close(f.fd);
	return 0;
}

static bool is_believed(void)
{
	return foreign_codes_are_sound(&f.answer.codes, f.size, f.raw, CODES);
}

static uint8_t *code_at(size_t index)
{
	uint8_t *at = f.answer.codes.code;
	struct foreign_code code;

	for (size_t i = 0; i < index; i++) {
		memcpy(&code, at, sizeof(code));
		at += foreign_code_bytes(&code);
	}
	return at;
}

static void assert_code(size_t index, const char *name, const char *filename)
{
	uint8_t *at = code_at(index);
	const struct line_row expected[] = {{0, 41}, {2, 42}, {6, 43}, {8, 44}};
	struct foreign_code code;

	memcpy(&code, at, sizeof(code));
	at += sizeof(code);
	assert_int_equal(code.row_count, ARRAY_SIZE(expected));
	assert_memory_equal(at, expected, sizeof(expected));
	at += sizeof(expected);
	assert_int_equal(code.name_bytes, strlen(name));
	assert_memory_equal(at, name, strlen(name));
	assert_int_equal(code.filename_bytes, strlen(filename));
	assert_memory_equal(at + strlen(name), filename, strlen(filename));
}

static void answer__has_names_and_lines_of_all(void **state)
{
	(void)state;
	assert_true(is_believed());
	assert_int_equal(f.answer.codes.count, CODES);
	assert_int_equal(f.answer.codes.next, f.bytes);
	assert_code(0, "main", "/srv/app.py");
	assert_code(1, "d\xc3\xa9j", "");
	assert_code(2, "", "lib.py");
}

static void answer__has_as_many_as_fit(void **state)
{
	const uint32_t whole = f.size;

	(void)state;
	assert_int_equal(decode(0, f.bytes, whole - 1), 0);
	assert_int_equal(f.answer.codes.count, 2);
	assert_true(is_believed());
	assert_int_equal(f.answer.codes.next, f.bytes - f.raw[2]->size);
	assert_int_equal(decode(f.answer.codes.next, f.bytes, whole), 0);
	assert_code(0, "", "lib.py");
	assert_int_equal(decode(0, f.bytes, sizeof(struct foreign_codes) + 20), -E2BIG);
}

/* The longest name of the longest characters, and a line table that changes with each byte. */
static void answer__largest_object_fits(void **state)
{
	struct python_code_raw *raw = calloc(1, PYTHON_CODE_RAW_MAX_BYTES);
	const struct python_code_raw *sent = raw;

	(void)state;
	assert_non_null(raw);
	*raw = (struct python_code_raw){.size = PYTHON_CODE_RAW_MAX_BYTES,
					.line_table_bytes = PYTHON_MAX_LINE_TABLE_BYTES,
					.name_bytes = PYTHON_MAX_NAME_BYTES,
					.filename_bytes = PYTHON_MAX_NAME_BYTES,
					.name_kind = 1,
					.filename_kind = 1,
					.is_bytes = 1,
					.format = LINE_TABLE_LNOTAB_3};
	memset(raw->part, 0xff, 2 * PYTHON_MAX_NAME_BYTES);
	memset(raw->part + 2 * PYTHON_MAX_NAME_BYTES, 1, PYTHON_MAX_LINE_TABLE_BYTES);
	assert_int_equal(pwrite(f.fd, raw, raw->size, 0), raw->size);
	assert_int_equal(decode(0, raw->size, sizeof(f.answer)), 0);
	assert_true(foreign_codes_are_sound(&f.answer.codes, f.size, &sent, 1));
	assert_int_equal(((struct foreign_code *)f.answer.codes.code)->row_count,
			 PYTHON_MAX_LINE_ROWS);
	assert_int_equal(((struct foreign_code *)f.answer.codes.code)->name_bytes,
			 PYTHON_MAX_NAME_TEXT);
	free(raw);
}

/* Whoever asks does not send such; a child that is asked by somebody else is not to fall over. */
static void question__that_is_not_sound_is_refused(void **state)
{
	struct python_code_raw raw = *f.raw[0];

	(void)state;
	assert_int_equal(decode(0, f.raw[0]->size - 1, sizeof(f.answer)), -EBADMSG);
	assert_int_equal(decode(0, sizeof(raw) - 1, sizeof(f.answer)), -EBADMSG);
	assert_int_equal(decode(f.bytes - 1, f.bytes + 100, sizeof(f.answer)), -EBADMSG);
	raw.format = LINE_TABLE_FORMATS;
	assert_false(python_code_raw_is_sound(&raw));
	assert_int_equal(pwrite(f.fd, &raw, sizeof(raw), 0), sizeof(raw));
	assert_int_equal(decode(0, f.bytes, sizeof(f.answer)), -EBADMSG);
	raw = *f.raw[0];
	raw.size++;
	assert_false(python_code_raw_is_sound(&raw));
	raw = *f.raw[0];
	raw.filename_kind = 3;
	assert_false(python_code_raw_is_sound(&raw));
	raw = *f.raw[0];
	raw.size += PYTHON_MAX_LINE_TABLE_BYTES;
	raw.line_table_bytes += PYTHON_MAX_LINE_TABLE_BYTES;
	assert_false(python_code_raw_is_sound(&raw));
	close(f.fd);
	f.fd = open("/", O_RDONLY | O_CLOEXEC);
	assert_int_equal(decode(0, 4096, sizeof(f.answer)), -EISDIR);
}

static void lie__in_the_head_is_not_believed(void **state)
{
	struct foreign_codes *codes = &f.answer.codes;

	(void)state;
	codes->count = 0;
	assert_false(is_believed());
	codes->count = CODES + 1;
	assert_false(is_believed());
	codes->count = CODES - 1;
	assert_false(is_believed());
	codes->count = CODES;
	codes->next++;
	assert_false(is_believed());
	codes->next--;
	codes->bytes += 4;
	assert_false(is_believed());
	f.size += 4;
	assert_false(is_believed());
	codes->bytes -= 8;
	f.size -= 8;
	assert_false(is_believed());
	codes->bytes += 4;
	f.size += 4;
	assert_true(is_believed());
	f.size = sizeof(*codes) - 1;
	assert_false(is_believed());
}

/* The first code object says this of itself. */
static void assert_lie(struct foreign_code lie)
{
	struct foreign_code code;

	memcpy(&code, code_at(0), sizeof(code));
	memcpy(code_at(0), &lie, sizeof(lie));
	assert_false(is_believed());
	memcpy(code_at(0), &code, sizeof(code));
	assert_true(is_believed());
}

static void lie__about_a_code_object_is_not_believed(void **state)
{
	uint8_t *rows = code_at(0) + sizeof(struct foreign_code);
	struct foreign_code code;
	uint8_t kept;

	(void)state;
	memcpy(&code, code_at(0), sizeof(code));
	assert_lie((struct foreign_code){0, code.name_bytes, code.filename_bytes});
	assert_lie((struct foreign_code){f.raw[0]->line_table_bytes + 3, code.name_bytes,
					 code.filename_bytes});
	assert_lie((struct foreign_code){UINT32_MAX, code.name_bytes, code.filename_bytes});
	assert_lie((struct foreign_code){code.row_count, UINT32_MAX, code.filename_bytes});
	assert_lie((struct foreign_code){code.row_count, 13, code.filename_bytes});
	assert_lie((struct foreign_code){code.row_count, code.name_bytes, UINT32_MAX - 3});
	/* A NUL in a name. */
	kept = rows[4 * sizeof(struct line_row)];
	rows[4 * sizeof(struct line_row)] = 0;
	assert_false(is_believed());
	rows[4 * sizeof(struct line_row)] = kept;
	kept = rows[4 * sizeof(struct line_row) + code.name_bytes];
	rows[4 * sizeof(struct line_row) + code.name_bytes] = 0;
	assert_false(is_believed());
	rows[4 * sizeof(struct line_row) + code.name_bytes] = kept;
	assert_true(is_believed());
}

static void assert_rows_are_refused(size_t index, struct line_row row)
{
	uint8_t *at = code_at(0) + sizeof(struct foreign_code) + index * sizeof(row);
	struct line_row kept;

	memcpy(&kept, at, sizeof(kept));
	memcpy(at, &row, sizeof(row));
	assert_false(is_believed());
	memcpy(at, &kept, sizeof(kept));
	assert_true(is_believed());
}

static void lie__about_lines_is_not_believed(void **state)
{
	(void)state;
	assert_rows_are_refused(0, (struct line_row){1, 41});
	assert_rows_are_refused(1, (struct line_row){0, 42});
	assert_rows_are_refused(2, (struct line_row){2, 42});
	assert_rows_are_refused(2, (struct line_row){8, 42});
	assert_rows_are_refused(3, (struct line_row){8, (uint32_t)INT32_MAX + 1});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answer__has_names_and_lines_of_all, setup,
						teardown),
		cmocka_unit_test_setup_teardown(answer__has_as_many_as_fit, setup, teardown),
		cmocka_unit_test_setup_teardown(answer__largest_object_fits, setup, teardown),
		cmocka_unit_test_setup_teardown(question__that_is_not_sound_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(lie__in_the_head_is_not_believed, setup, teardown),
		cmocka_unit_test_setup_teardown(lie__about_a_code_object_is_not_believed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(lie__about_lines_is_not_believed, setup, teardown),
	};

	return cmocka_run_group_tests_name("files/code_objects", tests, NULL, NULL);
}
