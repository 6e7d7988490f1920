/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/who_answers.h"
#include "live/listener.h"
#include "live/record.h"

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == LIVE_PATH_BYTES, "unix(7)");
/* What an epoll event is about, beside the clients' indices. */
enum { SOURCE_ALL = LIVE_CLIENTS_MAX, SOURCE_ROOT, SOURCE_TIMER, SOURCE_COUNT };
#define STATUS_MAX_BYTES 65536U
#define CONNECT_NS (NS_PER_SEC / LIVE_CONNECTS_PER_S)

enum client_state { CLIENT_FREE, CLIENT_ASKS, CLIENT_WAITS, CLIENT_WORKS, CLIENT_READS };

struct client {
	enum client_state state;
	int fd;
	uint64_t number;
	uid_t uid, who;	      /* its user, and who answers for that in places */
	uint64_t deadline_ns; /* UINT64_MAX: none */
	char line[LIVE_REQUEST_BYTES];
	size_t line_size;
	uint64_t rests_until_ns; /* until then more of the request is not read; 0: it is */
	struct live_request request;
	char *reply; /* owned */
	size_t reply_size, sent;
	bool goes_on; /* another part of the reply follows later */
};

struct live_server {
	int epoll, timer;
	struct live_listener all, root; /* root: root alone may connect */
	/* The budget of `all`: when it would be full again, had nobody connected since. */
	uint64_t full_at_ns;
	bool rests; /* nobody is accepted there until the budget has something again */
	bool timer_is_set;
	uint64_t last_number;
	uid_t trusted; /* sees everything, as root does; 0: nobody else does */
	struct live_server_facts facts;
	struct client client[LIVE_CLIENTS_MAX];
};

/* ---- who may see what ---- */

/* Returns whether all of "Uid:\treal\teffective\tsaved\tfs" are this uid. */
static bool has_uid_alone(const char *status, uid_t uid)
{
	const char *line = strstr(status, "\nUid:\t");
	unsigned int real, effective, saved, fs;

	return line &&
	       sscanf(line, "\nUid:\t%u\t%u\t%u\t%u", &real, &effective, &saved, &fs) == 4 &&
	       real == uid && effective == uid && saved == uid && fs == uid;
}

static bool has_no_capabilities(const char *status)
{
	const char *line = strstr(status, "\nCapPrm:\t");
	uint64_t permitted;

	return line && sscanf(line, "\nCapPrm:\t%" SCNx64, &permitted) == 1 && !permitted;
}

bool live_may_see(uid_t uid, uint32_t tgid)
{
	OWNED_MEM char *status = NULL;
	char path[64];
	struct stat file;
	size_t size;
	pid_t tid;

	if (!uid)
		return true;
	if (process_live_task((pid_t)tgid, &tid))
		return false;
	/* When a process is not dumpable, all files in its directory belong to root
	 * (fs/proc/base.c, task_dump_owner()). */
	snprintf(path, sizeof(path), "/proc/%d/environ", tid);
	if (stat(path, &file) || file.st_uid != uid)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	return !read_file(path, STATUS_MAX_BYTES, &status, &size) && has_uid_alone(status, uid) &&
	       has_no_capabilities(status);
}

/* ---- who asks ---- */

void live_server_trust(struct live_server *server, uid_t uid)
{
	server->trusted = uid;
}

static bool sees_all(const struct live_server *server, uid_t uid)
{
	return !uid || uid == server->trusted;
}

/* Returns the user in place of whom the client sees; root: all processes. */
static uid_t seen_by(const struct live_server *server, const struct client *client)
{
	if (!sees_all(server, client->uid))
		return client->uid;
	return client->request.has_uid ? client->request.uid : 0;
}

/* ---- clients ---- */

/* A child that another thread has just forked may have a copy of the fd until it calls exec: then
 * closing does not take it out of the epoll set, and its hang-up would be taken for that of the
 * next client in this place (epoll(7), questions 6). */
static void drop(const struct live_server *server, struct client *client)
{
	(void)epoll_ctl(server->epoll, EPOLL_CTL_DEL, client->fd, NULL);
	close(client->fd);
	free(client->reply);
	*client = (struct client){.state = CLIENT_FREE, .fd = -1};
}

