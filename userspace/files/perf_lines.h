/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the lines of a JIT's /tmp/perf-PID.map, "START SIZE name" in hexadecimal, into the form in
 * which the child answers.  No state. */
#ifndef FILES_PERF_LINES_H
#define FILES_PERF_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "files/protocol.h"

/* Writes a struct foreign_lines of the complete lines in [from, to) of an open file to memory, as
 * many as fit into `room` bytes.  Lines that do not parse, CPython's own ("py::…": the stack has
 * the Python frames already) and those longer than FOREIGN_LINE_MAX_BYTES are left out.
 * Returns 0; -ENOMEM; -errno. */
int perf_lines_read(int fd, uint64_t from, uint64_t to, uint8_t *memory, size_t room,
		    uint32_t *ret_size);

#endif
