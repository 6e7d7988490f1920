/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/service.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define WATCHDOG_MAX_US (3600ULL * 1000 * 1000)

/* Returns the number that a variable of the environment states, or 0. */
static unsigned long long number_of(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : 0;
}

/* Fills in the address: a path, or with '@' first a name in Linux's abstract name space. */
static int fill_address(const char *name, struct sockaddr_un *address, socklen_t *ret_size)
{
	size_t size = strlen(name);

	if ((name[0] != '/' && name[0] != '@') || size < 2)
		return -EAFNOSUPPORT;
	if (size >= sizeof(address->sun_path))
		return -E2BIG;
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path, name, size);
	if (name[0] == '@')
		address->sun_path[0] = '\0';
	/* An abstract name has no end but the address's. */
	*ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (name[0] == '/'));
	return 0;
}

static int connect_to(const char *name, int *ret_socket)
{
	struct sockaddr_un address;
	socklen_t size;
	int err = fill_address(name, &address, &size);
	OWNED_FD int fd = -1;

	if (err)
		return err;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, size))
		return -errno;
	*ret_socket = TAKE_FD(fd);
	return 0;
}

int service_open(struct service *ret_service)
{
	const char *name = getenv("NOTIFY_SOCKET");
	unsigned long long us = number_of("WATCHDOG_USEC"), pid = number_of("WATCHDOG_PID");
	int err;

	*ret_service = (struct service){.socket = -1};
	err = name ? connect_to(name, &ret_service->socket) : 0;
	if (!err && (!pid || pid == (unsigned long long)getpid()) && us <= WATCHDOG_MAX_US)
		ret_service->watchdog_ns = us * NS_PER_US / 2;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return err;
}

void service_close(struct service *service)
{
	close_owned_fd(&service->socket);
	service->socket = -1;
}

static bool tell(const struct service *service, const char *text)
{
	size_t size = strlen(text);

	return send(service->socket, text, size, MSG_NOSIGNAL) == (ssize_t)size;
}

void service_tick(struct service *service, uint64_t now_ns)
{
	if (service->socket < 0 || !service->is_ready)
		return;
	if (!service->is_ready_told)
		service->is_ready_told = tell(service, "READY=1");
	if (service->watchdog_ns && now_ns >= service->next_ns && tell(service, "WATCHDOG=1"))
		service->next_ns = now_ns + service->watchdog_ns;
}

void service_ready(struct service *service, uint64_t now_ns)
{
	service->is_ready = true;
	service_tick(service, now_ns);
}

void service_reloading(const struct service *service, uint64_t now_ns)
{
	char text[64];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)(now_ns / NS_PER_US));
	if (service->socket >= 0)
		(void)tell(service, text);
}

void service_reloaded(struct service *service, uint64_t now_ns)
{
	/* Said again at each tick until it is heard. */
	service->is_ready_told = false;
	service_tick(service, now_ns);
}

void service_stopping(const struct service *service)
{
	if (service->socket >= 0)
		(void)tell(service, "STOPPING=1");
}
