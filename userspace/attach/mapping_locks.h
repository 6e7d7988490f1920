/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks which processes keep the lock of their mappings.  The kernel takes that lock of each
 * process that has a file when a probe of the file comes or goes, and lets no process of the
 * machine fork until it has (kernel/events/uprobes.c: register_for_each_vma).  Any thread. */
#ifndef ATTACH_MAPPING_LOCKS_H
#define ATTACH_MAPPING_LOCKS_H

#include <stdint.h>

/* Returns the tgid of a process that had it at each of 32 looks within 0.1 s, of whom nothing says
 * that he has let go in between (struct pp_lock_record); 0: there is none, or it is not known.
 * Returns as soon as nobody is left.  link: kernel_side_locks(), -1: there is none. */
uint32_t mapping_locks_holder(int link);

#endif
