/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/cleanup.h"

/* ---- `dump` ---- */

struct reading {
	void (*on_process)(void *context, const struct live_process *process);
	void *context;
	struct live_process process; /* the open one; strings NULL: there is none */
	size_t thread_capacity;
	/* String ids of stacks, by the number in the reply minus that of the process's first
	 * stack. */
	uint32_t *stack; /* owned */
	uint64_t first_stack;
	size_t stack_count, stack_capacity;
	struct live_model_frame *frame; /* owned: of the stack that is being read */
	size_t frame_count, frames_wanted;
	bool has_ended;
	struct live_end end;
	char *why; /* owned */
};

static void close_process(struct reading *reading)
{
	struct live_process *process = &reading->process;

	intern_free(process->strings);
	free(process->thread);
	*process = (struct live_process){};
	reading->thread_capacity = 0;
	reading->stack_count = 0;
}

static int flush(struct reading *reading)
{
	if (reading->frames_wanted)
		return -EBADMSG;
	if (reading->process.strings)
		reading->on_process(reading->context, &reading->process);
	close_process(reading);
	return 0;
}

static int add_string(struct reading *reading, const char *text, uint32_t *ret_id)
{
	if (intern_bytes_used(reading->process.strings) > LIVE_MODEL_STRINGS_MAX)
		return -E2BIG;
	return intern_clean(reading->process.strings, text, strlen(text), ret_id);
}

static int open_process(struct reading *reading, const struct live_record *record)
{
	int err = flush(reading);

	if (!err)
		err = intern_new(&reading->process.strings);
	if (err)
		return err;
	reading->process.pid = record->number[0];
	reading->process.uid = record->number[1];
	return add_string(reading, record->text[0], &reading->process.name);
}

/* ---- stacks ---- */

static int end_stack(struct reading *reading)
{
	return intern_bytes(reading->process.strings, (const char *)reading->frame,
			    reading->frame_count * sizeof(reading->frame[0]),
			    &reading->stack[reading->stack_count - 1]);
}

static int open_stack(struct reading *reading, const struct live_record *record)
{
	if (!reading->process.strings || reading->frames_wanted || !record->number[1] ||
	    record->number[1] > LIVE_MODEL_FRAMES_MAX)
		return -EBADMSG;
	if (!reading->stack_count)
		reading->first_stack = record->number[0];
	if (record->number[0] != reading->first_stack + reading->stack_count ||
	    reading->stack_count == LIVE_MODEL_STACKS_MAX)
		return -EBADMSG;
	if (ARRAY_RESERVE(reading->stack, reading->stack_count, reading->stack_capacity))
		return -ENOMEM;
	reading->stack[reading->stack_count++] = 0;
	reading->frames_wanted = record->number[1];
	reading->frame_count = 0;
	return 0;
}

static int add_frame(struct reading *reading, const struct live_record *record)
{
	struct live_model_frame *frame = &reading->frame[reading->frame_count];
	int err;

	if (!reading->frames_wanted || record->number[0] > UINT32_MAX ||
	    record->number[1] > UINT32_MAX)
		return -EBADMSG;
	frame->kind = (uint32_t)record->number[0];
	frame->line = (uint32_t)record->number[1];
	err = add_string(reading, record->text[0], &frame->name);
	if (!err)
		err = add_string(reading, record->text[1], &frame->file);
	if (!err)
		err = add_string(reading, record->text[2], &frame->module);
	if (err)
		return err;
	reading->frame_count++;
	return --reading->frames_wanted ? 0 : end_stack(reading);
}

bool live_process_frame(const struct live_process *process, uint32_t stack, size_t at,
			struct live_model_frame *ret_frame)
{
	size_t size = 0;
	const char *bytes = intern_get(process->strings, stack, &size);

	if (at >= size / sizeof(*ret_frame))
		return false;
	memcpy(ret_frame, bytes + at * sizeof(*ret_frame), sizeof(*ret_frame));
	return true;
}

const char *live_process_string(const struct live_process *process, uint32_t id)
{
	return intern_get(process->strings, id, NULL);
}

/* ---- threads ---- */

static int add_thread(struct reading *reading, const struct live_record *record)
{
	struct live_process *process = &reading->process;
	struct live_thread thread = {.tid = (uint32_t)record->number[0],
				     .flags = record->number[2],
				     .waited_ns = record->number[3]};
	uint64_t number = record->number[1];
	int err;

	if (!process->strings || reading->frames_wanted ||
	    process->thread_count == LIVE_MODEL_THREADS_MAX ||
	    (number && (number < reading->first_stack ||
			number - reading->first_stack >= reading->stack_count)))
		return -EBADMSG;
	if (number)
		thread.stack = reading->stack[number - reading->first_stack];
	if (ARRAY_RESERVE(process->thread, process->thread_count, reading->thread_capacity))
		return -ENOMEM;
	err = add_string(reading, record->text[0], &thread.name);
	if (!err)
		err = add_string(reading, record->text[1], &thread.wait);
	if (!err)
		process->thread[process->thread_count++] = thread;
	return err;
}

/* ---- all of it ---- */

