/* SPDX-License-Identifier: BSD-2-Clause */
/* Code objects as they come through the ring or from a live process.  Their names and line tables
 * are kept as they are until the child that parses foreign bytes has decoded
 * them. */
#ifndef PYTHON_PYTHON_CODE_H
#define PYTHON_PYTHON_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pyprofd/sample.h>

#include "base/cleanup.h"
#include "python/python_info.h"

enum line_table_format {
	LINE_TABLE_LNOTAB_2, /* 2.7: lines only grow */
	LINE_TABLE_LNOTAB_3, /* 3.6 to 3.9 */
	LINE_TABLE_310,
	LINE_TABLE_311,
	LINE_TABLE_FORMATS
};
enum line_table_format line_table_format(unsigned int major, unsigned int minor);

/* The instructions from an offset on, up to the next row's, are of a line. */
struct line_row {
	uint32_t start; /* in bytes of bytecode */
	uint32_t line;	/* at most INT32_MAX; 0: none */
};
/* Writes rows, ascending, of which the first has the offset 0, and returns how many: at least one
 * if max is not 0, and at most max, behind which the table is not looked at.  Offsets after the end
 * of the table (which a truncated table has) have the last line in it. */
size_t line_table_rows(enum line_table_format format, const uint8_t *table, size_t size,
		       uint32_t first_line, struct line_row *rows, size_t max);
/* Returns the line at an offset, or 0 for "no line". */
uint32_t line_rows_find(const struct line_row *rows, size_t count, uint32_t offset);

/* Bounds on what we read from a live process. */
#define PYTHON_MAX_NAME_BYTES 4096U /* in the process's own encoding */
#define PYTHON_MAX_LINE_TABLE_BYTES (1U << 20)

/* The names and the line table of a code object as CPython stores them. */
struct python_code_raw {
	uint32_t size; /* bytes, with this head */
	uint32_t first_line;
	uint32_t line_table_bytes;
	uint16_t name_bytes, filename_bytes;
	uint8_t name_kind, filename_kind; /* bytes a character: 1, 2, 4; any in an empty name */
	uint8_t is_bytes;		  /* 2.7: names are bytes that should be UTF-8 */
	uint8_t format;			  /* enum line_table_format */
	uint8_t part[];			  /* name, file name, line table */
};
#define PYTHON_CODE_RAW_MAX_BYTES                                                                  \
	(sizeof(struct python_code_raw) + 2 * PYTHON_MAX_NAME_BYTES + PYTHON_MAX_LINE_TABLE_BYTES)
/* Returns whether the sizes add up and the kinds exist. */
bool python_code_raw_is_sound(const struct python_code_raw *raw);

/* One code object; the dictionary owns it. */
struct python_code {
	uint64_t id;
	struct python_code_raw *raw; /* owned; NULL: it is decoded, or it was given up */
	/* Owned; NULL as long as it is not decoded. */
	char *name;	/* co_qualname, or co_name before 3.11 (without the class); UTF-8 */
	char *filename; /* UTF-8 */
	struct line_row *row;
	uint32_t row_count;
	uint32_t first_line;
	uint32_t flags; /* co_flags */
	uint8_t major, minor;
	bool is_truncated;	/* a name or the line table is incomplete */
	uint16_t code_adaptive; /* offset of the bytecode in the code object; 0 <= 3.10 */
};

/* Makes a code object from a checked record.  When the record is truncated and pid is not 0, the
 * rest is read from the live process, if the same code object is still there.  Returns 0; -ENOMEM;
 * -EBADMSG: sizes do not add up, or there is no such kind of text. */
int python_code_from_record(const struct pp_code_record *record, const struct pp_python *layout,
			    pid_t pid, struct python_code **ret_code);
/* Reads a code object at `address` in a live process, for frames whose code the kernel side could
 * not send.  Its id is the one that the kernel side computes, a hash of the content and of user_key
 * (pyprofd/config.h), which is that of the process.
 * Returns 0; -ENOMEM; -EBADMSG: not a code object; -EFAULT; -ESRCH; -errno. */
int python_code_read(pid_t pid, const struct pp_python *layout, uint64_t bias, uint64_t address,
		     uint64_t user_key, struct python_code **ret_code);
void python_code_free(struct python_code *code);
uint64_t python_code_bytes(const struct python_code *code); /* memory in use */
DEFINE_OWNED(struct python_code, python_code)

/* Returns the line of an instruction; `what` as in struct pp_frame.  Returns first_line when the
 * instruction has no line (NO_LINE entries, lasti -1), and before the code object is decoded. */
uint32_t python_code_line(const struct python_code *code, uint32_t what);

/* Lines of more rows are those of the last one; a function of 100,000 lines has as many. */
#define PYTHON_MAX_LINE_ROWS 131072U
/* A byte becomes U+FFFD at most. */
#define PYTHON_MAX_NAME_TEXT (3 * PYTHON_MAX_NAME_BYTES)

struct python_code_text {
	char *name, *filename; /* owned; UTF-8, as python_text_decode() gives them */
	struct line_row *row;  /* owned; as line_table_rows() gives them */
	uint32_t row_count;
};
void python_code_text_release(struct python_code_text *text);
/* Returns how many rows the line table has at most. */
uint32_t python_code_rows_max(const struct python_code_raw *raw);
/* Decodes a sound code object.  Returns 0 or -ENOMEM. */
int python_code_text_decode(const struct python_code_raw *raw, struct python_code_text *ret_text);
/* Gives a code object its texts, which it takes over, for its raw bytes. */
void python_code_set_text(struct python_code *code, struct python_code_text *text);

#endif
