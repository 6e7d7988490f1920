/* SPDX-License-Identifier: BSD-2-Clause */
/* The metrics of GPUs: one list for the answer to a live request `stats` and for docs/metrics.md.
 * They are of GPUs as a whole: no process is named. */
#ifndef GPU_GPU_METRICS_H
#define GPU_GPU_METRICS_H

#include <stdio.h>

struct gauges;

/* X(name, enum live_metric, labels or "", where its values are (gpu_metrics.c), what it says). */
#define AGENT_GPU_METRICS(X)                                                                       \
	X("pyprofd_gpus", GAUGE, "", DEVICES, "GPUs whose gauges are known now.")                  \
	X("pyprofd_gpu_gauges_failures_total", COUNTER, "reason", FAILURES,                        \
	  "Times that there were no gauges of GPUs, by reason.")                                   \
	X("pyprofd_gpu_info", GAUGE, "gpu, uuid, name", INFO, "Always 1; its labels name a GPU.")  \
	X("pyprofd_gpu_utilization_ratio", GAUGE_PARTS, "gpu, uuid", SHARE(UTILIZATION),           \
	  "Share of the last second in which any kernel ran on the GPU.")                          \
	X("pyprofd_gpu_memory_utilization_ratio", GAUGE_PARTS, "gpu, uuid",                        \
	  SHARE(MEMORY_UTILIZATION), "Share of it in which its memory was read or written.")       \
	X("pyprofd_gpu_sm_active_ratio", GAUGE_PARTS, "gpu, uuid", SHARE(SM_ACTIVE),               \
	  "SMs with work, on average over the last second (GPM: Hopper and later).")               \
	X("pyprofd_gpu_sm_occupancy_ratio", GAUGE_PARTS, "gpu, uuid", SHARE(SM_OCCUPANCY),         \
	  "Warps on the SMs, of those that there is room for (GPM).")                              \
	X("pyprofd_gpu_tensor_active_ratio", GAUGE_PARTS, "gpu, uuid", SHARE(TENSOR_ACTIVE),       \
	  "How busy the tensor cores were (GPM).")                                                 \
	X("pyprofd_gpu_dram_active_ratio", GAUGE_PARTS, "gpu, uuid", SHARE(DRAM_ACTIVE),           \
	  "Bandwidth of the GPU's memory in use (GPM).")                                           \
	X("pyprofd_gpu_pcie_transmit_bytes_per_second", GAUGE, "gpu, uuid", PLAIN(PCIE_TX),        \
	  "What the GPU sends over PCIe (GPM).")                                                   \
	X("pyprofd_gpu_pcie_receive_bytes_per_second", GAUGE, "gpu, uuid", PLAIN(PCIE_RX),         \
	  "What the GPU receives over PCIe (GPM).")                                                \
	X("pyprofd_gpu_nvlink_transmit_bytes_per_second", GAUGE, "gpu, uuid", PLAIN(NVLINK_TX),    \
	  "What the GPU sends over NVLink (GPM).")                                                 \
	X("pyprofd_gpu_nvlink_receive_bytes_per_second", GAUGE, "gpu, uuid", PLAIN(NVLINK_RX),     \
	  "What the GPU receives over NVLink (GPM).")                                              \
	X("pyprofd_gpu_memory_used_bytes", GAUGE, "gpu, uuid", PLAIN(MEMORY_USED),                 \
	  "Memory of the GPU in use.")                                                             \
	X("pyprofd_gpu_memory_total_bytes", GAUGE, "gpu, uuid", PLAIN(MEMORY_TOTAL),               \
	  "Memory of the GPU.")                                                                    \
	X("pyprofd_gpu_power_watts", GAUGE_PARTS, "gpu, uuid", TENTHS(POWER),                      \
	  "Power that the GPU takes.")                                                             \
	X("pyprofd_gpu_power_limit_watts", GAUGE_PARTS, "gpu, uuid", TENTHS(POWER_LIMIT),          \
	  "Power that the GPU may take.")                                                          \
	X("pyprofd_gpu_temperature_celsius", GAUGE_PARTS, "gpu, uuid", TENTHS(TEMPERATURE),        \
	  "Temperature of the GPU.")                                                               \
	X("pyprofd_gpu_sm_clock_hertz", GAUGE, "gpu, uuid", CLOCK(SM_CLOCK), "Clock of the SMs.")  \
	X("pyprofd_gpu_memory_clock_hertz", GAUGE, "gpu, uuid", CLOCK(MEMORY_CLOCK),               \
	  "Clock of the GPU's memory.")                                                            \
	X("pyprofd_gpu_processes", GAUGE, "gpu, uuid", PROCESSES,                                  \
	  "Processes with memory of the GPU, which have no names here.")                           \
	X("pyprofd_gpu_clock_event_seconds_total", COUNTER, "gpu, uuid, reason", REASONS,          \
	  "Readings, one a second, in which something held the clocks down, by reason.")

/* Writes the metrics as records of the live socket; nothing when no gauges were ever looked for.  A
 * value that is not known is left out.  gauges may be NULL. */
void gpu_metrics_write(const struct gauges *gauges, FILE *out);

#endif
