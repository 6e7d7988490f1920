/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: discover/sideband.c discover/mapping_set.c base/user_quota.c discover/cpus.c child/perf_opener.c base/task.c base/io.c child/worker.c child/sandbox.c child/perf_event.c child/spawn.c child/children.c */
/* Records of the perf side-band, one after the other as in a ring. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "discover/sideband.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const uint8_t *bytes, size_t size)
{
	/* Its own allocation, so that a read behind its end is seen. */
	uint8_t *copy = malloc(size);
	struct sideband_record record;

	assert(copy);
	memcpy(copy, bytes, size);
	sideband_record_time(copy, size);
	if (!sideband_record_parse(copy, size, &record) && record.kind == SIDEBAND_MAPPING) {
		assert(record.mapping.start < record.mapping.end);
		assert(record.mapping.path == record.path);
		assert(memchr(record.path, '\0', sizeof(record.path)));
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	while (size) {
		struct perf_event_header header = {0};
		size_t record_size = size;

		memcpy(&header, data, size < sizeof(header) ? size : sizeof(header));
		if (header.size && header.size < size)
			record_size = header.size;
		parse(data, record_size);
		data += record_size;
		size -= record_size;
	}
	return 0;
}
