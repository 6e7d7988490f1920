/* SPDX-License-Identifier: BSD-2-Clause */
/* One sink: a thread that reads the store from its cursor on and sends.  A sink waits for its
 * collector alone, so a thread each is the least that keeps them apart; they sleep nearly all the
 * time. */
#ifndef COLLECTORS_SINK_H
#define COLLECTORS_SINK_H

#include "collectors/collector.h"
#include "collectors/metrics.h"

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

#endif
