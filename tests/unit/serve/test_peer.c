/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/peer.h"

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define USER 65534U

static const enum peer_source sources[] = {PEER_SOCK_DIAG, PEER_PROC};
/* What sock_diag answers instead of the kernel's; 0: its own answer. */
static int diag_error;

/* Instead of the C library's. */
ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr body;
	} answer = {.head = {.nlmsg_len = sizeof(answer), .nlmsg_type = NLMSG_ERROR},
		    .body.error = -diag_error};
	const ssize_t got = syscall(SYS_recvfrom, fd, buffer, size, flags, NULL, NULL);

	if (!diag_error || got < 0)
		return got;
	assert_true(size >= sizeof(answer));
	memcpy(buffer, &answer, sizeof(answer));
	return sizeof(answer);
}

/* Connects over loopback: the client's end belongs to `uid`. */
static void connect_pair(sa_family_t family, uid_t uid, int *ret_server, int *ret_client)
{
	struct sockaddr_in6 room = {0};
	struct sockaddr *address = (struct sockaddr *)&room;
	socklen_t size = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(room);
	OWNED_FD int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address->sa_family = family;
	if (family == AF_INET)
		((struct sockaddr_in *)address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		room.sin6_addr = in6addr_loopback;
	if (bind(listener, address, size)) /* no IPv6 here */
		skip();
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, address, &size), 0);
	if (uid != geteuid())
		assert_int_equal(seteuid(uid), 0);
	*ret_client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(*ret_client, address, size), 0);
	if (uid != geteuid() || getuid() != geteuid())
		assert_int_equal(seteuid(getuid()), 0);
	*ret_server = accept(listener, NULL, NULL);
	assert_true(*ret_server >= 0);
}

static void check_family(sa_family_t family, enum peer_source source)
{
	const uid_t user = geteuid() ? geteuid() : USER;
	OWNED_FD int server = -1, client = -1;
	uid_t uid = 1;

	connect_pair(family, user, &server, &client);
	assert_int_equal(peer_uid(server, source, &uid), 0);
	assert_int_equal(uid, user);
	/* A socket that is closed belongs to nobody, which the kernel shows as root. */
	close(TAKE_FD(client));
	uid = 1;
	assert_int_equal(peer_uid(server, source, &uid), -ENOTCONN);
	assert_int_equal(uid, 1);
}

static void loopback__is_found_in_the_kernels_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		check_family(AF_INET, sources[i]);
}

static void loopback__has_two_families(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		check_family(AF_INET6, sources[i]);
}

/* A server at all addresses, asked over IPv4. */
static void loopback__is_found_through_a_socket_of_all_addresses(void **state)
{
	struct sockaddr_in6 all = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
	struct sockaddr_in four = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	OWNED_FD int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	OWNED_FD int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), server = -1;
	socklen_t size = sizeof(all);
	uid_t uid = 1;

	(void)state;
	if (listener < 0 || bind(listener, (struct sockaddr *)&all, size)) /* no IPv6 here */
		skip();
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&all, &size), 0);
	four.sin_port = all.sin6_port;
	assert_int_equal(connect(client, (struct sockaddr *)&four, sizeof(four)), 0);
	server = accept(listener, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		uid = 1;
		assert_int_equal(peer_uid(server, sources[i], &uid), 0);
		assert_int_equal(uid, geteuid());
	}
}

/* A client with a socket of IPv6, as Java's are, of a server at 127.0.0.1. */
static void loopback__is_found_for_a_client_of_mapped_addresses(void **state)
{
	struct sockaddr_in four = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
	OWNED_FD int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	OWNED_FD int client = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), server = -1;
	socklen_t size = sizeof(four);
	uid_t uid;

	(void)state;
	if (client < 0) /* no IPv6 here */
		skip();
	assert_int_equal(bind(listener, (struct sockaddr *)&four, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&four, &size), 0);
	assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr), 1);
	mapped.sin6_port = four.sin_port;
	assert_int_equal(connect(client, (struct sockaddr *)&mapped, sizeof(mapped)), 0);
	server = accept(listener, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		uid = 1;
		assert_int_equal(peer_uid(server, sources[i], &uid), 0);
		assert_int_equal(uid, geteuid());
	}
}

static void shutdown__is_as_good_as_closed(void **state)
{
	OWNED_FD int server = -1, client = -1;
	uid_t uid;

	(void)state;
	connect_pair(AF_INET, geteuid(), &server, &client);
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		assert_int_equal(peer_uid(server, sources[i], &uid), -ENOTCONN);
}

/* The errors of a kernel without the module tcp_diag, and of one without sock_diag. */
static void source__is_proc_where_the_kernel_does_not_answer(void **state)
{
	static const int errors[] = {ENOENT, EOPNOTSUPP, EPERM};
	OWNED_FD int server = -1, client = -1;
	uid_t uid = 1;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		diag_error = errors[i];
		assert_int_equal(peer_find_source(), PEER_PROC);
	}
	connect_pair(AF_INET, geteuid(), &server, &client);
	assert_int_equal(peer_uid(server, peer_find_source(), &uid), 0);
	assert_int_equal(uid, geteuid());
	diag_error = 0;
}

static void unix_socket__says_who_connected(void **state)
{
	uid_t uid = 1;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(peer_uid(pair[0], PEER_SOCK_DIAG, &uid), 0);
	assert_int_equal(uid, geteuid());
	close(pair[0]);
	close(pair[1]);
}

static void nothing__that_is_connected_is_an_error(void **state)
{
	OWNED_FD int alone = socket(AF_INET, SOCK_STREAM, 0);
	uid_t uid;

	(void)state;
	assert_int_equal(peer_uid(alone, PEER_SOCK_DIAG, &uid), -ENOTCONN);
	assert_int_equal(peer_uid(-1, PEER_PROC, &uid), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback__is_found_in_the_kernels_table),
		cmocka_unit_test(loopback__has_two_families),
		cmocka_unit_test(loopback__is_found_through_a_socket_of_all_addresses),
		cmocka_unit_test(loopback__is_found_for_a_client_of_mapped_addresses),
		cmocka_unit_test(shutdown__is_as_good_as_closed),
		cmocka_unit_test(source__is_proc_where_the_kernel_does_not_answer),
		cmocka_unit_test(unix_socket__says_who_connected),
		cmocka_unit_test(nothing__that_is_connected_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
