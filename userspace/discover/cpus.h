/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the machine's CPUs. Source: Documentation/admin-guide/cputopology.rst. */
#ifndef DISCOVER_CPUS_H
#define DISCOVER_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPUS_MAX 8192U /* the largest CONFIG_NR_CPUS of x86-64 */

struct cpu_list {
	uint32_t *cpu; /* owned; ascending */
	size_t count;
};
void cpu_list_release(struct cpu_list *list); /* a zeroed list is fine */

/* Parses "0-3,8,10-11\n". An empty text gives an empty list. Returns 0; -EBADMSG (not ascending,
 * not numbers, above CPUS_MAX); -ENOMEM. */
int cpu_list_parse(const char *text, size_t size, struct cpu_list *ret_list);
bool cpu_list_has(const struct cpu_list *list, uint32_t cpu);
int cpus_online(struct cpu_list *ret_list);

/* Returns one more than the highest CPU number that this machine can have: the length of arrays
 * indexed by CPU. Returns 0 or -errno. */
int cpus_possible_count(uint32_t *ret_count);

#endif
