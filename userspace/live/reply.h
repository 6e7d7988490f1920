/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads replies of the live socket: that to `dump` process by process, that to `top` window by
 * window while its bytes arrive.  They are not trusted: everything is bounded and checked. */
#ifndef LIVE_REPLY_H
#define LIVE_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/intern.h"
#include "live/record.h"

/* ---- `dump`: threads, and stacks, of which equal ones are stored once ---- */

#define LIVE_MODEL_THREADS_MAX 65536U /* of one process */
#define LIVE_MODEL_STACKS_MAX 65536U
#define LIVE_MODEL_FRAMES_MAX 16384U /* of one stack */
#define LIVE_MODEL_STRINGS_MAX (128U << 20)

/* Ids of strings in the process's table.  Five words without padding, because stacks are compared
 * as bytes. */
struct live_model_frame {
	uint32_t kind; /* enum live_frame, or an unknown one */
	uint32_t line, name, file, module;
};

struct live_thread {
	uint32_t tid;
	uint32_t stack; /* equal stacks have equal numbers; 0: none */
	uint64_t flags; /* enum live_flag */
	uint64_t waited_ns;
	uint32_t name, wait; /* strings */
};

struct live_process {
	uint64_t pid, uid;
	uint32_t name; /* string */
	struct intern *strings;
	struct live_thread *thread; /* owned */
	size_t thread_count;
};
/* Reads the frame at index `at`, leaf first.  Returns false when the stack has no more frames. */
bool live_process_frame(const struct live_process *process, uint32_t stack, size_t at,
			struct live_model_frame *ret_frame);
const char *live_process_string(const struct live_process *process, uint32_t id);

struct live_end {
	uint64_t threads, torn, bare, left_out;
};

/* Reads a reply and calls back for each process.  Returns 0; -EBADMSG: malformed, or it ends early;
 * -EREMOTEIO: the server reported an error, in ret_why (the caller frees it); -E2BIG; -ENOMEM. */
int live_model_read(FILE *stream,
		    void (*on_process)(void *context, const struct live_process *process),
		    void *context, struct live_end *ret_end, char **ret_why);

/* ---- `top` ---- */

/* Release with live_feed_release(); a zeroed feed is empty. */
struct live_feed {
	char *bytes; /* owned */
	size_t size, capacity;
	char *why; /* owned: the text of an error record */
	uint64_t why_errno;
};

struct live_feed_handler {
	/* Receives a window's file; flags: enum live_window.  An error ends the reading and is
	 * returned. */
	int (*on_window)(void *context, const char *file, size_t size, uint64_t flags);
	void *context;
};

void live_feed_release(struct live_feed *feed);
/* Takes the bytes that the socket holds now, without waiting.  Returns 0; -EPIPE: the reply has
 * ended; -EBADMSG; -E2BIG; -EREMOTEIO: the server reported an error, in feed->why; -ENOMEM;
 * -errno. */
int live_feed_read(struct live_feed *feed, int fd, const struct live_feed_handler *handler);
/* Takes bytes that came another way.  Returns as live_feed_read(). */
int live_feed_take(struct live_feed *feed, const char *bytes, size_t size,
		   const struct live_feed_handler *handler);

#endif
