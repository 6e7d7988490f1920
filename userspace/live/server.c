/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "live/record.h"

#define LISTENER UINT32_MAX
_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == LIVE_PATH_BYTES, "unix(7)");
#define EVENTS_MAX (LIVE_CLIENTS_MAX + 1)

enum client_state { CLIENT_FREE, CLIENT_ASKS, CLIENT_WAITS, CLIENT_WORKS, CLIENT_READS };

struct client {
	enum client_state state;
	int fd;
	uint64_t number;
	uid_t uid;
	uint64_t deadline_ns; /* UINT64_MAX: none */
	char line[LIVE_REQUEST_BYTES];
	size_t line_size;
	struct live_request request;
	char *reply; /* owned */
	size_t reply_size, sent;
	bool goes_on; /* another part of the reply follows later */
};

struct live_server {
	int listener, epoll;
	struct sockaddr_un address;
	dev_t device;
	ino_t inode;
	uint64_t last_number;
	struct client client[LIVE_CLIENTS_MAX];
};

/* ---- clients ---- */

static void drop(struct client *client)
{
	close(client->fd); /* closing the fd removes it from the epoll set */
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
			drop(client);
			return;
		}
		client->sent += (size_t)sent;
		client->deadline_ns = now_ns + LIVE_IDLE_NS;
	}
	if (client->goes_on)
		wait_for_part(server, client);
	else
		drop(client);
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
		drop(client);
		return;
	}
	live_record_write(out, &record);
	if (fclose(out)) {
		free(text);
		drop(client);
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
	default:
		return "the request is not understood";
	}
}

static void take_line(struct live_server *server, struct client *client, size_t size,
		      uint64_t now_ns)
{
	int err = live_request_parse(client->line, size, &client->request);

	if (err) {
		refuse(server, client, err, why_not(err), now_ns);
		return;
	}
	client->state = CLIENT_WAITS;
	client->deadline_ns = now_ns + LIVE_WAIT_NS;
	watch(server, client, 0);
}

static void read_request(struct live_server *server, struct client *client, uint64_t now_ns)
{
	size_t room = sizeof(client->line) - client->line_size;
	ssize_t got = recv(client->fd, client->line + client->line_size, room, MSG_DONTWAIT);
	char *end;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		drop(client);
		return;
	}
	client->line_size += (size_t)got;
	end = memchr(client->line, '\n', client->line_size);
	if (end)
		take_line(server, client, (size_t)(end - client->line), now_ns);
	else if (client->line_size == sizeof(client->line))
		refuse(server, client, -E2BIG, why_not(-E2BIG), now_ns);
}

/* ---- new clients ---- */

static struct client *find_room(struct live_server *server, uid_t uid)
{
	struct client *room = NULL;
	unsigned int same = 0;

	for (unsigned int i = 0; i < LIVE_CLIENTS_MAX; i++) {
		struct client *client = &server->client[i];

		if (client->state == CLIENT_FREE)
			room = client;
		else if (client->uid == uid)
			same++;
	}
	return uid && same >= LIVE_CLIENTS_OF_UID_MAX ? NULL : room;
}

static void turn_away(int fd)
{
	static const char text[] = "error\t11\tthere are too many clients: try again\n";

	(void)!send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
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
		return -EBUSY;
	}
	event.data.u32 = (uint32_t)(client - server->client);
	if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	client->state = CLIENT_ASKS;
	client->number = ++server->last_number;
	client->uid = who.uid;
	client->fd = TAKE_FD(fd);
	client->deadline_ns = deadline_ns;
	return 0;
}

/* Accepts a client.  Returns whether there was one. */
static bool accept_one(struct live_server *server, uint64_t now_ns)
{
	int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return false;
	(void)take_client(server, fd, now_ns + LIVE_REQUEST_NS);
	return true;
}

static void serve_client(struct live_server *server, struct client *client, uint32_t events,
			 uint64_t now_ns)
{
	if (client->state == CLIENT_ASKS && events & EPOLLIN)
		read_request(server, client, now_ns);
	else if (client->state == CLIENT_READS && events & EPOLLOUT)
		send_reply(server, client, now_ns);
	else if (client->state != CLIENT_FREE && events & (EPOLLHUP | EPOLLERR))
		drop(client);
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
			drop(client);
	}
}

