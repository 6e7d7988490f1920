/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: python/thread_names.c python/python_objects.c python/python_text.c python/python_offsets.c */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "python/python_offsets.h"
#include "python/python_process.h"

/* One input is one process: its memory repeats for ever, so that any pointer points somewhere. */
static const uint8_t *memory_bytes;
static size_t memory_size;
static unsigned int reads;

#define MAX_READS 200000U /* what one look may cost: thread_names.c */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Instead of base/io.c's. */
int process_read(pid_t pid, uint64_t address, void *buffer, size_t size)
{
	size_t at = address % memory_size;

	(void)pid;
	if (++reads > MAX_READS)
		abort();
	if (size > memory_size - at)
		return -EFAULT;
	memcpy(buffer, memory_bytes + at, size);
	return 0;
}

/* Version, free-threaded or not, then memory. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct python_layout *layout;
	struct python_thread_name *names;
	struct python_info info;
	size_t count;

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
	memory_bytes = data + 2;
	memory_size = size - 2;
	reads = 0;
	if (!python_process_thread_names(&info, 1, 0, &names, &count)) {
		for (size_t i = 0; i < count; i++) {
			if (strnlen(names[i].name, sizeof(names[i].name)) == sizeof(names[i].name))
				abort();
		}
		free(names);
	}
	return 0;
}
