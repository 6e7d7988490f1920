/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_symbols.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/safe_file.h"
#include "elf/debug_file.h"

/* A library with what the choice of a name is about: aliases, static functions, assembler without
 * type or size, a label inside a function. */
static const char source[] =
	"int spam(int x) { return x * 3 + 1; }\n"
	"int __spam_alias(int x) __attribute__((alias(\"spam\")));\n"
	"static __attribute__((noinline)) int hidden_egg(int x) { return x ^ 42; }\n"
	"int egg(int x) { return hidden_egg(x) + hidden_egg(x + 1); }\n"
	"__asm__(\".text\\nbare_label:\\n.rept 24\\nnop\\n.endr\\n\"\n"
	"	\".type sized, %function\\nsized:\\n.rept 8\\nnop\\n.endr\\ninner_label:\\n\"\n"
	"	\".rept 8\\nnop\\n.endr\\n.size sized, . - sized\\n\");\n";

struct fixture {
	char directory[64];
};

static int run(const char *format, ...)
{
	char command[2048];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	return system(command);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	char path[128];
	FILE *file;

	strcpy(fixture->directory, "/tmp/test_elf_symbols.XXXXXX");
	assert_non_null(mkdtemp(fixture->directory));
	snprintf(path, sizeof(path), "%s/lib.c", fixture->directory);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(source, file);
	fclose(file);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	run("rm -rf %s", fixture->directory);
	free(fixture);
	return 0;
}

static void build_library(const struct fixture *fixture)
{
	if (run("gcc -O1 -fPIC -shared -Wl,--build-id -o %s/lib.so %s/lib.c 2>/dev/null",
		fixture->directory, fixture->directory)) {
		print_message("skipped: no gcc\n");
		skip();
	}
}

static struct elf_image *open_image(const char *root, const char *path)
{
	OWNED_FD int fd = -1;
	struct elf_image *image = NULL;

	assert_int_equal(root_file_open(root, path, &fd), 0);
	assert_int_equal(elf_image_open(fd, &image), 0);
	return image;
}

static uint64_t nm_address(const struct fixture *fixture, const char *file, const char *symbol)
{
	char command[256], line[64] = "";
	FILE *pipe;

	snprintf(command, sizeof(command), "nm %s/%s | awk '$3 == \"%s\" {print $1}'",
		 fixture->directory, file, symbol);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_non_null(fgets(line, sizeof(line), pipe));
	pclose(pipe);
	return strtoull(line, NULL, 16);
}

struct expected {
	uint64_t vaddr, start;
	const char *name; /* NULL: none */
};

static void check_answer(void *context, size_t index, const struct elf_function *function)
{
	const struct expected *expected = (const struct expected *)context + index;

	if (!expected->name) {
		assert_null(function->name);
		return;
	}
	assert_non_null(function->name);
	assert_int_equal(function->name_size, strlen(expected->name));
	assert_memory_equal(function->name, expected->name, function->name_size);
	assert_int_equal(function->start, expected->start);
	assert_true(function->low <= expected->vaddr && expected->vaddr < function->high);
}

/* expected: by ascending vaddr. */
static void check_names(const char *root, const char *path, const struct expected *expected,
			size_t count)
{
	OWNED(elf_image) struct elf_image *image = open_image(root, path);
	CLEANUP(debug_files_release) struct debug_files files = DEBUG_FILES_NONE;
	struct debug_names names;
	uint64_t vaddr[16];

	debug_names_read(image, &names);
	debug_files_open(&names, root, path, image->owner, &files);
	for (size_t i = 0; i < count; i++)
		vaddr[i] = expected[i].vaddr;
	assert_int_equal(elf_symbols_find_many(image, &files, vaddr, count, check_answer,
					       (void *)expected),
			 0);
}

