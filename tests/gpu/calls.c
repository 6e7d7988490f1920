/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls each function that counts calls, so and so often, in one of the ways in which programs get
 * at it.  No two functions are called equally often: a function that calls another one inside shows
 * in the other one's count. */
#include "gpu.h"
#include "more_functions.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/cuda_functions.h"

#define CALLS 1000U
#define BYTES 4096U
#define QUEUE 200U /* launches and copies without a wait: queues have some 1,000 places */
#define BLOCKS 8192U

/* What the calls take. */
struct box {
	CUdeviceptr device, other;
	void *host;
	CUstream stream;
	CUevent event;
	CUcontext context;
	CUfunction function;
	CUgraphExec exec;
	struct pool *pool;
	struct cu_launch_config config;
	struct cu_copy_2d flat;
	struct cu_copy_3d deep;
	struct cu_copy_3d_peers peers;
	uint64_t ns, end;
	void *params[2];
	size_t size[2], attribute_index, failed;
	uint64_t attributes[8];
	CUdeviceptr to[2], from[2];
};
static struct box box;

/* What was allocated and not yet freed, of one kind. */
static uint64_t blocks[BLOCKS];
static size_t block_count;

enum kind { PLAIN, GIVES, TAKES }; /* memory */
struct caller {
	const char *name;
	CUresult (*call)(void *function);
	uint64_t bytes;
	enum kind kind;
};

/* X(name, arguments, bytes).  Functions that get at memory stand below.  cuMemAllocManaged is not
 * called: managed memory is left alone. */
#define SHAPE 1, 1, 1, 1, 1, 1, 0, box.stream, box.params
#define CALLERS(X)                                                                                 \
	X(cuLaunchKernel, (box.function, SHAPE, NULL), 0)                                          \
	X(cuLaunchKernelEx, (&box.config, box.function, box.params, NULL), 0)                      \
	X(cuLaunchCooperativeKernel, (box.function, SHAPE), 0)                                     \
	X(cuGraphLaunch, (box.exec, box.stream), 0)                                                \
	X(cuMemcpyAsync, (box.device, box.other, BYTES, box.stream), BYTES)                        \
	X(cuMemcpyHtoDAsync_v2, (box.device, box.host, BYTES, box.stream), BYTES)                  \
	X(cuMemcpyDtoHAsync_v2, (box.host, box.device, BYTES, box.stream), BYTES)                  \
	X(cuMemcpyDtoDAsync_v2, (box.device, box.other, BYTES, box.stream), BYTES)                 \
	X(cuMemcpyPeerAsync, (box.device, box.context, box.other, box.context, BYTES, box.stream), \
	  BYTES)                                                                                   \
	X(cuMemcpy2DAsync_v2, (&box.flat, box.stream), 64 * 16)                                    \
	X(cuMemcpy3DAsync_v2, (&box.deep, box.stream), 64 * 4 * 4)                                 \
	X(cuMemcpy3DPeerAsync, (&box.peers, box.stream), 64 * 4 * 4)                               \
	X(cuMemcpyBatchAsync,                                                                      \
	  (box.to, box.from, box.size, 2, box.attributes, &box.attribute_index, 1, &box.failed,    \
	   box.stream),                                                                            \
	  2 * BYTES)                                                                               \
	X(cuMemcpyBatchAsync_v2,                                                                   \
	  (box.to, box.from, box.size, 2, box.attributes, &box.attribute_index, 1, box.stream),    \
	  2 * BYTES)                                                                               \
	X(cuMemsetD8Async, (box.device, 1, BYTES, box.stream), BYTES)                              \
	X(cuMemsetD16Async, (box.device, 1, BYTES / 2, box.stream), BYTES)                         \
	X(cuMemsetD32Async, (box.device, 1, BYTES / 4, box.stream), BYTES)                         \
	X(cuMemsetD2D8Async, (box.device, 512, 1, 64, 16, box.stream), 64 * 16)                    \
	X(cuMemsetD2D16Async, (box.device, 512, 1, 64, 16, box.stream), 64 * 16 * 2)               \
	X(cuMemsetD2D32Async, (box.device, 512, 1, 64, 16, box.stream), 64 * 16 * 4)               \
	X(cuMemsetD8_v2, (box.device, 1, BYTES), BYTES)                                            \
	X(cuMemsetD16_v2, (box.device, 1, BYTES / 2), BYTES)                                       \
	X(cuMemsetD32_v2, (box.device, 1, BYTES / 4), BYTES)                                       \
	X(cuMemsetD2D8_v2, (box.device, 512, 1, 64, 16), 64 * 16)                                  \
	X(cuMemsetD2D16_v2, (box.device, 512, 1, 64, 16), 64 * 16 * 2)                             \
	X(cuMemsetD2D32_v2, (box.device, 512, 1, 64, 16), 64 * 16 * 4)                             \
	X(cuMemcpy, (box.device, box.other, BYTES), BYTES)                                         \
	X(cuMemcpyHtoD_v2, (box.device, box.host, BYTES), BYTES)                                   \
	X(cuMemcpyDtoH_v2, (box.host, box.device, BYTES), BYTES)                                   \
	X(cuMemcpyDtoD_v2, (box.device, box.other, BYTES), BYTES)                                  \
	X(cuMemcpyPeer, (box.device, box.context, box.other, box.context, BYTES), BYTES)           \
	X(cuMemcpy2D_v2, (&box.flat), 64 * 16)                                                     \
	X(cuMemcpy2DUnaligned_v2, (&box.flat), 64 * 16)                                            \
	X(cuMemcpy3D_v2, (&box.deep), 64 * 4 * 4)                                                  \
	X(cuMemcpy3DPeer, (&box.peers), 64 * 4 * 4)                                                \
	X(cuStreamSynchronize, (box.stream), 0)                                                    \
	X(cuCtxSynchronize, (), 0)                                                                 \
	X(cuCtxSynchronize_v2, (box.context), 0)                                                   \
	X(cuEventSynchronize, (box.event), 0)

