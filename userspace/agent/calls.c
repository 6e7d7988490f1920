/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/calls_cost.h"
#include "agent/calls_sites.h"
#include "agent/profiles.h"
#include "attach/calls_side.h"
#include "attach/file_table.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "discover/process.h"
#include "discover/process_table.h"
#include "drain/call_paths.h"
#include "options/options.h"

#define WHY_BYTES 512U
#define PATH_BYTES 256U
#define TEXT_BYTES 320U
#define LOOK_NS NS_PER_SEC   /* from one look at the costs to the next */
#define LATE_MAX 64U	     /* processes whose interpreter could not be looked into yet */
#define INTERPRETERS_MAX 16U /* files with the probes */

/* What is attached to one process and file. */
struct attached {
	struct pp_process_id process;
	uint32_t file;
	struct calls_links links;
};

struct calls {
	struct calls_sources sources;
	struct calls_side *side;   /* owned */
	struct call_paths *paths;  /* owned */
	struct attached *attached; /* owned */
	size_t attached_count, attached_capacity;
	struct calls_sites *interpreter[INTERPRETERS_MAX]; /* owned */
	size_t interpreter_count;
	uint32_t next_site[PP_CALL_EVENTS];
	struct calls_cost cost;
	/* an interpreter that was seen and has no such probes; "": none */
	char without[PATH_BYTES];
	uint32_t without_tgid;
	bool without_is_inexact; /* it has them, but does not always hit them */
	struct pp_process_id late[LATE_MAX];
	size_t late_count;
	int attach_err; /* of an interpreter that has them */
	/* since when hits are counted for calls_are_too_slow() */
	uint64_t since_ns, since_hits;
	uint64_t removed;	  /* nodes of threads that have ended */
	uint64_t tidied_at;	  /* how many nodes there had been at the last try */
	bool is_ended;		  /* all links are off */
	bool was_attached;	  /* to one process at least */
	struct pp_call_sums sums; /* that calls_describe() tells */
};

/* ---- start and end ---- */

static int open_side(struct calls *calls)
{
	char why[WHY_BYTES] = "";
	int err = calls_side_open(calls->sources.kernel, why, sizeof(why), &calls->side);

	if (err)
		return log_error_errno(err, "exact calls: %s",
				       why[0] ? why : "cannot load the programs");
	err = calls_cost_measure(calls->side, &calls->cost);
	if (!err)
		err = calls_side_set_costs(calls->side, &calls->cost.taken_off);
	if (err)
		return log_error_errno(err, "exact calls: cannot measure what a probe costs");
	return 0;
}

int calls_new(const struct calls_sources *sources, struct calls **ret_calls)
{
	OWNED(calls) struct calls *calls = NULL;
	int err;

	*ret_calls = NULL;
	if (!(sources->options->events & PP_CAPTURE_CALLS))
		return 0;
	calls = calloc(1, sizeof(*calls));
	if (!calls)
		return -ENOMEM;
	calls->sources = *sources;
	err = call_paths_new(&calls->paths);
	if (!err)
		err = open_side(calls);
	if (err)
		return err;
	*ret_calls = TAKE(calls);
	return 0;
}

static void detach_all(struct calls *calls)
{
	for (size_t i = 0; i < calls->attached_count; i++)
		calls_links_release(&calls->attached[i].links);
	calls->attached_count = 0;
}

void calls_free(struct calls *calls)
{
	if (!calls)
		return;
	detach_all(calls);
	for (size_t i = 0; i < calls->interpreter_count; i++)
		calls_sites_free(calls->interpreter[i]);
	free(calls->attached);
	call_paths_free(calls->paths);
	calls_side_free(calls->side);
	free(calls);
}

/* ---- attaching ---- */

static int attach(struct calls *calls, const struct process *process, struct file *file,
		  const struct calls_sites *sites)
{
	struct attached attached = {.process = process->id, .file = file->id};
	int fd, err;

	err = ARRAY_RESERVE(calls->attached, calls->attached_count, calls->attached_capacity);
	if (!err)
		err = file_table_descriptor(calls->sources.files, file, &fd);
	if (!err)
		err = calls_sites_attach(sites, calls->side, fd, (pid_t)process->id.tgid,
					 &attached.links);
	if (err)
		return err;
	calls->attached[calls->attached_count++] = attached;
	calls->was_attached = true;
	return 0;
}

