/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of code without a file, as a JIT writes them to /tmp/perf-PID.map: "START SIZE name" a line,
 * hexadecimal, only ever appended to.  One object a process, one thread. */
#ifndef SYMBOLIZE_PERF_MAP_H
#define SYMBOLIZE_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define PERF_MAP_MAX_FILE_BYTES (64U << 20) /* later lines are not read */
#define PERF_MAP_MAX_ENTRIES (1U << 18)
#define PERF_MAP_MAX_NAME_BYTES 512U
#define PERF_MAP_MAX_BYTES (16U << 20) /* of memory; later lines are left out */

struct perf_map;

int perf_map_new(struct perf_map **ret_map);
void perf_map_free(struct perf_map *map);
DEFINE_OWNED(struct perf_map, perf_map)

/* Reads what is new in ROOT/tmp/perf-INNER_PID.map (root: "/proc/PID/root"); all of it when the file
 * is another or shrank.  Cheap when nothing changed.  At most once a window.
 * The file counts only if it is a regular file that uid (the process's, as the host counts) or root
 * owns and others cannot write: anyone may put a file in /tmp.  started_s: the process's start, wall
 * clock; a file last written before that is another process's.
 * Entries of CPython's -X perf ("py::…") are left out, as the Python frames are there already.
 * Returns 1 when names changed (earlier strings are invalid), 0; -ENOENT; -EPERM; -ENOMEM; -errno. */
int perf_map_refresh(struct perf_map *map, const char *root, uint32_t inner_pid, uint32_t uid,
		     int64_t started_s);

/* The entry that covers an address; of several the one written last among the nearest.  0; -ENOENT.
 * The string is valid until the next perf_map_refresh(). */
int perf_map_find(const struct perf_map *map, uint64_t address, const char **ret_name,
		  uint64_t *ret_start);
/* Adds lines from memory; the last one may lack its newline only in the last piece.  For tests. */
int perf_map_add_text(struct perf_map *map, const char *text, size_t size);
size_t perf_map_count(const struct perf_map *map);
size_t perf_map_bytes(const struct perf_map *map);

#endif
