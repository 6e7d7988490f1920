/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: python/python_process.c python/python_offsets.c */
/* A process that claims to be an interpreter: its memory repeats endlessly, so that any pointer is
 * valid.  Its threads are listed, its layout is tested and its thread-local storage resolved. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/python_offsets.h"
#include "python/python_process.h"

/* A list of 4,096 threads in 64 interpreters, eight times (python_process.c), and 64 frames of 16
 * threads with 7 reads each. */
#define MAX_READS (8U * (1U + 4096U + 2U * 64U + 16U * (2U + 64U * 7U)))
#define MAX_THREADS 4096U

#include "process_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t threads_of_process;

uint32_t process_count_threads(pid_t pid)
{
	(void)pid;
	return threads_of_process;
}

static void list_threads(const struct python_info *info)
{
	OWNED_MEM struct python_thread *threads = NULL;
	size_t count = 0;
	uint32_t tid;

	reads = 0;
	if (python_process_threads(info, 1, 0, &threads, &count))
		return;
	assert(threads && count && count <= MAX_THREADS);
	for (size_t i = 0; i < count; i++)
		(void)python_process_inner_tid(1, i & 1, threads[i].thread_id, threads[i].native_id,
					       &tid);
}

static void test_layout(const struct python_info *info, uint64_t bias)
{
	const char *reason = NULL;
	int err;

	reads = 0;
	err = python_process_self_test(info, 1, bias, &reason);
	assert((err == -EBADMSG) == (reason != NULL));
}

/* Any mode of thread-local storage, with what the loader may have written. */
static void resolve(struct python_info *info, const uint8_t *bytes, uint64_t bias)
{
	struct pp_tls tls[2];

	for (int i = 0; i < 2; i++) {
		info->tls.source[i] = (struct pp_tls){.mode = bytes[2 * i] % (PP_TLS_GLOBAL + 2),
						      .offset = (int32_t)bytes[2 * i + 1] - 128,
						      .address = bytes[2 * i] & 128 ? 32 : 0};
		python_process_tls(info, bias, bytes[2 * i] & 64, tls);
	}
	reads = 0;
	if (python_process_tls_read(info, 1, bias, bytes[0] & 64, tls))
		return;
	for (int i = 0; i < 2; i++)
		assert(tls[i].mode <= PP_TLS_GLOBAL);
}

/* Version, free-threaded or not and more switches, 4 bytes for resolve(), then memory. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct python_layout *layout;
	struct python_info info;
	uint64_t bias;

	if (size < 64)
		return 0;
	layout = python_layout_find(data[0] & 128 ? 2 : 3, data[0] & 128 ? 7 : data[0] % 16,
				    data[1] & 1);
	if (!layout)
		return 0;
	info = layout->info;
	info.symbols.runtime = data[1] & 2 ? 16 : 0;
	info.symbols.interp_head = data[1] & 4 ? 16 : 0;
	info.symbols.thread_state_current = 24;
	info.bpf.code_type = data[1] >> 4;
	bias = data[1] & 8 ? 8 : 0;
	threads_of_process = data[6] & 1 ? UINT32_MAX : data[6];
	memory_bytes = data + 8;
	memory_size = size - 8;
	list_threads(&info);
	test_layout(&info, bias);
	resolve(&info, data + 2, bias);
	return 0;
}
