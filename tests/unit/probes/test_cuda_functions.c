/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/cuda_functions.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static const struct cuda_function *find(const char *name)
{
	for (size_t i = 0; i < cuda_function_count(); i++)
		if (!strcmp(cuda_function_get(i)->name, name))
			return cuda_function_get(i);
	fail_msg("%s is missing", name);
	return NULL;
}

static void functions__parameters_are_where_cuda_h_has_them(void **state)
{
	(void)state;
	assert_int_equal(find("cuLaunchKernel")->site.ident, 1);
	assert_int_equal(find("cuLaunchKernelEx")->site.ident, 2);
	assert_int_equal(find("cudaLaunchKernelExC")->site.ident, 2);
	assert_int_equal(find("cuMemcpyHtoDAsync_v2")->site.bytes[0], 3);
	assert_int_equal(find("cuMemcpyHtoDAsync_v2")->site.direction, PP_CUDA_HTOD);
	assert_int_equal(find("cuMemcpyPeerAsync")->site.bytes[0], 5);
	assert_int_equal(find("cudaMemcpy")->site.kind, 4);
	assert_int_equal(find("cudaMemcpy2D")->site.kind, 7);
	assert_int_equal(find("cuMemsetD32Async")->site.bytes_shift, 2);
	assert_int_equal(find("cuMemAlloc_v2")->site.bytes[0], 2);
	assert_int_equal(find("cuModuleGetFunction")->site.text, 3);
	assert_int_equal(find("cuLibraryGetKernel")->site.out, 1);
	assert_int_equal(find("cuKernelGetFunction")->site.ident, 2);
}

