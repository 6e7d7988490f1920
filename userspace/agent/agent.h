/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent: owns every stage, starts and stops them in the order of the data.  One thread does all;
 * the files of this folder are its parts:
 *   agent.c    start, loop, end          lives.c   processes come, change and go
 *   miss_counts.c  samples whose stacks finish/ completes, with what finishing.c lends it
 *   naming.c   where symbolize/ gets names from
 *   window.c   counters -> profiles      waits.c   slots of threads -> counters, ledger
 *   profiles.c kinds of profiles         output.c  profile -> disk
 *   coverage.c CPU time as the scheduler has it
 *   tables.c   when the kernel's tables are swapped
 *   labels.c   labels of a sample        switch_frames.c  frames that it begins with
 *   wakers.c   who ends waits
 *   timeline.c records -> a trace file   stack_texts.c  its stacks as text
 *   sweep.c    threads that sleep since before the start, and sweeps.c what becomes of them
 *   live.c     clients of the live socket      dump.c  all stacks of this moment
 *   top.c      clients that get every window */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/output.h"
#include "agent/profiles.h"
#include "agent/progress.h"
#include "attach/cpu_events.h"
#include "attach/file_table.h"
#include "attach/image_table.h"
#include "attach/kernel_side.h"
#include "base/intern.h"
#include "discover/process_table.h"
#include "discover/sideband.h"
#include "discover/target.h"
#include "drain/counts.h"
#include "drain/dictionary.h"
#include "drain/ring.h"
#include "drain/wakes.h"
#include "finish/finisher.h"
#include "ledger/ledger.h"
#include "options/options.h"
#include "unwind/row_store.h"

struct coverage;
struct live;
struct miss_python;
struct naming;
struct process_python;
struct sweeps;
struct thread_names;
struct timeline;
struct top;
struct stack_texts;

struct event_batch {
	struct pp_event *event; /* owned */
	size_t count, capacity;
};

/* Processes to look at again: something of theirs changed, or was not ready. */
struct process_list {
	struct pp_process_id *id; /* owned */
	size_t count, capacity;
};

struct agent {
	const struct options *options;
	uint64_t started_ns; /* CLOCK_MONOTONIC, first sample possible */

	/* tables */
	struct kernel_side *kernel;
	struct row_store *rows;
	struct file_table *files;
	struct image_table *images;
	struct process_table *processes;
	struct target_filter filter;
	bool is_filtered;
	struct sideband *sideband;
	struct event_batch events;
	struct process_list changed;	/* to publish */
	struct process_list unverified; /* interpreters not initialised yet */
	bool must_rescan;		/* a record was lost */

	/* samples */
	struct cpu_events *cpu_events;
	struct ring *stacks_ring, *events_ring;
	struct dictionary *dictionary;
	uint32_t epoch;
	uint64_t refused; /* by the dictionary, when room was made last */
	uint32_t online_cpus; /* at the start */
	bool lacks_cpus;      /* told: more are online than there is memory for */
	struct miss_python *miss_python;
	struct finisher finisher; /* of the tables above */
	uint64_t miss_mean_ns; /* that a missed stack costs; 0: not known yet */
	struct counts finished; /* of the open window, as its next one: what does not lie in its tables */
	struct wakes woken;
	uint64_t bounded;     /* PP_LOSS_ROWS_BOUNDED */
	struct thread_names *thread_names;
	struct naming *naming;

	/* the window */
	uint32_t window;
	uint64_t window_started_ns, window_started_wall_ns;
	uint64_t profile_started_ns, profile_started_wall_ns; /* of its first window */
	uint64_t paused_ns; /* the kernel side has stopped: the last window's end; 0: it runs */
	uint32_t windows_closed;
	struct intern *strings;	 /* of the profile */
	struct profiles profiles; /* closed between windows of a directory */
	uint32_t profile_serial; /* of the profile: what is cached for one ends with it */
	struct output *output;
	struct ledger *ledger; /* NULL: waits are not captured, and neither are the next ones */
	struct ledger_check *ledger_check;
	struct ledger_sums *profile_ledger, *run_ledger;
	uint64_t torn_threads; /* PP_LOSS_THREADS_TORN */
	uint64_t stray_threads; /* of PP_LOSS_SWITCHES_UNSEEN */
	struct coverage *coverage; /* NULL before the first sample */
	struct timeline *timeline; /* NULL: none is written */
	struct sweeps *sweeps; /* as well */
	struct live *live;     /* NULL: there is no socket */
	struct top *top;       /* as well */

