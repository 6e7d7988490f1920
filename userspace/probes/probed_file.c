/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probed_file.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "discover/mapping_set.h"
#include "elf/probe_sites.h"
#include "files/opener.h"
#include "files/opening.h"
#include "probes/cuda_functions.h"
#include "probes/probe_bounds.h"
#include "probes/probe_groups.h"
#include "probes/probe_names.h"
#include "probes/probe_plan.h"
#include "probes/probe_worker.h"

int command_file_open(struct opener *opener, const char *command, struct opened_file *ret_found,
		      struct opener_file *ret_file)
{
	const char *const all = getenv("PATH");
	const char *from = all ? all : "/usr/bin:/bin";
	char path[PATH_MAX];
	int err = -ENOENT;

	if (strchr(command, '/'))
		return opener_open_path(opener, command, ret_found, ret_file);
	while (err && *from) {
		const size_t size = strcspn(from, ":");

		snprintf(path, sizeof(path), "%.*s/%s", (int)size, from, command);
		err = opener_open_path(opener, path, ret_found, ret_file);
		if (!err && !ret_found->is_executable) {
			opener_close(opener, ret_file);
			err = -EACCES;
		}
		from += size + (from[size] == ':');
	}
	return err;
}

/* Of one place of the interpreter's own probes in a file.  A CPython has one or two, and the kernel
 * writes to each mapping of the file for each of them, during which no process can fork. */
#define PYTHON_SITES_MAX 4U

static void note_raiser(struct probe_wants *list, const struct probe_site *site)
{
	if (site->wanted == list->row_count)
		list->line = site->semaphore_offset;
	else if (!list->carrier)
		list->carrier = site->offset;
}

/* Adds the site that raises the semaphore of `line`; there is room for it. */
static int raise_line(struct probed_file *file, const struct probed_file_sources *sources,
		      const struct probe_wants *list)
{
	const uint32_t number = site_numbers_take(sources->numbers, file->uid);

	if (!number)
		return -ENOSPC;
	file->site[file->site_count++] = (struct probe_worker_site){
		.number = number, .offset = list->carrier, .semaphore = list->line};
	return 0;
}

/* Only what Python's own probes cost is not governed: they are hit seldom. */
static uint32_t group_of(const struct probed_file_sources *sources, uint32_t row)
{
	if (sources->plan->row[row].place == PROBE_IN_PYTHON)
		return PROBE_GROUP_STAYS;
	return 1 + probe_bounds_leader(sources->bounds, row);
}

/* Launches of a kind, and what is called as often, have a link of their own, as what is probed for
 * a time has, and all else of CUDA's together has one. */
static uint32_t group_of_cuda(const struct probed_file_sources *sources, uint32_t hit)
{
	return 1 + (hit < PP_CUDA_LAUNCHES ? sources->plan->cuda_launch_row + hit
					   : sources->plan->cuda_row);
}

static void set_cuda(struct probed_file *file, const struct cuda_function *function,
		     const struct probe_row *row, const struct probe_site *place,
		     struct pp_site *site)
{
	const bool is_dear = place->cost == PROBE_COST_SINGLE_STEP;

	site->cuda = function->site;
	site->cuda.api = (uint16_t)(row->cuda_first + place->alternative);
	site->cuda.hit = is_dear + (cuda_function_is_frequent(function) ? PP_CUDA_HIT_LAUNCH
									: PP_CUDA_HIT_OTHER);
	site->cuda.is_twin = place->is_twin;
	file->has_driver |= row->place == PROBE_IN_DRIVER;
	file->has_runtime |= row->place == PROBE_IN_RUNTIME;
}

static void set_alloc(struct probed_file *file, const struct pp_alloc_site *alloc,
		      uint8_t alternative, struct pp_site *site)
{
	site->alloc = *alloc;
	site->alloc.function = alternative + 1;
	/* Where memory is mapped by the C library, that is an allocator, too. */
	file->has_allocator = true;
}

/* Returns whether a file has as many sites of a place of a probe as are put on.  taken: counts
 * them. */
static bool has_enough(const struct probed_file *file, const struct probed_file_sources *sources,
		       uint32_t row, uint32_t *taken)
{
	if (sources->plan->row[row].place != PROBE_IN_PYTHON || (*taken)++ < PYTHON_SITES_MAX)
		return false;
	if (*taken == PYTHON_SITES_MAX + 1)
		user_quota_refuse(&sources->numbers->quota, file->uid);
	return true;
}

/* Adds a site; there is room for it.  Returns 0; -ENOSPC. */
static int add_site(struct probed_file *file, const struct probed_file_sources *sources,
		    const struct probe_site *site, uint32_t row, const struct probe_leg *leg)
{
	struct probe_worker_site *made = &file->site[file->site_count];
	const struct pp_alloc_site *alloc = probe_plan_alloc(sources->plan, row, site->alternative);
	const struct cuda_function *cuda = probe_plan_cuda(sources->plan, row, site->alternative);

	made->number = site_numbers_take(sources->numbers, file->uid);
	if (!made->number)
		return -ENOSPC;
	probe_bounds_see_site(sources->bounds, row, (enum probe_cost)site->cost);
	made->offset = site->offset;
	made->semaphore = site->semaphore_offset;
	made->is_return = leg->is_return;
	made->site = (struct pp_site){.does = leg->does, .probe = row};
	memcpy(made->site.arg, site->arg, sizeof(made->site.arg));
	made->group = group_of(sources, row);
	if (alloc)
		set_alloc(file, alloc, site->alternative, &made->site);
	if (cuda) {
		set_cuda(file, cuda, &sources->plan->row[row], site, &made->site);
		made->site.cuda.is_end = leg->is_return;
		made->group = group_of_cuda(sources, made->site.cuda.hit);
	}
	file->site_count++;
	return 0;
}

