/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/identity.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

#define S 1000000000ULL

static void users_find__takes_whole_numbers(void **state)
{
	static const char text[] = "root:x:0:0:root:/root:/bin/sh\n\n:x:7:7::/:\nbad\nx:1000\n"
				   "web:x:1000:1000::/:\nlong:x:10001:1:::\nlast:x:12:1::";
	char name[LABEL_VALUE_BYTES];

	(void)state;
	assert_true(users_find(text, 0, name));
	assert_string_equal(name, "root");
	assert_true(users_find(text, 1000, name));
	assert_string_equal(name, "web");
	assert_true(users_find(text, 12, name));
	assert_string_equal(name, "last");
	assert_false(users_find(text, 7, name));
	assert_false(users_find(text, 100, name));
	assert_false(users_find("", 0, name));
}

static const char *users_text; /* NULL: it cannot be read */

/* The child's that reads memory. */
static int read_text(void *context, pid_t tid, enum process_text which, size_t max_bytes,
		     char **ret_text, size_t *ret_size)
{
	(void)context;
	assert_int_equal(tid, getpid());
	assert_int_equal(which, PROCESS_USERS);
	assert_int_equal(max_bytes, PROCESS_TEXT_MAX_BYTES);
	if (!users_text)
		return -ETIMEDOUT;
	*ret_text = strdup(users_text);
	*ret_size = strlen(users_text);
	return 0;
}

static void users_name__number_where_there_is_none(void **state)
{
	static const struct process_access access = {.read_text = read_text};
	char name[LABEL_VALUE_BYTES];
	struct users users = {0};

	(void)state;
	process_access_by(&access, NULL);
	users_text = "web:x:1000:1000::/:\n";
	users_name(&users, 1000, S, name);
	assert_string_equal(name, "web");
	users_name(&users, 4294967294U, S, name);
	assert_string_equal(name, "4294967294");
	/* A user who was added is found a minute later. */
	users_text = "web:x:1000:1000::/:\nnew:x:1001:1::/:\n";
	users_name(&users, 1001, 2 * S, name);
	assert_string_equal(name, "1001");
	users_name(&users, 1001, S + USERS_AGAIN_NS, name);
	assert_string_equal(name, "new");
	/* A file that is gone, or does not come, changes nothing. */
	users_text = NULL;
	users_name(&users, 1002, 10 * USERS_AGAIN_NS, name);
	users_name(&users, 1001, 10 * USERS_AGAIN_NS, name);
	assert_string_equal(name, "new");
	users_release(&users);
	users_release(&users); /* it is as at the beginning */
	assert_int_equal(users.read_ns, 0);
	process_access_by(NULL, NULL);
}

static void users_name__reads_our_own_file(void **state)
{
	char name[LABEL_VALUE_BYTES];
	struct users users = {0};

	(void)state;
	users_name(&users, 0, S, name);
	assert_string_equal(name, "root");
	users_release(&users);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(users_find__takes_whole_numbers),
		cmocka_unit_test(users_name__number_where_there_is_none),
		cmocka_unit_test(users_name__reads_our_own_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
