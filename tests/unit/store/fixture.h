/* SPDX-License-Identifier: BSD-2-Clause */
/* An empty directory for each test. */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_CHARS 512U

static inline int make_directory(void **state)
{
	char path[] = "/tmp/test_store_XXXXXX";

	if (!mkdtemp(path))
		return -1;
	*state = strdup(path);
	return *state ? 0 : -1;
}

static inline int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)stat;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline int remove_directory(void **state)
{
	int err = nftw(*state, remove_entry, 16, FTW_DEPTH | FTW_PHYS);

	free(*state);
	return err;
}

static inline const char *in_directory(void **state, const char *name, char path[PATH_CHARS])
{
	snprintf(path, PATH_CHARS, "%s/%s", (const char *)*state, name);
	return path;
}

static inline void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static inline void assert_content(const char *path, const char *expected)
{
	char content[256];
	FILE *file = fopen(path, "r");
	size_t size;

	assert_non_null(file);
	size = fread(content, 1, sizeof(content) - 1, file);
	fclose(file);
	content[size] = '\0';
	assert_string_equal(content, expected);
}

/* Lets this process open that many more files; returns the bound of before, for setrlimit(). */
static inline struct rlimit allow_files(unsigned int more)
{
	struct rlimit before, small;
	int next[8];

	assert_true(more < 8);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (unsigned int i = 0; i <= more; i++) {
		next[i] = dup(STDERR_FILENO);
		assert_true(next[i] >= 0);
	}
	for (unsigned int i = 0; i <= more; i++)
		close(next[i]);
	small = before;
	small.rlim_cur = (rlim_t)next[more];
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
	return before;
}

static inline void assert_mode(const char *path, unsigned int mode)
{
	struct stat stat;

	assert_int_equal(lstat(path, &stat), 0);
	assert_int_equal(stat.st_mode & 07777, mode);
}

#endif
