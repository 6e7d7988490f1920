/* SPDX-License-Identifier: BSD-2-Clause */
/* Comments of a profile with the gauges of one GPU over the profile's time, and with what one
 * process had of it.  Such comments are written and read here only. */
#ifndef PROFILE_GAUGE_LINE_H
#define PROFILE_GAUGE_LINE_H

#include <stdbool.h>
#include <stdint.h>

#define GAUGE_LINE_PREFIX "gpu "
#define GAUGE_LINE_CHARS 2048U
#define GPU_UUID_BYTES 80U
#define GPU_NAME_BYTES 96U
#define GPU_COMM_BYTES 64U
/* The most GPUs, and the most processes with a line of their own, in one profile's comments.  One
 * more line sums up the other processes. */
#define GAUGE_LINES_MAX 32U
#define GAUGE_PROCESS_LINES_MAX 64U

/* X(id, name in a line, decimals, unit).  Values are whole numbers: of 10^-decimals units. */
#define GPU_GAUGES(X)                                                                              \
	X(UTILIZATION, "utilization", 1, "%") /* of the time, in which any kernel ran */           \
	X(MEMORY_UTILIZATION, "memory_utilization", 1, "%") /* ... memory was read or written */   \
	X(SM_ACTIVE, "sm_active", 1, "%")		    /* of the SMs, that had a warp */      \
	X(SM_OCCUPANCY, "sm_occupancy", 1, "%")	  /* of the warps that SMs have room for */        \
	X(TENSOR_ACTIVE, "tensor_active", 1, "%") /* of the time, of tensor cores */               \
	X(DRAM_ACTIVE, "dram_active", 1, "%")	  /* of the memory's bandwidth */                  \
	X(PCIE_TX, "pcie_tx", 0, "bytes/s")	  /* sent by the GPU */                            \
	X(PCIE_RX, "pcie_rx", 0, "bytes/s")                                                        \
	X(NVLINK_TX, "nvlink_tx", 0, "bytes/s")                                                    \
	X(NVLINK_RX, "nvlink_rx", 0, "bytes/s")                                                    \
	X(MEMORY_USED, "memory_used", 0, "bytes")                                                  \
	X(POWER, "power", 1, "W")                                                                  \
	X(TEMPERATURE, "temperature", 1, "C")                                                      \
	X(SM_CLOCK, "sm_clock", 1, "MHz")                                                          \
	X(MEMORY_CLOCK, "memory_clock", 1, "MHz")

/* X(id, name, bit): why the clocks are lower than they could be.  Source: NVML's clocks event
 * reasons.  OTHER: bits of later drivers. */
#define GPU_REASONS(X)                                                                             \
	X(IDLE, "gpu_idle", 0x1)                                                                   \
	X(APPLICATIONS, "applications_clocks_setting", 0x2)                                        \
	X(SW_POWER, "sw_power_cap", 0x4)                                                           \
	X(HW, "hw_slowdown", 0x8)                                                                  \
	X(SYNC_BOOST, "sync_boost", 0x10)                                                          \
	X(SW_THERMAL, "sw_thermal_slowdown", 0x20)                                                 \
	X(HW_THERMAL, "hw_thermal_slowdown", 0x40)                                                 \
	X(HW_POWER_BRAKE, "hw_power_brake_slowdown", 0x80)                                         \
	X(DISPLAY, "display_clock_setting", 0x100)                                                 \
	X(OTHER, "other", 0)

#define GPU_ENUM_GAUGE(id, name, decimals, unit) GPU_##id,
#define GPU_ENUM_REASON(id, name, bit) GPU_REASON_##id,
enum gpu_gauge { GPU_GAUGES(GPU_ENUM_GAUGE) GPU_GAUGE_COUNT };
enum gpu_reason { GPU_REASONS(GPU_ENUM_REASON) GPU_REASON_COUNT };

#define GPU_SHARE_MAX 1000U /* 100 % with one decimal */

struct gpu_figures {
	bool is_known; /* false: the GPU, its driver or our rights do not give it */
	uint64_t mean, min, max;
};

/* One GPU. */
struct gauge_line {
	uint64_t device;	   /* as NVML counts them */
	char uuid[GPU_UUID_BYTES]; /* without blanks; "": not known */
	char name[GPU_NAME_BYTES];
	uint64_t seconds;	     /* readings, one a second */
	uint64_t memory_total_bytes; /* 0: not known */
	uint64_t power_limit;	     /* tenths of a W; 0: not known */
	struct gpu_figures gauge[GPU_GAUGE_COUNT];
	bool has_reasons;
	uint32_t reason_share[GPU_REASON_COUNT]; /* of the readings, in tenths of a percent */
};

/* One process on one GPU, or the sum of several. */
struct gauge_process_line {
	uint64_t pid; /* 0: the line sums up several processes */
	char comm[GPU_COMM_BYTES];
	uint64_t device, seconds;
	struct gpu_figures memory_bytes;
	struct gpu_figures sm; /* its share of the SMs, in tenths of a percent */
	uint64_t others;       /* processes of a line that sums up several */
};

/* Returns a gauge's name in a line: "sm_active"; how many decimals its values have. */
const char *gpu_gauge_name(enum gpu_gauge gauge);
unsigned int gpu_gauge_decimals(enum gpu_gauge gauge);
/* Returns a reason's name: "sw_power_cap"; the mask of NVML that it stands for. */
const char *gpu_reason_name(enum gpu_reason reason);
uint64_t gpu_reason_mask(enum gpu_reason reason);

/* Copies a name of a GPU: control characters become '?'. */
void gauge_line_set_name(struct gauge_line *line, const char *name);
void gauge_process_line_set_comm(struct gauge_process_line *line, const char *comm);
/* Adds a process's line to one that sums up others. */
void gauge_process_line_add(struct gauge_process_line *sum, const struct gauge_process_line *line);

/* Writes "gpu device=0 uuid=GPU-46.. seconds=10 utilization=63.0,20.0,97.0 ... sm_active=absent ...
 * memory_total=85899345920 power_limit=700.0 reasons=sw_power_cap:40.0,gpu_idle:10.0 name=NVIDIA
 * H100": of each gauge mean, least and most, or one number where these are equal. */
void gauge_line_format(const struct gauge_line *line, char text[GAUGE_LINE_CHARS]);
/* Returns false for any other comment. */
bool gauge_line_parse(const char *comment, struct gauge_line *ret_line);
/* Writes "gpu pid=12 comm=python3 device=0 seconds=10 memory=4096 sm=35.5,0.0,90.0" or
 * "gpu others=44 memory=... sm=absent". */
void gauge_process_line_format(const struct gauge_process_line *line, char text[GAUGE_LINE_CHARS]);
bool gauge_process_line_parse(const char *comment, struct gauge_process_line *ret_line);

#endif
