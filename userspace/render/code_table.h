/* SPDX-License-Identifier: BSD-2-Clause */
/* What a view has rows for: the pieces of code that it shows (functions, lines, files or modules;
 * locations of the profile that it does not tell apart are one piece), and groups of samples. */
#ifndef RENDER_CODE_TABLE_H
#define RENDER_CODE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index_table.h"
#include "profile/profile_data.h"
#include "render/short_paths.h"

/* Exports contain these numbers: never change one. */
enum frame_class {
	FRAME_CLASS_PYTHON = 0,
	FRAME_CLASS_NATIVE = 1,
	FRAME_CLASS_KERNEL = 2,
	FRAME_CLASS_GPU = 3,
	FRAME_CLASS_OTHER = 4, /* our own: [frames omitted], groups */
};

enum frame_class frame_class(const struct profile *profile, const struct frame *frame);
const char *frame_class_name(enum frame_class class);
/* Never returns "": "[unknown]". */
const char *frame_name(const struct profile *profile, const struct frame *frame);
/* Returns the frame's source file, "" when there is none. */
const char *frame_file(const struct profile *profile, const struct frame *frame);
/* Returns the path of the frame's module, "" when there is none. */
const char *frame_module_path(const struct profile *profile, const struct frame *frame);
/* Returns what follows the last slash. */
const char *path_base(const char *path);

enum code_by {
	CODE_BY_FUNCTION,
	CODE_BY_LINE,	     /* of a function */
	CODE_BY_SOURCE_LINE, /* of a file, in whatever function */
	CODE_BY_FILE,
	CODE_BY_MODULE
};

/* Ids of strings of the profile.  Fields that the view ignores are 0, except class. */
struct code {
	uint32_t name, file, line, class, module; /* class: enum frame_class */
	uint32_t start_line;
};

/* Release with code_table_release(). */
struct code_table {
	const struct profile *profile; /* borrowed; may grow */
	enum code_by by;
	const struct short_paths *short_paths; /* borrowed; NULL: whole paths are shown */
	struct code *code;
	uint32_t count, capacity;
	struct index_table index;
	struct id_map of_location;
};

void code_table_init(struct code_table *table, const struct profile *profile, enum code_by by);
void code_table_release(struct code_table *table);
/* Returns the id of a location's code; ids count from 0.  Returns 0 or -ENOMEM. */
int code_table_of_location(struct code_table *table, uint32_t location, uint32_t *ret_code);
/* Adds code that is not a location of the profile: a group's name. */
int code_table_add(struct code_table *table, const struct code *code, uint32_t *ret_code);

const char *code_text(const struct code_table *table, uint32_t string);
/* Never returns "": "[unknown]". */
const char *code_name(const struct code_table *table, const struct code *code);
/* Returns the file, else the module; never NULL.  It tells apart what names do not: "<module>" of
 * a.py and b.py are two functions, and a function of libc has no file, but a module. */
const char *code_place(const struct code_table *table, const struct code *code);
/* Returns the file's short path, for people, else the module's last component. */
const char *code_shown_place(const struct code_table *table, const struct code *code);
/* Returns the line to show beside the file: the code's own, else the first line of its function; 0:
 * unknown. */
uint32_t code_line(const struct code *code);

/* ---- groups of samples by their labels ---- */

enum group_by {
	GROUP_BY_NONE = 0,
	GROUP_BY_PROCESS = 1U << 0, /* pid */
	GROUP_BY_THREAD = 1U << 1,  /* pid and tid */
	GROUP_BY_COMM = 1U << 2,
	GROUP_BY_THREAD_NAME = 1U << 3,
	GROUP_BY_CONTAINER = 1U << 4,
	GROUP_BY_WAIT = 1U << 5,
	GROUP_BY_LABELS = 1U << 6, /* those of struct grouping */
};

#define GROUP_LABELS_MAX 4U
#define GROUP_LABEL_BYTES 64U /* of a label's key, with its NUL */

/* What samples are grouped by.  All zero: by nothing.  With labels GROUP_BY_LABELS is set. */
struct grouping {
	uint32_t keys; /* enum group_by, ored */
	uint32_t label_count;
	char label[GROUP_LABELS_MAX][GROUP_LABEL_BYTES];
};

/* 0: the label is missing, or not asked for.  Other values but pid and tid are ids of strings. */
struct group {
	int64_t pid, tid;
	uint32_t comm, thread, container, wait;
	uint32_t other[GROUP_LABELS_MAX];
	uint32_t label; /* string: "pid 12 python3 / thread 14 main"; "all" without any key */
};

/* Release with groups_release(). */
struct groups {
	struct profile *profile; /* borrowed; labels are added to its strings */
	struct grouping by;
	struct group *group;
	uint32_t count, capacity;
	struct index_table index;
	struct id_map of_set; /* by label set */
};

void groups_init(struct groups *groups, struct profile *profile, const struct grouping *by);
void groups_release(struct groups *groups);
/* Returns the group of a label set; ids count from 0.  Returns 0 or -ENOMEM. */
int groups_of_set(struct groups *groups, uint32_t label_set, uint32_t *ret_group);
/* Lists the label keys that `by` needs, NULL at the end: at most GROUPS_MAX_KEYS with the NULL.
 * Those of its labels are borrowed. */
#define GROUPS_MAX_KEYS (9U + GROUP_LABELS_MAX)
void groups_label_keys(const struct grouping *by, const char *key[GROUPS_MAX_KEYS]);

#endif
