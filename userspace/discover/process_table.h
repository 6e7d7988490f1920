/* SPDX-License-Identifier: BSD-2-Clause */
/* All live processes, and dead ones until they expire: (tgid, generation) -> struct process. Used
 * by one thread.
 * Two channels feed the table: the process lifecycle (fork, exec, exit) from the ring `events`, and
 * mappings from the side-band. Nothing is lost in this order: take what
 * is in `events`, then call sideband_read(), then apply both by time. Records in another order are
 * handled as far as possible:
 * - a mapping older than its process's address space, or than the last reading of /proc, is
 * ignored;
 * - a parent's mapping that is older than a fork already applied also goes to the child;
 * - an older mapping does not displace a newer one;
 * - after a mapping that came before its process, process_table_wants_read() is true.
 * The kernel reports an exec after it has mapped the new program (fs/exec.c, exec_binprm), and that
 * the address space is replaced before that (PP_EVENT_NEW_SPACE): process_table_new_context(). */
#ifndef DISCOVER_PROCESS_TABLE_H
#define DISCOVER_PROCESS_TABLE_H

#include "base/cleanup.h"
#include "discover/proc_maps.h"
#include "discover/process.h"

#define PROCESS_TABLE_MAX 131072U	      /* processes, dead ones included */
#define PROCESS_TABLE_STRING_BYTES (8U << 20) /* of paths; above it unused ones are dropped */

/* Bytes of mappings of all processes: who answers for some may have as many as are free. */
#define PROCESS_TABLE_MAPPING_BYTES (64U << 20)

struct process_table_stats {
	uint64_t mappings_refused;  /* above MAPPING_SET_MAX, or without room */
	uint64_t processes_refused; /* above PROCESS_TABLE_MAX */
	uint64_t bad_lines;	    /* of /proc/PID/maps */
	uint64_t string_rebuilds;
};

struct process_table;
struct user_quota;
int process_table_new(struct process_table **ret_table);
/* Frees the table but not process->tables: their owner frees those before. */
void process_table_free(struct process_table *table);
DEFINE_OWNED(struct process_table, process_table)

/* A pointer to a process is valid until the process expires. Its strings and its array of mappings
 * are valid until the next call that takes a non-const table: copy what must live longer. The
 * caller may write `file` and `bias` in process->mapping; after a fork parent and child share the
 * array, so both see the change.
 * Each function returns 0; -ENOMEM; -ENOSPC above PROCESS_TABLE_MAX. When a live process has the
 * same tgid already, that one is taken to have died at that moment. */

/* Adds a process that was found in /proc or by a sample. -EEXIST: it is in the table. ret_process
 * may be NULL. */
int process_table_add(struct process_table *table, struct pp_process_id id, uint32_t ppid,
		      uint64_t start_ns, struct process **ret_process);
/* Adds a child with the parent's names and mappings, or with none when the parent is not known.
 * inner_pid becomes 0 where only /proc knows it. -EEXIST: the child is in the table. */
int process_table_fork(struct process_table *table, struct pp_process_id parent,
		       struct pp_process_id child, uint64_t time_ns);
/* Replaces a process by the program that it executes: `from` stays as a dead process with its
 * mappings; `to` gets its names and those mappings that belong to the new program. -EEXIST: `to` is
 * in the table. */
int process_table_exec(struct process_table *table, struct pp_process_id from,
		       struct pp_process_id to, uint64_t time_ns);
/* Marks a process as dead; it can be found until it expires. -ESRCH: not in the table. */
int process_table_exit(struct process_table *table, struct pp_process_id id, uint64_t time_ns);
/* Applies one record of the ring `events`, which may be any of the above; sets comm. -EINVAL: the
 * record is not a process lifecycle event. */
int process_table_apply(struct process_table *table, const struct pp_event *event);

/* Drops the mappings of the process's old address space, which is gone (execve has passed its point
 * of no return). -ESRCH: not in the table. */
int process_table_new_context(struct process_table *table, uint32_t tgid, uint64_t time_ns);
/* Returns whether a process was forked and still runs the program of its parent, with that one. */
bool process_table_forked_from(const struct process *process, struct pp_process_id *ret_parent);
/* Adds a mapping to the live process of this tgid. mapping->path is copied. -ESRCH: there is no
 * such process, and the mapping is dropped; -ENOSPC: above MAPPING_SET_MAX; -EINVAL. */
int process_table_map(struct process_table *table, uint32_t tgid, const struct mapping *mapping);
/* Replaces the mappings of a live process by those in /proc/PID/maps. Mappings that the side-band
 * reported after the reading began stay. Returns as proc_maps_read(). */
int process_table_read_maps(struct process_table *table, struct process *process,
			    struct proc_maps_summary *ret_summary);
/* Returns whether mappings of a live process may be missing: since it was added, since its parent
 * was not known, since a mapping came before it, or since records were lost. True until
 * /proc/PID/maps has been read. */
bool process_table_wants_read(const struct process *process);

/* Records of its mappings may be lost: process_table_wants_read() is true now. */
void process_table_lost(struct process *process);

struct process *process_table_find(const struct process_table *table, struct pp_process_id id);
/* Returns whether it is known, and has not ended. */
static inline bool process_table_is_alive(const struct process_table *table,
					  struct pp_process_id id)
{
	const struct process *process = process_table_find(table, id);

	return process && !process->exit_ns;
}
/* Finds the live process of this tgid, or else the one that died last. */
struct process *process_table_find_tgid(const struct process_table *table, uint32_t tgid);
/* Finds the process with this id, or else the newest one with its tgid; NULL: there is none. */
struct process *process_table_find_or_tgid(const struct process_table *table,
					   struct pp_process_id id);
/* Iterates over all processes, in no order: NULL gives the first, and NULL is the end. Processes
 * may be added during the iteration. */
struct process *process_table_next(const struct process_table *table,
				   const struct process *process);
size_t process_table_count(const struct process_table *table);
size_t process_table_live_count(const struct process_table *table);
/* Calls back for each process that ends from now on, once, while it can still be found. */
void process_table_on_end(struct process_table *table,
			  void (*on_end)(void *context, struct process *process), void *context);
void process_table_get_stats(const struct process_table *table,
			     struct process_table_stats *ret_stats);
/* Borrowed: who answers for mappings that found no room. */
struct user_quota *process_table_mapping_quota(struct process_table *table);

/* Stores a string (cgroup, container id) for a field of struct process. */
int process_table_intern(struct process_table *table, const char *string, const char **ret_string);

/* Removes the processes that died before before_ns, after a call of `release` (may be NULL) for
 * each. */
void process_table_expire(struct process_table *table, uint64_t before_ns,
			  void (*release)(void *context, struct process *process), void *context);

#endif
