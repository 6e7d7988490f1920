/* SPDX-License-Identifier: BSD-2-Clause */
/* All processes that live, and those that died too lately to be forgotten: (tgid, generation) ->
 * struct process.  One thread.
 *
 * It is fed from two channels: lives (fork, exec, exit) from the ring `events`, mappings and changes
 * of the address space from the side-band.  Read in this order nothing is lost: take what is in
 * `events`, then call sideband_read(), then apply both by time.  The table stands records that
 * arrive in another order as far as it can:
 *  - a mapping older than its process's address space, or than the reading of /proc, is ignored;
 *  - a parent's mapping older than a fork that was applied already also goes to the child;
 *  - an older mapping does not displace a newer one;
 *  - a mapping that came before its process makes process_table_wants_read() true of it.
 *
 * The kernel tells of exec after it has mapped the new program (fs/exec.c, exec_binprm), the
 * side-band tells when the address space is replaced, before that: process_table_new_image(). */
#ifndef DISCOVER_PROCESS_TABLE_H
#define DISCOVER_PROCESS_TABLE_H

#include "base/cleanup.h"
#include "discover/proc_maps.h"
#include "discover/process.h"

#define PROCESS_TABLE_MAX 131072U	      /* processes, dead ones included */
#define PROCESS_TABLE_STRING_BYTES (8U << 20) /* of paths, before unused ones are thrown out */

struct process_table_stats {
	uint64_t mappings_refused;  /* beyond MAPPING_SET_MAX */
	uint64_t mappings_stale;    /* older than what is known */
	uint64_t processes_refused; /* beyond PROCESS_TABLE_MAX */
	uint64_t string_rebuilds;
};

struct process_table;
int process_table_new(struct process_table **ret_table);
/* Does not look at process->tables: its owner walks the table first. */
void process_table_free(struct process_table *table);
DEFINE_OWNED(struct process_table, process_table)

/* Pointers to a process hold until it expires.  Its strings and its array of mappings hold until the
 * next call that takes a non-const table: copy what must live longer.  `file` and `bias` may be
 * written in process->mapping; after a fork they show in parent and child, which share the array.
 *
 * Each returns 0; -ENOMEM; -ENOSPC beyond PROCESS_TABLE_MAX.  A live process of the same tgid is
 * taken for dead at that moment. */

/* A process found by reading /proc, or by a sample.  -EEXIST: it is there.  ret_process: NULL is fine. */
int process_table_add(struct process_table *table, struct pp_process_id id, uint32_t ppid,
		      uint64_t start_ns, struct process **ret_process);
/* The child starts with the parent's names and mappings; an unknown parent leaves it bare.
 * inner_pid is 0 where only /proc knows it.  -EEXIST: the child is there. */
int process_table_fork(struct process_table *table, struct pp_process_id parent,
		       struct pp_process_id child, uint64_t time_ns);
/* `from` stays as a dead process with the mappings it had; `to` has its names and those mappings
 * that belong to the new program.  -EEXIST: `to` is there. */
int process_table_exec(struct process_table *table, struct pp_process_id from,
		       struct pp_process_id to, uint64_t time_ns);
/* The process stays findable until it expires.  -ESRCH: unknown. */
int process_table_exit(struct process_table *table, struct pp_process_id id, uint64_t time_ns);
/* All of the above from one record of the ring; sets comm.  -EINVAL: no event of a process's life. */
int process_table_apply(struct process_table *table, const struct pp_event *event);

/* The process's old address space is gone (execve has passed its point of no return): mappings older
 * than that are dropped.  -ESRCH: unknown. */
int process_table_new_image(struct process_table *table, uint32_t tgid, uint64_t time_ns);
/* A mapping appeared in the live process of this tgid.  -ESRCH: unknown, nothing is kept; -ENOSPC:
 * beyond MAPPING_SET_MAX; -EINVAL.  mapping->path is copied. */
int process_table_map(struct process_table *table, uint32_t tgid, const struct mapping *mapping);
/* Replaces what is known of a live process's mappings by /proc/PID/maps.  What the side-band told
 * since the reading began is kept.  As proc_maps_read(). */
int process_table_read_maps(struct process_table *table, struct process *process,
			    struct proc_maps_summary *ret_summary);
/* Whether mappings of a live process may be missing: it was added, its parent was not known, or a
 * mapping of it could not be kept.  Until /proc/PID/maps has been read. */
bool process_table_wants_read(const struct process *process);

struct process *process_table_find(const struct process_table *table, struct pp_process_id id);
/* The live process of this tgid, else the one that died last. */
struct process *process_table_find_tgid(const struct process_table *table, uint32_t tgid);
/* By its id, else the newest one of that tgid; NULL. */
struct process *process_table_find_or_tgid(const struct process_table *table,
					   struct pp_process_id id);
/* All, in no order: NULL gives the first, and is the end.  Adding meanwhile is fine. */
struct process *process_table_next(const struct process_table *table,
				   const struct process *process);
size_t process_table_count(const struct process_table *table);
size_t process_table_live_count(const struct process_table *table);
size_t process_table_memory_bytes(const struct process_table *table);
void process_table_get_stats(const struct process_table *table,
			     struct process_table_stats *ret_stats);

/* Keeps a string (cgroup, container id) for a field of struct process. */
int process_table_intern(struct process_table *table, const char *string, const char **ret_string);

/* Forgets processes that died before before_ns; `release` (may be NULL) sees each one first. */
void process_table_expire(struct process_table *table, uint64_t before_ns,
			  void (*release)(void *context, struct process *process), void *context);

#endif
