/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the probes of exact calls and lines lie in an interpreter's file, and the links of one
 * process there.
 * The loop's thread. */
#ifndef PROBES_EXACT_SITES_H
#define PROBES_EXACT_SITES_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#include <pyprofd/calls.h>

#include "attach/calls_side.h"
#include "attach/probe_links.h"
#include "base/cleanup.h"

struct file;
struct file_table;

/* The sites that the programs of one event are attached to. */
struct exact_link_sites {
	struct probe_link_site site[PP_CALL_SITES_MAX];
	struct pp_call_site at[PP_CALL_SITES_MAX];
	size_t count, used; /* behind those that are used come others */
};

/* All of one file. */
struct exact_sites {
	uint32_t file; /* id */
	struct exact_link_sites event[PP_CALL_EVENTS];
};
static inline void exact_sites_free(struct exact_sites *sites)
{
	free(sites);
}
DEFINE_OWNED(struct exact_sites, exact_sites)

/* Finds the sites of an interpreter for calls or lines.  next_number: of sites by event, counted
 * up.  Returns 0; -ENOENT: it has no such probes; -EOPNOTSUP: it has, but does not hit them at
 * every call; -EAGAIN: the child that parses files was late; -ENOSPC: there are too many;
 * -errno. */
int exact_sites_find(struct file_table *files, struct file *file, enum exact_what what,
		     uint32_t next_number[PP_CALL_EVENTS], struct exact_sites **ret_sites);

/* What is attached to one process. */
struct exact_links {
	struct probe_links event[PP_CALL_EVENTS];
};
/* Attaches the programs, and lets hits count from then on.  Returns 0; -ESRCH: the process has
 * ended; -EAGAIN: somebody keeps the lock of its mappings (probe_links_attach()); -ENOTSUP: before
 * Linux 5.15 there can be one site of each event alone; -errno. */
int exact_sites_attach(const struct exact_sites *sites, struct calls_side *side, int file,
		       pid_t pid, struct exact_links *ret_links);
void exact_links_release(struct exact_links *links);

#endif
