/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry points of the fake libcudart.so.12 and .13, and below what its sources share.  Errors
 * have the driver's numbers, as most of CUDA's do. */
#ifndef PYPROFD_FAKE_CUDART_H
#define PYPROFD_FAKE_CUDART_H

#include "cuda_driver.h"

#ifndef CUDART_MAJOR
#define CUDART_MAJOR 13
#endif

typedef int cudaError_t;
typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUkernel cudaKernel_t;

enum {
	cudaErrorCudartUnloading = 4,
	cudaErrorInsufficientDriver = 35,
	cudaErrorInvalidDeviceFunction = 98,
};
enum {
	cudaMemcpyHostToHost = 0,
	cudaMemcpyHostToDevice = 1,
	cudaMemcpyDeviceToHost = 2,
	cudaMemcpyDeviceToDevice = 3,
	cudaMemcpyDefault = 4,
};

struct dim3 {
	unsigned int x, y, z;
};

/* cudaLaunchConfig_t: as the driver's, but 8 bytes of shared memory. */
struct cudart_launch_config {
	struct dim3 grid, block;
	size_t smem;
	cudaStream_t stream;
	void *attributes;
	unsigned int attribute_count;
};
_Static_assert(offsetof(struct cudart_launch_config, stream) == 32, "cudaLaunchConfig_t");

/* cudaMemcpy3DParms: pointers with pitch and sizes, the first is the address. */
struct cudart_copy_3d {
	void *src_array;
	size_t src_position[3];
	const void *src[4];
	void *dst_array;
	size_t dst_position[3];
	void *dst[4];
	size_t width, height, depth;
	int kind;
};
_Static_assert(offsetof(struct cudart_copy_3d, width) == 128, "cudaMemcpy3DParms");
_Static_assert(offsetof(struct cudart_copy_3d, kind) == 152, "cudaMemcpy3DParms");

#define LAUNCH_ARGS                                                                                \
	(const void *func, struct dim3 grid, struct dim3 block, void **args, size_t smem,          \
	 cudaStream_t stream)
cudaError_t cudaLaunchKernel LAUNCH_ARGS;
cudaError_t cudaLaunchKernel_ptsz LAUNCH_ARGS;
cudaError_t __cudaLaunchKernel LAUNCH_ARGS;
cudaError_t __cudaLaunchKernel_ptsz LAUNCH_ARGS;
cudaError_t cudaLaunchCooperativeKernel LAUNCH_ARGS;
cudaError_t cudaLaunchKernelExC(const struct cudart_launch_config *config, const void *func,
				void **args);

/* What nvcc's code calls. */
void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **binary);
void __cudaUnregisterFatBinary(void **binary);
void __cudaRegisterFunction(void **binary, const char *host_function, char *device_function,
			    const char *device_name, int thread_limit, void *tid, void *bid,
			    struct dim3 *block, struct dim3 *grid, int *warp_size);
cudaError_t __cudaGetKernel(cudaKernel_t *ret_kernel, const void *host_function);
unsigned int __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t smem,
					 cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(struct dim3 *ret_grid, struct dim3 *ret_block,
				       size_t *ret_smem, void *ret_stream);

cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaRuntimeGetVersion(int *ret_version);
cudaError_t cudaDriverGetVersion(int *ret_version);
cudaError_t cudaGetDeviceCount(int *ret_count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *ret_device);
cudaError_t cudaDeviceSynchronize(void);

cudaError_t cudaMalloc(void **ret_pointer, size_t bytes);
cudaError_t cudaMallocAsync(void **ret_pointer, size_t bytes, cudaStream_t stream);
cudaError_t cudaMallocHost(void **ret_pointer, size_t bytes);
cudaError_t cudaHostAlloc(void **ret_pointer, size_t bytes, unsigned int flags);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaMemGetInfo(size_t *ret_free, size_t *ret_total);
cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, int kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind,
			    cudaStream_t stream);
cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
			 size_t width, size_t height, int kind);
cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
			      size_t width, size_t height, int kind, cudaStream_t stream);
cudaError_t cudaMemcpy3D(const struct cudart_copy_3d *params);
cudaError_t cudaMemcpy3DAsync(const struct cudart_copy_3d *params, cudaStream_t stream);
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t bytes, size_t offset,
			       int kind);
cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t bytes, size_t offset,
				      int kind, cudaStream_t stream);
