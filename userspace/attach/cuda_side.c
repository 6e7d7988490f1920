/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/cuda_side.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

#include <pyprofd/config.h>

#include "attach/kernel_side.h"
#include "attach/object_builds.h"
#include "attach/probe_links.h"
#include "base/clock.h"

/* The skeleton needs what crosses the kernel boundary. */
#include "pyprofd_cuda.skel.h"

/* As many free entries of a map that forgets the oldest each CPU may keep for itself:
 * kernel/bpf/bpf_lru_list.c: LOCAL_FREE_TARGET.  Without them a machine with many CPUs would forget
 * what is in use. */
#define LRU_FREE_BY_CPU 128U

DEFINE_SKELETON_CREATE(cuda_side, pyprofd_cuda)

static int make_room(const struct bpf_object *object, uint32_t cpus)
{
	static const char *const names[] = {"cuda_processes", "cuda_threads",  "cuda_calls",
					    "cuda_names",     "cuda_contexts", "cuda_objects"};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && !err; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, names[i]);

		err = bpf_map__set_max_entries(map,
					       bpf_map__max_entries(map) + cpus * LRU_FREE_BY_CPU);
	}
	return err;
}

/* Sets all that must be known before the load. */
static int prepare(void *context, const struct object_has *has)
{
	const struct cuda_side *side = context;
	const struct kernel_side *kernel = side->kernel;
	struct pyprofd_cuda *skeleton = side->skeleton;
	int err = kernel_side_share_maps(kernel, skeleton->obj, true);

	if (!err)
		err = make_room(skeleton->obj, kernel_side_parts(kernel).places);
	skeleton->rodata->scratch_levels = PP_WALK_LEVELS;
	skeleton->rodata->has_cmpxchg = has->cmpxchg;
	skeleton->rodata->switch_tells_state = kernel_side_parts(kernel).switch_tells_state;
	if (err || !probe_links_can_share())
		return err;
	return bpf_program__set_expected_attach_type(skeleton->progs.on_cuda,
						     PROBE_LINKS_ATTACH_TYPE);
}

static const struct object_builds builds = {.what = "the program of CUDA's functions",
					    .elf = pyprofd_cuda__elf_bytes,
					    .create = create,
					    .prepare = prepare};

static void set_descriptors(struct cuda_side *side)
{
	const struct pyprofd_cuda *skeleton = side->skeleton;

	side->program = bpf_program__fd(skeleton->progs.on_cuda);
	side->site_now = bpf_map__fd(skeleton->maps.cuda_site_now);
	side->programs = bpf_map__fd(skeleton->maps.probe_programs);
	side->totals = bpf_map__fd(skeleton->maps.cuda_totals);
	side->removed = bpf_map__fd(skeleton->maps.cuda_removed);
	side->names = bpf_map__fd(skeleton->maps.cuda_names);
	side->blocks = bpf_map__fd(skeleton->maps.cuda_blocks);
	side->ended = bpf_map__fd(skeleton->maps.cuda_ended);
	side->processes = bpf_map__fd(skeleton->maps.gpu_processes);
	side->wholes = bpf_map__fd(skeleton->maps.cuda_wholes);
	side->streams = bpf_map__fd(skeleton->maps.cuda_streams);
	side->stream_bytes = bpf_map__value_size(skeleton->maps.cuda_streams);
	side->threads = bpf_map__fd(skeleton->maps.cuda_threads);
	side->thread_bytes = bpf_map__value_size(skeleton->maps.cuda_threads);
	side->shares = kernel_side_parts(side->kernel).user_shares;
}

int cuda_side_open(const struct kernel_side *kernel, char *why, size_t why_size,
		   struct cuda_side **ret_side)
{
	OWNED(cuda_side) struct cuda_side *side = calloc(1, sizeof(*side));
	int err;

	if (!side)
		return -ENOMEM;
	side->kernel = kernel;
	err = object_builds_load(&builds, side, why, why_size);
	if (err)
		return err;
	kernel_side_add_maps(kernel, side->skeleton->obj);
	set_descriptors(side);
	cuda_side_see(side);
	*ret_side = TAKE(side);
	return 0;
}

void cuda_side_free(struct cuda_side *side)
{
	if (!side)
		return;
	pyprofd_cuda__destroy(side->skeleton);
	free(side);
}

int cuda_side_set_gate(struct cuda_side *side, uint32_t kind, const struct pp_gate *gate)
{
	return bpf_map_update_elem(bpf_map__fd(side->skeleton->maps.cuda_gates), &kind, gate,
				   BPF_ANY);
}

