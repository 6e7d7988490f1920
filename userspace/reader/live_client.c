/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/live_client.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/io.h"

#define PRIVATE_START_NS (20 * NS_PER_SEC)
#define LOOK_NS (20 * NS_PER_MS)
#define ANSWER_SECONDS 90 /* longer than a request may wait for its turn */
#define FOLDER_BYTES 64U
#define PROGRAM_BYTES 4096U

struct live_client {
	FILE *stream;
	pid_t pid;		   /* of the private capture; 0: there is none */
	char folder[FOLDER_BYTES]; /* its files; "" */
};

static void pause_ns(uint64_t ns)
{
	const struct timespec span = {.tv_nsec = (long)ns};

	nanosleep(&span, NULL);
}

static int connect_to(const char *path, int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
	OWNED_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* ---- a private capture ---- */

/* pyprofd beside this program, else wherever PATH has it. */
static void find_program(char program[PROGRAM_BYTES])
{
	static const char name[] = "pyprofd";
	ssize_t size = readlink("/proc/self/exe", program, PROGRAM_BYTES - sizeof(name) - 1);
	char *slash;

	program[size > 0 ? size : 0] = '\0';
	slash = strrchr(program, '/');
	if (slash) {
		memcpy(slash + 1, name, sizeof(name));
		if (!access(program, X_OK))
			return;
	}
	memcpy(program, name, sizeof(name));
}

static void run_private(const char *folder)
{
	char program[PROGRAM_BYTES], socket_path[FOLDER_BYTES + 16], output[FOLDER_BYTES + 16];

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	find_program(program);
	snprintf(socket_path, sizeof(socket_path), "%s/live.sock", folder);
	snprintf(output, sizeof(output), "%s/p.pb.gz", folder);
	execlp(program, program, "--quiet", "--events", "offcpu", "--live", socket_path, "--output",
	       output, (char *)NULL);
	fprintf(stderr, "pyprof: cannot start %s: %s\n", program, strerror(errno));
	_exit(127);
}

static int start_private(struct live_client *client)
{
	memcpy(client->folder, "/tmp/pyprof-XXXXXX", sizeof("/tmp/pyprof-XXXXXX"));
	if (!mkdtemp(client->folder)) {
		client->folder[0] = '\0';
		return -errno;
	}
	client->pid = fork();
	if (client->pid < 0)
		return -errno;
	if (!client->pid)
		run_private(client->folder);
	return 0;
}

/* Until its socket is there. */
static int connect_private(struct live_client *client, int *ret_fd)
{
	uint64_t until_ns = mono_ns() + PRIVATE_START_NS;
	char path[FOLDER_BYTES + 16];

	snprintf(path, sizeof(path), "%s/live.sock", client->folder);
	while (mono_ns() < until_ns) {
		int status;

		if (!connect_to(path, ret_fd))
			return 0;
		if (waitpid(client->pid, &status, WNOHANG) == client->pid) {
			client->pid = 0;
			return -ECHILD; /* it has said why */
		}
		pause_ns(LOOK_NS);
	}
	return -ETIMEDOUT;
}

static void end_private(struct live_client *client)
{
	static const char *const names[] = {"live.sock", "p.pb.gz"};
	char path[FOLDER_BYTES + 16];

	if (client->pid > 0) {
		kill(client->pid, SIGTERM);
		waitpid(client->pid, NULL, 0);
	}
	if (!client->folder[0])
		return;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", client->folder, names[i]);
		unlink(path);
	}
	rmdir(client->folder);
}

/* ---- either ---- */

static int connect_any(struct live_client *client, const char *path, int *ret_fd)
{
	const char *asked = path ? path : LIVE_SOCKET_DEFAULT;
	int err = connect_to(asked, ret_fd);

	if (!err)
		return 0;
	if (path || (err != -ENOENT && err != -ECONNREFUSED)) {
		fprintf(stderr, "pyprof: cannot ask pyprofd at %s: %s\n", asked, strerror(-err));
		return err;
	}
	if (geteuid()) {
		fprintf(stderr, "pyprof: no pyprofd runs that could be asked (%s): start one, or "
				"run this as root\n",
			asked);
		return err;
	}
	err = start_private(client);
	if (!err)
		err = connect_private(client, ret_fd);
	if (err && err != -ECHILD)
		fprintf(stderr, "pyprof: a capture of its own did not start: %s\n", strerror(-err));
	return err;
}

static int ask(struct live_client *client, const char *path, const struct live_request *request)
{
	char text[LIVE_REQUEST_BYTES];
	OWNED_FD int fd = -1;
	size_t size;
	int err = live_request_format(request, text, &size);

	if (err) {
		fprintf(stderr, "pyprof: too many processes are named\n");
		return err;
	}
	err = connect_any(client, path, &fd);
	if (err)
		return err;
	if (send(fd, text, size, MSG_NOSIGNAL) != (ssize_t)size)
		err = errno ? -errno : -EIO;
	client->stream = err ? NULL : fdopen(fd, "r");
	if (!client->stream) {
		err = err ? err : -ENOMEM;
		fprintf(stderr, "pyprof: pyprofd does not listen: %s\n", strerror(-err));
		return err;
	}
	(void)TAKE_FD(fd);
	return 0;
}

int live_client_open(const char *path, const struct live_request *request,
		     struct live_client **ret_client)
{
	struct live_client *client = calloc(1, sizeof(*client));
	int err;

	if (!client)
		return -ENOMEM;
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
	if (client->stream)
		fclose(client->stream);
	end_private(client);
	free(client);
}

FILE *live_client_stream(const struct live_client *client)
{
	return client->stream;
}
