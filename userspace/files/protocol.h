/* SPDX-License-Identifier: BSD-2-Clause */
/* What the agent and the child that parses files say to each other.  A request is one message and
 * brings the descriptors that it needs; its reply is a struct child_reply, and what was found lies
 * in the shared memory.  Both sides check every message; the agent copies before it checks. */
#ifndef FILES_PROTOCOL_H
#define FILES_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "elf/debug_file.h"
#include "elf/probe_sites.h"
#include "files/questions.h"
#include "python/python_code.h"
#include "python/python_offsets.h"
#include "unwind/cfi.h"

/* The rows of one page of 64 KiB always fit, also of a forged one with a row for each byte. */
#define FOREIGN_MEMORY_BYTES (2U << 20)
#define FOREIGN_SLOTS 16U	/* files that the child keeps mapped; the agent chooses which */
#define FOREIGN_MAX_SEGMENTS 8U /* executable ones; more are left out */
#define FOREIGN_MAX_NAMES 4096U /* addresses in a request */
#define FOREIGN_NAME_MAX_BYTES 4096U /* longer ones are cut */
/* Addresses, or mangled names, in a request about kernels: the answers always fit. */
#define FOREIGN_MAX_KERNELS 240U
#define FOREIGN_REASON_BYTES 128U /* with its NUL */

struct foreign_request {
	uint32_t serial;
	uint32_t kind; /* enum foreign_kind */
	uint32_t slot; /* below FOREIGN_SLOTS */
	/* Which file is to be in that slot.  If it is not, the request brings its descriptor. */
	uint32_t number;
	/* FOREIGN_KERNELS: low is 1 where the addresses are those of functions, 0 where they lie
	 * inside of some; FOREIGN_TEXTS: low is the number of texts */
	uint64_t low, high;
	/* Which descriptors come, in this order: bit 0, the file; bit 1 + i, debug file i. */
	uint32_t files;
	/* 0: they come with this message; else over the socket to the child that opens files, under
	 * this number. */
	uint32_t handed;
	/* FOREIGN_NAMES, FOREIGN_KERNELS: addresses, ascending; FOREIGN_PROBES: the words of struct
	 * probe_wanted; FOREIGN_TEXTS: texts, each with its NUL, and zeros */
	uint32_t vaddr_count;
	uint32_t padding;
	uint64_t vaddr[];
};
#define FOREIGN_FILE_BIT 1U
#define FOREIGN_FILES_MASK ((2U << DEBUG_FILES_MAX) - 1)
#define FOREIGN_REQUEST_MAX_BYTES                                                                  \
	(sizeof(struct foreign_request) + FOREIGN_MAX_NAMES * sizeof(uint64_t))

#define FOREIGN_WANTED_WORDS (sizeof(struct probe_wanted) / sizeof(uint64_t))
_Static_assert(PROBE_WANTED_MAX *FOREIGN_WANTED_WORDS <= FOREIGN_MAX_NAMES, "they fit");
/* Returns the wanted probes of a request that is a FOREIGN_PROBES. */
static inline const struct probe_wanted *foreign_wanted(const struct foreign_request *request,
							uint32_t *ret_count)
{
	*ret_count = request->vaddr_count / FOREIGN_WANTED_WORDS;
	return (const struct probe_wanted *)request->vaddr;
}

/* An executable PT_LOAD, as struct elf_segment. */
struct foreign_segment {
	uint64_t vaddr, offset, file_size, memory_size, align;
};

struct foreign_facts {
	struct debug_names debug; /* its build-id, and where its symbols may be */
	uint32_t has_symbols;	  /* 0: its symbols are elsewhere, if there are any */
	uint32_t segment_count;
	struct foreign_segment segment[FOREIGN_MAX_SEGMENTS];
	uint64_t fde_count;
	int32_t rows_error; /* why there are no rows: 0, -ENODATA, -EBADMSG or -E2BIG */
	/* 0: an interpreter; -ENOTSUP: one that cannot be read, for a reason; else: none */
	int32_t python_error;
	char reason[FOREIGN_REASON_BYTES];
	struct python_info python; /* what was read, for python_told_check() */
};

/* Whether the reply about a file brings the rows of all of its code, behind the facts: most new
 * files are small programs, which would be asked about twice.  [*ret_low, *ret_high) is what
 * unwind/row_store.h asks for. */
