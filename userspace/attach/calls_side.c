/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/calls_side.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "attach/kernel_side.h"
#include "attach/object_builds.h"
#include "attach/probe_links.h"

/* The skeleton needs what crosses the kernel boundary. */
#include "pyprofd_calls.skel.h"

DEFINE_SKELETON_CREATE(calls_side, pyprofd_calls)

/* What has no program that uses it is not there. */
static void choose(struct pyprofd_calls *skeleton, enum exact_what what)
{
	struct bpf_program *const programs[][PP_CALL_EVENTS] = {
		[EXACT_CALLS] = {skeleton->progs.on_call_entry, skeleton->progs.on_call_return},
		[EXACT_LINES] = {skeleton->progs.on_line_entry, skeleton->progs.on_line_return,
				 skeleton->progs.on_line},
	};
	struct bpf_map *const of_calls[] = {skeleton->maps.call_nodes, skeleton->maps.call_threads};
	struct bpf_map *const of_lines[] = {skeleton->maps.line_functions, skeleton->maps.line_rows,
					    skeleton->maps.line_threads, skeleton->maps.line_runs};

	for (size_t kind = 0; kind < ARRAY_SIZE(programs); kind++)
		for (size_t event = 0; event < PP_CALL_EVENTS; event++)
			if (programs[kind][event])
				bpf_program__set_autoload(programs[kind][event], kind == what);
	for (size_t i = 0; i < ARRAY_SIZE(of_calls); i++)
		bpf_map__set_autocreate(of_calls[i], what == EXACT_CALLS);
	for (size_t i = 0; i < ARRAY_SIZE(of_lines); i++)
		bpf_map__set_autocreate(of_lines[i], what == EXACT_LINES);
}

/* Sets all that must be known before the load. */
static int prepare(void *context, const struct object_has *has)
{
	const struct calls_side *side = context;
	const struct kernel_side *kernel = side->kernel;
	struct pyprofd_calls *skeleton = side->skeleton;
	struct bpf_program *program;
	int err = kernel_side_share_maps(kernel, skeleton->obj, true);

	choose(skeleton, side->what);
	skeleton->rodata->scratch_levels = PP_WALK_LEVELS;
	skeleton->rodata->has_cmpxchg = has->cmpxchg;
	skeleton->rodata->switch_tells_state = kernel_side_parts(kernel).switch_tells_state;
	if (err || !probe_links_can_share())
		return err;
	bpf_object__for_each_program(program, skeleton->obj) if (!err) err =
		bpf_program__set_expected_attach_type(program, PROBE_LINKS_ATTACH_TYPE);
	return err;
}

static void set_descriptors(struct calls_side *side)
{
	const struct pyprofd_calls *skeleton = side->skeleton;
	const bool is_lines = side->what == EXACT_LINES;

	side->program[PP_CALL_ENTRY] = bpf_program__fd(is_lines ? skeleton->progs.on_line_entry
								: skeleton->progs.on_call_entry);
	side->program[PP_CALL_RETURN] = bpf_program__fd(is_lines ? skeleton->progs.on_line_return
								 : skeleton->progs.on_call_return);
	side->program[PP_CALL_LINE] = bpf_program__fd(skeleton->progs.on_line);
	side->nodes = bpf_map__fd(skeleton->maps.call_nodes);
	side->threads = bpf_map__fd(skeleton->maps.call_threads);
	side->rows = bpf_map__fd(skeleton->maps.line_rows);
	side->runs = bpf_map__fd(skeleton->maps.line_runs);
	side->locks = kernel_side_parts(side->kernel).locks;
	side->has_cookies = probe_links_have_cookies();
}

int calls_side_open(const struct kernel_side *kernel, enum exact_what what, char *why,
		    size_t why_size, struct calls_side **ret_side)
{
	const struct object_builds builds = {.what = what == EXACT_CALLS
							     ? "the programs of exact calls"
							     : "the programs of exact lines",
					     .elf = pyprofd_calls__elf_bytes,
					     .create = create,
					     .prepare = prepare};
	OWNED(calls_side) struct calls_side *side = calloc(1, sizeof(*side));
	int err;

	if (!side)
		return -ENOMEM;
	side->kernel = kernel;
	side->what = what;
	err = object_builds_load(&builds, side, why, why_size);
	if (err)
		return err;
	kernel_side_add_maps(kernel, side->skeleton->obj);
	set_descriptors(side);
	*ret_side = TAKE(side);
	return 0;
}

void calls_side_free(struct calls_side *side)
{
	if (!side)
		return;
	pyprofd_calls__destroy(side->skeleton);
	free(side);
}

int calls_side_set_site(struct calls_side *side, uint32_t number, enum pp_call_event event,
			const struct pp_call_site *site)
{
	const uint32_t at = number * PP_CALL_EVENTS + event;

	return bpf_map_update_elem(bpf_map__fd(side->skeleton->maps.call_sites), &at, site,
				   BPF_ANY);
}

/* Sets the one entry of a map. */
static int set_only(const struct bpf_map *map, const void *value)
{
	const uint32_t zero = 0;

	return bpf_map_update_elem(bpf_map__fd(map), &zero, value, BPF_ANY);
}

int calls_side_set_costs(struct calls_side *side, const void *costs)
{
	return set_only(side->what == EXACT_LINES ? side->skeleton->maps.line_costs
						  : side->skeleton->maps.call_costs,
			costs);
}

int calls_side_set_target(struct calls_side *side, const struct pp_line_target *target)
{
	return set_only(side->skeleton->maps.line_target, target);
}

/* Its value is some numbers on each CPU. */
static const struct bpf_map *sums_of(const struct calls_side *side)
{
	return side->what == EXACT_LINES ? side->skeleton->maps.line_sums
					 : side->skeleton->maps.call_sums;
}

int calls_side_get_sums(const struct calls_side *side, void *ret_sums)
{
	const struct bpf_map *map = sums_of(side);

	return kernel_side_sum(side->kernel, bpf_map__fd(map), 0, ret_sums,
			       bpf_map__value_size(map) / sizeof(__u64));
}

int calls_side_clear_sums(struct calls_side *side)
{
	const struct bpf_map *map = sums_of(side);
	OWNED_MEM void *zeros =
		calloc(kernel_side_parts(side->kernel).cpu_count, bpf_map__value_size(map));

	return zeros ? set_only(map, zeros) : -ENOMEM;
}
