/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that parses files is a part of this program. */
#include "symbolize/native_symbols.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "elf/demangle.h"
#include "elf/elf_symbols.h"

#define LIBSTDCXX "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"
#define MAX_BYTES (1U << 20)

struct nm_line {
	uint64_t start, size;
	char name[512];
};

static size_t read_nm(const char *path, struct nm_line *line, size_t room)
{
	char command[256], text[2048], type;
	size_t count = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "nm -D -S --defined-only %s 2>/dev/null", path);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while (count < room && fgets(text, sizeof(text), pipe)) {
		struct nm_line *next = &line[count];

		if (sscanf(text, "%" SCNx64 " %" SCNx64 " %c %511s", &next->start, &next->size,
			   &type, next->name) != 4 ||
		    !strchr("TtWi", type) || !next->size)
			continue;
		next->name[strcspn(next->name, "@")] = '\0';
		count++;
	}
	pclose(pipe);
	if (!count) {
		print_message("skipped: no libstdc++.so.6 or no nm\n");
		skip();
	}
	return count;
}

static int opens;

/* Whom an answer is for. */
struct asker {
	foreign_function_handler *found;
	void *context;
};

static void on_function(void *context, size_t index, const struct elf_function *found)
{
	const struct asker *asker = context;
	char demangled[DEMANGLE_MAX_BYTES], name[4096] = "";
	struct foreign_function function = {
		.system_name = "", .start = found->start, .low = found->low, .high = found->high};

	(void)index;
	if (found->name && found->name_size) {
		memcpy(name, found->name, found->name_size);
		name[found->name_size] = '\0';
		function.name = name;
		if (demangle(name, found->name_size, demangled)) {
			function.name = demangled;
			function.system_name = name;
		}
	}
	asker->found(asker->context, &function);
}

static int find(void *context, const struct native_file *file, const uint64_t *vaddr, size_t count,
		foreign_function_handler *found, void *found_context)
{
	struct asker asker = {.found = found, .context = found_context};
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED_FD int fd = open(file->path, O_RDONLY | O_CLOEXEC);
	int err;

	(void)context;
	if (fd < 0)
		return -errno;
	opens++;
	err = elf_image_open(fd, &image);
	return err ? err : elf_symbols_find_many(image, NULL, vaddr, count, on_function, &asker);
}

static void native_symbols__second_resolve_opens_nothing(void **state)
{
	static struct nm_line line[512];
	static uint64_t first[512], last[512];
	static struct native_symbol symbol[512];
	const size_t count = read_nm(LIBSTDCXX, line, 512);
	OWNED(native_symbols) struct native_symbols *symbols = NULL;
	const struct native_file file = {.id = 7, .path = LIBSTDCXX, .find = find};

	(void)state;
	opens = 0;
	assert_int_equal(native_symbols_new(MAX_BYTES, &symbols), 0);
	for (size_t i = 0; i < count; i++) {
		first[i] = line[i].start;
		last[i] = line[i].start + line[i].size - 1;
	}
	assert_int_equal(native_symbols_resolve(symbols, &file, last, count, symbol), 0);
	for (size_t i = 0; i < count; i++) {
		assert_true(symbol[i].found);
		assert_int_equal(symbol[i].start, line[i].start);
	}
	/* Other addresses of the same functions. */
	assert_int_equal(native_symbols_resolve(symbols, &file, first, count, symbol), 0);
	assert_int_equal(opens, 1);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(symbol[i].start, line[i].start);
	assert_int_equal(native_symbols_counters(symbols).scans, 1);
	assert_int_equal(native_symbols_counters(symbols).cached, count);
}

static int calls;

static int cannot_find(void *context, const struct native_file *file, const uint64_t *vaddr,
		       size_t count, foreign_function_handler *found, void *found_context)
{
	(void)context, (void)file, (void)vaddr, (void)count, (void)found, (void)found_context;
	calls++;
	return -ESTALE;
}

static void native_symbols__file_that_is_gone_is_asked_about_once_a_round(void **state)
{
	OWNED(native_symbols) struct native_symbols *symbols = NULL;
	struct native_file file = {.id = 1, .path = "/x/gone.so", .find = cannot_find};
	struct native_symbol symbol;

	(void)state;
	assert_int_equal(native_symbols_new(MAX_BYTES, &symbols), 0);
	for (uint64_t vaddr = 0; vaddr < 100; vaddr++) {
		file.round = vaddr < 50 ? 1 : 2;
		assert_int_equal(native_symbols_resolve(symbols, &file, &vaddr, 1, &symbol), 0);
		assert_string_equal(symbol.name, "[gone.so]");
	}
	assert_int_equal(calls, 2);
	file.round = 3;
	file.find = find;
	file.path = LIBSTDCXX;
	opens = 0;
	assert_int_equal(native_symbols_resolve(symbols, &file, &(uint64_t){0}, 1, &symbol), 0);
	assert_int_equal(opens, 1);
}

