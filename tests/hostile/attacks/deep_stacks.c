/* SPDX-License-Identifier: BSD-2-Clause */
/* deep_stacks LEVELS   Works and sleeps at the bottom of as many calls, a different place each
 * time. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STACK_BYTES (1UL << 30)

static volatile unsigned long sink;

__attribute__((noinline)) static void bottom(void)
{
	for (int i = 0; i < 20000; i++)
		sink++;
	usleep(100);
}

__attribute__((noinline)) static void deeper(unsigned long left)
{
	volatile char room[64];

	room[left % sizeof(room)] = 1;
	if (left)
		deeper(left - 1);
	if (left % 1000 == 0)
		bottom();
	sink += room[0];
}

static void *run(void *levels)
{
	for (;;)
		deeper((unsigned long)levels);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (argc != 2 || pthread_attr_init(&attributes) ||
	    pthread_attr_setstacksize(&attributes, STACK_BYTES))
		return 1;
	if (pthread_create(&thread, &attributes, run, (void *)strtoul(argv[1], NULL, 10)))
		return 1;
	pthread_join(thread, NULL);
	return 0;
}