static int compare_expected(const void *a, const void *b)
{
	const struct expected *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static void elf_symbols__names_are_chosen_as_promised(void **state)
{
	const struct fixture *fixture = *state;
	uint64_t spam, hidden, bare, sized, inner;
	char path[128];

	build_library(fixture);
	spam = nm_address(fixture, "lib.so", "spam");
	hidden = nm_address(fixture, "lib.so", "hidden_egg");
	bare = nm_address(fixture, "lib.so", "bare_label");
	sized = nm_address(fixture, "lib.so", "sized");
	inner = nm_address(fixture, "lib.so", "inner_label");
	struct expected expected[] = {
		{spam, spam, "spam"},
		{spam + 1, spam, "spam"},
		{hidden, hidden, "hidden_egg"},
		{bare + 23, bare, "bare_label"},
		{sized, sized, "sized"},
		{inner + 2, sized, "sized"},
		{0x10, 0, NULL},
	};
	qsort(expected, ARRAY_SIZE(expected), sizeof(*expected), compare_expected);
	snprintf(path, sizeof(path), "%s/lib.so", fixture->directory);
	check_names("/", path, expected, ARRAY_SIZE(expected));
}

static void elf_symbols__stripped_file_keeps_exported_names_only(void **state)
{
	const struct fixture *fixture = *state;
	uint64_t spam, hidden;
	char path[128];

	build_library(fixture);
	spam = nm_address(fixture, "lib.so", "spam");
	hidden = nm_address(fixture, "lib.so", "hidden_egg");
	assert_int_equal(
		run("strip -o %s/bare.so %s/lib.so", fixture->directory, fixture->directory), 0);
	struct expected expected[] = {{spam, spam, "spam"}, {hidden, 0, NULL}};
	qsort(expected, ARRAY_SIZE(expected), sizeof(*expected), compare_expected);
	snprintf(path, sizeof(path), "%s/bare.so", fixture->directory);
	check_names("/", path, expected, ARRAY_SIZE(expected));
}

/* `strip -K` leaves a .symtab that lacks what .dynsym has. */
static void elf_symbols__both_tables_of_a_partly_stripped_file_count(void **state)
{
	const struct fixture *fixture = *state;
	uint64_t spam, hidden;
	char path[128];

	build_library(fixture);
	spam = nm_address(fixture, "lib.so", "spam");
	hidden = nm_address(fixture, "lib.so", "hidden_egg");
	assert_int_equal(run("strip -K hidden_egg -o %s/part.so %s/lib.so", fixture->directory,
			     fixture->directory),
			 0);
	struct expected expected[] = {{spam, spam, "spam"}, {hidden, hidden, "hidden_egg"}};
	qsort(expected, ARRAY_SIZE(expected), sizeof(*expected), compare_expected);
	snprintf(path, sizeof(path), "%s/part.so", fixture->directory);
	check_names("/", path, expected, ARRAY_SIZE(expected));
}

static void elf_symbols__build_id_debug_file_below_the_root_is_used(void **state)
{
	const struct fixture *fixture = *state;
	uint64_t hidden;

	build_library(fixture);
	hidden = nm_address(fixture, "lib.so", "hidden_egg");
	assert_int_equal(
		run("cd %s && id=$(readelf -n lib.so | sed -n 's/.*Build ID: //p') &&"
		    " dir=usr/lib/debug/.build-id/$(echo $id | cut -c1-2) && mkdir -p $dir &&"
		    " objcopy --only-keep-debug lib.so $dir/$(echo $id | cut -c3-).debug &&"
		    " strip -o bare.so lib.so",
		    fixture->directory),
		0);
	const struct expected expected[] = {{hidden + 1, hidden, "hidden_egg"}};
	check_names(fixture->directory, "/bare.so", expected, 1);
}

static void elf_symbols__debuglink_is_used_when_its_crc_matches(void **state)
{
	const struct fixture *fixture = *state;
	uint64_t hidden;

	build_library(fixture);
	hidden = nm_address(fixture, "lib.so", "hidden_egg");
	assert_int_equal(run("cd %s && objcopy -R .note.gnu.build-id lib.so noid.so &&"
			     " mkdir .debug && objcopy --only-keep-debug noid.so .debug/l.debug &&"
			     " strip -o bare.so noid.so &&"
			     " objcopy --add-gnu-debuglink=.debug/l.debug bare.so",
			     fixture->directory),
			 0);
	const struct expected good[] = {{hidden, hidden, "hidden_egg"}};
	check_names(fixture->directory, "/bare.so", good, 1);
	const struct expected bad[] = {{hidden, 0, NULL}};
	if (!getuid()) {
		/* Another user's, or root's and not for all: nobody may have their names by a
		 * link. */
		run("chown 12345 %s/.debug/l.debug", fixture->directory);
		check_names(fixture->directory, "/bare.so", bad, 1);
		run("chown 12345 %s/bare.so && chown 0 %s/.debug/l.debug && chmod 600 "
		    "%s/.debug/l.debug",
		    fixture->directory, fixture->directory, fixture->directory);
		check_names(fixture->directory, "/bare.so", bad, 1);
		run("chmod 644 %s/.debug/l.debug", fixture->directory);
		check_names(fixture->directory, "/bare.so", good, 1);
	}
	assert_int_equal(run("printf x >> %s/.debug/l.debug", fixture->directory), 0);
	check_names(fixture->directory, "/bare.so", bad, 1);
}

static void elf_symbols__gnu_debugdata_is_decompressed(void **state)
{
	const struct fixture *fixture = *state;
	uint64_t hidden;

	build_library(fixture);
	if (run("xz --version >/dev/null 2>&1")) {
		print_message("skipped: no xz\n");
		skip();
	}
	hidden = nm_address(fixture, "lib.so", "hidden_egg");
	assert_int_equal(
		run("cd %s && objcopy -S --keep-symbol=hidden_egg lib.so mini && xz -k mini &&"
		    " strip -o bare.so lib.so &&"
		    " objcopy --add-section .gnu_debugdata=mini.xz bare.so",
		    fixture->directory),
		0);
	const struct expected expected[] = {{hidden, hidden, "hidden_egg"}};
	check_names(fixture->directory, "/bare.so", expected, 1);
	/* Damaged: as good as none. */
	assert_int_equal(run("cd %s && strip -o bare.so lib.so && head -c 200 mini.xz > cut.xz &&"
			     " objcopy --add-section .gnu_debugdata=cut.xz bare.so",
			     fixture->directory),
			 0);
	const struct expected none[] = {{hidden, 0, NULL}};
	check_names(fixture->directory, "/bare.so", none, 1);
}

static void root_file_open__absolute_link_stays_inside_the_root(void **state)
{
	const struct fixture *fixture = *state;
	OWNED_FD int fd = -1;
	char text[8] = "";

	assert_int_equal(run("cd %s && echo inner > file && ln -s /file link && mkfifo fifo",
			     fixture->directory),
			 0);
	assert_int_equal(root_file_open(fixture->directory, "/link", &fd), 0);
	assert_int_equal(read(fd, text, 5), 5);
	assert_string_equal(text, "inner");
	assert_int_equal(root_file_open(fixture->directory, "/../../etc/passwd", &fd), -ENOENT);
	assert_int_equal(root_file_open(fixture->directory, "/fifo", &fd), -EINVAL);
}

/* ---- against nm, on libc ---- */

struct nm_line {
	uint64_t start, size;
	char name[128];
};

static size_t read_nm(const char *path, struct nm_line *line, size_t room)
{
	char command[256], text[512], type;
	size_t count = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "nm -D -S --defined-only %s 2>/dev/null", path);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while (count < room && fgets(text, sizeof(text), pipe)) {
		struct nm_line *next = &line[count];

		if (sscanf(text, "%" SCNx64 " %" SCNx64 " %c %127s", &next->start, &next->size,
			   &type, next->name) != 4 ||
		    !strchr("TtWi", type) || !next->size)
			continue;
		next->name[strcspn(next->name, "@")] = '\0';
		count++;
	}
	pclose(pipe);
	return count;
}

