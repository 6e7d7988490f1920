/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/proc_scan.h"

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../at_rest.h"
#include "base/clock.h"
#include "base/slice.h"

static int parse_stat(const char *text, struct proc_stat *ret_stat)
{
	return proc_stat_parse(text, strlen(text), 100, 2 * NS_PER_SEC, ret_stat);
}

static void proc_stat_parse__comm_may_hold_anything(void **state)
{
	struct proc_stat stat;

	(void)state;
	assert_int_equal(parse_stat("4242 (a) R 1 (b)) S 17 4242 4242 0 -1 4194560 5 0 0 0 1 2 0 0 "
				    "20 0 1 0 12345 1000 10 18446744073709551615\n",
				    &stat),
			 0);
	assert_int_equal(stat.pid, 4242);
	assert_int_equal(stat.ppid, 17);
	assert_string_equal(stat.comm, "a) R 1 (b)");
	assert_false(stat.is_kernel_thread);
	assert_false(stat.is_zombie);
	/* 12345 ticks of 10 ms, of which 2 s asleep. */
	assert_int_equal(stat.start_ns, 121450 * NS_PER_MS);
	assert_int_equal(stat.cpu_ns, 30 * NS_PER_MS); /* utime 1, stime 2 */
}

static void proc_stat_parse__kernel_threads_and_zombies(void **state)
{
	struct proc_stat stat;

	(void)state;
	assert_int_equal(
		parse_stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 0 0", &stat),
		0);
	assert_true(stat.is_kernel_thread);
	assert_int_equal(stat.start_ns, 0);
	assert_int_equal(parse_stat("9 (sh) Z 1 9 9 0 -1 4228108 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0",
				    &stat),
			 0);
	assert_true(stat.is_zombie);
	assert_false(stat.is_kernel_thread);
	/* Its main thread has ended, two others have not. */
	assert_int_equal(parse_stat("9 (sh) Z 1 9 9 0 -1 4228108 0 0 0 0 0 0 0 0 20 0 3 0 500 0 0",
				    &stat),
			 0);
	assert_false(stat.is_zombie);
	assert_int_equal(
		parse_stat("9 (kworker/u8:2-events_unbound) I 2 0 0 0 -1 69238880 0 0 0 0 0 "
			   "0 0 0 20 0 1 0 500 0 0",
			   &stat),
		0);
	assert_string_equal(stat.comm, "kworker/u8:2-ev");
}

static void proc_stat_parse__refuses_what_is_cut(void **state)
{
	const char *const bad[] = {
		"",
		"x (a) S 1",
		"12",
		"12 (a",
		"12 a) S 1",
		"12 )a( S 1",
		"12 (a)",
		"12 (a) S 1 1 1 0 -1 4194560 5 0 0 0 1 2 0 0 20 0 1 0",
		"12 (a) S 1 1 1 0 -1 4194560 5 0 0 0 1 2 0 0 20 0 1 0 ",
		"12 (a) S x 1 1 0 -1 4194560 5 0 0 0 1 2 0 0 20 0 1 0 5 ",
		"12 (a) S 1 1 1 0 -1 99999999999999999999 5 0 0 0 1 2 0 0 20 0 1 0 5 ",
	};
	struct proc_stat stat;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse_stat(bad[i], &stat), -EBADMSG);
}

static void proc_status_parse__of_a_process_in_a_container(void **state)
{
	const char text[] = "Name:\tpython3\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t29205\n"
			    "Ngid:\t0\nPid:\t29205\nPPid:\t29100\nTracerPid:\t0\n"
			    "Uid:\t1000\t33\t33\t33\nGid:\t33\t33\t33\t33\n"
			    "NStgid:\t29205\t40\t7\nNSpid:\t29205\t40\t7\nNSpgid:\t29205\t40\t7\n";
	struct proc_status status;

	(void)state;
	assert_int_equal(proc_status_parse(text, sizeof(text) - 1, &status), 0);
	assert_int_equal(status.tgid, 29205);
	assert_int_equal(status.ppid, 29100);
	assert_int_equal(status.uid, 33);
	assert_int_equal(status.inner_pid, 7);
	assert_int_equal(status.switches, 0);
	assert_false(status.is_runnable);
}

