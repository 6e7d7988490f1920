/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps what a store knows of some minutes, of one process or of all, beyond the age of its windows
 * (store/kept.h): one file a kind, in which each window can still be told apart. */
#ifndef STORE_KEEP_H
#define STORE_KEEP_H

#include <stdint.h>

#include "store/kept.h"

/* Windows that are merged into one file: ten minutes of one second each, and cuts in between.  Of
 * more the last ones count. */
#define KEEP_WINDOWS_MAX 1024U
/* Kinds of one that is kept. */
#define KEEP_KINDS_MAX 32U

struct keep_request {
	uint64_t from_ms, until_ms; /* windows that overlap [from, until), since 1970 */
	uint64_t max_bytes;	    /* of all that is kept */
	struct kept_name name;	    /* of KEPT_OOM: samples of its pid alone are kept */
	uint32_t uid;		    /* of KEPT_OOM: who answers for the process */
	uint32_t is_tidying;	    /* keeps nothing: removes what is left over, or too much */
};

struct keep_result {
	uint64_t bytes;
	uint64_t span_ms; /* from the first window's begin to the last one's end */
	uint32_t windows, kinds;
	uint32_t too_big;	    /* kinds left out, for which there was no room */
	uint32_t unreadable;	    /* files of windows left out */
	uint32_t removed;	    /* what was kept before and had to go */
	int32_t err;		    /* 0 or -errno */
	char name[KEPT_NAME_CHARS]; /* below kept/ */
};

/* Keeps what is asked for, removes what was left by somebody who was killed, and then the oldest
 * until all keeps to the bounds (store/keep_room.h).  Returns 0; -ENODATA: the store has nothing of
 * that; -EFBIG: no kind fits the bound; -EEXIST: so much was kept in that minute; -errno: nothing
 * is kept, and nothing half is left but by who is killed.  *ret_result is always set. */
int keep(int store_fd, const struct keep_request *request, struct keep_result *ret_result);

#endif
