/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of the driver that its stand-in does not have. */
#ifndef PYPROFD_TESTS_GPU_MORE_FUNCTIONS_H
#define PYPROFD_TESTS_GPU_MORE_FUNCTIONS_H

#include "cuda_driver.h"

/* CUDA_MEMCPY3D_PEER */
struct cu_copy_3d_peers {
	size_t src_x, src_y, src_z, src_lod;
	unsigned int src_type;
	const void *src_host;
	CUdeviceptr src_device;
	void *src_array;
	CUcontext src_context;
	size_t src_pitch, src_height;
	size_t dst_x, dst_y, dst_z, dst_lod;
	unsigned int dst_type;
	void *dst_host;
	CUdeviceptr dst_device;
	void *dst_array;
	CUcontext dst_context;
	size_t dst_pitch, dst_height;
	size_t width_bytes, height, depth;
};
_Static_assert(sizeof(struct cu_copy_3d_peers) == 200, "CUDA_MEMCPY3D_PEER");

CUresult cuMemcpy3DPeer(const struct cu_copy_3d_peers *copy);
CUresult cuMemcpy3DPeerAsync(const struct cu_copy_3d_peers *copy, CUstream stream);
CUresult cuMemcpy2DUnaligned_v2(const struct cu_copy_2d *copy);
CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream);
CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count);
CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
			    size_t height, CUstream stream);
CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
			    size_t height, CUstream stream);
CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
			 size_t height);
CUresult cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
			  size_t height);
CUresult cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
			  size_t height);
CUresult cuMemAllocPitch_v2(CUdeviceptr *ret_pointer, size_t *ret_pitch, size_t width,
			    size_t height, unsigned int element_bytes);
struct pool; /* CUmemoryPool */
CUresult cuDeviceGetDefaultMemPool(struct pool **ret_pool, CUdevice device);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ret_pointer, size_t bytes, struct pool *pool,
				 CUstream stream);

#endif
