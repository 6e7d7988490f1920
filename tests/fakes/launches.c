/* SPDX-License-Identifier: BSD-2-Clause */
/* launches [-c|-k] [-w] N_THREADS PER_SECOND SECONDS   Launches kernels by cuLaunchKernel, all
 * threads together so many a second, each on a stream of its own; PER_SECOND 0: as many as they
 * can.  -c: by cudaLaunchKernel of the fake libcudart.so.13; -k: by the stub of a kernel in
 * libfakekernels.so; -w: when its standard input ends, and not before.  SIGTERM ends it earlier.
 *
 * At the end one line: how many, how many a second, ns of CPU time each, and `arguments ok` when
 * the driver's checksum over all that it was given is that of what was meant.  Exit status 1 when
 * it is not, or when the driver's count is another. */
#include "cudart.h"
#include "fake_cuda.h"

#include <dlfcn.h>
#include <err.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BURST_NS 1000000ULL /* launches come in bursts, one in so long */

enum way { BY_DRIVER, BY_CUDART, BY_STUB };

struct plan {
	enum way way;
	unsigned int threads;
	double per_second; /* of one thread */
	uint64_t end_ns;
	CUcontext context;
	CUfunction function;
	__typeof__(cudaLaunchKernel) *launch;
	int (*run)(unsigned int count, unsigned int grid, unsigned int block, cudaStream_t stream);
};

struct worker {
	const struct plan *plan;
	pthread_t thread;
	unsigned int number;
	uint64_t launches, checksum, cpu_ns;
};

static const char kernel[] = "_Z9vectorAddPKfS0_Pfi";

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void check(int error, const char *what)
{
	if (error)
		errx(1, "%s: error %d", what, error);
}

static void launch_one(struct worker *worker, CUstream stream)
{
	const struct plan *plan = worker->plan;
	unsigned int n = (unsigned int)worker->launches;
	unsigned int grid[3] = {n % 1000 + 1, n % 7 + 1, worker->number + 1};
	unsigned int block[3] = {n % 32 + 1, n % 4 + 1, 2};
	uint64_t values[4] = {n, ~(uint64_t)n, worker->number, 0x123456789abcdefULL * n};
	void *params[4] = {&values[0], &values[1], &values[2], &values[3]};
	CUresult error;

	if (plan->way == BY_DRIVER)
		error = cuLaunchKernel(plan->function, grid[0], grid[1], grid[2], block[0],
				       block[1], block[2], n & 0xffff, stream, params, NULL);
	else
		error = plan->launch(plan->function, (struct dim3){grid[0], grid[1], grid[2]},
				     (struct dim3){block[0], block[1], block[2]}, params,
				     n & 0xffff, stream);
	check(error, "launch");
	worker->checksum += fake_cuda_launch_sum(grid, block, n & 0xffff, stream, params, 4);
	worker->launches++;
}

/* The stub makes its own parameters: tests/fakes/kernels.c. */
static void launch_by_stub(struct worker *worker, CUstream stream)
{
	unsigned int grid[3] = {(unsigned int)(worker->launches % 1000) + 1, 1, 1};
	unsigned int block[3] = {worker->number + 1, 1, 1};
	uint64_t values[4] = {0x1234567000, 0x1234567004, 0x1234567008, 0};
	void *params[4] = {&values[0], &values[1], &values[2], &values[3]};

	check(worker->plan->run(1, grid[0], block[0], stream), "launch");
	worker->checksum += fake_cuda_launch_sum(grid, block, 0, stream, params, 4);
	worker->launches++;
}

/* Up to the number that are due by now. */
static void burst(struct worker *worker, CUstream stream, uint64_t due)
{
	if (worker->plan->way == BY_STUB)
		while (worker->launches < due)
			launch_by_stub(worker, stream);
	else
		while (worker->launches < due)
			launch_one(worker, stream);
}

static volatile sig_atomic_t was_ended;

