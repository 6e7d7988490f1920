/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes from pyprofd-serve what it does not need. */
#ifndef SERVE_SANDBOX_H
#define SERVE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

/* Files and folders that stay open to us beside the store. */
#define SANDBOX_PATHS_MAX 256U
struct sandbox_path {
	const char *path; /* borrowed; NULL: none */
	bool may_write;	  /* and make, and remove, what is below */
};
struct sandbox_paths {
	struct sandbox_path path[SANDBOX_PATHS_MAX];
	size_t count;
};
/* Adds a path; NULL adds nothing.  Returns 0 or -E2BIG. */
int sandbox_add(struct sandbox_paths *paths, const char *path, bool may_write);

/* Gives up all capabilities, new privileges, core files and being looked at by others, and with
 * Landlock, where the kernel has it, all files but these: the store to read (NULL: none), /proc to
 * read, the folder of temporary files, and `more`.  What is open stays.  Call it before threads are
 * started.  Cannot be undone.  *ret_has_landlock: whether there is Landlock.  Returns 0 or
 * -errno. */
int sandbox_enter(const char *store, const struct sandbox_paths *more, bool *ret_has_landlock);

#endif
