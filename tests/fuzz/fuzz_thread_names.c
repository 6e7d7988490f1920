/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: python/thread_names.c python/python_objects.c python/python_text.c python/python_offsets.c */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/python_offsets.h"
#include "python/python_process.h"

#define MAX_READS 200000U /* what one look may cost: thread_names.c */

#include "process_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

uint32_t process_count_threads(pid_t pid)
{
	(void)pid;
	return UINT32_MAX;
}

static int look(const struct python_info *info, struct python_names_hint *hint)
{
	struct python_thread_name *names;
	size_t count;
	int err;

	reads = 0;
	err = python_process_thread_names(info, 1, 0, hint, &names, &count);
	if (err)
		return err;
	for (size_t i = 0; i < count; i++) {
		if (strnlen(names[i].name, sizeof(names[i].name)) == sizeof(names[i].name))
			abort();
	}
	free(names);
	return 0;
}

/* Looks at memory as it is, again, and at memory that has changed between two looks. */
static void look_again(const struct python_info *info, uint8_t *memory, uint8_t changed)
{
	struct python_names_hint hint = {0};
	int first = look(info, &hint), second;

	second = look(info, &hint);
	if (!first && second)
		abort();
	hint.keeps_names = true;
	second = look(info, &hint);
	if (!first && second && second != -EALREADY)
		abort();
	for (size_t at = changed; at < memory_size; at += 1 + changed)
		memory[at] ^= changed;
	look(info, &hint);
	hint.keeps_names = false;
	look(info, &hint);
	python_names_hint_release(&hint);
}

/* Version; free-threaded or not, what changes between two looks; then memory. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct python_layout *layout;
	struct python_info info;
	uint8_t *memory;

	if (size < 64)
		return 0;
	layout = python_layout_find(data[0] & 128 ? 2 : 3, data[0] & 128 ? 7 : data[0] % 16,
				    data[1] & 1);
	if (!layout)
		return 0;
	info = layout->info;
	info.symbols.runtime = info.bpf.major == 3 && info.bpf.minor >= 7 ? 16 : 0;
	info.symbols.interp_head = data[1] & 2 ? 16 : 0;
	info.symbols.thread_state_current = 24;
	memory_size = size - 2;
	memory = malloc(memory_size);
	if (!memory)
		abort();
	memcpy(memory, data + 2, memory_size);
	memory_bytes = memory;
	(void)look(&info, NULL);
	look_again(&info, memory, data[1] >> 2);
	free(memory);
	return 0;
}
