/* SPDX-License-Identifier: BSD-2-Clause */
/* Pushes the windows of a store to the collectors of the configuration's [push NAME].  The store is
 * the spool: each sink has a cursor of its own, and an outage costs nothing that the store still
 * has.  What the collector gets it gets at least once (docs/design/collectors.md).
 * No fork() while there is one: it has threads. */
#ifndef COLLECTORS_PUSH_H
#define COLLECTORS_PUSH_H

#include "child/sandbox.h"
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

/* Returns the folder of cursors.  given: --state; NULL: systemd's StateDirectory=, or the
 * default. */
const char *push_state(const char *given);

/* Texts of sandbox paths.  Release with push_folders_release(). */
struct push_folders {
	char *token[CONFIG_SECTIONS_MAX]; /* owned */
	size_t count;
};
void push_folders_release(struct push_folders *folders);
/* Adds the paths that sinks need later: their certificates, the folders of their tokens, the folder
 * of cursors, which is made, and what names of hosts and the system's authorities are found by.
 * Nothing without a [push NAME].  Returns 0; -E2BIG; -EINVAL, -errno with one line in `why`;
 * -ENOMEM. */
int push_paths(const struct config *config, const char *state, struct sandbox_paths *paths,
	       struct push_folders *folders, char why[CONFIG_WHY_BYTES]);

/* Writes the metrics of all sinks in the text format of Prometheus. */
void push_write_metrics(struct push *push, FILE *out);

#endif
