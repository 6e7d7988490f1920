/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that watch: at once, after each window, and at least about once a second, they get what was
 * counted in it: as a profile of kind wall with the labels pid, comm, wait and gil, or as the kinds that they
 * ask for, as files have them.  docs/design/0008-live-socket.md.
 * NULL is fine for all functions but top_new(). */
#ifndef AGENT_TOP_H
#define AGENT_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/sample.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "discover/process_table.h"
#include "live/server.h"
#include "options/options.h"
#include "profile/profile.h"

#define TOP_WATCHERS_MAX LIVE_CLIENTS_MAX

struct top;
/* All borrowed. */
int top_new(const struct options *options, struct live_server *server,
	    const struct process_table *processes, struct top **ret_top);
void top_free(struct top *top);
DEFINE_OWNED(struct top, top)

/* Takes the requests of that kind, and forgets who went. */
void top_serve(struct top *top, uint64_t now_ns);
/* When the open window should be cut; UINT64_MAX: nobody watches. */
uint64_t top_due_ns(const struct top *top, uint64_t window_started_ns);

/* A window's samples: begin, each, end.  Nothing where nobody watches.  A watcher whose window does not fit
 * into memory misses it. */
void top_begin(struct top *top, struct intern *strings, uint64_t start_wall_ns);
void top_add(struct top *top, const struct pp_count_key *key, const struct pp_count *count,
	     struct profile_sample *sample); /* its values may change */
struct top_facts {
	const struct profile *modules; /* has all modules that the frames name */
	uint64_t duration_ns;
	const char *comment; /* of the window's profiles, for root; NULL: none */
};
/* Whether anybody would get the comment. */
bool top_wants_comment(const struct top *top);
/* Sends it. */
void top_end(struct top *top, const struct top_facts *facts);

#endif
