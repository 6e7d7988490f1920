/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/safe_file.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

static void set(const char *name, const char *value)
{
	assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static int read_ids(const char *uid_text, const char *gid_text, uid_t *ret_uid, gid_t *ret_gid)
{
	set("SUDO_UID", uid_text);
	set("SUDO_GID", gid_text);
	return sudo_user_ids(ret_uid, ret_gid);
}

static void sudo_user_ids__are_those_of_the_environment(void **state)
{
	uid_t uid = 7;
	gid_t gid = 8;

	(void)state;
	assert_int_equal(read_ids(NULL, NULL, &uid, &gid), -ENOENT);
	assert_int_equal(uid, 7);
	assert_int_equal(gid, 8);
	assert_int_equal(read_ids("1000", "100", &uid, &gid), 0);
	assert_int_equal(uid, 1000);
	assert_int_equal(gid, 100);
	assert_int_equal(read_ids("0", "4294967294", &uid, &gid), 0);
	assert_int_equal(uid, 0);
	assert_int_equal(gid, 4294967294);
}

/* A half that cannot be read must not become root, nor chown(2)'s "as it is". */
static void sudo_user_ids__anything_but_two_numbers_is_refused(void **state)
{
	static const char *const wrong[] = {NULL,
					    "",
					    "x",
					    "1000x",
					    "-1",
					    "4294967295",
					    "4294967296",
					    " 12",
					    "+1",
					    "0x10",
					    "99999999999999999999"};
	uid_t uid = 7;
	gid_t gid = 8;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(read_ids(wrong[i], "100", &uid, &gid), -EINVAL);
		assert_int_equal(read_ids("1000", wrong[i], &uid, &gid), -EINVAL);
	}
	assert_int_equal(uid, 7);
	assert_int_equal(gid, 8);
}

static void groups__of_a_user_hold_his_own_one(void **state)
{
	gid_t *group = NULL;
	size_t count = 0;

	(void)state;
	assert_int_equal(user_groups(NULL, 54321, &group, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(group[0], 54321);
	free(group);
	assert_int_equal(user_groups("root", 54321, &group, &count), 0);
	assert_true(count >= 1);
	assert_int_equal(group[0], 54321);
	free(group);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sudo_user_ids__are_those_of_the_environment),
		cmocka_unit_test(sudo_user_ids__anything_but_two_numbers_is_refused),
		cmocka_unit_test(groups__of_a_user_hold_his_own_one),
	};

	return cmocka_run_group_tests_name("base/sudo_user", tests, NULL, NULL);
}
