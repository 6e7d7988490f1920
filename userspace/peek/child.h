/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that reads other processes' memory and mappings for the agent, so that a page which
 * never comes (of a FUSE file, of userfaultfd), or a lock that is never released because
 * somebody waits for such a page, blocks this process alone.
 *
 * The agent and the child talk over a SOCK_SEQPACKET socket, one message each way for one request.
 * Bytes go through memory that both map (sealed to its size): the agent copies them out before it
 * believes anything. Both sides check every message. */
#ifndef PEEK_CHILD_H
#define PEEK_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/io.h"
#include "child/worker.h"

#define PEEK_MEMORY_BYTES (256U << 10) /* shared; larger reads take several requests */

enum peek_kind {
	/* Read all pieces of the task's memory, one behind the other, into the shared memory. */
	PEEK_READ,
	/* Read /proc/TID/maps from the offset piece[0].address on, at most piece[0].size bytes. */
	PEEK_MAPS,
	/* Read enum process_text piece[0].address of the task, at most piece[0].size bytes. */
	PEEK_TEXT,
	/* List enum process_log_directory piece[0].address, at most piece[0].size bytes; the task
	 * is the agent itself. */
	PEEK_LOGS,
	PEEK_KINDS
};

struct peek_piece {
	uint64_t address;
	uint32_t size; /* bytes */
	uint32_t padding;
};

struct peek_request {
	uint32_t serial;
	int32_t tid;
	uint32_t count;
	uint32_t kind; /* enum peek_kind */
	struct peek_piece piece[PROCESS_PIECES_MAX];
};

static inline size_t peek_request_bytes(uint32_t count)
{
	return offsetof(struct peek_request, piece) + count * sizeof(struct peek_piece);
}

static inline bool peek_count_fits_kind(uint32_t kind, uint32_t count)
{
	switch (kind) {
	case PEEK_READ:
		return count && count <= PROCESS_PIECES_MAX;
	default:
		return kind < PEEK_KINDS && count == 1;
	}
}

/* Returns whether a message of that size is a request that fits into the shared memory. */
static inline bool peek_request_is_sound(const struct peek_request *request, size_t size)
{
	uint64_t sum = 0;

	if (size < offsetof(struct peek_request, piece) ||
	    !peek_count_fits_kind(request->kind, request->count) ||
	    size != peek_request_bytes(request->count) || request->tid <= 0)
		return false;
	for (uint32_t i = 0; i < request->count; i++)
		sum += request->piece[i].size;
	return sum <= PEEK_MEMORY_BYTES;
}

/* Answers requests from CHILD_SOCKET_FD until the agent closes it, and ends the process. */
_Noreturn void peek_child_main(void);

/* Carries out a sound request into `memory`, PEEK_MEMORY_BYTES. Sets ret_reply's error (0;
 * -EFAULT when part of a piece is not mapped; -ESRCH; -errno) and size. */
void peek_child_do(const struct peek_request *request, uint8_t *memory,
		   struct child_reply *ret_reply);

#endif
