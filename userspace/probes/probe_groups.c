/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_groups.h"

#include <errno.h>
#include <stdlib.h>

#include "attach/cuda_side.h"
#include "attach/kernel_side.h"
#include "attach/probe_side.h"
#include "probes/probe_worker.h"

static struct probe_group *find(struct probe_groups *groups, uint32_t number)
{
	for (size_t i = 0; i < groups->count; i++)
		if (groups->group[i].number == number)
			return &groups->group[i];
	return NULL;
}

int probe_groups_make(const struct probe_groups_place *place, struct probe_groups *ret_groups)
{
	const struct probe_job *job = place->job;
	struct probe_groups groups = {.place = *place,
				      .group = calloc(job->site_count, sizeof(*groups.group))};

	if (!groups.group)
		return -ENOMEM;
	for (size_t i = 0; i < job->site_count; i++)
		if (!find(&groups, job->site[i].group))
			groups.group[groups.count++].number = job->site[i].group;
	*ret_groups = groups;
	return 0;
}

int probe_groups_set_site(const struct probe_groups_place *place, uint32_t number,
			  const struct pp_site *site)
{
	return site->does == PP_SITE_CUDA ? cuda_side_set_site(place->cuda, number, site)
					  : probe_side_set_site(place->side, number, site);
}

/* Says whether only one of what begins calls and what ends them may be attached: the kernel takes
 * some 25 ms for each link, in which ends without beginnings are no losses.  Sites may be those of
 * other jobs, too, of other processes. */
static void set_partial(const struct probe_groups_place *place, uint32_t number, bool is_partial)
{
	const struct probe_job *job = place->job;

	for (size_t i = 0; i < job->site_count; i++) {
		struct pp_site site = job->site[i].site;

		if (job->site[i].group != number)
			continue;
		site.is_partial = is_partial;
		(void)probe_groups_set_site(place, job->site[i].number, &site);
	}
}

static void take_off(struct probe_group *group, const struct probe_groups_place *place)
{
	if (!group->is_on)
		return;
	set_partial(place, group->number, true);
	/* What begins a call first: no call is seen to begin that is not seen to end. */
	probe_links_release(&group->entries);
	probe_links_release(&group->returns);
	set_partial(place, group->number, false);
	group->is_on = false;
}

void probe_groups_release(struct probe_groups *groups)
{
	for (size_t i = 0; i < groups->count; i++)
		take_off(&groups->group[i], &groups->place);
	free(groups->group);
	*groups = (struct probe_groups){};
}

static bool is_of_allocator(const struct probe_worker_site *site)
{
	return site->site.does == PP_SITE_ALLOC_BEGIN || site->site.does == PP_SITE_ALLOC_END ||
	       site->site.does == PP_SITE_FREE;
}

/* A group's sites have all the same program: they are of one probe, or stay on. */
static void choose_program(const struct probe_groups_place *place,
			   const struct probe_worker_site *site,
			   struct probe_links_options *options)
{
	const struct probe_side *side = place->side;
	const bool is_alloc = is_of_allocator(site);

	if (site->site.does == PP_SITE_CUDA) {
		options->program = place->cuda->program;
		options->programs = place->cuda->programs;
		options->site_now = place->cuda->site_now;
		return;
	}
	options->site_now = side->site_now;
	options->program = is_alloc ? side->alloc_program : side->program;
	options->programs = is_alloc ? side->alloc_programs : side->programs;
	options->is_session = is_alloc && side->has_sessions;
}

static int attach(const struct probe_groups_place *place, uint32_t number, bool is_return,
		  int locks, struct probe_links *ret_links)
{
	const struct probe_job *job = place->job;
	OWNED_MEM struct probe_link_site *site = calloc(job->site_count, sizeof(*site));
	struct probe_links_options options = {.file = job->file,
					      .locks = locks,
					      .pid = job->pid,
					      .is_return = is_return,
					      .is_shared = place->is_shared,
					      .site = site};

	if (!site)
		return -ENOMEM;
	for (size_t i = 0; i < job->site_count; i++) {
		if (job->site[i].group != number || job->site[i].is_return != is_return)
			continue;
		choose_program(place, &job->site[i], &options);
		site[options.count++] =
			(struct probe_link_site){.offset = job->site[i].offset,
						 .semaphore = job->site[i].semaphore,
						 .cookie = job->site[i].number};
	}
	/* A session sees the ends by the sites of the beginnings. */
	if (!options.count || (is_return && options.is_session))
		return 0;
	return probe_links_attach(&options, ret_links);
}

static int put_on(struct probe_group *group, const struct probe_groups_place *place)
{
	const int locks = place->locks;
	int err;

	set_partial(place, group->number, true);
	/* What ends a call first: no beginning is seen without its end.  One look at who keeps a
	 * lock goes for both: what is attached could not be taken off beside him either. */
	err = attach(place, group->number, true, locks, &group->returns);
	if (!err)
		err = attach(place, group->number, false, group->returns.count ? -1 : locks,
			     &group->entries);
	if (err)
		probe_links_release(&group->returns);
	set_partial(place, group->number, false);
	group->is_on = !err;
	return err;
}

int probe_groups_set(struct probe_groups *groups, uint64_t off)
{
	int err = 0;

	for (size_t i = 0; i < groups->count && !err; i++) {
		struct probe_group *group = &groups->group[i];
		const bool stays = group->number == PROBE_GROUP_STAYS;
		const bool is_wanted = stays || !(off >> (group->number - 1) & 1);

		if (is_wanted && !group->is_on)
			err = put_on(group, &groups->place);
		else if (!is_wanted && group->is_on)
			take_off(group, &groups->place);
	}
	return err;
}

void probe_objects_release(struct probe_objects *objects)
{
	probe_side_free(objects->side);
	cuda_side_free(objects->cuda);
}

static struct probe_prices find_prices(const struct probe_objects *objects, int program)
{
	const struct probe_calibration calibration = {
		.program = program, .locks = kernel_side_parts(objects->kernel).locks};
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
		prices = find_prices(objects, side->program);
	pthread_mutex_lock(objects->mutex);
	objects->side = side;
	objects->prices.of = prices;
	objects->prices.alloc_end_ns = side->has_sessions ? 0 : prices.return_ns;
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
		prices = find_prices(objects, cuda->program);
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