/* Adds a site of a row's leg, unless it may not have one.  taken: how many that leg has. */
static int number_site(struct probed_file *file, const struct probed_file_sources *sources,
		       const struct probe_site *site, const struct probe_wants *list,
		       uint32_t *taken)
{
	const uint32_t row = list->of[site->wanted].row, leg = list->of[site->wanted].leg;
	const struct probe_row *probe = &sources->plan->row[row];

	/* A function that cannot be entered by its return address gets neither of its two legs:
	 * there would be no end. */
	if (!site->is_entry && probe->leg[PROBE_LEGS - 1].is_return)
		return 0;
	if (has_enough(file, sources, row, taken))
		return 0;
	return add_site(file, sources, site, row, &probe->leg[leg]);
}

int probed_file_number_sites(struct probed_file *file, const struct probed_file_sources *sources,
			     const struct probe_sites *sites, struct probe_wants *list)
{
	uint32_t taken[PROBE_WANTED_MAX] = {};
	int err = 0;

	file->site = calloc(sites->site_count + 1, sizeof(*file->site));
	if (!file->site)
		return -ENOMEM;
	for (size_t i = 0; i < sites->site_count && !err; i++) {
		const struct probe_site *site = &sites->site[i];

		if (site->wanted >= list->row_count)
			note_raiser(list, site);
		else
			err = number_site(file, sources, site, list, &taken[site->wanted]);
	}
	if (err || !file->site_count || !list->line || !list->carrier)
		return err;
	return raise_line(file, sources, list);
}

void probed_file_drop_sites(struct probed_file *file, struct site_numbers *numbers)
{
	for (size_t i = 0; i < file->site_count; i++)
		site_numbers_give(numbers, file->uid, file->site[i].number);
	file->site_count = 0;
}

void probed_file_free(struct probed_file *file)
{
	if (!file)
		return;
	free(file->site);
	free(file);
}

void probed_file_note_inode(struct probed_file *file, const struct file_identity *identity)
{
	file->key = identity->key;
	file->is_roots = !identity->owner;
	file->is_layered = identity->is_layered;
}

static bool sites_are_equal(const struct probed_file *a, const struct probed_file *b)
{
	if (a->site_count != b->site_count)
		return false;
	for (size_t i = 0; i < a->site_count; i++)
		if (a->site[i].offset != b->site[i].offset ||
		    a->site[i].is_return != b->site[i].is_return ||
		    a->site[i].site.probe != b->site[i].site.probe ||
		    a->site[i].site.does != b->site[i].site.does)
			return false;
	return true;
}

uint64_t probed_file_rows(const struct probed_file *file, uint32_t launch_row)
{
	uint64_t rows = 0;

	for (size_t i = 0; i < file->site_count; i++) {
		const struct pp_site *site = &file->site[i].site;

		if (site->does != PP_SITE_CUDA)
			rows |= 1ULL << site->probe;
		else if (site->cuda.hit < PP_CUDA_LAUNCHES)
			rows |= 1ULL << (launch_row + site->cuda.hit);
	}
	return rows;
}

bool probed_file_is_same_code(const struct probed_file *a, const struct probed_file *b)
{
	return a->id == b->id ||
	       (a->key.inode && file_key_equal(&a->key, &b->key) && sites_are_equal(a, b));
}

void probed_file_tell_left_out(const struct probed_file *file, bool is_told[2])
{
	OWNED_MEM char *names = NULL;

	if (!(file->has_driver || file->has_runtime) || is_told[file->has_runtime])
		return;
	is_told[file->has_runtime] = true;
	names = cuda_functions_left_out(file->has_runtime ? CUDA_RUNTIME : CUDA_DRIVER);
	log_warn("before Linux 6.6 only launches, copies to and from the device and "
		 "synchronisations of CUDA are probed: other calls are missing, and those for the "
		 "default stream of each thread (--verbose names them)");
	log_debug("not probed: %s", names ? names : "out of memory");
}

void site_numbers_init(struct site_numbers *numbers)
{
	*numbers = (struct site_numbers){.quota.total = PP_SITES_MAX - 1};
}

void site_numbers_release(struct site_numbers *numbers)
{
	user_quota_release(&numbers->quota);
}

uint32_t site_numbers_take(struct site_numbers *numbers, uint32_t uid)
{
	uint32_t number;

	if (user_quota_take(&numbers->quota, uid, 1))
		return 0;
	if (numbers->used < PP_SITES_MAX - 1)
		return ++numbers->used;
	assert(numbers->free_count);
	number = numbers->free[numbers->first];
	numbers->first = (numbers->first + 1) % PP_SITES_MAX;
	numbers->free_count--;
	return number;
}

void site_numbers_give(struct site_numbers *numbers, uint32_t uid, uint32_t number)
{
	user_quota_give(&numbers->quota, uid, 1);
	assert(number && number <= numbers->used && numbers->free_count < PP_SITES_MAX);
	numbers->free[(numbers->first + numbers->free_count++) % PP_SITES_MAX] = number;
}