static bool nm_has(const struct nm_line *line, size_t count, uint64_t start, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (line[i].start == start && !strcmp(line[i].name, name))
			return true;
	return false;
}

static int compare_line(const void *a, const void *b)
{
	const struct nm_line *x = a, *y = b;

	return x->start + x->size < y->start + y->size ? -1
						       : x->start + x->size > y->start + y->size;
}

struct nm_lines {
	const struct nm_line *line;
	size_t count;
};

static void is_nms(void *context, size_t index, const struct elf_function *function)
{
	const struct nm_lines *lines = context;
	char name[128];

	assert_non_null(function->name);
	snprintf(name, sizeof(name), "%.*s", (int)function->name_size, function->name);
	assert_int_equal(function->start, lines->line[index].start);
	assert_true(nm_has(lines->line, lines->count, function->start, name));
}

#define LIBCRYPTO "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"

static void elf_symbols__every_function_that_nm_knows_is_found(void **state)
{
	static struct nm_line line[16384];
	static uint64_t vaddr[ARRAY_SIZE(line)];
	struct nm_lines lines = {.line = line};

	(void)state;
	if (access(LIBCRYPTO, R_OK) ||
	    !(lines.count = read_nm(LIBCRYPTO, line, ARRAY_SIZE(line)))) {
		print_message("skipped: no libcrypto.so.3 or no nm\n");
		skip();
	}
	OWNED(elf_image) struct elf_image *image = open_image("/", LIBCRYPTO);
	qsort(line, lines.count, sizeof(*line), compare_line);
	for (size_t i = 0; i < lines.count; i++)
		vaddr[i] = line[i].start + line[i].size - 1;
	assert_int_equal(elf_symbols_find_many(image, NULL, vaddr, lines.count, is_nms, &lines), 0);
}

