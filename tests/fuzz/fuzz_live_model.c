/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: live/reply.c live/record.c base/intern.c base/utf8.c base/index_table.c */
/* A whole reply of the live socket, as pyprof reads it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "live/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct live_process *process, uint32_t id)
{
	const char *text = live_process_string(process, id);

	assert(utf8_is_clean(text, strlen(text)));
}

static void on_process(void *context, const struct live_process *process)
{
	(void)context;
	check_text(process, process->name);
	for (size_t i = 0; i < process->thread_count; i++) {
		const struct live_thread *thread = &process->thread[i];
		struct live_model_frame frame;

		check_text(process, thread->name);
		check_text(process, thread->wait);
		for (size_t at = 0; live_process_frame(process, thread->stack, at, &frame); at++) {
			check_text(process, frame.name);
			check_text(process, frame.file);
			check_text(process, frame.module);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *stream = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
	struct live_end end;
	char *why = NULL;

	if (!stream)
		return 0;
	(void)live_model_read(stream, on_process, NULL, &end, &why);
	free(why);
	fclose(stream);
	return 0;
}
