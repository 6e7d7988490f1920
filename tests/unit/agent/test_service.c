/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/service.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* A service manager's end of the socket. */
struct manager {
	int fd;
	char name[64];
};

/* With an abstract name, which no file has to be removed for. */
static void manager_open(struct manager *manager)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int size = snprintf(manager->name, sizeof(manager->name), "@pyprofd-test-%d", getpid());

	memcpy(address.sun_path, manager->name, (size_t)size);
	address.sun_path[0] = '\0';
	manager->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_true(manager->fd >= 0);
	assert_int_equal(bind(manager->fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)size)),
			 0);
}

static void expect_told(const struct manager *manager, const char *wanted)
{
	char text[64] = "";
	ssize_t size = recv(manager->fd, text, sizeof(text) - 1, 0);

	if (!wanted)
		assert_int_equal(size, -1);
	else
		assert_string_equal(text, wanted);
}

static void set(const char *name, const char *value)
{
	assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static int open_with(const char *socket, const char *usec, const char *pid,
		     struct service *ret_service)
{
	int err;

	set("NOTIFY_SOCKET", socket);
	set("WATCHDOG_USEC", usec);
	set("WATCHDOG_PID", pid);
	err = service_open(ret_service);
	assert_null(getenv("NOTIFY_SOCKET"));
	assert_null(getenv("WATCHDOG_USEC"));
	assert_null(getenv("WATCHDOG_PID"));
	return err;
}

static void service__without_a_manager_does_nothing(void **state)
{
	struct service service;

	(void)state;
	assert_int_equal(open_with(NULL, NULL, NULL, &service), 0);
	service_ready(&service, 1);
	service_tick(&service, 2);
	service_stopping(&service);
	service_close(&service);
}

static void service__is_ready_once_then_lives_at_half_the_time(void **state)
{
	struct manager manager;
	struct service service;

	(void)state;
	manager_open(&manager);
	assert_int_equal(open_with(manager.name, "2000000", NULL, &service), 0);
	service_tick(&service, NS_PER_SEC);
	expect_told(&manager, NULL);
	service_ready(&service, 2 * NS_PER_SEC);
	expect_told(&manager, "READY=1");
	expect_told(&manager, "WATCHDOG=1");
	service_tick(&service, 3 * NS_PER_SEC - 1);
	expect_told(&manager, NULL);
	service_tick(&service, 3 * NS_PER_SEC);
	expect_told(&manager, "WATCHDOG=1");
	expect_told(&manager, NULL);
	service_stopping(&service);
	expect_told(&manager, "STOPPING=1");
	service_close(&service);
	close(manager.fd);
}

static void service__watchdog_of_another_process_is_not_fed(void **state)
{
	struct manager manager;
	struct service service;

	(void)state;
	manager_open(&manager);
	assert_int_equal(open_with(manager.name, "2000000", "1", &service), 0);
	service_ready(&service, NS_PER_SEC);
	expect_told(&manager, "READY=1");
	service_tick(&service, 9 * NS_PER_SEC);
	expect_told(&manager, NULL);
	service_close(&service);
	close(manager.fd);
}

static void service__what_found_no_room_is_told_again(void **state)
{
	struct manager manager;
	struct service service;
	char text[64];

	(void)state;
	manager_open(&manager);
	assert_int_equal(open_with(manager.name, "2000000", NULL, &service), 0);
	while (send(service.socket, "x", 1, MSG_NOSIGNAL) == 1)
		;
	assert_int_equal(errno, EAGAIN);
	service_ready(&service, NS_PER_SEC);
	while (recv(manager.fd, text, sizeof(text), 0) == 1)
		;
	service_tick(&service, NS_PER_SEC + 1);
	expect_told(&manager, "READY=1");
	expect_told(&manager, "WATCHDOG=1");
	expect_told(&manager, NULL);
	service_close(&service);
	close(manager.fd);
}

static void service_open__a_socket_that_is_none_is_an_error(void **state)
{
	char longer[200] = "/";
	struct service service;

	(void)state;
	memset(longer + 1, 'x', sizeof(longer) - 2);
	assert_int_equal(open_with("/nowhere/notify", NULL, NULL, &service), -ENOENT);
	assert_int_equal(open_with("vsock:2:1", NULL, NULL, &service), -EAFNOSUPPORT);
	assert_int_equal(open_with("", NULL, NULL, &service), -EAFNOSUPPORT);
	assert_int_equal(open_with(longer, NULL, NULL, &service), -E2BIG);
	service_ready(&service, 1);
	service_stopping(&service);
	service_close(&service);
}

static void service__reloading_is_told_with_its_time_and_ready_again(void **state)
{
	struct manager manager;
	struct service service;

	(void)state;
	manager_open(&manager);
	assert_int_equal(open_with(manager.name, NULL, NULL, &service), 0);
	service_ready(&service, NS_PER_SEC);
	expect_told(&manager, "READY=1");
	service_reloading(&service, 2 * NS_PER_SEC);
	expect_told(&manager, "RELOADING=1\nMONOTONIC_USEC=2000000");
	service_reloaded(&service, 3 * NS_PER_SEC);
	expect_told(&manager, "READY=1");
	expect_told(&manager, NULL);
	service_close(&service);
	close(manager.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(service__without_a_manager_does_nothing),
		cmocka_unit_test(service__is_ready_once_then_lives_at_half_the_time),
		cmocka_unit_test(service__watchdog_of_another_process_is_not_fed),
		cmocka_unit_test(service__what_found_no_room_is_told_again),
		cmocka_unit_test(service__reloading_is_told_with_its_time_and_ready_again),
		cmocka_unit_test(service_open__a_socket_that_is_none_is_an_error),
	};

	return cmocka_run_group_tests_name("agent/service", tests, NULL, NULL);
}
