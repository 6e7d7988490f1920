/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that knows what it has the device do: kernels by name, copies, waits, a graph; and one
 * that knows when its thread ran while nothing was queued. */
#include "gpu.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LATE 300U
#define EARLY 200U
#define BY_LIBRARY 100U
#define COPIES 40U
#define COPY_BYTES 65536U
#define WAITS 50U
#define WAIT_NS 4000000U
#define RECORDED 7U
#define GRAPH_LAUNCHES 20U

/* A round of gpu_drained(): a kernel, of which the thread computes for a part and waits for the
 * rest, and after that it computes while nothing is queued. */
#define ROUNDS 40U
#define KERNEL_NS 30000000U
#define QUEUED_NS 15000000U
#define DRAINED_NS 20000000U
#define LAST_NS 2000000000U

static int pid(void)
{
	return (int)getpid();
}

static void launch_kernels(CUstream stream, CUfunction function, const char *name,
			   unsigned int times)
{
	for (unsigned int i = 0; i < times; i++)
		gpu_launch(function, stream, 1000);
	gpu_await(stream);
	printf("kernel\t%d\t%s\t%u\n", pid(), name, times);
}

/* A handle of a library's kernel, as runtimes have them since CUDA 12. */
static CUfunction library_function(void)
{
	CUfunction function;
	CUlibrary library;
	CUkernel kernel;

	gpu_check(CU(cuLibraryLoadData)(&library, gpu_ptx(), NULL, NULL, 0, NULL, NULL, 0),
		  "cuLibraryLoadData");
	gpu_check(CU(cuLibraryGetKernel)(&kernel, library, "pyprofd_library"),
		  "cuLibraryGetKernel");
	gpu_check(CU(cuKernelGetFunction)(&function, kernel), "cuKernelGetFunction");
	return function;
}

static void copy(CUstream stream, CUdeviceptr device, void *host)
{
	uint64_t to = 0, from = 0;

	for (unsigned int i = 0; i < COPIES; i++) {
		gpu_check(CU(cuMemcpyHtoDAsync_v2)(device, host, COPY_BYTES + i, stream),
			  "cuMemcpyHtoDAsync");
		to += COPY_BYTES + i;
		gpu_check(CU(cuMemcpyDtoH_v2)(host, device, COPY_BYTES - i), "cuMemcpyDtoH");
		from += COPY_BYTES - i;
	}
	gpu_await(stream);
	printf("bytes\t%d\tcuMemcpyHtoDAsync\tHtoD\t%llu\n", pid(), (unsigned long long)to);
	printf("bytes\t%d\tcuMemcpyDtoH\tDtoH\t%llu\n", pid(), (unsigned long long)from);
}

/* What the thread itself sees of its waits. */
static void wait_for_kernels(CUstream stream, CUfunction function)
{
	__typeof__(cuStreamSynchronize) *synchronize = CU(cuStreamSynchronize);
	uint64_t ns = 0;

	for (unsigned int i = 0; i < WAITS; i++) {
		uint64_t begun_ns;

		gpu_launch(function, stream, WAIT_NS);
		begun_ns = gpu_now_ns();
		gpu_check(synchronize(stream), "cuStreamSynchronize");
		ns += gpu_now_ns() - begun_ns;
	}
	printf("wait\t%d\tcuStreamSynchronize\t%u\t%llu\n", pid(), WAITS, (unsigned long long)ns);
	printf("kernel\t%d\tpyprofd_spin\t%u\n", pid(), WAITS);
}

static void run_graph(CUstream stream, CUfunction function)
{
	CUgraphExec exec;
	CUgraph graph;

	gpu_check(CU(cuStreamBeginCapture_v2)(stream, 2), "cuStreamBeginCapture");
	for (unsigned int i = 0; i < RECORDED; i++)
		gpu_launch(function, stream, 1000);
	gpu_check(CU(cuStreamEndCapture)(stream, &graph), "cuStreamEndCapture");
	gpu_check(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0), "cuGraphInstantiate");
	for (unsigned int i = 0; i < GRAPH_LAUNCHES; i++)
		gpu_check(CU(cuGraphLaunch)(exec, stream), "cuGraphLaunch");
	gpu_await(stream);
	printf("graph\t%d\tpyprofd_graph\t%u\t%u\n", pid(), RECORDED, GRAPH_LAUNCHES);
}

