/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a window's capture metadata from its comment: "facts samples=12 complete=11 ...". */
#ifndef PROFILE_FACTS_H
#define PROFILE_FACTS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writing: the head once, then each fact.  prefix and name together are its name: no '=', no
 * space. */
void facts_begin(FILE *out);
void facts_put(FILE *out, const char *prefix, const char *name, uint64_t value);

/* Calls back for each counter of a comment, up to the first text that is not one; `name` is `size`
 * bytes without a NUL.  Ignores other comments. */
void facts_read(const char *comment,
		void (*on_fact)(void *context, const char *name, size_t size, uint64_t value),
		void *context);

#endif
