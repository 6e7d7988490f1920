/* SPDX-License-Identifier: BSD-2-Clause */
/* many_threads COUNT   So many threads sleep for a second each in two naps, all at once; prints how
 * long they slept in all, in ns. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES (64U << 10)

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static void *doze(void *slept_ns)
{
	uint64_t begin = now_ns();

	usleep(200000);
	usleep(800000);
	*(uint64_t *)slept_ns = now_ns() - begin;
	return NULL;
}

int main(int argc, char **argv)
{
	const size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	pthread_t *thread = calloc(count, sizeof(*thread));
	uint64_t *slept_ns = calloc(count, sizeof(*slept_ns)), all_ns = 0;
	pthread_attr_t attributes;

	if (!thread || !slept_ns || pthread_attr_init(&attributes) ||
	    pthread_attr_setstacksize(&attributes, STACK_BYTES))
		return 1;
	for (size_t i = 0; i < count; i++) {
		if (pthread_create(&thread[i], &attributes, doze, &slept_ns[i])) {
			perror("pthread_create");
			return 1;
		}
	}
	for (size_t i = 0; i < count; i++) {
		pthread_join(thread[i], NULL);
		all_ns += slept_ns[i];
	}
	printf("%llu\n", (unsigned long long)all_ns);
	return 0;
}
