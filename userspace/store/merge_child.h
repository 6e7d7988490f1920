/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that merges what is old in a store, beside the agent: it reads files that others may
 * have written, takes its time, and may wait for a disk.  It has no capability, the rights of the
 * store's owner on that directory alone where the kernel has Landlock, and the lowest priority. */
#ifndef STORE_MERGE_CHILD_H
#define STORE_MERGE_CHILD_H

#include <stdint.h>

#include "store/store_names.h"

/* CHILD_STORE_SOCKET_FD is SOCK_SEQPACKET, messages of struct merge_message.  The child tells what
 * it begins and how it ends; the agent tells at first which groups it shall leave alone. */
#define MERGE_EVERY_MS 60000

enum merge_what { MERGE_BEGINS, MERGE_DONE, MERGE_LEAVE_ALONE };

struct merge_message {
	uint64_t start_ms; /* of the group's first window */
	int32_t err;	   /* of MERGE_DONE: 0 or -errno */
	uint32_t what;	   /* enum merge_what */
	char kind[STORE_KIND_CHARS + 7];
};

/* Merges until the agent closes the socket, and ends the process. */
_Noreturn void merge_child_main(void);

#endif
