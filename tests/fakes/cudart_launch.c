/* SPDX-License-Identifier: BSD-2-Clause */
/* Launches, with the frames that cudart has: caller -> cudaLaunchKernel -> a static helper ->
 * call *slot. Neither may be a jump: each looks at the result. */
#include "cudart.h"

#define LAUNCH(slots, call, ...)                                                                   \
	CUfunction function;                                                                       \
	cudaError_t error = cudart_ready();                                                        \
                                                                                                   \
	if (error)                                                                                 \
		return error;                                                                      \
	error = cudart_function(func, &function);                                                  \
	if (error)                                                                                 \
		return error;                                                                      \
	error = slots.call(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,            \
			   (unsigned int)smem, stream, args __VA_ARGS__);                          \
	return error == CUDA_ERROR_INVALID_HANDLE ? cudaErrorInvalidDeviceFunction : error

__attribute__((noinline)) static cudaError_t launch LAUNCH_ARGS
{
	LAUNCH(cudart_slots, cuLaunchKernel, , NULL);
}

__attribute__((noinline)) static cudaError_t launch_ptsz LAUNCH_ARGS
{
	LAUNCH(cudart_slots_ptsz, cuLaunchKernel, , NULL);
}

__attribute__((noinline)) static cudaError_t launch_cooperative LAUNCH_ARGS
{
	LAUNCH(cudart_slots, cuLaunchCooperativeKernel, );
}

__attribute__((noinline)) cudaError_t cudaLaunchKernel LAUNCH_ARGS
{
	cudaError_t error = launch(func, grid, block, args, smem, stream);

	return error ? cudart_remember(error) : error;
}

__attribute__((noinline)) cudaError_t cudaLaunchKernel_ptsz LAUNCH_ARGS
{
	cudaError_t error = launch_ptsz(func, grid, block, args, smem, stream);

	return error ? cudart_remember(error) : error;
}

cudaError_t cudaLaunchCooperativeKernel LAUNCH_ARGS
{
	cudaError_t error = launch_cooperative(func, grid, block, args, smem, stream);

	return error ? cudart_remember(error) : error;
}

/* These are jumps.  CUDA's have a frame before they jump, for which gcc sees no need. */
#if defined(__x86_64__) && !defined(CUDART_NO_FRAMES)
#ifdef __CET__
#define ENTRY "endbr64\n"
#else
#define ENTRY ""
#endif
/* clang-format off */
#define JUMP(name, target)                                                                         \
	__asm__(".pushsection .text\n"                                                             \
		".globl " #name "\n"                                                               \
		".type " #name ", @function\n"                                                     \
		".p2align 4\n"                                                                     \
		#name ":\n"                                                                        \
		ENTRY                                                                              \
		"push %rbp\n"                                                                      \
		"mov %rsp, %rbp\n"                                                                 \
		"pop %rbp\n"                                                                       \
		"jmp " #target "@PLT\n"                                                            \
		".size " #name ", . - " #name "\n"                                                 \
		".popsection\n");
/* clang-format on */
#else
#define JUMP(name, target)                                                                         \
	cudaError_t name LAUNCH_ARGS                                                               \
	{                                                                                          \
		return target(func, grid, block, args, smem, stream);                              \
	}
#endif
JUMP(__cudaLaunchKernel, cudaLaunchKernel)
JUMP(__cudaLaunchKernel_ptsz, cudaLaunchKernel_ptsz)

__attribute__((noinline)) static cudaError_t launch_config(
	const struct cudart_launch_config *config, const void *func, void **args)
{
	struct cu_launch_config c = {
		.grid = {config->grid.x, config->grid.y, config->grid.z},
		.block = {config->block.x, config->block.y, config->block.z},
		.smem = (unsigned int)config->smem,
		.stream = config->stream,
		.attributes = config->attributes,
		.attribute_count = config->attribute_count,
	};
	CUfunction function;
	cudaError_t error = cudart_ready();

	if (error)
		return error;
	error = cudart_function(func, &function);
	if (error)
		return error;
	error = cudart_slots.cuLaunchKernelEx(&c, function, args, NULL);
	return error == CUDA_ERROR_INVALID_HANDLE ? cudaErrorInvalidDeviceFunction : error;
}

cudaError_t cudaLaunchKernelExC(const struct cudart_launch_config *config, const void *func,
				void **args)
{
	cudaError_t error = launch_config(config, func, args);

	return error ? cudart_remember(error) : error;
}
