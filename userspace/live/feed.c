/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "live/record.h"

#define PIECE_BYTES 65536U
#define FEED_BYTES ((size_t)LIVE_WINDOW_BYTES + LIVE_LINE_BYTES + PIECE_BYTES)

void live_feed_release(struct live_feed *feed)
{
	free(feed->bytes);
	free(feed->why);
	*feed = (struct live_feed){};
}

static int reserve(struct live_feed *feed, size_t more)
{
	size_t wanted = feed->size + more;
	char *grown;

	if (wanted > FEED_BYTES)
		return -E2BIG;
	if (wanted <= feed->capacity)
		return 0;
	wanted += wanted / 2;
	grown = realloc(feed->bytes, wanted);
	if (!grown)
		return -ENOMEM;
	feed->bytes = grown;
	feed->capacity = wanted;
	return 0;
}

/* Takes the record at the beginning with its payload: *ret_size bytes.  0: it is not complete
 * yet. */
static int take_one(struct live_feed *feed, const struct live_feed_handler *handler,
		    size_t *ret_size)
{
	const char *newline = feed->size ? memchr(feed->bytes, '\n', feed->size) : NULL;
	size_t line_size = newline ? (size_t)(newline - feed->bytes) : 0;
	OWNED_MEM char *line = NULL;
	struct live_record record;
	int err;

	*ret_size = 0;
	if (!newline)
		return feed->size > LIVE_LINE_BYTES ? -EBADMSG : 0;
	line = strndup(feed->bytes, line_size);
	if (!line)
		return -ENOMEM;
	err = strlen(line) == line_size ? live_record_parse(line, line_size, &record) : -EBADMSG;
	if (err == -ENOENT) {
		*ret_size = line_size + 1;
		return 0;
	}
	if (err)
		return err;
	if (record.kind == LIVE_ERROR) {
		free(feed->why);
		feed->why = strdup(record.text[0]);
		feed->why_errno = record.number[0];
		return feed->why ? -EREMOTEIO : -ENOMEM;
	}
	if (record.kind != LIVE_WINDOW || record.number[0] > LIVE_WINDOW_BYTES)
		return -EBADMSG;
	if (feed->size - line_size - 1 < record.number[0])
		return 0;
	*ret_size = line_size + 1 + record.number[0];
	return handler->on_window(handler->context, newline + 1, record.number[0],
				  record.number[1]);
}

int live_feed_take(struct live_feed *feed, const char *bytes, size_t size,
		   const struct live_feed_handler *handler)
{
	size_t taken;
	int err = reserve(feed, size);

	if (err)
		return err;
	memcpy(feed->bytes + feed->size, bytes, size);
	feed->size += size;
	do {
		err = take_one(feed, handler, &taken);
		feed->size -= taken;
		if (taken)
			memmove(feed->bytes, feed->bytes + taken, feed->size);
	} while (!err && taken);
	return err;
}

int live_feed_read(struct live_feed *feed, int fd, const struct live_feed_handler *handler)
{
	OWNED_MEM char *piece = malloc(PIECE_BYTES);

	if (!piece)
		return -ENOMEM;
	for (;;) {
		ssize_t got = recv(fd, piece, PIECE_BYTES, MSG_DONTWAIT);
		int err;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (!got)
			return -EPIPE;
		err = live_feed_take(feed, piece, (size_t)got, handler);
		if (err)
			return err;
	}
}
