/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/cuda_functions.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* ---- what a function's parameters mean ---- */

#define LAUNCH(kernel) {.does = PP_CUDA_CALL, .ident = (kernel)}
/* Copies and fills that go on when the call has returned. */
#define COPY(size, way) {.does = PP_CUDA_CALL, .bytes = {size}, .direction = PP_CUDA_##way}
#define COPY_KIND(size, way) {.does = PP_CUDA_CALL, .bytes = {size}, .kind = (way)}
#define COPY_2D(width, height, way) {.does = PP_CUDA_CALL, .bytes = {width, height}, .kind = (way)}
#define COPY_LAYOUT(of) {.does = PP_CUDA_CALL, .layout = PP_CUDA_LAYOUT_##of}
#define FILL(count, shift) {.does = PP_CUDA_CALL, .bytes = {count}, .bytes_shift = (shift)}
#define FILL_2D(width, height, shift)                                                              \
	{.does = PP_CUDA_CALL, .bytes = {width, height}, .bytes_shift = (shift)}
/* Copies that have ended when the call returns. */
#define COPY_NOW(size, way)                                                                        \
	{.does = PP_CUDA_CALL,                                                                     \
	 .has_end = 1,                                                                             \
	 .waits = 1,                                                                               \
	 .bytes = {size},                                                                          \
	 .direction = PP_CUDA_##way}
#define COPY_NOW_KIND(size, way)                                                                   \
	{.does = PP_CUDA_CALL, .has_end = 1, .waits = 1, .bytes = {size}, .kind = (way)}
#define COPY_NOW_2D(width, height, way)                                                            \
	{.does = PP_CUDA_CALL, .has_end = 1, .waits = 1, .bytes = {width, height}, .kind = (way)}
#define COPY_NOW_LAYOUT(of)                                                                        \
	{.does = PP_CUDA_CALL, .has_end = 1, .waits = 1, .layout = PP_CUDA_LAYOUT_##of}
#define SYNC {.does = PP_CUDA_CALL, .has_end = 1, .waits = 1}
#define ALLOC(size)                                                                                \
	{                                                                                          \
		.does = PP_CUDA_CALL, .has_end = 1, .bytes = { size }                              \
	}
#define FREE {.does = PP_CUDA_CALL, .has_end = 1}
#define NAME(handle, name) {.does = PP_CUDA_NAME, .has_end = 1, .out = (handle), .text = (name)}
#define ALIAS(handle, of) {.does = PP_CUDA_ALIAS, .has_end = 1, .out = (handle), .ident = (of)}
#define GET_CONTEXT(context, device)                                                               \
	{.does = PP_CUDA_GET_CONTEXT, .has_end = 1, .out = (context), .ident = (device)}
#define SET_CONTEXT(context) {.does = PP_CUDA_SET_CONTEXT, .ident = (context)}
#define SET_DEVICE(device) {.does = PP_CUDA_SET_DEVICE, .ident = (device)}

/* X(name, library, whether it has a kernel, what it does).  Functions of one library stand
 * together, those whose ends are sites behind the others. */
#define FUNCTIONS(X)                                                                               \
	X(cuLaunchKernel, DRIVER, 1, LAUNCH(1))                                                    \
	X(cuLaunchKernelEx, DRIVER, 1, LAUNCH(2))                                                  \
	X(cuLaunchCooperativeKernel, DRIVER, 1, LAUNCH(1))                                         \
	X(cuGraphLaunch, DRIVER, 0, LAUNCH(1))                                                     \
	X(cuMemcpyAsync, DRIVER, 0, COPY(3, UNIFIED))                                              \
	X(cuMemcpyHtoDAsync_v2, DRIVER, 0, COPY(3, HTOD))                                          \
	X(cuMemcpyDtoHAsync_v2, DRIVER, 0, COPY(3, DTOH))                                          \
	X(cuMemcpyDtoDAsync_v2, DRIVER, 0, COPY(3, DTOD))                                          \
	X(cuMemcpyPeerAsync, DRIVER, 0, COPY(5, PEER))                                             \
	X(cuMemcpy2DAsync_v2, DRIVER, 0, COPY_LAYOUT(2D))                                          \
	X(cuMemcpy3DAsync_v2, DRIVER, 0, COPY_LAYOUT(3D))                                          \
	X(cuMemsetD8Async, DRIVER, 0, FILL(3, 0))                                                  \
	X(cuMemsetD16Async, DRIVER, 0, FILL(3, 1))                                                 \
	X(cuMemsetD32Async, DRIVER, 0, FILL(3, 2))                                                 \
	X(cuMemsetD2D8Async, DRIVER, 0, FILL_2D(4, 5, 0))                                          \
	X(cuMemsetD8_v2, DRIVER, 0, FILL(3, 0))                                                    \
	X(cuMemsetD16_v2, DRIVER, 0, FILL(3, 1))                                                   \
	X(cuMemsetD32_v2, DRIVER, 0, FILL(3, 2))                                                   \
	X(cuCtxSetCurrent, DRIVER, 0, SET_CONTEXT(1))                                              \
	X(cuCtxPushCurrent_v2, DRIVER, 0, SET_CONTEXT(1))                                          \
	X(cuMemcpy, DRIVER, 0, COPY_NOW(3, UNIFIED))                                               \
	X(cuMemcpyHtoD_v2, DRIVER, 0, COPY_NOW(3, HTOD))                                           \
	X(cuMemcpyDtoH_v2, DRIVER, 0, COPY_NOW(3, DTOH))                                           \
	X(cuMemcpyDtoD_v2, DRIVER, 0, COPY_NOW(3, DTOD))                                           \
	X(cuMemcpyPeer, DRIVER, 0, COPY_NOW(5, PEER))                                              \
	X(cuMemcpy2D_v2, DRIVER, 0, COPY_NOW_LAYOUT(2D))                                           \
	X(cuMemcpy3D_v2, DRIVER, 0, COPY_NOW_LAYOUT(3D))                                           \
	X(cuStreamSynchronize, DRIVER, 0, SYNC)                                                    \
	X(cuCtxSynchronize, DRIVER, 0, SYNC)                                                       \
	X(cuCtxSynchronize_v2, DRIVER, 0, SYNC)                                                    \
	X(cuEventSynchronize, DRIVER, 0, SYNC)                                                     \
	X(cuMemAlloc_v2, DRIVER, 0, ALLOC(2))                                                      \
	X(cuMemAllocAsync, DRIVER, 0, ALLOC(2))                                                    \
	X(cuMemAllocManaged, DRIVER, 0, ALLOC(2))                                                  \
	X(cuMemAllocHost_v2, DRIVER, 0, ALLOC(2))                                                  \
	X(cuMemHostAlloc, DRIVER, 0, ALLOC(2))                                                     \
	X(cuMemFree_v2, DRIVER, 0, FREE)                                                           \
	X(cuMemFreeAsync, DRIVER, 0, FREE)                                                         \
	X(cuMemFreeHost, DRIVER, 0, FREE)                                                          \
	X(cuModuleGetFunction, DRIVER, 0, NAME(1, 3))                                              \
	X(cuLibraryGetKernel, DRIVER, 0, NAME(1, 3))                                               \
	X(cuKernelGetFunction, DRIVER, 0, ALIAS(1, 2))                                             \
	X(cuDevicePrimaryCtxRetain, DRIVER, 0, GET_CONTEXT(1, 2))                                  \
	X(cudaLaunchKernel, RUNTIME, 1, LAUNCH(1))                                                 \
	X(cudaLaunchKernelExC, RUNTIME, 1, LAUNCH(2))                                              \
	X(cudaLaunchCooperativeKernel, RUNTIME, 1, LAUNCH(1))                                      \
	X(cudaGraphLaunch, RUNTIME, 0, LAUNCH(1))                                                  \
	X(cudaMemcpyAsync, RUNTIME, 0, COPY_KIND(3, 4))                                            \
	X(cudaMemcpy2DAsync, RUNTIME, 0, COPY_2D(5, 6, 7))                                         \
	X(cudaMemcpyPeerAsync, RUNTIME, 0, COPY(5, PEER))                                          \
	X(cudaMemset, RUNTIME, 0, FILL(3, 0))                                                      \
	X(cudaMemsetAsync, RUNTIME, 0, FILL(3, 0))                                                 \
	X(cudaSetDevice, RUNTIME, 0, SET_DEVICE(1))                                                \
	X(cudaMemcpy, RUNTIME, 0, COPY_NOW_KIND(3, 4))                                             \
	X(cudaMemcpy2D, RUNTIME, 0, COPY_NOW_2D(5, 6, 7))                                          \
	X(cudaStreamSynchronize, RUNTIME, 0, SYNC)                                                 \
	X(cudaDeviceSynchronize, RUNTIME, 0, SYNC)                                                 \
	X(cudaEventSynchronize, RUNTIME, 0, SYNC)                                                  \
	X(cudaMalloc, RUNTIME, 0, ALLOC(2))                                                        \
	X(cudaMallocAsync, RUNTIME, 0, ALLOC(2))                                                   \
	X(cudaMallocManaged, RUNTIME, 0, ALLOC(2))                                                 \
	X(cudaMallocHost, RUNTIME, 0, ALLOC(2))                                                    \
	X(cudaHostAlloc, RUNTIME, 0, ALLOC(2))                                                     \
	X(cudaFree, RUNTIME, 0, FREE)                                                              \
	X(cudaFreeAsync, RUNTIME, 0, FREE)                                                         \
	X(cudaFreeHost, RUNTIME, 0, FREE)

enum { DRIVER, RUNTIME };
#define FUNCTION_AT(name, ...) AT_##name,
enum { FUNCTIONS(FUNCTION_AT) FUNCTION_COUNT };

static const struct cuda_function functions[] = {
#define FUNCTION(name, library, kernel, ...)                                                       \
	[AT_##name] = {#name, (library) == RUNTIME, kernel, __VA_ARGS__},
	FUNCTIONS(FUNCTION)};

size_t cuda_function_count(void)
{
	return ARRAY_SIZE(functions);
}

const struct cuda_function *cuda_function_get(size_t api)
{
	return api < ARRAY_SIZE(functions) ? &functions[api] : NULL;
}

bool cuda_function_is_launch(const struct cuda_function *function)
{
	return function->site.does == PP_CUDA_CALL && function->site.ident;
}

const char *cuda_function_label(size_t api, char ret_text[64])
{
	const struct cuda_function *function = cuda_function_get(api);
	const size_t size = function ? strlen(function->name) : 0;
	const bool has_version = size > 3 && !strncmp(function->name + size - 3, "_v", 2);

	snprintf(ret_text, 64, "%.*s", (int)(has_version ? size - 3 : size),
		 function ? function->name : "");
	return ret_text;
}

static const char *name_of(const char *path)
{
	const char *last = path ? strrchr(path, '/') : NULL;

	return last ? last + 1 : path ? path : "";
}

bool cuda_is_driver(const char *path)
{
	return !strncmp(name_of(path), "libcuda.so.", strlen("libcuda.so."));
}

bool cuda_is_runtime(const char *path)
{
	const char *name = name_of(path);
	const size_t size = strlen("libcudart");

	return !strncmp(name, "libcudart", size) && (name[size] == '.' || name[size] == '-') &&
	       strstr(name + size, ".so");
}
