/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies and memsets: their bytes are counted and take their time, but no data moves. */
#include "driver.h"

struct copy {
	enum direction direction;
	uint64_t bytes;
	CUstream stream;
	bool is_per_thread, is_sync;
};

__attribute__((noinline)) static CUresult copy_now(enum api api, struct copy copy)
{
	CUresult error = api_enter(api);
	struct stream *stream;
	struct work work = {.kind = WORK_COPY, .api = api, .bytes = copy.bytes};

	if (error)
		return error;
	stream = stream_find(copy.stream, copy.is_per_thread);
	if (!stream)
		return api_fail(api, CUDA_ERROR_INVALID_CONTEXT);
	work.direction = copy.direction;
	work.duration_ns = truth_copy_ns(copy.bytes);
	error = copy.is_sync ? stream_submit_and_wait(stream, &work) : stream_submit(stream, &work);
	if (!error)
		add(&truth.api[api].bytes, copy.bytes);
	return error;
}

static CUresult copy_async(enum api api, enum direction direction, uint64_t bytes, CUstream stream,
			   bool is_per_thread)
{
	return copy_now(api, (struct copy){direction, bytes, stream, is_per_thread, false});
}

static CUresult copy_sync(enum api api, enum direction direction, uint64_t bytes,
			  bool is_per_thread)
{
	return copy_now(api,
			(struct copy){direction, bytes, CU_STREAM_DEFAULT, is_per_thread, true});
}

static enum direction direction_of(bool is_from_device, bool is_to_device)
{
	static const enum direction table[2][2] = {{HTOH, HTOD}, {DTOH, DTOD}};

	return table[is_from_device][is_to_device];
}

static enum direction between(CUdeviceptr dst, CUdeviceptr src)
{
	return direction_of(DEVICE_POINTER(src), DEVICE_POINTER(dst));
}

static bool is_device_side(unsigned int type, CUdeviceptr device)
{
	return type == CU_MEMORYTYPE_UNIFIED ? DEVICE_POINTER(device) : type != CU_MEMORYTYPE_HOST;
}

static enum direction direction_2d(const struct cu_copy_2d *c)
{
	return direction_of(is_device_side(c->src_type, c->src_device),
			    is_device_side(c->dst_type, c->dst_device));
}

enum direction direction_3d(const struct cu_copy_3d *c)
{
	return direction_of(is_device_side(c->src_type, c->src_device),
			    is_device_side(c->dst_type, c->dst_device));
}

static uint64_t sum(const size_t *sizes, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += sizes[i];
	return bytes;
}

/* ASYNC(name, (parameters), direction, bytes) are name() and name_ptsz(), with a parameter
 * `stream`; SYNC: name() and name_ptds(). */
#define ASYNC(name, args, direction, bytes)                                                        \
	CUresult name args                                                                         \
	{                                                                                          \
		return copy_async(API_##name, direction, bytes, stream, false);                    \
	}                                                                                          \
	CUresult name##_ptsz args                                                                  \
	{                                                                                          \
		return copy_async(API_##name##_ptsz, direction, bytes, stream, true);              \
	}
#define SYNC(name, args, direction, bytes)                                                         \
	CUresult name args                                                                         \
	{                                                                                          \
		return copy_sync(API_##name, direction, bytes, false);                             \
	}                                                                                          \
	CUresult name##_ptds args                                                                  \
	{                                                                                          \
		return copy_sync(API_##name##_ptds, direction, bytes, true);                       \
	}
#pragma GCC diagnostic ignored "-Wunused-parameter"

ASYNC(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
      between(dst, src), bytes)
ASYNC(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream), HTOD,
      bytes)
ASYNC(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t bytes, CUstream stream), DTOH,
      bytes)
ASYNC(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream), DTOD,
      bytes)
ASYNC(cuMemcpyPeerAsync,
      (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes,
       CUstream stream),
      PTOP, bytes)
ASYNC(cuMemcpy2DAsync_v2, (const struct cu_copy_2d *copy, CUstream stream), direction_2d(copy),
      copy->width_bytes * copy->height)
ASYNC(cuMemcpy3DAsync_v2, (const struct cu_copy_3d *copy, CUstream stream), direction_3d(copy),
      copy->width_bytes * copy->height * copy->depth)
ASYNC(cuMemcpyBatchAsync,
      (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, void *attributes,
       size_t *attribute_index, size_t attribute_count, size_t *ret_failed, CUstream stream),
      between(dsts[0], srcs[0]), sum(sizes, count))
ASYNC(cuMemcpyBatchAsync_v2,
      (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, void *attributes,
       size_t *attribute_index, size_t attribute_count, CUstream stream),
      between(dsts[0], srcs[0]), sum(sizes, count))
ASYNC(cuMemsetD8Async, (CUdeviceptr dst, unsigned char value, size_t count, CUstream stream),
      MEMSET, count)
ASYNC(cuMemsetD32Async, (CUdeviceptr dst, unsigned int value, size_t count, CUstream stream),
      MEMSET, count * 4)
ASYNC(cuMemsetD2D8Async,
      (CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
       CUstream stream),
      MEMSET, width *height)

SYNC(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t bytes), between(dst, src), bytes)
SYNC(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void *src, size_t bytes), HTOD, bytes)
SYNC(cuMemcpyDtoH_v2, (void *dst, CUdeviceptr src, size_t bytes), DTOH, bytes)
SYNC(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes), DTOD, bytes)
SYNC(cuMemcpyPeer,
     (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes),
     PTOP, bytes)
SYNC(cuMemcpy2D_v2, (const struct cu_copy_2d *copy), direction_2d(copy),
     copy->width_bytes * copy->height)
SYNC(cuMemcpy3D_v2, (const struct cu_copy_3d *copy), direction_3d(copy),
     copy->width_bytes * copy->height * copy->depth)
SYNC(cuMemsetD8_v2, (CUdeviceptr dst, unsigned char value, size_t count), MEMSET, count)
SYNC(cuMemsetD32_v2, (CUdeviceptr dst, unsigned int value, size_t count), MEMSET, count * 4)
