/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses the reply to `top`, window by window, while its bytes arrive.  The bytes are not
 * trusted. */
#ifndef LIVE_FEED_H
#define LIVE_FEED_H

#include <stddef.h>
#include <stdint.h>

/* Release with live_feed_release(); a zeroed feed is empty. */
struct live_feed {
	char *bytes; /* owned */
	size_t size, capacity;
	char *why; /* owned: the text of an error record */
	uint64_t why_errno;
};

struct live_feed_handler {
	/* Receives a window's file; flags: enum live_window.  An error ends the reading and is
	 * returned. */
	int (*on_window)(void *context, const char *file, size_t size, uint64_t flags);
	void *context;
};

void live_feed_release(struct live_feed *feed);
/* Takes the bytes that the socket holds now, without waiting.  Returns 0; -EPIPE: the reply has
 * ended; -EBADMSG; -E2BIG; -EREMOTEIO: the server reported an error, in feed->why; -ENOMEM;
 * -errno. */
int live_feed_read(struct live_feed *feed, int fd, const struct live_feed_handler *handler);
/* Takes bytes that came another way.  Returns as live_feed_read(). */
int live_feed_take(struct live_feed *feed, const char *bytes, size_t size,
		   const struct live_feed_handler *handler);

#endif
