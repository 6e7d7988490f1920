/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that keeps one thing (store/keep.h), beside the agent: it reads files that others may
 * have written, and may wait for a disk.  It has the rights of the child that merges, and besides
 * may make and remove directories below the store. */
#ifndef STORE_KEEP_CHILD_H
#define STORE_KEEP_CHILD_H

#include <stdbool.h>

#include "store/keep.h"
#include "store/merge_child.h"

#define KEEP_ARGV0 "pyprofd-keep" /* the agent's own program under this name is the child */

/* Returns whether this program was started to be that child. */
bool keep_child_is_meant(const char *argv0);
/* Reads one struct keep_request from MERGE_SOCKET_FD, keeps it below MERGE_STORE_FD, answers with
 * one struct keep_result, and ends the process. */
_Noreturn void keep_child_main(void);

#endif
