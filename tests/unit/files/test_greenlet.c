/* SPDX-License-Identifier: BSD-2-Clause */
/* Compiles libraries in C that have the symbols of greenlet's releases; nm gives the function's
 * true address. */
#include "files/stack_starts.h"

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../elf/made_elf.h"

/* Compiles `source`; returns what greenlet_first_function() says, and nm's address of `name`. */
static uint64_t found_in(const char *source, const char *flags, const char *name,
			 uint64_t *ret_expected)
{
	char directory[] = "/tmp/test_greenlet.XXXXXX", path[64], command[512], line[512];
	struct elf_image *image = NULL;
	unsigned long address = 0;
	uint64_t found;
	FILE *pipe;
	int fd;

	assert_non_null(mkdtemp(directory));
	snprintf(command, sizeof(command), "gcc -shared -fPIC -O1 %s -xc -o %s/a.so -", flags,
		 directory);
	pipe = popen(command, "w");
	assert_non_null(pipe);
	fputs(source, pipe);
	assert_int_equal(pclose(pipe), 0);
	snprintf(path, sizeof(path), "%s/a.so", directory);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_image_open(fd, &image), 0);
	found = greenlet_first_function(image);
	elf_image_free(image);
	close(fd);
	snprintf(command, sizeof(command), "nm %s 2> /dev/null; nm -D %s", path, path);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	*ret_expected = 0;
	while (fgets(line, sizeof(line), pipe)) {
		char *end = strchr(line, '\n'), *last = strrchr(line, ' ');

		if (end)
			*end = 0;
		if (last && !strcmp(last + 1, name) && sscanf(line, "%lx", &address) == 1)
			*ret_expected = address;
	}
	pclose(pipe);
	unlink(path);
	rmdir(directory);
	return found;
}

#define BOOTSTRAP_2 "_ZN8greenlet12UserGreenlet15inner_bootstrapERNS_4refs1XE"
#define BOOTSTRAP_3 "_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object"
#define MODULE "int PyInit__greenlet(void) { return 1; }\n"

static void greenlet__exported_function_is_found_in_a_stripped_file(void **state)
{
	uint64_t expected, found;

	(void)state;
	found = found_in(MODULE "int " BOOTSTRAP_3 "(void) { return 2; }\n", "-s", BOOTSTRAP_3,
			 &expected);
	assert_true(expected);
	assert_int_equal(found, expected);
	found = found_in(MODULE "int " BOOTSTRAP_2 "(void) { return 2; }\n", "-s", BOOTSTRAP_2,
			 &expected);
	assert_true(expected);
	assert_int_equal(found, expected);
}

static void greenlet__local_function_of_old_releases_is_found(void **state)
{
	uint64_t expected;
	uint64_t found = found_in("int PyInit__greenlet(int a) { return a; }\n"
				  "static __attribute__((noinline)) int g_initialstub(int a)\n"
				  "{ __asm__ volatile(\"\"); return a; }\n"
				  "int other(int a) { return g_initialstub(a) + 1; }\n",
				  "", "g_initialstub", &expected);

	(void)state;
	assert_true(expected);
	assert_int_equal(found, expected);
}

static void greenlet__other_libraries_have_none(void **state)
{
	uint64_t expected;

	(void)state;
	assert_int_equal(found_in("static __attribute__((noinline)) int g_initialstub(int a)\n"
				  "{ __asm__ volatile(\"\"); return a; }\n"
				  "int other(int a) { return g_initialstub(a) + 1; }\n",
				  "", "other", &expected),
			 0);
	assert_int_equal(found_in(MODULE, "-s", "PyInit__greenlet", &expected), 0);
	assert_int_equal(found_in("int " BOOTSTRAP_3 ";\n", "-s", BOOTSTRAP_3, &expected), 0);
}

static uint64_t root; /* the last one */
static unsigned int roots;

void cfi_add_root(struct cfi *cfi, uint64_t vaddr)
{
	(void)cfi;
	root = vaddr;
	roots++;
}

#define MAKER (MADE_BASE + MADE_FREE)

static void coroutine_roots__are_what_their_makers_compute(void **state)
{
	static const char *const makers[] = {"makecontext", "make_fcontext", "swapcontext"};
	static const char *const ends[] = {"\x48\x89\xdc\x48", "\x48\x31\xff\xe8",
					   "\x48\x89\xdc\x48"};
	static struct made_elf elf;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		OWNED(elf_image) struct elf_image *image = NULL;
		uint64_t at = MAKER;

		made_begin(&elf, EM_X86_64);
		made_symbol(&elf, makers[i], MAKER, 64, STT_FUNC);
		at = MADE_RELATIVE(&elf, at, "\x90\x4c\x8d\x05", MAKER + 0x300); /* data */
		at = MADE_RELATIVE(&elf, at, "\x48\x8d\x3d", MAKER + 0x200);
		made_put(&elf, MAKER + 0x200, ends[i], 4);
		image = made_open(&elf);
		roots = 0;
		coroutine_roots_add(image, NULL);
		assert_int_equal(roots, i < 2);
		assert_int_equal(root, MAKER + 0x200);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greenlet__exported_function_is_found_in_a_stripped_file),
		cmocka_unit_test(greenlet__local_function_of_old_releases_is_found),
		cmocka_unit_test(greenlet__other_libraries_have_none),
		cmocka_unit_test(coroutine_roots__are_what_their_makers_compute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