int gpu_truth(void)
{
	CUfunction late, early, by_library, in_graph;
	CUdeviceptr device;
	CUstream stream;
	void *host;

	gpu_open();
	stream = gpu_stream();
	late = gpu_function("pyprofd_late");
	gpu_check(CU(cuMemAlloc_v2)(&device, 2UL * COPY_BYTES), "cuMemAlloc");
	gpu_check(CU(cuMemHostAlloc)(&host, 2UL * COPY_BYTES, 0), "cuMemHostAlloc");
	gpu_launch(late, stream, 1000);
	gpu_await(stream);
	printf("late\t%d\t%p\n", pid(), (void *)late);
	gpu_sites_await();
	early = gpu_function("pyprofd_spin");
	by_library = library_function();
	in_graph = gpu_function("pyprofd_graph");
	launch_kernels(stream, late, "pyprofd_late", LATE);
	launch_kernels(stream, early, "pyprofd_spin", EARLY);
	launch_kernels(stream, by_library, "pyprofd_library", BY_LIBRARY);
	copy(stream, device, host);
	wait_for_kernels(stream, early);
	run_graph(stream, in_graph);
	gpu_sites_await_end();
	return 0;
}

/* ---------------------------------------------------------------- drained */

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Returns how much CPU time it took: others may have the CPU, too. */
static uint64_t compute(uint64_t ns)
{
	const uint64_t begun_ns = gpu_now_ns(), begun_cpu_ns = cpu_ns();
	volatile unsigned int sum = 0;

	while (gpu_now_ns() - begun_ns < ns)
		for (unsigned int i = 0; i < 1000; i++)
			sum += i;
	return cpu_ns() - begun_cpu_ns;
}

struct round {
	CUevent begin, end;
};

/* How long the device had nothing to do between the kernels, by its own clock. */
static double idle_ms(const struct round *rounds)
{
	double sum = 0;

	for (unsigned int i = 1; i <= ROUNDS; i++) {
		float ms = 0;

		gpu_check(CU(cuEventElapsedTime)(&ms, rounds[i - 1].end, rounds[i].begin),
			  "cuEventElapsedTime");
		sum += (double)ms;
	}
	return sum;
}

int gpu_drained(void)
{
	__typeof__(cuStreamSynchronize) *synchronize;
	static struct round rounds[ROUNDS + 1];
	uint64_t queued_ns = 0, wait_ns = 0, drained_ns = 0, free_ns = 0, free_since_ns = 0;
	CUfunction function;
	CUstream stream;

	gpu_open();
	synchronize = CU(cuStreamSynchronize);
	stream = gpu_stream();
	function = gpu_function("pyprofd_spin");
	for (unsigned int i = 0; i <= ROUNDS; i++) {
		gpu_check(CU(cuEventCreate)(&rounds[i].begin, 0), "cuEventCreate");
		gpu_check(CU(cuEventCreate)(&rounds[i].end, 0), "cuEventCreate");
	}
	gpu_sites_await();
	/* Who came later knows of no stream's queue until the context was synchronized once. */
	gpu_check(CU(cuCtxSynchronize)(), "cuCtxSynchronize");
	for (unsigned int i = 0; i <= ROUNDS; i++) {
		uint64_t begun_ns;

		gpu_check(CU(cuEventRecord)(rounds[i].begin, stream), "cuEventRecord");
		free_ns += free_since_ns ? gpu_now_ns() - free_since_ns : 0;
		/* Something is queued when pyprofd goes. */
		gpu_launch(function, stream, i < ROUNDS ? KERNEL_NS : LAST_NS);
		if (i == ROUNDS)
			break;
		gpu_check(CU(cuEventRecord)(rounds[i].end, stream), "cuEventRecord");
		queued_ns += compute(QUEUED_NS);
		begun_ns = gpu_now_ns();
		gpu_check(synchronize(stream), "cuStreamSynchronize");
		free_since_ns = gpu_now_ns();
		wait_ns += free_since_ns - begun_ns;
		drained_ns += compute(DRAINED_NS);
	}
	gpu_sleep_ns(KERNEL_NS);
	printf("state\t%d\t%llu\t%llu\t%llu\t%.3f\t%.3f\t%u\n", pid(),
	       (unsigned long long)queued_ns, (unsigned long long)wait_ns,
	       (unsigned long long)drained_ns, (double)free_ns / 1e6, idle_ms(rounds), ROUNDS);
	gpu_sites_await_end();
	return 0;
}
