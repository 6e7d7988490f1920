/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses what is no longer kept when there is no room (docs/memory.md, "Out of memory"). */
#ifndef STORE_KEEP_ROOM_H
#define STORE_KEEP_ROOM_H

#include <stddef.h>
#include <stdint.h>

#include "store/kept.h"

/* Of one program (comm) of one user; a ninth takes the place of the oldest of them. */
#define KEEP_SAME_MAX 8U
/* Who asked by a signal: no user of a process. */
#define KEEP_NO_USER UINT32_MAX

/* One that is kept, and whether it has to go. */
struct keep_room_entry {
	const struct kept_entry *kept; /* borrowed */
	uint32_t uid;		       /* KEEP_NO_USER: asked for by a signal, or not known */
	uint8_t must_go;
};

/* Marks what has to go, oldest first in `entry`: more than KEEP_SAME_MAX of one program and user,
 * then, while all takes more than max_bytes, the oldest of the user who takes most.  Who kills his
 * own programs again and again pushes out his own.  newest: it stays; NULL: any may go.  Returns
 * how many have to go. */
size_t keep_room_choose(struct keep_room_entry *entry, size_t count, uint64_t max_bytes,
			const char *newest);
/* Reads `uid=` out of the text of `about`; KEEP_NO_USER where there is none. */
uint32_t keep_room_user(const char *about);
/* Removes what has to go.  Returns 0 or -errno; *ret_removed is always set. */
int keep_room_make(int kept_fd, uint64_t max_bytes, const char *newest, uint32_t *ret_removed);

#endif
