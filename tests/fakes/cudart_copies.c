/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of the fake libcudart whose sizes are not one parameter, and those of symbols, which are
 * addresses of the device here. */
#include "cudart.h"

static uint64_t address(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

/* CUmemorytype of both sides, by enum cudaMemcpyKind. */
static unsigned int type_of(int kind, int is_from)
{
	if (kind == cudaMemcpyDefault)
		return CU_MEMORYTYPE_UNIFIED;
	if (kind == cudaMemcpyDeviceToDevice)
		return CU_MEMORYTYPE_DEVICE;
	if (kind == cudaMemcpyHostToHost)
		return CU_MEMORYTYPE_HOST;
	return (kind == cudaMemcpyHostToDevice) == is_from ? CU_MEMORYTYPE_HOST
							   : CU_MEMORYTYPE_DEVICE;
}

static struct cu_copy_2d flat(void *dst, const void *src, size_t width, size_t height, int kind)
{
	return (struct cu_copy_2d){
		.src_type = type_of(kind, 1),
		.src_device = address(src),
		.dst_type = type_of(kind, 0),
		.dst_device = address(dst),
		.width_bytes = width,
		.height = height,
	};
}

static struct cu_copy_3d deep(const struct cudart_copy_3d *copy)
{
	return (struct cu_copy_3d){
		.src_type = type_of(copy->kind, 1),
		.src_device = address(copy->src[0]),
		.dst_type = type_of(copy->kind, 0),
		.dst_device = address(copy->dst[0]),
		.width_bytes = copy->width,
		.height = copy->height,
		.depth = copy->depth,
	};
}

cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
			 size_t width, size_t height, int kind)
{
	const struct cu_copy_2d copy = flat(dst, src, width, height, kind);
	cudaError_t error = cudart_ready();

	(void)dst_pitch, (void)src_pitch;
	if (!error)
		error = cudart_slots.cuMemcpy2D_v2(&copy);
	return cudart_remember(error);
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
			      size_t width, size_t height, int kind, cudaStream_t stream)
{
	const struct cu_copy_2d copy = flat(dst, src, width, height, kind);
	cudaError_t error = cudart_ready();

	(void)dst_pitch, (void)src_pitch;
	if (!error)
		error = cudart_slots.cuMemcpy2DAsync_v2(&copy, stream);
	return cudart_remember(error);
}

cudaError_t cudaMemcpy3D(const struct cudart_copy_3d *params)
{
	const struct cu_copy_3d copy = deep(params);
	cudaError_t error = cudart_ready();

	if (!error)
		error = cudart_slots.cuMemcpy3D_v2(&copy);
	return cudart_remember(error);
}

cudaError_t cudaMemcpy3DAsync(const struct cudart_copy_3d *params, cudaStream_t stream)
{
	const struct cu_copy_3d copy = deep(params);
	cudaError_t error = cudart_ready();

	if (!error)
		error = cudart_slots.cuMemcpy3DAsync_v2(&copy, stream);
	return cudart_remember(error);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t bytes, size_t offset,
			       int kind)
{
	cudaError_t error = cudart_ready();

	(void)kind;
	if (!error)
		error = cudart_slots.cuMemcpyHtoD_v2(address(symbol) + offset, src, bytes);
	return cudart_remember(error);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t bytes, size_t offset,
				      int kind, cudaStream_t stream)
{
	cudaError_t error = cudart_ready();

	(void)kind;
	if (!error)
		error = cudart_slots.cuMemcpyDtoHAsync_v2(dst, address(symbol) + offset, bytes,
							  stream);
	return cudart_remember(error);
}
