/* SPDX-License-Identifier: BSD-2-Clause */
/* The one way to start a child. */
#ifndef CHILD_SPAWN_H
#define CHILD_SPAWN_H

#include <sys/types.h>

#include "child/children.h"

#define CHILD_PROGRAM_BYTES 4096U
/* Exit statuses, as of a shell, of a child whose program cannot be run. */
#define CHILD_EXIT_NOT_FOUND 127
#define CHILD_EXIT_NOT_RUN 126

/* Writes the path of the program beside this one; where there is none, its name alone, for PATH. */
void child_find_program(const char *name, char ret_path[CHILD_PROGRAM_BYTES]);

/* What a start is given besides the row; all is borrowed. */
struct child_start {
	const char *program; /* a path, or a name for PATH; NULL: the row's */
	char *const *argv;   /* NULL: the row's name alone */
	const int *fd;	     /* the row's descriptors, in its order, without those of /dev/null */
	/* Runs in the child before the program does, where the row says is_forked; what it returns,
	 * unless it is 0, ends the child as if the program could not be run.  NULL: nothing. */
	int (*prepare)(void *context);
	/* Tells that the program cannot be run, in a forked child.  NULL: nobody is told. */
	void (*tell)(void *context, int err);
	void *context;
};
/* Starts a child.  It has its row's descriptors, and those of ours that are not closed by exec.
 * Returns 0 or -errno; of a program that cannot be run too, unless the row says is_forked: then its
 * exit status does.  -ELOOP: this program is a child itself, and does not know it. */
int child_spawn(enum child_kind kind, const struct child_start *start, pid_t *ret_pid);

#endif