void live_server_serve(struct live_server *server, uint64_t now_ns)
{
	struct epoll_event event[EVENTS_MAX];
	int count = epoll_wait(server->epoll, event, EVENTS_MAX, 0);

	for (int i = 0; i < count; i++)
		if (event[i].data.u32 < LIVE_CLIENTS_MAX)
			serve_client(server, &server->client[event[i].data.u32], event[i].events,
				     now_ns);
	drop_late(server, now_ns);
	for (unsigned int i = 0; i < LIVE_CLIENTS_MAX && accept_one(server, now_ns); i++)
		;
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
		    !(choice.root_only && client->uid) &&
		    (!first || client->number < first->number))
			first = client;
	}
	if (!first)
		return false;
	first->state = CLIENT_WORKS;
	first->deadline_ns = UINT64_MAX;
	*ret_job = (struct live_job){
		.number = first->number, .uid = first->uid, .request = first->request};
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

/* ---- the socket ---- */

int live_server_fd(const struct live_server *server)
{
	return server->epoll;
}

/* Returns whether a server listens: a socket whose server has died refuses. */
static bool is_served(const struct sockaddr_un *address)
{
	OWNED_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return true;
	return !connect(fd, (const struct sockaddr *)address, sizeof(*address)) ||
	       errno != ECONNREFUSED;
}

static int clear_path(const struct sockaddr_un *address)
{
	const char *slash = strrchr(address->sun_path, '/');
	struct stat status;

	if (lstat(address->sun_path, &status)) {
		char folder[sizeof(address->sun_path)] = "";

		if (errno != ENOENT)
			return -errno;
		if (slash && slash > address->sun_path) {
			memcpy(folder, address->sun_path, (size_t)(slash - address->sun_path));
			(void)mkdir(folder, 0755); /* bind() reports what is wrong */
		}
		return 0;
	}
	if (!S_ISSOCK(status.st_mode))
		return -EEXIST;
	if (is_served(address))
		return -EADDRINUSE;
	return unlink(address->sun_path) ? -errno : 0;
}

static int bind_path(struct live_server *server)
{
	const struct sockaddr *address = (const struct sockaddr *)&server->address;
	struct stat status;
	int err = clear_path(&server->address);

	if (err)
		return err;
	if (bind(server->listener, address, sizeof(server->address)))
		return -errno;
	/* Everybody may connect; each request is checked for what the user may see. */
	if (stat(server->address.sun_path, &status) || chmod(server->address.sun_path, 0666) ||
	    listen(server->listener, (int)LIVE_CLIENTS_MAX))
		return -errno;
	server->device = status.st_dev;
	server->inode = status.st_ino;
	return 0;
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

static int open_socket(struct live_server *server)
{
	static const char by_fd[] = "fd:";
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = LISTENER};
	int err;

	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll < 0)
		return -errno;
	if (!strncmp(server->address.sun_path, by_fd, strlen(by_fd)))
		return adopt(server, server->address.sun_path + strlen(by_fd));
	server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->listener < 0)
		return -errno;
	err = bind_path(server);
	if (!err && epoll_ctl(server->epoll, EPOLL_CTL_ADD, server->listener, &event))
		err = -errno;
	return err;
}

int live_server_open(const char *path, struct live_server **ret_server)
{
	struct live_server *server = calloc(1, sizeof(*server));
	size_t size = strlen(path);
	int err;

	if (!server)
		return -ENOMEM;
	if (!size || size >= sizeof(server->address.sun_path)) {
		free(server);
		return -ENAMETOOLONG;
	}
	server->listener = server->epoll = -1;
	for (unsigned int i = 0; i < LIVE_CLIENTS_MAX; i++)
		server->client[i].fd = -1;
	server->address.sun_family = AF_UNIX;
	memcpy(server->address.sun_path, path, size);
	err = open_socket(server);
	if (err) {
		live_server_close(server);
		return err;
	}
	*ret_server = server;
	return 0;
}

void live_server_close(struct live_server *server)
{
	struct stat status;

	if (!server)
		return;
	for (unsigned int i = 0; i < LIVE_CLIENTS_MAX; i++)
		if (server->client[i].state != CLIENT_FREE)
			drop(&server->client[i]);
	if (server->inode && !stat(server->address.sun_path, &status) &&
	    status.st_dev == server->device && status.st_ino == server->inode)
		unlink(server->address.sun_path);
	close_owned_fd(&server->listener);
	close_owned_fd(&server->epoll);
	free(server);
}
