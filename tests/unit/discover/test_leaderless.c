/* SPDX-License-Identifier: BSD-2-Clause */
/* A process whose main thread has ended while another one runs. */
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../files/here.h"
#include "base/io.h"
#include "discover/proc_maps.h"
#include "files/opener.h"
#include "files/opening.h"

static const char secret[] = "in the child's memory";
static int told[2];

/* Its own main thread's end is seen in /proc alone. */
static noreturn void *stay(void *unused)
{
	char byte = 'x';
	pid_t tid = getpid();

	(void)unused;
	while (tid == getpid()) {
		if (process_live_task(getpid(), &tid))
			byte = '-';
		usleep(1000);
	}
	(void)!write(told[1], &byte, 1);
	for (;;)
		pause();
}

static pid_t start_leaderless(void)
{
	pthread_t thread;
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(told), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(60);
		if (pthread_create(&thread, NULL, stay, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	assert_int_equal(read(told[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	return pid;
}

static int setup(void **state)
{
	static pid_t pid;

	pid = start_leaderless();
	*state = &pid;
	return 0;
}

static int teardown(void **state)
{
	pid_t pid = *(pid_t *)*state;

	kill(pid, SIGKILL);
	close(told[0]);
	close(told[1]);
	return waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

static void leaderless__another_thread_stands_for_it(void **state)
{
	pid_t pid = *(pid_t *)*state, tid = 0;

	assert_int_equal(process_live_task(pid, &tid), 0);
	assert_true(tid != pid && tid > 0);
	assert_int_equal(process_live_task(getpid(), &tid), 0);
	assert_int_equal(tid, getpid());
}

static void leaderless__its_memory_is_read(void **state)
{
	pid_t pid = *(pid_t *)*state;
	char copy[sizeof(secret)] = "", other[4] = "";
	const struct process_piece piece[] = {
		{.address = (uintptr_t)secret, .buffer = copy, .size = sizeof(copy)},
		{.address = (uintptr_t)secret, .buffer = other, .size = sizeof(other)},
	};

	assert_int_equal(process_read(pid, (uintptr_t)secret, copy, sizeof(copy)), 0);
	assert_string_equal(copy, secret);
	memset(copy, 0, sizeof(copy));
	assert_int_equal(process_read_pieces(pid, piece, 2), 0);
	assert_string_equal(copy, secret);
	assert_memory_equal(other, secret, sizeof(other));
	assert_int_equal(process_read(pid, 1, copy, sizeof(copy)), -EFAULT);
}

static struct opener *opener;

/* Opens a mapping's file in the child, which is a part of this program. */
static int file_open(uint32_t tgid, const struct mapping *mapping, int *ret_fd)
{
	struct opened_file opened;
	int err = opener_open_mapped(opener, tgid, 0, mapping, &opened);

	if (!err)
		*ret_fd = opened.fd;
	return err;
}

static int open_it(void *context, const struct mapping *mapping)
{
	uint32_t pid = *(uint32_t *)context;
	int fd;

	if (mapping->path[0] != '/')
		return 0;
	if (file_open(pid, mapping, &fd))
		return -EBADF;
	close(fd);
	return 1;
}

static void leaderless__its_mappings_are_found_and_opened(void **state)
{
	assert_int_equal(opener_new("", &opener), 0);
	assert_int_equal(proc_maps_read(*(uint32_t *)*state, open_it, *state, NULL), 1);
	opener_free(opener);
}

static void ended__is_esrch(void **state)
{
	pid_t pid = fork(), tid;
	siginfo_t info;
	char byte;

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(process_live_task(pid, &tid), -ESRCH);
	assert_int_equal(process_read(pid, (uintptr_t)secret, &byte, 1), -ESRCH);
	assert_int_equal(proc_maps_read((uint32_t)pid, open_it, &pid, NULL), -ESRCH);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaderless__another_thread_stands_for_it),
		cmocka_unit_test(leaderless__its_memory_is_read),
		cmocka_unit_test(leaderless__its_mappings_are_found_and_opened),
		cmocka_unit_test(ended__is_esrch),
	};

	return cmocka_run_group_tests_name("discover/leaderless", tests, setup, teardown);
}
