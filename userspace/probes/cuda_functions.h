/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of CUDA's libraries that are probed: how they are called, and what their parameters
 * mean (cuda.h and cuda_runtime_api.h of CUDA 12 and 13, nccl.h of NCCL 2.29).  Each is looked for
 * under its name and those of its twins (struct probe_wanted). */
#ifndef PROBES_CUDA_FUNCTIONS_H
#define PROBES_CUDA_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <pyprofd/cuda.h>

enum cuda_library { CUDA_DRIVER, CUDA_RUNTIME, CUDA_NCCL, CUDA_LIBRARIES };

struct cuda_function {
	const char *name;
	enum cuda_library library;
	bool has_kernel;	  /* parameter `ident` is a kernel, which may have a name */
	bool has_graph;		  /* it is an instance of a graph */
	bool has_communicator;	  /* it is ncclComm_t */
	bool is_first;		  /* probed also where few can be: before Linux 6.6 */
	struct pp_cuda_site site; /* without `api`, which is its index, and is_end */
};

size_t cuda_function_count(void);
/* Returns NULL from cuda_function_count() on. */
const struct cuda_function *cuda_function_get(size_t api);
/* Returns whether it launches a kernel or a graph, or is of events: nothing else is called as
 * often. */
bool cuda_function_is_frequent(const struct cuda_function *function);
/* Returns whether its calls are timed. */
bool cuda_function_is_timed(size_t api);
/* Returns the name that labels have: without the number of its version. */
const char *cuda_function_label(size_t api, char ret_text[64]);

/* Returns the labels of those of a library, and of NCCL, that count calls and are not first, a
 * comma between two of them.  The caller frees it; NULL: there is no memory. */
char *cuda_functions_left_out(enum cuda_library library);

/* Returns which library a file is called as: libcuda.so.1, libcuda.so.580.65.06; libcudart.so.12,
 * libcudart-d0da41ae.so.11.0; libnccl.so.2.  CUDA_LIBRARIES: none of them. */
enum cuda_library cuda_library_of(const char *path);

#endif
