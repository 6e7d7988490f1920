/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: of devices addresses only, of the host real pages. */
#include "driver.h"

#include <stdlib.h>
#include <sys/mman.h>

#define BLOCK_BUCKETS 4096U
#define GRAIN_BYTES 512ULL

struct block {
	uint64_t address, bytes;
	struct context *context; /* NULL: host */
	struct block *next;
};

static struct block *bucket[BLOCK_BUCKETS];
static uint64_t used[DRIVER_DEVICES];  /* live bytes */
static uint64_t given[DRIVER_DEVICES]; /* the next address is that of so many bytes; never reused */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct block **bucket_of(uint64_t address)
{
	return &bucket[fake_cuda_mix(1, address) % BLOCK_BUCKETS];
}

static void keep(struct block *block)
{
	block->next = *bucket_of(block->address);
	*bucket_of(block->address) = block;
}

/* Out of its bucket; NULL: there is none. */
static struct block *take(uint64_t address)
{
	for (struct block **at = bucket_of(address); *at; at = &(*at)->next)
		if ((*at)->address == address) {
			struct block *block = *at;

			*at = block->next;
			return block;
		}
	return NULL;
}

static void count_live(uint64_t bytes)
{
	uint64_t live = add(&truth.live_bytes, bytes);

	if (live > get(&truth.peak_bytes))
		truth.peak_bytes = live;
}

static CUresult allocate(enum api api, CUdeviceptr *ret_pointer, size_t bytes)
{
	CUresult error = api_enter(api);
	struct context *context = context_current();
	struct block *block;

	if (error)
		return error;
	if (!context)
		return api_fail(api, CUDA_ERROR_INVALID_CONTEXT);
	if (!bytes)
		return api_fail(api, CUDA_ERROR_INVALID_VALUE);
	block = calloc(1, sizeof(*block));
	pthread_mutex_lock(&lock);
	if (block && bytes <= DRIVER_DEVICE_BYTES - used[context->device]) {
		*block = (struct block){.bytes = bytes, .context = context};
		block->address =
			DEVICE_BASE + ((uint64_t)context->device << 40) + given[context->device];
		given[context->device] += (bytes + GRAIN_BYTES - 1) / GRAIN_BYTES * GRAIN_BYTES;
		used[context->device] += bytes;
		keep(block);
		count_live(bytes);
		*ret_pointer = block->address;
	} else {
		error = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&lock);
	if (error) {
		free(block);
		return api_fail(api, error);
	}
	add(&truth.api[api].bytes, bytes);
	return CUDA_SUCCESS;
}

static CUresult release(enum api api, CUdeviceptr pointer)
{
	CUresult error = api_enter(api);
	struct block *block;

	if (error || !pointer)
		return error;
	pthread_mutex_lock(&lock);
	block = take(pointer);
	if (block && block->context)
		used[block->context->device] -= block->bytes;
	pthread_mutex_unlock(&lock);
	if (!block)
		return api_fail(api, CUDA_ERROR_INVALID_VALUE);
	atomic_fetch_sub(&truth.live_bytes, block->bytes);
	add(&truth.api[api].bytes, block->bytes);
	free(block);
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *ret_pointer, size_t bytes)
{
	return allocate(API_cuMemAlloc_v2, ret_pointer, bytes);
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
	return release(API_cuMemFree_v2, pointer);
}

/* While the stream is captured: the memory is there at once, all the same. */
static void note_captured(enum api api, CUresult error, CUstream handle, bool is_per_thread,
			  uint64_t bytes)
{
	struct stream *stream = error ? NULL : stream_find(handle, is_per_thread);

	if (!stream || !stream->graph)
		return;
	add(&truth.api[api].captured, 1);
	add(&truth.api[api].captured_bytes, bytes);
}

#define ALLOCATE_IN(name, is_per_thread)                                                           \
	CUresult name(CUdeviceptr *ret_pointer, size_t bytes, CUstream stream)                     \
	{                                                                                          \
		CUresult error = allocate(API_##name, ret_pointer, bytes);                         \
                                                                                                   \
		note_captured(API_##name, error, stream, is_per_thread, bytes);                    \
		return error;                                                                      \
	}
#define RELEASE_IN(name, is_per_thread)                                                            \
	CUresult name(CUdeviceptr pointer, CUstream stream)                                        \
	{                                                                                          \
		CUresult error = release(API_##name, pointer);                                     \
                                                                                                   \
		note_captured(API_##name, error, stream, is_per_thread, 0);                        \
		return error;                                                                      \
	}
ALLOCATE_IN(cuMemAllocAsync, false)
ALLOCATE_IN(cuMemAllocAsync_ptsz, true)
RELEASE_IN(cuMemFreeAsync, false)
RELEASE_IN(cuMemFreeAsync_ptsz, true)

CUresult cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
	CUresult error = api_enter(API_cuMemGetInfo_v2);

	if (error)
		return error;
	if (!context_current())
		return api_fail(API_cuMemGetInfo_v2, CUDA_ERROR_INVALID_CONTEXT);
	pthread_mutex_lock(&lock);
	*ret_free = DRIVER_DEVICE_BYTES - used[context_current()->device];
	pthread_mutex_unlock(&lock);
	*ret_total = DRIVER_DEVICE_BYTES;
	return CUDA_SUCCESS;
}

/* ---------------------------------------------------------------- of the host */

static CUresult allocate_host(enum api api, void **ret_pointer, size_t bytes)
{
	CUresult error = api_enter(api);
	struct block *block;
	void *pages;

	if (error)
		return error;
	if (!bytes)
		return api_fail(api, CUDA_ERROR_INVALID_VALUE);
	block = calloc(1, sizeof(*block));
	pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!block || pages == MAP_FAILED) {
		free(block);
		return api_fail(api, CUDA_ERROR_OUT_OF_MEMORY);
	}
	*block = (struct block){.address = (uintptr_t)pages, .bytes = bytes};
	pthread_mutex_lock(&lock);
	keep(block);
	pthread_mutex_unlock(&lock);
	add(&truth.live_host_bytes, bytes);
	add(&truth.api[api].bytes, bytes);
	*ret_pointer = pages;
	return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **ret_pointer, size_t bytes, unsigned int flags)
{
	(void)flags;
	return allocate_host(API_cuMemHostAlloc, ret_pointer, bytes);
}

CUresult cuMemAllocHost_v2(void **ret_pointer, size_t bytes)
{
	return allocate_host(API_cuMemAllocHost_v2, ret_pointer, bytes);
}

CUresult cuMemFreeHost(void *pointer)
{
	CUresult error = api_enter(API_cuMemFreeHost);
	struct block *block;

	if (error)
		return error;
	pthread_mutex_lock(&lock);
	block = take((uintptr_t)pointer);
	pthread_mutex_unlock(&lock);
	if (!block)
		return api_fail(API_cuMemFreeHost, CUDA_ERROR_INVALID_VALUE);
	munmap(pointer, block->bytes);
	atomic_fetch_sub(&truth.live_host_bytes, block->bytes);
	free(block);
	return CUDA_SUCCESS;
}
