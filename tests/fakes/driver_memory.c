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
	unsigned int tag;	 /* fake_cuda_set_tag() of the thread */
	bool is_handle;		 /* cuMemCreate() */
	struct block *next;
};

static struct block *bucket[BLOCK_BUCKETS];
static uint64_t used[DRIVER_DEVICES];  /* live bytes */
static uint64_t given[DRIVER_DEVICES]; /* the next address is that of so many bytes; never reused */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local unsigned int tag;

void fake_cuda_set_tag(unsigned int more)
{
	tag = more;
}

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
static struct block *take(uint64_t address, bool is_handle)
{
	for (struct block **at = bucket_of(address); *at; at = &(*at)->next)
		if ((*at)->address == address && (*at)->is_handle == is_handle) {
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

static uint64_t next_address(const struct context *context, size_t bytes)
{
	const uint64_t address =
		DEVICE_BASE + ((uint64_t)context->device << 40) + given[context->device];

	given[context->device] += (bytes + GRAIN_BYTES - 1) / GRAIN_BYTES * GRAIN_BYTES;
	return address;
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
		*block = (struct block){.bytes = bytes,
					.context = context,
					.tag = tag,
					.is_handle = api == API_cuMemCreate};
		block->address = next_address(context, bytes);
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
	block = take(pointer, api == API_cuMemRelease);
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

CUresult cuMemAllocPitch_v2(CUdeviceptr *ret_pointer, size_t *ret_pitch, size_t width,
			    size_t height, unsigned int element_bytes)
{
	(void)element_bytes;
	*ret_pitch = width;
	return allocate(API_cuMemAllocPitch_v2, ret_pointer, width * height);
}

CUresult cuMemAllocManaged(CUdeviceptr *ret_pointer, size_t bytes, unsigned int flags)
{
	(void)flags;
	return allocate(API_cuMemAllocManaged, ret_pointer, bytes);
}

CUresult cuMemCreate(CUdeviceptr *ret_handle, size_t bytes, const void *properties, uint64_t flags)
{
	(void)properties, (void)flags;
	return allocate(API_cuMemCreate, ret_handle, bytes);
}

CUresult cuMemRelease(CUdeviceptr handle)
{
	return release(API_cuMemRelease, handle);
}

/* ---------------------------------------------------------------- in streams */

static bool is_captured(CUstream handle, bool is_per_thread)
{
	const struct stream *stream = stream_find(handle, is_per_thread);

	return stream && stream->graph;
}

/* A node of a graph: there is an address, and no memory before the graph runs.  It is not followed
 * further. */
static CUresult record(enum api api, CUdeviceptr *ret_pointer, size_t bytes)
{
	CUresult error = api_enter(api);

	if (error)
		return error;
	if (ret_pointer) {
		pthread_mutex_lock(&lock);
		*ret_pointer = next_address(context_current(), bytes);
		pthread_mutex_unlock(&lock);
	}
	add(&truth.api[api].bytes, bytes);
	add(&truth.api[api].captured, 1);
	add(&truth.api[api].captured_bytes, bytes);
	return CUDA_SUCCESS;
}

#define ALLOCATE_IN(name, is_per_thread)                                                           \
	CUresult name(CUdeviceptr *ret_pointer, size_t bytes, CUstream stream)                     \
	{                                                                                          \
		return is_captured(stream, is_per_thread)                                          \
			       ? record(API_##name, ret_pointer, bytes)                            \
			       : allocate(API_##name, ret_pointer, bytes);                         \
	}
#define RELEASE_IN(name, is_per_thread)                                                            \
	CUresult name(CUdeviceptr pointer, CUstream stream)                                        \
	{                                                                                          \
		return is_captured(stream, is_per_thread) ? record(API_##name, NULL, 0)            \
							  : release(API_##name, pointer);          \
	}
ALLOCATE_IN(cuMemAllocAsync, false)
ALLOCATE_IN(cuMemAllocAsync_ptsz, true)
RELEASE_IN(cuMemFreeAsync, false)
RELEASE_IN(cuMemFreeAsync_ptsz, true)

/* All of a context's memory is given back. */
void memory_drop(const struct context *context)
{
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < BLOCK_BUCKETS; i++)
		for (struct block **at = &bucket[i]; *at;) {
			struct block *block = *at;

			if (block->context != context) {
				at = &block->next;
				continue;
			}
			*at = block->next;
			used[context->device] -= block->bytes;
			atomic_fetch_sub(&truth.live_bytes, block->bytes);
			free(block);
		}
	pthread_mutex_unlock(&lock);
}

/* Live memory of devices: tag -> [blocks, bytes]. */
void memory_print(FILE *file)
{
	uint64_t count[FAKE_CUDA_TAGS] = {0}, bytes[FAKE_CUDA_TAGS] = {0};
	const char *comma = "";

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < BLOCK_BUCKETS; i++)
		for (const struct block *block = bucket[i]; block; block = block->next)
			if (block->context) {
				count[block->tag % FAKE_CUDA_TAGS]++;
				bytes[block->tag % FAKE_CUDA_TAGS] += block->bytes;
			}
	pthread_mutex_unlock(&lock);
	fputs("\"live\": {", file);
	for (unsigned int i = 0; i < FAKE_CUDA_TAGS; i++)
		if (count[i]) {
			fprintf(file, "%s\"%u\": [%llu, %llu]", comma, i,
				(unsigned long long)count[i], (unsigned long long)bytes[i]);
			comma = ", ";
		}
	fputs("},\n", file);
}

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
	block = take((uintptr_t)pointer, false);
	pthread_mutex_unlock(&lock);
	if (!block)
		return api_fail(API_cuMemFreeHost, CUDA_ERROR_INVALID_VALUE);
	munmap(pointer, block->bytes);
	atomic_fetch_sub(&truth.live_host_bytes, block->bytes);
	free(block);
	return CUDA_SUCCESS;
}