struct answers {
	uint64_t start, low, high;
	size_t named;
};

static void is_the_same(void *context, size_t index, const struct elf_function *function)
{
	const struct answers *expected = context;

	(void)index;
	assert_int_equal(function->name ? function->start : 0, expected->start);
	assert_int_equal(function->low, expected->low);
	assert_int_equal(function->high, expected->high);
}

static void keep_answer(void *context, size_t index, const struct elf_function *function)
{
	struct answers *answer = (struct answers *)context + index;

	*answer = (struct answers){.start = function->name ? function->start : 0,
				   .low = function->low,
				   .high = function->high,
				   .named = !!function->name};
}

/* The range of an answer must hold for its first and last address, too. */
static void elf_symbols__ranges_hold_at_their_ends_all_over_libcrypto(void **state)
{
	enum { ADDRESSES = 20000 };
	static uint64_t vaddr[ADDRESSES], ends[2 * ADDRESSES];
	static struct answers answer[ADDRESSES], at_end[2 * ADDRESSES];
	size_t named = 0;

	(void)state;
	if (access(LIBCRYPTO, R_OK)) {
		print_message("skipped: no libcrypto.so.3\n");
		skip();
	}
	OWNED(elf_image) struct elf_image *image = open_image("/", LIBCRYPTO);
	for (size_t i = 0; i < ADDRESSES; i++)
		vaddr[i] = image->max_vaddr / ADDRESSES * i;
	assert_int_equal(elf_symbols_find_many(image, NULL, vaddr, ADDRESSES, keep_answer, answer),
			 0);
	for (size_t i = 0; i < ADDRESSES; i++) {
		ends[2 * i] = answer[i].low;
		ends[2 * i + 1] = answer[i].high - 1;
		named += answer[i].named;
	}
	assert_int_equal(
		elf_symbols_find_many(image, NULL, ends, 2 * ADDRESSES, keep_answer, at_end), 0);
	for (size_t i = 0; i < 2 * ADDRESSES; i++)
		assert_int_equal(at_end[i].start, answer[i / 2].start);
	for (size_t i = 0; i < ADDRESSES; i += ADDRESSES / 20)
		assert_int_equal(elf_symbols_find_many(image, NULL, &vaddr[i], 1, is_the_same,
						       &answer[i]),
				 0);
	assert_true(named > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(elf_symbols__names_are_chosen_as_promised, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			elf_symbols__stripped_file_keeps_exported_names_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			elf_symbols__both_tables_of_a_partly_stripped_file_count, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			elf_symbols__build_id_debug_file_below_the_root_is_used, set_up, tear_down),
		cmocka_unit_test_setup_teardown(elf_symbols__debuglink_is_used_when_its_crc_matches,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(elf_symbols__gnu_debugdata_is_decompressed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(root_file_open__absolute_link_stays_inside_the_root,
						set_up, tear_down),
		cmocka_unit_test(elf_symbols__every_function_that_nm_knows_is_found),
		cmocka_unit_test(elf_symbols__ranges_hold_at_their_ends_all_over_libcrypto),
	};

	return cmocka_run_group_tests_name("elf/elf_symbols", tests, NULL, NULL);
}
