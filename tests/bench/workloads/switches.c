/* SPDX-License-Identifier: BSD-2-Clause */
/* switches pingpong               two processes on one CPU hand a byte to and fro until SIGTERM;
 *                                 prints for each part when it ended (CLOCK_MONOTONIC, ns) and
 *                                 ns a switch
 * switches paced RATE SECONDS     the same for a time, RATE switches a second
 * switches fresh RATE SECONDS     the same, each wait at a stack that was never seen before */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

#define PART 500U /* rounds: 4 ms; a round is two switches */
#define PARTS_MAX 1000000U

struct part {
	uint64_t end_ns;
	double switch_ns;
};

static volatile sig_atomic_t is_over;

static void end(int number)
{
	(void)number;
	is_over = 1;
}

static void must(int is_good, const char *what)
{
	if (is_good)
		return;
	perror(what);
	exit(1);
}

/* The path through the calls is the number's bits: 2^depth stacks. */
static __attribute__((noinline)) void take(int fd, uint64_t path, int depth);
static __attribute__((noinline)) void left(int fd, uint64_t path, int depth)
{
	take(fd, path >> 1, depth - 1);
	__asm__ volatile("");
}
static __attribute__((noinline)) void right(int fd, uint64_t path, int depth)
{
	take(fd, path >> 1, depth - 1);
	__asm__ volatile("");
}
static void take(int fd, uint64_t path, int depth)
{
	char byte;

	if (!depth)
		must(read(fd, &byte, 1) == 1, "read");
	else if (path & 1)
		left(fd, path, depth);
	else
		right(fd, path, depth);
	__asm__ volatile("");
}

static _Noreturn void answer(int from, int to, int depth)
{
	for (uint64_t i = 0;; i++) {
		take(from, i, depth);
		must(write(to, "b", 1) == 1, "write");
	}
}

static void round_trip(int to, int from, uint64_t path, int depth)
{
	must(write(to, "a", 1) == 1, "write");
	take(from, path, depth);
}

/* Prints at the end only: it would be switches of its own. */
static void pingpong(int to, int from)
{
	struct part *part = calloc(PARTS_MAX, sizeof(*part));
	uint64_t count = 0, begin = now_ns(), path = 0;

	must(part != NULL, "calloc");
	signal(SIGTERM, end);
	for (; !is_over && count < PARTS_MAX; count++) {
		for (unsigned int i = 0; i < PART; i++)
			round_trip(to, from, path++, 0);
		part[count].end_ns = now_ns();
		part[count].switch_ns = (double)(part[count].end_ns - begin) / PART / 2;
		begin = part[count].end_ns;
	}
	for (uint64_t i = 0; i < count; i++)
		printf("%llu %.1f\n", (unsigned long long)part[i].end_ns, part[i].switch_ns);
	free(part);
}

static void paced(int to, int from, uint64_t rate, uint64_t seconds, int depth)
{
	const uint64_t begin = now_ns();

	for (uint64_t i = 0; i < rate * seconds / 2; i++) {
		round_trip(to, from, i, depth);
		while (now_ns() - begin < i * 2000000000ULL / rate)
			;
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "pingpong";
	const int depth = strcmp(mode, "fresh") ? 0 : 24;
	int there[2], back[2];
	cpu_set_t one;
	pid_t child;

	CPU_ZERO(&one);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &one);
	sched_setaffinity(0, sizeof(one), &one);
	must(!pipe(there) && !pipe(back), "pipe");
	child = fork();
	must(child >= 0, "fork");
	if (!child)
		answer(there[0], back[1], depth);
	if (argc < 4)
		pingpong(there[1], back[0]);
	else
		paced(there[1], back[0], strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
		      depth);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}
