/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes from the calling process what its row of child/children.h does not leave it. */
#ifndef CHILD_SANDBOX_H
#define CHILD_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "child/children.h"

/* Files and directories that stay open to a program beside those of its row. */
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

/* Gives up what the row says: signals, priority, user, capabilities, limits, system calls, and with
 * Landlock, where the kernel has it (5.13), files; besides new privileges, core files and being
 * looked at by others.  What is open stays.  more: paths that stay open besides; NULL: none.  Call
 * it before threads are started.  Cannot be undone.  *ret_has_landlock (NULL: not wanted): whether
 * there is Landlock.  Returns 0 or -errno: then the process must not go on. */
int sandbox_enter(enum child_kind kind, const struct sandbox_paths *more, bool *ret_has_landlock);
/* What a child of this program begins with: takes its name, closes all descriptors behind those of
 * its row, which somebody left open behind the starter, and enters its sandbox.  Returns 0 or
 * -errno. */
int sandbox_begin(enum child_kind kind);

#endif
