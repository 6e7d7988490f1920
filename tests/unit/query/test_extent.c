/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/folder.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pyprofd/kinds.h>

#include "base/cleanup.h"

#define FILES_MAX 24U

struct fixture {
	char directory[64];
	char *path[FILES_MAX]; /* owned */
	unsigned int files;
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){.directory = "/tmp/test_extent.XXXXXX"};
	assert_non_null(mkdtemp(f->directory));
}

static void fixture_release(struct fixture *f)
{
	for (unsigned int i = 0; i < f->files; i++) {
		unlink(f->path[i]);
		free(f->path[i]);
	}
	rmdir(f->directory);
}

/* Makes a file of that size that nobody may open. */
static void put(struct fixture *f, off_t bytes, uint64_t start_ms, uint64_t duration_ms,
		const char *rest)
{
	char **path = &f->path[f->files++];
	int fd;

	assert_true(asprintf(path, "%s/%llu-%llu-%s.pb.gz", f->directory,
			     (unsigned long long)start_ms, (unsigned long long)duration_ms,
			     rest) > 0);
	fd = open(*path, O_CREAT | O_WRONLY | O_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	close(fd);
}

static void extent__is_what_names_and_sizes_say(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	struct extent extent;

	(void)state;
	fixture_init(&f);
	put(&f, 1000, 1000000, 300000, "cpu.merged");
	put(&f, 100, 2000000, 5000, "cpu");
	put(&f, 10, 2000000, 9000, "offcpu");
	put(&f, 1, 2005000, 5000, "another");
	assert_int_equal(extent_read(f.directory, true, &extent), 0);
	assert_int_equal(extent.files, 4);
	assert_int_equal(extent.bytes, 1111);
	assert_int_equal(extent.from_ms, 1000000);
	assert_int_equal(extent.until_ms, 2010000);
	assert_int_equal(extent.kinds, 1U << PP_PROFILE_CPU | 1U << PP_PROFILE_OFFCPU);
	assert_int_equal(extent_read(f.directory, false, &extent), 0);
	assert_int_equal(extent.bytes, 0);
}

/* Windows are off by a millisecond, the last one was cut short, and it was another one before. */
static void interval__is_that_of_most_of_the_newest_windows(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	struct extent extent;

	(void)state;
	fixture_init(&f);
	for (unsigned int i = 0; i < 4; i++)
		put(&f, 0, 1000000 + 60000 * i, 60000, "cpu");
	for (unsigned int i = 0; i < 16; i++)
		put(&f, 0, 2000000 + 10000 * i, 9999 + i % 3, "cpu");
	put(&f, 0, 2160000, 123, "cpu");
	put(&f, 0, 3000000, 300000, "cpu.merged");
	assert_int_equal(extent_read(f.directory, false, &extent), 0);
	assert_int_equal(extent.interval_ms, 10000);
}

static void extent__of_nothing_is_zero(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	struct extent extent = {.files = 7};

	(void)state;
	fixture_init(&f);
	assert_int_equal(extent_read("/tmp/nothing/there", true, &extent), -ENOENT);
	assert_int_equal(extent.files, 7);
	assert_int_equal(extent_read(f.directory, true, &extent), 0);
	assert_int_equal(extent.files + extent.bytes + extent.from_ms + extent.until_ms +
				 extent.interval_ms + extent.kinds,
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(extent__is_what_names_and_sizes_say),
		cmocka_unit_test(interval__is_that_of_most_of_the_newest_windows),
		cmocka_unit_test(extent__of_nothing_is_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
