/* SPDX-License-Identifier: BSD-2-Clause */
/* Debug files below a temporary directory, which is the root. */
#include "elf/debug_file.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEBUG_DIRECTORY "/usr/lib/debug"

static char root[64];
static uint32_t owner;

static int setup(void **state)
{
	(void)state;
	strcpy(root, "/tmp/test_debug_paths.XXXXXX");
	owner = getuid();
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

/* Makes a file at a path below the root, with its directories; it has its path in it. */
static void put(const char *path, mode_t mode)
{
	char whole[PATH_MAX];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		assert_true(!mkdir(whole, 0755) || errno == EEXIST);
		*slash = '/';
	}
	file = fopen(whole, "w");
	assert_non_null(file);
	fputs(path, file);
	fclose(file);
	assert_int_equal(chmod(whole, mode), 0);
}

static bool is_of(int fd, const char *path)
{
	char text[PATH_MAX] = "";

	if (!path)
		return fd == -1;
	return fd >= 0 && pread(fd, text, sizeof(text) - 1, 0) > 0 && !strcmp(text, path);
}

static struct debug_files found;

static void look(const char *link, const char *path)
{
	struct debug_names names = {0};

	snprintf(names.link, sizeof(names.link), "%s", link);
	debug_files_open(&names, root, path, owner, &found);
}

static void debuglink__is_looked_for_where_gdb_does(void **state)
{
	CLEANUP(debug_files_release) struct debug_files files;

	(void)state;
	put("/opt/lib/x.debug", 0644);
	put("/opt/lib/.debug/x.debug", 0644);
	put(DEBUG_DIRECTORY "/opt/lib/x.debug", 0644);
	look("x.debug", "/opt/lib/libx.so");
	files = found;
	assert_true(is_of(files.fd[0], NULL));
	assert_true(is_of(files.fd[1], "/opt/lib/x.debug"));
	assert_true(is_of(files.fd[2], "/opt/lib/.debug/x.debug"));
	assert_true(is_of(files.fd[3], DEBUG_DIRECTORY "/opt/lib/x.debug"));
}

static void debuglink__of_a_file_at_the_root_is_found(void **state)
{
	CLEANUP(debug_files_release) struct debug_files files;

	(void)state;
	put("/x.debug", 0644);
	look("x.debug", "/libx.so");
	files = found;
	assert_true(is_of(files.fd[1], "/x.debug"));
	assert_true(is_of(files.fd[2], NULL) && is_of(files.fd[3], NULL));
}

static void debuglink__without_a_directory_or_a_name_is_none(void **state)
{
	static const char *const path[] = {"opt/libx.so", "libx.so", "[vdso]", "", "//anon"};

	(void)state;
	put("/x.debug", 0644);
	put("/opt/x.debug", 0644);
	for (size_t i = 0; i < ARRAY_SIZE(path); i++) {
		CLEANUP(debug_files_release) struct debug_files files;

		look(i < 4 ? "x.debug" : "", path[i]);
		files = found;
		for (size_t k = 0; k < DEBUG_FILES_MAX; k++)
			assert_true(is_of(files.fd[k], NULL));
	}
}

/* A path of almost PATH_MAX has no room for the name. */
static void debuglink__that_does_not_fit_is_left_out(void **state)
{
	CLEANUP(debug_files_release) struct debug_files files;
	static char path[PATH_MAX];

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[0] = path[sizeof(path) - 3] = '/';
	look("x.debug", path);
	files = found;
	for (size_t k = 0; k < DEBUG_FILES_MAX; k++)
		assert_true(is_of(files.fd[k], NULL));
}

static void build_id__is_a_directory_of_its_first_byte_and_a_file_of_the_others(void **state)
{
	static const char path[] = DEBUG_DIRECTORY "/.build-id/0a/ff10.debug";
	const struct debug_names names = {.build_id = {0x0a, 0xff, 0x10}, .build_id_bytes = 3};
	CLEANUP(debug_files_release) struct debug_files files;

	(void)state;
	put(path, 0644);
	debug_files_open(&names, root, "libx.so", owner, &files);
	assert_true(is_of(files.fd[0], path));
	assert_true(is_of(files.fd[1], NULL));
}

static void debug_file__that_anybody_may_write_is_not_used(void **state)
{
	CLEANUP(debug_files_release) struct debug_files files;

	(void)state;
	put("/opt/x.debug", 0646);
	put("/opt/.debug/x.debug", 0600); /* the owner's own */
	look("x.debug", "/opt/libx.so");
	files = found;
	assert_true(is_of(files.fd[1], NULL));
	assert_true(is_of(files.fd[2], "/opt/.debug/x.debug"));
}

static void debug_file__of_root_is_for_all_when_all_may_read_it(void **state)
{
	CLEANUP(debug_files_release) struct debug_files files;

	(void)state;
	if (getuid()) {
		print_message("skipped: not root\n");
		skip();
	}
	put("/opt/x.debug", 0640);
	put("/opt/.debug/x.debug", 0644);
	owner = 12345;
	look("x.debug", "/opt/libx.so");
	files = found;
	assert_true(is_of(files.fd[1], NULL));
	assert_true(is_of(files.fd[2], "/opt/.debug/x.debug"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(debuglink__is_looked_for_where_gdb_does),
		TEST(debuglink__of_a_file_at_the_root_is_found),
		TEST(debuglink__without_a_directory_or_a_name_is_none),
		TEST(debuglink__that_does_not_fit_is_left_out),
		TEST(build_id__is_a_directory_of_its_first_byte_and_a_file_of_the_others),
		TEST(debug_file__that_anybody_may_write_is_not_used),
		TEST(debug_file__of_root_is_for_all_when_all_may_read_it),
	};

	return cmocka_run_group_tests_name("elf/debug_paths", tests, NULL, NULL);
}
