/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry points of the fake libcuda.so.1.  PTSZ: beside `name` there is `name_ptsz`, whose
 * stream 0 is the calling thread's own; PTDS: the same for calls without a stream. */
#ifndef PYPROFD_FAKE_CUDA_DRIVER_H
#define PYPROFD_FAKE_CUDA_DRIVER_H

#include "cuda_types.h"

#define PTSZ(name, args)                                                                           \
	CUresult name args;                                                                        \
	CUresult name##_ptsz args;
#define PTDS(name, args)                                                                           \
	CUresult name args;                                                                        \
	CUresult name##_ptds args;

PTSZ(cuLaunchKernel, (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
		      unsigned int bx, unsigned int by, unsigned int bz, unsigned int smem,
		      CUstream stream, void **params, void **extra))
PTSZ(cuLaunchKernelEx,
     (const struct cu_launch_config *config, CUfunction f, void **params, void **extra))
PTSZ(cuLaunchCooperativeKernel,
     (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
      unsigned int by, unsigned int bz, unsigned int smem, CUstream stream, void **params))

PTSZ(cuGraphLaunch, (CUgraphExec exec, CUstream stream))
CUresult cuStreamBeginCapture(CUstream stream);
PTSZ(cuStreamBeginCapture_v2, (CUstream stream, int mode))
PTSZ(cuStreamBeginCaptureToGraph, (CUstream stream, CUgraph graph, const void *dependencies,
				   const void *edges, size_t count, int mode))
PTSZ(cuStreamEndCapture, (CUstream stream, CUgraph *ret_graph))
PTSZ(cuStreamIsCapturing, (CUstream stream, int *ret_status))
CUresult cuGraphInstantiateWithFlags(CUgraphExec *ret_exec, CUgraph graph, uint64_t flags);
PTSZ(cuGraphInstantiateWithParams,
     (CUgraphExec * ret_exec, CUgraph graph, struct cu_instantiate_params *params))
CUresult cuGraphCreate(CUgraph *ret_graph, unsigned int flags);
CUresult cuGraphAddKernelNode_v2(void **ret_node, CUgraph graph, const void *dependencies,
				 size_t count, const struct cu_kernel_node *params);
CUresult cuGraphAddMemcpyNode(void **ret_node, CUgraph graph, const void *dependencies,
			      size_t count, const struct cu_copy_3d *params, CUcontext context);
CUresult cuGraphAddMemsetNode(void **ret_node, CUgraph graph, const void *dependencies,
			      size_t count, const struct cu_fill_node *params, CUcontext context);
CUresult cuGraphAddChildGraphNode(void **ret_node, CUgraph graph, const void *dependencies,
				  size_t count, CUgraph child);
CUresult cuGraphAddNode_v2(void **ret_node, CUgraph graph, const void *dependencies,
			   const void *edges, size_t count, const struct cu_node_params *params);
CUresult cuGraphClone(CUgraph *ret_clone, CUgraph graph);
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, void *ret_info);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphExecDestroy(CUgraphExec exec);

PTSZ(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))
PTSZ(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream))
PTSZ(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t bytes, CUstream stream))
PTSZ(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))
PTSZ(cuMemcpyPeerAsync, (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
			 CUcontext src_context, size_t bytes, CUstream stream))
PTSZ(cuMemcpy2DAsync_v2, (const struct cu_copy_2d *copy, CUstream stream))
PTSZ(cuMemcpy3DAsync_v2, (const struct cu_copy_3d *copy, CUstream stream))
PTSZ(cuMemcpyBatchAsync,
     (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, void *attributes,
      size_t *attribute_index, size_t attribute_count, size_t *ret_failed, CUstream stream))
PTSZ(cuMemcpyBatchAsync_v2,
     (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, void *attributes,
      size_t *attribute_index, size_t attribute_count, CUstream stream))
PTDS(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t bytes))
PTDS(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void *src, size_t bytes))
PTDS(cuMemcpyDtoH_v2, (void *dst, CUdeviceptr src, size_t bytes))
PTDS(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes))
PTDS(cuMemcpyPeer,
     (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes))
