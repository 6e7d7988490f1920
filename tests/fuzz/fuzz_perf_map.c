/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: symbolize/perf_map.c base/root_file.c */
/* The text of a perf-PID.map, in two pieces. */
#include <assert.h>
#include <string.h>

#include "symbolize/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWNED(perf_map) struct perf_map *map = NULL;
	const size_t half = size / 2;
	const char *name;
	uint64_t start;

	if (perf_map_new(&map))
		return 0;
	perf_map_add_text(map, (const char *)data, half);
	perf_map_add_text(map, (const char *)data + half, size - half);
	for (size_t i = 0; i + 8 <= size && i < 64; i += 8) {
		uint64_t address;

		memcpy(&address, data + i, sizeof(address));
		if (i & 8)
			address &= 0xffff;
		if (perf_map_find(map, address, &name, &start))
			continue;
		assert(start <= address);
		assert(strlen(name) <= PERF_MAP_MAX_NAME_BYTES);
		assert(strncmp(name, "py::", 4) != 0);
	}
	return 0;
}
