/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds pprof's string table: clean UTF-8, each text once (viewers compare indices), "" first. */
#ifndef PPROF_PPROF_STRINGS_H
#define PPROF_PPROF_STRINGS_H

#include <stdint.h>

#include "base/intern.h"

/* Release with pprof_strings_release(), even when pprof_strings_init() failed. */
struct pprof_strings {
	const struct intern *source; /* borrowed */
	struct intern *table;	     /* id: index in the file */
	uint32_t *known;	     /* source id -> index + 1; 0: not asked for yet */
	uint32_t known_count;
};

int pprof_strings_init(struct pprof_strings *strings, const struct intern *source);
void pprof_strings_release(struct pprof_strings *strings);
/* Returns the index of a string of the source.  Returns 0 or -ENOMEM. */
int pprof_strings_add(struct pprof_strings *strings, uint32_t source_id, uint32_t *ret_index);
/* Adds a text that is not in the source. */
int pprof_strings_add_text(struct pprof_strings *strings, const char *text, uint32_t *ret_index);

#endif
