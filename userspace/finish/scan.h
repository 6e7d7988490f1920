/* SPDX-License-Identifier: BSD-2-Clause */
/* Scan of blocked threads.  Threads that were asleep before the profiler started cause no context
 * switch, so their stacks and wait reasons are read once from outside.  Start the scan after the
 * switch program is attached: threads that go to sleep later are seen there.  Not thread-safe. */
#ifndef FINISH_SCAN_H
#define FINISH_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/wait.h>

#include <pyprofd/process.h>

#include "base/cleanup.h"

struct finisher;
struct scan;

struct scanned {
	uint32_t tid; /* in the host's pid namespace */
	struct pp_process_id id;
	uint64_t user_stack, kernel_stack; /* hashes in the dictionary; 0: none */
	uint32_t flags; /* enum pp_count_flag, with the wait and the walks' stop reasons */
	enum pp_wait wait;
	uint64_t switches; /* of pp_scan_record; a different number later: the thread has run */
	uint64_t moves;	   /* thread_slots_moves() when the thread had no slot */
	/* The thread may have run while its stack was read, so the stack may mix two moments. */
	bool is_torn;
};

struct scan_stats {
	size_t threads; /* blocked, matching the filter, and not seen at a switch */
	size_t torn;
	size_t late;	/* have no user stack because the scan had used SCAN_MAX_NS */
	size_t refused; /* threads beyond the bound, and stacks without memory */
	size_t walks, passes;
	uint64_t spent_ns; /* by the agent */
};

/* Which threads to scan.  Either all threads of some processes, also those seen at switches ... */
struct scan_scope {
	void *context;
	bool (*wants)(void *context, uint32_t tgid);
	/* ... or, when wants is NULL, threads not seen at a switch for which is_known() is false;
	 * NULL: no thread is known. */
	bool (*is_known)(void *context, uint32_t tid);
};

/* Opens a scan of the processes that match the filters.  The finisher is borrowed, and its tables
 * must be filled; the scope is copied, its context borrowed.  Returns 0; -ENOTSUP: the kernel side
 * was opened without `waits`; -errno. */
int scan_new(const struct finisher *finisher, const struct scan_scope *scope,
	     struct scan **ret_scan);
void scan_free(struct scan *scan);
DEFINE_OWNED(struct scan, scan)

/* Scans for about budget_ns; a stack is always read to its end, which can take some ms more.
 * Returns 1: call again; 0: done; -errno: the scan failed, and what it found so far remains. */
int scan_step(struct scan *scan, uint64_t budget_ns);

/* Returns the entry of a thread once the scan is done; NULL: the thread was running, does not match
 * the filter, or was forgotten. */
const struct scanned *scan_find(const struct scan *scan, uint32_t tid);
/* Returns the entry after `scanned` (NULL: the first), or NULL at the end.  Entries are sorted by
 * tid once the scan is done, and valid until the next scan_step().  The caller may set `moves`. */
struct scanned *scan_next(struct scan *scan, const struct scanned *scanned);
/* Drops the entry of a thread that has run or exited since.  Stacks that other threads share
 * remain. */
void scan_forget(struct scan *scan, struct scanned *scanned);

/* Adds the stacks of the remaining threads to the dictionary again, which drops stacks that are not
 * sent.  Call it after each dictionary_set_epoch() and dictionary_make_room().  Returns 0; -ENOSPC;
 * -ENOMEM. */
int scan_refresh(struct scan *scan);

void scan_get_stats(const struct scan *scan, struct scan_stats *ret_stats);

/* ---- the records of the task iterator (include/pyprofd/wait.h); not thread-safe ---- */

struct scan_reader;
/* Opens a reader, which owns fd from here on, also when this fails.  Returns 0; -ENOMEM. */
int scan_reader_new(int fd, struct scan_reader **ret_reader);
void scan_reader_free(struct scan_reader *reader);
DEFINE_OWNED(struct scan_reader, scan_reader)

/* Reads the next thread's record, valid until the next call.  Returns 1; 0 at the end; -EBADMSG:
 * the bytes are no record, or half of one; -errno. */
int scan_reader_next(struct scan_reader *reader, const struct pp_scan_record **ret_record);

#endif