static CUdeviceptr *next_block(void)
{
	return &blocks[block_count < BLOCKS ? block_count++ : 0];
}
static void **next_host_block(void)
{
	return (void **)(uintptr_t)next_block();
}
static CUdeviceptr last_block(void)
{
	return blocks[--block_count];
}

static size_t pitch;
/* Those that free stand behind those whose blocks they free: X(name, arguments, bytes, kind). */
#define MEMORY_CALLERS(X)                                                                          \
	X(cuMemAlloc_v2, (next_block(), BYTES), BYTES, GIVES)                                      \
	X(cuMemAllocPitch_v2, (next_block(), &pitch, 64, 16, 4), 64 * 16, GIVES)                   \
	X(cuMemFree_v2, (last_block()), 0, TAKES)                                                  \
	X(cuMemAllocAsync, (next_block(), BYTES, box.stream), BYTES, GIVES)                        \
	X(cuMemAllocFromPoolAsync, (next_block(), BYTES, box.pool, box.stream), BYTES, GIVES)      \
	X(cuMemFreeAsync, (last_block(), box.stream), 0, TAKES)                                    \
	X(cuMemAllocHost_v2, (next_host_block(), BYTES), BYTES, GIVES)                             \
	X(cuMemHostAlloc, (next_host_block(), BYTES, 0), BYTES, GIVES)                             \
	X(cuMemFreeHost, ((void *)(uintptr_t)last_block()), 0, TAKES)

#define DEFINE_CALLER(name, arguments, ...)                                                        \
	static CUresult call_##name(void *function)                                                \
	{                                                                                          \
		return ((__typeof__(name) *)function)arguments;                                    \
	}
CALLERS(DEFINE_CALLER)
MEMORY_CALLERS(DEFINE_CALLER)

static const struct caller callers[] = {
#define CALLER(name, arguments, bytes) {#name, call_##name, bytes, PLAIN},
	CALLERS(CALLER)
#define MEMORY_CALLER(name, arguments, bytes, kind) {#name, call_##name, bytes, kind},
		MEMORY_CALLERS(MEMORY_CALLER)};
#define CALLER_COUNT (sizeof(callers) / sizeof(callers[0]))

/* ---------------------------------------------------------------- the box */

