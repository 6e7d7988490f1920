/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel tells of a task, and of this process: CPU time, memory, whether it runs, what it
 * may do.  No state; any thread. */
#ifndef BASE_TASK_H
#define BASE_TASK_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Assembler of a function of our own with just this code: a compiler may merge, clone or drop
 * functions that do nothing. */
#define OWN_CODE(name, code)                                                                       \
	".balign 16\n"                                                                             \
	".globl " #name "\n"                                                                       \
	".hidden " #name "\n"                                                                      \
	".type " #name ", %function\n" #name ":\n" code ".size " #name ", . - " #name "\n"
/* Finds the file offset of an address in the code of this program (/proc/self/exe), not of its
 * libraries.  Returns 0; -ENOENT: the address lies in no segment of that file. */
int own_code_offset(const void *address, uint64_t *ret_offset);

/* Returns the CPU time of all threads, in user space and in the kernel; children do not count. */
uint64_t own_cost_cpu_ns(void);
/* Returns the resident memory; 0: /proc does not say. */
uint64_t own_cost_rss_bytes(void);

/* Returns the CPU time of all threads that a process has and had; 0: it has ended. */
uint64_t process_cpu_ns(pid_t pid);
/* Returns for how long its first thread was ready and had no CPU; 0: that is not known. */
uint64_t process_delay_ns(pid_t pid);

/* Returns whether a task, a process' main thread or another one, runs or waits for a CPU, which it
 * may have to share or be throttled for; one that waits for a page, a disk or a lock sleeps.
 * false, too, when it has ended.  From /proc/TID/stat. */
bool task_is_running(pid_t tid);

/* The calling thread's capabilities: capabilities(7). */
#define CAPABILITY_BIT(capability) (UINT64_C(1) << (capability))

/* Returns whether all capabilities of a mask are effective; false also when they cannot be read. */
bool capabilities_are_held(uint64_t mask);
/* Takes away the permitted, effective and ambient capabilities that are not in `kept`, and the
 * inheritable ones that are not in `inherited`: ambient ones are both.  Adds none.  The bounding
 * set stays, so a program that root starts may have them again.  Returns 0 or -errno. */
int capabilities_keep(uint64_t kept, uint64_t inherited);
/* Makes all permitted capabilities effective, which a change of the user ends.  Returns 0 or
 * -errno. */
int capabilities_raise(void);

#endif
