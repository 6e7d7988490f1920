/* SPDX-License-Identifier: BSD-2-Clause */
/* The types of CUDA's driver interface that the stand-ins take, under CUDA's names: written from
 * the offsets in bytes that NVIDIA's headers 12.9 to 13.5 have.  Handles are opaque to callers. */
#ifndef PYPROFD_FAKE_CUDA_TYPES_H
#define PYPROFD_FAKE_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct context *CUcontext;
typedef struct stream *CUstream;
typedef struct event *CUevent;
typedef struct function *CUfunction;
typedef struct function *CUkernel;
typedef struct module *CUmodule;
typedef struct module *CUlibrary;
typedef struct graph *CUgraph;
typedef struct graph_exec *CUgraphExec;

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_INVALID_PTX = 218,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_ILLEGAL_STATE = 401,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
	CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
	CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
};

/* Streams that are numbers. */
#define CU_STREAM_DEFAULT ((CUstream)0)
#define CU_CTX_SCHED_SPIN 1U
#define CU_EVENT_RECORD_EXTERNAL 1U
#define CU_STREAM_LEGACY ((CUstream)1)
#define CU_STREAM_PER_THREAD ((CUstream)2)

enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2, CU_MEMORYTYPE_UNIFIED = 4 };

enum { CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2 };

struct cu_uuid {
	unsigned char bytes[16];
};

struct cu_launch_config {
	unsigned int grid[3];
	unsigned int block[3];
	unsigned int smem;
	CUstream stream;
	void *attributes;
	unsigned int attribute_count;
};
_Static_assert(offsetof(struct cu_launch_config, stream) == 32, "CUlaunchConfig");
_Static_assert(sizeof(struct cu_launch_config) == 56, "CUlaunchConfig");

struct cu_copy_2d {
	size_t src_x, src_y;
	unsigned int src_type;
	const void *src_host;
	CUdeviceptr src_device;
	void *src_array;
	size_t src_pitch;
	size_t dst_x, dst_y;
	unsigned int dst_type;
	void *dst_host;
	CUdeviceptr dst_device;
	void *dst_array;
	size_t dst_pitch;
	size_t width_bytes, height;
};
_Static_assert(offsetof(struct cu_copy_2d, src_type) == 16, "CUDA_MEMCPY2D");
_Static_assert(offsetof(struct cu_copy_2d, dst_type) == 72, "CUDA_MEMCPY2D");
_Static_assert(offsetof(struct cu_copy_2d, width_bytes) == 112, "CUDA_MEMCPY2D");
_Static_assert(sizeof(struct cu_copy_2d) == 128, "CUDA_MEMCPY2D");

struct cu_copy_3d {
	size_t src_x, src_y, src_z, src_lod;
	unsigned int src_type;
	const void *src_host;
	CUdeviceptr src_device;
	void *src_array;
	void *reserved0;
	size_t src_pitch, src_height;
	size_t dst_x, dst_y, dst_z, dst_lod;
	unsigned int dst_type;
	void *dst_host;
	CUdeviceptr dst_device;
	void *dst_array;
	void *reserved1;
	size_t dst_pitch, dst_height;
	size_t width_bytes, height, depth;
};
_Static_assert(offsetof(struct cu_copy_3d, src_type) == 32, "CUDA_MEMCPY3D");
_Static_assert(offsetof(struct cu_copy_3d, dst_type) == 120, "CUDA_MEMCPY3D");
_Static_assert(offsetof(struct cu_copy_3d, width_bytes) == 176, "CUDA_MEMCPY3D");
_Static_assert(sizeof(struct cu_copy_3d) == 200, "CUDA_MEMCPY3D");

/* CUDA_KERNEL_NODE_PARAMS: as far as it is read. */
struct cu_kernel_node {
	CUfunction function;
	unsigned int grid[3], block[3], smem;
	void **params, **extra;
	CUkernel kernel; /* without a function */
	CUcontext context;
};
_Static_assert(offsetof(struct cu_kernel_node, kernel) == 56, "CUDA_KERNEL_NODE_PARAMS_v2");

struct cu_fill_node {
	CUdeviceptr dst;
	size_t pitch;
	unsigned int value, element_bytes;
	size_t width, height;
	CUcontext context;
};
_Static_assert(offsetof(struct cu_fill_node, width) == 24, "CUDA_MEMSET_NODE_PARAMS");

struct cu_copy_node {
	int flags, reserved;
	CUcontext context;
	struct cu_copy_3d copy;
};
enum { CU_NODE_KERNEL, CU_NODE_COPY, CU_NODE_FILL, CU_NODE_HOST, CU_NODE_GRAPH };
struct cu_node_params {
	int type, reserved0[3];
	union {
		struct cu_kernel_node kernel;
		struct cu_copy_node copy;
		struct cu_fill_node fill;
		CUgraph graph;
		uint64_t reserved1[29];
	};
	uint64_t reserved2;
};
_Static_assert(offsetof(struct cu_node_params, copy.copy) == 32, "CUgraphNodeParams");

struct cu_instantiate_params {
	uint64_t flags;
	CUstream upload_stream;
	void *error_node;
	unsigned int result;
};

#endif
