/* SPDX-License-Identifier: BSD-2-Clause */
/* Locates the tables of one pprof file in its bytes: strings, functions, locations, mappings.
 * Nothing is copied; a message is decoded when something refers to it. */
#ifndef PPROF_PPROF_TABLES_H
#define PPROF_PPROF_TABLES_H

#include <stdint.h>

#include "base/index_table.h"
#include "base/proto.h"

struct pprof_text {
	uint32_t offset, size; /* in the file's bytes */
	uint32_t interned;     /* id + 1; 0: not yet */
};

struct pprof_item {
	uint64_t id; /* any number but 0 */
	struct wire message;
	uint32_t cached, cached_count; /* for the reader's use; 0 at first */
	bool is_cached;
};

/* When the ids are 1, 2, 3 ..., as most writers number them, messages are found by their order and
 * the index is empty, else by that. */
struct pprof_items {
	struct pprof_item *item;
	uint32_t count, capacity;
	struct index_table index;
};

struct pprof_value_type {
	uint64_t type, unit; /* indices of texts */
};

/* A merged file has those of 64 windows: store/merge_store.h. */
#define PPROF_MAX_COMMENTS 32768U
#define PPROF_TOO_MANY "needs too much memory"

/* Release with pprof_tables_release(); pprof_tables_read() reuses the memory. */
struct pprof_tables {
	const uint8_t *bytes;
	struct pprof_text *text;
	uint32_t text_count, text_capacity;
	struct pprof_items function, location, mapping;
	struct pprof_value_type *type;
	uint32_t type_count, type_capacity;
	uint64_t *comment; /* indices of texts */
	uint32_t comment_count, comment_capacity;
	struct pprof_value_type period_type;
	uint64_t default_type; /* index of a text; 0: none */
	int64_t period;
	uint64_t time_ns, duration_ns;
	uint32_t sample_count;
	size_t max_bytes;  /* the most memory to take; set by the caller */
	const char *error; /* in words; a literal */
};

/* Reads the tables of a file.  The bytes are borrowed until the next call.  Returns 0; -EBADMSG;
 * -EFBIG: they would take more than max_bytes; -ENOMEM. */
int pprof_tables_read(struct pprof_tables *tables, const uint8_t *bytes, size_t size);
/* Returns how many bytes of memory the tables take. */
size_t pprof_tables_bytes(const struct pprof_tables *tables);
void pprof_tables_release(struct pprof_tables *tables);
/* Returns the message with this id, or NULL. */
struct pprof_item *pprof_items_find(const struct pprof_items *items, uint64_t id);

#endif
