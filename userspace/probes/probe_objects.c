/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_objects.h"

#include "attach/cuda_side.h"
#include "attach/kernel_side.h"
#include "attach/probe_side.h"

void probe_objects_release(struct probe_objects *objects)
{
	probe_side_free(objects->side);
	cuda_side_free(objects->cuda);
}

int probe_objects_locks(const struct probe_objects *objects)
{
	return objects->side ? probe_side_locks(objects->side) : kernel_side_locks(objects->kernel);
}

static struct probe_prices find_prices(const struct probe_objects *objects, int program, int locks)
{
	const struct probe_calibration calibration = {.program = program, .locks = locks};
	struct probe_prices prices = objects->prices.of;

	/* Site 0 is none: the program does nothing. */
	if (!prices.is_measured)
		(void)probe_calibrate(&calibration, &prices);
	return prices;
}

static int load_probes(struct probe_objects *objects, bool wants_prices)
{
	const struct probe_side_options options = {.kernel = objects->kernel,
						   .blocks_max = objects->blocks_max};
	struct probe_load *load = &objects->load;
	struct probe_prices prices = objects->prices.of;
	struct probe_side *side;

	if (objects->side || load->err)
		return load->err;
	load->err = probe_side_open(&options, load->why, sizeof(load->why), &side);
	if (load->err)
		return load->err;
	if (wants_prices)
		prices = find_prices(objects, probe_side_probe_program(side),
				     probe_side_locks(side));
	pthread_mutex_lock(objects->mutex);
	objects->side = side;
	objects->prices.of = prices;
	objects->prices.alloc_end_ns = probe_side_has_sessions(side) ? 0 : prices.return_ns;
	pthread_mutex_unlock(objects->mutex);
	return 0;
}

static int load_cuda(struct probe_objects *objects, bool wants_prices)
{
	struct probe_load *load = &objects->cuda_load;
	struct probe_prices prices = objects->prices.of;
	struct cuda_side *cuda;

	if (objects->cuda || load->err)
		return load->err;
	load->err = cuda_side_open(objects->kernel, load->why, sizeof(load->why), &cuda);
	if (load->err)
		return load->err;
	if (wants_prices)
		prices =
			find_prices(objects, cuda_side_program(cuda), probe_objects_locks(objects));
	pthread_mutex_lock(objects->mutex);
	objects->cuda = cuda;
	objects->prices.of = prices;
	pthread_mutex_unlock(objects->mutex);
	return 0;
}

int probe_objects_load(struct probe_objects *objects, const struct probe_job *job,
		       bool wants_prices, const char **ret_why)
{
	bool has_cuda = false, has_others = false;
	int err = 0;

	for (size_t i = 0; i < job->site_count; i++) {
		const bool is_of_cuda = job->site[i].site.does == PP_SITE_CUDA;

		has_cuda |= is_of_cuda;
		has_others |= !is_of_cuda;
	}
	*ret_why = objects->load.why;
	if (has_others)
		err = load_probes(objects, wants_prices);
	if (err || !has_cuda)
		return err;
	*ret_why = objects->cuda_load.why;
	return load_cuda(objects, wants_prices);
}
