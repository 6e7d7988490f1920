/* SPDX-License-Identifier: BSD-2-Clause */
/* A store for each test.  System calls that change it can be told to be the last ones, or to
 * fail. */
#ifndef TESTS_MERGE_STORE_FIXTURE_H
#define TESTS_MERGE_STORE_FIXTURE_H

#include "../store/fixture.h"

#include <dlfcn.h>
#include <stdbool.h>

#include "store/store_query.h"

/* ---- a process that ends at a call ---- */

static unsigned int calls_left; /* 0: no end */
static int failing_err;		/* ... fails with this instead of ending; 0: ends */

static bool ends_here(void)
{
	if (!calls_left || --calls_left)
		return false;
	if (!failing_err)
		_exit(9);
	errno = failing_err;
	return true;
}

int fsync(int fd)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");

	return ends_here() ? -1 : next(fd);
}

int renameat(int old_fd, const char *old, int new_fd, const char *new)
{
	int (*next)(int, const char *, int, const char *) =
		(int (*)(int, const char *, int, const char *))dlsym(RTLD_NEXT, "renameat");

	return ends_here() ? -1 : next(old_fd, old, new_fd, new);
}

/* ---- a store ---- */

static inline int make_store(void **state)
{
	calls_left = 0;
	failing_err = 0;
	return make_directory(state);
}

static inline void write_bytes(const char *store, const struct store_file *file, const void *bytes,
			       size_t size)
{
	char path[PATH_CHARS], day[STORE_DAY_CHARS], hour[STORE_HOUR_CHARS];
	char name[STORE_FILE_CHARS];
	FILE *out;

	store_day_name(file->start_ms, day);
	store_hour_name(file->start_ms, hour);
	store_file_name(file, name);
	snprintf(path, sizeof(path), "%s/%s", store, day);
	(void)mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/%s", store, day, hour);
	(void)mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/%s/%s", store, day, hour, name);
	out = fopen(path, "w");
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, size, out), size);
	fclose(out);
}

#endif
