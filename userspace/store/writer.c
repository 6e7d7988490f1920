/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/writer.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/background.h"

struct writer {
	writer_write write;
	void *context;
	struct background background;			/* its mutex guards what follows */
	struct writer_window queue[WRITER_WINDOWS_MAX]; /* oldest first */
	size_t count, bytes;
	bool is_busy; /* with a window that is no longer in the queue */
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
	pthread_mutex_unlock(&writer->background.mutex);
	err = writer->write(writer->context, &window);
	writer_window_release(&window);
	pthread_mutex_lock(&writer->background.mutex);
	writer->is_busy = false;
	writer->last_err = err;
	pthread_cond_broadcast(&writer->background.has_changed);
}

static void release(struct writer *writer)
{
	background_destroy(&writer->background);
	free(writer);
}

static void *run(void *context)
{
	struct writer *writer = context;

	background_begin(&writer->background);
	while (writer->count || !writer->background.is_ending) {
		if (writer->count)
			write_oldest(writer);
		else
			pthread_cond_wait(&writer->background.has_changed,
					  &writer->background.mutex);
	}
	if (background_end(&writer->background))
		release(writer);
	return NULL;
}

/* ---- the loop's side ---- */

int writer_new(writer_write write, void *context, struct writer **ret_writer)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	int err;

	if (!writer)
		return -ENOMEM;
	writer->write = write;
	writer->context = context;
	background_init(&writer->background);
	err = background_start(&writer->background, run, writer);
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

	pthread_mutex_lock(&writer->background.mutex);
	while (writer->count == WRITER_WINDOWS_MAX ||
	       (writer->count && writer->bytes + bytes > WRITER_BYTES_MAX))
		dropped[dropped_count++] = take_oldest(writer);
	writer->queue[writer->count++] = *window;
	writer->bytes += bytes;
	pthread_cond_broadcast(&writer->background.has_changed);
	pthread_mutex_unlock(&writer->background.mutex);
	*window = (struct writer_window){};
	for (size_t i = 0; i < dropped_count; i++) {
		profiles += window_profiles(&dropped[i]);
		writer_window_release(&dropped[i]);
	}
	return profiles;
}

static size_t unwritten(const struct writer *writer)
{
	return writer->count + writer->is_busy;
}

int writer_wait(struct writer *writer, uint64_t limit_ns)
{
	struct background_patience patience;
	LOCKED(&writer->background.mutex);

	background_hurry(&writer->background, limit_ns, &patience);
	while (unwritten(writer) && background_wait(&writer->background, &patience))
		;
	return unwritten(writer) ? -ETIMEDOUT : writer->last_err;
}

size_t writer_waiting(struct writer *writer)
{
	LOCKED(&writer->background.mutex);

	return unwritten(writer);
}

bool writer_free(struct writer *writer, uint64_t limit_ns)
{
	if (!writer)
		return true;
	(void)background_finish(&writer->background, limit_ns);
	if (!background_join(&writer->background))
		return false;
	release(writer);
	return true;
}
