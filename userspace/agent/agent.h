/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent: starts every stage in the order of the data, serves them in one thread, and ends
 * them. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

struct options;

/* Runs until the end that the options or a signal give. child_program: what children are, this
 * program itself, whose main() knows a child by its argv[0]. Returns the exit status. */
int agent_run(struct options *options, const char *child_program);

#endif
