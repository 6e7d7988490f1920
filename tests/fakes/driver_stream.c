/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams: each has a queue and, from its first work that takes time on, a thread that "runs" the
 * works by sleeping.  Works of no time on an empty queue are done where they are submitted: that
 * is what makes a launch cheap.  Streams do not wait for each other but through events. */
#include "driver.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

static _Thread_local struct stream *per_thread[DRIVER_DEVICES];

void sleep_until(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

struct stream *stream_new(struct context *context)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->context = context;
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->has_work, NULL);
	pthread_cond_init(&stream->has_done, NULL);
	stream->next = atomic_load(&driver.streams);
	while (!atomic_compare_exchange_weak(&driver.streams, &stream->next, stream))
		;
	return stream;
}

struct stream *stream_find(CUstream handle, bool is_per_thread)
{
	struct context *context = context_current();

	if ((uintptr_t)handle > (uintptr_t)CU_STREAM_PER_THREAD)
		return handle;
	if (!context)
		return NULL;
	if (handle == CU_STREAM_LEGACY || (handle == CU_STREAM_DEFAULT && !is_per_thread))
		return context->legacy;
	if (!per_thread[context->device])
		per_thread[context->device] = stream_new(context);
	return per_thread[context->device];
}

/* ---------------------------------------------------------------- the worker */

/* A work begins when the one before has ended; by this clock lateness of a wake-up does not add
 * up. */
static void run(struct stream *stream, const struct work *work)
{
	if (work->kind == WORK_WAIT)
		stream_wait(work->awaited, work->awaited_number);
	if (stream->end_ns < work->queued_ns)
		stream->end_ns = work->queued_ns;
	stream->end_ns += work->duration_ns;
	if (work->kind == WORK_WAIT)
		stream->end_ns = now_ns();
	else if (stream->end_ns > now_ns())
		sleep_until(stream->end_ns);
	work_executed(work);
}

static void *run_works(void *argument)
{
	struct stream *stream = argument;
	struct work work;

	prctl(PR_SET_NAME, "fake-stream");
	prctl(PR_SET_TIMERSLACK, 1UL);
	pthread_mutex_lock(&stream->lock);
	while (!stream->is_gone || stream->done != stream->queued) {
		if (stream->done == stream->queued) {
			pthread_cond_wait(&stream->has_work, &stream->lock);
			continue;
		}
		work = stream->ring[stream->done % STREAM_QUEUE_WORKS];
		pthread_mutex_unlock(&stream->lock);
		run(stream, &work);
		pthread_mutex_lock(&stream->lock);
		atomic_fetch_sub(&truth.outstanding, 1);
		stream->ring[stream->done % STREAM_QUEUE_WORKS].ended_ns = stream->end_ns;
		stream->done++;
		pthread_cond_broadcast(&stream->has_done);
	}
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

/* Signals are the program's own threads' matter. */
static int begin_worker(struct stream *stream)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int error;

	stream->ring = calloc(STREAM_QUEUE_WORKS, sizeof(*stream->ring));
	if (!stream->ring)
		return -ENOMEM;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attributes, run_works, stream);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		free(stream->ring);
		stream->ring = NULL;
	}
	return -error;
}

/* ---------------------------------------------------------------- submitting */

/* Called with the stream's lock, like all below. */
static CUresult enqueue(struct stream *stream, struct work *work)
{
	if (!stream->ring && begin_worker(stream))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (stream->queued - stream->done == STREAM_QUEUE_WORKS)
		add(&truth.queue_full, 1);
	while (stream->queued - stream->done == STREAM_QUEUE_WORKS)
		pthread_cond_wait(&stream->has_done, &stream->lock);
	work->queued_ns = now_ns();
	atomic_fetch_add(&truth.outstanding, 1);
	stream->ring[stream->queued++ % STREAM_QUEUE_WORKS] = *work;
	if (stream->queued - stream->done == 1)
		pthread_cond_signal(&stream->has_work);
	return CUDA_SUCCESS;
}

static void mark_busy(struct stream *stream)
{
	if (!stream->is_dirty) {
		stream->is_dirty = true;
		atomic_fetch_add(&truth.dirty_streams, 1);
	}
	interval_end(&truth.drained);
	interval_end(&truth.proven);
}

static CUresult submit(struct stream *stream, struct work *work)
{
	CUresult error = CUDA_SUCCESS;

	if (stream->graph && stream->graph->is_invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream->graph && work->is_sync)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (stream->graph) {
		if (graph_add(stream->graph, work))
			return CUDA_ERROR_OUT_OF_MEMORY;
		work_captured(work);
		return CUDA_SUCCESS;
	}
	if (stream->done == stream->queued && !work->duration_ns && work->kind != WORK_WAIT) {
		stream->queued++;
		stream->done++;
		work_executed(work);
	} else {
		error = enqueue(stream, work);
	}
	/* After outstanding has risen: interval_open(). */
	if (!error && !work->is_sync && work->kind != WORK_WAIT)
		mark_busy(stream);
	return error;
}

CUresult stream_submit(struct stream *stream, struct work *work)
{
	CUresult error;

	pthread_mutex_lock(&stream->lock);
	error = submit(stream, work);
	pthread_mutex_unlock(&stream->lock);
	return error ? api_fail(work->api, error) : CUDA_SUCCESS;
}

