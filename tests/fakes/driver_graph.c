/* SPDX-License-Identifier: BSD-2-Clause */
/* Graphs: what a stream was given between begin and end of a capture, run one after the other. */
#include "driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int graph_add(struct graph *graph, const struct work *work)
{
	if (graph->count == graph->room) {
		size_t room = graph->room ? graph->room * 2 : 16;
		struct work *nodes = realloc(graph->node, room * sizeof(*nodes));

		if (!nodes)
			return -ENOMEM;
		graph->node = nodes;
		graph->room = room;
	}
	graph->node[graph->count++] = *work;
	return 0;
}

struct graph *graph_copy(const struct graph *graph)
{
	struct graph *copy = calloc(1, sizeof(*copy));

	for (size_t i = 0; copy && i < graph->count; i++)
		if (graph_add(copy, &graph->node[i])) {
			free(copy->node);
			free(copy);
			return NULL;
		}
	return copy;
}

struct graph_exec *graph_instance(const struct graph *graph)
{
	struct graph_exec *exec = calloc(1, sizeof(*exec));

	for (size_t i = 0; exec && i < graph->count; i++) {
		if (graph_add(&exec->graph, &graph->node[i])) {
			free(exec->graph.node);
			free(exec);
			return NULL;
		}
		exec->duration_ns += graph->node[i].duration_ns;
	}
	return exec;
}

void work_captured(const struct work *work)
{
	add(&truth.api[work->api].captured, 1);
	if (work->kind == WORK_KERNEL)
		add(&work->kernel->captured, 1);
	if (work->kind == WORK_COPY) {
		add(&truth.copy[work->direction].captured_count, 1);
		add(&truth.copy[work->direction].captured_bytes, work->bytes);
		add(&truth.api[work->api].captured_bytes, work->bytes);
	}
}

static void executed(const struct work *work, bool is_in_graph)
{
	if (work->kind == WORK_KERNEL) {
		add(&work->kernel->executed, 1);
		if (work->duration_ns)
			add(&work->kernel->ns, work->duration_ns);
		if (is_in_graph)
			add(&work->kernel->in_graphs, 1);
	}
	if (work->kind == WORK_COPY) {
		struct copy_row *row = &truth.copy[work->direction];

		add(&row->count, 1);
		add(&row->bytes, work->bytes);
		if (is_in_graph)
			add(&row->in_graphs, 1);
	}
	if (work->kind == WORK_GRAPH) {
		add(&truth.graph_launches, 1);
		for (size_t i = 0; i < work->exec->graph.count; i++)
			executed(&work->exec->graph.node[i], true);
	}
}

void work_executed(const struct work *work)
{
	add(&truth.api[work->api].executed, 1);
	executed(work, false);
}

/* ---------------------------------------------------------------- capturing */

