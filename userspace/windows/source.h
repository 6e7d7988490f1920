/* SPDX-License-Identifier: BSD-2-Clause */
/* A source is what makes counters of one kind: it opens its side of the kernel, follows processes,
 * and hands over at a window's end what was counted.  include/pyprofd/kinds.h lists the sources
 * (PP_SOURCES); the loop, the stages and windows know none of them by name.  How to add one:
 * docs/hacking.md.  The loop's thread calls all of this. */
#ifndef WINDOWS_SOURCE_H
#define WINDOWS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <pyprofd/kinds.h>
#include <pyprofd/process.h>

#include "base/slice.h"
#include "drain/thread_slots.h"

struct context_table;
struct counts;
struct dictionary;
struct file_table;
struct finisher;
struct foreign;
struct identities;
struct intern;
struct kernel_side;
struct naming;
struct options;
struct pp_count_key;
struct process;
struct process_table;
struct profile_sample;
struct profiles;
struct sources;
struct summary;
struct text_table;
struct thread_names;
struct top;

/* What all sources get.  All is borrowed, and lives longer than they do. */
struct services {
	const struct options *options;
	const char *child_program; /* what children are */
	bool is_filtered;	   /* only processes with PP_CONTEXT_MATCHES are profiled */
	uint32_t online_cpus;	   /* at the start */
	struct kernel_side *kernel;
	struct file_table *files;
	struct context_table *contexts;
	struct process_table *processes;
	struct foreign *foreign; /* parses files */
	struct dictionary *dictionary;
	struct text_table *texts; /* that counters refer to */
	struct finisher *finisher;
	struct summary *summary;
	struct identities *identities;
	struct thread_names *thread_names;
	struct naming *naming; /* agent/naming.h */
	struct top *top;       /* clients that watch; NULL: none can, or not yet */
	/* The other sources: state[PP_SOURCE_...] is NULL while that one is not open. */
	const struct sources *sources;
};

/* A window that has ended. */
struct source_window {
	struct slots_window slots; /* its number, begin and end */
	bool is_part;		   /* it goes on, and ended only for clients that watch */
	bool is_last;
	bool is_written; /* its profiles are, and begin anew */
	struct counts *counts;
};

/* One source: `bytes`, and of all verbs those that it has a use for. */
struct source {
	const char *name;
	/* The state that all verbs get begins with a pointer to the services, and is zero but for
	 * that before open(). */
	size_t bytes;
	/* Opens the source.  Returns 0; 1: it is not used in this run; -errno, which ends pyprofd,
	 * with a line in the log.  close() follows in any case. */
	int (*open)(void *state);
	/* Releases what the state owns.  Returns false when a thread goes on to use the kernel
	 * side, which then stays open. */
	bool (*close)(void *state);

	/* ---- the start ---- */

	/* Attaches what a command will have in the file that it executes, before it does so. */
	void (*prepare)(void *state, pid_t pid, const char *command);
	/* Looks whether what the options ask for is there; the processes are known.  Returns 0 or
	 * -errno with a line in the log. */
	int (*check)(void *state);
	/* Returns 1 when all is attached whose absence the first window would miss; 0: not yet, the
	 * loop goes on meanwhile; -errno with a line in the log: it never will be. */
	int (*is_ready)(void *state);
	/* The first window has begun, and events count.  Returns 0 or -errno. */
	int (*begin)(void *state, uint64_t started_ns);
	/* The last window is over soon; whether the run can be a success. */
	int (*end)(void *state);

	/* ---- processes ---- */

	/* The files of a live process that is profiled are known, for the first time or again.
	 * is_new: the process matches the filters and did not before. */
	void (*see_process)(void *state, const struct process *process, bool is_new);
	/* A process has ended or become another program. */
	void (*forget_process)(void *state, struct pp_process_id id);

	/* ---- time passes ---- */

	/* Four times a second.  Returns whether the run is to end, which was told. */
	bool (*tick)(void *state, uint64_t now_ns);
	/* Goes on with work beside the loop for some ms, where it is due. */
	void (*step)(void *state);
	/* Returns in how many ms step() is due, or longest_ms if that is earlier. */
	int (*timeout_ms)(void *state, int longest_ms);
	/* A window's end is due: returns whether it should wait for what step() does. */
	bool (*hurry)(void *state);