/* Sets which events of the client we wait for; a hang-up is always reported. */
static void watch(const struct live_server *server, const struct client *client, uint32_t events)
{
	struct epoll_event event = {.events = events,
				    .data.u32 = (uint32_t)(client - server->client)};

	(void)epoll_ctl(server->epoll, EPOLL_CTL_MOD, client->fd, &event);
}

static void wait_for_part(const struct live_server *server, struct client *client)
{
	free(client->reply);
	client->reply = NULL;
	client->state = CLIENT_WORKS;
	client->deadline_ns = UINT64_MAX;
	watch(server, client, 0);
}

static void send_reply(const struct live_server *server, struct client *client, uint64_t now_ns)
{
	while (client->sent < client->reply_size) {
		ssize_t sent = send(client->fd, client->reply + client->sent,
				    client->reply_size - client->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN) {
			watch(server, client, EPOLLOUT);
			return;
		}
		if (sent <= 0) {
			drop(server, client);
			return;
		}
		client->sent += (size_t)sent;
		client->deadline_ns = now_ns + LIVE_IDLE_NS;
	}
	if (client->goes_on)
		wait_for_part(server, client);
	else
		drop(server, client);
}

static void reply(struct live_server *server, struct client *client, char *text, size_t size,
		  uint64_t now_ns)
{
	client->reply = text;
	client->reply_size = size;
	client->sent = 0;
	client->state = CLIENT_READS;
	client->deadline_ns = now_ns + LIVE_IDLE_NS;
	send_reply(server, client, now_ns);
}

static void refuse(struct live_server *server, struct client *client, int err, const char *why,
		   uint64_t now_ns)
{
	const struct live_record record = {
		.kind = LIVE_ERROR, .number = {(uint64_t)(err < 0 ? -err : err)}, .text = {why}};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out) {
		drop(server, client);
		return;
	}
	live_record_write(out, &record);
	if (close_memory_file(out, &text)) {
		free(text);
		drop(server, client);
		return;
	}
	reply(server, client, text, size, now_ns);
}

static const char *why_not(int err)
{
	switch (err) {
	case -EPROTO:
		return "no request that is known here: this pyprofd speaks version 1";
	case -E2BIG:
		return "the request is too long, or names too many processes";
	case -EPERM:
		return "only root sees this";
	default:
		return "the request is not understood";
	}
}

static void take_line(struct live_server *server, struct client *client, size_t size,
		      uint64_t now_ns)
{
	const struct live_request *request = &client->request;
	int err = live_request_parse(client->line, size, &client->request);

	if (!err && (request->has_uid || request->verb == LIVE_STATS) &&
	    !sees_all(server, client->uid))
		err = -EPERM;
	if (err) {
		refuse(server, client, err, why_not(err), now_ns);
		return;
	}
	client->state = CLIENT_WAITS;
	client->deadline_ns = now_ns + LIVE_WAIT_NS;
	watch(server, client, 0);
}

/* Wakes us after the rest that a client or the listener takes. */
static void set_timer(struct live_server *server)
{
	const struct itimerspec after = {.it_value.tv_nsec = LIVE_REST_NS};

	if (!server->timer_is_set && !timerfd_settime(server->timer, 0, &after, NULL))
		server->timer_is_set = true;
}

/* A request that comes byte by byte does not wake us for each. */
static void rest(struct live_server *server, struct client *client, uint64_t now_ns)
{
	client->rests_until_ns = now_ns + LIVE_REST_NS;
	watch(server, client, 0);
	set_timer(server);
}

static void read_request(struct live_server *server, struct client *client, uint64_t now_ns)
{
	size_t room = sizeof(client->line) - client->line_size;
	ssize_t got = recv(client->fd, client->line + client->line_size, room, MSG_DONTWAIT);
	char *end;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		drop(server, client);
		return;
	}
	client->line_size += (size_t)got;
	end = memchr(client->line, '\n', client->line_size);
	if (end)
		take_line(server, client, (size_t)(end - client->line), now_ns);
	else if (client->line_size == sizeof(client->line))
		refuse(server, client, -E2BIG, why_not(-E2BIG), now_ns);
	else
		rest(server, client, now_ns);
}