static void native_symbols__mangled_name_is_kept_beside_the_readable_one(void **state)
{
	static struct nm_line line[8192];
	const size_t count = read_nm(LIBSTDCXX, line, 8192);
	OWNED(native_symbols) struct native_symbols *symbols = NULL;
	const struct native_file file = {.id = 1, .path = LIBSTDCXX, .find = find};
	struct native_symbol symbol[2];
	uint64_t vaddr[2] = {0};

	(void)state;
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(line[i].name, "_ZSt9terminatev"))
			vaddr[0] = line[i].start;
		if (!strcmp(line[i].name, "__cxa_begin_catch"))
			vaddr[1] = line[i].start;
	}
	assert_true(vaddr[0] && vaddr[1]);
	assert_int_equal(native_symbols_new(MAX_BYTES, &symbols), 0);
	assert_int_equal(native_symbols_resolve(symbols, &file, vaddr, 2, symbol), 0);
	assert_string_equal(symbol[0].name, "std::terminate");
	assert_string_equal(symbol[0].system_name, "_ZSt9terminatev");
	assert_string_equal(symbol[1].name, "__cxa_begin_catch");
	assert_string_equal(symbol[1].system_name, "");
}

static void native_symbols__file_without_answer_is_named_in_brackets(void **state)
{
	OWNED(native_symbols) struct native_symbols *symbols = NULL;
	const struct native_file missing = {.id = 1, .path = "/nowhere/libfoo.so", .find = find};
	const struct native_file no_elf = {.id = 2, .path = "/etc/passwd", .find = find};
	const struct native_file vdso = {.id = 3, .path = "[vdso]", .find = find};
	const struct native_file anonymous = {.id = 4, .path = "", .find = find};
	const struct native_file real = {.id = 5, .path = LIBSTDCXX, .find = find};
	const uint64_t vaddr[] = {0x10, 0x10};
	struct native_symbol symbol[2];

	(void)state;
	assert_int_equal(native_symbols_new(MAX_BYTES, &symbols), 0);
	assert_int_equal(native_symbols_resolve(symbols, &missing, vaddr, 2, symbol), 0);
	assert_string_equal(symbol[1].name, "[libfoo.so]");
	assert_string_equal(symbol[1].system_name, "");
	assert_false(symbol[1].found);
	assert_int_equal(native_symbols_resolve(symbols, &no_elf, vaddr, 1, symbol), 0);
	assert_string_equal(symbol[0].name, "[passwd]");
	assert_int_equal(native_symbols_resolve(symbols, &vdso, vaddr, 1, symbol), 0);
	assert_string_equal(symbol[0].name, "[vdso]");
	assert_int_equal(native_symbols_resolve(symbols, &anonymous, vaddr, 1, symbol), 0);
	assert_string_equal(symbol[0].name, "[anon]");
	if (!access(LIBSTDCXX, R_OK)) {
		/* The ELF header is in no function. */
		assert_int_equal(native_symbols_resolve(symbols, &real, vaddr, 1, symbol), 0);
		assert_string_equal(symbol[0].name, "[libstdc++.so.6]");
	}
	/* Not tried again, unlike what could not be opened. */
	assert_int_equal(native_symbols_resolve(symbols, &no_elf, vaddr, 1, symbol), 0);
	assert_int_equal(native_symbols_counters(symbols).cached, 1);
}

static void native_symbols__least_used_files_go_first(void **state)
{
	static struct nm_line line[4096];
	static uint64_t vaddr[4096];
	static struct native_symbol symbol[4096];
	const size_t count = read_nm(LIBSTDCXX, line, 4096);
	OWNED(native_symbols) struct native_symbols *symbols = NULL;
	struct native_file file = {.path = LIBSTDCXX, .find = find};

	(void)state;
	for (size_t i = 0; i < count; i++)
		vaddr[i] = line[i].start;
	assert_int_equal(native_symbols_new(MAX_BYTES, &symbols), 0);
	assert_int_equal(native_symbols_resolve(symbols, &file, vaddr, count, symbol), 0);
	/* The same under other ids: they do not all fit. */
	for (file.id = 1; file.id < 20; file.id++)
		assert_int_equal(native_symbols_resolve(symbols, &file, vaddr, count, symbol), 0);
	assert_true(native_symbols_counters(symbols).evicted_files > 0);
	assert_int_equal(native_symbols_counters(symbols).dropped_symbols, 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(symbol[i].start, vaddr[i]);
}

static void native_symbols__one_resolve_stays_within_twice_the_bound(void **state)
{
	static struct nm_line line[4096];
	static uint64_t vaddr[4096];
	static struct native_symbol symbol[4096];
	const size_t count = read_nm(LIBSTDCXX, line, 4096), max_bytes = 32768;
	OWNED(native_symbols) struct native_symbols *symbols = NULL;
	const struct native_file file = {.path = LIBSTDCXX, .find = find};

	(void)state;
	for (size_t i = 0; i < count; i++)
		vaddr[i] = line[i].start;
	assert_int_equal(native_symbols_new(max_bytes, &symbols), 0);
	assert_int_equal(native_symbols_resolve(symbols, &file, vaddr, count, symbol), 0);
	assert_true(native_symbols_counters(symbols).dropped_symbols > 0);
	for (size_t i = 0; i < count; i++)
		assert_non_null(symbol[i].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(native_symbols__second_resolve_opens_nothing),
		cmocka_unit_test(native_symbols__file_that_is_gone_is_asked_about_once_a_round),
		cmocka_unit_test(native_symbols__mangled_name_is_kept_beside_the_readable_one),
		cmocka_unit_test(native_symbols__file_without_answer_is_named_in_brackets),
		cmocka_unit_test(native_symbols__least_used_files_go_first),
		cmocka_unit_test(native_symbols__one_resolve_stays_within_twice_the_bound),
	};

	return cmocka_run_group_tests_name("symbolize/native_symbols", tests, NULL, NULL);
}
