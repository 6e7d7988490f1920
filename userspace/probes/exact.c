/* SPDX-License-Identifier: BSD-2-Clause */
/* Exact calls (--events calls) and exact lines (--lines): attaches to the probes that an
 * interpreter has at its functions and lines, in the chosen processes, and turns what the kernel
 * side has counted into counters.  Ends early when it would slow a program down more than
 * --max-slowdown allows. */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pyprofd/calls.h>

#include "attach/calls_side.h"
#include "attach/file_table.h"
#include "attach/mapping_locks.h"
#include "base/array.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/task.h"
#include "discover/proc_scan.h"
#include "discover/process.h"
#include "discover/process_table.h"
#include "drain/call_paths.h"
#include "options/options.h"
#include "probes/exact_sites.h"
#include "probes/hit_costs.h"
#include "probes/lock_wait.h"
#include "windows/profiles.h"
#include "windows/source.h"

#define WHY_BYTES 512U
#define TEXT_BYTES 320U
#define PATH_BYTES 256U
#define LOOK_NS NS_PER_SEC /* between two checks of the cost */
/* At 50 times the run time the probes take 98 % of it; beyond that a bound cannot be measured. */
#define UNBOUNDED_PPM 49000000U
#define KNOWN_NS (5 * NS_PER_SEC) /* the files of chosen processes must be known by then */
#define LATE_MAX 64U		  /* processes that could not be attached to yet */
#define INTERPRETERS_MAX 16U	  /* files with the probes */

/* What is attached to one process and file. */
struct attached {
	struct pp_process_id process;
	uint32_t uid, file;
	uint64_t cpu_ns, delay_ns; /* what it had at the last look */
	uint64_t cost_ns;	   /* what its hits took, since it was attached */
	struct exact_links links;
	bool is_gone; /* the process: the links are to be taken off */
};

struct exact {
	const struct services *services;
	uint64_t opened_ns;
	enum exact_what what;
	struct calls_side *side; /* owned */

	/* calls */
	struct call_paths *paths; /* owned */
	struct call_costs call_costs;
	struct pp_call_sums call_sums; /* at the last collection */
	uint64_t removed;	       /* nodes of threads that have ended */
	uint64_t tidied_at;	       /* how many nodes there had been at the last try */

	/* lines */
	struct hash_set rows;
	struct pp_line_costs line_costs;
	struct pp_line_sums line_sums; /* at the last collection */

	/* what is attached */
	struct attached *attached; /* owned */
	size_t attached_count, attached_capacity;
	struct exact_sites *interpreter[INTERPRETERS_MAX]; /* owned */
	size_t interpreter_count;
	uint32_t next_site[PP_CALL_EVENTS];
	/* an interpreter that was seen and has no such probes; "": none */
	char without[PATH_BYTES];
	uint32_t without_tgid;
	bool without_is_inexact; /* it has them, but does not always hit them */
	struct pp_process_id late[LATE_MAX];
	size_t late_count;
	int attach_err;		    /* of an interpreter that has them */
	struct lock_wait lock_wait; /* whom links that are to come or go wait for */
	uint64_t locks_looked_ns;
	struct budget *budget; /* owned; its one source is the hits */
	/* the last look at what hits cost, and their cost until then */
	uint64_t looked_ns, cost_ns;
	bool has_gone;	   /* one that is attached at least */
	bool is_ended;	   /* nothing counts any more */
	bool was_attached; /* to one process at least */
};

/* ---- what a hit costs, and what the kernel side has counted ---- */

/* Both measure what hits cost, and have it taken off.  Return 0; -ENOMEM; -errno: the kernel
 * refuses probes on our own code. */
static int begin_calls(struct exact *exact)
{
	int err = call_paths_new(&exact->paths);

	if (!err)
		err = call_costs_measure(exact->side, &exact->call_costs);
	return err ? err : calls_side_set_costs(exact->side, &exact->call_costs.taken_off);
}

