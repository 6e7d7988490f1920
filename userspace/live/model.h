/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a reply of the live socket process by process: threads, and stacks, of which equal ones are
 * stored once.  The reply is not trusted: everything is bounded and checked. */
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

#endif
