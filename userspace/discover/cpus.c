/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/cpus.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"

#define CPU_FILE_MAX_BYTES 65536U

void cpu_list_release(struct cpu_list *list)
{
	free(list->cpu);
	*list = (struct cpu_list){0};
}

static bool take_cpu(struct cursor *text, uint32_t *ret_cpu)
{
	return cursor_u32(text, ret_cpu) && *ret_cpu < CPUS_MAX;
}

/* "3" or "0-3" */
static bool take_range(struct cursor *text, uint32_t *ret_first, uint32_t *ret_last)
{
	if (!take_cpu(text, ret_first))
		return false;
	*ret_last = *ret_first;
	return !cursor_char(text, '-') || (take_cpu(text, ret_last) && *ret_last >= *ret_first);
}

int cpu_list_parse(const char *text, size_t size, struct cpu_list *ret_list)
{
	OWNED_MEM uint32_t *cpu = calloc(CPUS_MAX, sizeof(*cpu));
	struct cursor rest = {text, text + size};
	size_t count = 0;

	if (!cpu)
		return -ENOMEM;
	if (size && text[size - 1] == '\n')
		rest.end--;
	while (rest.at < rest.end) {
		uint32_t first, last;

		if (!take_range(&rest, &first, &last) || (count && first <= cpu[count - 1]))
			return -EBADMSG;
		while (first <= last)
			cpu[count++] = first++;
		if (rest.at < rest.end && (!cursor_char(&rest, ',') || rest.at == rest.end))
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

bool cpu_list_has(const struct cpu_list *list, uint32_t cpu)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->cpu[i] == cpu)
			return true;
	return false;
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
