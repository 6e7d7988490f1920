/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/launch_site.h"

/* The native frames of a stack that are not passed yet. */
struct rest {
	const packed_frame *frame;
	size_t count;
};

static bool is_native(const struct rest *rest)
{
	return rest->count && packed_kind(*rest->frame) == PP_FRAME_NATIVE;
}

static void pass(struct rest *rest)
{
	rest->frame++;
	rest->count--;
}

bool launch_site_find(const struct dict_stack *stack, launch_file_of *file_of, void *context,
		      struct launch_site *ret_site)
{
	struct rest rest = {.frame = stack->frame + stack->python_stored,
			    .count = stack->native_stored};
	const size_t all = rest.count;
	struct launch_site site = {0};

	while (is_native(&rest) && file_of(context, packed_file(*rest.frame)) == LAUNCH_FILE_DRIVER)
		pass(&rest);
	while (is_native(&rest) &&
	       file_of(context, packed_file(*rest.frame)) == LAUNCH_FILE_RUNTIME)
		pass(&rest);
	if (rest.count == all || !is_native(&rest))
		return false;
	site.file = packed_file(*rest.frame);
	for (; is_native(&rest) && packed_file(*rest.frame) == site.file &&
	       site.count < LAUNCH_SITE_FRAMES;
	     pass(&rest))
		site.vaddr[site.count++] = packed_address(*rest.frame);
	*ret_site = site;
	return true;
}
