/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides when the agent scans, and counts in each window the threads that a scan found for as
 * long as they sleep.  The first scan is made at the start, in steps beside the first samples;
 * later ones when processes match the filters that did not before. */
#ifndef AGENT_SCANS_H
#define AGENT_SCANS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "drain/counts.h"
#include "drain/thread_slots.h"
#include "finish/scan.h"

struct ledger;
struct scans;
struct services;

/* Does nothing yet.  Finishing a scan may take a part of a window's length.  Returns 0 or -ENOMEM.
 * All other functions accept NULL: then nothing is scanned. */
int scans_new(const struct services *services, struct scans **ret_scans);
void scans_free(struct scans *scans);
DEFINE_OWNED(struct scans, scans)

/* Begins the first scan.  The program of context switches runs since since_ns: a thread that
 * sleeps now and has not passed it has slept since then at least. */
void scans_start(struct scans *scans, uint64_t since_ns);
/* Asks for another scan: a process matches the filter that did not before, and its threads may
 * sleep already. */
void scans_want(struct scans *scans);

/* Continues a scan for some ms, if one is not done and its next step is due.  Call it as often as
 * you like. */
void scans_step(struct scans *scans);
/* A window's end waits for the scan: steps are due without a pause until scans_collect().  Returns
 * whether there is a scan to wait for. */
bool scans_hurry(struct scans *scans);
/* Returns in how many ms the next step is due, or longest_ms if that is earlier. */
int scans_timeout_ms(const struct scans *scans, int longest_ms);

/* Returns a thread that a finished scan has found and that is not known to have moved, or NULL. */
const struct scanned *scans_find(const struct scans *scans, uint32_t tid);

/* Adds the time that scanned threads slept in a window that has ended to its counters and to the
 * ledger.  A scan that is not done is continued first, within a bound, which is longer for the
 * last window.  Returns 0 or -ENOMEM. */
int scans_collect(struct scans *scans, const struct slots_window *window, bool is_last,
		  struct ledger *ledger, struct counts *counts);
/* Describes the stacks of scanned threads again: call it after each change of the dictionary's
 * epoch, and when the dictionary made room. */
void scans_refresh(struct scans *scans);

/* Returns how many threads' times or stacks are missing. */
uint64_t scans_lost(const struct scans *scans);

#endif