static void end(int number)
{
	was_ended = number;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	const struct plan *plan = worker->plan;
	uint64_t begin_ns, at_ns;
	CUstream stream;

	check(cuCtxSetCurrent(plan->context), "cuCtxSetCurrent");
	check(cuStreamCreate(&stream, 0), "cuStreamCreate");
	begin_ns = clock_ns(CLOCK_MONOTONIC);
	for (at_ns = begin_ns; at_ns < plan->end_ns && !was_ended;
	     at_ns = clock_ns(CLOCK_MONOTONIC)) {
		if (!plan->per_second) {
			burst(worker, stream, worker->launches + 1000);
			continue;
		}
		burst(worker, stream,
		      (uint64_t)((double)(at_ns - begin_ns) * plan->per_second / 1e9));
		sleep_until(at_ns + BURST_NS);
	}
	check(cuStreamSynchronize(stream), "cuStreamSynchronize");
	worker->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static void *find(const char *library, const char *symbol)
{
	void *handle = dlopen(library, RTLD_NOW);
	void *found = handle ? dlsym(handle, symbol) : NULL;

	if (!found)
		errx(1, "%s", dlerror());
	return found;
}

static void prepare(struct plan *plan)
{
	CUlibrary library;
	CUkernel handle;

	check(cuInit(0), "cuInit");
	check(cuDevicePrimaryCtxRetain(&plan->context, 0), "cuDevicePrimaryCtxRetain");
	check(cuCtxSetCurrent(plan->context), "cuCtxSetCurrent");
	check(cuLibraryLoadData(&library, "", NULL, NULL, 0, NULL, NULL, 0), "cuLibraryLoadData");
	check(cuLibraryGetKernel(&handle, library, kernel), "cuLibraryGetKernel");
	check(cuKernelGetFunction(&plan->function, handle), "cuKernelGetFunction");
	fake_cuda_set_kernel_params(kernel, 4);
	if (plan->way == BY_CUDART)
		plan->launch =
			(__typeof__(plan->launch))find("libcudart.so.13", "cudaLaunchKernel");
	if (plan->way == BY_STUB)
		plan->run =
			(__typeof__(plan->run))find("libfakekernels.so", "fakekernels_vector_add");
}

static int tell(const struct plan *plan, struct worker *workers, uint64_t began_ns)
{
	uint64_t launches = 0, checksum = 0, cpu_ns = 0;
	double seconds = (double)(clock_ns(CLOCK_MONOTONIC) - began_ns) / 1e9;
	int is_ok;

	for (unsigned int i = 0; i < plan->threads; i++) {
		launches += workers[i].launches;
		checksum += workers[i].checksum;
		cpu_ns += workers[i].cpu_ns;
	}
	is_ok = checksum == fake_cuda_checksum() &&
		launches == fake_cuda_count("cuLaunchKernel", "executed");
	printf("%llu launches, %.0f a second, %.0f ns of CPU each, arguments %s\n",
	       (unsigned long long)launches, (double)launches / seconds,
	       launches ? (double)cpu_ns / (double)launches : 0.0, is_ok ? "ok" : "not ok");
	return is_ok ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct plan plan = {.way = BY_DRIVER};
	struct worker *workers;
	uint64_t began_ns;
	int option, waits = 0;

	while ((option = getopt(argc, argv, "ckw")) >= 0) {
		plan.way = option == 'c' ? BY_CUDART : option == 'k' ? BY_STUB : plan.way;
		waits |= option == 'w';
	}
	argv += optind - 1;
	argc -= optind - 1;
	if (argc != 4)
		errx(2, "usage: launches [-c|-k] [-w] N_THREADS PER_SECOND SECONDS");
	plan.threads = (unsigned int)strtoul(argv[1], NULL, 10);
	workers = calloc(plan.threads, sizeof(*workers));
	if (!plan.threads || !workers)
		errx(2, "no threads");
	plan.per_second = strtod(argv[2], NULL) / plan.threads;
	prepare(&plan);
	signal(SIGTERM, end);
	while (waits && getchar() != EOF)
		;
	began_ns = clock_ns(CLOCK_MONOTONIC);
	plan.end_ns = began_ns + (uint64_t)(strtod(argv[3], NULL) * 1e9);
	for (unsigned int i = 0; i < plan.threads; i++) {
		workers[i] = (struct worker){.plan = &plan, .number = i};
		check(pthread_create(&workers[i].thread, NULL, work, &workers[i]), "thread");
	}
	for (unsigned int i = 0; i < plan.threads; i++)
		pthread_join(workers[i].thread, NULL);
	return tell(&plan, workers, began_ns);
}
