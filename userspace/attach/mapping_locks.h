/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds processes that never release mmap_lock.  When a probe of a file is attached or removed, the
 * kernel takes mmap_lock of each process that maps the file, and blocks every fork of the machine
 * until it has it (kernel/events/uprobes.c: register_for_each_vma).  Any thread. */
#ifndef ATTACH_MAPPING_LOCKS_H
#define ATTACH_MAPPING_LOCKS_H

#include <stdint.h>

#include <pyprofd/wait.h>

/* Returns the tgid of a process that held mmap_lock unchanged (struct pp_lock_record) at each of 32
 * looks within 0.1 s; 0: no process did, or the iterator cannot be read.  Returns early when no
 * candidate is left.  link: kernel_side_parts(); -1: there is none, the result is 0. */
uint32_t mapping_locks_holder(int link);

/* Tells of the mappings of each process.  A process may be left out or told twice when its main
 * thread ends meanwhile.  link: kernel_side_parts().  Returns 0 or -errno. */
int mapping_spaces_read(int link,
			void (*on_space)(void *context, const struct pp_space_record *space),
			void *context);

#endif
