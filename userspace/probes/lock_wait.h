/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes who keeps the lock of its mappings while probes wait for it to let go
 * (attach/mapping_locks.h).  No global state; one thread at a time. */
#ifndef PROBES_LOCK_WAIT_H
#define PROBES_LOCK_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct lock_wait {
	uint32_t holder, told; /* tgid; 0: nobody */
	uint64_t since_ns;     /* that somebody has kept it; mono_ns() */
};

/* Notes what a look has found. */
void lock_wait_note(struct lock_wait *wait, uint32_t holder, uint64_t now_ns);
/* Returns once for each holder, when a lock has been kept for a second, who it is. */
bool lock_wait_tell(struct lock_wait *wait, uint64_t now_ns, uint32_t *ret_holder);
/* Waits up to 2 s before probes come that the start cannot do without.  Returns who keeps a lock
 * even then; 0: nobody.  link: mapping_locks_holder(). */
uint32_t lock_wait_begin(int link);
/* Waits up to 10 s before links are taken off at the end of the run, which the kernel does anyway
 * when the process ends; warns when somebody keeps a lock even then. */
void lock_wait_end(int link);

#endif
