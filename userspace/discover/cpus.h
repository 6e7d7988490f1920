/* SPDX-License-Identifier: BSD-2-Clause */
/* Which CPUs there are.  Source: Documentation/admin-guide/cputopology.rst. */
#ifndef DISCOVER_CPUS_H
#define DISCOVER_CPUS_H

#include <stddef.h>
#include <stdint.h>

#define CPUS_MAX 8192U /* the largest CONFIG_NR_CPUS of x86-64 */

struct cpu_list {
	uint32_t *cpu; /* owned; ascending */
	size_t count;
};
void cpu_list_release(struct cpu_list *list); /* safe on a zeroed one */

/* "0-3,8,10-11\n" -> list.  Returns 0; -EBADMSG (not ascending, not numbers, beyond CPUS_MAX);
 * -ENOMEM.  An empty text is an empty list. */
int cpu_list_parse(const char *text, size_t size, struct cpu_list *ret_list);
int cpus_online(struct cpu_list *ret_list);

/* One more than the highest CPU number there can ever be: the length of arrays indexed by CPU.
 * Returns 0 or -errno. */
int cpus_possible_count(uint32_t *ret_count);

#endif
