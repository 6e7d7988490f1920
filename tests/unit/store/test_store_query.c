/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: store/store_query.c store/store_names.c */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "store/store_query.h"

struct fixture {
	char directory[64];
};

static void touch(const struct fixture *f, const char *name)
{
	char path[256], *slash;
	OWNED_FD int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", f->directory, name);
	for (slash = strchr(path + strlen(f->directory) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0700);
		*slash = '/';
	}
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
}

static void fixture_release(struct fixture *f)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", f->directory);
	assert_int_equal(system(command), 0);
}

static void fixture_init(struct fixture *f)
{
	snprintf(f->directory, sizeof(f->directory), "/tmp/test_store_query.XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	touch(f, "2026-11-21/15/1795273360165-10000-cpu.pb.gz");
	touch(f, "2026-11-21/15/1795273360165-10000-offcpu.pb.gz");
	touch(f, "2026-11-21/15/1795273350165-10000-cpu.pb.gz");
	touch(f, "2026-11-21/16/1795276960165-10000-cpu.pb.gz");
	touch(f, "2026-11-21/16/.1795276970165-10000-cpu.pb.gz.tmp");
	touch(f, "2026-11-21/16/notes.txt");
	touch(f, "other/16/1795276960165-10000-cpu.pb.gz");
}

static size_t count(const struct fixture *f, struct store_range range, uint64_t *first_ms)
{
	CLEANUP(store_listing_release) struct store_listing listing = {0};

	assert_int_equal(store_list(f->directory, &range, &listing), 0);
	*first_ms = listing.count ? listing.entry[0].file.start_ms : 0;
	return listing.count;
}

static void store_list__finds_windows_in_order(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	uint64_t first_ms;

	(void)state;
	fixture_init(&f);
	assert_int_equal(count(&f, (struct store_range){.until_ms = UINT64_MAX}, &first_ms), 4);
	assert_int_equal(first_ms, 1795273350165);
	assert_int_equal(count(&f, (struct store_range){.until_ms = UINT64_MAX, .kind = "offcpu"},
			       &first_ms),
			 1);
}

static void store_list__takes_windows_that_overlap(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	uint64_t first_ms;

	(void)state;
	fixture_init(&f);
	/* Ends at ...370165: two of that time, and the hour after. */
	assert_int_equal(
		count(&f, (struct store_range){.since_ms = 1795273370000, .until_ms = UINT64_MAX},
		      &first_ms),
		3);
	assert_int_equal(count(&f, (struct store_range){.until_ms = 1795273360165}, &first_ms), 1);
}

static void store_list__missing_folder_is_enoent(void **state)
{
	const struct store_range range = {.until_ms = UINT64_MAX};
	struct store_listing listing;

	(void)state;
	assert_int_equal(store_list("/nonexistent/store", &range, &listing), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(store_list__finds_windows_in_order),
		cmocka_unit_test(store_list__takes_windows_that_overlap),
		cmocka_unit_test(store_list__missing_folder_is_enoent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