cudaError_t cudaMemset(void *dst, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreate(cudaStream_t *ret_stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret_stream, unsigned int flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
cudaError_t cudaEventCreate(cudaEvent_t *ret_event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret_event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *ret_graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret_exec, cudaGraph_t graph, uint64_t flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

/* ------------------------------------------------ between the sources */

/* Entry points of the driver that are used, and how cuGetProcAddress calls them. */
#define CUDART_SLOTS(SLOT)                                                                         \
	SLOT(cuInit, "cuInit")                                                                     \
	SLOT(cuDriverGetVersion, "cuDriverGetVersion")                                             \
	SLOT(cuDeviceGetCount, "cuDeviceGetCount")                                                 \
	SLOT(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain")                                 \
	SLOT(cuCtxSetCurrent, "cuCtxSetCurrent")                                                   \
	SLOT(cuCtxGetDevice, "cuCtxGetDevice")                                                     \
	SLOT(cuCtxSynchronize, "cuCtxSynchronize")                                                 \
	SLOT(cuLaunchKernel, "cuLaunchKernel")                                                     \
	SLOT(cuLaunchKernelEx, "cuLaunchKernelEx")                                                 \
	SLOT(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel")                               \
	SLOT(cuLibraryLoadData, "cuLibraryLoadData")                                               \
	SLOT(cuLibraryUnload, "cuLibraryUnload")                                                   \
	SLOT(cuLibraryGetKernel, "cuLibraryGetKernel")                                             \
	SLOT(cuKernelGetFunction, "cuKernelGetFunction")                                           \
	SLOT(cuMemAlloc_v2, "cuMemAlloc")                                                          \
	SLOT(cuMemAllocAsync, "cuMemAllocAsync")                                                   \
	SLOT(cuMemFree_v2, "cuMemFree")                                                            \
	SLOT(cuMemFreeAsync, "cuMemFreeAsync")                                                     \
	SLOT(cuMemHostAlloc, "cuMemHostAlloc")                                                     \
	SLOT(cuMemFreeHost, "cuMemFreeHost")                                                       \
	SLOT(cuMemGetInfo_v2, "cuMemGetInfo")                                                      \
	SLOT(cuMemcpy, "cuMemcpy")                                                                 \
	SLOT(cuMemcpyHtoD_v2, "cuMemcpyHtoD")                                                      \
	SLOT(cuMemcpyDtoH_v2, "cuMemcpyDtoH")                                                      \
	SLOT(cuMemcpyDtoD_v2, "cuMemcpyDtoD")                                                      \
	SLOT(cuMemcpyAsync, "cuMemcpyAsync")                                                       \
	SLOT(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync")                                            \
	SLOT(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync")                                            \
	SLOT(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync")                                            \
	SLOT(cuMemsetD8_v2, "cuMemsetD8")                                                          \
	SLOT(cuMemsetD8Async, "cuMemsetD8Async")                                                   \
	SLOT(cuMemcpy2D_v2, "cuMemcpy2D")                                                          \
	SLOT(cuMemcpy2DAsync_v2, "cuMemcpy2DAsync")                                                \
	SLOT(cuMemcpy3D_v2, "cuMemcpy3D")                                                          \
	SLOT(cuMemcpy3DAsync_v2, "cuMemcpy3DAsync")                                                \
	SLOT(cuStreamCreate, "cuStreamCreate")                                                     \
	SLOT(cuStreamDestroy_v2, "cuStreamDestroy")                                                \
	SLOT(cuStreamSynchronize, "cuStreamSynchronize")                                           \
	SLOT(cuStreamQuery, "cuStreamQuery")                                                       \
	SLOT(cuStreamWaitEvent, "cuStreamWaitEvent")                                               \
	SLOT(cuEventCreate, "cuEventCreate")                                                       \
	SLOT(cuEventDestroy_v2, "cuEventDestroy")                                                  \
	SLOT(cuEventRecord, "cuEventRecord")                                                       \
	SLOT(cuEventQuery, "cuEventQuery")                                                         \
	SLOT(cuEventSynchronize, "cuEventSynchronize")                                             \
	SLOT(cuStreamBeginCapture_v2, "cuStreamBeginCapture")                                      \
	SLOT(cuStreamEndCapture, "cuStreamEndCapture")                                             \
	SLOT(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags")                           \
	SLOT(cuGraphLaunch, "cuGraphLaunch")                                                       \
	SLOT(cuGraphDestroy, "cuGraphDestroy")                                                     \
	SLOT(cuGraphExecDestroy, "cuGraphExecDestroy")

#pragma GCC visibility push(hidden)
/* ptsz: the entry points for stream 0 of the thread. */
struct cudart_slots {
#define SLOT(function, name) __typeof__(function) *function;
	CUDART_SLOTS(SLOT)
#undef SLOT
};
extern struct cudart_slots cudart_slots, cudart_slots_ptsz;

/* The driver is there and the thread has a context.  0 or the error. */
cudaError_t cudart_ready(void);
/* Keeps an error for cudaGetLastError; returns it. */
cudaError_t cudart_remember(cudaError_t error);
/* What to launch for a host function or a handle of __cudaGetKernel. */
cudaError_t cudart_function(const void *func, CUfunction *ret_function);
#pragma GCC visibility pop

#endif