#define FOREIGN_FIRST_FDES 512U
#define FOREIGN_FIRST_BYTES (1ULL << 20)
static inline bool foreign_has_first_rows(const struct foreign_facts *facts, uint64_t *ret_low,
					  uint64_t *ret_high)
{
	const struct foreign_segment *segment = facts->segment;
	const uint64_t mask = (1ULL << PP_PAGE_SHIFT) - 1;

	if (facts->rows_error || facts->segment_count != 1 || !segment->file_size ||
	    facts->fde_count > FOREIGN_FIRST_FDES || segment->file_size > FOREIGN_FIRST_BYTES ||
	    segment->vaddr > UINT64_MAX - 2ULL * FOREIGN_FIRST_BYTES)
		return false;
	*ret_low = segment->vaddr & ~mask;
	*ret_high = (segment->vaddr + segment->file_size + mask) & ~mask;
	return (*ret_low ^ (*ret_high - 1)) < FOREIGN_FIRST_BYTES;
}

struct foreign_rows {
	uint64_t high; /* so far they go; from there on they are asked for again */
	uint64_t count;
	struct cfi_row row[];
};
#define FOREIGN_FIRST_ROWS_AT ((sizeof(struct foreign_facts) + 7) & ~(size_t)7)
#define FOREIGN_MAX_ROWS                                                                           \
	((FOREIGN_MEMORY_BYTES - sizeof(struct foreign_rows)) / sizeof(struct cfi_row))
_Static_assert(FOREIGN_MAX_ROWS > 1 << PP_PAGE_SHIFT, "a page's rows fit");
_Static_assert(FOREIGN_MAX_ROWS - FOREIGN_FIRST_ROWS_AT / sizeof(struct cfi_row) >
		       (1 << PP_PAGE_SHIFT) + 1,
	       "so they do behind the facts");

/* The answer for one address.  name_bytes 0: no function. */
struct foreign_name {
	uint64_t start;
	/* Every address in [low, high) has this answer. */
	uint64_t low, high;
	uint32_t name_at, name_bytes;	  /* in the text; readable */
	uint32_t system_at, system_bytes; /* the linker's, where it differs; 0 bytes: it does not */
};
/* The answers for the first `count` addresses; the text begins behind the room for all of those
 * that were asked for. */
struct foreign_names {
	uint32_t count;
	uint32_t text_bytes;
	struct foreign_name name[];
};
static inline size_t foreign_text_at(uint32_t vaddr_count)
{
	return sizeof(struct foreign_names) + vaddr_count * sizeof(struct foreign_name);
}

_Static_assert(FOREIGN_MAX_KERNELS * (sizeof(struct foreign_name) + 2U * FOREIGN_NAME_MAX_BYTES) +
			       sizeof(struct foreign_names) <
		       FOREIGN_MEMORY_BYTES,
	       "they fit");

#define FOREIGN_LINE_MAX_BYTES 65536U /* of a perf map; longer ones are not read */
#define FOREIGN_LINE_NAME_BYTES 512U  /* longer names are cut */
/* A line of a perf map; its name comes behind it, without a NUL, and then the next line. */
struct foreign_line {
	uint64_t start;
	uint32_t code_bytes, name_bytes;
};
/* The lines in [low, next) of the file. */
struct foreign_lines {
	uint64_t next;
	uint32_t count;
	uint32_t bytes; /* of them all */
	uint8_t line[];
};

/* The answer for one code object (struct python_code_raw); behind it come its rows (struct
 * line_row), its name and its file's name, without NULs, and up to 3 bytes of nothing. */
struct foreign_code {
	uint32_t row_count;
	uint32_t name_bytes, filename_bytes;
};
/* The answers for the code objects in [low, next) of the file, which is a copy that the agent
 * made. */
struct foreign_codes {
	uint64_t next;
	uint32_t count;
	uint32_t bytes; /* of them all */
	uint8_t code[];
};
static inline size_t foreign_code_bytes(const struct foreign_code *code)
{
	return (sizeof(*code) + code->row_count * sizeof(struct line_row) +
		(size_t)code->name_bytes + code->filename_bytes + 3) &
	       ~(size_t)3;
}
_Static_assert(sizeof(struct foreign_codes) + sizeof(struct foreign_code) +
			       PYTHON_MAX_LINE_ROWS * sizeof(struct line_row) +
			       2 * PYTHON_MAX_NAME_TEXT + 3 <
		       FOREIGN_MEMORY_BYTES,
	       "one always fits");

