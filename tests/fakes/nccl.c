/* SPDX-License-Identifier: BSD-2-Clause */
/* A fake libnccl.so.2, with cudart in itself.  Collectives are counted, and launch a kernel that
 * NCCL has a name for; those of a group launch one together when it ends.  Nothing is sent: ranks
 * know nothing of each other.  $FAKE_NCCL_TRUTH: a file for the counters as JSON when the process
 * ends. */
#include "cudart.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NCCL_SUCCESS = 0, NCCL_INVALID_ARGUMENT = 4, NCCL_INVALID_USAGE = 5 };

struct nccl_comm {
	int ranks, rank, device;
};
struct nccl_unique_id {
	char bytes[128];
};

#define NCCL_CALLS(CALL)                                                                           \
	CALL(ncclAllReduce)                                                                        \
	CALL(ncclAllGather)                                                                        \
	CALL(ncclReduceScatter)                                                                    \
	CALL(ncclBroadcast)                                                                        \
	CALL(ncclReduce)                                                                           \
	CALL(ncclSend)                                                                             \
	CALL(ncclRecv)                                                                             \
	CALL(ncclGroupStart)                                                                       \
	CALL(ncclGroupEnd)                                                                         \
	CALL(ncclCommInitRank)                                                                     \
	CALL(ncclCommDestroy)
enum call {
#define CALL(name) CALL_##name,
	NCCL_CALLS(CALL)
#undef CALL
		CALL_COUNT
};
static const char *const call_name[] = {
#define CALL(name) #name,
	NCCL_CALLS(CALL)
#undef CALL
};
static struct {
	_Atomic uint64_t calls, bytes, kernels;
} counts[CALL_COUNT];

static _Thread_local struct {
	int depth;
	enum call last;
	int is_pending;
	cudaStream_t stream;
} group;

int ncclGetVersion(int *ret_version);
const char *ncclGetErrorString(int error);
int ncclGetUniqueId(struct nccl_unique_id *ret_id);
int ncclCommInitRank(struct nccl_comm **ret_comm, int ranks, struct nccl_unique_id id, int rank);
int ncclCommDestroy(struct nccl_comm *comm);
int ncclCommCount(const struct nccl_comm *comm, int *ret_count);
int ncclCommUserRank(const struct nccl_comm *comm, int *ret_rank);
int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op,
		  struct nccl_comm *comm, cudaStream_t stream);
int ncclReduce(const void *send, void *recv, size_t count, int type, int op, int root,
	       struct nccl_comm *comm, cudaStream_t stream);
int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root,
		  struct nccl_comm *comm, cudaStream_t stream);
int ncclAllGather(const void *send, void *recv, size_t count, int type, struct nccl_comm *comm,
		  cudaStream_t stream);
int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op,
		      struct nccl_comm *comm, cudaStream_t stream);
int ncclSend(const void *send, size_t count, int type, int peer, struct nccl_comm *comm,
	     cudaStream_t stream);
int ncclRecv(void *recv, size_t count, int type, int peer, struct nccl_comm *comm,
	     cudaStream_t stream);
int ncclGroupStart(void);
int ncclGroupEnd(void);
/* A counter of a function: calls, bytes (count by the type's size), kernels.  UINT64_MAX: no such
 * one. */
uint64_t fake_nccl_count(const char *name, const char *what);

/* ---------------------------------------------------------------- counters */

static size_t size_of(int type)
{
	static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

	return type >= 0 && (size_t)type < sizeof(sizes) / sizeof(sizes[0]) ? sizes[type] : 0;
}

uint64_t fake_nccl_count(const char *name, const char *what)
{
	for (unsigned int i = 0; i < CALL_COUNT; i++) {
		if (strcmp(call_name[i], name))
			continue;
		if (!strcmp(what, "calls"))
			return counts[i].calls;
		if (!strcmp(what, "bytes"))
			return counts[i].bytes;
		if (!strcmp(what, "kernels"))
			return counts[i].kernels;
	}
	return UINT64_MAX;
}

__attribute__((destructor)) static void write_truth(void)
{
	const char *path = getenv("FAKE_NCCL_TRUTH");
	FILE *file = path ? fopen(path, "we") : NULL;

	if (!file)
		return;
	for (unsigned int i = 0; i < CALL_COUNT; i++)
		fprintf(file, "%s\"%s\": {\"calls\": %llu, \"bytes\": %llu, \"kernels\": %llu}",
			i ? ",\n" : "{", call_name[i], (unsigned long long)counts[i].calls,
			(unsigned long long)counts[i].bytes, (unsigned long long)counts[i].kernels);
	fputs("}\n", file);
	fclose(file);
}

/* ---------------------------------------------------------------- kernels */

/* A kernel's host function is only an address here. */
static char host_function[CALL_COUNT];
static const char *const kernel_name[CALL_COUNT] = {
	[CALL_ncclAllReduce] = "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL"
			       "24ncclDevKernelArgsStorageILm4096EE",
	[CALL_ncclAllGather] = "_Z31ncclDevKernel_AllGather_RING_LL"
			       "24ncclDevKernelArgsStorageILm4096EE",
	[CALL_ncclReduceScatter] = "_Z43ncclDevKernel_ReduceScatter_Sum_f32_RING_LL"
				   "24ncclDevKernelArgsStorageILm4096EE",
	[CALL_ncclBroadcast] = "_Z31ncclDevKernel_Broadcast_RING_LL"
			       "24ncclDevKernelArgsStorageILm4096EE",
	[CALL_ncclReduce] = "_Z36ncclDevKernel_Reduce_Sum_f32_RING_LL"
			    "24ncclDevKernelArgsStorageILm4096EE",
	[CALL_ncclSend] = "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE",
	[CALL_ncclRecv] = "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE",
};