/* ---- new clients ---- */

static const char too_many[] = "error\t11\tthere are too many clients: try again\n";

static void turn_away(int fd)
{
	(void)!send(fd, too_many, sizeof(too_many) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

struct census {
	struct client *room;   /* a free one */
	unsigned int own;      /* of who connects */
	unsigned int of_users; /* of all but root */
	/* The newest client of the user who has most of them, and how many that user has. */
	struct client *last_of_most;
	unsigned int most;
};

static unsigned int count_of(const struct live_server *server, uid_t who)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < LIVE_CLIENTS_MAX; i++)
		count += server->client[i].state != CLIENT_FREE && server->client[i].who == who;
	return count;
}

static struct census take_census(struct live_server *server, uid_t who)
{
	struct census census = {.own = count_of(server, who)};

	for (unsigned int i = 0; i < LIVE_CLIENTS_MAX; i++) {
		struct client *client = &server->client[i];
		unsigned int same;

		if (client->state == CLIENT_FREE) {
			census.room = client;
			continue;
		}
		if (sees_all(server, client->uid))
			continue;
		census.of_users++;
		same = count_of(server, client->who);
		if (same > census.most ||
		    (same == census.most && client->number > census.last_of_most->number)) {
			census.most = same;
			census.last_of_most = client;
		}
	}
	return census;
}

/* Finds a place for a client.  Root's places are root's.  When the others have no more, a user who
 * has fewer clients than another, even with this one, takes that one's last place. */
static struct client *find_room(struct live_server *server, uid_t uid)
{
	struct census census = take_census(server, who_answers(uid));

	if (sees_all(server, uid))
		return census.room;
	if (census.own >= LIVE_CLIENTS_OF_UID_MAX)
		return NULL;
	if (census.room && census.of_users < LIVE_CLIENTS_OF_USERS_MAX)
		return census.room;
	if (census.most < census.own + 2)
		return NULL;
	if (census.last_of_most->state != CLIENT_READS) /* not in the middle of a reply */
		turn_away(census.last_of_most->fd);
	server->facts.replaced++;
	drop(server, census.last_of_most);
	return census.last_of_most;
}

/* Adds a client, or closes its fd.  Returns 0; -EBUSY; -errno. */
static int take_client(struct live_server *server, int connected, uint64_t deadline_ns)
{
	OWNED_FD int fd = connected;
	struct ucred who;
	socklen_t size = sizeof(who);
	struct client *client;
	struct epoll_event event = {.events = EPOLLIN};

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size))
		return -errno;
	if (size != sizeof(who))
		return -EPROTO;
	client = find_room(server, who.uid);
	if (!client) {
		turn_away(fd);
		server->facts.turned_away++;
		server->facts.turned_uid = who_answers(who.uid);
		return -EBUSY;
	}
	event.data.u32 = (uint32_t)(client - server->client);
	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	client->state = CLIENT_ASKS;
	client->number = ++server->last_number;
	client->uid = who.uid;
	client->who = who_answers(who.uid);
	client->fd = TAKE_FD(fd);
	client->deadline_ns = deadline_ns;
	return 0;
}

/* Accepts a client.  Returns whether there was one. */
static bool accept_one(struct live_server *server, const struct live_listener *listener,
		       uint64_t now_ns)
{
	int fd = listener->fd < 0 ? -1
				  : accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return false;
	(void)take_client(server, fd, now_ns + LIVE_REQUEST_NS);
	return true;
}

/* Listens for everybody, or stops to. */
static void listen_again(struct live_server *server, bool again)
{
	struct epoll_event event = {.events = again ? EPOLLIN : 0, .data.u32 = SOURCE_ALL};

	if (server->rests != again || server->all.fd < 0)
		return;
	(void)epoll_ctl(server->epoll, EPOLL_CTL_MOD, server->all.fd, &event);
	server->rests = !again;
}

/* Takes one connection's worth from the budget.  Returns false when it is used up. */
static bool may_accept(struct live_server *server, uint64_t now_ns)
{
	if (server->full_at_ns < now_ns)
		server->full_at_ns = now_ns;
	if (server->full_at_ns + CONNECT_NS > now_ns + LIVE_CONNECTS_AT_ONCE * CONNECT_NS)
		return false;
	server->full_at_ns += CONNECT_NS;
	return true;
}