static int begin_lines(struct exact *exact)
{
	int err = line_costs_measure(exact->side, &exact->line_costs);

	hash_set_init(&exact->rows);
	if (!err)
		err = calls_side_set_costs(exact->side, &exact->line_costs);
	return err ? err : calls_side_set_target(exact->side, &exact->services->options->lines);
}

/* Reads how long all hits up to now have taken, by what was measured.  Returns 0 or -errno. */
static int read_cost(const struct exact *exact, uint64_t *ret_ns)
{
	struct pp_call_sums calls = {};
	struct pp_line_sums lines = {};
	const int err = calls_side_get_sums(
		exact->side, exact->what == EXACT_CALLS ? (void *)&calls : (void *)&lines);

	if (!err)
		*ret_ns = calls.hits * exact->call_costs.hit_ns +
			  lines.wanted * exact->line_costs.wanted_ns +
			  (lines.hits - lines.wanted) * exact->line_costs.other_ns;
	return err;
}

static bool thread_is_alive(uint32_t tgid, uint32_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32, tgid, tid);
	return !access(path, F_OK);
}

static bool is_alive(void *context, const struct pp_call_thread *thread)
{
	(void)context;
	return thread_is_alive(thread->id.tgid, thread->tid);
}

static struct call_tables tables_until(const struct exact *exact, uint64_t ended_ns)
{
	return (struct call_tables){.nodes = exact->side->nodes,
				    .threads = exact->side->threads,
				    .ended_ns = ended_ns,
				    .is_alive = is_alive};
}

/* Makes room in the kernel side's tables when they are half full.  A path of calls is a thread's,
 * so those of ended ones can make room.  A line is a process's. */
static void make_room(struct exact *exact)
{
	struct call_tables tables;
	struct pp_call_sums sums;
	int removed;

	if (exact->what != EXACT_CALLS || calls_side_get_sums(exact->side, &sums) ||
	    sums.created - exact->removed < PP_CALL_NODES_MAX / 2 ||
	    sums.created - exact->tidied_at < PP_CALL_NODES_MAX / 16)
		return;
	exact->tidied_at = sums.created;
	tables = tables_until(exact, 0);
	removed = call_paths_tidy(exact->paths, &tables);
	if (removed > 0)
		exact->removed += (uint64_t)removed;
}

static int collect_calls(struct exact *exact, const struct source_window *window)
{
	const struct call_tables tables = tables_until(exact, window->slots.end_ns);

	(void)calls_side_get_sums(exact->side, &exact->call_sums);
	return call_paths_collect(exact->paths, &tables, exact->services->dictionary,
				  window->counts);
}

static int collect_lines(struct exact *exact, const struct source_window *window)
{
	const struct line_tables tables = {.rows = exact->side->rows,
					   .runs = exact->side->runs,
					   .ended_ns = window->slots.end_ns,
					   .is_alive = thread_is_alive};

	(void)calls_side_get_sums(exact->side, &exact->line_sums);
	return line_rows_collect(&exact->rows, &tables, exact->services->dictionary,
				 window->counts);
}

/* Adds what was counted up to the window's end. */
static int source_collect(void *state, const struct source_window *window)
{
	struct exact *exact = state;

	return exact->what == EXACT_CALLS ? collect_calls(exact, window)
					  : collect_lines(exact, window);
}

static void describe_calls(const struct exact *exact, char text[TEXT_BYTES])
{
	const struct call_costs *costs = &exact->call_costs;
	const struct pp_call_sums *sums = &exact->call_sums;

	snprintf(text, TEXT_BYTES,
		 "exact=calls hit_ns=%" PRIu64
		 " entry_ns=%llu return_ns=%llu hits=%llu taken_off_ns=%llu "
		 "unmatched=%llu unnoted=%llu paths=%llu",
		 costs->hit_ns, costs->taken_off.ns[PP_CALL_ENTRY][PP_CALL_RETURN],
		 costs->taken_off.ns[PP_CALL_RETURN][PP_CALL_ENTRY], sums->hits, sums->cost_ns,
		 sums->unmatched, sums->unnoted, sums->created);
}

