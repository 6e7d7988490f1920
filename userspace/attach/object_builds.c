/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/object_builds.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attach/verifier_log.h"
#include "base/cleanup.h"
#include "base/log.h"

void object_builds_explain(const char *what, int err, char *log, char *why, size_t why_size)
{
	const char *said = verifier_log_reason(log);

	if (said)
		snprintf(why, why_size, "the kernel refused %s: %s (%s)", what, strerror(-err),
			 said);
	else
		snprintf(why, why_size, "cannot load %s: %s", what, strerror(-err));
}

static void set_log(struct bpf_object *object, char *log)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
		verifier_log_set(program, log);
}

/* `log` is empty at first. */
static int load(const struct object_builds *builds, void *context, const void *elf, size_t size,
		char *log)
{
	struct bpf_object_skeleton *skeleton = builds->create(context);
	int err;

	if (!skeleton)
		return -ENOMEM;
	skeleton->data = (void *)elf;
	skeleton->data_sz = size;
	err = bpf_object__open_skeleton(skeleton, NULL);
	if (!err)
		err = builds->prepare(context);
	if (err)
		return err;
	set_log(*skeleton->obj, log);
	return bpf_object__load_skeleton(skeleton);
}

int object_builds_load(const struct object_builds *builds, void *context, char *why,
		       size_t why_size)
{
	const void *(*const elf_of[])(size_t *) = {builds->elf, builds->older_elf};
	OWNED_MEM char *log = malloc(VERIFIER_LOG_BYTES);
	int err = -ENOMEM;

	if (!log)
		object_builds_explain(builds->what, err, (char[]){""}, why, why_size);
	for (size_t i = 0; log && err && i < ARRAY_SIZE(elf_of); i++) {
		size_t size;
		const void *elf = elf_of[i](&size);

		if (i)
			log_debug("%s: trying the programs for older kernels", why);
		log[0] = '\0';
		err = load(builds, context, elf, size, log);
		if (err)
			object_builds_explain(builds->what, err, log, why, why_size);
	}
	return err;
}