static bool is_attached(const struct calls *calls, struct pp_process_id id, uint32_t file)
{
	for (size_t i = 0; i < calls->attached_count; i++)
		if (calls->attached[i].file == file && calls->attached[i].process.tgid == id.tgid &&
		    calls->attached[i].process.generation == id.generation)
			return true;
	return false;
}

static void note_without(struct calls *calls, const struct process *process,
			 const struct file *file, bool is_inexact)
{
	if (calls->without[0])
		return;
	snprintf(calls->without, sizeof(calls->without), "%s", file->path);
	calls->without_tgid = process->id.tgid;
	calls->without_is_inexact = is_inexact;
}

static int find_sites(struct calls *calls, struct file *file, const struct calls_sites **ret_sites)
{
	struct calls_sites *sites;
	int err;

	for (size_t i = 0; i < calls->interpreter_count; i++)
		if (calls->interpreter[i]->file == file->id) {
			*ret_sites = calls->interpreter[i];
			return 0;
		}
	if (calls->interpreter_count == INTERPRETERS_MAX)
		return -ENOSPC;
	err = calls_sites_find(calls->sources.files, file, calls->next_site, &sites);
	if (!err)
		*ret_sites = calls->interpreter[calls->interpreter_count++] = sites;
	return err;
}

/* Returns 0, also when it cannot be attached; -EAGAIN: the child that parses files was late. */
static int see_interpreter(struct calls *calls, const struct process *process, struct file *file)
{
	const struct calls_sites *sites;
	int err = find_sites(calls, file, &sites);

	if (err == -EAGAIN)
		return err;
	if (err == -ENOENT || err == -EOPNOTSUPP) {
		note_without(calls, process, file, err == -EOPNOTSUPP);
		return 0;
	}
	if (!err)
		err = attach(calls, process, file, sites);
	/* A child that has ended meanwhile is none. */
	if (err && err != -ESRCH)
		calls->attach_err =
			log_warn_errno(err, "exact calls: cannot attach to '%s' of process %u",
				       file->path, process->id.tgid);
	return 0;
}

void calls_see(struct calls *calls, const struct process *process)
{
	bool is_late = false;

	if (!calls || calls->is_ended || process->exit_ns)
		return;
	for (size_t i = 0; i < process->mapping_count; i++) {
		const uint32_t id = process->mapping[i].file;
		struct file *file =
			id >= PP_FILE_FIRST ? file_table_find(calls->sources.files, id) : NULL;

		if (file && file->python && !is_attached(calls, process->id, id))
			is_late |= see_interpreter(calls, process, file) == -EAGAIN;
	}
	if (is_late && calls->late_count < LATE_MAX)
		calls->late[calls->late_count++] = process->id;
}

static void see_late(struct calls *calls)
{
	const size_t count = calls->late_count;
	struct pp_process_id late[LATE_MAX];

	memcpy(late, calls->late, sizeof(late));
	calls->late_count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct process *process =
			process_table_find(calls->sources.processes, late[i]);

		if (process)
			calls_see(calls, process);
	}
}

void calls_forget(struct calls *calls, struct pp_process_id id)
{
	size_t kept = 0;

	for (size_t i = 0; calls && i < calls->attached_count; i++) {
		struct attached *one = &calls->attached[i];

		if (one->process.tgid == id.tgid && one->process.generation == id.generation)
			calls_links_release(&one->links);
		else
			calls->attached[kept++] = *one;
	}
	if (calls)
		calls->attached_count = kept;
}

bool calls_are_known(const struct calls *calls)
{
	return !calls || calls->was_attached || calls->attach_err || calls->without[0];
}

int calls_check(const struct calls *calls)
{
	if (!calls || calls->was_attached)
		return 0;
	if (calls->attach_err)
		return -ENXIO;
	if (calls->without[0])
		log_error("'%s' of process %u has no function probes %s: a table by sampling is "
			  "what there is, pyprof calls --live --pid %u",
			  calls->without, calls->without_tgid,
			  calls->without_is_inexact
				  ? "that tell of every call"
				  : "(CPython 3.6 to 3.11 have them when built --with-dtrace, as "
				    "Debian's are)",
			  calls->without_tgid);
	else
		log_error("exact calls: none of the chosen processes runs a CPython that can be "
			  "read");
	return -ENXIO;
}