static void describe_lines(const struct exact *exact, char text[TEXT_BYTES])
{
	const struct pp_line_costs *costs = &exact->line_costs;
	const struct pp_line_sums *sums = &exact->line_sums;

	snprintf(text, TEXT_BYTES,
		 "exact=lines hit_ns=%llu other_hit_ns=%llu hits=%llu wanted=%llu "
		 "taken_off_ns=%llu unread=%llu unnoted=%llu too_deep=%llu",
		 costs->wanted_ns, costs->other_ns, sums->hits, sums->wanted, sums->cost_ns,
		 sums->unread, sums->unnoted, sums->too_deep);
}

/* Tells what hits cost, what was taken off and what was lost. */
static int source_describe(void *state, struct profiles *profiles)
{
	const struct exact *exact = state;
	char text[TEXT_BYTES];

	if (exact->what == EXACT_CALLS)
		describe_calls(exact, text);
	else
		describe_lines(exact, text);
	return profiles_add_comment(profiles, text);
}

static const char *name_of(const struct exact *exact)
{
	return exact->what == EXACT_CALLS ? "exact calls" : "exact lines";
}

static uint32_t bound_ppm(const struct exact *exact)
{
	return exact->services->options->slowdown_ppm ?: OPTIONS_SLOWDOWN_EXACT_PPM;
}

static int tell_kept(const struct exact *exact)
{
	log_error("%s: process %u keeps the lock of its mappings, so no process of the machine "
		  "could fork while probes come: try again when it lets go, or end it",
		  name_of(exact), exact->lock_wait.holder);
	return -ENXIO;
}

/* ---- start and end ---- */

static int open_side(struct exact *exact)
{
	char why[WHY_BYTES] = "";
	int err = calls_side_open(exact->services->kernel, exact->what, why, sizeof(why),
				  &exact->side);

	if (err)
		return log_error_errno(err, "%s: %s", name_of(exact),
				       why[0] ? why : "cannot load the programs");
	lock_wait_note(&exact->lock_wait, lock_wait_begin(exact->side->locks), mono_ns());
	if (exact->lock_wait.holder)
		return tell_kept(exact);
	err = exact->what == EXACT_CALLS ? begin_calls(exact) : begin_lines(exact);
	if (!err)
		err = calls_side_clear_sums(exact->side);
	if (err)
		return log_error_errno(err, "%s: cannot measure what a probe costs",
				       name_of(exact));
	return 0;
}

static void detach_all(struct exact *exact)
{
	for (size_t i = 0; i < exact->attached_count; i++)
		exact_links_release(&exact->attached[i].links);
	exact->attached_count = 0;
}

static bool source_close(void *state)
{
	struct exact *exact = state;

	if (exact->attached_count)
		lock_wait_end(exact->side->locks);
	detach_all(exact);
	for (size_t i = 0; i < exact->interpreter_count; i++)
		exact_sites_free(exact->interpreter[i]);
	free(exact->attached);
	budget_free(exact->budget);
	call_paths_free(exact->paths);
	hash_set_release(&exact->rows);
	calls_side_free(exact->side);
	return true;
}

/* Loads the programs, which takes the kernel a second. */
static int source_open(void *state)
{
	struct exact *exact = state;

	if (budget_new(bound_ppm(exact), &exact->budget))
		return -ENOMEM;
	budget_set(exact->budget, 0, &(struct budget_source){.is_used = true, .stays_on = true});
	exact->opened_ns = mono_ns();
	exact->what =
		exact->services->options->events & PP_CAPTURE_CALLS ? EXACT_CALLS : EXACT_LINES;
	return open_side(exact);
}

/* ---- attaching ---- */

/* Returns whether links must not come or go now, for somebody keeps the lock of its mappings. */
static bool must_wait(struct exact *exact)
{
	/* A look at a lock that is kept takes 0.1 s of the loop's time. */
	if (exact->lock_wait.holder && mono_ns() - exact->locks_looked_ns < LOOK_NS)
		return true;
	lock_wait_note(&exact->lock_wait, mapping_locks_holder(exact->side->locks), mono_ns());
	exact->locks_looked_ns = mono_ns();
	return exact->lock_wait.holder;
}

