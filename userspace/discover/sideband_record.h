/* SPDX-License-Identifier: BSD-2-Clause */
/* One record of the perf side-band: bytes -> what it says.
 * Source: include/uapi/linux/perf_event.h, enum perf_event_type; the events' sample_type is
 * SIDEBAND_SAMPLE_TYPE, which decides what ends each record. */
#ifndef DISCOVER_SIDEBAND_RECORD_H
#define DISCOVER_SIDEBAND_RECORD_H

#include <linux/perf_event.h>

#include "discover/mapping.h"
#include "discover/process.h"

#define SIDEBAND_SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

enum sideband_kind {
	SIDEBAND_OTHER = 0, /* of no interest: a thread renamed, a mapping not for execution */
	SIDEBAND_MAPPING,
	SIDEBAND_NEW_IMAGE, /* execve has replaced the address space */
	SIDEBAND_LOST,
};

struct sideband_record {
	enum sideband_kind kind;
	uint32_t tgid;
	uint64_t time_ns;	/* CLOCK_MONOTONIC; mapping.time_ns too */
	uint64_t lost_count;	/* records, SIDEBAND_LOST */
	struct mapping mapping; /* path points into this struct, so do not copy it */
	char path[MAPPING_PATH_MAX_BYTES];
};

/* `size` bytes begin with the header and are those that it claims.  Returns 0; -EBADMSG. */
int sideband_record_parse(const void *bytes, size_t size, struct sideband_record *ret_record);

/* When it was written, without parsing the rest.  0 when the record is too short. */
uint64_t sideband_record_time(const void *bytes, size_t size);

#endif