	/* ---- the end of a window, in this order ---- */

	/* Adds to the counters what the slots of threads hold, which go on afterwards. */
	int (*collect_slots)(void *state, const struct source_window *window);
	/* Ends the window of the source, whatever became of the others, and adds to its counters
	 * what is not in the kernel's tables of counters; these were added. */
	int (*collect)(void *state, const struct source_window *window);
	/* Adds more counters, until the slice is over (NULL: all), or finds out what is needed to
	 * name them.  Returns 1 when there is more to do. */
	int (*add)(void *state, const struct source_window *window, const struct slice *slice);
	/* The window's counters are named: ends what they were part of, and sends it to clients,
	 * until the slice is over.  Returns 1 when there is more to do. */
	int (*finish)(void *state, const struct source_window *window, const struct slice *slice);
	/* Adds the labels that only samples of these kinds have: bits 1 << enum pp_count_kind. */
	uint32_t labelled_kinds;
	int (*label)(void *state, const struct pp_count_key *key, struct intern *strings,
		     struct profile_sample *sample);
	/* Adds to profiles that are about to be written what is no counter, and begins anew. */
	int (*describe)(void *state, struct profiles *profiles);
	/* The dictionary has begun a new epoch: stacks that are kept are to be described again. */
	void (*refresh)(void *state);

	/* ---- how it went ---- */

	/* Fills in the summary what the source has lost and what it costs. */
	void (*summarize)(void *state, struct summary *summary);
	/* Prints at the end of the run what it has come to. */
	void (*print)(void *state, FILE *stream);
};

#define PP_ENUM_SOURCE(id, ...) PP_SOURCE_##id,
enum pp_source { PP_SOURCES(PP_ENUM_SOURCE) PP_SOURCE_COUNT };

/* The sources of a run, in the order of PP_SOURCES. */
struct sources {
	const struct source *const *table; /* PP_SOURCE_COUNT; borrowed */
	void *state[PP_SOURCE_COUNT];	   /* NULL: it is not open, and is left out */
};

/* Opens a source; *ret_state stays NULL where it is not used.  Returns 0 or -errno. */
int source_new(const struct source *source, const struct services *services, void **ret_state);
/* Closes it: NULL is ok.  Returns what the verb `close` does. */
bool source_free(const struct source *source, void *state);

/* Opens the sources of the table, for any of whose captures the options ask.  Returns 0 or -errno;
 * sources_close() either way. */
int sources_open(struct sources *sources, const struct services *services);
/* Returns what the verb `close` does. */
bool sources_close(struct sources *sources);

/* Each asks all open sources, in their order; those that return an errno end with the first one. */
void sources_prepare(const struct sources *sources, pid_t pid, const char *command);
int sources_check(const struct sources *sources);
/* 0 when one is not. */
int sources_are_ready(const struct sources *sources);
int sources_begin(const struct sources *sources, uint64_t started_ns);
int sources_end(const struct sources *sources);
void sources_see_process(const struct sources *sources, const struct process *process, bool is_new);
void sources_forget_process(const struct sources *sources, struct pp_process_id id);
bool sources_tick(const struct sources *sources, uint64_t now_ns);
void sources_step(const struct sources *sources);
int sources_timeout_ms(const struct sources *sources, int longest_ms);
bool sources_hurry(const struct sources *sources);
int sources_collect_slots(const struct sources *sources, const struct source_window *window);
/* Goes on after an error, and returns the first one. */
int sources_collect(const struct sources *sources, const struct source_window *window);
/* *next: the source to go on with; 0 at first, and when the last one is done. */
int sources_add(const struct sources *sources, const struct source_window *window,
		const struct slice *slice, uint32_t *next);
int sources_finish(const struct sources *sources, const struct source_window *window,
		   const struct slice *slice, uint32_t *next);
int sources_label(const struct sources *sources, const struct pp_count_key *key,
		  struct intern *strings, struct profile_sample *sample);
int sources_describe(const struct sources *sources, struct profiles *profiles);
void sources_refresh(const struct sources *sources);
void sources_summarize(const struct sources *sources, struct summary *summary);
void sources_print(const struct sources *sources, FILE *stream);

#endif
