/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/peer.h"

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* As a kernel of a little-endian host prints it. */
#define HEAD                                                                                       \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "      \
	"timeout inode                                                     \n"
#define FOUR                                                                                       \
	"   7: 0100007F:1F90 0200007F:C001 01 00000000:00000000 "                                  \
	"00:00000000 00000000  1000        0 "                                                     \
	"12345 1 0000000000000000 20 4 30 10 -1                    \n"
#define SIX                                                                                        \
	"  12: 00000000000000000000000001000000:0FC9 "                                             \
	"B80D0120000000000000000002000000:C002 06 "                                                \
	"00000000:00000000 03:00000042 00000000     0        0 0 3 0000000000000000\n"

static char path[] = "/tmp/socket-table-XXXXXX";

static void write_table(const char *text, unsigned int times)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(HEAD, file);
	for (unsigned int i = 0; i < times; i++)
		fputs(text, file);
	fputs(FOUR, file);
	assert_int_equal(fclose(file), 0);
}

#define ENDS_FOUR " 0100007F:1F90 0200007F:C001"
#define ENDS_SIX " 00000000000000000000000001000000:0FC9 B80D0120000000000000000002000000:C002"

static const struct socket_owner untouched = {.is_open = true, .uid = 7};

/* Looks for ends in a table with one more line, behind the head and before FOUR. */
static int find(const char *line, const char *ends, struct socket_owner *owner)
{
	*owner = untouched;
	write_table(line, 1);
	return socket_table_find(path, ends, owner);
}

static void line__of_ipv4_is_found(void **state)
{
	struct socket_owner owner;

	(void)state;
	assert_int_equal(find("", ENDS_FOUR, &owner), 0);
	assert_int_equal(owner.uid, 1000);
	assert_true(owner.is_open);
}

static void line__of_ipv6_has_four_words(void **state)
{
	struct socket_owner owner;

	(void)state;
	assert_int_equal(find(SIX, ENDS_SIX, &owner), 0);
	assert_int_equal(owner.uid, 0);
	assert_false(owner.is_open); /* TIME_WAIT, and no inode */
}

static void line__that_is_no_sockets_is_refused(void **state)
{
	static const char good[] = FOUR;
	static const char *const broken[] = {"   7:" ENDS_FOUR "\n",
					     "   7:" ENDS_FOUR " 01 0:0 0:0 0 -1 0 12345\n",
					     "   7:" ENDS_FOUR " 01 0:0 0:0 0 4294967296 0 12345\n",
					     "   7:" ENDS_FOUR " 01 0:0 0:0 0 1000x 0 12345\n"};
	static const char *const others[] = {
		HEAD,
		"\n",
		"   7:\n",
		"   7: 0100007F\n",
		"   7: 0100007G:1F90 0200007F:C001 01 0:0 0:0 0 1001 0 12345\n",
		"   7: 0100007F:1F9 0200007F:C001 01 0:0 0:0 0 1001 0 12345\n",
		"   7: 0100007F01000000:1F90 0200007F:C001 01 0:0 0:0 0 1001 0 12345\n"};
	struct socket_owner owner;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		assert_int_equal(find(broken[i], ENDS_FOUR, &owner), -EBADMSG);
		assert_int_equal(owner.uid, untouched.uid);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_int_equal(find(others[i], ENDS_FOUR, &owner), 0);
		assert_int_equal(owner.uid, 1000);
	}
	/* Every cut of a good line behind the ends and in front of the inode. */
	for (size_t i = strlen("   7:" ENDS_FOUR); i < (size_t)(strstr(good, "12345") - good);
	     i++) {
		char line[sizeof(good) + 1];

		snprintf(line, sizeof(line), "%.*s\n", (int)i, good);
		assert_int_equal(find(line, ENDS_FOUR, &owner), -EBADMSG);
		assert_int_equal(owner.uid, untouched.uid);
	}
}

/* Behind more lines than one reading holds: one of them stands across each edge. */
static void table__is_read_up_to_the_socket(void **state)
{
	struct socket_owner row = untouched;

	(void)state;
	write_table(SIX, 3000);
	assert_int_equal(socket_table_find(path, ENDS_FOUR, &row), 0);
	assert_int_equal(row.uid, 1000);
	/* The same two ends the other way round are another socket. */
	assert_int_equal(socket_table_find(path, " 0200007F:C001 0100007F:1F90", &row), -ENOENT);
	assert_int_equal(socket_table_find("/no/such", ENDS_FOUR, &row), -ENOENT);
}

/* What one reading brought behind it is left alone. */
static void table__may_have_more_behind_the_socket(void **state)
{
	struct socket_owner row = untouched;

	(void)state;
	write_table(FOUR SIX SIX SIX SIX SIX SIX, 10);
	assert_int_equal(socket_table_find(path, ENDS_FOUR, &row), 0);
	assert_int_equal(row.uid, 1000);
}

static void table__that_is_too_long_is_given_up(void **state)
{
	struct socket_owner row = untouched;

	(void)state;
	write_table(SIX, SOCKET_TABLE_MAX_BYTES / (sizeof(SIX) - 1) + 1000);
	assert_int_equal(socket_table_find(path, ENDS_FOUR, &row), -EFBIG);
	assert_int_equal(row.uid, 7);
}

static void file__without_lines_is_no_table(void **state)
{
	struct socket_owner row;

	(void)state;
	assert_int_equal(socket_table_find("/dev/zero", ENDS_FOUR, &row), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line__of_ipv4_is_found),
		cmocka_unit_test(line__of_ipv6_has_four_words),
		cmocka_unit_test(line__that_is_no_sockets_is_refused),
		cmocka_unit_test(table__is_read_up_to_the_socket),
		cmocka_unit_test(table__may_have_more_behind_the_socket),
		cmocka_unit_test(table__that_is_too_long_is_given_up),
		cmocka_unit_test(file__without_lines_is_no_table),
	};
	int fd = mkstemp(path), failed;

	if (fd < 0)
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(path);
	return failed;
}