CUresult stream_submit_and_wait(struct stream *stream, struct work *work)
{
	uint64_t began_ns = now_ns(), number;
	CUresult error;

	work->is_sync = true;
	pthread_mutex_lock(&stream->lock);
	error = submit(stream, work);
	number = stream->queued;
	pthread_mutex_unlock(&stream->lock);
	if (error)
		return api_fail(work->api, error);
	stream_wait_for_caller(stream, number);
	sync_end(work->api, began_ns);
	return CUDA_SUCCESS;
}

/* ---------------------------------------------------------------- synchronizing */

/* Called with the stream's lock. */
static void wait_done(struct stream *stream, uint64_t number, bool spins)
{
	while (stream->done < number) {
		if (!spins) {
			pthread_cond_wait(&stream->has_done, &stream->lock);
			continue;
		}
		pthread_mutex_unlock(&stream->lock);
		for (int i = 0; i < 100; i++)
			__asm__ volatile("" ::: "memory");
		pthread_mutex_lock(&stream->lock);
	}
}

static bool spins(const struct stream *stream)
{
	return atomic_load(&stream->context->flags) & CU_CTX_SCHED_SPIN;
}

void stream_wait(struct stream *stream, uint64_t number)
{
	pthread_mutex_lock(&stream->lock);
	wait_done(stream, number, false);
	pthread_mutex_unlock(&stream->lock);
}

void stream_wait_for_caller(struct stream *stream, uint64_t number)
{
	pthread_mutex_lock(&stream->lock);
	wait_done(stream, number, spins(stream));
	pthread_mutex_unlock(&stream->lock);
}

void sync_end(enum api api, uint64_t began_ns)
{
	add(&truth.api[api].wait_ns, now_ns() - began_ns);
	interval_open(&truth.drained, &truth.outstanding);
	interval_open(&truth.proven, &truth.dirty_streams);
}

/* Waits for what is queued now; clean, if nothing has come meanwhile. */
static CUresult drain(struct stream *stream)
{
	uint64_t number;

	pthread_mutex_lock(&stream->lock);
	if (stream->graph) {
		stream->graph->is_invalid = true;
		pthread_mutex_unlock(&stream->lock);
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	number = stream->queued;
	wait_done(stream, number, spins(stream));
	if (stream->queued == number && stream->is_dirty) {
		stream->is_dirty = false;
		atomic_fetch_sub(&truth.dirty_streams, 1);
	}
	pthread_mutex_unlock(&stream->lock);
	return CUDA_SUCCESS;
}

static CUresult synchronize(enum api api, CUstream handle, bool is_per_thread)
{
	CUresult error = api_enter(api);
	uint64_t began_ns = now_ns();
	struct stream *stream;

	if (error)
		return error;
	stream = stream_find(handle, is_per_thread);
	if (!stream)
		return api_fail(api, CUDA_ERROR_INVALID_CONTEXT);
	error = drain(stream);
	if (error)
		return api_fail(api, error);
	sync_end(api, began_ns);
	return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	return synchronize(API_cuStreamSynchronize, stream, false);
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
	return synchronize(API_cuStreamSynchronize_ptsz, stream, true);
}

static CUresult synchronize_context(enum api api, struct context *context)
{
	CUresult error = api_enter(api);
	uint64_t began_ns = now_ns();

	if (error)
		return error;
	if (!context)
		return api_fail(api, CUDA_ERROR_INVALID_CONTEXT);
	for (struct stream *s = atomic_load(&driver.streams); s && !error; s = s->next)
		if (s->context == context)
			error = drain(s);
	if (error)
		return api_fail(api, error);
	sync_end(api, began_ns);
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	return synchronize_context(API_cuCtxSynchronize, context_current());
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
	return synchronize_context(API_cuCtxSynchronize_v2, context ? context : context_current());
}

static CUresult query(enum api api, CUstream handle, bool is_per_thread)
{
	CUresult error = api_enter(api);
	struct stream *stream;

	if (error)
		return error;
	stream = stream_find(handle, is_per_thread);
	if (!stream)
		return api_fail(api, CUDA_ERROR_INVALID_CONTEXT);
	pthread_mutex_lock(&stream->lock);
	error = stream->done == stream->queued ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&stream->lock);
	return error;
}

CUresult cuStreamQuery(CUstream stream)
{
	return query(API_cuStreamQuery, stream, false);
}

CUresult cuStreamQuery_ptsz(CUstream stream)
{
	return query(API_cuStreamQuery_ptsz, stream, true);
}

CUresult cuStreamCreate(CUstream *ret_stream, unsigned int flags)
{
	CUresult error = api_enter(API_cuStreamCreate);
	struct context *context = context_current();
	struct stream *stream;

	(void)flags;
	if (error)
		return error;
	if (!context)
		return api_fail(API_cuStreamCreate, CUDA_ERROR_INVALID_CONTEXT);
	stream = stream_new(context);
	if (!stream)
		return api_fail(API_cuStreamCreate, CUDA_ERROR_OUT_OF_MEMORY);
	*ret_stream = stream;
	return CUDA_SUCCESS;
}

/* What is queued still runs: the stream stays dirty until its context is synchronized. */
CUresult cuStreamDestroy_v2(CUstream stream)
{
	CUresult error = api_enter(API_cuStreamDestroy_v2);

	if (error)
		return error;
	if ((uintptr_t)stream <= (uintptr_t)CU_STREAM_PER_THREAD)
		return api_fail(API_cuStreamDestroy_v2, CUDA_ERROR_INVALID_HANDLE);
	pthread_mutex_lock(&stream->lock);
	stream->is_gone = true;
	pthread_cond_signal(&stream->has_work);
	pthread_mutex_unlock(&stream->lock);
	return CUDA_SUCCESS;
}
