/* SPDX-License-Identifier: BSD-2-Clause */
/* ready FIFO SECONDS PROGRAM...   Becomes the program.  Who reads the FIFO gets a line when that
 * one says READY=1, as a service says it to its manager (sd_notify(3)), or why it has not. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *await(int socket, int program, int seconds)
{
	struct pollfd look[] = {{.fd = socket, .events = POLLIN},
				{.fd = program, .events = POLLIN}};
	char text[64] = "";

	while (poll(look, 2, seconds * 1000) > 0) {
		memset(text, 0, sizeof(text));
		if (recv(socket, text, sizeof(text) - 1, MSG_DONTWAIT) > 0 &&
		    strstr(text, "READY=1"))
			return "ready";
		if (look[1].revents)
			return "it has ended";
	}
	return "it is late";
}

static void tell(const char *path, const char *line)
{
	FILE *fifo = fopen(path, "w");

	if (fifo)
		fprintf(fifo, "%s\n", line);
	exit(!fifo);
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int own = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char name[32];
	int size = snprintf(name, sizeof(name), "@ready-%d", getpid());

	memcpy(address.sun_path + 1, name + 1, (size_t)size - 1);
	if (argc < 4 || own < 0 ||
	    bind(fd, (void *)&address, (socklen_t)(sizeof(address.sun_family) + (size_t)size))) {
		perror("ready");
		return 2;
	}
	/* The program has no child that it does not know. */
	if (!fork()) {
		if (!fork())
			tell(argv[1], await(fd, own, atoi(argv[2])));
		_exit(0);
	}
	(void)wait(NULL);
	setenv("NOTIFY_SOCKET", name, 1);
	close(own);
	execv(argv[3], argv + 3);
	perror(argv[3]);
	return 127;
}
