/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: symbolize/perf_map.c base/safe_file.c files/decode.c files/check.c base/io.c python/python_text.c python/python_code.c python/python_objects.c */
/* The text of a perf-PID.map, read in two pieces: what the child answers must pass the agent's
 * checks. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "files/check.h"
#include "files/client.h"
#include "files/decode.h"
#include "symbolize/perf_map.h"

#define ROOM 4096U /* of an answer: small, so that it gets full */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not called: there is no child. */
int foreign_lines(struct foreign *foreign, const struct foreign_file *file, uint64_t low,
		  uint64_t high, struct foreign_lines **ret_lines)
{
	(void)foreign, (void)file, (void)low, (void)high, (void)ret_lines;
	return -ETIMEDOUT;
}

static void read_lines(struct perf_map *map, int fd, uint64_t low, uint64_t high)
{
	OWNED_MEM uint8_t *memory = malloc(ROOM);
	const struct foreign_lines *lines = (const struct foreign_lines *)memory;
	uint32_t size;

	assert(memory);
	while (low < high) {
		assert(!perf_lines_read(fd, low, high, memory, ROOM, &size));
		assert(size <= ROOM && foreign_lines_are_sound(lines, size, low, high));
		assert(!perf_map_add(map, lines));
		if (lines->next == low)
			break;
		low = lines->next;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWNED_FD int fd = memfd_create("fuzz", MFD_CLOEXEC);
	OWNED(perf_map) struct perf_map *map = NULL;
	const size_t half = size / 2;
	const char *name;
	uint64_t start;

	if (perf_map_new(&map))
		return 0;
	assert(fd >= 0 && !write_full(fd, data, size));
	read_lines(map, fd, 0, half);
	read_lines(map, fd, half, size);
	for (size_t i = 0; i + 8 <= size && i < 64; i += 8) {
		uint64_t address;

		memcpy(&address, data + i, sizeof(address));
		if (i & 8)
			address &= 0xffff;
		if (perf_map_find(map, address, &name, &start))
			continue;
		assert(start <= address);
		assert(strlen(name) <= FOREIGN_LINE_NAME_BYTES);
		assert(strncmp(name, "py::", 4) != 0);
	}
	return 0;
}
