/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the BPF ring buffers in user space.  One thread. */
#ifndef DRAIN_RING_H
#define DRAIN_RING_H

#include <stdint.h>

#include "base/cleanup.h"
#include "base/slice.h"
#include "drain/decode.h"

struct ring;

enum ring_kind { RING_STACKS, RING_EVENTS, RING_TIMELINE };

/* Opens a ring.  fd: of the BPF ring buffer, borrowed.  handlers are copied. */
int ring_new(int fd, enum ring_kind kind, const struct drain_handlers *handlers,
	     struct ring **ret_ring);
void ring_free(struct ring *ring);
DEFINE_OWNED(struct ring, ring)
/* Returns a descriptor for epoll, borrowed: readable when the kernel side asked for a wake-up. */
int ring_fd(const struct ring *ring);
/* Takes all records that are in the ring now.  Returns 0 or -errno. */
int ring_consume(struct ring *ring);
/* Takes records until the slice is over, and one at least.  Returns 0: the ring was emptied; 1: the
 * rest is for the next call; -errno. */
int ring_consume_slice(struct ring *ring, const struct slice *slice);
/* Returns the number of records that did not decode. */
uint64_t ring_bad_count(const struct ring *ring);

#endif