static CUresult begin_capture(enum api api, CUstream handle, struct graph *into, bool is_per_thread)
{
	CUresult error = api_enter(api);
	struct stream *stream;
	struct graph *graph;

	if (error)
		return error;
	stream = stream_find(handle, is_per_thread);
	if (!stream || stream->is_legacy)
		return api_fail(api, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	graph = into ? into : calloc(1, sizeof(*graph));
	if (!graph)
		return api_fail(api, CUDA_ERROR_OUT_OF_MEMORY);
	pthread_mutex_lock(&stream->lock);
	if (stream->graph)
		error = CUDA_ERROR_ILLEGAL_STATE;
	else
		stream->graph = graph;
	pthread_mutex_unlock(&stream->lock);
	if (error && !into)
		free(graph);
	return error ? api_fail(api, error) : CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream)
{
	return begin_capture(API_cuStreamBeginCapture, stream, NULL, false);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
	(void)mode;
	return begin_capture(API_cuStreamBeginCapture_v2, stream, NULL, false);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode)
{
	(void)mode;
	return begin_capture(API_cuStreamBeginCapture_v2_ptsz, stream, NULL, true);
}

#define TO_GRAPH(name, is_per_thread)                                                              \
	CUresult name(CUstream stream, CUgraph graph, const void *dependencies, const void *edges, \
		      size_t count, int mode)                                                      \
	{                                                                                          \
		(void)dependencies, (void)edges, (void)count, (void)mode;                          \
		return begin_capture(API_##name, stream, graph, is_per_thread);                    \
	}
TO_GRAPH(cuStreamBeginCaptureToGraph, false)
TO_GRAPH(cuStreamBeginCaptureToGraph_ptsz, true)

/* Streams that events have made join end with it. */
static CUresult end_capture(enum api api, CUstream handle, CUgraph *ret_graph, bool is_per_thread)
{
	CUresult error = api_enter(api);
	struct stream *stream;
	struct graph *graph;

	if (error)
		return error;
	stream = stream_find(handle, is_per_thread);
	graph = stream ? stream->graph : NULL;
	if (!graph)
		return api_fail(api, CUDA_ERROR_ILLEGAL_STATE);
	for (struct stream *s = atomic_load(&driver.streams); s; s = s->next) {
		pthread_mutex_lock(&s->lock);
		if (s->graph == graph)
			s->graph = NULL;
		pthread_mutex_unlock(&s->lock);
	}
	*ret_graph = graph->is_invalid ? NULL : graph;
	return graph->is_invalid ? api_fail(api, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
				 : CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *ret_graph)
{
	return end_capture(API_cuStreamEndCapture, stream, ret_graph, false);
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *ret_graph)
{
	return end_capture(API_cuStreamEndCapture_ptsz, stream, ret_graph, true);
}

static CUresult is_capturing(enum api api, CUstream handle, int *ret_status, bool is_per_thread)
{
	CUresult error = api_enter(api);
	struct stream *stream;

	if (error)
		return error;
	stream = stream_find(handle, is_per_thread);
	*ret_status = stream && stream->graph;
	return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, int *ret_status)
{
	return is_capturing(API_cuStreamIsCapturing, stream, ret_status, false);
}

CUresult cuStreamIsCapturing_ptsz(CUstream stream, int *ret_status)
{
	return is_capturing(API_cuStreamIsCapturing_ptsz, stream, ret_status, true);
}

/* ---------------------------------------------------------------- instances */

static CUresult instantiate(enum api api, CUgraphExec *ret_exec, const struct graph *graph)
{
	CUresult error = api_enter(api);
	struct graph_exec *exec;

	if (error)
		return error;
	if (!graph)
		return api_fail(api, CUDA_ERROR_INVALID_HANDLE);
	exec = graph_instance(graph);
	if (!exec)
		return api_fail(api, CUDA_ERROR_OUT_OF_MEMORY);
	*ret_exec = exec;
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *ret_exec, CUgraph graph, uint64_t flags)
{
	(void)flags;
	return instantiate(API_cuGraphInstantiateWithFlags, ret_exec, graph);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *ret_exec, CUgraph graph,
				      struct cu_instantiate_params *params)
{
	params->result = 0;
	return instantiate(API_cuGraphInstantiateWithParams, ret_exec, graph);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *ret_exec, CUgraph graph,
					   struct cu_instantiate_params *params)
{
	params->result = 0;
	return instantiate(API_cuGraphInstantiateWithParams_ptsz, ret_exec, graph);
}

CUresult cuGraphDestroy(CUgraph graph)
{
	CUresult error = api_enter(API_cuGraphDestroy);

	if (error)
		return error;
	if (!graph)
		return api_fail(API_cuGraphDestroy, CUDA_ERROR_INVALID_HANDLE);
	free(graph->node);
	free(graph);
	return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	CUresult error = api_enter(API_cuGraphExecDestroy);

	if (error)
		return error;
	return exec ? CUDA_SUCCESS : api_fail(API_cuGraphExecDestroy, CUDA_ERROR_INVALID_HANDLE);
}

static CUresult launch_graph(enum api api, struct graph_exec *exec, CUstream handle,
			     bool is_per_thread)
{
	CUresult error = api_enter(api);
	struct stream *stream;
	struct work work = {.kind = WORK_GRAPH, .api = api, .exec = exec};

	if (error)
		return error;
	stream = stream_find(handle, is_per_thread);
	if (!exec || !stream)
		return api_fail(api, CUDA_ERROR_INVALID_HANDLE);
	work.duration_ns = exec->duration_ns;
	return stream_submit(stream, &work);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	return launch_graph(API_cuGraphLaunch, exec, stream, false);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	return launch_graph(API_cuGraphLaunch_ptsz, exec, stream, true);
}
