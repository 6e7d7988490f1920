/* SPDX-License-Identifier: BSD-2-Clause */
/* Event `exec`: counts programs that begin (bpf/own/exec.bpf.c).  Its counters are in the kernel's
 * tables, which every window collects. */
#include <errno.h>

#include <pyprofd/sample.h>

#include "attach/kernel_side.h"
#include "base/log.h"
#include "windows/label.h"
#include "windows/source.h"

#include "pyprofd_exec.skel.h"

struct execs {
	const struct services *services;
	struct pyprofd_exec *skeleton; /* owned */
};

static bool source_close(void *state)
{
	struct execs *execs = state;

	pyprofd_exec__destroy(execs->skeleton);
	return true;
}

static int source_open(void *state)
{
	struct execs *execs = state;
	const struct services *services = execs->services;
	struct pyprofd_exec *exec = execs->skeleton = pyprofd_exec__open();
	int err = exec ? kernel_side_share_maps(services->kernel, exec->obj, false) : -errno;

	if (!err) {
		exec->rodata->scratch_levels = kernel_side_parts(services->kernel).scratch_levels;
		exec->rodata->switch_tells_state =
			kernel_side_parts(services->kernel).switch_tells_state;
		err = pyprofd_exec__load(exec);
	}
	if (!err)
		err = pyprofd_exec__attach(exec);
	if (err)
		return log_error_errno(err, "cannot count programs that begin");
	kernel_side_add_maps(services->kernel, exec->obj);
	return 0;
}

static int source_label(void *state, const struct pp_count_key *key, struct intern *strings,
			struct profile_sample *sample)
{
	(void)state, (void)strings;
	label_number(sample, "arguments", (int64_t)key->detail);
	return 0;
}

const struct source exec_source = {.name = "exec",
				   .bytes = sizeof(struct execs),
				   .open = source_open,
				   .close = source_close,
				   .labelled_kinds = 1U << PP_KIND_EXEC,
				   .label = source_label};