/* Everybody may connect, so that a loop of connect() must not cost us more than a small share of a
 * CPU: those above the budget wait in the kernel.  Root does not wait with them. */
static void accept_all(struct live_server *server, uint64_t now_ns)
{
	bool more = true, has_budget = true;

	for (unsigned int i = 0; i < LIVE_CLIENTS_MAX; i++)
		if (!accept_one(server, &server->root, now_ns))
			break;
	while (more && (has_budget = may_accept(server, now_ns)))
		more = accept_one(server, &server->all, now_ns);
	if (has_budget) {
		server->full_at_ns -= CONNECT_NS; /* nobody came for the last one */
		listen_again(server, true);
		return;
	}
	server->facts.rests += !server->rests;
	listen_again(server, false);
	set_timer(server);
}

static void serve_client(struct live_server *server, struct client *client, uint32_t events,
			 uint64_t now_ns)
{
	if (client->state == CLIENT_ASKS && events & EPOLLIN)
		read_request(server, client, now_ns);
	else if (client->state == CLIENT_READS && events & EPOLLOUT)
		send_reply(server, client, now_ns);
	else if (client->state != CLIENT_FREE && events & (EPOLLHUP | EPOLLERR))
		drop(server, client);
}

/* Reads on from clients that have rested. */
static void end_rests(struct live_server *server, uint64_t now_ns)
{
	for (unsigned int i = 0; i < LIVE_CLIENTS_MAX; i++) {
		struct client *client = &server->client[i];

		if (client->state != CLIENT_ASKS || !client->rests_until_ns)
			continue;
		if (now_ns < client->rests_until_ns) {
			set_timer(server);
			continue;
		}
		client->rests_until_ns = 0;
		watch(server, client, EPOLLIN);
		read_request(server, client, now_ns);
	}
}

static void drop_late(struct live_server *server, uint64_t now_ns)
{
	for (unsigned int i = 0; i < LIVE_CLIENTS_MAX; i++) {
		struct client *client = &server->client[i];

		if (client->state == CLIENT_FREE || now_ns < client->deadline_ns)
			continue;
		if (client->state == CLIENT_WAITS)
			refuse(server, client, -EBUSY, "other requests took too long: try again",
			       now_ns);
		else
			drop(server, client);
	}
}

void live_server_serve(struct live_server *server, uint64_t now_ns)
{
	struct epoll_event event[SOURCE_COUNT];
	int count = epoll_wait(server->epoll, event, SOURCE_COUNT, 0);
	uint64_t expirations;

	for (int i = 0; i < count; i++) {
		if (event[i].data.u32 < LIVE_CLIENTS_MAX)
			serve_client(server, &server->client[event[i].data.u32], event[i].events,
				     now_ns);
		if (event[i].data.u32 == SOURCE_TIMER &&
		    read(server->timer, &expirations, sizeof(expirations)) > 0)
			server->timer_is_set = false;
	}
	end_rests(server, now_ns);
	drop_late(server, now_ns);
	accept_all(server, now_ns);
}

/* ---- their requests ---- */

static struct client *find(const struct live_server *server, uint64_t number)
{
	for (unsigned int i = 0; number && i < LIVE_CLIENTS_MAX; i++)
		if (server->client[i].state != CLIENT_FREE && server->client[i].number == number)
			return (struct client *)&server->client[i];
	return NULL;
}

bool live_server_next(struct live_server *server, struct live_choice choice,
		      struct live_job *ret_job)
{
	struct client *first = NULL;

	for (unsigned int i = 0; i < LIVE_CLIENTS_MAX; i++) {
		struct client *client = &server->client[i];

		if (client->state == CLIENT_WAITS && client->request.verb == choice.verb &&
		    !(choice.root_only && seen_by(server, client)) &&
		    (!first || client->number < first->number) &&
		    (!choice.may_take ||
		     choice.may_take(choice.context, who_answers(seen_by(server, client)))))
			first = client;
	}
	if (!first)
		return false;
	first->state = CLIENT_WORKS;
	first->deadline_ns = UINT64_MAX;
	*ret_job = (struct live_job){.number = first->number,
				     .uid = seen_by(server, first),
				     .who = who_answers(seen_by(server, first)),
				     .request = first->request};
	return true;
}

