/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes from a program that talks to the network, pyprofd-serve or pyprof-fetch, what it does not
 * need. */
#ifndef BASE_SANDBOX_H
#define BASE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

/* Files and folders that stay open to us beside the store. */
#define SANDBOX_PATHS_MAX 256U
struct sandbox_path {
	const char *path; /* borrowed; NULL: none */
	bool may_write;	  /* and make, and remove, files below */
};
struct sandbox_paths {
	struct sandbox_path path[SANDBOX_PATHS_MAX];
	size_t count;
};
/* Adds a path; NULL adds nothing.  Returns 0 or -E2BIG. */
int sandbox_add(struct sandbox_paths *paths, const char *path, bool may_write);
/* Adds what the resolver, and libcurl's TLS, read when a request is sent.  Returns 0 or -E2BIG. */
int sandbox_add_network(struct sandbox_paths *paths);

/* Gives up all capabilities, new privileges, core files and being looked at by others, and with
 * Landlock, where the kernel has it, all files but these: the store to read (NULL: none), /proc to
 * read, the directory of temporary files, where empty directories may be removed, and `more`.  What
 * is open stays.  Call it before threads are started.  Cannot be undone.  *ret_has_landlock:
 * whether there is Landlock.  Returns 0 or -errno. */
int sandbox_enter(const char *store, const struct sandbox_paths *more, bool *ret_has_landlock);

#endif
