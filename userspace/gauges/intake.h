/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes rounds of the records that the child writes.  Nothing in them is believed before it is
 * checked: the child has run a vendor's code. */
#ifndef GAUGES_INTAKE_H
#define GAUGES_INTAKE_H

#include <stdbool.h>
#include <stddef.h>

#include "gauges/record.h"

struct gauges_round_device {
	uint32_t index; /* as NVML counts them */
	struct gauges_device gpu;
};
struct gauges_round_process {
	uint32_t device; /* index */
	struct gauges_process process;
};
/* One second. */
struct gauges_round {
	uint32_t device_count, process_count;
	uint32_t left_out; /* processes beyond GAUGES_PROCESSES_MAX */
	struct gauges_round_device device[GAUGES_DEVICES_MAX]; /* by ascending index */
	struct gauges_round_process process[GAUGES_PROCESSES_MAX];
};

/* A zeroed one is empty. */
struct gauges_intake {
	uint32_t number;	     /* of the open round; 0: none is open */
	uint32_t last;		     /* number of the last whole one */
	struct gauges_round round;   /* the open one; the last whole one until another begins */
	enum gauges_failure failure; /* after GAUGES_INTAKE_FAILED */
	int32_t code;		     /* ... what NVML returned */
};

enum gauges_intake_result {
	GAUGES_INTAKE_MORE,   /* the round goes on */
	GAUGES_INTAKE_ROUND,  /* intake->round is whole */
	GAUGES_INTAKE_FAILED, /* the child says why there are no gauges */
	GAUGES_INTAKE_NONSENSE,
};
/* Takes one record.  After GAUGES_INTAKE_NONSENSE no further one may be taken. */
enum gauges_intake_result gauges_intake_add(struct gauges_intake *intake,
					    const struct gauges_record *record);

#endif
