/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/frame_text.h"

#include <string.h>

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

const char *frame_name(const struct profile *profile, const struct frame *frame)
{
	const char *name = intern_get(profile->strings, frame->name, NULL);

	return name[0] ? name : "[unknown]";
}

const char *frame_file(const struct profile *profile, const struct frame *frame)
{
	return intern_get(profile->strings, frame->file, NULL);
}

const char *frame_module_path(const struct profile *profile, const struct frame *frame)
{
	const struct module *module = profile_frame_module(profile, frame);

	return module ? intern_get(profile->strings, module->path, NULL) : "";
}

enum frame_class frame_class(const struct profile *profile, const struct frame *frame)
{
	const char *module;

	switch (frame->kind) {
	case FRAME_PYTHON:
		return FRAME_CLASS_PYTHON;
	case FRAME_KERNEL:
		return FRAME_CLASS_KERNEL;
	case FRAME_MARKER:
		return FRAME_CLASS_OTHER;
	default:
		module = frame_module_path(profile, frame);
		return !strncmp(module, "[gpu", 4) || !strncmp(module, "[cuda", 5)
			       ? FRAME_CLASS_GPU
			       : FRAME_CLASS_NATIVE;
	}
}

const char *frame_class_name(enum frame_class class)
{
	static const char *const name[] = {"python", "native", "kernel", "gpu", "other"};

	return name[class];
}
