/* SPDX-License-Identifier: BSD-2-Clause */
/* Decodes code objects that came through the ring: names to UTF-8, line tables to lines. */
#ifndef PYTHON_PYTHON_CODE_H
#define PYTHON_PYTHON_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pyprofd/sample.h>

#include "base/cleanup.h"
#include "python/python_info.h"

/* One code object; the dictionary owns it. */
struct python_code {
	uint64_t id;
	char *name;	/* co_qualname, or co_name before 3.11 (without the class); UTF-8 */
	char *filename; /* UTF-8 */
	uint32_t first_line;
	uint32_t flags; /* co_flags */
	uint8_t major, minor;
	bool is_truncated;	/* a name or the line table is incomplete */
	uint16_t code_adaptive; /* offset of the bytecode in the code object; 0 <= 3.10 */
	uint8_t *line_table;
	uint32_t line_table_bytes;
};

/* Bounds on what we read from a live process. */
#define PYTHON_MAX_NAME_BYTES 4096U /* in the process's own encoding */
#define PYTHON_MAX_LINE_TABLE_BYTES (1U << 20)

/* Makes a code object from a checked record.  When the record is truncated and pid is not 0, the
 * rest is read from the live process, if the same code object is still there.  Returns 0; -ENOMEM;
 * -EBADMSG: sizes do not add up. */
int python_code_from_record(const struct pp_code_record *record, const struct pp_python *layout,
			    pid_t pid, struct python_code **ret_code);
/* Reads a code object at `address` in a live process, for frames whose code the kernel side could
 * not send.  Its id is the one that the kernel side computes, a hash of the content.
 * Returns 0; -ENOMEM; -EBADMSG: not a code object; -EFAULT; -ESRCH; -errno. */
int python_code_read(pid_t pid, const struct pp_python *layout, uint64_t bias, uint64_t address,
		     struct python_code **ret_code);
void python_code_free(struct python_code *code);
uint64_t python_code_bytes(const struct python_code *code); /* memory in use */
DEFINE_OWNED(struct python_code, python_code)

/* Returns the line of an instruction; `what` as in struct pp_frame.  Returns first_line when the
 * instruction has no line (NO_LINE entries, lasti -1). */
uint32_t python_code_line(const struct python_code *code, uint32_t what);

/* Look a line up in one of the three formats; `offset` in bytes of bytecode.  They return the line,
 * or 0 for "no line"; for an offset after the end of the table (which a truncated table has) the
 * last line in it.
 * Sources: CPython Objects/lnotab_notes.txt (<= 3.9, 3.10), Objects/locations.md (3.11+). */
uint32_t line_table_find_lnotab(const uint8_t *table, size_t size, uint32_t first_line,
				uint32_t offset, int is_python2);
uint32_t line_table_find_310(const uint8_t *table, size_t size, uint32_t first_line,
			     uint32_t offset);
uint32_t line_table_find_311(const uint8_t *table, size_t size, uint32_t first_line,
			     uint32_t offset);

#endif