	struct summary summary;
	struct summary facts_told; /* the summary at the last window_facts_add() */
	struct summary facts_watched; /* ... that clients got */
	struct progress progress;
	bool is_ending;
};

/* lives.c */
int lives_start(struct agent *agent); /* reads /proc; the kernel side is attached already */
/* Takes what the events ring and the side-band hold and publishes what changed. */
int lives_follow(struct agent *agent);
void lives_on_event(void *context, const struct pp_event *event);
/* Self-tests that could not be made yet; a rescan when records were lost. */
void lives_tick(struct agent *agent);
/* CPUs that came or went. */
void lives_follow_cpus(struct agent *agent);
void lives_release(struct agent *agent);
int process_list_add(struct process_list *list, struct pp_process_id id);
/* Makes a process that only a sample has shown known; NULL when it is gone. */
struct process *lives_find(struct agent *agent, struct pp_process_id id);
int lives_publish(struct agent *agent, struct process *process);
/* Whom a counter is of. */
struct who {
	struct process *process;       /* NULL: a kernel thread, or gone before anybody could look */
	char comm[PP_COMM_BYTES + 1];  /* the process', else the thread's; "": not known */
};
/* Its details are read from /proc here, if they were not yet: once a process. */
void lives_who(struct agent *agent, struct pp_process_id id, uint32_t tid, struct who *ret_who);
/* What /proc tells of a process; nothing, if it was read or the process has ended. */
void lives_read_details(struct agent *agent, struct process *process);

/* naming.c */
int naming_new(struct agent *agent, struct naming **ret_naming);
void naming_free(struct naming *naming);
/* Reads the kernel's names, once: 60 ms that the end of the first window is spared. */
void naming_prepare(struct naming *naming);
/* Whose /tmp/perf-PID.map was not read, for a reason that the log tells once. */
uint64_t naming_refused_jits(const struct naming *naming);
struct symbolizer_sources;
/* For one window: its modules start anew. */
void naming_begin(struct naming *naming, struct symbolizer_sources *ret_sources);

/* thread_names.c: names of threads, kept past their ends. */
int thread_names_new(struct agent *agent, struct thread_names **ret_names);
void thread_names_free(struct thread_names *names);
/* A Python stack of this process was seen: its names will be read soon. */
void thread_names_want(struct thread_names *names, struct pp_process_id id);
void thread_names_tick(struct thread_names *names);
/* Never NULL: the name given in Python, else the kernel's, else "". */
const char *thread_names_get(struct thread_names *names, const struct process *process,
			     uint32_t tid);
/* Of a Python thread by the number that it has in its own pid namespace; 0: not known. */
uint32_t thread_names_host_tid(const struct thread_names *names, const struct process *process,
			       uint32_t inner);
/* The number that a Python thread has in its own pid namespace, from its pthread_self(); native_id: as
 * the interpreter has it, 0: it does not.  0: not known. */
uint32_t thread_names_inner_tid(const struct process *process, const struct process_python *python,
				uint64_t thread_id, uint32_t native_id);
void thread_names_expire(struct thread_names *names, uint64_t before_ns);

