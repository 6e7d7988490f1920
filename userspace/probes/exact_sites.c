/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/exact_sites.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "attach/file_table.h"

/* A link with this number has a site that is never used. */
#define UNUSED_SITE (PP_CALL_SITES_MAX - 1)

enum wanted { WANTED_ENTRY, WANTED_RETURN, WANTED_LINE, WANTED_SELDOM, WANTED_COUNT };
/* Since 3.11 function__entry is behind a test of the semaphore of `line` as well.  A probe at a
 * function that runs when the interpreter ends raises it, so that nothing is hit at each line.
 * Source: CPython 3.11, Python/ceval.c, OR_DTRACE_LINE. */
static const struct probe_wanted wanted_probes[WANTED_COUNT] = {
	[WANTED_ENTRY] = {PROBE_WANTED_USDT, 0, "python", "function__entry"},
	[WANTED_RETURN] = {PROBE_WANTED_USDT, 0, "python", "function__return"},
	[WANTED_LINE] = {PROBE_WANTED_USDT, 0, "python", "line"},
	[WANTED_SELDOM] = {PROBE_WANTED_FUNCTION, 0, "", "Py_FinalizeEx"},
};
#define LINE_FROM_MINOR 11U
/* 3.15 has the probes again, and does not hit them where a call is specialized: counts would be
 * wrong. */
#define EXACT_TO_MINOR 11U

/* ---- in the file ---- */

static const struct probe_site *site_of(const struct probe_sites *found, enum wanted wanted)
{
	for (size_t i = 0; i < found->site_count; i++)
		if (found->site[i].wanted == wanted)
			return &found->site[i];
	return NULL;
}

static int add_site(const struct probe_site *found, uint32_t *next_number,
		    struct exact_link_sites *sites)
{
	if (*next_number >= UNUSED_SITE)
		return -ENOSPC;
	sites->site[sites->used] = (struct probe_link_site){.offset = found->offset,
							    .semaphore = found->semaphore_offset,
							    .cookie = (*next_number)++};
	sites->at[sites->used] = (struct pp_call_site){.is_used = 1};
	memcpy(sites->at[sites->used].arg, found->arg, sizeof(sites->at[0].arg));
	sites->used++;
	sites->count++;
	return 0;
}

static int add_sites(const struct probe_sites *found, enum wanted wanted, uint32_t *next_number,
		     struct exact_link_sites *sites)
{
	int err = 0;

	for (size_t i = 0; !err && i < found->site_count; i++)
		if (found->site[i].wanted == wanted)
			err = add_site(&found->site[i], next_number, sites);
	return err;
}

/* Raises the semaphore of `line`: by a probe that is seldom hit, or else by its own. */
static void raise_line(const struct probe_sites *found, struct exact_link_sites *sites)
{
	const struct probe_site *line = site_of(found, WANTED_LINE);
	const struct probe_site *seldom = site_of(found, WANTED_SELDOM);

	if (!line || sites->count == PP_CALL_SITES_MAX)
		return;
	sites->site[sites->count++] =
		(struct probe_link_site){.offset = seldom ? seldom->offset : line->offset,
					 .semaphore = line->semaphore_offset,
					 .cookie = UNUSED_SITE};
}

static const enum wanted wanted_by_event[PP_CALL_EVENTS] = {[PP_CALL_ENTRY] = WANTED_ENTRY,
							    [PP_CALL_RETURN] = WANTED_RETURN,
							    [PP_CALL_LINE] = WANTED_LINE};

static int take_sites(const struct probe_sites *found, unsigned int minor, enum exact_what what,
		      uint32_t next_number[PP_CALL_EVENTS], struct exact_sites *sites)
{
	const int events = what == EXACT_LINES ? PP_CALL_EVENTS : (int)PP_CALL_MOVES;
	int err = 0;

	for (int event = 0; event < events; event++)
		if (!site_of(found, wanted_by_event[event]))
			return -ENOENT;
	if (minor > EXACT_TO_MINOR)
		return -EOPNOTSUPP;
	for (int event = 0; !err && event < events; event++)
		err = add_sites(found, wanted_by_event[event], &next_number[event],
				&sites->event[event]);
	if (!err && what == EXACT_CALLS && minor >= LINE_FROM_MINOR)
		raise_line(found, &sites->event[PP_CALL_RETURN]);
	return err;
}

int exact_sites_find(struct file_table *files, struct file *file, enum exact_what what,
		     uint32_t next_number[PP_CALL_EVENTS], struct exact_sites **ret_sites)
{
	OWNED(exact_sites) struct exact_sites *sites = calloc(1, sizeof(*sites));
	struct probe_sites found = {};
	int err;

	if (!sites)
		return -ENOMEM;
	sites->file = file->id;
	err = file_table_probes(files, file, wanted_probes, WANTED_COUNT, &found);
	if (err)
		return err == -ETIMEDOUT ? -EAGAIN : err;
	err = take_sites(&found, file->python->bpf.minor, what, next_number, sites);
	probe_sites_release(&found);
	if (err)
		return err;
	*ret_sites = TAKE(sites);
	return 0;
}

/* ---- links ---- */

struct exact_place {
	int file; /* descriptor */
	pid_t pid;
	int locks; /* struct probe_links_options */
};

static int attach(const struct exact_link_sites *sites, int program,
		  const struct exact_place *place, struct probe_links *ret_links)
{
	const struct probe_links_options options = {.program = program,
						    .file = place->file,
						    .locks = place->locks,
						    .pid = place->pid,
						    .is_shared = probe_links_can_share(),
						    .site = sites->site,
						    .count = sites->count};

	return probe_links_attach(&options, ret_links);
}

/* From here on hits count. */
static int enable(const struct exact_link_sites *sites, struct calls_side *side,
		  enum pp_call_event event)
{
	int err = 0;

	for (size_t i = 0; !err && i < sites->used; i++)
		err = calls_side_set_site(side, (uint32_t)sites->site[i].cookie, event,
					  &sites->at[i]);
	return err;
}

/* Without cookies each hit is taken for one of site 0; so is the one at the end of an interpreter,
 * which counts as unmatched. */
static bool needs_cookies(const struct exact_sites *sites)
{
	for (unsigned int event = 0; event < PP_CALL_EVENTS; event++)
		for (size_t i = 0; i < sites->event[event].used; i++)
			if (sites->event[event].site[i].cookie)
				return true;
	return false;
}

int exact_sites_attach(const struct exact_sites *sites, struct calls_side *side, int file,
		       pid_t pid, struct exact_links *ret_links)
{
	struct exact_place place = {file, pid, side->locks};
	struct exact_links links = {};
	int err = 0;

	if (needs_cookies(sites) && !side->has_cookies)
		return -ENOTSUP;
	for (int event = PP_CALL_EVENTS - 1; !err && event >= 0; event--) {
		if (!sites->event[event].count)
			continue;
		err = attach(&sites->event[event], side->program[event], &place,
			     &links.event[event]);
		/* One look goes for all: what is attached could not be taken off beside who
		 * keeps a lock either. */
		place.locks = -1;
	}
	for (int event = PP_CALL_EVENTS - 1; !err && event >= 0; event--)
		err = enable(&sites->event[event], side, (enum pp_call_event)event);
	if (err) {
		exact_links_release(&links);
		return err;
	}
	*ret_links = links;
	return 0;
}

void exact_links_release(struct exact_links *links)
{
	for (unsigned int event = 0; event < PP_CALL_EVENTS; event++)
		probe_links_release(&links->event[event]);
}
