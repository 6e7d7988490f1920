/* SPDX-License-Identifier: BSD-2-Clause */
/* The mappings of a process: process->mapping, sorted by start, without overlaps. After a fork
 * parent and child share the array until one of them writes: that side copies it first. Part of
 * process_table, which makes sure that the paths outlive the set. An array takes room of
 * process->mapping_room, at the cost of who answers for the process that it was made for. */
#ifndef DISCOVER_MAPPING_SET_H
#define DISCOVER_MAPPING_SET_H

#include "discover/process.h"

#define MAPPING_PATH_MAX_BYTES 4352U /* PATH_MAX, " (deleted)" and a margin; NUL included */

/* Returns whether two keys name the same file: same device and inode, and same generation where
 * both know it. Two keys without a file are equal. */
bool file_key_equal(const struct file_key *a, const struct file_key *b);

static inline bool mapping_is_anonymous(const struct mapping *mapping)
{
	return mapping->path[0] == '\0';
}

/* Converts the kernel's name of a mapping, in place, to the form that struct mapping holds. `path`
 * is a NUL-terminated buffer, and mapping->path is set to it.
 * A mapping with an inode has a file; " (deleted)" is removed from its name.
 * A mapping without a file ([heap], [anon:…], //anon) becomes anonymous: key and offset are
 * cleared; "[vdso]" keeps its name. Shared anonymous memory, which the kernel shows as files that
 * never existed (/dev/zero, /SYSV…, /anon_hugepage), becomes anonymous too.
 * memfd files keep their names (/memfd:…), because they may be ELF files. */
void mapping_set_name(struct mapping *mapping, char *path);

/* Returns whether the path is musl's dynamic loader, which is also its libc: ld-musl-ARCH.so.1, or
 * libc.so, the file that this name links to in musl's own installation. */
bool path_is_musl(const char *path);

#define MAPPING_SET_MAX 4096U /* executable mappings of one process */

/* Adds a mapping in place of what it overlaps; neighbours are trimmed or split. Where a newer
 * mapping (by time_ns) overlaps, that one stays and the rest is added; time_ns 0 replaces all. When
 * the same mapping is there already, only its time changes. Adjacent anonymous mappings are merged.
 * Sets process->mappings_changed. Returns 0; -EINVAL: start >= end; -ENOSPC: MAPPING_SET_MAX, or no
 * room; -ENOMEM. */
int mapping_set_put(struct process *process, const struct mapping *mapping);

/* Drops mappings older than cut_ns, and all of them where those that stay find no room. Mappings
 * with time_ns 0 count as read at read_ns. Returns 0; -ENOSPC; -ENOMEM. */
int mapping_set_drop_older(struct process *process, uint64_t cut_ns, uint64_t read_ns);

/* Gives `to`, which has no mappings, those of `from` with time_ns <= newest_ns. Returns 0;
 * -ENOSPC; -ENOMEM. */
int mapping_set_share(struct process *to, const struct process *from, uint64_t newest_ns);

/* Gives back the room for more mappings, of a set that nobody shares: its process has ended. */
void mapping_set_trim(struct process *process);
void mapping_set_release(struct process *process);

/* Returns a number in the array that a visitor of many processes may write to, in order to visit a
 * shared array only once. */
uint32_t *mapping_set_mark(struct process *process); /* NULL when there are no mappings */

#endif