/* Reads at most `room` keys of 4 or 8 bytes.  Returns how many. */
static uint32_t read_keys(int map_fd, uint64_t *key, uint32_t room)
{
	const void *last = NULL;
	uint32_t count = 0;

	while (count < room && !bpf_map_get_next_key(map_fd, last, &key[count]))
		last = &key[count++];
	return count;
}

static void clear(int map_fd)
{
	uint64_t key[PP_GPU_PROCESSES_MAX];
	uint32_t count;

	_Static_assert(sizeof(struct pp_process_id) == sizeof(key[0]), "room for each key");
	while ((count = read_keys(map_fd, key, ARRAY_SIZE(key))))
		for (uint32_t i = 0; i < count; i++)
			(void)bpf_map_delete_elem(map_fd, &key[i]);
}

/* Nothing is known of any process from now on.  The kernel side does not write meanwhile: it is
 * blind. */
static void forget_states(const struct cuda_side *side, uint32_t sight)
{
	const uint64_t now_ns = mono_ns();
	uint64_t key[PP_GPU_PROCESSES_MAX];
	uint32_t count = read_keys(side->processes, key, ARRAY_SIZE(key));
	struct pp_gpu_process process;

	for (uint32_t i = 0; i < count; i++) {
		if (bpf_map_lookup_elem(side->processes, &key[i], &process))
			continue;
		pp_gpu_forget(&process, now_ns);
		process.sight = sight;
		(void)bpf_map_update_elem(side->processes, &key[i], &process, BPF_EXIST);
	}
}

void cuda_side_go_blind(struct cuda_side *side)
{
	volatile struct pp_config *config = kernel_side_config(side->kernel);

	side->seen_since_ns = UINT64_MAX;
	__atomic_store_n(&config->gpu_is_blind, 1, __ATOMIC_SEQ_CST);
	forget_states(side, config->gpu_sight);
}

void cuda_side_see(struct cuda_side *side)
{
	volatile struct pp_config *config = kernel_side_config(side->kernel);
	const uint32_t sight = config->gpu_sight + 1;

	side->seen_since_ns = UINT64_MAX; /* no process is whole now */
	__atomic_store_n(&config->gpu_is_blind, 1, __ATOMIC_SEQ_CST);
	clear(side->wholes);
	clear(side->streams);
	forget_states(side, sight);
	/* Threads forget what they have marked; none marks now. */
	__atomic_fetch_add(&config->process_changes, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&config->gpu_sight, sight, __ATOMIC_SEQ_CST);
	/* Of those few functions that have probes elsewhere, what is queued does not follow. */
	if (!probe_links_can_share())
		return;
	side->seen_since_ns = mono_ns();
	__atomic_store_n(&config->gpu_is_blind, 0, __ATOMIC_SEQ_CST);
}

int cuda_side_add_whole(const struct cuda_side *side, struct pp_process_id id)
{
	return bpf_map_update_elem(side->wholes, &id.tgid, &id.generation, BPF_ANY);
}

int cuda_side_set_site(struct cuda_side *side, uint32_t number, const struct pp_site *site)
{
	return bpf_map_update_elem(bpf_map__fd(side->skeleton->maps.cuda_sites), &number, site,
				   BPF_ANY);
}

int cuda_side_set_count(const struct cuda_side *side, uint64_t rows)
{
	const uint32_t zero = 0;

	return bpf_map_update_elem(bpf_map__fd(side->skeleton->maps.cuda_rows), &zero, &rows,
				   BPF_ANY);
}

void cuda_side_remove_block(const struct cuda_side *side, const struct pp_cuda_block_key *key,
			    const struct pp_cuda_block *block)
{
	const int counts = bpf_map__fd(side->skeleton->maps.cuda_block_counts);
	const uint32_t at = PP_CUDA_BLOCKS_REMOVED;
	struct pp_cuda_block now;
	uint64_t removed = 0;

	if (bpf_map_lookup_elem(side->blocks, key, &now) || now.since_ns != block->since_ns ||
	    bpf_map_delete_elem(side->blocks, key))
		return;
	user_shares_give(&side->shares, now.user, offsetof(struct pp_user_share, gpu_blocks));
	(void)bpf_map_lookup_elem(counts, &at, &removed);
	removed++;
	(void)bpf_map_update_elem(counts, &at, &removed, BPF_ANY);
}
