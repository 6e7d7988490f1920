/* SPDX-License-Identifier: BSD-2-Clause */
/* Source files as people name them: "pip/_internal/cli/main.py" for
 * /usr/lib/python3.12/site-packages/pip/_internal/cli/main.py.
 * A short path is always the end of the whole one, so it is kept as an offset.  It is relative to
 * site-packages or dist-packages, else to the standard library, else to the program's own directory
 * (that of the script on top of a stack), else to the directory that the files below one top
 * directory share.  Files whose short paths would be equal get one more component each until they
 * differ. */
#ifndef RENDER_SHORT_PATHS_H
#define RENDER_SHORT_PATHS_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile_data.h"

struct short_path {
	const char *text; /* the whole path; borrowed */
	uint32_t string;  /* its id */
	uint32_t offset;  /* where the short path begins, in bytes */
};

struct short_paths_root {
	const char *text; /* borrowed */
	size_t size;	  /* without the separator at its end */
};

/* Release with short_paths_release().  All zero: no path is shortened. */
struct short_paths {
	struct short_path *path; /* sorted by string, once resolved */
	uint32_t count, capacity;
	struct short_paths_root *root;
	uint32_t root_count, root_capacity;
};

/* All source files of a profile.  0 or -ENOMEM. */
int short_paths_of_profile(const struct profile *profile, struct short_paths *ret_paths);
void short_paths_release(struct short_paths *paths);
/* The short path of a string, which is `text`; that itself when the table does not know it.  paths
 * may be NULL. */
const char *short_paths_get(const struct short_paths *paths, uint32_t string, const char *text);

/* In steps.  The script's path tells a program's own directory.  Each string at most once.  0 or
 * -ENOMEM. */
int short_paths_add_script(struct short_paths *paths, const char *script);
int short_paths_add(struct short_paths *paths, uint32_t string, const char *text);
int short_paths_resolve(struct short_paths *paths);

/* How many columns a text takes in a terminal: its code points. */
size_t text_columns_of(const char *text);
/* Returns the text after the first `columns` code points. */
const char *text_skip_columns(const char *text, size_t columns);
/* Cuts "pip/_internal/cli/main.py:46" so that it takes `columns` at most: "pip/…/main.py:46",
 * "…/main.py:46", "…in.py:46": the end, which names file and line, stays.  Returns text or
 * buffer. */
const char *path_fit(const char *text, size_t columns, char *buffer, size_t size);
/* Cuts a name in the middle. */
const char *name_fit(const char *text, size_t columns, char *buffer, size_t size);

#endif
