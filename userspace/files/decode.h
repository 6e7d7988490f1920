/* SPDX-License-Identifier: BSD-2-Clause */
/* Decodes the lines of a JIT's /tmp/perf-PID.map, and Python's code objects, into the form in which
 * the child answers.  No state. */
#ifndef FILES_DECODE_H
#define FILES_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "files/protocol.h"

#define CODE_OBJECTS_MAX_BYTES (2U << 20) /* in a question */
_Static_assert(CODE_OBJECTS_MAX_BYTES >= PYTHON_CODE_RAW_MAX_BYTES, "one always fits");

/* Writes a struct foreign_codes of the code objects in [from, to) of an open file to memory, as
 * many as fit into `room` bytes.  Returns 0; -EBADMSG: they are not what python_code_raw_is_sound()
 * wants, or too many; -E2BIG: the first one does not fit; -ENOMEM; -errno. */
int code_objects_decode(int fd, uint64_t from, uint64_t to, uint8_t *memory, size_t room,
			uint32_t *ret_size);

/* Writes a struct foreign_lines of the complete lines in [from, to) of an open file to memory, as
 * many as fit into `room` bytes.  Lines that do not parse, CPython's own ("py::…": the stack has
 * the Python frames already) and those longer than FOREIGN_LINE_MAX_BYTES are left out.
 * Returns 0; -ENOMEM; -errno. */
int perf_lines_read(int fd, uint64_t from, uint64_t to, uint8_t *memory, size_t room,
		    uint32_t *ret_size);

#endif
