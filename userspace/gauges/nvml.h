/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads NVML and reads GPUs' gauges from it: in the child alone.  What a library, a driver, a GPU
 * or the child's rights do not give is not known, and never 0. */
#ifndef GAUGES_NVML_H
#define GAUGES_NVML_H

#include <stdint.h>

#include "base/cleanup.h"
#include "gauges/record.h"

struct nvml;
/* Loads the library and begins.  Returns 0; -ENOMEM; -ENODEV: *ret_failure says why there are no
 * gauges, and *ret_code what NVML returned (0: it was not asked). */
int nvml_open(struct nvml **ret_nvml, enum gauges_failure *ret_failure, int *ret_code);
void nvml_free(struct nvml *nvml);
DEFINE_OWNED(struct nvml, nvml)

/* Returns how many GPUs there are, GAUGES_DEVICES_MAX at most; 0: NVML does not tell. */
uint32_t nvml_count(struct nvml *nvml);
/* Reads one GPU.  Returns 0; -ENODEV: it is not to be had now. */
int nvml_read_device(struct nvml *nvml, uint32_t index, struct gauges_device *ret_gpu);
/* Reads who has memory of the GPU that was read last, or ran on it in the second before: `room` at
 * most.  Returns how many; *ret_left_out: those beyond. */
uint32_t nvml_read_processes(struct nvml *nvml, struct gauges_process *process, uint32_t room,
			     uint32_t *ret_left_out);

#endif
