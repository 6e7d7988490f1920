/* SPDX-License-Identifier: BSD-2-Clause */
/* What `pyprof mem --oom` lists, and which kept profile it shows. */
#ifndef READER_MEM_KEPT_H
#define READER_MEM_KEPT_H

#include <stdbool.h>

#include "query/select.h"

/* Takes the paths of a selection: the name of a kept profile (store/kept.h), the store, both, or
 * none, which is the default store.  Without a name prints the list, and *ret_path is NULL; else
 * *ret_path is the profile's file, on the heap.  Returns READER_OK, or READER_BAD_INPUT after one
 * line on stderr. */
int mem_kept_choose(const struct select *select, bool json, char **ret_path);

#endif
