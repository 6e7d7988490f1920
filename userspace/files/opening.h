/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that opens other people's files, and all that waits for their file systems: it walks
 * paths, opens, stats, compares, hands to the child that parses (files/serve.h), and closes.  Who
 * answers for a file system (a program by FUSE, a network) may never answer, and a process that
 * waits for it then cannot be ended.  So the agent has no such file itself: it knows the number of
 * the descriptor in this child, files/opener.h.
 *
 * A request is one message, its reply a struct child_reply; what was opened lies in the shared
 * memory, a struct opened_file.  Descriptors for the child that parses go over a socket that the
 * two have, with a number by which it knows for what. */
#ifndef FILES_OPENING_H
#define FILES_OPENING_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "child/worker.h"
#include "discover/process.h"
#include "elf/debug_file.h"
#include "files/identity.h"
#include "files/protocol.h"

#define OPENING_MEMORY_BYTES 8192U
#define OPENING_FDS_MAX 64U

enum opening_kind {
	/* Open the file that task `tid` has mapped from `start` to `end` under `key`: through
	 * /proc/TID/map_files, else by the path in the task's root, else by the path in our own
	 * root (the maps of a chroot'ed process show such paths).  Where root is refused, again as
	 * the task's user. */
	OPENING_MAPPED,
	/* Open /tmp/perf-`inner_pid`.map in the root of task `tid`, if user `uid` may have written
	 * it and it is not as `seen`. */
	OPENING_PERF_MAP,
	OPENING_PATH, /* open a path, as this program's user would */
	/* Hand fd[0], if there is one, and the debug files by `debug` of a file with that path and
	 * owner, to the child that parses; `start` is the number that goes along. */
	OPENING_HAND,
	/* Give the agent fd[0], if no program and no network answers for it (files/vouch.h); tid:
	 * in whose mount namespace it lies. */
	OPENING_GIVE,
	OPENING_COMPARE, /* whether the first `start` bytes of fd[0] and fd[1] are equal */
	OPENING_TEXT,	 /* file_text_check() of fd[0] */
	OPENING_CLOSE,	 /* close fd[] */
	OPENING_KINDS
};

/* How a perf map was when it was read last. */
struct opening_seen {
	struct file_key key; /* inode 0: it was not */
	uint64_t size, modified_ns;
};

struct opening_request {
	uint32_t serial;
	uint32_t kind; /* enum opening_kind */
	int32_t tid;
	uint32_t uid;
	uint32_t inner_pid;
	uint32_t fd_count;
	int32_t fd[OPENING_FDS_MAX]; /* descriptors of the child's */
	uint64_t start, end;
	struct file_key key;
	/* Wall clock; a perf map that was last written before that is another process's. */
	int64_t started_s;
	struct opening_seen seen;
	struct file_identity identity; /* OPENING_TEXT */
	uint32_t segment_count;
	uint32_t has_debug; /* OPENING_HAND: debug files are wanted */
	/* Walk no path: neither that of a mapping nor those of debug files. */
	uint32_t walks_no_path;
	uint32_t padding;
	struct foreign_segment segment[FOREIGN_MAX_SEGMENTS];
	struct debug_names debug;
	char path[PATH_MAX]; /* no more of it is sent than there is */
};

/* Why a perf map is not read. */
enum opening_refusal {
	OPENING_NOT_REFUSED,
	OPENING_IS_LINK,
	OPENING_NOT_REGULAR,
	OPENING_OF_ANOTHER,
	OPENING_WRITABLE,
	OPENING_HAS_NAMES,
	OPENING_PSEUDO,
	OPENING_REFUSALS
};

struct opened_file {
	int32_t fd;	       /* in the child; -1: OPENING_PERF_MAP, it is as it was seen */
	uint32_t refusal;      /* enum opening_refusal */
	uint8_t is_of_mapping; /* the mapping's key certainly belongs to this file */
	uint8_t is_executable; /* OPENING_PATH: somebody may execute it */
	uint8_t padding[6];
	struct file_identity identity;
	char path[PATH_MAX]; /* OPENING_PATH: without links */
};
_Static_assert(sizeof(struct opened_file) <= OPENING_MEMORY_BYTES, "it fits");

static inline size_t opening_request_bytes(const struct opening_request *request)
{
	return offsetof(struct opening_request, path) + strnlen(request->path, PATH_MAX - 1) + 1;
}

static inline bool opening_is_of_task(uint32_t kind)
{
	return kind == OPENING_MAPPED || kind == OPENING_PERF_MAP || kind == OPENING_GIVE;
}

/* Returns how many descriptors a request has at least. */
static inline uint32_t opening_fds_min(uint32_t kind)
{
	return kind == OPENING_COMPARE ? 2 : kind >= OPENING_GIVE;
}

static inline uint32_t opening_fds_max(uint32_t kind)
{
	return kind == OPENING_CLOSE  ? OPENING_FDS_MAX
	       : kind == OPENING_HAND ? 1
				      : opening_fds_min(kind);
}

/* Returns whether a message of that size is a request. */
static inline bool opening_request_is_sound(const struct opening_request *request, size_t size)
{
	if (size <= offsetof(struct opening_request, path) || size > sizeof(*request) ||
	    request->kind >= OPENING_KINDS || size != opening_request_bytes(request) ||
	    request->fd_count < opening_fds_min(request->kind) ||
	    request->fd_count > opening_fds_max(request->kind) ||
	    (opening_is_of_task(request->kind) && request->tid <= 0) ||
	    request->segment_count > FOREIGN_MAX_SEGMENTS ||
	    request->debug.build_id_bytes > sizeof(request->debug.build_id) ||
	    !memchr(request->debug.link, 0, sizeof(request->debug.link)) ||
	    !file_identity_is_sound(&request->identity))
		return false;
	for (uint32_t i = 0; i < request->fd_count; i++)
		if (request->fd[i] <= CHILD_PEER_FD)
			return false;
	return true;
}

/* What goes to the child that parses: descriptors, in the order of struct foreign_request's
 * bits. */
struct opening_handed {
	uint64_t number;
	uint32_t files; /* which ones come: FOREIGN_FILE_BIT, … */
	uint32_t padding;
};

/* What a request has brought beside its reply. */
struct opening_outcome {
	struct child_reply reply;
	int give_fd;		      /* borrowed: for the agent; -1: none */
	struct opening_handed handed; /* files 0: nothing */
	int hand_fd[1 + DEBUG_FILES_MAX];
	struct debug_files debug; /* owned */
};

/* Carries out a sound request into `memory`, OPENING_MEMORY_BYTES. */
void opening_serve(const struct opening_request *request, uint8_t *memory,
		   struct opening_outcome *ret_outcome);
void opening_outcome_release(struct opening_outcome *outcome);

/* Answers requests from CHILD_SOCKET_FD until the agent closes it, and ends the process. */
_Noreturn void opening_child_main(void);

#endif
