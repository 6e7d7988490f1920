/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/ring.h"

#include <bpf/libbpf.h>
#include <errno.h>

struct ring {
	struct ring_buffer *buffer;
	enum ring_kind kind;
	struct drain_handlers handlers;
	const struct slice *slice; /* of the call in progress; NULL: it never ends */
	bool is_cut;		   /* that call left records */
	uint64_t bad;
};

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	ring_buffer__free(ring->buffer);
	free(ring);
}

static int decode(const struct ring *ring, const void *data, size_t size)
{
	switch (ring->kind) {
	case RING_STACKS:
		return decode_record(data, size, &ring->handlers);
	case RING_EVENTS:
		return decode_event(data, size, &ring->handlers);
	case RING_TIMELINE:
		return decode_timeline(data, size, &ring->handlers);
	}
	return -EINVAL;
}

static int on_record(void *context, void *data, size_t size)
{
	struct ring *ring = context;

	if (decode(ring, data, size))
		ring->bad++;
	if (!slice_is_over(ring->slice))
		return 0;
	/* libbpf counts this record as consumed, and leaves the rest in the ring. */
	ring->is_cut = true;
	return -EAGAIN;
}

int ring_new(int fd, enum ring_kind kind, const struct drain_handlers *handlers,
	     struct ring **ret_ring)
{
	OWNED(ring) struct ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return -ENOMEM;
	ring->kind = kind;
	ring->handlers = *handlers;
	ring->buffer = ring_buffer__new(fd, on_record, ring, NULL);
	if (!ring->buffer)
		return -errno;
	*ret_ring = TAKE(ring);
	return 0;
}

int ring_fd(const struct ring *ring)
{
	return ring_buffer__epoll_fd(ring->buffer);
}

int ring_consume(struct ring *ring)
{
	int got = ring_buffer__consume(ring->buffer);

	return got < 0 ? got : 0;
}

int ring_consume_slice(struct ring *ring, const struct slice *slice)
{
	int err;

	ring->slice = slice;
	ring->is_cut = false;
	err = ring_consume(ring);
	ring->slice = NULL;
	return ring->is_cut ? 1 : err;
}

uint64_t ring_bad_count(const struct ring *ring)
{
	return ring->bad;
}
