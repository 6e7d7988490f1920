/* SPDX-License-Identifier: BSD-2-Clause */
/* The reply to `top`, window by window, as its bytes come.  What it says is not believed. */
#ifndef LIVE_FEED_H
#define LIVE_FEED_H

#include <stddef.h>
#include <stdint.h>

/* Release with live_feed_release(); all zero: nothing has come. */
struct live_feed {
	char *bytes; /* owned */
	size_t size, capacity;
	char *why; /* owned: what an error record said */
	uint64_t why_errno;
};

struct live_feed_handler {
	/* flags: enum live_window.  An error ends the reading with it. */
	int (*on_window)(void *context, const char *file, size_t size, uint64_t flags);
	void *context;
};

void live_feed_release(struct live_feed *feed);
/* Takes what the socket holds now, without waiting.  0; -EPIPE: it has ended; -EBADMSG; -E2BIG;
 * -EREMOTEIO: an error was told, in feed->why; -ENOMEM; -errno. */
int live_feed_read(struct live_feed *feed, int fd, const struct live_feed_handler *handler);
/* The same with bytes that came another way. */
int live_feed_take(struct live_feed *feed, const char *bytes, size_t size,
		   const struct live_feed_handler *handler);

#endif
