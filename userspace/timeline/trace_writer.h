/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets a thread of its own pack and write the blocks of a timeline's file, so that a slow disk
 * holds up nobody.  What waits for it is bounded. */
#ifndef TIMELINE_TRACE_WRITER_H
#define TIMELINE_TRACE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_WAITING_BYTES ((size_t)32 << 20)

struct trace_writer;
/* Starts the thread.  fd becomes the writer's in any case.  Returns 0; -ENOMEM; -EAGAIN: there may
 * be no thread. */
int trace_writer_new(int fd, bool gzip, struct trace_writer **ret_writer);
/* Hands bytes over.  flush: Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FINISH; the last is always taken.  Returns
 * 0; -errno of bytes before; -ENOBUFS: too many wait already; -ENOMEM. */
int trace_writer_put(struct trace_writer *writer, const void *bytes, size_t size, int flush);
/* Waits until all is written and the file is closed, and does nothing else from now on: see
 * background_hurry().  Gives up when the thread has slept for limit_ns, and at
 * BACKGROUND_LIMITS_MAX times that.  Returns 0; -errno; -ETIMEDOUT.  Nothing can be put after
 * that. */
int trace_writer_end(struct trace_writer *writer, uint64_t limit_ns);
/* Drops what waits still.  Does not wait for a write that has begun. */
void trace_writer_free(struct trace_writer *writer);

#endif