static void functions__streams_are_where_cuda_h_has_them(void **state)
{
	static const struct {
		const char *name;
		uint8_t stream;
	} cases[] = {{"cuLaunchKernel", 9},
		     {"cuLaunchCooperativeKernel", 9},
		     {"cuGraphLaunch", 2},
		     {"cuMemcpyHtoDAsync_v2", 4},
		     {"cuMemcpyPeerAsync", 6},
		     {"cuMemcpy3DAsync_v2", 2},
		     {"cuMemcpyBatchAsync", 9},
		     {"cuMemcpyBatchAsync_v2", 8},
		     {"cuMemsetD2D8Async", 6},
		     {"cuMemAllocAsync", 3},
		     {"cuMemFreeAsync", 2},
		     {"cuStreamSynchronize", 1},
		     {"cuStreamBeginCapture_v2", 1},
		     {"cuStreamWaitEvent", 1},
		     {"cuEventRecord", 2},
		     {"cudaLaunchKernel", 8},
		     {"cudaMemcpyAsync", 5},
		     {"cudaMemcpy2DAsync", 8},
		     {"cudaMemcpyToSymbolAsync", 6},
		     {"cuMemcpyHtoD_v2", 0},
		     {"cuCtxSynchronize", 0},
		     {"cuMemcpyHtoAAsync_v2", 5},
		     {"cuMemcpyWithAttributesAsync", 5},
		     {"cudaMallocFromPoolAsync", 4},
		     {"cudaMemcpyToArrayAsync", 7},
		     {"cuStreamBatchMemOp", 1},
		     {"cuMemPrefetchAsync", 4},
		     {"cuMemPrefetchAsync_v2", 5},
		     {"cuMemPrefetchBatchAsync", 8},
		     {"cuMemcpy3DBatchAsync", 5},
		     {"cuGraphUpload", 2}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(find(cases[i].name)->site.stream, cases[i].stream);
	assert_int_equal(find("cuLaunchKernelEx")->site.stream, 1);
	assert_int_equal(find("cuLaunchKernelEx")->site.stream_at, 32);
	assert_int_equal(find("cudaLaunchKernelExC")->site.stream_at, 32);
	assert_int_equal(find("cuLaunchKernel")->site.stream_at, 0);
}

/* nccl.h: how many elements, of which type, by which communicator, into which stream. */
static void functions__of_nccl(void **state)
{
	static const struct {
		const char *name;
		uint8_t count, communicator;
	} cases[] = {{"ncclAllReduce", 3, 6}, {"ncclReduce", 3, 7},	   {"ncclBroadcast", 3, 6},
		     {"ncclAllGather", 3, 5}, {"ncclReduceScatter", 3, 6}, {"ncclAlltoAll", 3, 5},
		     {"ncclGather", 3, 6},    {"ncclScatter", 3, 6},	   {"ncclSend", 2, 5},
		     {"ncclRecv", 2, 5}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct cuda_function *function = find(cases[i].name);

		assert_true(function->has_communicator);
		assert_int_equal(function->site.layout, PP_CUDA_LAYOUT_ELEMENTS);
		assert_int_equal(function->site.bytes[0], cases[i].count);
		assert_int_equal(function->site.bytes[1], cases[i].count + 1);
		assert_int_equal(function->site.ident, cases[i].communicator);
		assert_int_equal(function->site.stream, cases[i].communicator + 1);
	}
	assert_int_equal(find("ncclGroupEnd")->site.ident, 0);
}

static void functions__of_captures_and_graphs(void **state)
{
	(void)state;
	assert_int_equal(find("cuStreamBeginCapture_v2")->site.stream, 1);
	assert_int_equal(find("cuStreamBeginCaptureToGraph")->site.ident, 2);
	/* It puts the graph's nodes anew. */
	assert_int_equal(find("cuStreamBeginRecaptureToGraph")->site.ident, 0);
	assert_int_equal(find("cuEventRecord")->site.kind, 0);
	assert_int_equal(find("cuEventRecordWithFlags")->site.kind, 3);
	assert_int_equal(find("cuStreamEndCapture")->site.out, 2);
	assert_int_equal(find("cuGraphInstantiateWithParams")->site.object,
			 PP_CUDA_OBJECT_INSTANCE);
	assert_int_equal(find("cuGraphClone")->site.object, PP_CUDA_OBJECT_GRAPH);
	assert_int_equal(find("cuGraphExecUpdate_v2")->site.text, 2);
	assert_int_equal(find("cuGraphAddKernelNode_v2")->site.node, PP_CUDA_NODE_KERNEL);
	assert_int_equal(find("cuGraphAddMemcpyNode")->site.bytes[0], 5);
	assert_int_equal(find("cuGraphAddNode")->site.bytes[0], 5);
	assert_int_equal(find("cuGraphAddNode_v2")->site.bytes[0], 6);
	assert_int_equal(find("cuGraphAddNode_v3")->site.bytes[0], 6);
	assert_int_equal(find("cudaGraphAddNode_v2")->site.node, PP_CUDA_NODE_UNKNOWN);
	assert_int_equal(find("cudaGraphAddMemcpyNodeToSymbol")->site.bytes[0], 7);
	assert_int_equal(find("cuGraphAddChildGraphNode")->site.text, 5);
	assert_int_equal(find("cuCtxCreate_v2")->site.ident, 3);
	assert_int_equal(find("cuCtxCreate_v3")->site.ident, 5);
	assert_int_equal(find("cuCtxCreate_v4")->site.ident, 4);
	assert_int_equal(find("cuModuleGetFunction")->site.ident, 2);
	assert_int_equal(find("cuModuleGetFunction")->site.object, PP_CUDA_OBJECT_CONTEXT);
	assert_int_equal(find("cuLibraryGetKernel")->site.object, 0);
	assert_true(find("cuGraphLaunch")->has_graph);
	assert_false(find("cuLaunchKernel")->has_graph);
}

/* Who allocates says where the address will be and how large it is; who frees says which. */
static void functions__of_the_devices_memory_come_in_pairs(void **state)
{
	static const struct {
		const char *name;
		uint8_t object, size;
	} cases[] = {{"cuMemAlloc_v2", PP_CUDA_OBJECT_MEMORY, 2},
		     {"cuMemAllocPitch_v2", PP_CUDA_OBJECT_MEMORY, 3},
		     {"cuMemAllocManaged", PP_CUDA_OBJECT_MEMORY, 2},
		     {"cuMemAllocAsync", PP_CUDA_OBJECT_MEMORY, 2},
		     {"cuMemAllocFromPoolAsync", PP_CUDA_OBJECT_MEMORY, 2},
		     {"cuMemCreate", PP_CUDA_OBJECT_PHYSICAL, 2},
		     {"cudaMalloc", PP_CUDA_OBJECT_MEMORY, 2},
		     {"cudaMallocPitch", PP_CUDA_OBJECT_MEMORY, 3},
		     {"cudaMallocFromPoolAsync", PP_CUDA_OBJECT_MEMORY, 2}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(find(cases[i].name)->site.object, cases[i].object);
		assert_int_equal(find(cases[i].name)->site.out, 1);
		assert_int_equal(find(cases[i].name)->site.bytes[0], cases[i].size);
	}
	assert_int_equal(find("cuMemFree_v2")->site.text, 1);
	assert_int_equal(find("cuMemFreeAsync")->site.object, PP_CUDA_OBJECT_MEMORY);
	assert_int_equal(find("cuMemRelease")->site.object, PP_CUDA_OBJECT_PHYSICAL);
	assert_int_equal(find("cudaFree")->site.object, PP_CUDA_OBJECT_MEMORY);
	/* The host's is none. */
	assert_int_equal(find("cuMemHostAlloc")->site.object, 0);
	assert_int_equal(find("cuMemFreeHost")->site.object, 0);
	assert_int_equal(find("cudaMallocHost")->site.object, 0);
	assert_int_equal(find("cudaFreeHost")->site.object, 0);
	for (size_t i = 0; i < cuda_function_count(); i++) {
		const struct pp_cuda_site *site = &cuda_function_get(i)->site;

		if (site->does == PP_CUDA_CALL && site->object)
			assert_true(site->has_end && !site->out == !site->bytes[0] &&
				    !site->out == !!site->text);
	}
}

/* "API synchronization behavior" of the CUDA Driver API: what goes on when a call has returned. */
static void functions__that_queue_work(void **state)
{
	static const char *const queue[] = {"cuMemsetD8_v2",	      "cuMemPrefetchAsync",
					    "cuGraphUpload",	      "cuStreamWriteValue32",
					    "cuStreamWaitValue64_v2", "cuMemcpy3DBatchAsync_v2"};
	static const char *const do_not[] = {"cuMemAllocAsync", "cuMemFreeAsync", "cuEventRecord"};

	(void)state;
	for (size_t i = 0; i < sizeof(queue) / sizeof(queue[0]); i++)
		assert_int_equal(find(queue[i])->site.queues, 1);
	for (size_t i = 0; i < sizeof(do_not) / sizeof(do_not[0]); i++)
		assert_int_equal(find(do_not[i])->site.queues, 0);
	/* Where it goes to is known by its direction. */
	assert_int_equal(find("cuMemcpyHtoD_v2")->site.queues, PP_CUDA_QUEUES_TO_DEVICE);
	for (size_t i = 0; i < cuda_function_count(); i++) {
		const struct pp_cuda_site *site = &cuda_function_get(i)->site;

		if (site->queues)
			assert_int_equal(site->does, PP_CUDA_CALL);
	}
}

/* What a stream records is what goes on when the call has returned. */
static void functions__that_are_recorded_have_a_stream(void **state)
{
	(void)state;
	for (size_t i = 0; i < cuda_function_count(); i++) {
		const struct pp_cuda_site *site = &cuda_function_get(i)->site;

		if (site->does == PP_CUDA_CALL && site->node)
			assert_true(site->stream || site->layout == PP_CUDA_LAYOUT_BATCH);
		assert_true(!site->layout || site->bytes[0]);
		assert_int_equal(site->is_twin, 0);
	}
}

/* Those of a library that are probed before Linux 6.6. */
static void functions__eight_of_a_library_come_first(void **state)
{
	unsigned int count[CUDA_LIBRARIES] = {};
	char *left_out;

	(void)state;
	for (size_t i = 0; i < cuda_function_count(); i++)
		count[cuda_function_get(i)->library] += cuda_function_get(i)->is_first;
	assert_int_equal(count[0], 8);
	assert_int_equal(count[1], 8);
	assert_int_equal(count[CUDA_NCCL], 0);
	left_out = cuda_functions_left_out(CUDA_DRIVER);
	assert_non_null(strstr(left_out, "ncclAllReduce"));
	assert_non_null(strstr(left_out, "cuMemcpyDtoDAsync, "));
	assert_null(strstr(left_out, "cuLaunchKernel,"));
	assert_null(strstr(left_out, "cuStreamSynchronize"));
	assert_null(strstr(left_out, "cuModuleGetFunction"));
	assert_null(strstr(left_out, "cuda"));
	free(left_out);
	left_out = cuda_functions_left_out(CUDA_RUNTIME);
	assert_memory_equal(left_out, "cuda", 4);
	free(left_out);
}

/* What waits has an end; what is timed without is an allocation. */
static void functions__that_wait_have_an_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < cuda_function_count(); i++) {
		const struct cuda_function *function = cuda_function_get(i);

		assert_true(!function->site.waits || function->site.has_end);
		assert_true(!function->has_kernel || function->site.ident);
		assert_int_equal(function->library,
				 !strncmp(function->name, "cuda", 4)   ? CUDA_RUNTIME
				 : !strncmp(function->name, "nccl", 4) ? CUDA_NCCL
								       : CUDA_DRIVER);
		assert_true(!function->has_communicator || !cuda_function_is_frequent(function));
		assert_int_not_equal(function->site.does, 0);
	}
	assert_true(find("cuStreamSynchronize")->site.waits);
	assert_true(find("cuMemcpyDtoH_v2")->site.waits);
	assert_false(find("cuMemAlloc_v2")->site.waits);
	assert_false(find("cuLaunchKernel")->site.has_end);
	assert_true(cuda_function_is_frequent(find("cuGraphLaunch")));
	assert_true(cuda_function_is_frequent(find("cuEventRecord")));
	assert_true(cuda_function_is_frequent(find("cudaStreamWaitEvent")));
	assert_false(cuda_function_is_frequent(find("cuMemcpyHtoDAsync_v2")));
	for (size_t i = 0; i < cuda_function_count(); i++)
		assert_int_equal(cuda_function_is_timed(i),
				 cuda_function_get(i)->site.has_end &&
					 cuda_function_get(i)->site.does == PP_CUDA_CALL);
	assert_false(cuda_function_is_timed(cuda_function_count()));
	assert_null(cuda_function_get(cuda_function_count()));
}

