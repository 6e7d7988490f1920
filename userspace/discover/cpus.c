/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/cpus.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

#define CPU_FILE_MAX_BYTES 65536U

void cpu_list_release(struct cpu_list *list)
{
	free(list->cpu);
	*list = (struct cpu_list){0};
}

static bool take_cpu(const char **at, const char *end, uint32_t *ret_cpu)
{
	const char *first = *at;
	uint32_t cpu = 0;

	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
		cpu = cpu * 10 + (uint32_t)(**at - '0');
		if (cpu >= CPUS_MAX)
			return false;
	}
	*ret_cpu = cpu;
	return *at > first;
}

/* "3" or "0-3" */
static bool take_range(const char **at, const char *end, uint32_t *ret_first, uint32_t *ret_last)
{
	if (!take_cpu(at, end, ret_first))
		return false;
	*ret_last = *ret_first;
	if (*at == end || **at != '-')
		return true;
	(*at)++;
	return take_cpu(at, end, ret_last) && *ret_last >= *ret_first;
}

int cpu_list_parse(const char *text, size_t size, struct cpu_list *ret_list)
{
	OWNED_MEM uint32_t *cpu = calloc(CPUS_MAX, sizeof(*cpu));
	const char *at = text, *end = text + size;
	size_t count = 0;

	if (!cpu)
		return -ENOMEM;
	if (at < end && end[-1] == '\n')
		end--;
	while (at < end) {
		uint32_t first, last;

		if (!take_range(&at, end, &first, &last) || (count && first <= cpu[count - 1]))
			return -EBADMSG;
		while (first <= last)
			cpu[count++] = first++;
		if (at < end && (*at++ != ',' || at == end))
			return -EBADMSG;
	}
	*ret_list = (struct cpu_list){.cpu = TAKE(cpu), .count = count};
	return 0;
}

static int read_list(const char *path, struct cpu_list *ret_list)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	int err;

	err = read_file(path, CPU_FILE_MAX_BYTES, &text, &size);
	if (err)
		return err;
	return cpu_list_parse(text, size, ret_list);
}

int cpus_online(struct cpu_list *ret_list)
{
	return read_list("/sys/devices/system/cpu/online", ret_list);
}

int cpus_possible_count(uint32_t *ret_count)
{
	struct cpu_list list = {0};
	int err;

	err = read_list("/sys/devices/system/cpu/possible", &list);
	if (err)
		return err;
	if (list.count)
		*ret_count = list.cpu[list.count - 1] + 1;
	else
		err = -ENODATA;
	cpu_list_release(&list);
	return err;
}
