/* SPDX-License-Identifier: BSD-2-Clause */
/* probed CALLS SECONDS   Once /tmp/go is there, 64 threads, each in a function of its own name,
 * call probed_call() CALLS times; then they go on in probed_again() for so many seconds.  Prints
 * the number of the counted calls. */
#include "threads.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long calls;
static double seconds;

APART int probed_call(int depth)
{
	int result = 1;

	if (depth > 0)
		result += probed_call(depth - 1);
	AFTER_IT();
	return result;
}

/* Not counted: for stacks that are looked at while many threads are hit.  They wait inside: an
 * emulated machine has no time for all of them to compute. */
APART int probed_again(int depth)
{
	int result = 1;

	if (depth > 0)
		result += probed_again(depth - 1);
	else
		usleep(1000000);
	AFTER_IT();
	return result;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

#define THREAD(n)                                                                                  \
	APART void *thread_##n(void *context)                                                      \
	{                                                                                          \
		double end;                                                                        \
		for (long i = 0; i < calls; i++)                                                   \
			probed_call(2);                                                            \
		for (end = now() + seconds; now() < end;)                                          \
			probed_again(4);                                                           \
		AFTER_IT();                                                                        \
		return context;                                                                    \
	}
ALL(THREAD)
#define NAME(n) thread_##n,
static void *(*const functions[])(void *) = {ALL(NAME)};
#define COUNT (sizeof(functions) / sizeof(functions[0]))

int main(int argc, char **argv)
{
	pthread_t thread[COUNT];

	calls = argc > 1 ? atol(argv[1]) : 100;
	seconds = argc > 2 ? atof(argv[2]) : 1;
	while (access("/tmp/go", F_OK))
		usleep(10000);
	for (size_t i = 0; i < COUNT; i++)
		if (pthread_create(&thread[i], NULL, functions[i], NULL))
			return 1;
	for (size_t i = 0; i < COUNT; i++)
		pthread_join(thread[i], NULL);
	printf("%ld\n", 3 * calls * (long)COUNT);
	fflush(stdout);
	pause();
	return 0;
}
