/* SPDX-License-Identifier: BSD-2-Clause */
/* The ledger: where each second of each thread went, one line per process.  Times come from context
 * switches and are exact; samples only divide the time on the CPU into Python, native and
 * kernel. */
#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "profile/ledger_state.h"

struct ledger_line {
	struct pp_process_id id;
	uint64_t total_ns[PP_LEDGER_COUNT];
	uint64_t part[LEDGER_PART_COUNT]; /* weight of the window's samples; all 0: unsampled */
	uint64_t life_ns;		  /* threads x wall */
	uint64_t threads;		  /* that existed in the window */
	uint64_t exits;			  /* how many of them exited */
	/* The ledger's CPU time minus the scheduler's, and the thread-time over which they were
	 * compared: ledger/ledger_check.h.  0, 0: not compared. */
	int64_t over_ns;
	uint64_t checked_ns;
	/* Of a line that sums up several processes, with tgid 0: how many they are.  0: the line is
	 * of one process. */
	uint32_t processes;
	uint32_t user; /* who answers for the process; LEDGER_USER_UNKNOWN */
};
#define LEDGER_USER_UNKNOWN UINT32_MAX

struct ledger;
int ledger_new(struct ledger **ret_ledger);
void ledger_free(struct ledger *ledger);
DEFINE_OWNED(struct ledger, ledger)

/* Reads all times, at end_ns: first the map of exited threads, which is emptied, then every thread
 * once.  In this order a thread that exits in between is in neither, and the next reading has it;
 * in the other order it would be in both, with its whole life in this window.  Return 0 or
 * -ENOMEM. */
void ledger_begin(struct ledger *ledger);
int ledger_add_exited(struct ledger *ledger, int map_fd);
int ledger_add_thread(struct ledger *ledger, const struct pp_thread *thread, uint64_t end_ns);
/* Adds the times of ended threads whose processes found no room in that map, to the line with
 * tgid 0. */
int ledger_add_rest(struct ledger *ledger, const struct pp_ledger_sum *sum);
/* Adds a thread that has ended and will not be in the map of exited threads. */
int ledger_add_gone(struct ledger *ledger, const struct pp_thread *thread, uint64_t end_ns);
/* Adds the time of a thread without a slot.  is_alone: no other call for this window counts the
 * thread. */
int ledger_add_sleep(struct ledger *ledger, struct pp_process_id id, enum pp_wait wait, uint64_t ns,
		     bool is_alone);
/* Call it when the reading is complete: calls back for each process with min_ns on the CPU in
 * it. */
void ledger_busy(const struct ledger *ledger, uint64_t min_ns,
		 void (*callback)(void *context, uint32_t tgid), void *context);
/* Returns a process's time of one kind since the last reading; false: the process is not in the
 * ledger. */
bool ledger_find(const struct ledger *ledger, struct pp_process_id id, enum pp_ledger where,
		 uint64_t *ret_ns);
/* Adds a sample of the window: its weight, by the kind of its leaf. */
int ledger_add_sample(struct ledger *ledger, struct pp_process_id id, enum ledger_part part,
		      uint64_t weight);
/* Lists the lines since the last reading; valid until the next ledger_begin().
 * Processes without a thread in three readings are forgotten; one reading may have been torn. */
int ledger_end(struct ledger *ledger, struct ledger_line **ret_lines, size_t *ret_count);

/* Adds the times of a line to those of another. */
void ledger_add_times(struct ledger_line *to, const struct ledger_line *from);
/* Returns a line's time in a state: ledger_state_name(). */
uint64_t ledger_state_ns(const struct ledger_line *line, unsigned int state);

#endif
