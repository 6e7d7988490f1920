/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/who_answers.h"
#include "live/server.h"

static char directory[] = "/tmp/live-XXXXXX", path[64];
static uint64_t now_ns = 1000;
static const struct live_choice dumps = {.verb = LIVE_DUMP};
static const struct live_choice of_root = {.verb = LIVE_DUMP, .root_only = true};
static const struct live_choice tops = {.verb = LIVE_TOP};

static int connect_to(const char *where)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", where);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Two ordinary users. */
#define ONE_UID 65534U
#define ONES_FIRST_ID 300000000U
#define OTHER_UID 65533U

static int connect_as(uid_t uid)
{
	int fd;

	assert_int_equal(seteuid(uid), 0);
	fd = connect_to(path);
	assert_int_equal(seteuid(0), 0);
	return fd;
}

static void need_root(void)
{
	if (geteuid()) {
		print_message("skipped: only root can become somebody else\n");
		skip();
	}
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* All that comes until the end, the server serving meanwhile. */
static size_t listen_to(struct live_server *server, int fd, char *text, size_t size)
{
	size_t got = 0;
	ssize_t part;

	do {
		if (server)
			live_server_serve(server, now_ns);
		part = recv(fd, text + got, size - 1 - got, MSG_DONTWAIT);
		if (part > 0)
			got += (size_t)part;
	} while (part > 0 || (part < 0 && errno == EAGAIN && server));
	text[got] = '\0';
	close(fd);
	return got;
}

static struct live_server *opened(void)
{
	struct live_server *server;

	assert_int_equal(live_server_open(path, &server), 0);
	return server;
}

static void server__request_and_reply(void **state)
{
	struct live_server *server = opened();
	struct pollfd poller = {.fd = live_server_fd(server), .events = POLLIN};
	int fd = connect_to(path);
	struct live_job job;
	char text[256];

	(void)state;
	assert_int_equal(poll(&poller, 1, 0), 1);
	live_server_serve(server, now_ns);
	assert_false(live_server_next(server, dumps, &job));
	say(fd, "pyprofd 1 dump 17\n");
	live_server_serve(server, now_ns);
	assert_true(live_server_next(server, dumps, &job));
	assert_int_equal(job.uid, geteuid());
	assert_int_equal(job.request.pid[0], 17);
	assert_true(live_server_waits(server, job.number));
	assert_false(live_server_next(server, dumps, &(struct live_job){}));
	/* A wait for the work that goes on is no reason to wake up. */
	assert_int_equal(poll(&poller, 1, 0), 0);
	live_server_reply(server, job.number, strdup("end\t0\t0\t0\t0\n"), 12, now_ns);
	assert_int_equal(listen_to(server, fd, text, sizeof(text)), 12);
	assert_string_equal(text, "end\t0\t0\t0\t0\n");
	assert_false(live_server_waits(server, job.number));
	live_server_close(server);
	assert_int_equal(access(path, F_OK), -1);
}

/* A part in two: what did not fit waits, and the next part is not for who has not read the last. */
static void server__parts_follow_each_other(void **state)
{
	struct live_server *server = opened();
	int fd = connect_to(path);
	struct live_job job;
	char text[64];

	(void)state;
	live_server_serve(server, now_ns);
	say(fd, "pyprofd 1 top all\n");
	live_server_serve(server, now_ns);
	assert_false(live_server_next(server, dumps, &job));
	assert_true(live_server_next(server, tops, &job));
	live_server_push(server, job.number, strdup("one"), 3, now_ns);
	live_server_push(server, job.number, strdup("two"), 3, now_ns);
	assert_int_equal(recv(fd, text, sizeof(text), 0), 6);
	assert_memory_equal(text, "onetwo", 6);
	/* It may wait as long as it likes for the next. */
	live_server_serve(server, now_ns + 100 * LIVE_IDLE_NS);
	assert_true(live_server_waits(server, job.number));
	live_server_push(server, job.number, calloc(1, 16U << 20), 16U << 20, now_ns);
	live_server_push(server, job.number, strdup("missed"), 6, now_ns);
	assert_true(live_server_waits(server, job.number));
	live_server_refuse(server, job.number, -EIO, "not now", now_ns);
	live_server_serve(server, now_ns + LIVE_IDLE_NS - 1);
	assert_true(live_server_waits(server, job.number));
	live_server_serve(server, now_ns + LIVE_IDLE_NS);
	assert_false(live_server_waits(server, job.number));
	live_server_push(server, job.number, strdup("gone"), 4, now_ns);
	close(fd);
	live_server_close(server);
}

/* The one client that is given: no socket anywhere. */
static void server__a_client_by_its_fd(void **state)
{
	struct live_server *server;
	struct live_job job;
	char name[32];
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	snprintf(name, sizeof(name), "fd:%d", pair[1]);
	assert_int_equal(live_server_open(name, &server), 0);
	live_server_serve(server, now_ns + 1000 * LIVE_REQUEST_NS);
	say(pair[0], "pyprofd 1 dump all\n");
	live_server_serve(server, now_ns);
	assert_true(live_server_next(server, dumps, &job));
	assert_int_equal(job.uid, geteuid());
	close(pair[0]);
	live_server_serve(server, now_ns);
	assert_false(live_server_waits(server, job.number));
	live_server_close(server);
	assert_int_equal(live_server_open("fd:x", &server), -EINVAL);
	assert_int_equal(live_server_open("fd:999", &server), -EBADF);
}

static void server__bad_requests_are_told(void **state)
{
	struct live_server *server = opened();
	char text[256], *line = malloc(2 * LIVE_REQUEST_BYTES);
	int fd = connect_to(path);

	(void)state;
	say(fd, "GET / HTTP/1.1\r\n");
	listen_to(server, fd, text, sizeof(text));
	assert_non_null(strstr(text, "error\t71\t"));
	fd = connect_to(path);
	memset(line, 'x', 2 * LIVE_REQUEST_BYTES - 1);
	line[2 * LIVE_REQUEST_BYTES - 1] = '\0';
	say(fd, line);
	listen_to(server, fd, text, sizeof(text));
	assert_true(!text[0] || strstr(text, "error\t7\t")); /* a reset may overtake it */
	free(line);
	live_server_close(server);
}

static void server__clients_are_bounded(void **state)
{
	struct live_server *server = opened();
	unsigned int most = geteuid() ? LIVE_CLIENTS_OF_UID_MAX : LIVE_CLIENTS_MAX;
	struct live_server_facts facts;
	int fd[LIVE_CLIENTS_MAX], more;
	char text[256];

	(void)state;
	for (unsigned int i = 0; i < most; i++) {
		fd[i] = connect_to(path);
		live_server_serve(server, now_ns);
	}
	more = connect_to(path);
	listen_to(server, more, text, sizeof(text));
	assert_non_null(strstr(text, "too many"));
	live_server_facts(server, &facts);
	assert_int_equal(facts.turned_away, 1);
	assert_int_equal(facts.turned_uid, geteuid());
	close(fd[0]);
	live_server_serve(server, now_ns); /* sees the end */
	more = connect_to(path);
	live_server_serve(server, now_ns);
	say(more, "pyprofd 1 dump all\n");
	live_server_serve(server, now_ns);
	assert_true(live_server_next(server, dumps, &(struct live_job){}));
	close(more);
	for (unsigned int i = 1; i < most; i++)
		close(fd[i]);
	live_server_close(server);
}

/* Instead of base/who_answers.c: ids of one user. */
uint32_t who_answers(uint32_t uid)
{
	return uid > ONES_FIRST_ID && uid <= ONES_FIRST_ID + LIVE_CLIENTS_OF_UID_MAX ? ONE_UID
										     : uid;
}

static void server__ids_that_a_user_owns_have_that_users_places(void **state)
{
	struct live_server *server;
	int fd[LIVE_CLIENTS_OF_UID_MAX];
	struct live_job job;
	char text[256];

	(void)state;
	need_root();
	server = opened();
	for (unsigned int i = 0; i < LIVE_CLIENTS_OF_UID_MAX; i++) {
		fd[i] = connect_as(ONES_FIRST_ID + 1 + i);
		live_server_serve(server, now_ns);
		say(fd[i], "pyprofd 1 dump all\n");
		live_server_serve(server, now_ns);
		assert_true(live_server_next(server, dumps, &job));
		/* What they may see is their own. */
		assert_int_equal(job.uid, ONES_FIRST_ID + 1 + i);
	}
	listen_to(server, connect_as(ONE_UID), text, sizeof(text));
	assert_non_null(strstr(text, "too many"));
	for (unsigned int i = 0; i < LIVE_CLIENTS_OF_UID_MAX; i++)
		close(fd[i]);
	live_server_close(server);
}

static void server__clients_of_an_ordinary_user_are_bounded(void **state)
{
	int fd[LIVE_CLIENTS_OF_UID_MAX], other, root;
	struct live_server *server;
	char text[256];

	(void)state;
	need_root();
	server = opened();
	for (unsigned int i = 0; i < LIVE_CLIENTS_OF_UID_MAX; i++) {
		fd[i] = connect_as(ONE_UID);
		live_server_serve(server, now_ns);
		say(fd[i], "pyprofd 1 dump all\n");
		live_server_serve(server, now_ns);
		assert_true(live_server_next(server, dumps, &(struct live_job){}));
	}
	listen_to(server, connect_as(ONE_UID), text, sizeof(text));
	assert_non_null(strstr(text, "too many"));
	/* Which keeps nobody else out. */
	other = connect_as(OTHER_UID);
	root = connect_as(0);
	live_server_serve(server, now_ns);
	say(other, "pyprofd 1 dump 7\n");
	say(root, "pyprofd 1 dump 8\n");
	live_server_serve(server, now_ns);
	assert_true(live_server_next(server, dumps, &(struct live_job){}));
	assert_true(live_server_next(server, dumps, &(struct live_job){}));
	/* One that leaves makes room. */
	close(fd[0]);
	live_server_serve(server, now_ns);
	fd[0] = connect_as(ONE_UID);
	live_server_serve(server, now_ns);
	say(fd[0], "pyprofd 1 dump all\n");
	live_server_serve(server, now_ns);
	assert_true(live_server_next(server, dumps, &(struct live_job){}));
	for (unsigned int i = 0; i < LIVE_CLIENTS_OF_UID_MAX; i++)
		close(fd[i]);
	close(other);
	close(root);
	live_server_close(server);
}

/* Connects as a user who watches, and sends no byte more. */
static int watch_as(struct live_server *server, uid_t uid)
{
	int fd = connect_as(uid);

	live_server_serve(server, now_ns);
	say(fd, "pyprofd 1 top all\n");
	live_server_serve(server, now_ns);
	return fd;
}

/* Returns whether a request of that user's reaches whoever works on requests. */
static bool is_served(struct live_server *server, const char *where, uid_t uid, int *ret_fd)
{
	struct live_job job;

	assert_int_equal(seteuid(uid), 0);
	*ret_fd = connect_to(where);
	assert_int_equal(seteuid(0), 0);
	live_server_serve(server, now_ns);
	(void)!send(*ret_fd, "pyprofd 1 dump 7\n", 17, MSG_NOSIGNAL);
	live_server_serve(server, now_ns);
	return live_server_next(server, dumps, &job) && job.uid == uid;
}

static void server__users_who_take_all_places_lock_nobody_out(void **state)
{
	enum { USERS = LIVE_CLIENTS_OF_USERS_MAX / LIVE_CLIENTS_OF_UID_MAX };
	int fd[LIVE_CLIENTS_OF_USERS_MAX], other[LIVE_CLIENTS_OF_UID_MAX], root[2];
	struct live_server_facts facts;
	struct live_server *server;
	struct live_job job;
	char of_roots[80], text[256];

	(void)state;
	need_root();
	server = opened();
	for (unsigned int i = 0; i < LIVE_CLIENTS_OF_USERS_MAX; i++) {
		fd[i] = watch_as(server, 60000 + i % USERS);
		assert_true(live_server_next(server, tops, &job));
	}
	snprintf(of_roots, sizeof(of_roots), "%s" LIVE_ROOT_SUFFIX, path);
	assert_true(is_served(server, path, 0, &root[0]));
	assert_true(is_served(server, of_roots, 0, &root[1]));
	live_server_facts(server, &facts);
	assert_int_equal(facts.replaced, 0);
	/* Another user takes places of who has most, until nobody has more than one more. */
	for (unsigned int i = 0; i < 3; i++)
		assert_true(is_served(server, path, ONE_UID, &other[i]));
	live_server_facts(server, &facts);
	assert_int_equal(facts.replaced, 3);
	assert_int_equal(facts.turned_away, 0);
	assert_false(is_served(server, path, ONE_UID, &other[3]));
	live_server_facts(server, &facts);
	assert_int_equal(facts.turned_away, 1);
	/* The one that lost its place came last of its user's, and was told. */
	listen_to(NULL, fd[LIVE_CLIENTS_OF_USERS_MAX - 1], text, sizeof(text));
	assert_non_null(strstr(text, "too many"));
	for (unsigned int i = 0; i < LIVE_CLIENTS_OF_USERS_MAX - 1; i++)
		close(fd[i]);
	for (unsigned int i = 0; i < ARRAY_SIZE(other); i++)
		close(other[i]);
	close(root[0]);
	close(root[1]);
	live_server_close(server);
	assert_int_equal(access(of_roots, F_OK), -1);
}

static void server__the_socket_of_root_is_roots(void **state)
{
	struct live_server *server;
	struct stat status;
	char of_roots[80];

	(void)state;
	server = opened();
	snprintf(of_roots, sizeof(of_roots), "%s" LIVE_ROOT_SUFFIX, path);
	assert_int_equal(stat(of_roots, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	live_server_close(server);
	/* What is no socket stays, and the other path is served nevertheless. */
	close(open(of_roots, O_CREAT | O_WRONLY, 0600));
	server = opened();
	live_server_close(server);
	assert_int_equal(unlink(of_roots), 0);
}

/* Returns how many of the connections have been accepted: those were closed or told something. */
static unsigned int accepted(const int *fd, unsigned int count)
{
	unsigned int done = 0;
	char byte;

	for (unsigned int i = 0; i < count; i++)
		done += recv(fd[i], &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0;
	return done;
}

static void server__connections_above_the_budget_wait_and_roots_do_not(void **state)
{
	enum {
		STEP = LIVE_CONNECTS_PER_S / (NS_PER_SEC / LIVE_REST_NS),
		AT_ONCE = LIVE_CONNECTS_AT_ONCE - LIVE_CLIENTS_OF_UID_MAX,
		MANY = AT_ONCE + 32, /* the queue of connections is longer */
	};
	const uint64_t later_ns = now_ns + NS_PER_SEC;
	struct live_server *server;
	struct pollfd poller;
	int fd[MANY], full[LIVE_CLIENTS_OF_UID_MAX], root;
	struct live_server_facts facts;
	char of_roots[80];

	(void)state;
	need_root();
	server = opened();
	for (unsigned int i = 0; i < LIVE_CLIENTS_OF_UID_MAX; i++)
		full[i] = watch_as(server, ONE_UID);
	for (unsigned int i = 0; i < MANY; i++) {
		fd[i] = connect_as(ONE_UID);
		live_server_serve(server, now_ns);
	}
	assert_int_equal(accepted(fd, MANY), AT_ONCE);
	live_server_facts(server, &facts);
	assert_int_equal(facts.rests, 1);
	/* They do not wake us either, until the timer does. */
	poller = (struct pollfd){.fd = live_server_fd(server), .events = POLLIN};
	assert_int_equal(poll(&poller, 1, 10000), 1);
	live_server_serve(server, now_ns);
	assert_int_equal(accepted(fd, MANY), AT_ONCE);
	/* Root does not wait. */
	snprintf(of_roots, sizeof(of_roots), "%s" LIVE_ROOT_SUFFIX, path);
	assert_true(is_served(server, of_roots, 0, &root));
	live_server_serve(server, now_ns + LIVE_REST_NS);
	assert_int_equal(accepted(fd, MANY), AT_ONCE + STEP);
	live_server_serve(server, later_ns);
	assert_int_equal(accepted(fd, MANY), MANY);
	live_server_facts(server, &facts);
	assert_int_equal(facts.rests, 1);
	for (unsigned int i = 0; i < MANY; i++)
		close(fd[i]);
	for (unsigned int i = 0; i < LIVE_CLIENTS_OF_UID_MAX; i++)
		close(full[i]);
	close(root);
	live_server_close(server);
}

static void server__a_request_in_pieces_is_looked_at_now_and_then(void **state)
{
	struct live_server *server = opened();
	struct pollfd poller = {.fd = live_server_fd(server), .events = POLLIN};
	int fd = connect_to(path);
	struct live_job job;

	(void)state;
	live_server_serve(server, now_ns);
	say(fd, "pyprofd 1 du");
	live_server_serve(server, now_ns);
	say(fd, "mp 17\n");
	live_server_serve(server, now_ns + LIVE_REST_NS - 1);
	assert_false(live_server_next(server, dumps, &job));
	assert_int_equal(poll(&poller, 1, 10000), 1);
	live_server_serve(server, now_ns + LIVE_REST_NS);
	assert_true(live_server_next(server, dumps, &job));
	assert_int_equal(job.request.pid[0], 17);
	close(fd);
	live_server_close(server);
}

/* The fd that the server accepts next: the least free one. */
static int next_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

/* A copy, as a child has between fork() and exec(), keeps the connection of a client that is
 * gone. */
static void server__a_client_in_the_place_of_one_whose_fd_has_a_copy_is_heard(void **state)
{
	struct live_server *server = opened();
	int first = connect_to(path), second, accepted = next_fd(), copy;
	struct live_job job;

	(void)state;
	live_server_serve(server, now_ns);
	copy = dup(accepted);
	assert_true(copy >= 0);
	say(first, "pyprofd"); /* from now on only its hang-up is waited for */
	live_server_serve(server, now_ns);
	close(first);
	live_server_serve(server, now_ns); /* drops it */
	assert_int_equal(fcntl(accepted, F_GETFD), -1);
	second = connect_to(path);
	live_server_serve(server, now_ns);
	say(second, "pyprofd 1 dump 17\n");
	live_server_serve(server, now_ns);
	assert_true(live_server_next(server, dumps, &job));
	close(second);
	close(copy);
	live_server_close(server);
}

static void server__request_of_an_ordinary_user_is_not_roots(void **state)
{
	struct live_server *server;
	struct live_job job;
	int one, root;

	(void)state;
	need_root();
	server = opened();
	one = connect_as(ONE_UID);
	live_server_serve(server, now_ns);
	say(one, "pyprofd 1 dump 1\n");
	live_server_serve(server, now_ns);
	assert_false(live_server_next(server, of_root, &job));
	root = connect_as(0);
	live_server_serve(server, now_ns);
	say(root, "pyprofd 1 dump 2\n");
	live_server_serve(server, now_ns);
	assert_true(live_server_next(server, of_root, &job));
	assert_int_equal(job.uid, 0);
	assert_int_equal(job.request.pid[0], 2);
	assert_true(live_server_next(server, dumps, &job));
	assert_int_equal(job.uid, ONE_UID);
	assert_int_equal(job.request.pid[0], 1);
	close(one);
	close(root);
	live_server_close(server);
}

static void server__slow_clients_are_closed(void **state)
{
	struct live_server *server = opened();
	size_t size = 8 << 20;
	int fd = connect_to(path);
	struct live_job job;
	char text[256];

	(void)state;
	live_server_serve(server, now_ns);
	say(fd, "pyprofd 1");
	now_ns += LIVE_REQUEST_NS;
	live_server_serve(server, now_ns);
	assert_int_equal(listen_to(NULL, fd, text, sizeof(text)), 0);
	/* One that does not read. */
	fd = connect_to(path);
	live_server_serve(server, now_ns);
	say(fd, "pyprofd 1 dump all\n");
	live_server_serve(server, now_ns);
	assert_true(live_server_next(server, dumps, &job));
	live_server_reply(server, job.number, calloc(1, size), size, now_ns);
	live_server_serve(server, now_ns + LIVE_IDLE_NS - 1);
	assert_int_equal(recv(fd, text, 1, MSG_DONTWAIT), 1);
	live_server_serve(server, now_ns + 3 * LIVE_IDLE_NS);
	while (recv(fd, text, sizeof(text), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(recv(fd, text, 1, MSG_DONTWAIT), 0);
	close(fd);
	live_server_close(server);
}

static void server__first_come_first_served_and_root_alone(void **state)
{
	struct live_server *server = opened();
	int first = connect_to(path), second;
	struct live_job job;

	(void)state;
	live_server_serve(server, now_ns);
	second = connect_to(path);
	live_server_serve(server, now_ns);
	say(second, "pyprofd 1 dump 2\n");
	say(first, "pyprofd 1 dump 1\n");
	live_server_serve(server, now_ns);
	if (geteuid())
		assert_false(live_server_next(server, of_root, &job));
	assert_true(live_server_next(server, geteuid() ? dumps : of_root, &job));
	assert_int_equal(job.request.pid[0], 1);
	/* It goes while its request is worked at. */
	close(first);
	live_server_serve(server, now_ns);
	assert_false(live_server_waits(server, job.number));
	live_server_reply(server, job.number, strdup("x"), 1, now_ns);
	assert_true(live_server_next(server, dumps, &job));
	assert_int_equal(job.request.pid[0], 2);
	close(second);
	live_server_close(server);
}

static void server__path(void **state)
{
	struct live_server *server = opened(), *other;
	struct stat status;
	char deep[128];
	int fd;

	(void)state;
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0666);
	assert_int_equal(live_server_open(path, &other), -EADDRINUSE);
	/* Died without a word: the socket is there, nobody behind it. */
	assert_int_equal(rename(path, "/tmp/live-away"), 0);
	live_server_close(server);
	assert_int_equal(rename("/tmp/live-away", path), 0);
	server = opened();
	live_server_close(server);
	/* No socket: not ours to take away. */
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_int_equal(live_server_open(path, &other), -EEXIST);
	assert_int_equal(unlink(path), 0);
	snprintf(deep, sizeof(deep), "%s/run/live.sock", directory);
	assert_int_equal(live_server_open(deep, &server), 0);
	live_server_close(server);
	snprintf(deep, sizeof(deep), "%s/run", directory);
	assert_int_equal(rmdir(deep), 0);
	memset(deep, 'x', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(live_server_open(deep, &server), -ENAMETOOLONG);
}

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory) || chmod(directory, 0755))
		return 1;
	snprintf(path, sizeof(path), "%s/sock", directory);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

static const struct live_choice stats = {.verb = LIVE_STATS, .root_only = true};

/* A request of this user; returns what is answered, or "" and the job. */
static const char *ask_as(struct live_server *server, uid_t uid, const char *line,
			  struct live_choice choice, struct live_job *ret_job)
{
	static char text[256];
	int fd = connect_as(uid);

	say(fd, line);
	live_server_serve(server, now_ns);
	live_server_serve(server, now_ns);
	text[0] = '\0';
	if (!live_server_next(server, choice, ret_job))
		(void)listen_to(server, fd, text, sizeof(text));
	else
		close(fd);
	return text;
}

static void server__stats_and_other_users_are_for_who_sees_everything(void **state)
{
	struct live_server *server = opened();
	struct live_job job;

	(void)state;
	need_root();
	assert_string_equal(ask_as(server, 0, "pyprofd 1 stats all\n", stats, &job), "");
	assert_int_equal(job.uid, 0);
	assert_string_equal(ask_as(server, 0, "pyprofd 1 top all uid=65533\n", tops, &job), "");
	assert_int_equal(job.uid, OTHER_UID);
	assert_non_null(
		strstr(ask_as(server, ONE_UID, "pyprofd 1 stats all\n", stats, &job), "only root"));
	assert_non_null(strstr(ask_as(server, ONE_UID, "pyprofd 1 top all uid=0\n", tops, &job),
			       "only root"));
	/* Nor for himself: nobody learns whether he is trusted. */
	assert_non_null(strstr(ask_as(server, ONE_UID, "pyprofd 1 top all uid=65534\n", tops, &job),
			       "only root"));
	live_server_close(server);
}

static void server__a_trusted_user_is_as_root(void **state)
{
	struct live_server *server = opened();
	struct live_job job;
	int fd[LIVE_CLIENTS_OF_UID_MAX + 1];

	(void)state;
	need_root();
	live_server_trust(server, ONE_UID);
	assert_string_equal(ask_as(server, ONE_UID, "pyprofd 1 stats all\n", stats, &job), "");
	assert_int_equal(job.uid, 0);
	assert_string_equal(ask_as(server, ONE_UID, "pyprofd 1 top all\n", tops, &job), "");
	assert_int_equal(job.uid, 0);
	assert_string_equal(ask_as(server, ONE_UID, "pyprofd 1 top all uid=65533\n", tops, &job),
			    "");
	assert_int_equal(job.uid, OTHER_UID);
	assert_non_null(
		strstr(ask_as(server, OTHER_UID, "pyprofd 1 stats all\n", stats, &job), "only"));
	/* It has root's places, too. */
	live_server_serve(server, now_ns);
	for (unsigned int i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = watch_as(server, ONE_UID);
		assert_true(fd[i] >= 0);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	live_server_close(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server__request_and_reply),
		cmocka_unit_test(server__parts_follow_each_other),
		cmocka_unit_test(server__a_client_by_its_fd),
		cmocka_unit_test(server__bad_requests_are_told),
		cmocka_unit_test(server__clients_are_bounded),
		cmocka_unit_test(server__clients_of_an_ordinary_user_are_bounded),
		cmocka_unit_test(server__ids_that_a_user_owns_have_that_users_places),
		cmocka_unit_test(server__users_who_take_all_places_lock_nobody_out),
		cmocka_unit_test(server__the_socket_of_root_is_roots),
		cmocka_unit_test(server__connections_above_the_budget_wait_and_roots_do_not),
		cmocka_unit_test(server__a_request_in_pieces_is_looked_at_now_and_then),
		cmocka_unit_test(server__a_client_in_the_place_of_one_whose_fd_has_a_copy_is_heard),
		cmocka_unit_test(server__request_of_an_ordinary_user_is_not_roots),
		cmocka_unit_test(server__slow_clients_are_closed),
		cmocka_unit_test(server__first_come_first_served_and_root_alone),
		cmocka_unit_test(server__path),
		cmocka_unit_test(server__stats_and_other_users_are_for_who_sees_everything),
		cmocka_unit_test(server__a_trusted_user_is_as_root),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
