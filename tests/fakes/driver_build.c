/* SPDX-License-Identifier: BSD-2-Clause */
/* Graphs that a program builds by hand, one node after the other, and changes of them. */
#include "driver.h"

#include <stdlib.h>

static CUresult enter(enum api api, const struct graph *graph)
{
	CUresult error = api_enter(api);

	if (error)
		return error;
	return graph ? CUDA_SUCCESS : api_fail(api, CUDA_ERROR_INVALID_HANDLE);
}

/* Nodes have no handles of their own. */
static CUresult add_node(enum api api, void **ret_node, struct graph *graph,
			 const struct work *work)
{
	if (graph_add(graph, work))
		return api_fail(api, CUDA_ERROR_OUT_OF_MEMORY);
	*ret_node = graph;
	return CUDA_SUCCESS;
}

CUresult cuGraphCreate(CUgraph *ret_graph, unsigned int flags)
{
	CUresult error = api_enter(API_cuGraphCreate);
	struct graph *graph;

	(void)flags;
	if (error)
		return error;
	graph = calloc(1, sizeof(*graph));
	if (!graph)
		return api_fail(API_cuGraphCreate, CUDA_ERROR_OUT_OF_MEMORY);
	*ret_graph = graph;
	return CUDA_SUCCESS;
}

static CUresult add_kernel(enum api api, void **ret_node, struct graph *graph,
			   const struct cu_kernel_node *params)
{
	const struct function *function = params->function ? params->function : params->kernel;
	struct work work = {.kind = WORK_KERNEL, .api = api};

	if (!function || function->magic != FUNCTION_MAGIC)
		return api_fail(api, CUDA_ERROR_INVALID_HANDLE);
	work.kernel = function->row;
	work.duration_ns = get(&function->row->duration_ns);
	return add_node(api, ret_node, graph, &work);
}

static CUresult add_copy(enum api api, void **ret_node, struct graph *graph,
			 enum direction direction, uint64_t bytes)
{
	const struct work work = {.kind = WORK_COPY,
				  .api = api,
				  .direction = direction,
				  .bytes = bytes,
				  .duration_ns = truth_copy_ns(bytes)};

	return add_node(api, ret_node, graph, &work);
}

static uint64_t bytes_3d(const struct cu_copy_3d *copy)
{
	return copy->width_bytes * copy->height * copy->depth;
}

static uint64_t bytes_of_fill(const struct cu_fill_node *fill)
{
	return fill->element_bytes * fill->width * fill->height;
}

static CUresult add_child(enum api api, void **ret_node, struct graph *graph,
			  const struct graph *child)
{
	struct work work = {.kind = WORK_GRAPH, .api = api};

	if (!child)
		return api_fail(api, CUDA_ERROR_INVALID_HANDLE);
	work.exec = graph_instance(child);
	if (!work.exec)
		return api_fail(api, CUDA_ERROR_OUT_OF_MEMORY);
	work.duration_ns = work.exec->duration_ns;
	return add_node(api, ret_node, graph, &work);
}

CUresult cuGraphAddKernelNode_v2(void **ret_node, CUgraph graph, const void *dependencies,
				 size_t count, const struct cu_kernel_node *params)
{
	CUresult error = enter(API_cuGraphAddKernelNode_v2, graph);

	(void)dependencies, (void)count;
	return error ? error : add_kernel(API_cuGraphAddKernelNode_v2, ret_node, graph, params);
}

CUresult cuGraphAddMemcpyNode(void **ret_node, CUgraph graph, const void *dependencies,
			      size_t count, const struct cu_copy_3d *params, CUcontext context)
{
	CUresult error = enter(API_cuGraphAddMemcpyNode, graph);

	(void)dependencies, (void)count, (void)context;
	return error ? error
		     : add_copy(API_cuGraphAddMemcpyNode, ret_node, graph, direction_3d(params),
				bytes_3d(params));
}

CUresult cuGraphAddMemsetNode(void **ret_node, CUgraph graph, const void *dependencies,
			      size_t count, const struct cu_fill_node *params, CUcontext context)
{
	CUresult error = enter(API_cuGraphAddMemsetNode, graph);

	(void)dependencies, (void)count, (void)context;
	return error ? error
		     : add_copy(API_cuGraphAddMemsetNode, ret_node, graph, MEMSET,
				bytes_of_fill(params));
}

CUresult cuGraphAddChildGraphNode(void **ret_node, CUgraph graph, const void *dependencies,
				  size_t count, CUgraph child)
{
	CUresult error = enter(API_cuGraphAddChildGraphNode, graph);

	(void)dependencies, (void)count;
	return error ? error : add_child(API_cuGraphAddChildGraphNode, ret_node, graph, child);
}

CUresult cuGraphAddNode_v2(void **ret_node, CUgraph graph, const void *dependencies,
			   const void *edges, size_t count, const struct cu_node_params *params)
{
	const enum api api = API_cuGraphAddNode_v2;
	CUresult error = enter(api, graph);

	(void)dependencies, (void)edges, (void)count;
	if (error)
		return error;
	switch (params->type) {
	case CU_NODE_KERNEL:
		return add_kernel(api, ret_node, graph, &params->kernel);
	case CU_NODE_COPY:
		return add_copy(api, ret_node, graph, direction_3d(&params->copy.copy),
				bytes_3d(&params->copy.copy));
	case CU_NODE_FILL:
		return add_copy(api, ret_node, graph, MEMSET, bytes_of_fill(&params->fill));
	case CU_NODE_GRAPH:
		return add_child(api, ret_node, graph, params->graph);
	}
	return api_fail(api, CUDA_ERROR_INVALID_VALUE);
}

/* ---------------------------------------------------------------- whole graphs */

CUresult cuGraphClone(CUgraph *ret_clone, CUgraph graph)
{
	CUresult error = enter(API_cuGraphClone, graph);
	struct graph *copy;

	if (error)
		return error;
	copy = graph_copy(graph);
	if (!copy)
		return api_fail(API_cuGraphClone, CUDA_ERROR_OUT_OF_MEMORY);
	*ret_clone = copy;
	return CUDA_SUCCESS;
}

/* Only by graphs with as many nodes, of which launches may still use the old ones. */
CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, void *ret_info)
{
	CUresult error = enter(API_cuGraphExecUpdate_v2, graph);
	struct graph_exec *fresh;

	(void)ret_info;
	if (error)
		return error;
	if (!exec || exec->graph.count != graph->count)
		return api_fail(API_cuGraphExecUpdate_v2, CUDA_ERROR_INVALID_VALUE);
	fresh = graph_instance(graph);
	if (!fresh)
		return api_fail(API_cuGraphExecUpdate_v2, CUDA_ERROR_OUT_OF_MEMORY);
	*exec = *fresh;
	return CUDA_SUCCESS;
}
