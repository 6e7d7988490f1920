/* SPDX-License-Identifier: BSD-2-Clause */
/* Pushes the windows of a store to the collectors of the configuration's [push NAME].  The store is
 * the spool: each sink has a cursor of its own, and an outage costs nothing that the store still
 * has.  What the collector gets it gets at least once (docs/design/collectors.md).
 * No fork() while there is one: it has threads. */
#ifndef COLLECTORS_PUSH_H
#define COLLECTORS_PUSH_H

#include "child/sandbox.h"
#include "collectors/collector.h"
#include "collectors/metrics.h"

/* ---- one sink: a thread that reads the store from its cursor on and sends.  A sink waits for its
 * collector alone, so a thread each is the least that keeps them apart; they sleep nearly all the
 * time. ---- */

/* What is sent at most, unpacked, while a sink catches up: a quarter of what Pyroscope takes of one
 * tenant, which may be a fleet. */
#define PUSH_BYTES_A_SECOND (1000U * 1000U)
#define PUSH_POLL_MS 5000U	  /* for new files, where there were none */
#define PUSH_LIST_EVERY_MS 60000U /* while others wait */
#define PUSH_END_MS 2000U	  /* for an answer, at the end */

struct push_sink_options {
	const char *store; /* directory; borrowed, as all of these */
	int state_fd;	   /* directory of cursors */
	const char *host;  /* this machine's name for collectors */
	/* Takes a line about a sink, without an end; from any of the threads. */
	void (*tell)(void *context, const char *line);
	void *context;
	uint32_t poll_ms; /* 0: PUSH_POLL_MS */
};

struct push_sink;
/* Starts the thread.  target: taken over when it succeeds.  Returns 0; -EAGAIN; -ENOMEM. */
int push_sink_new(const struct push_sink_options *options, struct push_target *target,
		  struct push_sink **ret_sink);
/* Tells the thread to end; push_sink_join() waits for that, PUSH_END_MS at most for an answer, and
 * push_sink_free() calls both. */
void push_sink_end(struct push_sink *sink);
void push_sink_join(struct push_sink *sink);
void push_sink_free(struct push_sink *sink);
DEFINE_OWNED(struct push_sink, push_sink)
void push_sink_get_stats(struct push_sink *sink, struct push_stats *ret_stats);

/* ---- all of them ---- */

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
