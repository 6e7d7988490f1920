/* SPDX-License-Identifier: BSD-2-Clause */
/* Means of some gauges of GPUs, from the comments of profiles: "gpu device=0 uuid=GPU-46 seconds=10
 * utilization=63.0,20.0,97.0 sm_active=absent ... name=NVIDIA H100", of each gauge the mean, the
 * least and the most, in percent.  A gauge that no comment has is not known. */
#ifndef QUERY_GPU_GAUGES_H
#define QUERY_GPU_GAUGES_H

#include <stdint.h>

/* A hostile profile may name more; those are left out. */
#define GPU_GAUGES_DEVICES_MAX 64U

enum gpu_gauges_at { GPU_GAUGES_UTILIZATION, GPU_GAUGES_ACTIVE, GPU_GAUGES_OCCUPANCY, GPU_GAUGES };

struct gpu_gauges_device {
	uint64_t device; /* as NVML counts them */
	double seconds[GPU_GAUGES], sum[GPU_GAUGES];
};

struct gpu_gauges {
	struct gpu_gauges_device device[GPU_GAUGES_DEVICES_MAX];
	uint32_t count;
};

/* Adds a comment; ignores those that are not of a GPU. */
void gpu_gauges_add(struct gpu_gauges *gauges, const char *comment);
/* Returns a share from 0 to 1; NAN: it is not known. */
double gpu_gauges_mean(const struct gpu_gauges_device *device, enum gpu_gauges_at gauge);

#endif
