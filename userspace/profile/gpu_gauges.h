/* SPDX-License-Identifier: BSD-2-Clause */
/* What is read of GPUs once a second, under the names that rows of kind gpu have. */
#ifndef PROFILE_GPU_GAUGES_H
#define PROFILE_GPU_GAUGES_H

#include <stdint.h>

#define GPU_UUID_BYTES 80U
#define GPU_NAME_BYTES 96U

/* X(id, label gauge, label unit).  Values are whole numbers of the unit. */
#define GPU_GAUGES(X)                                                                              \
	X(UTILIZATION, "utilization", "0.1 %") /* of the time, in which any kernel ran */          \
	X(MEMORY_UTILIZATION, "memory_utilization", "0.1 %") /* ... memory was read or written */  \
	X(SM_ACTIVE, "sm_active", "0.1 %")		     /* of the SMs, that had a warp */     \
	X(SM_OCCUPANCY, "sm_occupancy", "0.1 %")   /* of the warps that SMs have room for */       \
	X(TENSOR_ACTIVE, "tensor_active", "0.1 %") /* of the time, of tensor cores */              \
	X(DRAM_ACTIVE, "dram_active", "0.1 %")	   /* of the memory's bandwidth */                 \
	X(PCIE_TX, "pcie_tx", "bytes/s")	   /* sent by the GPU */                           \
	X(PCIE_RX, "pcie_rx", "bytes/s")                                                           \
	X(NVLINK_TX, "nvlink_tx", "bytes/s")                                                       \
	X(NVLINK_RX, "nvlink_rx", "bytes/s")                                                       \
	X(MEMORY_USED, "memory_used", "bytes")                                                     \
	X(MEMORY_TOTAL, "memory_total", "bytes")                                                   \
	X(POWER, "power", "0.1 W")                                                                 \
	X(POWER_LIMIT, "power_limit", "0.1 W") /* that the GPU may take */                         \
	X(TEMPERATURE, "temperature", "0.1 C")                                                     \
	X(SM_CLOCK, "sm_clock", "0.1 MHz")                                                         \
	X(MEMORY_CLOCK, "memory_clock", "0.1 MHz")

/* X(id, label reason, bit): why the clocks are lower than they could be.  Source: NVML's clocks
 * event reasons.  OTHER: bits of later drivers. */
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

#define GPU_ENUM_GAUGE(id, name, unit) GPU_##id,
#define GPU_ENUM_REASON(id, name, bit) GPU_REASON_##id,
enum gpu_gauge { GPU_GAUGES(GPU_ENUM_GAUGE) GPU_GAUGE_COUNT };
enum gpu_reason { GPU_REASONS(GPU_ENUM_REASON) GPU_REASON_COUNT };

#define GPU_SHARE_MAX 1000U /* 100 % in the unit of shares */

/* Other labels gauge.  Of clocks the row without a label reason has the readings, and those with
 * one the sums; of processes: their memory, their share of the SMs, and how many they are. */
#define GPU_CLOCK_EVENT "clock_event"
#define GPU_PROCESS_MEMORY "process_memory"
#define GPU_PROCESS_SM "process_sm"
#define GPU_PROCESSES "processes"
#define GPU_UNIT_OF_SHARES "0.1 %"
#define GPU_DEVICE_PREFIX "nvml:" /* of label device, before the number by which NVML counts GPUs */

struct gpu_term {
	const char *name;
	const char *unit; /* of a gauge */
	uint64_t bit;	  /* of a reason */
};
extern const struct gpu_term gpu_gauges[GPU_GAUGE_COUNT], gpu_reasons[GPU_REASON_COUNT];

/* Return the gauge or reason that has a name; GPU_GAUGE_COUNT, GPU_REASON_COUNT: none. */
enum gpu_gauge gpu_gauge_find(const char *name);
enum gpu_reason gpu_reason_find(const char *name);
/* Returns the mask of NVML that a reason stands for. */
uint64_t gpu_reason_mask(enum gpu_reason reason);

#endif
