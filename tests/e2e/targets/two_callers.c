/* SPDX-License-Identifier: BSD-2-Clause */
/* two_callers EARLY_MS LATE_MS   Waits at one place, as often as a pipe to a child and back lets
 * it, first called by early(), then by late(), whose frames are alike; prints how long read() took
 * below each, in ns. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static __attribute__((noinline)) uint64_t wait_once(void)
{
	char byte = 'a';
	uint64_t begin;

	if (write(there[1], &byte, 1) != 1)
		exit(1);
	begin = now_ns();
	if (read(back[0], &byte, 1) != 1)
		exit(1);
	return now_ns() - begin;
}

static __attribute__((noinline)) uint64_t early(void)
{
	uint64_t waited = wait_once();

	__asm__ volatile("" : "+r"(waited));
	return waited;
}

static __attribute__((noinline)) uint64_t late(void)
{
	uint64_t waited = wait_once();

	__asm__ volatile("" : "+r"(waited));
	return waited;
}

static uint64_t repeat(uint64_t (*call)(void), uint64_t for_ms)
{
	const uint64_t end = now_ns() + for_ms * 1000000U;
	uint64_t waited = 0;

	while (now_ns() < end)
		waited += call();
	return waited;
}

static _Noreturn void answer(void)
{
	char byte;

	while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	uint64_t early_ns, late_ns;
	pid_t child;

	if (argc != 3 || pipe(there) || pipe(back))
		return 1;
	child = fork();
	if (child < 0)
		return 1;
	if (!child)
		answer();
	early_ns = repeat(early, strtoull(argv[1], NULL, 10));
	late_ns = repeat(late, strtoull(argv[2], NULL, 10));
	printf("%llu %llu\n", (unsigned long long)early_ns, (unsigned long long)late_ns);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}