PTDS(cuMemcpy2D_v2, (const struct cu_copy_2d *copy))
PTDS(cuMemcpy3D_v2, (const struct cu_copy_3d *copy))
PTSZ(cuMemsetD8Async, (CUdeviceptr dst, unsigned char value, size_t count, CUstream stream))
PTSZ(cuMemsetD32Async, (CUdeviceptr dst, unsigned int value, size_t count, CUstream stream))
PTSZ(cuMemsetD2D8Async, (CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
			 size_t height, CUstream stream))
PTDS(cuMemsetD8_v2, (CUdeviceptr dst, unsigned char value, size_t count))
PTDS(cuMemsetD32_v2, (CUdeviceptr dst, unsigned int value, size_t count))

PTSZ(cuStreamSynchronize, (CUstream stream))
PTSZ(cuStreamQuery, (CUstream stream))
PTSZ(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags))
CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize_v2(CUcontext context);
CUresult cuStreamCreate(CUstream *ret_stream, unsigned int flags);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuEventCreate(CUevent *ret_event, unsigned int flags);
CUresult cuEventDestroy_v2(CUevent event);
PTSZ(cuEventRecord, (CUevent event, CUstream stream))
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *ret_ms, CUevent begin, CUevent end);

CUresult cuMemAlloc_v2(CUdeviceptr *ret_pointer, size_t bytes);
CUresult cuMemAllocPitch_v2(CUdeviceptr *ret_pointer, size_t *ret_pitch, size_t width,
			    size_t height, unsigned int element_bytes);
CUresult cuMemAllocManaged(CUdeviceptr *ret_pointer, size_t bytes, unsigned int flags);
CUresult cuMemCreate(CUdeviceptr *ret_handle, size_t bytes, const void *properties, uint64_t flags);
CUresult cuMemRelease(CUdeviceptr handle);
CUresult cuMemFree_v2(CUdeviceptr pointer);
PTSZ(cuMemAllocAsync, (CUdeviceptr * ret_pointer, size_t bytes, CUstream stream))
PTSZ(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream))
CUresult cuMemHostAlloc(void **ret_pointer, size_t bytes, unsigned int flags);
CUresult cuMemAllocHost_v2(void **ret_pointer, size_t bytes);
CUresult cuMemFreeHost(void *pointer);
CUresult cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total);

CUresult cuModuleLoadData(CUmodule *ret_module, const void *image);
CUresult cuModuleGetFunction(CUfunction *ret_function, CUmodule module, const char *name);
CUresult cuModuleUnload(CUmodule module);
CUresult cuLibraryLoadData(CUlibrary *ret_library, const void *code, int *jit_options,
			   void **jit_values, unsigned int jit_count, int *options, void **values,
			   unsigned int option_count);
CUresult cuLibraryGetKernel(CUkernel *ret_kernel, CUlibrary library, const char *name);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuKernelGetFunction(CUfunction *ret_function, CUkernel kernel);
CUresult cuKernelGetName(const char **ret_name, CUkernel kernel);
CUresult cuFuncGetName(const char **ret_name, CUfunction function);

CUresult cuInit(unsigned int flags);
CUresult cuDriverGetVersion(int *ret_version);
CUresult cuDeviceGet(CUdevice *ret_device, int ordinal);
CUresult cuDeviceGetCount(int *ret_count);
CUresult cuDeviceGetName(char *ret_name, int size, CUdevice device);
CUresult cuDeviceGetUuid(struct cu_uuid *ret_uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(struct cu_uuid *ret_uuid, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *ret_context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *ret_context, unsigned int flags, CUdevice device);
CUresult cuCtxCreate_v4(CUcontext *ret_context, const void *params, unsigned int flags,
			CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext *ret_context);
CUresult cuCtxGetCurrent(CUcontext *ret_context);
CUresult cuCtxGetDevice(CUdevice *ret_device);
CUresult cuGetProcAddress_v2(const char *symbol, void **ret_function, int version, uint64_t flags,
			     int *ret_status);

#endif
