/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends clients that watch what was counted: at once, then after each window and about once a
 * second (docs/design/live.md).  They get a profile of kind wall with the labels pid,
 * comm, wait and gil, or the kinds that they ask for, as files have them.  All functions but
 * top_new() accept NULL. */
#ifndef WINDOWS_TOP_H
#define WINDOWS_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/sample.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/slice.h"
#include "discover/process_table.h"
#include "live/server.h"
#include "options/options.h"
#include "profile/record.h"

#define TOP_WATCHERS_MAX LIVE_CLIENTS_MAX

struct top;
/* All borrowed. */
int top_new(const struct options *options, struct live_server *server,
	    const struct process_table *processes, struct top **ret_top);
void top_free(struct top *top);
DEFINE_OWNED(struct top, top)

/* Takes requests to watch, and forgets clients that have gone. */
void top_serve(struct top *top, uint64_t now_ns);
/* Returns when the open window should be cut; UINT64_MAX: nobody watches. */
uint64_t top_due_ns(const struct top *top, uint64_t window_started_ns);

/* Takes a window's samples: begin, each sample, end.  Does nothing when nobody watches.  A client
 * whose window does not fit into memory misses it. */
void top_begin(struct top *top, struct intern *strings, uint64_t start_wall_ns);
void top_add(struct top *top, const struct pp_count_key *key, const struct pp_count *count,
	     struct profile_sample *sample); /* its values may change */
/* Returns whether any client asks for one of these kinds: bits 1 << enum pp_profile. */
bool top_wants(const struct top *top, uint32_t kinds);
/* Adds a row of a kind of records, between top_begin() and top_end(), for clients that ask for the
 * kind and may see the process, or all where it is of a device; what is of several processes is for
 * root who names none.  Processes beyond RECORD_PROCESSES_MAX of a client share their rows, so a
 * process's rows have to come one after the other. */
void top_add_record(struct top *top, const struct record *record);
/* Returns the strings of the window that top_begin() has begun; NULL: nobody watches. */
struct intern *top_strings(const struct top *top);
struct top_facts {
	const struct profile *modules; /* has all modules that the frames name */
	uint64_t duration_ns;
	const char *comment; /* of the window's profiles, for root; NULL: none */
	uint64_t spent_ns;   /* CPU time that the window has cost since top_begin() */
};
/* Returns whether any client would get the comment. */
bool top_wants_comment(const struct top *top);
/* Sends the window, a client at least, until the slice is over (NULL: to all).  Returns whether
 * clients are left for the next call. */
bool top_end(struct top *top, const struct top_facts *facts, const struct slice *slice);

#endif
