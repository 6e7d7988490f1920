/* SPDX-License-Identifier: BSD-2-Clause */
/* Remembers on which GPU processes are whose contexts are older than the run, as far as NVML's list
 * of processes tells: only of one that was never seen on another GPU is it known which one its
 * calls are for.  The loop's thread. */
#ifndef GPU_CUDA_DEVICES_H
#define GPU_CUDA_DEVICES_H

#include <stdbool.h>

#include <pyprofd/process.h>

#include "base/cleanup.h"

struct cuda_devices;
/* Returns 0 or -ENOMEM. */
int cuda_devices_new(struct cuda_devices **ret_devices);
void cuda_devices_free(struct cuda_devices *devices);
DEFINE_OWNED(struct cuda_devices, cuda_devices)

/* Returns the number of the one GPU that a process is on now, as NVML counts them; -ENOENT: none is
 * known now; -EMFILE: there are several. */
typedef int cuda_devices_ask(void *context, struct pp_process_id id);
/* A window ends: each process may be asked about again.  Forgets those that have ended and had no
 * calls in the window before. */
void cuda_devices_begin(struct cuda_devices *devices,
			bool (*is_alive)(void *context, struct pp_process_id id), void *context);
/* Asks about a process, unless that was done in this window.  Returns 0 or -ENOMEM. */
int cuda_devices_note(struct cuda_devices *devices, struct pp_process_id id, cuda_devices_ask *ask,
		      void *context);
/* Returns the number of its GPU, as NVML counts them; -ENOENT: it is not known. */
int cuda_devices_find(const struct cuda_devices *devices, struct pp_process_id id);

#endif
