/* SPDX-License-Identifier: BSD-2-Clause */
/* cuda_storm WHAT THREADS   Under the name libcuda.so.1 it is a driver of its own, and calls its
 * functions as fast as it can: `handles`: ever new kernels in ever new streams; `names`: names that
 * never end, of ever new handles, stored anywhere; `captures`: that never end; `graphs`: that hold
 * themselves; `waits`: synchronisations that are left by longjmp(), or never; `sizes`: copies whose
 * descriptions are nonsense; `children`: each hit comes from a new process. */
#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storm.h"

typedef uint64_t word;

/* Nothing is done, but each is a place of its own. */
#define DRIVER(name, result)                                                                       \
	__attribute__((noinline, used)) int name(word a, word b, word c, word d, word e, word f)   \
	{                                                                                          \
		__asm__ volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f) : "memory");  \
		return (int)(result);                                                              \
	}
DRIVER(cuLaunchKernelEx, 0)
DRIVER(cuGraphLaunch, 0)
DRIVER(cuModuleGetFunction, 0)
DRIVER(cuKernelGetFunction, 0)
DRIVER(cuModuleUnload, 0)
DRIVER(cuStreamBeginCapture_v2, 0)
DRIVER(cuStreamEndCapture, a & 1)
DRIVER(cuStreamDestroy_v2, 0)
DRIVER(cuGraphCreate, 0)
DRIVER(cuGraphAddChildGraphNode, 0)
DRIVER(cuGraphInstantiateWithFlags, 0)
DRIVER(cuEventRecord, 0)
DRIVER(cuStreamWaitEvent, 0)
DRIVER(cuMemcpy2DAsync_v2, 0)
DRIVER(cuMemcpyBatchAsync, 0)
DRIVER(cuMemcpyHtoDAsync_v2, 0)
DRIVER(cuMemAlloc_v2, 0)
DRIVER(cuMemFree_v2, 0)
DRIVER(cuCtxSetCurrent, 0)
DRIVER(cuCtxPushCurrent_v2, 0)
DRIVER(cuDevicePrimaryCtxRetain, 0)
DRIVER(cuCtxSynchronize, 0)

__attribute__((noinline, used)) int cuLaunchKernel(word f, word gx, word gy, word gz, word bx,
						   word by, word bz, word bytes, word stream,
						   void *params, void *extra)
{
	__asm__ volatile("" ::"r"(f), "r"(stream), "r"(params), "r"(extra) : "memory");
	return (int)(gx & gy & gz & bx & by & bz & bytes & 0);
}

__attribute__((noinline, used)) int cuStreamSynchronize(word stream, jmp_buf *away)
{
	if (away)
		longjmp(*away, 1);
	if (stream == 1)
		pause();
	return 0;
}

static const char *what;
static atomic_ulong count;
static char *endless; /* a page of text with nothing behind it */

static void launch(word kernel, word stream)
{
	cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

static void name(word n)
{
	word handle = n << 4 | 1, anywhere[] = {0, 1, ~0ULL, 0xffff800000000000ULL, (word)endless};

	memcpy(endless, &n, sizeof(n));
	cuModuleGetFunction((word)&handle, n, (word)endless, 0, 0, 0);
	cuKernelGetFunction((word)&handle, handle, 0, 0, 0, 0); /* stands for itself */
	cuModuleGetFunction(anywhere[n % 5], n, anywhere[(n + 1) % 5], 0, 0, 0);
	launch(handle, 0);
	if (n % 16 == 0)
		cuModuleUnload(n % 64 ? n : 0, 0, 0, 0, 0, 0);
}

static void capture(word n)
{
	word graph = n;

	cuStreamBeginCapture_v2(n << 4, n % 4, 0, 0, 0, 0);
	cuEventRecord(n << 4 | 8, n << 4, 0, 0, 0, 0);
	cuStreamWaitEvent((n - 1) << 4, n << 4 | 8, 0, 0, 0, 0);
	launch(7, n << 4);
	launch(7, (n - 1) << 4);
	if (n % 4 == 0)
		cuStreamEndCapture(n << 4, (word)&graph, 0, 0, 0, 0);
	if (n % 8 == 0)
		cuStreamDestroy_v2(n << 4, 0, 0, 0, 0, 0);
}

/* Doubles with each turn, until it overflows. */
static void graph(word n)
{
	word handle = 16 + n % 4, instance = 64 + n;

	if (n % 256 < 4)
		cuGraphCreate((word)&handle, 0, 0, 0, 0, 0);
	cuGraphAddChildGraphNode((word)&instance, handle, 0, 0, handle, 0);
	cuGraphAddChildGraphNode((word)&instance, handle, 0, 0, 16 + (n + 1) % 4, 0);
	cuGraphInstantiateWithFlags((word)&instance, handle, 0, 0, 0, 0);
	cuGraphLaunch(instance, 0, 0, 0, 0, 0);
	cuGraphLaunch(64 + n, 0, 0, 0, 0, 0);
}

static void *wait_for_ever(void *unused)
{
	cuStreamSynchronize(1, NULL);
	return unused;
}

static void waits(word n)
{
	pthread_t thread;
	jmp_buf away;

	cuCtxSetCurrent(n, 0, 0, 0, 0, 0);
	cuCtxPushCurrent_v2(n + 1, 0, 0, 0, 0, 0);
	launch(5, n);
	if (!setjmp(away))
		cuStreamSynchronize(n, &away);
	cuCtxSynchronize(0, 0, 0, 0, 0, 0);
	if (n % 512 == 0 && !pthread_create(&thread, NULL, wait_for_ever, NULL))
		pthread_detach(thread);
}

static void sizes(word n)
{
	word nonsense[32];

	memset(nonsense, (int)n, sizeof(nonsense));
	cuMemcpy2DAsync_v2((word)(n % 2 ? nonsense : (void *)n), 0, 0, 0, 0, 0);
	cuMemcpyBatchAsync(0, 0, (word)nonsense, ~0ULL >> n % 64, 0, 0);
	cuMemcpyHtoDAsync_v2(0, 0, ~0ULL >> n % 64, 0, 0, 0);
	cuLaunchKernelEx((word)endless + 4090, 3, 0, 0, 0, 0);
	cuMemAlloc_v2((word)nonsense, ~0ULL - n, 0, 0, 0, 0);
	cuMemFree_v2(n, 0, 0, 0, 0, 0);
}

static void child(word n)
{
	if (fork() == 0) {
		capture(n);
		waits(1);
		_exit(0);
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void *run(void *unused)
{
	static const struct {
		const char *name;
		void (*turn)(word n);
	} kinds[] = {{"names", name}, {"captures", capture}, {"graphs", graph},
		     {"waits", waits}, {"sizes", sizes}, {"children", child}};

	for (;;) {
		const word n = atomic_fetch_add(&count, 1);
		size_t i = 0;

		while (i < sizeof(kinds) / sizeof(kinds[0]) && strcmp(kinds[i].name, what))
			i++;
		if (i < sizeof(kinds) / sizeof(kinds[0]))
			kinds[i].turn(n);
		else
			launch(n, n);
	}
	return unused;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 1;
	what = argv[1];
	endless = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(endless + 4096, 4096);
	memset(endless, 'n', 4096);
	storm_begin(run, argv[2]);
	run(NULL);
}
