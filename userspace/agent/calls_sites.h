/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the probes of exact calls lie in an interpreter's file, and the links of one process there.
 * The loop's thread. */
#ifndef AGENT_CALLS_SITES_H
#define AGENT_CALLS_SITES_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#include <pyprofd/calls.h>

#include "attach/probe_links.h"
#include "base/cleanup.h"

struct calls_side;
struct file;
struct file_table;

/* The sites that the programs of one event are attached to. */
struct calls_link_sites {
	struct probe_link_site site[PP_CALL_SITES_MAX];
	struct pp_call_site at[PP_CALL_SITES_MAX];
	size_t count, used; /* behind those that are used come others */
};

/* All of one file. */
struct calls_sites {
	uint32_t file; /* id */
	struct calls_link_sites event[PP_CALL_EVENTS];
};
static inline void calls_sites_free(struct calls_sites *sites)
{
	free(sites);
}
DEFINE_OWNED(struct calls_sites, calls_sites)

/* Finds the sites of an interpreter.  next_number: of sites by event, counted up.  Returns 0;
 * -ENOENT: it has no such probes; -EOPNOTSUP: it has, but does not hit them at every call; -EAGAIN:
 * the child that parses files was late; -ENOSPC: there are too many; -errno. */
int calls_sites_find(struct file_table *files, struct file *file,
		     uint32_t next_number[PP_CALL_EVENTS], struct calls_sites **ret_sites);

/* What is attached to one process. */
struct calls_links {
	struct probe_links event[PP_CALL_EVENTS];
};
/* Attaches both programs, and lets hits count from then on.  Returns 0; -ESRCH: the process has
 * ended; -ENOTSUP: before Linux 5.15 there can be one site of each event alone; -errno. */
int calls_sites_attach(const struct calls_sites *sites, struct calls_side *side, int file,
		       pid_t pid, struct calls_links *ret_links);
void calls_links_release(struct calls_links *links);

#endif
