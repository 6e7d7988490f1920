/* SPDX-License-Identifier: BSD-2-Clause */
/* Code objects as they came through the ring: names in UTF-8 and lines from line tables. */
#ifndef PYTHON_PYTHON_CODE_H
#define PYTHON_PYTHON_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pyprofd/sample.h>

#include "base/cleanup.h"
#include "python/python_info.h"

/* One code object, for as long as the dictionary keeps it. */
struct python_code {
	uint64_t id;
	char *name;	/* co_qualname, or co_name before 3.11 (without the class); UTF-8 */
	char *filename; /* UTF-8 */
	uint32_t first_line;
	uint32_t flags; /* co_flags */
	uint8_t major, minor;
	bool is_truncated;	/* a name or the line table is not all there */
	uint16_t code_adaptive; /* offset of the bytecode in the code object; 0 <= 3.10 */
	uint8_t *line_table;
	uint32_t line_table_bytes;
};

/* Bounds of what is read from a live process. */
#define PYTHON_MAX_NAME_BYTES 4096U /* as it lies in memory */
#define PYTHON_MAX_LINE_TABLE_BYTES (1U << 20)

/* From a checked record.  When it is truncated and pid > 0, the rest is read from the live process,
 * if the code object there is still the same.  Returns 0; -ENOMEM; -EBADMSG: sizes do not add up. */
int python_code_from_record(const struct pp_code_record *record, const struct pp_python *layout,
			    pid_t pid, struct python_code **ret_code);
/* Reads a code object at `address` in a live process (frames the kernel side could not describe).
 * Its id is the kernel side's, a hash of the content.
 * Returns 0; -ENOMEM; -EBADMSG: no code object; -EFAULT; -ESRCH; -errno. */
int python_code_read(pid_t pid, const struct pp_python *layout, uint64_t bias, uint64_t address,
		     struct python_code **ret_code);
void python_code_free(struct python_code *code);
uint64_t python_code_bytes(const struct python_code *code); /* of memory that it takes */
DEFINE_OWNED(struct python_code, python_code)

/* The line of an instruction; `what` as in struct pp_frame.  Returns first_line when the
 * instruction has no line (NO_LINE entries, lasti -1). */
uint32_t python_code_line(const struct python_code *code, uint32_t what);

/* The three formats; offsets in bytes of bytecode.  Returns the line, or 0 for "no line"; past the
 * end of the table (which happens when it is truncated) the last line that it tells.
 * Sources: CPython Objects/lnotab_notes.txt (<= 3.9, 3.10), Objects/locations.md (3.11+). */
uint32_t line_table_find_lnotab(const uint8_t *table, size_t size, uint32_t first_line,
				uint32_t offset, int is_python2);
uint32_t line_table_find_310(const uint8_t *table, size_t size, uint32_t first_line,
			     uint32_t offset);
uint32_t line_table_find_311(const uint8_t *table, size_t size, uint32_t first_line,
			     uint32_t offset);

#endif
