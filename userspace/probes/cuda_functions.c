/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/cuda_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* ---- what a function's parameters mean ---- */

#define CALL .does = PP_CUDA_CALL
#define LAUNCH(kernel, into)                                                                       \
	{CALL, .queues = 1, .ident = (kernel), .stream = (into), .node = PP_CUDA_NODE_KERNEL}
/* cuda.h: CUlaunchConfig, driver_types.h: cudaLaunchConfig_t. */
#define LAUNCH_CONFIG(kernel, config)                                                              \
	{CALL,                                                                                     \
	 .queues = 1,                                                                              \
	 .ident = (kernel),                                                                        \
	 .stream = (config),                                                                       \
	 .stream_at = 32,                                                                          \
	 .node = PP_CUDA_NODE_KERNEL}
#define LAUNCH_GRAPH(instance, into)                                                               \
	{CALL, .queues = 1, .ident = (instance), .stream = (into), .node = PP_CUDA_NODE_INSTANCE}
/* Copies and fills that go on when the call has returned. */
#define LATER(into) CALL, .queues = 1, .stream = (into), .node = PP_CUDA_NODE_COPY
#define COPY(size, way, into) {LATER(into), .bytes = {size}, .direction = PP_CUDA_##way}
#define COPY_KIND(size, way, into) {LATER(into), .bytes = {size}, .kind = (way)}
#define COPY_2D(width, height, way, into) {LATER(into), .bytes = {width, height}, .kind = (way)}
#define COPY_LAYOUT(of, into) {LATER(into), .layout = PP_CUDA_LAYOUT_##of, .bytes = {1}}
#define COPY_PEERS(into)                                                                           \
	{LATER(into), .layout = PP_CUDA_LAYOUT_3D, .bytes = {1}, .direction = PP_CUDA_PEER}
#define COPY_BATCH(sizes, count, into)                                                             \
	{LATER(into), .layout = PP_CUDA_LAYOUT_BATCH, .bytes[0] = (sizes), .bytes[1] = (count)}
#define FILL(count, shift, into) {LATER(into), .bytes = {count}, .bytes_shift = (shift)}
#define FILL_2D(width, height, shift, into)                                                        \
	{LATER(into), .bytes = {width, height}, .bytes_shift = (shift)}
/* Of the device's memory they go on as well ("API synchronization behavior" of the CUDA Driver
 * API). */
#define FILL_NOW(count, shift) {CALL, .queues = 1, .bytes = {count}, .bytes_shift = (shift)}
#define FILL_NOW_2D(width, height, shift)                                                          \
	{CALL, .queues = 1, .bytes = {width, height}, .bytes_shift = (shift)}
/* Other work of a stream. */
#define QUEUE(into) {CALL, .queues = 1, .stream = (into), .node = PP_CUDA_NODE_OTHER}
/* What has ended when the call returns. */
#define TIMED CALL, .has_end = 1
#define WAITS TIMED, .waits = 1
/* By the same text those between addresses of the device return early, and those of pageable memory
 * to it when that was read. */
#define COPIES WAITS, .queues = PP_CUDA_QUEUES_TO_DEVICE
#define COPY_NOW(size, way) {COPIES, .bytes = {size}, .direction = PP_CUDA_##way}
#define COPY_NOW_KIND(size, way) {COPIES, .bytes = {size}, .kind = (way)}
#define COPY_NOW_2D(width, height, way) {COPIES, .bytes = {width, height}, .kind = (way)}
#define COPY_NOW_LAYOUT(of) {COPIES, .layout = PP_CUDA_LAYOUT_##of, .bytes = {1}}
#define COPY_NOW_PEERS                                                                             \
	{COPIES, .layout = PP_CUDA_LAYOUT_3D, .bytes = {1}, .direction = PP_CUDA_PEER}
#define SYNC {WAITS}
#define SYNC_STREAM(of) {WAITS, .syncs = PP_CUDA_SYNC_STREAM, .stream = (of)}
#define SYNC_CONTEXT(of) {WAITS, .syncs = PP_CUDA_SYNC_CONTEXT, .context = (of)}
/* The device's memory: parameter 1 is where its address is stored, or the address. */
#define GETS(what) TIMED, .object = PP_CUDA_OBJECT_##what, .out = 1
#define GIVES_BACK(what) TIMED, .object = PP_CUDA_OBJECT_##what, .text = 1
#define ALLOC(size) {GETS(MEMORY), .bytes[0] = (size)}
#define ALLOC_2D(width, height) {GETS(MEMORY), .bytes[0] = (width), .bytes[1] = (height)}
#define ALLOC_IN(size, into)                                                                       \
	{GETS(MEMORY), .bytes = {size}, .stream = (into), .node = PP_CUDA_NODE_OTHER}
