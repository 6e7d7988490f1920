/* SPDX-License-Identifier: BSD-2-Clause */
/* A reply of the live socket, process by process: threads, and stacks of which equal ones are one.
 * What it says is not believed: everything is bounded and checked. */
#ifndef LIVE_MODEL_H
#define LIVE_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/intern.h"
#include "live/record.h"

#define LIVE_MODEL_THREADS_MAX 65536U /* of one process */
#define LIVE_MODEL_STACKS_MAX 65536U
#define LIVE_MODEL_FRAMES_MAX 16384U /* of one stack */
#define LIVE_MODEL_STRINGS_MAX (128U << 20)

/* Ids of strings in the process's table; five words without padding: stacks are compared as bytes. */
struct live_model_frame {
	uint32_t kind; /* enum live_frame, or one that is not known */
	uint32_t line, name, file, module;
};

struct live_thread {
	uint32_t tid;
	uint32_t stack; /* equal ones have equal numbers; 0: none */
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
/* The frame at that place, leaf first.  False: the stack has no more. */
bool live_process_frame(const struct live_process *process, uint32_t stack, size_t at,
			struct live_model_frame *ret_frame);
const char *live_process_string(const struct live_process *process, uint32_t id);

struct live_end {
	uint64_t threads, torn, bare, left_out;
};

/* Calls back for each process.  0; -EBADMSG: broken, or it ends early; -EREMOTEIO: an error was told,
 * which is in ret_why (the caller frees it); -E2BIG; -ENOMEM. */
int live_model_read(FILE *stream,
		    void (*on_process)(void *context, const struct live_process *process),
		    void *context, struct live_end *ret_end, char **ret_why);

#endif
