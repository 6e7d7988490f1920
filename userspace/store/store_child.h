/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts a child that works on a store's directory (store/merge_child.h). */
#ifndef STORE_STORE_CHILD_H
#define STORE_STORE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct store_child {
	char *program; /* owned; "/proc/self/exe": this one */
	char *store;   /* owned; the directory's path, for messages */
	int store_fd;  /* borrowed */
	pid_t pid;     /* 0: there is none */
	int socket_fd; /* owned; -1: there is no child */
};

/* Starts nothing yet.  Returns 0; -ENOMEM: store_child_release() frees what is there. */
int store_child_init(struct store_child *child, const char *program, const char *store,
		     int store_fd);
/* Kills the child. */
void store_child_release(struct store_child *child);

/* Starts the child, which there is not, under a name, with the store's directory and one end of a
 * socket as MERGE_STORE_FD and MERGE_SOCKET_FD.  Returns 0 or -errno. */
int store_child_start(struct store_child *child, const char *argv0);
/* Returns whether there was a child, which has ended.  The socket stays, with its last words. */
bool store_child_has_ended(struct store_child *child);
/* Forgets one that has ended: another one may be started. */
void store_child_forget(struct store_child *child);

#endif
