/* SPDX-License-Identifier: BSD-2-Clause */
/* Events: a place in a stream's queue.  Beside a capture they carry it to other streams. */
#include "driver.h"

#include <stdlib.h>

CUresult cuEventCreate(CUevent *ret_event, unsigned int flags)
{
	CUresult error = api_enter(API_cuEventCreate);
	struct event *event;

	(void)flags;
	if (error)
		return error;
	event = calloc(1, sizeof(*event));
	if (!event)
		return api_fail(API_cuEventCreate, CUDA_ERROR_OUT_OF_MEMORY);
	*ret_event = event;
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	CUresult error = api_enter(API_cuEventDestroy_v2);

	if (error)
		return error;
	return event ? CUDA_SUCCESS : api_fail(API_cuEventDestroy_v2, CUDA_ERROR_INVALID_HANDLE);
}

static CUresult record(enum api api, CUevent event, CUstream handle, bool is_per_thread)
{
	CUresult error = api_enter(api);
	struct stream *stream;

	if (error)
		return error;
	stream = stream_find(handle, is_per_thread);
	if (!event || !stream)
		return api_fail(api, CUDA_ERROR_INVALID_HANDLE);
	pthread_mutex_lock(&stream->lock);
	event->stream = stream;
	event->number = stream->queued;
	event->graph = stream->graph;
	pthread_mutex_unlock(&stream->lock);
	add(event->graph ? &truth.api[api].captured : &truth.api[api].executed, 1);
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return record(API_cuEventRecord, event, stream, false);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
	return record(API_cuEventRecord_ptsz, event, stream, true);
}

CUresult cuEventQuery(CUevent event)
{
	CUresult error = api_enter(API_cuEventQuery);

	if (error || !event || !event->stream)
		return error;
	pthread_mutex_lock(&event->stream->lock);
	if (event->stream->done < event->number)
		error = CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&event->stream->lock);
	return error;
}

CUresult cuEventSynchronize(CUevent event)
{
	CUresult error = api_enter(API_cuEventSynchronize);
	uint64_t began_ns = now_ns();

	if (error)
		return error;
	if (!event)
		return api_fail(API_cuEventSynchronize, CUDA_ERROR_INVALID_HANDLE);
	if (event->graph)
		return api_fail(API_cuEventSynchronize, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (event->stream)
		stream_wait_for_caller(event->stream, event->number);
	sync_end(API_cuEventSynchronize, began_ns);
	return CUDA_SUCCESS;
}

/* Beside a capture: the stream joins it.  Else it waits, if there is something to wait for. */
static CUresult wait_event(enum api api, CUstream handle, CUevent event, bool is_per_thread)
{
	CUresult error = api_enter(api);
	struct stream *stream;
	struct work work = {.kind = WORK_WAIT, .api = api};
	bool is_done;

	if (error)
		return error;
	stream = stream_find(handle, is_per_thread);
	if (!event || !stream)
		return api_fail(api, CUDA_ERROR_INVALID_HANDLE);
	if (event->graph) {
		pthread_mutex_lock(&stream->lock);
		stream->graph = event->graph;
		pthread_mutex_unlock(&stream->lock);
		return CUDA_SUCCESS;
	}
	if (!event->stream || event->stream == stream || stream->graph)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&event->stream->lock);
	is_done = event->stream->done >= event->number;
	pthread_mutex_unlock(&event->stream->lock);
	if (is_done)
		return CUDA_SUCCESS;
	work.awaited = event->stream;
	work.awaited_number = event->number;
	return stream_submit(stream, &work);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	(void)flags;
	return wait_event(API_cuStreamWaitEvent, stream, event, false);
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags)
{
	(void)flags;
	return wait_event(API_cuStreamWaitEvent_ptsz, stream, event, true);
}
