/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of a store's directory, of files or of directories, in the order in which they were read.
 * Release with name_list_release(). */
#ifndef STORE_NAME_LIST_H
#define STORE_NAME_LIST_H

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "store/store_names.h"

struct name_list {
	char (*name)[STORE_FILE_CHARS];
	size_t count, capacity;
};

static inline void name_list_release(struct name_list *names)
{
	free(names->name);
	*names = (struct name_list){0};
}

/* Adds a name of the store, all of which fit.  Returns 0 or -ENOMEM. */
static inline int name_list_add(struct name_list *names, const char *name)
{
	if (ARRAY_RESERVE(names->name, names->count, names->capacity))
		return -ENOMEM;
	snprintf(names->name[names->count++], sizeof(names->name[0]), "%.95s", name);
	return 0;
}

#endif
