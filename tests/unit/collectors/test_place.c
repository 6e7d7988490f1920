/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/session.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(struct place *place, const char *name, const char *text)
{
	assert_int_equal(place_begin(place, name), 0);
	assert_int_equal(place_write(place, text, strlen(text)), 0);
	assert_int_equal(place_end(place), 0);
}

static void directory__is_for_its_user_alone_and_goes_with_all_files(void **state)
{
	OWNED(place) struct place *place = NULL;
	OWNED_MEM char *path = NULL;
	struct stat status;

	(void)state;
	assert_int_equal(place_new(&place), 0);
	path = strdup(place_path(place));
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0700);
	put(place, "a", "one");
	put(place, "b", "");
	assert_true(place_has(place, "a"));
	assert_int_equal(place_first_byte(place, "a"), 'o');
	assert_int_equal(place_first_byte(place, "b"), -ENODATA);
	assert_int_equal(place_first_byte(place, "c"), -ENOENT);
	place_delete(place, "a");
	assert_false(place_has(place, "a"));
	place_remove(place);
	assert_int_equal(stat(path, &status), -1);
	place_remove(place);
}

static void begin__replaces_nothing_and_writes_nothing_behind_the_end(void **state)
{
	OWNED(place) struct place *place = NULL;

	(void)state;
	assert_int_equal(place_new(&place), 0);
	put(place, "a", "one");
	assert_int_equal(place_begin(place, "a"), -EEXIST);
	assert_int_equal(place_first_byte(place, "a"), 'o');
	place_remove(place);
	assert_int_equal(place_begin(place, "b"), -ECANCELED);
}

static void abandon__leaves_no_file(void **state)
{
	OWNED(place) struct place *place = NULL;

	(void)state;
	assert_int_equal(place_new(&place), 0);
	assert_int_equal(place_begin(place, "a"), 0);
	assert_int_equal(place_write(place, "x", 1), 0);
	place_abandon(place);
	assert_false(place_has(place, "a"));
	put(place, "a", "y");
	/* One that is begun is given up for the next. */
	assert_int_equal(place_begin(place, "b"), 0);
	put(place, "c", "z");
	assert_false(place_has(place, "b"));
	assert_true(place_has(place, "c"));
}

static void write__is_bounded_over_all_files(void **state)
{
	OWNED(place) struct place *place = NULL;

	(void)state;
	assert_int_equal(place_new(&place), 0);
	put(place, "a", "one");
	assert_int_equal(place_begin(place, "b"), 0);
	/* It is refused before it is looked at. */
	assert_int_equal(place_write(place, "", FETCH_MAX_BYTES - 2), -EFBIG);
	assert_int_equal(place_write(place, "x", 1), 0);
	assert_int_equal(place_end(place), 0);
	place_delete(place, "a");
	place_delete(place, "b");
	assert_int_equal(place_begin(place, "c"), 0);
	assert_int_equal(place_write(place, "", FETCH_MAX_BYTES + 1), -EFBIG);
}

static void new__follows_tmpdir(void **state)
{
	OWNED(place) struct place *place = NULL;

	(void)state;
	assert_int_equal(setenv("TMPDIR", "/nonexistent", 1), 0);
	assert_int_equal(place_new(&place), -ENOENT);
	assert_int_equal(setenv("TMPDIR", "", 1), 0);
	assert_int_equal(place_new(&place), 0);
	assert_int_equal(strncmp(place_path(place), "/tmp/pyprof-", 12), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(directory__is_for_its_user_alone_and_goes_with_all_files),
		cmocka_unit_test(begin__replaces_nothing_and_writes_nothing_behind_the_end),
		cmocka_unit_test(abandon__leaves_no_file),
		cmocka_unit_test(write__is_bounded_over_all_files),
		cmocka_unit_test(new__follows_tmpdir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