static void tell_holder(struct exact *exact)
{
	uint32_t holder;

	if ((exact->late_count || exact->has_gone) &&
	    lock_wait_tell(&exact->lock_wait, mono_ns(), &holder))
		log_warn("process %u keeps the lock of its mappings: %s of new processes begin "
			 "when it lets go, for until then no process of the machine could fork",
			 holder, name_of(exact));
}

static void release_gone(struct exact *exact)
{
	size_t kept = 0;

	for (size_t i = 0; i < exact->attached_count; i++) {
		if (exact->attached[i].is_gone)
			exact_links_release(&exact->attached[i].links);
		else
			exact->attached[kept++] = exact->attached[i];
	}
	exact->attached_count = kept;
	exact->has_gone = false;
}

/* Takes the links of gone processes off: others have the file. */
static void detach_gone(struct exact *exact)
{
	if (exact->has_gone && !must_wait(exact))
		release_gone(exact);
}

static int attach(struct exact *exact, const struct process *process, struct file *file,
		  const struct exact_sites *sites)
{
	struct attached attached = {.process = process->id,
				    .uid = process_user(process),
				    .file = file->id,
				    .cpu_ns = process_cpu_ns((pid_t)process->id.tgid),
				    .delay_ns = process_delay_ns((pid_t)process->id.tgid)};
	OWNED_FD int fd = -1;
	int err;

	if (must_wait(exact))
		return -EAGAIN;
	/* A process that has become another program keeps its number: the links of before would be
	 * hit beside the new ones. */
	release_gone(exact);
	err = ARRAY_RESERVE(exact->attached, exact->attached_count, exact->attached_capacity);
	if (!err)
		err = file_table_descriptor(exact->services->files, file, &fd);
	if (!err)
		err = exact_sites_attach(sites, exact->side, fd, (pid_t)process->id.tgid,
					 &attached.links);
	if (err)
		return err;
	exact->attached[exact->attached_count++] = attached;
	exact->was_attached = true;
	return 0;
}

static bool is_attached(const struct exact *exact, struct pp_process_id id, uint32_t file)
{
	for (size_t i = 0; i < exact->attached_count; i++)
		if (exact->attached[i].file == file && exact->attached[i].process.tgid == id.tgid &&
		    exact->attached[i].process.generation == id.generation)
			return true;
	return false;
}

static void note_without(struct exact *exact, const struct process *process,
			 const struct file *file, bool is_inexact)
{
	if (exact->without[0])
		return;
	snprintf(exact->without, sizeof(exact->without), "%s", file->path);
	exact->without_tgid = process->id.tgid;
	exact->without_is_inexact = is_inexact;
}

static int find_sites(struct exact *exact, struct file *file, const struct exact_sites **ret_sites)
{
	struct exact_sites *sites;
	int err;

	for (size_t i = 0; i < exact->interpreter_count; i++)
		if (exact->interpreter[i]->file == file->id) {
			*ret_sites = exact->interpreter[i];
			return 0;
		}
	if (exact->interpreter_count == INTERPRETERS_MAX)
		return -ENOSPC;
	err = exact_sites_find(exact->services->files, file, exact->what, exact->next_site, &sites);
	if (!err)
		*ret_sites = exact->interpreter[exact->interpreter_count++] = sites;
	return err;
}

/* Returns 0, also when it cannot be attached; -EAGAIN: the child that parses files was late, or
 * somebody keeps the lock of its mappings. */
static int see_interpreter(struct exact *exact, const struct process *process, struct file *file)
{
	const struct exact_sites *sites;
	int err = find_sites(exact, file, &sites);

	if (err == -ENOENT || err == -EOPNOTSUPP) {
		note_without(exact, process, file, err == -EOPNOTSUPP);
		return 0;
	}
	if (!err)
		err = attach(exact, process, file, sites);
	if (err == -EAGAIN || err == -ETIMEDOUT)
		return -EAGAIN;
	/* A child that has ended meanwhile is none. */
	if (err && err != -ESRCH)
		exact->attach_err = log_warn_errno(
			err, "%s: cannot attach to '%s' of process %u%s", name_of(exact),
			file->path, process->id.tgid,
			err == -EREMOTE ? ", for which a program (FUSE) or a network answers" : "");
	return 0;
}

