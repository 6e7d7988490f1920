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

static struct socket_end four(const char *address, uint16_t port)
{
	struct socket_end end = {.port = port};

	assert_int_equal(inet_pton(AF_INET, address, &end.address[0]), 1);
	return end;
}

static void line__of_ipv4_is_parsed(void **state)
{
	struct socket_row row;

	(void)state;
	assert_int_equal(socket_table_parse(FOUR, strlen(FOUR), &row), 0);
	assert_int_equal(row.own.port, 0x1f90);
	assert_int_equal(row.peer.port, 0xc001);
	assert_int_equal(row.state, TCP_ESTABLISHED);
	assert_int_equal(row.uid, 1000);
	assert_int_equal(row.inode, 12345);
	/* Its feed need not be there. */
	assert_int_equal(socket_table_parse(FOUR, strlen(FOUR) - 1, &row), 0);
	if (htonl(1) == 1) /* the words of the line are of a little-endian host */
		skip();
	assert_int_equal(row.own.address[0], htonl(0x7f000001));
	assert_int_equal(row.peer.address[0], htonl(0x7f000002));
}

static void line__of_ipv6_has_four_words(void **state)
{
	struct in6_addr wanted;
	struct socket_row row;

	(void)state;
	assert_int_equal(socket_table_parse(SIX, strlen(SIX), &row), 0);
	assert_int_equal(row.state, TCP_TIME_WAIT);
	assert_int_equal(row.inode, 0);
	assert_int_equal(row.own.port, 4041);
	if (htonl(1) == 1)
		skip();
	assert_int_equal(inet_pton(AF_INET6, "::1", &wanted), 1);
	assert_memory_equal(row.own.address, &wanted, sizeof(wanted));
	assert_int_equal(inet_pton(AF_INET6, "2001:db8::2", &wanted), 1);
	assert_memory_equal(row.peer.address, &wanted, sizeof(wanted));
}

static void line__that_is_no_sockets_is_refused(void **state)
{
	static const char good[] = FOUR;
	static const char *const wrong[] = {
		HEAD,
		"",
		"\n",
		"   7:",
		"   7: 0100007F",
		"   7: 0100007F:1F90 0200007F:C001",
		"   7: 0100007F:1F90 0200007F:C001 01 0:0 0:0 0 -1 0 12345",
		"   7: 0100007F:1F90 0200007F:C001 01 0:0 0:0 0 4294967296 0 12345",
		"   7: 0100007F:1F90 0200007F:C001 01 0:0 0:0 0 1000 0 18446744073709551616",
		"   7: 0100007G:1F90 0200007F:C001 01 0:0 0:0 0 1000 0 12345",
		"   7: 0100007F:1F9 0200007F:C001 01 0:0 0:0 0 1000 0 12345",
		"   7: 0100007F01000000:1F90 0200007F:C001 01 0:0 0:0 0 1000 0 12345",
		"   7: 0100007F:1F90 0200007F:C001 01 0:0 0:0 0 1000x 0 12345"};
	struct socket_row row = {.uid = 7};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(socket_table_parse(wrong[i], strlen(wrong[i]), &row), -EBADMSG);
	/* Every cut of a good line in front of the inode. */
	for (size_t i = 0; i < (size_t)(strstr(good, "12345") - good); i++)
		assert_int_equal(socket_table_parse(good, i, &row), -EBADMSG);
	assert_int_equal(row.uid, 7);
}

/* Behind more lines than one reading holds: one of them stands across each edge. */
static void table__is_read_up_to_the_socket(void **state)
{
	const struct socket_end own = four("127.0.0.1", 8080), peer = four("127.0.0.2", 49153);
	struct socket_row row = {.uid = 7};

	(void)state;
	if (htonl(1) == 1)
		skip();
	write_table(SIX, 3000);
	assert_int_equal(socket_table_find(path, &own, &peer, &row), 0);
	assert_int_equal(row.uid, 1000);
	/* The same two ends the other way round are another socket. */
	assert_int_equal(socket_table_find(path, &peer, &own, &row), -ENOENT);
	assert_int_equal(socket_table_find("/no/such", &own, &peer, &row), -ENOENT);
}

/* What one reading brought behind it is left alone. */
static void table__may_have_more_behind_the_socket(void **state)
{
	const struct socket_end own = four("127.0.0.1", 8080), peer = four("127.0.0.2", 49153);
	struct socket_row row = {.uid = 7};

	(void)state;
	if (htonl(1) == 1)
		skip();
	write_table(FOUR SIX SIX SIX SIX SIX SIX, 10);
	assert_int_equal(socket_table_find(path, &own, &peer, &row), 0);
	assert_int_equal(row.uid, 1000);
}

static void table__that_is_too_long_is_given_up(void **state)
{
	const struct socket_end own = four("127.0.0.1", 8080), peer = four("127.0.0.2", 49153);
	struct socket_row row = {.uid = 7};

	(void)state;
	write_table(SIX, SOCKET_TABLE_MAX_BYTES / (sizeof(SIX) - 1) + 1000);
	assert_int_equal(socket_table_find(path, &own, &peer, &row), -EFBIG);
	assert_int_equal(row.uid, 7);
}

static void file__without_lines_is_no_table(void **state)
{
	const struct socket_end own = four("127.0.0.1", 8080);
	struct socket_row row;

	(void)state;
	assert_int_equal(socket_table_find("/dev/zero", &own, &own, &row), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line__of_ipv4_is_parsed),
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
