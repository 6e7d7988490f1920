/* SPDX-License-Identifier: BSD-2-Clause */
/* A window: opened, and at its end counters joined with the dictionary, named, put into the profile. */
#ifndef AGENT_WINDOW_H
#define AGENT_WINDOW_H

#include <stddef.h>

struct agent;

/* What stacks and code objects may take. */
size_t window_dictionary_bytes(const struct agent *agent);
int window_open(struct agent *agent);
enum window_end {
	WINDOW_PART,  /* the profile goes on: clients want to see what was counted so far */
	WINDOW_WHOLE, /* so it does in one file; a store's is written */
	WINDOW_LAST,  /* it is written */
};
/* Swaps the count tables, names what was counted and adds it to the profile. */
int window_close(struct agent *agent, enum window_end end);
/* Forgets processes that are gone for some windows, and files that nobody maps. */
void window_forget(struct agent *agent);

#endif