static void source_see_process(void *state, const struct process *process, bool is_new)
{
	struct exact *exact = state;
	bool is_late = false;

	(void)is_new;
	if (exact->is_ended || process->exit_ns)
		return;
	for (size_t i = 0; i < process->mapping_count; i++) {
		const uint32_t id = process->mapping[i].file;
		struct file *file =
			id >= PP_FILE_FIRST ? file_table_find(exact->services->files, id) : NULL;

		if (file && file->python && !is_attached(exact, process->id, id))
			is_late |= see_interpreter(exact, process, file) == -EAGAIN;
	}
	if (is_late && exact->late_count < LATE_MAX)
		exact->late[exact->late_count++] = process->id;
}

static void see_late(struct exact *exact)
{
	const size_t count = exact->late_count;
	struct pp_process_id late[LATE_MAX];

	memcpy(late, exact->late, sizeof(late));
	exact->late_count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct process *process =
			process_table_find(exact->services->processes, late[i]);

		if (process)
			source_see_process(exact, process, false);
	}
}

/* Links come off later where somebody keeps the lock of its mappings. */
static void source_forget_process(void *state, struct pp_process_id id)
{
	struct exact *exact = state;

	for (size_t i = 0; i < exact->attached_count; i++) {
		struct attached *one = &exact->attached[i];

		if (one->process.tgid == id.tgid && one->process.generation == id.generation)
			one->is_gone = exact->has_gone = true;
	}
	detach_gone(exact);
}

static void tell_without(const struct exact *exact)
{
	const bool is_calls = exact->what == EXACT_CALLS;

	log_error("'%s' of process %u has no %s probes %s: a table by sampling is what there is, "
		  "pyprof %s --live --pid %u",
		  exact->without, exact->without_tgid, is_calls ? "function" : "line",
		  exact->without_is_inexact ? "that tell of every call"
					    : "(CPython 3.6 to 3.11 have them when built "
					      "--with-dtrace, as Debian's are)",
		  is_calls ? "calls" : "lines FILE", exact->without_tgid);
}

/* Returns -ENXIO with a line in the log when none of the interpreters has the probes, or there is
 * no interpreter. */
static int check(const struct exact *exact)
{
	if (exact->was_attached)
		return 0;
	if (exact->attach_err)
		return -ENXIO;
	if (exact->without[0])
		tell_without(exact);
	else if (exact->lock_wait.holder)
		return tell_kept(exact);
	else
		log_error("%s: none of the chosen processes runs a CPython that can be read",
			  name_of(exact));
	return -ENXIO;
}

/* Calls count from the beginning on, so an interpreter must have been seen, with the probes or
 * without. A command's is known later. */
static int source_is_ready(void *state)
{
	const struct exact *exact = state;
	int err;

	if (exact->services->options->command)
		return 1;
	if (!exact->was_attached && !exact->attach_err && !exact->without[0] &&
	    mono_ns() - exact->opened_ns < KNOWN_NS)
		return 0;
	err = check(exact);
	return err ? err : 1;
}

static int source_end(void *state)
{
	const struct exact *exact = state;

	return exact->services->options->command ? check(exact) : 0;
}

/* ---- while it runs ---- */

/* Returns the CPU time of a process since the last look, and for how long it was ready and had no
 * CPU; of an ended one nothing. */
static uint64_t take_time(struct attached *one, uint64_t *ret_late_ns)
{
	const pid_t pid = (pid_t)one->process.tgid;
	const uint64_t cpu_ns = one->is_gone ? one->cpu_ns : process_cpu_ns(pid);
	const uint64_t delay_ns = one->is_gone ? one->delay_ns : process_delay_ns(pid);
	const uint64_t fresh_ns = cpu_ns > one->cpu_ns ? cpu_ns - one->cpu_ns : 0;

	*ret_late_ns = delay_ns > one->delay_ns ? delay_ns - one->delay_ns : 0;
	one->cpu_ns = cpu_ns;
	one->delay_ns = delay_ns;
	return fresh_ns;
}

