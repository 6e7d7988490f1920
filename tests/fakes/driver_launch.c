/* SPDX-License-Identifier: BSD-2-Clause */
/* Launches of kernels.  The entry points only gather their arguments, so that they begin with few
 * bytes. */
#include "driver.h"

struct launch {
	const struct function *function;
	unsigned int grid[3], block[3], smem;
	CUstream stream;
	void *const *params;
	bool is_per_thread;
};

static uint64_t threads_of(const struct launch *launch)
{
	return (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2] * launch->block[0] *
	       launch->block[1] * launch->block[2];
}

__attribute__((noinline)) static CUresult launch_now(enum api api, const struct launch *launch)
{
	const struct function *function = launch->function;
	CUresult error = api_enter(api);
	struct kernel_row *row;
	struct stream *stream;
	struct work work = {.kind = WORK_KERNEL, .api = api};

	if (error)
		return error;
	if (!function || function->magic != FUNCTION_MAGIC)
		return api_fail(api, CUDA_ERROR_INVALID_HANDLE);
	if (!threads_of(launch))
		return api_fail(api, CUDA_ERROR_INVALID_VALUE);
	stream = stream_find(launch->stream, launch->is_per_thread);
	if (!stream)
		return api_fail(api, CUDA_ERROR_INVALID_CONTEXT);
	row = function->row;
	work.kernel = row;
	work.duration_ns = row->spins && launch->params ? *(const uint64_t *)launch->params[0]
							: get(&row->duration_ns);
	error = stream_submit(stream, &work);
	if (error)
		return error;
	add(&row->calls, 1);
	add(&row->threads, threads_of(launch));
	add(&truth.checksum,
	    fake_cuda_launch_sum(launch->grid, launch->block, launch->smem, launch->stream,
				 launch->params, row->param_count));
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
			unsigned int bx, unsigned int by, unsigned int bz, unsigned int smem,
			CUstream stream, void **params, void **extra)
{
	struct launch launch = {f, {gx, gy, gz}, {bx, by, bz}, smem, stream, params, false};

	(void)extra;
	return launch_now(API_cuLaunchKernel, &launch);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
			     unsigned int bx, unsigned int by, unsigned int bz, unsigned int smem,
			     CUstream stream, void **params, void **extra)
{
	struct launch launch = {f, {gx, gy, gz}, {bx, by, bz}, smem, stream, params, true};

	(void)extra;
	return launch_now(API_cuLaunchKernel_ptsz, &launch);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
				   unsigned int bx, unsigned int by, unsigned int bz,
				   unsigned int smem, CUstream stream, void **params)
{
	struct launch launch = {f, {gx, gy, gz}, {bx, by, bz}, smem, stream, params, false};

	return launch_now(API_cuLaunchCooperativeKernel, &launch);
}

/* The pair of names at one address. */
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy,
					unsigned int gz, unsigned int bx, unsigned int by,
					unsigned int bz, unsigned int smem, CUstream stream,
					void **params)
	__attribute__((alias("cuLaunchCooperativeKernel")));

static struct launch launch_of(const struct cu_launch_config *c, CUfunction f, void **params)
{
	return (struct launch){
		.function = f,
		.grid = {c->grid[0], c->grid[1], c->grid[2]},
		.block = {c->block[0], c->block[1], c->block[2]},
		.smem = c->smem,
		.stream = c->stream,
		.params = params,
	};
}

CUresult cuLaunchKernelEx(const struct cu_launch_config *config, CUfunction f, void **params,
			  void **extra)
{
	struct launch launch = launch_of(config, f, params);

	(void)extra;
	return launch_now(API_cuLaunchKernelEx, &launch);
}

CUresult cuLaunchKernelEx_ptsz(const struct cu_launch_config *config, CUfunction f, void **params,
			       void **extra)
{
	struct launch launch = launch_of(config, f, params);

	(void)extra;
	launch.is_per_thread = true;
	return launch_now(API_cuLaunchKernelEx_ptsz, &launch);
}
