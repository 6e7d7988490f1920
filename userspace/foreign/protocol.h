/* SPDX-License-Identifier: BSD-2-Clause */
/* What the agent and the child that parses files say to each other.  A request is one message and
 * brings the descriptors that it needs; its reply is a struct parser_reply, and what was found lies
 * in the shared memory.  Both sides check every message; the agent copies before it checks. */
#ifndef FOREIGN_PROTOCOL_H
#define FOREIGN_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python/python_told.h"
#include "unwind/cfi.h"

#define FOREIGN_ARGV0 "pyprofd-elf" /* the agent's own program under this name is the child */
/* The rows of one page of 64 KiB always fit, also of a forged one with a row for each byte. */
#define FOREIGN_MEMORY_BYTES (2U << 20)
#define FOREIGN_SLOTS 16U /* files that the child keeps mapped; the agent chooses which */
#define FOREIGN_MAX_SEGMENTS 8U	/* executable ones; more are left out */
#define FOREIGN_BUILD_ID_BYTES 64U
#define FOREIGN_REASON_BYTES 128U /* with its NUL */

enum foreign_kind {
	FOREIGN_EXAMINE, /* what the file is: struct foreign_facts */
	FOREIGN_ROWS,	 /* how to unwind [low, high): struct foreign_rows */
	FOREIGN_CLOSE,	 /* forget the file */
	FOREIGN_KINDS
};

struct foreign_request {
	uint32_t serial;
	uint32_t kind; /* enum foreign_kind */
	uint32_t slot; /* below FOREIGN_SLOTS */
	/* Which file is to be in that slot.  If it is not, the request brings its descriptor. */
	uint32_t number;
	uint64_t low, high;
};

/* An executable PT_LOAD, as struct elf_segment. */
struct foreign_segment {
	uint64_t vaddr, offset, file_size, memory_size, align;
};

struct foreign_facts {
	uint32_t build_id_bytes; /* 0: none */
	uint8_t build_id[FOREIGN_BUILD_ID_BYTES];
	uint32_t segment_count;
	struct foreign_segment segment[FOREIGN_MAX_SEGMENTS];
	uint64_t fde_count;
	int32_t rows_error; /* why there are no rows: 0, -ENODATA, -EBADMSG or -E2BIG */
	/* 0: an interpreter; -ENOTSUP: one that cannot be read, for a reason; else: none */
	int32_t python_error;
	char reason[FOREIGN_REASON_BYTES];
	struct python_told python;
};
_Static_assert(sizeof(struct foreign_facts) < FOREIGN_MEMORY_BYTES, "fits into the shared memory");

struct foreign_rows {
	uint64_t high; /* so far they go; from there on they are asked for again */
	uint64_t count;
	struct cfi_row row[];
};
#define FOREIGN_MAX_ROWS                                                                           \
	((FOREIGN_MEMORY_BYTES - sizeof(struct foreign_rows)) / sizeof(struct cfi_row))
_Static_assert(FOREIGN_MAX_ROWS > 1 << PP_PAGE_SHIFT, "a page's rows fit");

static inline bool foreign_request_is_sound(const struct foreign_request *request, size_t size)
{
	return size == sizeof(*request) && request->kind < FOREIGN_KINDS &&
	       request->slot < FOREIGN_SLOTS && request->number &&
	       (request->kind != FOREIGN_ROWS || request->low < request->high);
}

#endif
