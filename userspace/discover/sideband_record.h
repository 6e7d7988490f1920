/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses one record of the perf side-band.
 * Source: include/uapi/linux/perf_event.h, enum perf_event_type. The events' sample_type is
 * PERF_EVENT_MAPPINGS_SAMPLE_TYPE, which decides what each record ends with. */
#ifndef DISCOVER_SIDEBAND_RECORD_H
#define DISCOVER_SIDEBAND_RECORD_H

#include <linux/perf_event.h>

#include "discover/mapping.h"
#include "discover/process.h"
#include "perf/event.h"

enum sideband_kind {
	/* not of interest: a thread renamed, a mapping that is not executable */
	SIDEBAND_OTHER = 0,
	SIDEBAND_MAPPING,
	SIDEBAND_NEW_CONTEXT, /* execve has replaced the address space */
	SIDEBAND_LOST,
};

struct sideband_record {
	enum sideband_kind kind;
	uint32_t tgid;
	uint64_t time_ns;	/* CLOCK_MONOTONIC; also in mapping.time_ns */
	uint64_t lost_count;	/* number of lost records, of SIDEBAND_LOST */
	struct mapping mapping; /* path points into this struct, so do not copy it */
	char path[MAPPING_PATH_MAX_BYTES];
};

/* Parses a record: `size` bytes that begin with its header, which states the same size. Returns 0;
 * -EBADMSG. */
int sideband_record_parse(const void *bytes, size_t size, struct sideband_record *ret_record);

/* Returns when the record was written, without parsing the rest; 0 when the record is too short. */
uint64_t sideband_record_time(const void *bytes, size_t size);

#endif
