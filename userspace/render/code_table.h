/* SPDX-License-Identifier: BSD-2-Clause */
/* What a view shows as one piece of code: functions, lines, files or modules, each made of the
 * profile's locations that are the same to it. */
#ifndef RENDER_CODE_TABLE_H
#define RENDER_CODE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id_map.h"
#include "base/index_table.h"
#include "profile/profile_data.h"
#include "render/frame_text.h"
#include "render/short_paths.h"

enum code_by {
	CODE_BY_FUNCTION,
	CODE_BY_LINE,	     /* of a function */
	CODE_BY_SOURCE_LINE, /* of a file, whatever function */
	CODE_BY_FILE,
	CODE_BY_MODULE
};

/* Strings of the profile.  What the view does not tell apart is 0, but class. */
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
/* Ids count from 0.  0 or -ENOMEM. */
int code_table_of_location(struct code_table *table, uint32_t location, uint32_t *ret_code);
/* For what is no location of the profile: a group's name. */
int code_table_add(struct code_table *table, const struct code *code, uint32_t *ret_code);

const char *code_text(const struct code_table *table, uint32_t string);
/* "<module>" of a.py and b.py are two functions; one of libc has no file, but a module.
 * The file, else the module; never NULL. */
const char *code_place(const struct code_table *table, const struct code *code);
/* The same for people: the file's short path, else the module's last component. */
const char *code_shown_place(const struct code_table *table, const struct code *code);
/* The line to show beside the file: of the code itself, else where its function starts; 0: unknown. */
uint32_t code_line(const struct code *code);

#endif