static void proc_status_parse__tells_switches_and_state(void **state)
{
	const char text[] = "State:\tR (running)\nTgid:\t5\nPPid:\t1\nUid:\t0\t0\t0\t0\n"
			    "voluntary_ctxt_switches:\t5000000000\n"
			    "nonvoluntary_ctxt_switches:\t17\n";
	struct proc_status status;

	(void)state;
	assert_int_equal(proc_status_parse(text, sizeof(text) - 1, &status), 0);
	assert_true(status.switches == 5000000017ULL);
	assert_true(status.is_runnable);
}

static void *sleep_for_long(void *tid)
{
	*(volatile uint32_t *)tid = (uint32_t)gettid();
	pause();
	return NULL;
}

static void thread_status_read__a_thread_that_sleeps_has_the_same_switches(void **state)
{
	struct proc_status first, second, own;
	volatile uint32_t tid = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, sleep_for_long, (void *)&tid), 0);
	while (!tid)
		usleep(1000);
	wait_for_thread_rest(getpid(), (pid_t)tid);
	assert_int_equal(thread_status_read((uint32_t)getpid(), tid, &first), 0);
	usleep(50000);
	assert_int_equal(thread_status_read((uint32_t)getpid(), tid, &second), 0);
	assert_int_equal(thread_status_read((uint32_t)getpid(), (uint32_t)gettid(), &own), 0);
	assert_true(first.switches > 0 && first.switches == second.switches);
	assert_false(first.is_runnable);
	assert_true(own.is_runnable);
	assert_int_equal(first.tgid, getpid());
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	/* Joined a moment before the kernel lets go of it. */
	for (unsigned int i = 0; i < 20000 && !thread_status_read((uint32_t)getpid(), tid, &first);
	     i++)
		usleep(1000);
	assert_int_equal(thread_status_read((uint32_t)getpid(), tid, &first), -ESRCH);
}

static void proc_status_parse__without_namespaces_and_broken(void **state)
{
	const char plain[] = "Tgid:\t5\nPPid:\t1\nUid:\t0\t0\t0\t0";
	const char *const bad[] = {"", "Tgid:\t5\nPPid:\t1\n", "Tgid:\t\nPPid:\t1\nUid:\t0\t0",
				   "Tgid:\t5x\nPPid:\t1\nUid:\t0\t0",
				   "Tgid:\t4294967296\nPPid:\t1\nUid:\t0\t0"};
	struct proc_status status;

	(void)state;
	assert_int_equal(proc_status_parse(plain, sizeof(plain) - 1, &status), 0);
	assert_int_equal(status.inner_pid, 5);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(proc_status_parse(bad[i], strlen(bad[i]), &status), -EBADMSG);
}

struct found {
	uint32_t self, kernel_threads, count;
	struct proc_stat stat;
};

static int note(void *context, const struct proc_stat *stat)
{
	struct found *found = context;

	found->count++;
	found->kernel_threads += stat->is_kernel_thread;
	if (stat->pid == (uint32_t)getpid()) {
		found->self++;
		found->stat = *stat;
	}
	return 0;
}

static int stop_at_once(void *context, const struct proc_stat *stat)
{
	(void)stat;
	return ++*(int *)context == 2 ? -ECANCELED : 0;
}

static void proc_scan__finds_this_process_once(void **state)
{
	struct found found = {0};
	int calls = 0;

	(void)state;
	assert_int_equal(proc_scan(note, &found), 0);
	assert_int_equal(found.self, 1);
	assert_int_equal(found.stat.ppid, getppid());
	assert_false(found.stat.is_kernel_thread);
	assert_true(found.stat.start_ns < mono_ns());
	/* This test has been running for less than a minute. */
	assert_true(found.stat.start_ns + 60 * NS_PER_SEC > mono_ns());
	assert_int_equal(proc_scan(stop_at_once, &calls), -ECANCELED);
	assert_int_equal(calls, 2);
}

static void proc_scan_step__goes_on_where_it_was(void **state)
{
	const struct slice over = {};
	struct proc_scanning scanning = {};
	struct found found = {0};
	uint32_t steps = 0;
	int more;

	(void)state;
	while ((more = proc_scan_step(&scanning, note, &found, &over)) == 1) {
		steps++;
	}
	assert_int_equal(more, 0);
	assert_true(steps >= 2);
	assert_int_equal(found.self, 1);
	proc_scanning_end(&scanning);
	assert_null(scanning.dir);
	proc_scanning_end(&scanning);
}

