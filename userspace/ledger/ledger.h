/* SPDX-License-Identifier: BSD-2-Clause */
/* The ledger: where each second of each thread went, a process a line.  Times come from context
 * switches, exactly; samples only divide time on the CPU into Python, native and kernel. */
#ifndef LEDGER_LEDGER_H
#define LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/wait.h>

#include "base/cleanup.h"

enum ledger_part { LEDGER_PYTHON, LEDGER_NATIVE, LEDGER_KERNEL, LEDGER_PART_COUNT };

struct ledger_line {
	struct pp_process_id id;
	uint64_t total_ns[PP_LEDGER_COUNT];
	uint64_t part[LEDGER_PART_COUNT]; /* weight of the window's samples; all 0: unsampled */
	uint64_t life_ns;		  /* threads x wall */
	uint64_t threads;		  /* that lived in the window */
	uint64_t exits;			  /* of them, those that exited */
	/* Time on the CPU less the scheduler's own, and the threads x wall in which they were compared:
	 * ledger/ledger_check.h; 0, 0: they were not. */
	int64_t over_ns;
	uint64_t checked_ns;
};

struct ledger;
int ledger_new(struct ledger **ret_ledger);
void ledger_free(struct ledger *ledger);
DEFINE_OWNED(struct ledger, ledger)

/* One reading of all times, at end_ns: the exited ones' map, which is emptied, then every thread once.
 * So a thread that exits between is in neither, and the next reading makes up for it; in both, its whole
 * life would be the window's.  0 or -ENOMEM. */
void ledger_begin(struct ledger *ledger);
int ledger_add_exited(struct ledger *ledger, int map_fd);
int ledger_add_thread(struct ledger *ledger, const struct pp_thread *thread, uint64_t end_ns);
/* A thread that has ended and will not be in the exited ones' map. */
int ledger_add_gone(struct ledger *ledger, const struct pp_thread *thread, uint64_t end_ns);
/* Time of a thread that is in no slot.  is_alone: no reading of this window has the thread. */
int ledger_add_sleep(struct ledger *ledger, struct pp_process_id id, enum pp_wait wait, uint64_t ns,
		     bool is_alone);
/* The reading is complete: calls back for each process that has been on the CPU for min_ns in it. */
void ledger_busy(const struct ledger *ledger, uint64_t min_ns,
		 void (*callback)(void *context, uint32_t tgid), void *context);
/* What the process has got in one place since the reading before; false: it is not in the ledger. */
bool ledger_find(const struct ledger *ledger, struct pp_process_id id, enum pp_ledger where,
		 uint64_t *ret_ns);
/* A sample of the window: weight by the kind of its leaf. */
int ledger_add_sample(struct ledger *ledger, struct pp_process_id id, enum ledger_part part,
		      uint64_t weight);
/* Lines of what went on since the reading before, by time on the CPU, most first; valid until the next
 * ledger_begin().  Processes without a thread in three readings are forgotten: one may be torn. */
int ledger_end(struct ledger *ledger, struct ledger_line **ret_lines, size_t *ret_count);

/* "pid=12 comm=python3 threads=4 seconds=40.000 python=1.204 ... unknown=0.000 off_scheduler=+0.01%".
 * Seconds, and over_ns in percent of threads x wall.  Cut: the line is at most `size` with its NUL. */
void ledger_format(const struct ledger_line *line, const char *comm, char *text, size_t size);

#endif
