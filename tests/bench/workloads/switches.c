/* SPDX-License-Identifier: BSD-2-Clause */
/* switches pingpong COUNT          two processes on one CPU hand a byte to and fro; prints ns a switch: the
 *                                 median of PARTS parts, which what comes in bursts (interrupts of the
 *                                 host, the end of a window) does not move
 * switches paced RATE SECONDS     the same, RATE switches a second
 * switches fresh RATE SECONDS     the same, each wait at a stack that was never seen before */
#include <sched.h>
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

#define PARTS 20U

static int compare(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
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

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "pingpong";
	const int is_fresh = !strcmp(mode, "fresh"), is_paced = is_fresh || !strcmp(mode, "paced");
	const uint64_t rate = argc > 2 ? strtoull(argv[2], NULL, 10) : 100000;
	const uint64_t seconds = argc > 3 ? strtoull(argv[3], NULL, 10) : 5;
	/* A round is two switches. */
	const uint64_t part = (is_paced ? rate * seconds / 2 : rate) / PARTS;
	const uint64_t rounds = part * PARTS;
	const int depth = is_fresh ? 24 : 0;
	int there[2], back[2];
	uint64_t begin, part_begin, part_ns[PARTS];
	cpu_set_t one;
	pid_t child;

	CPU_ZERO(&one);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &one);
	sched_setaffinity(0, sizeof(one), &one);
	must(!pipe(there) && !pipe(back), "pipe");
	child = fork();
	must(child >= 0, "fork");
	if (!child) {
		close(there[1]);
		for (uint64_t i = 0; i < rounds; i++) {
			take(there[0], i, depth);
			must(write(back[1], "b", 1) == 1, "write");
		}
		_exit(0);
	}
	must(part > 0, "COUNT");
	begin = part_begin = now_ns();
	for (uint64_t i = 0; i < rounds; i++) {
		must(write(there[1], "a", 1) == 1, "write");
		take(back[0], i, depth);
		while (is_paced && now_ns() - begin < i * 2000000000ULL / rate)
			;
		if ((i + 1) % part == 0) {
			const uint64_t now = now_ns();

			part_ns[i / part] = now - part_begin;
			part_begin = now;
		}
	}
	qsort(part_ns, PARTS, sizeof(part_ns[0]), compare);
	printf("%.1f\n", (double)(part_ns[PARTS / 2 - 1] + part_ns[PARTS / 2]) / 4 / (double)part);
	waitpid(child, NULL, 0);
	return 0;
}
