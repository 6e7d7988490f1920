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

struct perf_map_source {
	const char *root;   /* "/proc/PID/root" */
	uint32_t inner_pid; /* as the process knows itself */
	uint32_t uid;	    /* that it acts as now, as the host counts */
	int64_t started_s;  /* wall clock; a file last written before is another process's */
	size_t max_bytes;   /* to read now: what is behind comes with the next refresh */
};

/* Reads what is new in ROOT/tmp/perf-INNER_PID.map; all of it when the file is another or shrank.  Cheap when
 * nothing changed.  At most once a window.
 * Anyone may put anything there, and in a mount namespace of his own mount anything there.  So it is looked at
 * before it is opened, and read only if no link leads to it, it is a regular file with one name that uid owns
 * and others cannot write, and it lies in no file system of the kernel's own (procfs, sysfs, tracefs, ...) or of
 * a program (FUSE).
 * Entries of CPython's -X perf ("py::…") are left out, as the Python frames are there already.
 * *ret_read_bytes: how much of max_bytes was used.
 * Returns 1 when names changed (earlier strings are invalid), 0; -ENOENT; -EPERM: perf_map_refusal() says why;
 * -ENOMEM; -errno. */
int perf_map_refresh(struct perf_map *map, const struct perf_map_source *source,
		     size_t *ret_read_bytes);
/* Why the last refresh did not read the file; static; NULL: it did, or there was none. */
const char *perf_map_refusal(const struct perf_map *map);

/* The entry that covers an address; of several the one written last among the nearest.  0; -ENOENT.
 * The string is valid until the next perf_map_refresh(). */
int perf_map_find(const struct perf_map *map, uint64_t address, const char **ret_name,
		  uint64_t *ret_start);
/* Adds lines from memory; the last one may lack its newline only in the last piece.  For tests. */
int perf_map_add_text(struct perf_map *map, const char *text, size_t size);
size_t perf_map_count(const struct perf_map *map);
size_t perf_map_bytes(const struct perf_map *map);

#endif