__attribute__((constructor)) static void register_all(void)
{
	static const char fatbin[16] = "a fake's code";
	void **binary = __cudaRegisterFatBinary((void *)(uintptr_t)fatbin);

	for (unsigned int i = 0; i < CALL_COUNT; i++)
		if (kernel_name[i])
			__cudaRegisterFunction(binary, &host_function[i],
					       (char *)(uintptr_t)kernel_name[i], kernel_name[i],
					       -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(binary);
}

/* Without a driver there is no kernel, only the count. */
static int launch(enum call call, cudaStream_t stream)
{
	void *args[] = {NULL};
	struct cudart_launch_config config = {
		.grid = {24, 1, 1}, .block = {512, 1, 1}, .stream = stream};
	int error = cudaLaunchKernelExC(&config, &host_function[call], args);

	if (!error)
		counts[call].kernels++;
	return error && error != cudaErrorInsufficientDriver ? 1 : NCCL_SUCCESS;
}

__attribute__((noinline)) static int collective(enum call call, size_t count, int type,
						const struct nccl_comm *comm, cudaStream_t stream)
{
	counts[call].calls++;
	if (!comm || !size_of(type))
		return NCCL_INVALID_ARGUMENT;
	counts[call].bytes += count * size_of(type);
	if (!group.depth)
		return launch(call, stream);
	group.is_pending = 1;
	group.last = call;
	group.stream = stream;
	return NCCL_SUCCESS;
}

/* ---------------------------------------------------------------- entry points */

#pragma GCC diagnostic ignored "-Wunused-parameter"

int ncclGetVersion(int *ret_version)
{
	*ret_version = 22809;
	return NCCL_SUCCESS;
}

const char *ncclGetErrorString(int error)
{
	return error ? "a fake's error" : "no error";
}

int ncclGetUniqueId(struct nccl_unique_id *ret_id)
{
	memset(ret_id, 'f', sizeof(*ret_id));
	return NCCL_SUCCESS;
}

int ncclCommInitRank(struct nccl_comm **ret_comm, int ranks, struct nccl_unique_id id, int rank)
{
	struct nccl_comm *comm;

	counts[CALL_ncclCommInitRank].calls++;
	if (ranks <= 0 || rank < 0 || rank >= ranks)
		return NCCL_INVALID_ARGUMENT;
	comm = calloc(1, sizeof(*comm));
	if (!comm)
		return 1;
	comm->ranks = ranks;
	comm->rank = rank;
	cudaGetDevice(&comm->device);
	*ret_comm = comm;
	return NCCL_SUCCESS;
}

int ncclCommDestroy(struct nccl_comm *comm)
{
	counts[CALL_ncclCommDestroy].calls++;
	free(comm);
	return NCCL_SUCCESS;
}

int ncclCommCount(const struct nccl_comm *comm, int *ret_count)
{
	*ret_count = comm->ranks;
	return NCCL_SUCCESS;
}

int ncclCommUserRank(const struct nccl_comm *comm, int *ret_rank)
{
	*ret_rank = comm->rank;
	return NCCL_SUCCESS;
}

int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op,
		  struct nccl_comm *comm, cudaStream_t stream)
{
	return collective(CALL_ncclAllReduce, count, type, comm, stream);
}

int ncclReduce(const void *send, void *recv, size_t count, int type, int op, int root,
	       struct nccl_comm *comm, cudaStream_t stream)
{
	return collective(CALL_ncclReduce, count, type, comm, stream);
}

int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root,
		  struct nccl_comm *comm, cudaStream_t stream)
{
	return collective(CALL_ncclBroadcast, count, type, comm, stream);
}

int ncclAllGather(const void *send, void *recv, size_t count, int type, struct nccl_comm *comm,
		  cudaStream_t stream)
{
	return collective(CALL_ncclAllGather, count, type, comm, stream);
}

int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op,
		      struct nccl_comm *comm, cudaStream_t stream)
{
	return collective(CALL_ncclReduceScatter, count, type, comm, stream);
}

int ncclSend(const void *send, size_t count, int type, int peer, struct nccl_comm *comm,
	     cudaStream_t stream)
{
	return collective(CALL_ncclSend, count, type, comm, stream);
}

int ncclRecv(void *recv, size_t count, int type, int peer, struct nccl_comm *comm,
	     cudaStream_t stream)
{
	return collective(CALL_ncclRecv, count, type, comm, stream);
}

int ncclGroupStart(void)
{
	counts[CALL_ncclGroupStart].calls++;
	group.depth++;
	return NCCL_SUCCESS;
}

int ncclGroupEnd(void)
{
	counts[CALL_ncclGroupEnd].calls++;
	if (!group.depth)
		return NCCL_INVALID_USAGE;
	if (--group.depth || !group.is_pending)
		return NCCL_SUCCESS;
	group.is_pending = 0;
	return launch(group.last, group.stream);
}
