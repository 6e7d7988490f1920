/* SPDX-License-Identifier: BSD-2-Clause */
/* Names code without a file from the /tmp/perf-PID.map that a JIT writes: one "START SIZE name" per
 * line, hexadecimal, only ever appended to.  The child that opens files judges who may have written
 * it (files/opening.h), the one that parses them reads the lines (files/decode.h).  One object per
 * process, one thread. */
#ifndef SYMBOLIZE_PERF_MAP_H
#define SYMBOLIZE_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

#define PERF_MAP_MAX_FILE_BYTES (64U << 20) /* later lines are not read */
#define PERF_MAP_MAX_ENTRIES (1U << 18)
#define PERF_MAP_MAX_BYTES (16U << 20) /* of memory; later lines are left out */

struct foreign;
struct foreign_lines;
struct perf_map;

int perf_map_new(struct perf_map **ret_map);
void perf_map_free(struct perf_map *map);
DEFINE_OWNED(struct perf_map, perf_map)

struct perf_map_source {
	pid_t tid;	    /* of a task that shows the process' root */
	uint32_t inner_pid; /* its pid in its own namespace */
	uint32_t uid;	    /* under which the process acts now, as the host sees it */
	int64_t started_s;  /* wall clock; a file last written before that is another process's */
	size_t max_bytes;   /* to read now; the rest is left to the next refresh */
	struct foreign *foreign; /* borrowed; asked about the file */
	uint32_t number;	 /* of the file, as in struct foreign_file */
};

/* Reads the new part of /tmp/perf-INNER_PID.map in the process' root, or all of it when the file
 * was replaced or shrank.  Cheap when nothing changed.  Call it at most once a window. Anyone may
 * create that file, and in a mount namespace of their own may mount anything there.  So it is
 * checked before it is opened, and read only if no link leads to it, it is a regular file with one
 * name that uid owns and others cannot write, and it does not lie in a file system of the kernel's
 * own (procfs, sysfs, tracefs, ...) or of a program (FUSE). *ret_read_bytes: how much of max_bytes
 * was used. Returns 1 when names changed (earlier strings are invalid), 0; -ENOENT; -EPERM:
 * perf_map_refusal() says why; -ETIMEDOUT: there is no child, -EAGAIN: its user has used up a share
 * of the child's time; the next call goes on; -ENOMEM; -errno. */
int perf_map_refresh(struct perf_map *map, const struct perf_map_source *source,
		     size_t *ret_read_bytes);
/* Returns why the last refresh refused the file, a static string; NULL: it read the file, or there
 * was none. */
const char *perf_map_refusal(const struct perf_map *map);

/* Finds the entry that covers an address; when several of the nearest do, the one written last.
 * Returns 0; -ENOENT.  The string is valid until the next perf_map_refresh(). */
int perf_map_find(const struct perf_map *map, uint64_t address, const char **ret_name,
		  uint64_t *ret_start);
/* Adds lines that were checked.  Returns 0 or -ENOMEM. */
int perf_map_add(struct perf_map *map, const struct foreign_lines *lines);
size_t perf_map_bytes(const struct perf_map *map);

#endif