/* ---- while it runs ---- */

/* Returns which share of the time since the last look the probes took.  Hits of all threads count
 * as if one had them all: only one thread of an interpreter runs Python at a time. */
static double probes_share(struct calls *calls, uint64_t now_ns, uint64_t hits)
{
	const uint64_t since_ns = calls->since_ns, since_hits = calls->since_hits;

	calls->since_ns = now_ns;
	calls->since_hits = hits;
	return since_ns ? (double)((hits - since_hits) * calls->cost.hit_ns) /
				  (double)(now_ns - since_ns)
			: 0;
}

static bool is_alive(void *context, const struct pp_call_thread *thread)
{
	char path[64];

	(void)context;
	snprintf(path, sizeof(path), "/proc/%u/task/%u", thread->id.tgid, thread->tid);
	return !access(path, F_OK);
}

static struct call_tables tables_until(const struct calls *calls, uint64_t ended_ns)
{
	return (struct call_tables){.nodes = calls_side_nodes(calls->side),
				    .threads = calls_side_threads(calls->side),
				    .ended_ns = ended_ns,
				    .is_alive = is_alive};
}

/* Makes room for the paths of new threads, where old ones have ended. */
static void tidy(struct calls *calls, uint64_t now_ns, uint64_t created)
{
	const struct call_tables tables = tables_until(calls, now_ns);
	int removed;

	if (created - calls->removed < PP_CALL_NODES_MAX / 2 ||
	    created - calls->tidied_at < PP_CALL_NODES_MAX / 16)
		return;
	calls->tidied_at = created;
	removed = call_paths_tidy(calls->paths, &tables);
	if (removed > 0)
		calls->removed += (uint64_t)removed;
}

bool calls_tick(struct calls *calls, uint64_t now_ns)
{
	struct pp_call_sums sums;
	double percent, share;

	if (!calls || calls->is_ended)
		return false;
	see_late(calls);
	if (now_ns < calls->since_ns + LOOK_NS || calls_side_get_sums(calls->side, &sums))
		return false;
	tidy(calls, now_ns, sums.created);
	percent = calls->sources.options->slowdown_percent
			  ? calls->sources.options->slowdown_percent
			  : OPTIONS_SLOWDOWN_CALLS_PERCENT;
	share = probes_share(calls, now_ns, sums.hits);
	/* Slower by P percent: of the time with probes, P / (100 + P) is theirs. */
	if (share <= percent / (100 + percent))
		return false;
	log_warn("exact calls end here: probes take %.0f %% of the time, so the program is more "
		 "than "
		 "%.1f times as slow; --max-slowdown allows more, or see pyprof calls --live",
		 share * 100, 1 + percent / 100);
	detach_all(calls);
	calls->is_ended = true;
	return true;
}

int calls_collect(struct calls *calls, uint64_t ended_ns, struct counts *counts)
{
	struct call_tables tables;

	if (!calls)
		return 0;
	tables = tables_until(calls, ended_ns);
	(void)calls_side_get_sums(calls->side, &calls->sums);
	return call_paths_collect(calls->paths, &tables, calls->sources.dictionary, counts);
}

int calls_describe(const struct calls *calls, struct profiles *profiles)
{
	const struct calls_cost *cost = calls ? &calls->cost : NULL;
	char text[TEXT_BYTES];

	if (!calls)
		return 0;
	snprintf(text, sizeof(text),
		 "calls hit_ns=%llu entry_ns=%llu return_ns=%llu hits=%llu taken_off_ns=%llu "
		 "unmatched=%llu unnoted=%llu paths=%llu",
		 (unsigned long long)cost->hit_ns,
		 (unsigned long long)cost->taken_off.ns[PP_CALL_ENTRY][PP_CALL_RETURN],
		 (unsigned long long)cost->taken_off.ns[PP_CALL_RETURN][PP_CALL_ENTRY],
		 (unsigned long long)calls->sums.hits, (unsigned long long)calls->sums.cost_ns,
		 (unsigned long long)calls->sums.unmatched, (unsigned long long)calls->sums.unnoted,
		 (unsigned long long)calls->sums.created);
	return profiles_add_comment(profiles, text);
}