static void process_read_details__of_a_child(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	const uint64_t before_ns = mono_ns();
	struct process *process, *reused;
	int ready[2];
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_NAME, "odd (name) x");
		if (getuid() == 0 && syscall(SYS_setresuid, 0, 1234, 0))
			_exit(1);
		if (write(ready[1], "x", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(process_table_new(&table), 0);
	process_table_add(table, (struct pp_process_id){(uint32_t)pid, 1}, 0, mono_ns(), &process);
	assert_int_equal(process_read_details(table, process), 0);
	assert_true(process->details_read);
	assert_string_equal(process->comm, "odd (name) x");
	assert_int_equal(process->ppid, getpid());
	assert_int_equal(process->uid, getuid() == 0 ? 1234 : geteuid());
	assert_int_equal(process->inner_pid, pid);
	assert_true(process->cgroup[0] == '/' || process->cgroup[0] == '\0');
	/* One that began long before this pid did is not this one. */
	process_table_add(table, (struct pp_process_id){(uint32_t)pid, 2}, 0,
			  before_ns - NS_PER_SEC, &reused);
	assert_int_equal(process_read_details(table, reused), -ESRCH);
	assert_false(reused->details_read);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(process_read_details(table, process), -ESRCH);
	assert_true(process->details_read);
	close(ready[0]);
	close(ready[1]);
}

/* The child of a process that made a new pid namespace is number 1 there. */
static void process_read_details__inner_pid_in_a_pid_namespace(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct process *process;
	int ready[2];
	pid_t maker, pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	maker = fork();
	if (maker == 0) {
		pid_t inner = -1;

		if (unshare(CLONE_NEWPID) == 0)
			inner = fork();
		if (inner == 0) {
			for (;;)
				pause();
		}
		if (write(ready[1], &inner, sizeof(inner)) == sizeof(inner))
			for (;;)
				pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &pid, sizeof(pid)), sizeof(pid));
	close(ready[0]);
	close(ready[1]);
	if (pid > 0) {
		assert_int_equal(process_table_new(&table), 0);
		process_table_add(table, (struct pp_process_id){(uint32_t)pid, 1}, 0, mono_ns(),
				  &process);
		assert_int_equal(process_read_details(table, process), 0);
		assert_int_equal(process->inner_pid, 1);
		kill(pid, SIGKILL);
	}
	kill(maker, SIGKILL);
	waitpid(maker, NULL, 0);
	if (pid < 0) {
		print_message("skipped: not allowed to make a pid namespace\n");
		skip();
	}
}

static void *named_thread(void *ready)
{
	char byte = 0;

	prctl(PR_SET_NAME, "worker-1");
	byte = (char)write(((int *)ready)[1], &(pid_t){gettid()}, sizeof(pid_t));
	while (read(((int *)ready)[2], &byte, 1) < 0)
		;
	return NULL;
}

static void thread_comm_read__of_a_thread(void **state)
{
	int fds[4];
	pthread_t thread;
	pid_t tid;
	char comm[PP_COMM_BYTES];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pipe(fds + 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, named_thread, fds), 0);
	assert_int_equal(read(fds[0], &tid, sizeof(tid)), sizeof(tid));
	assert_int_equal(thread_comm_read((uint32_t)getpid(), (uint32_t)tid, comm), 0);
	assert_string_equal(comm, "worker-1");
	assert_int_equal(write(fds[3], "x", 1), 1);
	pthread_join(thread, NULL);
	assert_int_equal(thread_comm_read((uint32_t)getpid(), (uint32_t)tid, comm), -ESRCH);
	for (size_t i = 0; i < 4; i++)
		close(fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proc_stat_parse__comm_may_hold_anything),
		cmocka_unit_test(proc_stat_parse__kernel_threads_and_zombies),
		cmocka_unit_test(proc_stat_parse__refuses_what_is_cut),
		cmocka_unit_test(proc_status_parse__of_a_process_in_a_container),
		cmocka_unit_test(proc_status_parse__without_namespaces_and_broken),
		cmocka_unit_test(proc_status_parse__tells_switches_and_state),
		cmocka_unit_test(thread_status_read__a_thread_that_sleeps_has_the_same_switches),
		cmocka_unit_test(proc_scan__finds_this_process_once),
		cmocka_unit_test(proc_scan_step__goes_on_where_it_was),
		cmocka_unit_test(process_read_details__of_a_child),
		cmocka_unit_test(process_read_details__inner_pid_in_a_pid_namespace),
		cmocka_unit_test(thread_comm_read__of_a_thread),
	};

	return cmocka_run_group_tests_name("discover/proc_scan", tests, NULL, NULL);
}
