/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/probe_side.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "attach/kernel_side.h"
#include "attach/object_builds.h"
#include "attach/probe_links.h"

/* The skeleton needs what crosses the kernel boundary. */
#include "pyprofd_probe.skel.h"

DEFINE_SKELETON_CREATE(probe_side, pyprofd_probe)

/* Sets how the programs are attached. */
static int set_attach_types(struct probe_side *side)
{
	struct pyprofd_probe *skeleton = side->skeleton;
	const bool is_shared = probe_links_can_share();
	int err = 0;

	side->has_sessions = probe_links_have_sessions();
	skeleton->rodata->is_session = side->has_sessions;
	if (is_shared)
		err = bpf_program__set_expected_attach_type(skeleton->progs.on_probe,
							    PROBE_LINKS_ATTACH_TYPE);
	if (is_shared && !err)
		err = bpf_program__set_expected_attach_type(
			skeleton->progs.on_alloc,
			side->has_sessions ? PROBE_LINKS_SESSION_TYPE : PROBE_LINKS_ATTACH_TYPE);
	return err;
}

/* The maps that on_alloc alone uses take a megabyte. */
static void leave_alloc_out(struct pyprofd_probe *skeleton)
{
	struct bpf_map *const own[] = {skeleton->maps.alloc_cpus, skeleton->maps.allocatings,
				       skeleton->maps.blocks,	  skeleton->maps.debts,
				       skeleton->maps.allocators, skeleton->maps.alloc_programs};

	bpf_program__set_autoload(skeleton->progs.on_alloc, false);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		(void)bpf_map__set_autocreate(own[i], false);
}

/* Sets all that must be known before the load. */
static int prepare(void *context, const struct object_has *has)
{
	struct probe_side *side = context;
	const struct probe_side_options *options = &side->options;
	const struct kernel_side *kernel = options->kernel;
	struct pyprofd_probe *skeleton = side->skeleton;
	int err = kernel_side_share_maps(kernel, skeleton->obj, true);

	if (!err)
		err = bpf_map__set_max_entries(skeleton->maps.call_scratch,
					       bpf_map__max_entries(skeleton->maps.scratch));
	skeleton->rodata->scratch_levels = PP_WALK_LEVELS;
	skeleton->rodata->has_cmpxchg = has->cmpxchg;
	skeleton->rodata->switch_tells_state = kernel_side_parts(kernel).switch_tells_state;
	skeleton->rodata->only_site = options->only_site;
	skeleton->rodata->tracepoints_have_cookies =
		!options->only_site &&
		libbpf_probe_bpf_helper(BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_FUNC_get_attach_cookie,
					NULL) == 1;
	if (options->only_site)
		bpf_program__set_autoload(skeleton->progs.on_probe, false);
	if (!options->blocks_max)
		leave_alloc_out(skeleton);
	else if (!err)
		err = bpf_map__set_max_entries(skeleton->maps.blocks, options->blocks_max);
	return err ? err : set_attach_types(side);
}

static const struct object_builds builds = {.what = "the programs of probes",
					    .elf = pyprofd_probe__elf_bytes,
					    .create = create,
					    .prepare = prepare};

static void set_descriptors(struct probe_side *side)
{
	const struct pyprofd_probe *skeleton = side->skeleton;

	side->program = bpf_program__fd(skeleton->progs.on_probe);
	side->programs = bpf_map__fd(skeleton->maps.probe_programs);
	side->tracepoint_program = bpf_program__fd(skeleton->progs.on_tracepoint);
	side->alloc_program = bpf_program__fd(skeleton->progs.on_alloc);
	side->alloc_programs = bpf_map__fd(skeleton->maps.alloc_programs);
	side->site_now = bpf_map__fd(skeleton->maps.site_now);
	side->blocks = bpf_map__fd(skeleton->maps.blocks);
	side->debts = bpf_map__fd(skeleton->maps.debts);
	side->payers = bpf_map__fd(skeleton->maps.payers);
}

int probe_side_open(const struct probe_side_options *options, char *why, size_t why_size,
		    struct probe_side **ret_side)
{
	OWNED(probe_side) struct probe_side *side = calloc(1, sizeof(*side));
	int err;

	if (!side)
		return -ENOMEM;
	side->options = *options;
	err = object_builds_load(&builds, side, why, why_size);
	if (err)
		return err;
	kernel_side_add_maps(options->kernel, side->skeleton->obj);
	set_descriptors(side);
	*ret_side = TAKE(side);
	return 0;
}

void probe_side_free(struct probe_side *side)
{
	if (!side)
		return;
	pyprofd_probe__destroy(side->skeleton);
	free(side);
}

int probe_side_set_gate(struct probe_side *side, uint32_t probe, const struct pp_gate *gate)
{
	return bpf_map_update_elem(bpf_map__fd(side->skeleton->maps.gates), &probe, gate, BPF_ANY);
}

/* Hits that come in between are not counted, which a bound bears. */
int probe_side_set_payer_gate(const struct probe_side *side, const struct pp_payer_key *key,
			      uint32_t gate)
{
	struct pp_payer payer;
	int err = bpf_map_lookup_elem(side->payers, key, &payer);

	payer.gate = gate;
	return err ?: bpf_map_update_elem(side->payers, key, &payer, BPF_EXIST);
}

int probe_side_add_allocator(struct probe_side *side, uint32_t file)
{
	const uint32_t yes = 1;

	return bpf_map_update_elem(bpf_map__fd(side->skeleton->maps.allocators), &file, &yes,
				   BPF_ANY);
}

int probe_side_set_site(struct probe_side *side, uint32_t number, const struct pp_site *site)
{
	return bpf_map_update_elem(bpf_map__fd(side->skeleton->maps.sites), &number, site, BPF_ANY);
}

int probe_side_get_hits(const struct probe_side *side, struct pp_hits ret_hits[PP_PROBES_MAX])
{
	const int map = bpf_map__fd(side->skeleton->maps.hits);
	int err = 0;

	for (uint32_t probe = 0; probe < PP_PROBES_MAX && !err; probe++)
		err = kernel_side_sum(side->options.kernel, map, probe, (__u64 *)&ret_hits[probe],
				      sizeof(*ret_hits) / sizeof(__u64));
	return err;
}
