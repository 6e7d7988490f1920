/* SPDX-License-Identifier: BSD-2-Clause */
/* What the programs that ask a CUDA driver share.  They load libcuda.so.1 themselves: nothing of
 * CUDA's is needed to build them, and the prototypes are those of the stand-ins (tests/fakes).
 * Where something cannot be asked they say why in one line and end with status GPU_NOT_HERE. */
#ifndef PYPROFD_TESTS_GPU_H
#define PYPROFD_TESTS_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_driver.h"

#define GPU_NOT_HERE 77

/* ---- driver.c: the library, device 0, our kernels ---- */

/* Loads the library, and makes device 0's context current.  Ends the program where it cannot. */
void gpu_open(void);
/* The same without a device: only the library. */
void gpu_load(void);
/* The address of an exported function; NULL: there is none. */
void *gpu_find(const char *name);
/* The same; ends the program where there is none. */
void *gpu_need(const char *name);
/* A function of the driver, with its type. */
#define CU(name) ((__typeof__(name) *)gpu_need(#name))
/* Its address by cuGetProcAddress_v2(); NULL: it gives none. */
void *gpu_proc_address(const char *name, int version, uint64_t flags);
int gpu_version(void); /* 13000: CUDA 13.0 */
void gpu_check(CUresult error, const char *what);

/* The kernels, which spin, from PTX.  Ends the program where the driver takes none of it. */
#define GPU_KERNELS(X) X(pyprofd_spin) X(pyprofd_late) X(pyprofd_library) X(pyprofd_graph)
CUmodule gpu_module(void);
const char *gpu_ptx(void);    /* that the driver took */
const char *gpu_target(void); /* what it is for: "6.0 sm_50" */
CUfunction gpu_function(const char *kernel);
/* Launches a kernel that runs so long. */
void gpu_launch(CUfunction function, CUstream stream, uint64_t ns);
/* Waits, without a call that is probed. */
void gpu_await(CUstream stream);
CUcontext gpu_context(void);
CUstream gpu_stream(void); /* a new one */

uint64_t gpu_now_ns(void); /* CLOCK_MONOTONIC */
void gpu_sleep_ns(uint64_t ns);

/* ---- sites.c: breakpoints in the driver's code, as its own process sees them ---- */

struct gpu_site {
	const uint8_t *code;
	uint8_t before[16];
	uint32_t api; /* cuda_functions[] */
	uint8_t cost; /* enum probe_cost */
};

/* Where pyprofd would put probes on functions that count calls: call it before they are put on. */
void gpu_sites_find(void);
size_t gpu_sites_count(void);
const struct gpu_site *gpu_site(size_t number);
/* Whether the code of a site is another one than at first. */
bool gpu_site_is_probed(size_t number);
/* Waits until the code of all sites has changed, or of no further one for so long; prints how many,
 * and how long it took from the first to the last. Ends the program where none changes. */
void gpu_sites_await(void);
/* The same for their being as they were, after `done`. */
void gpu_sites_await_end(void);

/* ---- what can be asked ---- */

int gpu_head(void);
int gpu_functions(void);
int gpu_kernel(void);
int gpu_calls(const char *way);
int gpu_truth(void);
int gpu_drained(void);

#endif
