/* SPDX-License-Identifier: BSD-2-Clause */
/* cuda   Waits for /tmp/go, calls the stand-in of libcuda (tests/fakes) from 64 threads at once and
 * then alone, makes /tmp/cuda-done and waits to be ended. */
#include "cuda_driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 64U
#define KERNELS 8U
#define TIMES 400U
#define SYNCS 20U
#define CAPTURED 100U
#define GRAPHS 10U

static CUcontext context;
static CUfunction kernel[KERNELS];

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

__attribute__((noinline)) static void launch_all(CUstream stream)
{
	for (unsigned int i = 0; i < TIMES; i++)
		check(cuLaunchKernel(kernel[i % KERNELS], 1, 2, 3, 4, 5, 6, 7, stream, NULL, NULL));
	__asm__ volatile("");
}

static void *drive_thread(void *unused)
{
	CUstream stream;

	(void)unused;
	check(cuCtxSetCurrent(context));
	check(cuStreamCreate(&stream, 0));
	launch_all(stream);
	return NULL;
}

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

int main(void)
{
	pthread_t thread[THREADS];
	FILE *done;

	prepare();
	while (access("/tmp/go", F_OK))
		usleep(10000);
	for (unsigned int i = 0; i < THREADS; i++)
		check(pthread_create(&thread[i], NULL, drive_thread, NULL));
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned int i = 0; i < SYNCS; i++) {
		check(cuStreamSynchronize(NULL));
		check(cuMemcpyHtoDAsync_v2(0, NULL, 1000, NULL));
	}
	capture();
	done = fopen("/tmp/cuda-done", "w");
	if (done)
		fclose(done);
	for (;;)
		pause();
}
