/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the stacks that all threads of some processes have now, and writes a reply (live/record.h).
 * Threads that sleep are found by a scan of its own, running ones through the interpreter's list
 * of threads. */
#ifndef AGENT_DUMP_H
#define AGENT_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pyprofd/wait.h>

#include "base/cleanup.h"
#include "live/request.h"

struct dump;
struct dump_text;
struct process;
struct services;
struct slice;

/* Begins a dump of what that user may see.  services: their finisher, naming and thread_names;
 * borrowed.  Returns 0; -ENOTSUP: the
 * kernel side was opened without `waits`; -errno. */
int dump_new(const struct services *services, uid_t uid, const struct live_request *request,
	     struct dump **ret_dump);
void dump_free(struct dump *dump);
DEFINE_OWNED(struct dump, dump)

/* Continues for about budget_ns, and by one thread at least.  Returns 1: there is more to do; 0:
 * done; -errno. */
int dump_step(struct dump *dump, uint64_t budget_ns);
/* Takes the reply of a dump that is done; *ret_text is heap.  Returns 0 or -ENOMEM. */
int dump_take(struct dump *dump, char **ret_text, size_t *ret_size);
/* Call it when scan_refresh() is called: the dump has a scan, stacks and names of its own. */
void dump_refresh(struct dump *dump);

/* ---- dump_text.c: its reply, with each stack once a process; bounded ---- */

#define DUMP_TEXT_MAX_BYTES (16U << 20)

struct dump_thread {
	uint32_t tid;
	uint64_t user_stack, kernel_stack; /* hashes in the dictionary; 0: none */
	uint32_t flags;			   /* enum pp_count_flag */
	enum pp_wait wait;
	bool is_torn;
	bool runs;	    /* or is about to */
	uint64_t waited_ns; /* 0: not known */
	uint32_t inner;	    /* of one that runs: the number that it knows itself by; 0: not known */
};

/* Returns 0 or -ENOMEM. */
int dump_text_new(const struct services *services, bool no_native, struct dump_text **ret_text);
void dump_text_free(struct dump_text *text);
DEFINE_OWNED(struct dump_text, dump_text)

/* Writes a process' threads until the slice is over, and one step of that at least: the stacks of
 * one thread, the names of one file, or one thread.  Returns 1: the next call, with the same
 * threads, goes on; 0: all are written; -ENOMEM.  dump_text_end_process() in the end. */
int dump_text_add(struct dump_text *text, const struct process *process,
		  const struct dump_thread *thread, size_t count, const struct slice *slice);
/* Ends the process that was added, also when not all of it was written. */
void dump_text_end_process(struct dump_text *text);
/* The dictionary may give ids of code to other code from now on: code without a name yet is named
 * anew. */
void dump_text_refresh(struct dump_text *text);
/* Threads that are missing. */
void dump_text_count(struct dump_text *text, uint64_t left_out);
/* Ends it; heap.  0; -ENOMEM. */
int dump_text_take(struct dump_text *text, char **ret_text, size_t *ret_size);

#endif
