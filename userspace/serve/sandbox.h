/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes from pyprofd-serve what it does not need. */
#ifndef SERVE_SANDBOX_H
#define SERVE_SANDBOX_H

#include <stdbool.h>

/* Gives up all capabilities, new privileges, core files and being looked at by others, and with
 * Landlock, where the kernel has it, all files but these: the store to read (NULL: none), /proc to
 * read, the folder of temporary files.  What is open stays.  Call it before threads are started.
 * Cannot be undone.  *ret_has_landlock: whether there is Landlock.  Returns 0 or -errno. */
int sandbox_enter(const char *store, bool *ret_has_landlock);

#endif
