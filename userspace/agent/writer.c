/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/writer.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define STACK_BYTES ((size_t)512 << 10)
/* The agent itself runs at nice -10, because late rows cut stacks; a late file does no harm. */
#define WRITER_NICE 0

struct writer {
	writer_write write;
	void *context;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t has_changed; /* any of what follows, which the mutex guards */
	struct writer_window queue[WRITER_WINDOWS_MAX]; /* oldest first */
	size_t count, bytes;
	bool is_busy;	/* with a window that is no longer in the queue */
	bool is_ending; /* the thread ends when the queue is empty */
	bool has_ended;
	bool is_left; /* writer_free() did not wait: the thread releases all */
	int last_err; /* of the window that was written last */
};

void writer_window_release(struct writer_window *window)
{
	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++)
		profile_free(window->profile[kind]);
	intern_free(window->strings);
	*window = (struct writer_window){};
}

static size_t window_bytes(const struct writer_window *window)
{
	size_t bytes = window->strings ? intern_bytes_used(window->strings) : 0;

	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++)
		if (window->profile[kind])
			bytes += profile_bytes(window->profile[kind]);
	return bytes;
}

static size_t window_profiles(const struct writer_window *window)
{
	size_t count = 0;

	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++)
		count += window->profile[kind] != NULL;
	return count;
}

/* Takes the oldest window out of the queue. */
static struct writer_window take_oldest(struct writer *writer)
{
	const struct writer_window oldest = writer->queue[0];

	writer->bytes -= window_bytes(&oldest);
	memmove(writer->queue, writer->queue + 1, --writer->count * sizeof(writer->queue[0]));
	return oldest;
}

/* ---- the thread ---- */

static void write_oldest(struct writer *writer)
{
	struct writer_window window = take_oldest(writer);
	int err;

	writer->is_busy = true;
	pthread_mutex_unlock(&writer->mutex);
	err = writer->write(writer->context, &window);
	writer_window_release(&window);
	pthread_mutex_lock(&writer->mutex);
	writer->is_busy = false;
	writer->last_err = err;
	pthread_cond_broadcast(&writer->has_changed);
}

static void release(struct writer *writer)
{
	pthread_cond_destroy(&writer->has_changed);
	pthread_mutex_destroy(&writer->mutex);
	free(writer);
}

static void *run(void *context)
{
	struct writer *writer = context;
	bool is_left;

	(void)setpriority(PRIO_PROCESS, 0, WRITER_NICE); /* 0: this thread alone */
	pthread_mutex_lock(&writer->mutex);
	while (writer->count || !writer->is_ending) {
		if (writer->count)
			write_oldest(writer);
		else
			pthread_cond_wait(&writer->has_changed, &writer->mutex);
	}
	writer->has_ended = true;
	is_left = writer->is_left;
	pthread_cond_broadcast(&writer->has_changed);
	pthread_mutex_unlock(&writer->mutex);
	if (is_left)
		release(writer);
	return NULL;
}

/* Signals are for the loop. */
static int start(struct writer *writer)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int err = pthread_attr_init(&attributes);

	if (err)
		return -err;
	/* An arena for one more thread would cost 64 MiB of address space. */
	(void)mallopt(M_ARENA_MAX, 1);
	sigfillset(&all);
	err = pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (!err)
		err = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!err) {
		err = pthread_create(&writer->thread, &attributes, run, writer);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_attr_destroy(&attributes);
	return -err;
}

/* ---- the loop's side ---- */

int writer_new(writer_write write, void *context, struct writer **ret_writer)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	pthread_condattr_t monotonic;
	int err;

	if (!writer)
		return -ENOMEM;
	writer->write = write;
	writer->context = context;
	pthread_mutex_init(&writer->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&writer->has_changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	err = start(writer);
	if (err) {
		release(writer);
		return err;
	}
	*ret_writer = writer;
	return 0;
}

size_t writer_put(struct writer *writer, struct writer_window *window)
{
	const size_t bytes = window_bytes(window);
	struct writer_window dropped[WRITER_WINDOWS_MAX];
	size_t dropped_count = 0, profiles = 0;

	pthread_mutex_lock(&writer->mutex);
	while (writer->count == WRITER_WINDOWS_MAX ||
	       (writer->count && writer->bytes + bytes > WRITER_BYTES_MAX))
		dropped[dropped_count++] = take_oldest(writer);
	writer->queue[writer->count++] = *window;
	writer->bytes += bytes;
	pthread_cond_broadcast(&writer->has_changed);
	pthread_mutex_unlock(&writer->mutex);
	*window = (struct writer_window){};
	for (size_t i = 0; i < dropped_count; i++) {
		profiles += window_profiles(&dropped[i]);
		writer_window_release(&dropped[i]);
	}
	return profiles;
}

/* Waits for a change; the mutex is held.  Returns false when it is too late. */
static bool wait_until(struct writer *writer, uint64_t until_ns)
{
	const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_SEC),
				       .tv_nsec = (long)(until_ns % NS_PER_SEC)};

	return !pthread_cond_timedwait(&writer->has_changed, &writer->mutex, &until);
}

static size_t unwritten(const struct writer *writer)
{
	return writer->count + writer->is_busy;
}

int writer_wait(struct writer *writer, uint64_t until_ns)
{
	int err;

	pthread_mutex_lock(&writer->mutex);
	while (unwritten(writer) && wait_until(writer, until_ns))
		;
	err = unwritten(writer) ? -ETIMEDOUT : writer->last_err;
	pthread_mutex_unlock(&writer->mutex);
	return err;
}

size_t writer_waiting(struct writer *writer)
{
	size_t count;

	pthread_mutex_lock(&writer->mutex);
	count = unwritten(writer);
	pthread_mutex_unlock(&writer->mutex);
	return count;
}

bool writer_free(struct writer *writer, uint64_t until_ns)
{
	bool has_ended;

	if (!writer)
		return true;
	pthread_mutex_lock(&writer->mutex);
	writer->is_ending = true;
	pthread_cond_broadcast(&writer->has_changed);
	while (!writer->has_ended && wait_until(writer, until_ns))
		;
	has_ended = writer->has_ended;
	writer->is_left = !has_ended;
	if (!has_ended)
		pthread_detach(writer->thread);
	pthread_mutex_unlock(&writer->mutex);
	if (!has_ended)
		return false;
	pthread_join(writer->thread, NULL);
	release(writer);
	return true;
}
