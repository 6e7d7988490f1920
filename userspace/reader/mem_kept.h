/* SPDX-License-Identifier: BSD-2-Clause */
/* What `pyprof mem --oom` lists, and which kept profile it shows. */
#ifndef READER_MEM_KEPT_H
#define READER_MEM_KEPT_H

#include <stdbool.h>

#include "query/select.h"

/* Takes the paths of a selection: the name of what is kept (store/kept.h), the store, both, or
 * none, which is the default store.  Without a name prints the list, and *ret_path is NULL; else
 * *ret_path is the directory's path, on the heap, and of a process that ended the selection takes
 * its pid alone, unless it has pids.  Returns READER_OK, or READER_BAD_INPUT after one line. */
int mem_kept_choose(struct select *select, bool json, char **ret_path);

#endif
