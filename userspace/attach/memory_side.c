/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/memory_side.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/kernel_side.h"
#include "attach/object_builds.h"
#include "base/random.h"

/* The skeleton needs what crosses the kernel boundary. */
#include "pyprofd_memory.skel.h"

struct memory_side {
	struct pyprofd_memory *skeleton;
};

static uint32_t page_shift(void)
{
	return (uint32_t)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
}

/* `log` is empty at first. */
static int load(struct pyprofd_memory *skeleton, const struct kernel_side *kernel, char *log)
{
	int err = kernel_side_share_maps(kernel, skeleton->obj, false);

	if (err)
		return err;
	skeleton->rodata->scratch_levels = kernel_side_parts(kernel).scratch_levels;
	skeleton->rodata->switch_tells_state = kernel_side_parts(kernel).switch_tells_state;
	skeleton->rodata->page_shift = page_shift();
	skeleton->rodata->fault_salt = (uint32_t)random_number();
	verifier_log_set(skeleton->progs.on_page, log);
	return pyprofd_memory__load(skeleton);
}

int memory_side_open(const struct kernel_side *kernel, char *why, size_t why_size,
		     struct memory_side **ret_side)
{
	OWNED(memory_side) struct memory_side *side = calloc(1, sizeof(*side));
	OWNED_MEM char *log = calloc(1, VERIFIER_LOG_BYTES);
	int err;

	if (!side || !log)
		return -ENOMEM;
	side->skeleton = pyprofd_memory__open();
	err = side->skeleton ? load(side->skeleton, kernel, log) : -errno;
	if (!err)
		err = pyprofd_memory__attach(side->skeleton);
	if (err) {
		object_builds_explain("the programs for memory", err, log, why, why_size);
		return err;
	}
	kernel_side_add_maps(kernel, side->skeleton->obj);
	*ret_side = TAKE(side);
	return 0;
}

void memory_side_free(struct memory_side *side)
{
	if (!side)
		return;
	pyprofd_memory__destroy(side->skeleton);
	free(side);
}
