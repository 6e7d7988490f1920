/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: base/page_cache.c finish/scan_reader.c python/python_frames.c python/python_offsets.c */
/* The records of a scan of blocked threads, then one thread's frames from a process whose memory
 * repeats endlessly, so that any pointer is valid.
 * runs: 3000 at most in `make check`. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "finish/scan.h"
#include "python/python_frames.h"
#include "python/python_offsets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A frame, its code's type, a copy of bytecode, each with three witnesses; and what the thread
 * state tells. */
#define MAX_READS (8 * (5 * PP_MAX_STEPS + 100U))

#include "process_memory.h"

static volatile uint8_t sink;

static void read_records(const uint8_t *data, size_t size)
{
	OWNED(scan_reader) struct scan_reader *reader = NULL;
	const struct pp_scan_record *record;
	int fd = memfd_create("scan", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (scan_reader_new(fd, &reader))
		return;
	while (scan_reader_next(reader, &record) > 0) {
		assert(record->wait < PP_WAIT_COUNT);
		for (uint32_t i = 0; i < record->kernel_count; i++)
			sink ^= (uint8_t)record->kernel[i];
		for (uint64_t i = 0; i < record->return_count; i++)
			sink ^= (uint8_t)record->returns[i].address;
	}
}

static void check_frames(const struct python_frames *frames)
{
	uint64_t in_segments = 0;

	assert(frames->stop > PP_PY_STOP_NONE && frames->stop < PP_PY_STOP_COUNT);
	assert(frames->stored <= PP_MAX_PYTHON_FRAMES && frames->stored <= frames->count);
	assert(frames->count <= PP_MAX_STEPS && frames->segment_count <= PP_MAX_SEGMENTS);
	for (uint32_t i = 0; i < frames->stored; i++)
		assert(frames->frame[i].kind == PP_FRAME_PYTHON_RAW);
	for (uint32_t i = 0; i < frames->segment_count; i++)
		in_segments += frames->segment[i].frames;
	assert(in_segments <= frames->count);
}

/* From the middle of the frames that were found, as the kernel side would hand them over. */
static void resume(const struct python_where *where, struct python_frames *frames, uint64_t word)
{
	uint8_t head[PP_FRAME_READ_BYTES] = {0};
	const struct python_resume from = {
		.frame = word % memory_size, .cframe = word >> 32, .head = head};

	if (from.frame + sizeof(head) <= memory_size)
		memcpy(head, memory_bytes + from.frame, sizeof(head));
	frames->count /= 2;
	frames->stored /= 2;
	frames->segment_count = 0;
	reads = 0;
	if (!python_frames_resume(where, &from, frames))
		check_frames(frames);
}

static void read_frames(const struct pp_python *layout, const uint8_t *data, size_t size)
{
	static struct python_frames frames;
	struct python_where where = {.pid = 1, .layout = layout};
	uint64_t word;

	/* Two places for the state. */
	for (size_t i = 0; i < 2; i++) {
		memcpy(&word, data + 8 * i, sizeof(word));
		where.tls[i] = (struct pp_tls){.mode = data[2 * i] % (PP_TLS_GLOBAL + 1),
					       .offset = (int32_t)(word >> 32),
					       .address = word & 0xffff};
	}
	memory_bytes = data + 16;
	memory_size = size - 16;
	reads = 0;
	memcpy(&word, memory_bytes, sizeof(word));
	python_frames_read(&where, python_thread_state_find(&where, word), &frames);
	check_frames(&frames);
	python_frames_read(&where, 8, &frames);
	check_frames(&frames);
	sink ^= python_gil_owns(&where, &frames, word);
	resume(&where, &frames, word);
}

/* Version, free-threaded or not, then memory. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct python_layout *layout;
	struct pp_python python;

	read_records(data, size);
	if (size < 64)
		return 0;
	layout = python_layout_find(data[0] & 128 ? 2 : 3, data[0] & 128 ? 7 : data[0] % 16,
				    data[1] & 1);
	if (!layout)
		return 0;
	python = layout->info.bpf;
	/* Types repeat as well: what is read at a code object's head may be one. */
	python.code_type = data[1] >> 1;
	read_frames(&python, data + 2, size - 2);
	return 0;
}
