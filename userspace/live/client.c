/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/client.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/kinds.h"
#include "child/spawn.h"

#define ANSWER_SECONDS 90 /* longer than a request may have to wait */
#define CONNECT_SECONDS 20
#define SAID_BYTES 65536U

struct live_client {
	int fd;
	pid_t pid;   /* of the private capture; 0: none */
	int said;    /* its output; -1: none */
	FILE *words; /* borrowed: for messages to the user */
};

static int connect_to(const char *path, int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = CONNECT_SECONDS};
	OWNED_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)))
		return -errno;
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return errno == EAGAIN ? -EBUSY : -errno; /* the queue of connections is full */
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Connects to the socket for root alone, where no other user can be in the way, if it belongs to
 * whom the other one belongs to: in a folder of everybody's it may be anybody's. */
static int connect_as_root(const char *path, int *ret_fd)
{
	char of_root[LIVE_PATH_BYTES + sizeof(LIVE_ROOT_SUFFIX)];
	struct stat all, root;

	if (geteuid())
		return -EPERM;
	if (snprintf(of_root, sizeof(of_root), "%s%s", path, LIVE_ROOT_SUFFIX) >=
		    (int)LIVE_PATH_BYTES ||
	    stat(path, &all) || lstat(of_root, &root) || !S_ISSOCK(root.st_mode) ||
	    root.st_uid != all.st_uid)
		return -ENOENT;
	return connect_to(of_root, ret_fd);
}

/* ---- a private capture ---- */

/* Selects what the private capture has to record, and no more. */
static void find_events(const struct live_request *request, char ret_events[CAPTURE_NAMES_CHARS])
{
	/* A window of top, or a dump, needs the same as kind wall. */
	uint32_t kinds = request->kinds ? request->kinds : 1U << PP_PROFILE_WALL;
	uint32_t captures = 0;

	/* Records beside another kind are those of what that one captures.  Only the ledger is
	 * worth more. */
	if (kinds & ~PP_RECORDS)
		kinds &= ~PP_RECORDS | 1U << PP_PROFILE_LEDGER;
	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++)
		if (kinds & 1U << kind)
			captures |= kind_get((enum pp_profile)kind)->private_captures;
	capture_names(captures, ",", ret_events);
}

/* Starts a private capture that serves the other end of a socket pair: it leaves no file behind,
 * and nobody else can connect. */
static int start_private(struct live_client *client, const struct live_request *request,
			 int *ret_fd)
{
	char events[CAPTURE_NAMES_CHARS], live[32];
	const char *const words[] = {child_row(CHILD_CAPTURE)->name,
				     "--quiet",
				     "--events",
				     events,
				     "--output",
				     "no",
				     "--live",
				     live,
				     NULL};
	OWNED_FD int ours = -1, theirs = -1;
	struct child_start start = {.argv = (char *const *)words};
	int pair[2], err;

	find_events(request, events);
	snprintf(live, sizeof(live), "fd:%d", CHILD_CAPTURE_FD);
	client->said = memfd_create("pyprofd says", MFD_CLOEXEC);
	if (client->said < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	start.fd = (const int[]){client->said, theirs};
	err = child_spawn(CHILD_CAPTURE, &start, &client->pid);
	if (!err)
		*ret_fd = TAKE_FD(ours);
	return err;
}

static void end_private(struct live_client *client)
{
	OWNED_MEM char *text = NULL;
	ssize_t size;

	if (client->pid > 0) {
		kill(client->pid, SIGTERM);
		waitpid(client->pid, NULL, 0);
	}
	text = client->said >= 0 ? malloc(SAID_BYTES) : NULL;
	size = text ? pread(client->said, text, SAID_BYTES, 0) : 0;
	if (size > 0)
		(void)fwrite(text, 1, (size_t)size, client->words);
	close_owned_fd(&client->said);
}

bool live_client_has_failed(const struct live_client *client)
{
	siginfo_t info = {};

	return client->pid > 0 &&
	       !waitid(P_PID, (id_t)client->pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
	       info.si_pid && (info.si_code != CLD_EXITED || info.si_status);
}

/* ---- either ---- */

static int connect_any(struct live_client *client, const char *path,
		       const struct live_request *request, int *ret_fd)
{
	const char *asked = path ? path : LIVE_SOCKET_DEFAULT;
	int err = connect_as_root(asked, ret_fd) ? connect_to(asked, ret_fd) : 0;

	if (!err)
		return 0;
	if (path || (err != -ENOENT && err != -ECONNREFUSED)) {
		fprintf(client->words, "pyprof: cannot ask pyprofd at %s: %s\n", asked,
			strerror(-err));
		return err;
	}
	if (geteuid()) {
		fprintf(client->words,
			"pyprof: no pyprofd is running (%s): start one, or run this as root\n",
			asked);
		return err;
	}
	err = start_private(client, request, ret_fd);
	if (err)
		fprintf(client->words, "pyprof: cannot start a pyprofd for this command: %s\n",
			strerror(-err));
	return err;
}

static int ask(struct live_client *client, const char *path, const struct live_request *request)
{
	const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
	char text[LIVE_REQUEST_BYTES];
	size_t size;
	int err = live_request_format(request, text, &size);

	if (err) {
		fprintf(client->words, "pyprof: too many processes are named\n");
		return err;
	}
	err = connect_any(client, path, request, &client->fd);
	if (err)
		return err;
	if (setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    send(client->fd, text, size, MSG_NOSIGNAL) != (ssize_t)size) {
		err = errno ? -errno : -EIO;
		fprintf(client->words, "pyprof: cannot send the request to pyprofd: %s\n",
			strerror(-err));
	}
	return err;
}

int live_client_open(const char *path, const struct live_request *request, FILE *words,
		     struct live_client **ret_client)
{
	struct live_client *client = calloc(1, sizeof(*client));
	int err;

	if (!client)
		return -ENOMEM;
	client->fd = client->said = -1;
	client->words = words;
	err = ask(client, path, request);
	if (err) {
		live_client_close(client);
		return err;
	}
	*ret_client = client;
	return 0;
}

void live_client_close(struct live_client *client)
{
	if (!client)
		return;
	close_owned_fd(&client->fd);
	end_private(client);
	free(client);
}

int live_client_fd(const struct live_client *client)
{
	return client->fd;
}