/* Notes what the hits since the last look took of each process: each is taken to have hits as it
 * has CPU time, and hits of all its threads count as if one had them all, for only one thread of an
 * interpreter runs Python at a time. */
static int note_costs(struct exact *exact, uint64_t elapsed_ns, uint64_t cost_ns)
{
	OWNED_MEM uint64_t *cpu_ns = calloc(exact->attached_count + 1, 2 * sizeof(*cpu_ns));
	uint64_t *late_ns, sum_ns = 0;
	int err = 0;

	if (!cpu_ns)
		return -ENOMEM;
	late_ns = cpu_ns + exact->attached_count;
	for (size_t i = 0; i < exact->attached_count; i++) {
		cpu_ns[i] = take_time(&exact->attached[i], &late_ns[i]);
		sum_ns += cpu_ns[i];
	}
	for (size_t i = 0; !err && i < exact->attached_count; i++) {
		struct attached *one = &exact->attached[i];
		const struct budget_payer payer = {.tgid = one->process.tgid, .uid = one->uid};
		const double part = sum_ns ? (double)cpu_ns[i] / (double)sum_ns : 1;

		one->cost_ns += (uint64_t)(part * (double)cost_ns);
		err = budget_note(exact->budget, &payer, 0,
				  &(struct budget_use){.ns = one->cost_ns});
		if (!err)
			err = budget_set_time(exact->budget, &payer,
					      budget_own_ns(elapsed_ns, late_ns[i]), 0);
	}
	return err;
}

/* Returns what the hits took of a process's own time since the last look, at most, in ppm. */
static uint32_t take_cost(struct exact *exact, uint64_t now_ns, uint64_t cost_ns)
{
	const uint64_t elapsed_ns = now_ns - exact->looked_ns, before_ns = exact->cost_ns;
	const uint64_t on_ns[BUDGET_SOURCES_MAX] = {now_ns};

	exact->looked_ns = now_ns;
	exact->cost_ns = cost_ns;
	if (note_costs(exact, elapsed_ns, cost_ns - before_ns))
		return 0;
	(void)budget_tick(exact->budget, elapsed_ns, on_ns);
	return budget_now(exact->budget)->cost_ppm;
}

/* Looks at what the hits cost, and again at processes that could not be attached to yet, for the
 * child that parses files was late or somebody keeps the lock of its mappings
 * (attach/mapping_locks.h). */
static bool source_tick(void *state, uint64_t now_ns)
{
	struct exact *exact = state;
	uint64_t cost_ns;
	uint32_t cost_ppm;

	if (exact->is_ended)
		return false;
	see_late(exact);
	detach_gone(exact);
	tell_holder(exact);
	if (now_ns < exact->looked_ns + LOOK_NS || read_cost(exact, &cost_ns))
		return false;
	make_room(exact);
	cost_ppm = take_cost(exact, now_ns, cost_ns);
	if (bound_ppm(exact) >= UNBOUNDED_PPM || cost_ppm <= bound_ppm(exact))
		return false;
	log_warn("%s end here: probes take %.0f %% of the time, so the program is more than %.1f "
		 "times as slow; --max-slowdown allows more, or see pyprof %s --live",
		 name_of(exact), 100 * (double)cost_ppm / (1e6 + cost_ppm),
		 1 + bound_ppm(exact) / 1e6, exact->what == EXACT_CALLS ? "calls" : "lines FILE");
	if (!must_wait(exact))
		detach_all(exact);
	exact->is_ended = true;
	return true;
}

const struct source exact_source = {.name = "exact",
				    .bytes = sizeof(struct exact),
				    .open = source_open,
				    .close = source_close,
				    .is_ready = source_is_ready,
				    .end = source_end,
				    .see_process = source_see_process,
				    .forget_process = source_forget_process,
				    .tick = source_tick,
				    .collect = source_collect,
				    .describe = source_describe};