static void fill_copies(void)
{
	box.flat = (struct cu_copy_2d){.src_type = CU_MEMORYTYPE_HOST,
				       .src_host = box.host,
				       .src_pitch = 64,
				       .dst_type = CU_MEMORYTYPE_DEVICE,
				       .dst_device = box.device,
				       .dst_pitch = 512,
				       .width_bytes = 64,
				       .height = 16};
	box.deep = (struct cu_copy_3d){.src_type = CU_MEMORYTYPE_HOST,
				       .src_host = box.host,
				       .src_pitch = 64,
				       .src_height = 4,
				       .dst_type = CU_MEMORYTYPE_DEVICE,
				       .dst_device = box.device,
				       .dst_pitch = 64,
				       .dst_height = 4,
				       .width_bytes = 64,
				       .height = 4,
				       .depth = 4};
	box.peers = (struct cu_copy_3d_peers){.src_type = CU_MEMORYTYPE_DEVICE,
					      .src_device = box.other,
					      .src_context = box.context,
					      .src_pitch = 64,
					      .src_height = 4,
					      .dst_type = CU_MEMORYTYPE_DEVICE,
					      .dst_device = box.device,
					      .dst_context = box.context,
					      .dst_pitch = 64,
					      .dst_height = 4,
					      .width_bytes = 64,
					      .height = 4,
					      .depth = 4};
	box.attributes[0] = 1; /* CUmemcpyAttributes: in the order of the stream */
	for (int i = 0; i < 2; i++) {
		box.size[i] = BYTES;
		box.to[i] = box.device + (uint64_t)i * BYTES;
		box.from[i] = box.other + (uint64_t)i * BYTES;
	}
}

/* A graph of one kernel. */
static void make_graph(void)
{
	CUgraph graph;

	gpu_check(CU(cuStreamBeginCapture_v2)(box.stream, 2), "cuStreamBeginCapture");
	gpu_launch(box.function, box.stream, 0);
	gpu_check(CU(cuStreamEndCapture)(box.stream, &graph), "cuStreamEndCapture");
	gpu_check(CU(cuGraphInstantiateWithFlags)(&box.exec, graph, 0), "cuGraphInstantiate");
}

/* NULL, which no call takes, where the driver has none. */
static void find_pool(void)
{
	CUdevice device;

	gpu_check(CU(cuCtxGetDevice)(&device), "cuCtxGetDevice");
	if (gpu_find("cuDeviceGetDefaultMemPool"))
		CU(cuDeviceGetDefaultMemPool)(&box.pool, device);
}

static void make_box(void)
{
	box.context = gpu_context();
	box.stream = gpu_stream();
	box.function = gpu_function("pyprofd_spin");
	box.params[0] = &box.ns;
	box.params[1] = &box.end;
	box.config = (struct cu_launch_config){
		.grid = {1, 1, 1}, .block = {1, 1, 1}, .stream = box.stream};
	gpu_check(CU(cuMemAlloc_v2)(&box.device, 4UL * BYTES), "cuMemAlloc");
	gpu_check(CU(cuMemAlloc_v2)(&box.other, 4UL * BYTES), "cuMemAlloc");
	gpu_check(CU(cuMemHostAlloc)(&box.host, 4UL * BYTES, 0), "cuMemHostAlloc");
	gpu_check(CU(cuEventCreate)(&box.event, 0), "cuEventCreate");
	gpu_check(CU(cuEventRecord)(box.event, box.stream), "cuEventRecord");
	find_pool();
	make_graph();
	fill_copies();
}

/* ---------------------------------------------------------------- ways */

static void *find_twin(const char *name)
{
	char twin[160];
	void *found;

	snprintf(twin, sizeof(twin), "%s_ptsz", name);
	found = gpu_find(twin);
	if (found)
		return found;
	snprintf(twin, sizeof(twin), "%s_ptds", name);
	return gpu_find(twin);
}

/* NULL: this way leads to none.  cuGetProcAddress gives the newest version of a name; where that is
 * another one than ours, its parameters may be others, too. */
static void *find_by(const char *way, const char *name, const char *base)
{
	const bool is_twin = !strcmp(way, "twin") || !strcmp(way, "address-twin");
	void *plain = gpu_find(name), *twin = find_twin(name), *found;

	if (strncmp(way, "address", strlen("address")))
		return is_twin ? twin : plain;
	found = gpu_proc_address(base, gpu_version(),
				 is_twin ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : 0);
	return found == plain || found == twin ? found : NULL;
}

