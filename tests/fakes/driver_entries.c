/* SPDX-License-Identifier: BSD-2-Clause */
/* cuGetProcAddress_v2: a name without suffix gives the newest version; flags 2 its per-thread
 * twin. */
#include "driver.h"

#include <string.h>

struct entry {
	const char *name;
	void *plain, *per_thread;
};
#define ONE(name, function) {name, (void *)(function), (void *)(function)}
#define TWO(name, function, twin) {name, (void *)(function), (void *)(twin)}
#define PTSZ_OF(name, function) TWO(name, function, function##_ptsz)
#define PTDS_OF(name, function) TWO(name, function, function##_ptds)

static const struct entry entries[] = {
	PTSZ_OF("cuLaunchKernel", cuLaunchKernel),
	PTSZ_OF("cuLaunchKernelEx", cuLaunchKernelEx),
	PTSZ_OF("cuLaunchCooperativeKernel", cuLaunchCooperativeKernel),
	PTSZ_OF("cuGraphLaunch", cuGraphLaunch),
	PTSZ_OF("cuStreamBeginCapture", cuStreamBeginCapture_v2),
	PTSZ_OF("cuStreamBeginCaptureToGraph", cuStreamBeginCaptureToGraph),
	PTSZ_OF("cuStreamEndCapture", cuStreamEndCapture),
	PTSZ_OF("cuStreamIsCapturing", cuStreamIsCapturing),
	ONE("cuGraphInstantiateWithFlags", cuGraphInstantiateWithFlags),
	ONE("cuGraphInstantiate", cuGraphInstantiateWithFlags),
	PTSZ_OF("cuGraphInstantiateWithParams", cuGraphInstantiateWithParams),
	ONE("cuGraphCreate", cuGraphCreate),
	ONE("cuGraphAddKernelNode", cuGraphAddKernelNode_v2),
	ONE("cuGraphAddMemcpyNode", cuGraphAddMemcpyNode),
	ONE("cuGraphAddMemsetNode", cuGraphAddMemsetNode),
	ONE("cuGraphAddChildGraphNode", cuGraphAddChildGraphNode),
	ONE("cuGraphAddNode", cuGraphAddNode_v2),
	ONE("cuGraphClone", cuGraphClone),
	ONE("cuGraphExecUpdate", cuGraphExecUpdate_v2),
	ONE("cuGraphDestroy", cuGraphDestroy),
	ONE("cuGraphExecDestroy", cuGraphExecDestroy),
	PTSZ_OF("cuMemcpyAsync", cuMemcpyAsync),
	PTSZ_OF("cuMemcpyHtoDAsync", cuMemcpyHtoDAsync_v2),
	PTSZ_OF("cuMemcpyDtoHAsync", cuMemcpyDtoHAsync_v2),
	PTSZ_OF("cuMemcpyDtoDAsync", cuMemcpyDtoDAsync_v2),
	PTSZ_OF("cuMemcpyPeerAsync", cuMemcpyPeerAsync),
	PTSZ_OF("cuMemcpy2DAsync", cuMemcpy2DAsync_v2),
	PTSZ_OF("cuMemcpy3DAsync", cuMemcpy3DAsync_v2),
	PTSZ_OF("cuMemcpyBatchAsync", cuMemcpyBatchAsync_v2),
	PTDS_OF("cuMemcpy", cuMemcpy),
	PTDS_OF("cuMemcpyHtoD", cuMemcpyHtoD_v2),
	PTDS_OF("cuMemcpyDtoH", cuMemcpyDtoH_v2),
	PTDS_OF("cuMemcpyDtoD", cuMemcpyDtoD_v2),
	PTDS_OF("cuMemcpyPeer", cuMemcpyPeer),
	PTDS_OF("cuMemcpy2D", cuMemcpy2D_v2),
	PTDS_OF("cuMemcpy3D", cuMemcpy3D_v2),
	PTSZ_OF("cuMemsetD8Async", cuMemsetD8Async),
	PTSZ_OF("cuMemsetD32Async", cuMemsetD32Async),
	PTSZ_OF("cuMemsetD2D8Async", cuMemsetD2D8Async),
	PTDS_OF("cuMemsetD8", cuMemsetD8_v2),
	PTDS_OF("cuMemsetD32", cuMemsetD32_v2),
	PTSZ_OF("cuStreamSynchronize", cuStreamSynchronize),
	PTSZ_OF("cuStreamQuery", cuStreamQuery),
	PTSZ_OF("cuStreamWaitEvent", cuStreamWaitEvent),
	ONE("cuCtxSynchronize", cuCtxSynchronize),
	ONE("cuStreamCreate", cuStreamCreate),
	ONE("cuStreamDestroy", cuStreamDestroy_v2),
	ONE("cuEventCreate", cuEventCreate),
	ONE("cuEventDestroy", cuEventDestroy_v2),
	PTSZ_OF("cuEventRecord", cuEventRecord),
	ONE("cuEventRecordWithFlags", cuEventRecordWithFlags),
	ONE("cuEventQuery", cuEventQuery),
	ONE("cuEventSynchronize", cuEventSynchronize),
	ONE("cuEventElapsedTime", cuEventElapsedTime),
	ONE("cuMemAlloc", cuMemAlloc_v2),
	ONE("cuMemFree", cuMemFree_v2),
	ONE("cuMemAllocPitch", cuMemAllocPitch_v2),
	ONE("cuMemAllocManaged", cuMemAllocManaged),
	ONE("cuMemCreate", cuMemCreate),
	ONE("cuMemRelease", cuMemRelease),
	PTSZ_OF("cuMemAllocAsync", cuMemAllocAsync),
	PTSZ_OF("cuMemFreeAsync", cuMemFreeAsync),
	ONE("cuMemHostAlloc", cuMemHostAlloc),
	ONE("cuMemAllocHost", cuMemAllocHost_v2),
	ONE("cuMemFreeHost", cuMemFreeHost),
	ONE("cuMemGetInfo", cuMemGetInfo_v2),
	ONE("cuModuleLoadData", cuModuleLoadData),
	ONE("cuModuleGetFunction", cuModuleGetFunction),
	ONE("cuModuleUnload", cuModuleUnload),
	ONE("cuLibraryLoadData", cuLibraryLoadData),
	ONE("cuLibraryGetKernel", cuLibraryGetKernel),
	ONE("cuLibraryUnload", cuLibraryUnload),
	ONE("cuKernelGetFunction", cuKernelGetFunction),
	ONE("cuKernelGetName", cuKernelGetName),
	ONE("cuFuncGetName", cuFuncGetName),
	ONE("cuInit", cuInit),
	ONE("cuDriverGetVersion", cuDriverGetVersion),
	ONE("cuDeviceGet", cuDeviceGet),
	ONE("cuDeviceGetCount", cuDeviceGetCount),
	ONE("cuDeviceGetName", cuDeviceGetName),
	ONE("cuDeviceGetUuid", cuDeviceGetUuid_v2),
	ONE("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain),
	ONE("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease_v2),
	ONE("cuCtxCreate", cuCtxCreate_v4),
	ONE("cuCtxDestroy", cuCtxDestroy_v2),
	ONE("cuDevicePrimaryCtxReset", cuDevicePrimaryCtxReset_v2),
	ONE("cuDevicePrimaryCtxSetFlags", cuDevicePrimaryCtxSetFlags_v2),
	ONE("cuCtxSetCurrent", cuCtxSetCurrent),
	ONE("cuCtxPushCurrent", cuCtxPushCurrent_v2),
	ONE("cuCtxPopCurrent", cuCtxPopCurrent_v2),
	ONE("cuCtxGetCurrent", cuCtxGetCurrent),
	ONE("cuCtxGetDevice", cuCtxGetDevice),
	ONE("cuGetProcAddress", cuGetProcAddress_v2),
};

/* Needs no cuInit, as CUDA's. */
CUresult cuGetProcAddress_v2(const char *symbol, void **ret_function, int version, uint64_t flags,
			     int *ret_status)
{
	(void)version;
	add(&truth.api[API_cuGetProcAddress_v2].calls, 1);
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		const struct entry *entry = &entries[i];

		if (strcmp(entry->name, symbol))
			continue;
		*ret_function = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
					? entry->per_thread
					: entry->plain;
		if (ret_status)
			*ret_status = 0;
		return CUDA_SUCCESS;
	}
	*ret_function = NULL;
	if (ret_status)
		*ret_status = 1;
	return api_fail(API_cuGetProcAddress_v2, CUDA_ERROR_NOT_FOUND);
}