static void label__has_no_version(void **state)
{
	char text[64];

	(void)state;
	for (size_t i = 0; i < cuda_function_count(); i++)
		assert_null(strstr(cuda_function_label(i, text), "_v"));
	assert_string_equal(cuda_function_label(0, text), "cuLaunchKernel");
	assert_string_equal(cuda_function_label(cuda_function_count(), text), "");
}

static void libraries__are_known_by_their_names(void **state)
{
	(void)state;
	assert_int_equal(cuda_library_of("/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06"),
			 CUDA_DRIVER);
	assert_int_equal(cuda_library_of("libcuda.so.1"), CUDA_DRIVER);
	assert_int_equal(cuda_library_of("/usr/lib/libcuda.so"), CUDA_LIBRARIES);
	assert_int_equal(cuda_library_of("/libcuda.so.1/x"), CUDA_LIBRARIES);
	assert_int_equal(cuda_library_of(NULL), CUDA_LIBRARIES);
	assert_int_equal(cuda_library_of("/a/libcudart.so.13"), CUDA_RUNTIME);
	assert_int_equal(cuda_library_of("/torchvision.libs/libcudart.faf08d9a.so.13"),
			 CUDA_RUNTIME);
	assert_int_equal(cuda_library_of("libcudart-d0da41ae.so.11.0"), CUDA_RUNTIME);
	assert_int_equal(cuda_library_of("libcudart_static.a"), CUDA_LIBRARIES);
	assert_int_equal(cuda_library_of("libcudartx.so.1"), CUDA_LIBRARIES);
	assert_int_equal(cuda_library_of("libcudart.a"), CUDA_LIBRARIES);
	assert_int_equal(cuda_library_of("/nvidia/nccl/lib/libnccl.so.2"), CUDA_NCCL);
	assert_int_equal(cuda_library_of("/torch.libs/libnccl-9b5a0b2f.so.2.19.3"), CUDA_NCCL);
	assert_int_equal(cuda_library_of("libncclx.so.2"), CUDA_LIBRARIES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions__parameters_are_where_cuda_h_has_them),
		cmocka_unit_test(functions__streams_are_where_cuda_h_has_them),
		cmocka_unit_test(functions__of_nccl),
		cmocka_unit_test(functions__of_captures_and_graphs),
		cmocka_unit_test(functions__of_the_devices_memory_come_in_pairs),
		cmocka_unit_test(functions__that_queue_work),
		cmocka_unit_test(functions__that_are_recorded_have_a_stream),
		cmocka_unit_test(functions__eight_of_a_library_come_first),
		cmocka_unit_test(functions__that_wait_have_an_end),
		cmocka_unit_test(label__has_no_version),
		cmocka_unit_test(libraries__are_known_by_their_names),
	};

	return cmocka_run_group_tests_name("agent/cuda_functions", tests, NULL, NULL);
}
