/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the resident memory of the profiled processes once a window, and adds it to the window's
 * profile of kind resident. */
#ifndef AGENT_RESIDENT_H
#define AGENT_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/slice.h"

struct profiles;
struct resident;
struct services;

/* Reading one file takes some 20 us.  With more processes than this, they take turns, and each
 * window has the last known figures of those whose turn it is not. */
#define RESIDENT_READS_MAX 1024U
/* Processes whose figures are kept; those of further ones are not read. */
#define RESIDENT_KEPT_MAX 16384U

/* All other functions accept NULL: memory is not captured. */
int resident_new(const struct services *services, struct resident **ret_resident);
void resident_free(struct resident *resident);
DEFINE_OWNED(struct resident, resident)

/* Takes the figures that growth is counted from, in one go of RESIDENT_READS_MAX files.  Returns 0
 * or -ENOMEM. */
int resident_start(struct resident *resident);
/* Reads the processes, until the slice is over (NULL: all), and at the end sends their rows to
 * clients.  is_part: the window goes on and ends only for clients, so nothing is read when none of
 * these wants memory, or when the last reading took too long.  Call it until it returns something
 * else than 1: there are more.  Returns 0 or -ENOMEM. */
int resident_read(struct resident *resident, bool is_part, const struct slice *slice);
/* Adds the last figures of each process to the window's profile, and how much they have grown since
 * the profile before; processes beyond RECORD_PROCESSES_MAX share their rows.  The largest of each
 * user come first, users in turn.  Then begins the next profile.  Returns 0 or -ENOMEM. */
int resident_describe(struct resident *resident, struct profiles *profiles);

#endif