/* The answer for wanted probes: behind it come a struct probe_found for each of them, and the
 * sites (struct probe_site). */
struct foreign_probes {
	uint32_t wanted_count, site_count;
	uint64_t refused[PROBE_REFUSAL_KINDS];
	uint64_t unread_args;
};
static inline size_t foreign_sites_at(uint32_t wanted_count)
{
	return sizeof(struct foreign_probes) + wanted_count * sizeof(struct probe_found);
}
_Static_assert(sizeof(struct foreign_probes) + PROBE_WANTED_MAX * sizeof(struct probe_found) +
			       PROBE_SITES_PER_FILE * sizeof(struct probe_site) <
		       FOREIGN_MEMORY_BYTES,
	       "they fit");
_Static_assert(sizeof(struct probe_found) % sizeof(uint64_t) == 0, "sites are aligned");

static inline bool foreign_wanted_is_sound(const struct foreign_request *request)
{
	uint32_t count;
	const struct probe_wanted *wanted = foreign_wanted(request, &count);

	if (count > PROBE_WANTED_MAX || request->vaddr_count != count * FOREIGN_WANTED_WORDS)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!probe_wanted_is_sound(&wanted[i]))
			return false;
	return true;
}

/* The last address is none to ask about: a range ends behind it. */
static inline bool foreign_vaddrs_ascend(const struct foreign_request *request)
{
	if (request->vaddr_count && request->vaddr[request->vaddr_count - 1] == UINT64_MAX)
		return false;
	for (uint32_t i = 1; i < request->vaddr_count; i++)
		if (request->vaddr[i] < request->vaddr[i - 1])
			return false;
	return true;
}

/* Whether the file is not kept: a perf map grows, and code objects are other ones each time. */
static inline bool foreign_is_read_once(uint32_t kind)
{
	return kind == FOREIGN_LINES || kind == FOREIGN_CODES;
}

/* Whether a request has as many texts as it says. */
static inline bool foreign_texts_end(const struct foreign_request *request)
{
	const char *at = (const char *)request->vaddr;
	size_t left = request->vaddr_count * sizeof(*request->vaddr);

	if (!request->low || request->low > FOREIGN_MAX_KERNELS || request->files)
		return false;
	for (uint64_t i = 0; i < request->low; i++) {
		const size_t size = strnlen(at, left);

		if (!size || size == left || size >= FOREIGN_NAME_MAX_BYTES)
			return false;
		at += size + 1;
		left -= size + 1;
	}
	return left < sizeof(*request->vaddr);
}

/* Whether the words behind a request are those of its kind. */
static inline bool foreign_words_are_sound(const struct foreign_request *request)
{
	const bool is_of_kernels = request->kind == FOREIGN_KERNELS;

	if (request->kind == FOREIGN_PROBES)
		return request->vaddr_count && foreign_wanted_is_sound(request);
	if (request->kind == FOREIGN_TEXTS)
		return foreign_texts_end(request);
	if (!request->vaddr_count != (request->kind != FOREIGN_NAMES && !is_of_kernels) ||
	    (is_of_kernels && (request->vaddr_count > FOREIGN_MAX_KERNELS || request->low > 1)))
		return false;
	return foreign_vaddrs_ascend(request);
}

static inline bool foreign_request_is_sound(const struct foreign_request *request, size_t size)
{
	if (size < sizeof(*request) || request->kind >= FOREIGN_KINDS ||
	    request->slot >= FOREIGN_SLOTS || !request->number ||
	    request->files & ~FOREIGN_FILES_MASK || request->vaddr_count > FOREIGN_MAX_NAMES ||
	    size != sizeof(*request) + request->vaddr_count * sizeof(*request->vaddr))
		return false;
	if ((request->kind == FOREIGN_ROWS || foreign_is_read_once(request->kind)) &&
	    request->low >= request->high)
		return false;
	/* Its offsets are those of a file. */
	if (foreign_is_read_once(request->kind) &&
	    (request->files != FOREIGN_FILE_BIT || request->high > INT64_MAX))
		return false;
	return foreign_words_are_sound(request);
}

#endif