#define ALLOC_PHYSICAL(size) {GETS(PHYSICAL), .bytes[0] = (size)}
#define FREE {GIVES_BACK(MEMORY)}
#define FREE_IN(into) {GIVES_BACK(MEMORY), .stream = (into), .node = PP_CUDA_NODE_OTHER}
#define FREE_PHYSICAL {GIVES_BACK(PHYSICAL)}
/* The host's memory. */
#define ALLOC_HOST(size) {TIMED, .bytes[0] = (size)}
#define FREE_HOST {TIMED}
/* NCCL: so many elements of a type.  The kernel that it launches is a call of its own, which leaves
 * the work in the stream. */
#define COLLECTIVE(count, type, comm, into)                                                        \
	{TIMED, .layout = PP_CUDA_LAYOUT_ELEMENTS, .bytes = {count, type}, .ident = (comm),        \
	 .stream = (into)}
/* What is no call of its own. */
#define GIVES(does_what, handle) .does = PP_CUDA_##does_what, .has_end = 1, .out = (handle)
#define OF_CONTEXT .object = PP_CUDA_OBJECT_CONTEXT
#define NAME(handle, of, name) GIVES(NAME, handle), .ident = (of), .text = (name)
#define NAME_IN_MODULE(handle, module, name) {NAME(handle, module, name), OF_CONTEXT}
#define NAME_IN_LIBRARY(handle, library, name) {NAME(handle, library, name)}
#define ALIAS(handle, of) {GIVES(ALIAS, handle), .ident = (of), OF_CONTEXT}
#define GET_CONTEXT(context, device) {GIVES(GET_CONTEXT, context), .ident = (device)}
#define MAKE_CONTEXT(context, device) {GIVES(MAKE_CONTEXT, context), .ident = (device)}
#define SET_CONTEXT(context) {.does = PP_CUDA_SET_CONTEXT, .ident = (context)}
#define PUSH_CONTEXT(context) {.does = PP_CUDA_PUSH_CONTEXT, .ident = (context)}
#define POP_CONTEXT {.does = PP_CUDA_POP_CONTEXT}
#define SET_DEVICE(device) {.does = PP_CUDA_SET_DEVICE, .ident = (device)}
#define FORGET(what, kind)                                                                         \
	{.does = PP_CUDA_FORGET, .ident = (what), .object = PP_CUDA_OBJECT_##kind}
#define BEGIN_CAPTURE(of) {.does = PP_CUDA_BEGIN_CAPTURE, .has_end = 1, .stream = (of)}
#define CAPTURE_INTO(of, graph)                                                                    \
	{.does = PP_CUDA_BEGIN_CAPTURE, .has_end = 1, .stream = (of), .ident = (graph)}
#define END_CAPTURE(of, graph) {GIVES(END_CAPTURE, graph), .stream = (of)}
#define RECORD_EVENT(event, of, flags)                                                             \
	{.does = PP_CUDA_RECORD_EVENT, .ident = (event), .stream = (of), .kind = (flags)}
#define AWAIT_EVENT(event, by) {.does = PP_CUDA_AWAIT_EVENT, .ident = (event), .stream = (by)}
#define MAKE_GRAPH(graph) {GIVES(MAKE_GRAPH, graph)}
#define CLONE(graph, of) {GIVES(COPY_GRAPH, graph), .ident = (of), .object = PP_CUDA_OBJECT_GRAPH}
#define INSTANTIATE(instance, of)                                                                  \
	{GIVES(COPY_GRAPH, instance), .ident = (of), .object = PP_CUDA_OBJECT_INSTANCE}
#define UPDATE(instance, of)                                                                       \
	{.does = PP_CUDA_UPDATE_GRAPH, .has_end = 1, .ident = (instance), .text = (of)}
/* Nodes go to graph 2. */
#define ADD(kind) .does = PP_CUDA_ADD_NODE, .has_end = 1, .node = PP_CUDA_NODE_##kind
#define ADD_TO_GRAPH(kind) ADD(kind), .ident = 2, .object = PP_CUDA_OBJECT_GRAPH
#define ADD_KERNEL {ADD_TO_GRAPH(KERNEL)}
#define ADD_COPY(size) {ADD_TO_GRAPH(COPY), .bytes[0] = (size)}
#define ADD_LAYOUT(of, at) {ADD_TO_GRAPH(COPY), .layout = PP_CUDA_LAYOUT_##of, .bytes[0] = (at)}
#define ADD_CHILD(graph) {ADD_TO_GRAPH(GRAPH), .text = (graph)}
#define ADD_NODE(params) {ADD_TO_GRAPH(BY_LAYOUT), .bytes[0] = (params)}
#define ADD_UNKNOWN {ADD_TO_GRAPH(UNKNOWN)}
#define CHANGE_INSTANCE(instance)                                                                  \
	{ADD(UNKNOWN), .ident = (instance), .object = PP_CUDA_OBJECT_INSTANCE}

/* X(name, library, what else there is to know, what it does).  Functions of one library stand
 * together, those whose ends are sites behind the others, and of each those that are FIRST. */
#define DRIVER_CALLS(X)                                                                            \
	X(cuLaunchKernel, DRIVER, KERNEL | FIRST, LAUNCH(1, 9))                                    \
	X(cuLaunchKernelEx, DRIVER, KERNEL | FIRST, LAUNCH_CONFIG(2, 1))                           \
	X(cuGraphLaunch, DRIVER, GRAPH | FIRST, LAUNCH_GRAPH(1, 2))                                \
	X(cuMemcpyHtoDAsync_v2, DRIVER, FIRST, COPY(3, HTOD, 4))                                   \
	X(cuMemcpyDtoHAsync_v2, DRIVER, FIRST, COPY(3, DTOH, 4))                                   \
	X(cuLaunchCooperativeKernel, DRIVER, KERNEL, LAUNCH(1, 9))                                 \
	X(cuMemcpyAsync, DRIVER, 0, COPY(3, UNIFIED, 4))                                           \
	X(cuMemcpyDtoDAsync_v2, DRIVER, 0, COPY(3, DTOD, 4))                                       \
	X(cuMemcpyPeerAsync, DRIVER, 0, COPY(5, PEER, 6))                                          \
	X(cuMemcpy2DAsync_v2, DRIVER, 0, COPY_LAYOUT(2D, 2))                                       \
	X(cuMemcpy3DAsync_v2, DRIVER, 0, COPY_LAYOUT(3D, 2))                                       \
	X(cuMemcpy3DPeerAsync, DRIVER, 0, COPY_PEERS(2))                                           \
	X(cuMemcpyHtoAAsync_v2, DRIVER, 0, COPY(4, HTOD, 5))                                       \
	X(cuMemcpyAtoHAsync_v2, DRIVER, 0, COPY(4, DTOH, 5))                                       \
	X(cuMemcpyWithAttributesAsync, DRIVER, 0, COPY(3, UNIFIED, 5))                             \
	X(cuMemcpyBatchAsync, DRIVER, 0, COPY_BATCH(3, 4, 9))                                      \
	X(cuMemcpyBatchAsync_v2, DRIVER, 0, COPY_BATCH(3, 4, 8))                                   \
	X(cuMemcpy3DBatchAsync, DRIVER, 0, QUEUE(5))                                               \
	X(cuMemcpy3DBatchAsync_v2, DRIVER, 0, QUEUE(4))                                            \
	X(cuMemPrefetchAsync, DRIVER, 0, QUEUE(4))                                                 \
	X(cuMemPrefetchAsync_v2, DRIVER, 0, QUEUE(5))                                              \
	X(cuMemPrefetchBatchAsync, DRIVER, 0, QUEUE(8))                                            \
	X(cuMemDiscardAndPrefetchBatchAsync, DRIVER, 0, QUEUE(8))                                  \
	X(cuGraphUpload, DRIVER, 0, QUEUE(2))                                                      \
	X(cuStreamWaitValue32, DRIVER, 0, QUEUE(1))                                                \
	X(cuStreamWaitValue32_v2, DRIVER, 0, QUEUE(1))                                             \
	X(cuStreamWaitValue64, DRIVER, 0, QUEUE(1))                                                \
	X(cuStreamWaitValue64_v2, DRIVER, 0, QUEUE(1))                                             \
	X(cuStreamWriteValue32, DRIVER, 0, QUEUE(1))                                               \
	X(cuStreamWriteValue32_v2, DRIVER, 0, QUEUE(1))                                            \
	X(cuStreamWriteValue64, DRIVER, 0, QUEUE(1))                                               \
	X(cuStreamWriteValue64_v2, DRIVER, 0, QUEUE(1))                                            \
	X(cuStreamBatchMemOp, DRIVER, 0, QUEUE(1))                                                 \
	X(cuStreamBatchMemOp_v2, DRIVER, 0, QUEUE(1))                                              \
	X(cuMemsetD8Async, DRIVER, 0, FILL(3, 0, 4))                                               \
	X(cuMemsetD16Async, DRIVER, 0, FILL(3, 1, 4))                                              \
	X(cuMemsetD32Async, DRIVER, 0, FILL(3, 2, 4))                                              \
	X(cuMemsetD2D8Async, DRIVER, 0, FILL_2D(4, 5, 0, 6))                                       \
	X(cuMemsetD2D16Async, DRIVER, 0, FILL_2D(4, 5, 1, 6))                                      \
	X(cuMemsetD2D32Async, DRIVER, 0, FILL_2D(4, 5, 2, 6))                                      \
	X(cuMemsetD8_v2, DRIVER, 0, FILL_NOW(3, 0))                                                \
	X(cuMemsetD16_v2, DRIVER, 0, FILL_NOW(3, 1))                                               \
	X(cuMemsetD32_v2, DRIVER, 0, FILL_NOW(3, 2))                                               \
	X(cuMemsetD2D8_v2, DRIVER, 0, FILL_NOW_2D(4, 5, 0))                                        \
	X(cuMemsetD2D16_v2, DRIVER, 0, FILL_NOW_2D(4, 5, 1))                                       \
	X(cuMemsetD2D32_v2, DRIVER, 0, FILL_NOW_2D(4, 5, 2))                                       \
	X(cuCtxSetCurrent, DRIVER, 0, SET_CONTEXT(1))                                              \
	X(cuCtxPushCurrent_v2, DRIVER, 0, PUSH_CONTEXT(1))                                         \
	X(cuCtxPopCurrent_v2, DRIVER, 0, POP_CONTEXT)                                              \
	X(cuCtxDestroy_v2, DRIVER, 0, FORGET(1, CONTEXT))                                          \
	X(cuDevicePrimaryCtxReset_v2, DRIVER, 0, FORGET(1, DEVICE))                                \
	X(cuModuleUnload, DRIVER, 0, FORGET(1, MODULE))                                            \
	X(cuLibraryUnload, DRIVER, 0, FORGET(1, MODULE))                                           \
	X(cuStreamDestroy_v2, DRIVER, 0, FORGET(1, STREAM))                                        \
	X(cuGraphDestroy, DRIVER, 0, FORGET(1, GRAPH))                                             \
	X(cuGraphExecDestroy, DRIVER, 0, FORGET(1, INSTANCE))                                      \
	X(cuEventRecord, DRIVER, 0, RECORD_EVENT(1, 2, 0))                                         \
	X(cuEventRecordWithFlags, DRIVER, 0, RECORD_EVENT(1, 2, 3))                                \
	X(cuStreamWaitEvent, DRIVER, 0, AWAIT_EVENT(2, 1))                                         \
	X(cuStreamSynchronize, DRIVER, FIRST, SYNC_STREAM(1))                                      \
	X(cuCtxSynchronize, DRIVER, FIRST, SYNC_CONTEXT(0))                                        \
	X(cuEventSynchronize, DRIVER, FIRST, SYNC)                                                 \
	X(cuCtxSynchronize_v2, DRIVER, 0, SYNC_CONTEXT(1))                                         \
	X(cuMemcpy, DRIVER, 0, COPY_NOW(3, UNIFIED))                                               \
	X(cuMemcpyHtoD_v2, DRIVER, 0, COPY_NOW(3, HTOD))                                           \
	X(cuMemcpyDtoH_v2, DRIVER, 0, COPY_NOW(3, DTOH))                                           \
	X(cuMemcpyDtoD_v2, DRIVER, 0, COPY_NOW(3, DTOD))                                           \
	X(cuMemcpyPeer, DRIVER, 0, COPY_NOW(5, PEER))                                              \
	X(cuMemcpy2D_v2, DRIVER, 0, COPY_NOW_LAYOUT(2D))                                           \
	X(cuMemcpy2DUnaligned_v2, DRIVER, 0, COPY_NOW_LAYOUT(2D))                                  \
	X(cuMemcpy3D_v2, DRIVER, 0, COPY_NOW_LAYOUT(3D))                                           \
	X(cuMemcpy3DPeer, DRIVER, 0, COPY_NOW_PEERS)                                               \
	X(cuMemcpyHtoA_v2, DRIVER, 0, COPY_NOW(4, HTOD))                                           \
	X(cuMemcpyAtoH_v2, DRIVER, 0, COPY_NOW(4, DTOH))                                           \
	X(cuMemcpyDtoA_v2, DRIVER, 0, COPY_NOW(4, DTOD))                                           \
	X(cuMemcpyAtoD_v2, DRIVER, 0, COPY_NOW(4, DTOD))                                           \
	X(cuMemcpyAtoA_v2, DRIVER, 0, COPY_NOW(5, DTOD))                                           \
	X(cuMemAlloc_v2, DRIVER, 0, ALLOC(2))                                                      \
	X(cuMemAllocPitch_v2, DRIVER, 0, ALLOC_2D(3, 4))                                           \
	X(cuMemAllocAsync, DRIVER, 0, ALLOC_IN(2, 3))                                              \
	X(cuMemAllocFromPoolAsync, DRIVER, 0, ALLOC_IN(2, 4))                                      \
	X(cuMemAllocManaged, DRIVER, 0, ALLOC(2))                                                  \
	X(cuMemAllocHost_v2, DRIVER, 0, ALLOC_HOST(2))                                             \
	X(cuMemHostAlloc, DRIVER, 0, ALLOC_HOST(2))                                                \
	X(cuMemFree_v2, DRIVER, 0, FREE)                                                           \
	X(cuMemFreeAsync, DRIVER, 0, FREE_IN(2))                                                   \
	X(cuMemFreeHost, DRIVER, 0, FREE_HOST)                                                     \
	X(cuMemCreate, DRIVER, 0, ALLOC_PHYSICAL(2))                                               \
	X(cuMemRelease, DRIVER, 0, FREE_PHYSICAL)                                                  \
	X(cuModuleGetFunction, DRIVER, 0, NAME_IN_MODULE(1, 2, 3))                                 \
	X(cuLibraryGetKernel, DRIVER, 0, NAME_IN_LIBRARY(1, 2, 3))                                 \
	X(cuKernelGetFunction, DRIVER, 0, ALIAS(1, 2))                                             \
	X(cuDevicePrimaryCtxRetain, DRIVER, 0, GET_CONTEXT(1, 2))                                  \
	X(cuCtxCreate_v2, DRIVER, 0, MAKE_CONTEXT(1, 3))                                           \
	X(cuCtxCreate_v3, DRIVER, 0, MAKE_CONTEXT(1, 5))                                           \
	X(cuCtxCreate_v4, DRIVER, 0, MAKE_CONTEXT(1, 4))                                           \
	X(cuStreamBeginCapture, DRIVER, 0, BEGIN_CAPTURE(1))                                       \
	X(cuStreamBeginCapture_v2, DRIVER, 0, BEGIN_CAPTURE(1))                                    \
	X(cuStreamBeginCaptureToGraph, DRIVER, 0, CAPTURE_INTO(1, 2))                              \
	X(cuStreamBeginRecaptureToGraph, DRIVER, 0, BEGIN_CAPTURE(1))                              \
	X(cuStreamEndCapture, DRIVER, 0, END_CAPTURE(1, 2))                                        \
	X(cuGraphCreate, DRIVER, 0, MAKE_GRAPH(1))                                                 \
	X(cuGraphClone, DRIVER, 0, CLONE(1, 2))                                                    \
	X(cuGraphInstantiate, DRIVER, 0, INSTANTIATE(1, 2))                                        \
	X(cuGraphInstantiate_v2, DRIVER, 0, INSTANTIATE(1, 2))                                     \
	X(cuGraphInstantiateWithFlags, DRIVER, 0, INSTANTIATE(1, 2))                               \
	X(cuGraphInstantiateWithParams, DRIVER, 0, INSTANTIATE(1, 2))                              \
	X(cuGraphExecUpdate, DRIVER, 0, UPDATE(1, 2))                                              \
	X(cuGraphExecUpdate_v2, DRIVER, 0, UPDATE(1, 2))                                           \
	X(cuGraphNodeSetEnabled, DRIVER, 0, CHANGE_INSTANCE(1))                                    \
	X(cuGraphAddKernelNode, DRIVER, 0, ADD_KERNEL)                                             \
	X(cuGraphAddKernelNode_v2, DRIVER, 0, ADD_KERNEL)                                          \
	X(cuGraphAddMemcpyNode, DRIVER, 0, ADD_LAYOUT(3D, 5))                                      \
	X(cuGraphAddMemsetNode, DRIVER, 0, ADD_LAYOUT(FILL, 5))                                    \
	X(cuGraphAddChildGraphNode, DRIVER, 0, ADD_CHILD(5))                                       \
	X(cuGraphAddNode, DRIVER, 0, ADD_NODE(5))                                                  \
	X(cuGraphAddNode_v2, DRIVER, 0, ADD_NODE(6))                                               \
	X(cuGraphAddNode_v3, DRIVER, 0, ADD_NODE(6))

#define RUNTIME_CALLS(X)                                                                           \
	X(cudaLaunchKernel, RUNTIME, KERNEL | FIRST, LAUNCH(1, 8))                                 \
	X(cudaLaunchKernelExC, RUNTIME, KERNEL | FIRST, LAUNCH_CONFIG(2, 1))                       \
	X(cudaGraphLaunch, RUNTIME, GRAPH | FIRST, LAUNCH_GRAPH(1, 2))                             \
	X(cudaMemcpyAsync, RUNTIME, FIRST, COPY_KIND(3, 4, 5))                                     \
	X(cudaLaunchCooperativeKernel, RUNTIME, KERNEL, LAUNCH(1, 8))                              \
	X(cudaMemcpy2DAsync, RUNTIME, 0, COPY_2D(5, 6, 7, 8))                                      \
	X(cudaMemcpy2DToArrayAsync, RUNTIME, 0, COPY_2D(6, 7, 8, 9))                               \
	X(cudaMemcpy2DFromArrayAsync, RUNTIME, 0, COPY_2D(6, 7, 8, 9))                             \
	X(cudaMemcpy3DAsync, RUNTIME, 0, COPY_LAYOUT(RUNTIME_3D, 2))                               \
	X(cudaMemcpyPeerAsync, RUNTIME, 0, COPY(5, PEER, 6))                                       \
	X(cudaMemcpyToArrayAsync, RUNTIME, 0, COPY_KIND(5, 6, 7))                                  \
	X(cudaMemcpyFromArrayAsync, RUNTIME, 0, COPY_KIND(5, 6, 7))                                \
	X(cudaMemcpyWithAttributesAsync, RUNTIME, 0, COPY(3, UNIFIED, 5))                          \
	X(cudaMemcpyToSymbolAsync, RUNTIME, 0, COPY_KIND(3, 5, 6))                                 \
	X(cudaMemcpyFromSymbolAsync, RUNTIME, 0, COPY_KIND(3, 5, 6))                               \
	X(cudaMemcpyBatchAsync, RUNTIME, 0, COPY_BATCH(3, 4, 0))                                   \
	X(cudaGraphUpload, RUNTIME, 0, QUEUE(2))                                                   \
	X(cudaMemset, RUNTIME, 0, FILL_NOW(3, 0))                                                  \
	X(cudaMemset2D, RUNTIME, 0, FILL_NOW_2D(4, 5, 0))                                          \
	X(cudaMemsetAsync, RUNTIME, 0, FILL(3, 0, 4))                                              \
	X(cudaMemset2DAsync, RUNTIME, 0, FILL_2D(4, 5, 0, 6))                                      \
	X(cudaSetDevice, RUNTIME, 0, SET_DEVICE(1))                                                \
	X(cudaDeviceReset, RUNTIME, 0, FORGET(0, DEVICE))                                          \
	X(cudaStreamDestroy, RUNTIME, 0, FORGET(1, STREAM))                                        \
	X(cudaGraphDestroy, RUNTIME, 0, FORGET(1, GRAPH))                                          \
	X(cudaGraphExecDestroy, RUNTIME, 0, FORGET(1, INSTANCE))                                   \
	X(cudaEventRecord, RUNTIME, 0, RECORD_EVENT(1, 2, 0))                                      \
	X(cudaEventRecordWithFlags, RUNTIME, 0, RECORD_EVENT(1, 2, 3))                             \
	X(cudaStreamWaitEvent, RUNTIME, 0, AWAIT_EVENT(2, 1))                                      \
	X(cudaMemcpy, RUNTIME, FIRST, COPY_NOW_KIND(3, 4))                                         \
	X(cudaStreamSynchronize, RUNTIME, FIRST, SYNC_STREAM(1))                                   \
	X(cudaDeviceSynchronize, RUNTIME, FIRST, SYNC_CONTEXT(0))                                  \
	X(cudaEventSynchronize, RUNTIME, FIRST, SYNC)                                              \
	X(cudaThreadSynchronize, RUNTIME, 0, SYNC_CONTEXT(0))                                      \
	X(cudaMemcpy2D, RUNTIME, 0, COPY_NOW_2D(5, 6, 7))                                          \
	X(cudaMemcpy2DToArray, RUNTIME, 0, COPY_NOW_2D(6, 7, 8))                                   \
	X(cudaMemcpy2DFromArray, RUNTIME, 0, COPY_NOW_2D(6, 7, 8))                                 \
	X(cudaMemcpy3D, RUNTIME, 0, COPY_NOW_LAYOUT(RUNTIME_3D))                                   \
	X(cudaMemcpyPeer, RUNTIME, 0, COPY_NOW(5, PEER))                                           \
	X(cudaMemcpyToArray, RUNTIME, 0, COPY_NOW_KIND(5, 6))                                      \
	X(cudaMemcpyFromArray, RUNTIME, 0, COPY_NOW_KIND(5, 6))                                    \
	X(cudaMemcpyToSymbol, RUNTIME, 0, COPY_NOW_KIND(3, 5))                                     \
	X(cudaMemcpyFromSymbol, RUNTIME, 0, COPY_NOW_KIND(3, 5))                                   \
	X(cudaMalloc, RUNTIME, 0, ALLOC(2))                                                        \
	X(cudaMallocPitch, RUNTIME, 0, ALLOC_2D(3, 4))                                             \
	X(cudaMallocAsync, RUNTIME, 0, ALLOC_IN(2, 3))                                             \
	X(cudaMallocFromPoolAsync, RUNTIME, 0, ALLOC_IN(2, 4))                                     \
	X(cudaMallocManaged, RUNTIME, 0, ALLOC(2))                                                 \
	X(cudaMallocHost, RUNTIME, 0, ALLOC_HOST(2))                                               \
	X(cudaHostAlloc, RUNTIME, 0, ALLOC_HOST(2))                                                \
	X(cudaFree, RUNTIME, 0, FREE)                                                              \
	X(cudaFreeAsync, RUNTIME, 0, FREE_IN(2))                                                   \
	X(cudaFreeHost, RUNTIME, 0, FREE_HOST)                                                     \
	X(cudaStreamBeginCapture, RUNTIME, 0, BEGIN_CAPTURE(1))                                    \
	X(cudaStreamBeginCaptureToGraph, RUNTIME, 0, CAPTURE_INTO(1, 2))                           \
	X(cudaStreamBeginRecaptureToGraph, RUNTIME, 0, BEGIN_CAPTURE(1))                           \
	X(cudaStreamEndCapture, RUNTIME, 0, END_CAPTURE(1, 2))                                     \
	X(cudaGraphCreate, RUNTIME, 0, MAKE_GRAPH(1))                                              \
	X(cudaGraphClone, RUNTIME, 0, CLONE(1, 2))                                                 \
	X(cudaGraphInstantiate, RUNTIME, 0, INSTANTIATE(1, 2))                                     \
	X(cudaGraphInstantiateWithFlags, RUNTIME, 0, INSTANTIATE(1, 2))                            \
	X(cudaGraphInstantiateWithParams, RUNTIME, 0, INSTANTIATE(1, 2))                           \
	X(cudaGraphExecUpdate, RUNTIME, 0, UPDATE(1, 2))                                           \
	X(cudaGraphNodeSetEnabled, RUNTIME, 0, CHANGE_INSTANCE(1))                                 \
	X(cudaGraphAddKernelNode, RUNTIME, 0, ADD_KERNEL)                                          \
	X(cudaGraphAddMemcpyNode, RUNTIME, 0, ADD_LAYOUT(RUNTIME_3D, 5))                           \
	X(cudaGraphAddMemcpyNode1D, RUNTIME, 0, ADD_COPY(7))                                       \
	X(cudaGraphAddMemcpyNodeToSymbol, RUNTIME, 0, ADD_COPY(7))                                 \
	X(cudaGraphAddMemcpyNodeFromSymbol, RUNTIME, 0, ADD_COPY(7))                               \
	X(cudaGraphAddMemsetNode, RUNTIME, 0, ADD_LAYOUT(FILL, 5))                                 \
	X(cudaGraphAddChildGraphNode, RUNTIME, 0, ADD_CHILD(5))                                    \
	X(cudaGraphAddNode, RUNTIME, 0, ADD_UNKNOWN)                                               \
	X(cudaGraphAddNode_v2, RUNTIME, 0, ADD_UNKNOWN)

/* ncclBcast calls ncclBroadcast.  In a group the kernels are launched by the outermost
 * ncclGroupEnd. */
#define NCCL_CALLS(X)                                                                              \
	X(ncclAllReduce, NCCL, COMMUNICATOR, COLLECTIVE(3, 4, 6, 7))                               \
	X(ncclReduce, NCCL, COMMUNICATOR, COLLECTIVE(3, 4, 7, 8))                                  \
	X(ncclBroadcast, NCCL, COMMUNICATOR, COLLECTIVE(3, 4, 6, 7))                               \
	X(ncclAllGather, NCCL, COMMUNICATOR, COLLECTIVE(3, 4, 5, 6))                               \
	X(ncclReduceScatter, NCCL, COMMUNICATOR, COLLECTIVE(3, 4, 6, 7))                           \
	X(ncclAlltoAll, NCCL, COMMUNICATOR, COLLECTIVE(3, 4, 5, 6))                                \
	X(ncclGather, NCCL, COMMUNICATOR, COLLECTIVE(3, 4, 6, 7))                                  \
	X(ncclScatter, NCCL, COMMUNICATOR, COLLECTIVE(3, 4, 6, 7))                                 \
	X(ncclSend, NCCL, COMMUNICATOR, COLLECTIVE(2, 3, 5, 6))                                    \
	X(ncclRecv, NCCL, COMMUNICATOR, COLLECTIVE(2, 3, 5, 6))                                    \
	X(ncclGroupEnd, NCCL, 0, {TIMED})

#define FUNCTIONS(X) DRIVER_CALLS(X) RUNTIME_CALLS(X) NCCL_CALLS(X)

enum { KERNEL = 1, GRAPH = 2, FIRST = 4, COMMUNICATOR = 8 };
#define FUNCTION_AT(name, ...) AT_##name,
enum { FUNCTIONS(FUNCTION_AT) FUNCTION_COUNT };

static const struct cuda_function functions[] = {
#define FUNCTION(called, of, more, ...)                                                            \
	[AT_##called] = {.name = #called,                                                          \
			 .library = CUDA_##of,                                                     \
			 .has_kernel = (more) & KERNEL,                                            \
			 .has_graph = (more) & GRAPH,                                              \
			 .has_communicator = (more) & COMMUNICATOR,                                \
			 .is_first = (more) & FIRST,                                               \
			 .site = __VA_ARGS__},
	FUNCTIONS(FUNCTION)};

size_t cuda_function_count(void)
{
	return ARRAY_SIZE(functions);
}

const struct cuda_function *cuda_function_get(size_t api)
{
	return api < ARRAY_SIZE(functions) ? &functions[api] : NULL;
}

bool cuda_function_is_frequent(const struct cuda_function *function)
{
	return function->has_kernel || function->has_graph ||
	       function->site.does == PP_CUDA_RECORD_EVENT ||
	       function->site.does == PP_CUDA_AWAIT_EVENT;
}

bool cuda_function_is_timed(size_t api)
{
	const struct cuda_function *function = cuda_function_get(api);

	return function && function->site.does == PP_CUDA_CALL && function->site.has_end;
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

char *cuda_functions_left_out(enum cuda_library library)
{
	char *text = NULL, label[64];
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if ((functions[i].library == library || functions[i].library == CUDA_NCCL) &&
		    !functions[i].is_first && functions[i].site.does == PP_CUDA_CALL)
			fprintf(file, "%s%s", ftell(file) ? ", " : "",
				cuda_function_label(i, label));
	if (!fclose(file))
		return text;
	free(text);
	return NULL;
}

static const char *name_of(const char *path)
{
	const char *last = path ? strrchr(path, '/') : NULL;

	return last ? last + 1 : path ? path : "";
}

/* Returns whether a file is called STEM.so.VERSION, or STEM-HASH.so.VERSION, as wheels have
 * them. */
static bool is_called(const char *name, const char *stem)
{
	const size_t size = strlen(stem);

	return !strncmp(name, stem, size) && (name[size] == '.' || name[size] == '-') &&
	       strstr(name + size, ".so");
}

enum cuda_library cuda_library_of(const char *path)
{
	const char *name = name_of(path);

	if (!strncmp(name, "libcuda.so.", strlen("libcuda.so.")))
		return CUDA_DRIVER;
	if (is_called(name, "libcudart"))
		return CUDA_RUNTIME;
	return is_called(name, "libnccl") ? CUDA_NCCL : CUDA_LIBRARIES;
}
