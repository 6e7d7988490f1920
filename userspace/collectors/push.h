/* SPDX-License-Identifier: BSD-2-Clause */
/* Pushes the windows of a store to the collectors of the configuration's [push NAME].  The store is
 * the spool: each sink has a cursor of its own, and an outage costs nothing that the store still
 * has.  What the collector gets it gets at least once (docs/design/collectors.md).
 * No fork() while there is one: it has threads. */
#ifndef COLLECTORS_PUSH_H
#define COLLECTORS_PUSH_H

#include "collectors/sink.h"

struct push;
struct push_options {
	const char *store, *state; /* directories; the second one is made where there is none */
	const char *host;	   /* NULL: the host's name */
	void (*tell)(void *context, const char *line); /* as in push_sink_options */
	void *context;
	push_environment *environment; /* NULL: getenv() */
	uint32_t poll_ms;	       /* 0: PUSH_POLL_MS */
};

/* Starts all sinks, or none.  Without a [push NAME] there are none, and nothing is made.  Returns
 * 0; -EBUSY: another process pushes with this state; -EINVAL, -errno with one line in `why`;
 * -ENOMEM. */
int push_new(const struct push_options *options, const struct config *config,
	     char why[CONFIG_WHY_BYTES], struct push **ret_push);
/* Ends all sinks; waits PUSH_END_MS at most for answers.  What they have counted stays. */
void push_end(struct push *push);
void push_free(struct push *push);
DEFINE_OWNED(struct push, push)

/* Writes the metrics of all sinks in the text format of Prometheus. */
void push_write_metrics(struct push *push, FILE *out);

#endif
