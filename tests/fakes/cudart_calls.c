/* SPDX-License-Identifier: BSD-2-Clause */
/* Everything of the fake libcudart that only hands its arguments on to the driver. */
#include "cudart.h"

/* A call of the driver as the body of a function. */
#define CALL(function, ...) CALL_OF(cudart_slots, function, __VA_ARGS__)
#define CALL_OF(slots, function, ...)                                                              \
	{                                                                                          \
		cudaError_t error = cudart_ready();                                                \
                                                                                                   \
		if (!error)                                                                        \
			error = slots.function(__VA_ARGS__);                                       \
		return error ? cudart_remember(error) : error;                                     \
	}
#define DEVICE(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

cudaError_t cudaDeviceSynchronize(void) CALL(cuCtxSynchronize, )

	/* ---------------------------------------------------------------- memory */

	cudaError_t cudaMalloc(void **ret_pointer, size_t bytes)
		CALL(cuMemAlloc_v2, (CUdeviceptr *)ret_pointer, bytes)

			cudaError_t
	cudaMallocAsync(void **ret_pointer, size_t bytes, cudaStream_t stream)
		CALL(cuMemAllocAsync, (CUdeviceptr *)ret_pointer, bytes, stream)

			cudaError_t
	cudaMallocHost(void **ret_pointer, size_t bytes) CALL(cuMemHostAlloc, ret_pointer, bytes, 0)

		cudaError_t cudaHostAlloc(void **ret_pointer, size_t bytes, unsigned int flags)
			CALL(cuMemHostAlloc, ret_pointer, bytes, flags)

				cudaError_t
	cudaFree(void *pointer) CALL(cuMemFree_v2, DEVICE(pointer))

		cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
			CALL(cuMemFreeAsync, DEVICE(pointer), stream)

				cudaError_t cudaFreeHost(void *pointer) CALL(cuMemFreeHost, pointer)

					cudaError_t
	cudaMemGetInfo(size_t *ret_free, size_t *ret_total)
		CALL(cuMemGetInfo_v2, ret_free, ret_total)

	/* ---------------------------------------------------------------- copies */

	__attribute__((noinline)) static cudaError_t
	copy(void *dst, const void *src, size_t bytes, int kind)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cudart_slots.cuMemcpyHtoD_v2(DEVICE(dst), src, bytes);
	case cudaMemcpyDeviceToHost:
		return cudart_slots.cuMemcpyDtoH_v2(dst, DEVICE(src), bytes);
	case cudaMemcpyDeviceToDevice:
		return cudart_slots.cuMemcpyDtoD_v2(DEVICE(dst), DEVICE(src), bytes);
	default:
		return cudart_slots.cuMemcpy(DEVICE(dst), DEVICE(src), bytes);
	}
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, int kind)
{
	cudaError_t error = cudart_ready();

	if (!error)
		error = copy(dst, src, bytes, kind);
	return error ? cudart_remember(error) : error;
}

__attribute__((noinline)) static cudaError_t copy_async(void *dst, const void *src, size_t bytes,
							int kind, cudaStream_t stream)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cudart_slots.cuMemcpyHtoDAsync_v2(DEVICE(dst), src, bytes, stream);
	case cudaMemcpyDeviceToHost:
		return cudart_slots.cuMemcpyDtoHAsync_v2(dst, DEVICE(src), bytes, stream);
	case cudaMemcpyDeviceToDevice:
		return cudart_slots.cuMemcpyDtoDAsync_v2(DEVICE(dst), DEVICE(src), bytes, stream);
	default:
		return cudart_slots.cuMemcpyAsync(DEVICE(dst), DEVICE(src), bytes, stream);
	}
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, cudaStream_t stream)
{
	cudaError_t error = cudart_ready();

	if (!error)
		error = copy_async(dst, src, bytes, kind, stream);
	return error ? cudart_remember(error) : error;
}

cudaError_t cudaMemset(void *dst, int value, size_t bytes)
	CALL(cuMemsetD8_v2, DEVICE(dst), (unsigned char)value, bytes)

		cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream)
			CALL(cuMemsetD8Async, DEVICE(dst), (unsigned char)value, bytes, stream)

	/* ---------------------------------------------------------------- streams, events,
	 * graphs */

	cudaError_t cudaStreamCreate(cudaStream_t *ret_stream) CALL(cuStreamCreate, ret_stream, 0)

		cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret_stream, unsigned int flags)
			CALL(cuStreamCreate, ret_stream, flags)

				cudaError_t
	cudaStreamDestroy(cudaStream_t stream) CALL(cuStreamDestroy_v2, stream)

		cudaError_t cudaStreamSynchronize(cudaStream_t stream)
			CALL(cuStreamSynchronize, stream)

				cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream)
					CALL_OF(cudart_slots_ptsz, cuStreamSynchronize, stream)

						cudaError_t cudaStreamQuery(cudaStream_t stream)
							CALL(cuStreamQuery, stream)

								cudaError_t
	cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
		CALL(cuStreamWaitEvent, stream, event, flags)

			cudaError_t
	cudaEventCreate(cudaEvent_t *ret_event) CALL(cuEventCreate, ret_event, 0)

		cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret_event, unsigned int flags)
			CALL(cuEventCreate, ret_event, flags)

				cudaError_t cudaEventDestroy(cudaEvent_t event)
					CALL(cuEventDestroy_v2, event)

						cudaError_t
	cudaEventRecord(cudaEvent_t event, cudaStream_t stream) CALL(cuEventRecord, event, stream)

		cudaError_t cudaEventQuery(cudaEvent_t event) CALL(cuEventQuery, event)

			cudaError_t
	cudaEventSynchronize(cudaEvent_t event) CALL(cuEventSynchronize, event)

		cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode)
			CALL(cuStreamBeginCapture_v2, stream, mode)

				cudaError_t
	cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *ret_graph)
		CALL(cuStreamEndCapture, stream, ret_graph)

			cudaError_t
	cudaGraphInstantiate(cudaGraphExec_t *ret_exec, cudaGraph_t graph, uint64_t flags)
		CALL(cuGraphInstantiateWithFlags, ret_exec, graph, flags)

			cudaError_t
	cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) CALL(cuGraphLaunch, exec, stream)

		cudaError_t cudaGraphDestroy(cudaGraph_t graph) CALL(cuGraphDestroy, graph)

			cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
				CALL(cuGraphExecDestroy, exec)
