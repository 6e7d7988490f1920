/* SPDX-License-Identifier: BSD-2-Clause */
/* What the child that reads GPUs' gauges writes into its pipe: once a second a round of records of
 * one size.  For each GPU one record with its values and some with its processes, by ascending
 * index; then the round's end.  Or one record that says why there are no gauges. */
#ifndef GAUGES_RECORD_H
#define GAUGES_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/gpu_gauges.h"

#define GAUGES_RECORD_BYTES 512U
#define GAUGES_DEVICES_MAX 32U
/* Processes of a round, on all GPUs.  Those beyond are counted. */
#define GAUGES_PROCESSES_MAX 1024U
#define GAUGES_ROWS_MAX 30U
#define GAUGES_PID_MAX (1U << 22)	     /* the kernel's: PID_MAX_LIMIT */
#define GAUGES_UNKNOWN_SM UINT32_MAX	     /* the driver does not tell a process's share */
#define GAUGES_UNKNOWN_BYTES UINT64_MAX	     /* ... nor its memory */
#define GAUGES_VALUE_MAX (UINT64_C(1) << 60) /* of any value */

/* X(id, name, what is the matter).  Why there are no gauges. */
#define GAUGES_FAILURES(X)                                                                         \
	X(NO_LIBRARY, "no_library", "libnvidia-ml.so.1 was not found")                             \
	X(HALF_LIBRARY, "half_library", "libnvidia-ml.so.1 lacks what every NVML has")             \
	X(NO_DRIVER, "no_driver",                                                                  \
	  "NVML does not begin: is the driver loaded, and may we open "                            \
	  "/dev/nvidia*?")                                                                         \
	X(NO_DEVICE, "no_device", "NVML knows no GPU")                                             \
	X(NO_SANDBOX, "no_sandbox", "rights could not be given up before NVML is loaded")          \
	X(ENDED, "ended", "the child that loads NVML has ended")                                   \
	X(SILENT, "silent", "NVML does not answer")                                                \
	X(NONSENSE, "nonsense", "the child that loads NVML says what cannot be")                   \
	X(FLOOD, "flood", "the child that loads NVML says too much")                               \
	X(NOT_STARTED, "not_started", "the child that loads NVML cannot be started")

#define GAUGES_ENUM_FAILURE(id, name, text) GAUGES_##id,
enum gauges_failure { GAUGES_FAILURES(GAUGES_ENUM_FAILURE) GAUGES_FAILURE_COUNT };
/* The child says these; the others are what the agent sees. */
#define GAUGES_SAID_COUNT GAUGES_ENDED

enum gauges_record_kind { GAUGES_DEVICE = 1, GAUGES_PROCESSES, GAUGES_END, GAUGES_FAILED };

struct gauges_process {
	uint32_t pid;
	uint32_t sm;	       /* tenths of a percent; GAUGES_UNKNOWN_SM */
	uint64_t memory_bytes; /* GAUGES_UNKNOWN_BYTES */
};

struct gauges_device {
	char uuid[GPU_UUID_BYTES];	 /* printable, without blanks */
	char name[GPU_NAME_BYTES];	 /* printable */
	uint64_t has;			 /* bit g: value[g] is known */
	uint64_t value[GPU_GAUGE_COUNT]; /* as GPU_GAUGES has them */
	uint64_t reasons;		 /* NVML's mask */
	uint64_t has_reasons;		 /* 0 or 1 */
};

struct gauges_record {
	uint32_t kind;	 /* enum gauges_record_kind */
	uint32_t round;	 /* counts from 1; GAUGES_FAILED: 0 */
	uint32_t device; /* NVML's index.  GAUGES_END, GAUGES_FAILED: 0 */
	/* GAUGES_PROCESSES: rows.  GAUGES_END: processes that were left out.  GAUGES_FAILED: enum
	 * gauges_failure.  GAUGES_DEVICE: 0. */
	uint32_t count;
	union {
		struct gauges_device gpu;
		struct gauges_process process[GAUGES_ROWS_MAX];
		int32_t code; /* GAUGES_FAILED: what NVML returned; 0: it was not asked */
		uint8_t bytes[GAUGES_RECORD_BYTES - 16];
	};
};
_Static_assert(sizeof(struct gauges_record) == GAUGES_RECORD_BYTES, "a write of it is one piece");

/* Returns a failure's name, "no_library"; what it says to people. */
const char *gauges_failure_name(enum gauges_failure failure);
const char *gauges_failure_text(enum gauges_failure failure);

#endif
