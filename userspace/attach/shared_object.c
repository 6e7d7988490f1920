/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/shared_object.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "attach/kernel_side.h"

static bool is_own(const struct bpf_map *map, const char *const *own, size_t own_count)
{
	/* Constants and variables of the object itself: ".rodata" and the like. */
	if (bpf_map__is_internal(map))
		return true;
	for (size_t i = 0; i < own_count; i++)
		if (!strcmp(bpf_map__name(map), own[i]))
			return true;
	return false;
}

static int use_map(struct bpf_map *map, const struct kernel_side *side)
{
	int fd;
	int err = kernel_side_find_map(side, bpf_map__name(map), &fd);

	if (err == -ENOENT)
		return 0; /* the object's own, whatever the name */
	if (err == -ENODATA)
		return bpf_map__set_autocreate(map, false);
	return err ? err : bpf_map__reuse_fd(map, fd);
}

int shared_object_use_maps(struct bpf_object *object, const struct kernel_side *side,
			   const char *const *own, size_t own_count)
{
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, object) if (!err && !is_own(map, own, own_count)) err =
		use_map(map, side);
	return err;
}