struct plan {
	const struct caller *caller;
	void *function;
	char label[64];
	unsigned int times;
};
static struct plan plans[CALLER_COUNT];
static size_t plan_count;

/* One call of each, before it counts, so that what does not work is known. */
static void try_call(struct plan *plan)
{
	const size_t before = block_count;
	CUresult error;

	/* Its blocks are as many as there are. */
	if (plan->caller->kind == TAKES) {
		while (block_count)
			gpu_check(plan->caller->call(plan->function), plan->caller->name);
		return;
	}
	error = plan->caller->call(plan->function);
	if (!error)
		return;
	printf("skipped\t%s\t%d\n", plan->caller->name, error);
	block_count = before;
	plan_count--;
}

static const struct caller *find_caller(const char *name)
{
	for (size_t i = 0; i < CALLER_COUNT; i++)
		if (!strcmp(callers[i].name, name))
			return &callers[i];
	return NULL;
}

static void plan_one(const char *way, size_t api)
{
	const struct cuda_function *function = cuda_function_get(api);
	const struct caller *caller = find_caller(function->name);
	struct plan *plan = &plans[plan_count];

	if (function->library != CUDA_DRIVER || function->site.does != PP_CUDA_CALL)
		return;
	cuda_function_label(api, plan->label);
	if (!caller) {
		printf("uncalled\t%s\n", function->name);
		return;
	}
	plan->function = find_by(way, function->name, plan->label);
	if (!plan->function)
		return;
	plan->caller = caller;
	plan->times = CALLS + (unsigned int)plan_count;
	plan_count++;
	try_call(plan);
}

/* In the order of `callers`: blocks are freed by what follows their allocation. */
static void make_plans(const char *way)
{
	for (size_t i = 0; i < CALLER_COUNT; i++)
		for (size_t api = 0; api < cuda_function_count(); api++)
			if (!strcmp(cuda_function_get(api)->name, callers[i].name))
				plan_one(way, api);
	for (size_t api = 0; api < cuda_function_count(); api++)
		if (!find_caller(cuda_function_get(api)->name))
			plan_one(way, api);
	gpu_await(box.stream);
}

/* ---------------------------------------------------------------- calls */

static void call_often(struct plan *plan)
{
	const bool takes = plan->caller->kind == TAKES;

	if (takes)
		plan->times = (unsigned int)block_count;
	for (unsigned int i = 0; i < plan->times; i++) {
		gpu_check(plan->caller->call(plan->function), plan->caller->name);
		if (i % QUEUE == QUEUE - 1)
			gpu_await(box.stream);
	}
	gpu_await(box.stream);
	printf("expect\t%d\t%s\t%u\t%llu\n", (int)getpid(), plan->label, plan->times,
	       (unsigned long long)(plan->times * plan->caller->bytes));
}

/* ns of a launch, the best of some rounds. */
static double launch_ns(unsigned int *ret_launches)
{
	double best = 1e9;

	for (unsigned int round = 0; round < 10; round++) {
		const uint64_t begun_ns = gpu_now_ns();
		double ns;

		for (unsigned int i = 0; i < QUEUE; i++)
			gpu_launch(box.function, box.stream, 0);
		ns = (double)(gpu_now_ns() - begun_ns) / QUEUE;
		best = ns < best ? ns : best;
		gpu_await(box.stream);
		*ret_launches += QUEUE;
	}
	return best;
}

int gpu_calls(const char *way)
{
	unsigned int launches = 0;
	double before;

	gpu_open();
	gpu_module();
	make_box();
	make_plans(way);
	before = launch_ns(&launches);
	gpu_sites_await();
	launches = 0;
	printf("launch\t%.0f\t%.0f\n", before, launch_ns(&launches));
	printf("expect\t%d\tcuLaunchKernel\t%u\t0\n", (int)getpid(), launches);
	for (size_t i = 0; i < plan_count; i++)
		call_often(&plans[i]);
	gpu_sites_await_end();
	return 0;
}
