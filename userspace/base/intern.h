/* SPDX-License-Identifier: BSD-2-Clause */
/* A table that stores each string once. Ids count from 0; id 0 is always "". */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct intern;

int intern_new(struct intern **ret_intern);
void intern_free(struct intern *intern);
DEFINE_OWNED(struct intern, intern)

/* Stores a copy of the bytes, which may contain NULs, and returns their id. Returns 0 or
 * -ENOMEM. */
int intern_bytes(struct intern *intern, const char *bytes, size_t size, uint32_t *ret_id);
int intern_string(struct intern *intern, const char *string, uint32_t *ret_id);
/* Stores the bytes cleaned (base/utf8.h): names come from other processes. */
int intern_clean(struct intern *intern, const char *bytes, size_t size, uint32_t *ret_id);
/* Returns the string of an id that this table gave out: NUL-terminated, valid until intern_free().
 * ret_size may be NULL. */
const char *intern_get(const struct intern *intern, uint32_t id, size_t *ret_size);
uint32_t intern_count(const struct intern *intern);
size_t intern_bytes_used(const struct intern *intern);

#endif
