/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of a pprof file by their fields' numbers (google/pprof, proto/profile.proto), and
 * their tables.  Texts are never stored in place: a field that is said to be a text holds an index
 * into the string table.
 * Locates the tables of one pprof file in its bytes: strings, functions, locations, mappings.
 * Nothing is copied; a message is decoded when something refers to it. */
#ifndef PPROF_PPROF_TABLES_H
#define PPROF_PPROF_TABLES_H

#include <stdint.h>

#include "base/index_table.h"
#include "base/proto.h"

enum pprof_profile_field {
	PPROF_PROFILE_SAMPLE_TYPE = 1, /* ValueType: what Sample.value holds, in this order */
	PPROF_PROFILE_SAMPLE = 2,
	PPROF_PROFILE_MAPPING = 3, /* the first one names the program */
	PPROF_PROFILE_LOCATION = 4,
	PPROF_PROFILE_FUNCTION = 5,
	PPROF_PROFILE_STRING_TABLE = 6, /* the first one is "" */
	PPROF_PROFILE_TIME_NANOS = 9,	/* start of the window, UTC, since 1970 */
	PPROF_PROFILE_DURATION_NANOS = 10,
	PPROF_PROFILE_PERIOD_TYPE = 11, /* ValueType */
	PPROF_PROFILE_PERIOD = 12,
	PPROF_PROFILE_COMMENT = 13,		/* texts, packed */
	PPROF_PROFILE_DEFAULT_SAMPLE_TYPE = 14, /* text: type of the ValueType to show first */
};

enum pprof_value_type_field { PPROF_VALUE_TYPE_TYPE = 1, PPROF_VALUE_TYPE_UNIT = 2 }; /* texts */

enum pprof_sample_field {
	PPROF_SAMPLE_LOCATION_ID = 1, /* packed; leaf first */
	PPROF_SAMPLE_VALUE = 2,	      /* packed; one for each sample type */
	PPROF_SAMPLE_LABEL = 3,
};

enum pprof_label_field {
	PPROF_LABEL_KEY = 1, /* text */
	PPROF_LABEL_STR = 2, /* text; either this or num */
	PPROF_LABEL_NUM = 3,
	PPROF_LABEL_NUM_UNIT = 4, /* text */
};

enum pprof_mapping_field {
	PPROF_MAPPING_ID = 1, /* not 0 */
	PPROF_MAPPING_MEMORY_START = 2,
	PPROF_MAPPING_MEMORY_LIMIT = 3,
	PPROF_MAPPING_FILE_OFFSET = 4,
	PPROF_MAPPING_FILENAME = 5, /* text */
	PPROF_MAPPING_BUILD_ID = 6, /* text */
	/* True: symbolized already, the reader shall not look for the file. */
	PPROF_MAPPING_HAS_FUNCTIONS = 7,
	PPROF_MAPPING_HAS_FILENAMES = 8,
	PPROF_MAPPING_HAS_LINE_NUMBERS = 9,
	PPROF_MAPPING_HAS_INLINE_FRAMES = 10,
};

enum pprof_location_field {
	PPROF_LOCATION_ID = 1,	       /* not 0 */
	PPROF_LOCATION_MAPPING_ID = 2, /* 0: none */
	PPROF_LOCATION_ADDRESS = 3,
	PPROF_LOCATION_LINE = 4, /* Line: the innermost inlined function first */
};

enum pprof_line_field { PPROF_LINE_FUNCTION_ID = 1, PPROF_LINE_LINE = 2 };

enum pprof_function_field {
	PPROF_FUNCTION_ID = 1,		/* not 0 */
	PPROF_FUNCTION_NAME = 2,	/* text: for people */
	PPROF_FUNCTION_SYSTEM_NAME = 3, /* text: as in the file */
	PPROF_FUNCTION_FILENAME = 4,	/* text */
	PPROF_FUNCTION_START_LINE = 5,
};

/* ---- tables ---- */

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
