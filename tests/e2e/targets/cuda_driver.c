/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for libcuda.so.1 where no GPU is: names and parameters of cuda.h, counted by itself.
 * Kernels are handles from 0x7000 on, by the last digits of their names. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KERNELS 64
#define FIRST 0x7000UL
#define WAIT_NS 2000000

/* What the tests read. */
uint64_t fake_launches[KERNELS], fake_graphs, fake_h2d_bytes, fake_h2d_calls, fake_d2h_bytes,
	fake_d2h_calls, fake_2d_bytes, fake_fill_bytes, fake_alloc_bytes, fake_allocs, fake_frees,
	fake_syncs, fake_sync_ns, fake_checksum;

static void add(uint64_t *counter, uint64_t value)
{
	__atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void wait_ns(uint64_t ns)
{
	const struct timespec time = {.tv_nsec = (long)ns};

	nanosleep(&time, NULL);
}

/* The sum of all parameters of all launches: a probe that changes one is seen. */
static int launch(uintptr_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		  unsigned by, unsigned bz, unsigned shared, void *stream)
{
	add(&fake_launches[(function - FIRST) / 16 % KERNELS], 1);
	add(&fake_checksum, function + gx + 2 * gy + 3 * gz + 4 * bx + 5 * by + 6 * bz +
				    7 * shared + 8 * (uintptr_t)stream);
	return 0;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		   unsigned bz, unsigned shared, void *stream, void **parameters, void **extra)
{
	(void)parameters, (void)extra;
	return launch((uintptr_t)f, gx, gy, gz, bx, by, bz, shared, stream);
}

int cuLaunchKernel_ptsz(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
			unsigned bz, unsigned shared, void *stream, void **parameters, void **extra)
{
	(void)parameters, (void)extra;
	return launch((uintptr_t)f, gx, gy, gz, bx, by, bz, shared + 1, stream);
}

int cuGraphLaunch(void *graph, void *stream)
{
	(void)graph, (void)stream;
	add(&fake_graphs, 1);
	return 0;
}

int cuMemcpyHtoDAsync_v2(uintptr_t to, const void *from, size_t size, void *stream)
{
	(void)to, (void)from, (void)stream;
	add(&fake_h2d_calls, 1);
	add(&fake_h2d_bytes, size);
	return 0;
}

int cuMemcpyDtoH_v2(void *to, uintptr_t from, size_t size)
{
	(void)to, (void)from;
	wait_ns(WAIT_NS / 4);
	add(&fake_d2h_calls, 1);
	add(&fake_d2h_bytes, size);
	return 0;
}

/* CUDA_MEMCPY2D: 16 source's type, 72 destination's, 112 width, 120 height. */
int cuMemcpy2DAsync_v2(const char *copy, void *stream)
{
	size_t size[2];

	(void)stream;
	memcpy(size, copy + 112, sizeof(size));
	add(&fake_2d_bytes, size[0] * size[1]);
	return 0;
}

int cuMemsetD32Async(uintptr_t to, unsigned value, size_t count, void *stream)
{
	(void)to, (void)value, (void)stream;
	add(&fake_fill_bytes, 4 * count);
	return 0;
}

int cuMemAlloc_v2(uintptr_t *ret, size_t size)
{
	*ret = 0x200000000UL + size;
	add(&fake_alloc_bytes, size);
	add(&fake_allocs, 1);
	return 0;
}

int cuMemFree_v2(uintptr_t at)
{
	(void)at;
	add(&fake_frees, 1);
	return 0;
}

int cuStreamSynchronize(void *stream)
{
	const uint64_t began_ns = now_ns();

	(void)stream;
	wait_ns(WAIT_NS);
	add(&fake_syncs, 1);
	add(&fake_sync_ns, now_ns() - began_ns);
	return 0;
}
/* Twins at one address are one function. */
int cuStreamSynchronize_ptsz(void *stream) __attribute__((alias("cuStreamSynchronize")));

int cuModuleGetFunction(void **ret, void *module, const char *name)
{
	const char *digits = name + strlen(name);

	(void)module;
	while (digits > name && digits[-1] >= '0' && digits[-1] <= '9')
		digits--;
	*ret = (void *)(FIRST + 16UL * (unsigned long)(atoi(digits) % KERNELS));
	return 0;
}

int cuKernelGetFunction(void **ret, void *kernel)
{
	*ret = (char *)kernel + 8;
	return 0;
}

int cuDevicePrimaryCtxRetain(void **ret, int device)
{
	*ret = (void *)(0x9000UL + 16UL * (unsigned long)device);
	return 0;
}

int cuCtxSetCurrent(void *context)
{
	(void)context;
	return 0;
}

/* ---- what a program would do ---- */

void fake_drive(unsigned kernels, unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		cuLaunchKernel((void *)(FIRST + 16UL * (i % kernels)), 1, 2, 3, 4, 5, 6, 7,
			       (void *)8, NULL, NULL);
}

struct driving {
	unsigned kernels, times;
};

static void *drive_thread(void *context)
{
	const struct driving *driving = context;

	fake_drive(driving->kernels, driving->times);
	return NULL;
}

void fake_drive_threads(unsigned threads, unsigned kernels, unsigned times)
{
	struct driving driving = {kernels, times};
	pthread_t *thread = calloc(threads, sizeof(*thread));

	for (unsigned i = 0; thread && i < threads; i++)
		pthread_create(&thread[i], NULL, drive_thread, &driving);
	for (unsigned i = 0; thread && i < threads; i++)
		pthread_join(thread[i], NULL);
	free(thread);
}
