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

/* is_external: of a captured stream, a node records it, which takes no other stream with it. */
static CUresult record(enum api api, CUevent event, CUstream handle, bool is_per_thread,
		       bool is_external)
{
	CUresult error = api_enter(api);
	struct stream *stream;
	bool is_captured;

	if (error)
		return error;
	stream = stream_find(handle, is_per_thread);
	if (!event || !stream)
		return api_fail(api, CUDA_ERROR_INVALID_HANDLE);
	pthread_mutex_lock(&stream->lock);
	event->stream = stream;
	event->number = stream->queued;
	event->begun_ns = stream->done == stream->queued ? now_ns() : 0;
	event->graph = is_external ? NULL : stream->graph;
	is_captured = stream->graph;
	pthread_mutex_unlock(&stream->lock);
	add(is_captured ? &truth.api[api].captured : &truth.api[api].executed, 1);
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return record(API_cuEventRecord, event, stream, false, false);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
	return record(API_cuEventRecord_ptsz, event, stream, true, false);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	return record(API_cuEventRecordWithFlags, event, stream, false,
		      flags & CU_EVENT_RECORD_EXTERNAL);
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

/* When it was complete; 0: it is not, or the stream has forgotten. */
static uint64_t complete_ns(const struct event *event)
{
	struct stream *stream = event->stream;
	uint64_t ns = event->begun_ns;

	if (!stream || ns)
		return ns;
	pthread_mutex_lock(&stream->lock);
	if (stream->done >= event->number && stream->queued - event->number < STREAM_QUEUE_WORKS)
		ns = stream->ring[(event->number - 1) % STREAM_QUEUE_WORKS].ended_ns;
	pthread_mutex_unlock(&stream->lock);
	return ns;
}

CUresult cuEventElapsedTime(float *ret_ms, CUevent begin, CUevent end)
{
	CUresult error = api_enter(API_cuEventElapsedTime);
	uint64_t begun_ns, ended_ns;

	if (error)
		return error;
	if (!begin || !end)
		return api_fail(API_cuEventElapsedTime, CUDA_ERROR_INVALID_HANDLE);
	begun_ns = complete_ns(begin);
	ended_ns = complete_ns(end);
	if (!begun_ns || !ended_ns)
		return api_fail(API_cuEventElapsedTime, CUDA_ERROR_NOT_READY);
	*ret_ms = (float)((double)(int64_t)(ended_ns - begun_ns) / 1e6);
	return CUDA_SUCCESS;
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