bool live_server_waits(const struct live_server *server, uint64_t number)
{
	const struct client *client = find(server, number);

	return client && (client->state == CLIENT_WORKS || client->goes_on);
}

/* Finds the client, if a reply to it may begin. */
static struct client *find_working(const struct live_server *server, uint64_t number)
{
	struct client *client = find(server, number);

	return client && client->state == CLIENT_WORKS ? client : NULL;
}

void live_server_reply(struct live_server *server, uint64_t number, char *text, size_t size,
		       uint64_t now_ns)
{
	struct client *client = find_working(server, number);

	if (client)
		reply(server, client, text, size, now_ns);
	else
		free(text);
}

void live_server_push(struct live_server *server, uint64_t number, char *text, size_t size,
		      uint64_t now_ns)
{
	struct client *client = find_working(server, number);

	if (client)
		client->goes_on = true;
	live_server_reply(server, number, text, size, now_ns);
}

void live_server_refuse(struct live_server *server, uint64_t number, int err, const char *why,
			uint64_t now_ns)
{
	struct client *client = find_working(server, number);

	if (client)
		refuse(server, client, err, why, now_ns);
}

/* ---- the sockets ---- */

int live_server_fd(const struct live_server *server)
{
	return server->epoll;
}

void live_server_facts(const struct live_server *server, struct live_server_facts *ret_facts)
{
	*ret_facts = server->facts;
}

/* Takes the connection that the program that started us has made: a request may come at any
 * time. */
static int adopt(struct live_server *server, const char *number)
{
	char *end;
	unsigned long fd = strtoul(number, &end, 10);

	if (end == number || *end || fd > INT_MAX)
		return -EINVAL;
	if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) || fcntl((int)fd, F_SETFL, O_NONBLOCK))
		return -errno;
	return take_client(server, (int)fd, UINT64_MAX);
}

static int wake_for(const struct live_server *server, int fd, uint32_t source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = source};

	return epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* Root uses the other path too when this one cannot be had. */
static void open_root(struct live_server *server, const char *path)
{
	char of_root[LIVE_PATH_BYTES];

	if (snprintf(of_root, sizeof(of_root), "%s%s", path, LIVE_ROOT_SUFFIX) >=
		    (int)sizeof(of_root) ||
	    live_listener_open(of_root, 0600, &server->root))
		return;
	if (wake_for(server, server->root.fd, SOURCE_ROOT))
		live_listener_close(&server->root);
}

static int open_sockets(struct live_server *server, const char *path)
{
	static const char by_fd[] = "fd:";
	int err;

	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	server->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (server->epoll < 0 || server->timer < 0)
		return -errno;
	err = wake_for(server, server->timer, SOURCE_TIMER);
	if (err)
		return err;
	if (!strncmp(path, by_fd, strlen(by_fd)))
		return adopt(server, path + strlen(by_fd));
	/* Everybody may connect; each request is checked for what the user may see. */
	err = live_listener_open(path, 0666, &server->all);
	if (!err)
		err = wake_for(server, server->all.fd, SOURCE_ALL);
	if (!err)
		open_root(server, path);
	return err;
}

int live_server_open(const char *path, struct live_server **ret_server)
{
	struct live_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return -ENOMEM;
	server->epoll = server->timer = server->all.fd = server->root.fd = -1;
	for (unsigned int i = 0; i < LIVE_CLIENTS_MAX; i++)
		server->client[i].fd = -1;
	err = open_sockets(server, path);
	if (err) {
		live_server_close(server);
		return err;
	}
	*ret_server = server;
	return 0;
}

void live_server_close(struct live_server *server)
{
	if (!server)
		return;
	for (unsigned int i = 0; i < LIVE_CLIENTS_MAX; i++)
		if (server->client[i].state != CLIENT_FREE)
			drop(server, &server->client[i]);
	live_listener_close(&server->all);
	live_listener_close(&server->root);
	close_owned_fd(&server->timer);
	close_owned_fd(&server->epoll);
	free(server);
}
