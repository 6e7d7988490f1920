/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps pyprofd-serve at work as a child, where the configuration has [http] or [push]: a program
 * of its own, which gives up all capabilities.  It asks over the live socket as everybody does, and
 * ends with the agent, also with one that is killed. */
#ifndef AGENT_SERVER_H
#define AGENT_SERVER_H

#include <stdint.h>

#include "base/cleanup.h"

struct config;
struct options;
struct server;
/* program: "pyprofd-serve" beside this one, or in PATH when NULL.  options: borrowed.  Starts
 * nothing yet; *ret_server stays NULL with serve=no, or when the output is not a store.
 * Returns 0, -ENOMEM or -errno. */
int server_new(const struct options *options, const char *program, struct server **ret_server);
/* Ends the child and waits for it, 2 s at most; then it is killed, and not waited for. */
void server_free(struct server *server);
DEFINE_OWNED(struct server, server)
/* Starts the child, or one that has ended again: after 1 s at first, then later and later, up to a
 * minute.  There is none without both sections.  Never waits, not for the program's file either;
 * call it about once a second.  Accepts NULL. */
void server_turn(struct server *server, uint64_t now_ns);
/* [http] or a [push NAME] is another one: ends the child, and the next turns start one for this
 * configuration, unless it has neither.  config: read at once. */
void server_follow(struct server *server, const struct config *config, uint64_t now_ns);

#endif
