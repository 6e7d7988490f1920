/* SPDX-License-Identifier: BSD-2-Clause */
/* How a configuration lies in memory: for the files of this directory alone. */
#ifndef CONFIG_SECTION_H
#define CONFIG_SECTION_H

#include "config/config.h"

struct config_section {
	enum config_kind kind;
	char *title;	   /* owned: "http", "push.NAME" */
	const char *name;  /* NAME in the title; "" without one */
	unsigned int line; /* of the file; 0: by --set */
	struct config_value value[CONFIG_KEYS_MAX];
	char *text[CONFIG_KEYS_MAX]; /* owned: those of the values, but for defaults */
};

struct config {
	char *path;					     /* owned; NULL: no file was read */
	struct config_section *section[CONFIG_SECTIONS_MAX]; /* owned */
	size_t section_count;
};

/* Where a value that is to be stored comes from. */
struct config_origin {
	enum config_source source;
	unsigned int line;
	bool continues; /* an indented line of the file */
};

/* Returns the section, or NULL. */
struct config_section *config_find(const struct config *config, enum config_kind kind,
				   const char *name);
/* Finds a section, or makes one, by what stands between [ and ].  Returns 0, -EINVAL, -EFBIG with
 * one line in `why` without its place, -ENOMEM. */
int config_open_section(struct config *config, const char *title, size_t size, unsigned int line,
			struct config_section **ret_section, char why[CONFIG_WHY_BYTES]);
/* Stores a value by its key's name; likewise. */
int config_store(struct config *config, struct config_section *section, const char *name,
		 const char *text, const struct config_origin *origin, char why[CONFIG_WHY_BYTES]);

#endif
