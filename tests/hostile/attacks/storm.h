/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that all do the same until they are killed. */
#ifndef STORM_H
#define STORM_H

#include <pthread.h>
#include <stdlib.h>

/* Starts threads, of which the caller is one that goes on by itself.  Thousands of them need small
 * stacks; there are fewer where the kernel allows no more.  threads: a number as text. */
static void storm_begin(void *(*run)(void *context), const char *threads)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	for (int i = 1; i < atoi(threads); i++)
		if (pthread_create(&thread, &attributes, run, NULL))
			break;
}

#endif
