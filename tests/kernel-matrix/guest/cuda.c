/* SPDX-License-Identifier: BSD-2-Clause */
/* cuda [SECONDS]   Waits for /tmp/go, calls the stand-in of libcuda (tests/fakes) from 64 threads
 * at once, each in a function of its own name, and then alone; writes how many kernels it launched
 * to /tmp/cuda-done, and waits to be ended.  SECONDS: the threads go on for so long, with a
 * synchronisation and a nap after each few launches. */
#include "cuda_driver.h"
#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define KERNELS 8U
#define TIMES 400U
#define SYNCS 20U
#define CAPTURED 100U
#define GRAPHS 10U
#define ROUND 10U	   /* launches between synchronisations */
#define COMPUTE_TURNS 20000U /* some 0.1 ms, for samples */
#define NAP_US 50000U

static CUcontext context;
static CUfunction kernel[KERNELS];
static atomic_ulong launched;
static double seconds;

static void check(CUresult error)
{
	if (!error)
		return;
	printf("guest: cuda: error %d\n", error);
	exit(1);
}

static void prepare(void)
{
	CUmodule module;
	char name[32];

	check(cuInit(0));
	check(cuDevicePrimaryCtxRetain(&context, 0));
	check(cuCtxSetCurrent(context));
	check(cuModuleLoadData(&module, ""));
	for (unsigned int i = 0; i < KERNELS; i++) {
		snprintf(name, sizeof(name), "_Z8kernel_%uv", i);
		check(cuModuleGetFunction(&kernel[i], module, name));
	}
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

APART void launch_all(CUstream stream, unsigned int times)
{
	for (unsigned int i = 0; i < times; i++)
		check(cuLaunchKernel(kernel[i % KERNELS], 1, 2, 3, 4, 5, 6, 7, stream, NULL, NULL));
	atomic_fetch_add(&launched, times);
	AFTER_IT();
}

APART void compute(void)
{
	for (volatile unsigned int i = 0; i < COMPUTE_TURNS;)
		i++;
	AFTER_IT();
}

APART void drive(void)
{
	const double end = now() + seconds;
	CUstream stream;

	check(cuCtxSetCurrent(context));
	check(cuStreamCreate(&stream, 0));
	if (seconds == 0)
		launch_all(stream, TIMES);
	while (now() < end) {
		launch_all(stream, ROUND);
		compute();
		check(cuStreamSynchronize(stream));
		usleep(NAP_US);
	}
	AFTER_IT();
}

#define THREAD(n)                                                                                  \
	APART void *thread_##n(void *context)                                                      \
	{                                                                                          \
		drive();                                                                           \
		AFTER_IT();                                                                        \
		return context;                                                                    \
	}
ALL(THREAD)
#define NAME(n) thread_##n,
static void *(*const functions[])(void *) = {ALL(NAME)};
#define THREADS (sizeof(functions) / sizeof(functions[0]))

/* Launches that a graph records, and the graph's. */
__attribute__((noinline)) static void capture(void)
{
	CUgraphExec instance;
	CUstream stream;
	CUgraph graph;

	check(cuStreamCreate(&stream, 0));
	check(cuStreamBeginCapture_v2(stream, 0));
	for (unsigned int i = 0; i < CAPTURED; i++)
		check(cuLaunchKernel(kernel[0], 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	check(cuStreamEndCapture(stream, &graph));
	check(cuGraphInstantiateWithFlags(&instance, graph, 0));
	for (unsigned int i = 0; i < GRAPHS; i++)
		check(cuGraphLaunch(instance, stream));
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	FILE *done;

	seconds = argc > 1 ? atof(argv[1]) : 0;
	prepare();
	while (access("/tmp/go", F_OK))
		usleep(10000);
	for (size_t i = 0; i < THREADS; i++)
		check((CUresult)pthread_create(&thread[i], NULL, functions[i], NULL));
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned int i = 0; i < SYNCS; i++) {
		check(cuStreamSynchronize(NULL));
		check(cuMemcpyHtoDAsync_v2(0, NULL, 1000, NULL));
	}
	capture();
	done = fopen("/tmp/cuda-done", "w");
	if (done) {
		fprintf(done, "%lu\n", launched);
		fclose(done);
	}
	for (;;)
		pause();
}