static int take(struct reading *reading, const struct live_record *record)
{
	switch (record->kind) {
	case LIVE_PROCESS:
		return open_process(reading, record);
	case LIVE_STACK:
		return open_stack(reading, record);
	case LIVE_FRAME:
		return add_frame(reading, record);
	case LIVE_THREAD:
		return add_thread(reading, record);
	case LIVE_END:
		reading->has_ended = true;
		reading->end = (struct live_end){record->number[0], record->number[1],
						 record->number[2], record->number[3]};
		return flush(reading);
	case LIVE_ERROR:
		reading->why = strdup(record->text[0]);
		return reading->why ? -EREMOTEIO : -ENOMEM;
	default:
		return 0;
	}
}

static int read_lines(struct reading *reading, FILE *stream)
{
	OWNED_MEM char *line = malloc(LIVE_LINE_BYTES);
	int err = line ? 0 : -ENOMEM;

	while (!err && !reading->has_ended) {
		struct live_record record;
		size_t size;

		if (!fgets(line, LIVE_LINE_BYTES, stream))
			return -EBADMSG;
		/* A NUL in it ends it early: then there is no newline. */
		size = strlen(line);
		if (!size || line[size - 1] != '\n')
			return -EBADMSG;
		err = live_record_parse(line, size - 1, &record);
		if (!err)
			err = take(reading, &record);
		else if (err == -ENOENT)
			err = 0; /* of a later version */
	}
	return err;
}

int live_model_read(FILE *stream,
		    void (*on_process)(void *context, const struct live_process *process),
		    void *context, struct live_end *ret_end, char **ret_why)
{
	struct reading reading = {.on_process = on_process, .context = context};
	int err;

	reading.frame = calloc(LIVE_MODEL_FRAMES_MAX, sizeof(reading.frame[0]));
	err = reading.frame ? read_lines(&reading, stream) : -ENOMEM;
	close_process(&reading);
	free(reading.stack);
	free(reading.frame);
	if (err == -EREMOTEIO)
		*ret_why = TAKE(reading.why);
	free(reading.why);
	if (!err)
		*ret_end = reading.end;
	return err;
}

/* ---- `top` ---- */

#define PIECE_BYTES 65536U
#define FEED_BYTES ((size_t)LIVE_WINDOW_BYTES + LIVE_LINE_BYTES + PIECE_BYTES)

void live_feed_release(struct live_feed *feed)
{
	free(feed->bytes);
	free(feed->why);
	*feed = (struct live_feed){};
}

static int reserve(struct live_feed *feed, size_t more)
{
	size_t wanted = feed->size + more;
	char *grown;

	if (wanted > FEED_BYTES)
		return -E2BIG;
	if (wanted <= feed->capacity)
		return 0;
	wanted += wanted / 2;
	grown = realloc(feed->bytes, wanted);
	if (!grown)
		return -ENOMEM;
	feed->bytes = grown;
	feed->capacity = wanted;
	return 0;
}

/* Takes the record at the beginning with its payload: *ret_size bytes.  0: it is not complete
 * yet. */
static int take_one(struct live_feed *feed, const struct live_feed_handler *handler,
		    size_t *ret_size)
{
	const char *newline = feed->size ? memchr(feed->bytes, '\n', feed->size) : NULL;
	size_t line_size = newline ? (size_t)(newline - feed->bytes) : 0;
	OWNED_MEM char *line = NULL;
	struct live_record record;
	int err;

	*ret_size = 0;
	if (!newline)
		return feed->size > LIVE_LINE_BYTES ? -EBADMSG : 0;
	line = strndup(feed->bytes, line_size);
	if (!line)
		return -ENOMEM;
	err = strlen(line) == line_size ? live_record_parse(line, line_size, &record) : -EBADMSG;
	if (err == -ENOENT) {
		*ret_size = line_size + 1;
		return 0;
	}
	if (err)
		return err;
	if (record.kind == LIVE_ERROR) {
		free(feed->why);
		feed->why = strdup(record.text[0]);
		feed->why_errno = record.number[0];
		return feed->why ? -EREMOTEIO : -ENOMEM;
	}
	if (record.kind != LIVE_WINDOW || record.number[0] > LIVE_WINDOW_BYTES)
		return -EBADMSG;
	if (feed->size - line_size - 1 < record.number[0])
		return 0;
	*ret_size = line_size + 1 + record.number[0];
	return handler->on_window(handler->context, newline + 1, record.number[0],
				  record.number[1]);
}

int live_feed_take(struct live_feed *feed, const char *bytes, size_t size,
		   const struct live_feed_handler *handler)
{
	size_t taken;
	int err = reserve(feed, size);

	if (err)
		return err;
	memcpy(feed->bytes + feed->size, bytes, size);
	feed->size += size;
	do {
		err = take_one(feed, handler, &taken);
		feed->size -= taken;
		if (taken)
			memmove(feed->bytes, feed->bytes + taken, feed->size);
	} while (!err && taken);
	return err;
}

int live_feed_read(struct live_feed *feed, int fd, const struct live_feed_handler *handler)
{
	OWNED_MEM char *piece = malloc(PIECE_BYTES);

	if (!piece)
		return -ENOMEM;
	for (;;) {
		ssize_t got = recv(fd, piece, PIECE_BYTES, MSG_DONTWAIT);
		int err;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (!got)
			return -EPIPE;
		err = live_feed_take(feed, piece, (size_t)got, handler);
		if (err)
			return err;
	}
}