/* waits.c */
struct slots_window;
int waits_open(struct agent *agent); /* nothing, when the options ask for no waits */
/* The kernel side measures from now on. */
void waits_start(struct agent *agent);
/* What threads waited in a window that has ended, into its counters and the ledger. */
int waits_collect(struct agent *agent, const struct slots_window *window, struct counts *counts);
/* Waits whose stack is known by chance only, scaled to what is known exactly; all counters are in. */
int waits_divide(struct agent *agent, const struct slots_window *window, struct counts *counts);
/* The ledger of the window, to that of its profile and of the run. */
int waits_close(struct agent *agent);
/* The profile's ledger, into its comments; the next one begins. */
int waits_describe(struct agent *agent);
void waits_release(struct agent *agent);

/* window_facts.c */
void window_facts_start(struct agent *agent);  /* with the first window */
void window_facts_update(struct agent *agent); /* agent.summary: what is not counted as it comes */
/* A comment on how the profiles since the last call were taken.  0 or -ENOMEM. */
int window_facts_add(struct agent *agent);
/* The same since *told, which becomes the summary; *ret_text is heap. */
int window_facts_tell(struct agent *agent, struct summary *told, char **ret_text);

/* stack_texts.c: stacks as a timeline shows them; named once. */
struct stack_text {
	uint32_t function; /* innermost Python function, or what there is; ids of strings, 0: not known */
	uint32_t text;	   /* from the leaf on */
	bool is_python;
};
/* strings: borrowed.  max_frames: of one text. */
int stack_texts_new(struct agent *agent, struct intern *strings, unsigned int max_frames,
		    struct stack_texts **ret_texts);
void stack_texts_free(struct stack_texts *texts);
/* Notes a stack that will be asked for; stack_texts_resolve() then names all.  0 or -ENOMEM. */
int stack_texts_note(struct stack_texts *texts, struct pp_process_id id, uint64_t user,
		     uint64_t kernel);
int stack_texts_resolve(struct stack_texts *texts);
void stack_texts_tidy(struct stack_texts *texts); /* before stacks are noted: forgets when there are many */
/* All 0 for a stack that is not known. */
struct stack_text stack_texts_find(const struct stack_texts *texts, uint64_t user, uint64_t kernel);

/* timeline.c */
int timeline_open(struct agent *agent); /* nothing, when the options ask for none; prints */
void timeline_free(struct timeline *timeline);
int timeline_fd(const struct timeline *timeline); /* readable when its ring fills */
/* What the ring holds, into the file. */
void timeline_tick(struct timeline *timeline);
/* What threads do at the end; closes the file.  Nothing is recorded any more.  NULL is fine. */
int timeline_close(struct timeline *timeline);

/* tables.c */
/* Sets the tables that the next window begins with; returns the number of those that are closed by it. */
uint32_t tables_swap_for_next(struct agent *agent);
void tables_settle(void); /* until nobody writes to closed ones any more */
/* Empties closed tables.  0; -ENOMEM; -errno. */
int tables_drain(struct agent *agent, uint32_t number, struct counts *counts, struct wakes *wakes);
/* Call it often: when an open table is half full, the window goes on with empty ones.  0; -ENOMEM; -errno. */
int tables_relieve(struct agent *agent);

/* wakers.c: waits of a window that has ended, with who ended them, into its profile; --wakers. */
int wakers_close(struct agent *agent, const struct wakes *wakes);

/* window.c */
/* Counters named between two looks at the tables that are filled meanwhile. */
#define NAMED_AT_ONCE 256U
/* What stacks and code objects may take. */
size_t window_dictionary_bytes(const struct agent *agent);
int window_open(struct agent *agent);
enum window_end {
	WINDOW_PART,  /* the profile goes on: clients want to see what was counted so far */
	WINDOW_WHOLE, /* so it does in one file; a store's is written */
	WINDOW_LAST,  /* it is written */
};
/* Swaps the count tables, names what was counted and adds it to the profile. */
int window_close(struct agent *agent, enum window_end end);
/* Forgets processes that are gone for some windows, and files that nobody maps. */
void window_forget(struct agent *agent);

/* agent.c */
/* Runs until the end that the options or a signal give; returns the exit status. */
int agent_run(const struct options *options);

#endif
