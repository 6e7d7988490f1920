/* SPDX-License-Identifier: BSD-2-Clause */
/* The texts of a profile's frame, the same in every view. */
#ifndef RENDER_FRAME_TEXT_H
#define RENDER_FRAME_TEXT_H

#include "profile/profile_data.h"

/* Exports contain these numbers: never change one. */
enum frame_class {
	FRAME_CLASS_PYTHON = 0,
	FRAME_CLASS_NATIVE = 1,
	FRAME_CLASS_KERNEL = 2,
	FRAME_CLASS_GPU = 3,
	FRAME_CLASS_OTHER = 4, /* our own: [frames omitted], groups */
};

enum frame_class frame_class(const struct profile *profile, const struct frame *frame);
const char *frame_class_name(enum frame_class class);
/* Never returns "": "[unknown]". */
const char *frame_name(const struct profile *profile, const struct frame *frame);
/* Returns the frame's source file, "" when there is none. */
const char *frame_file(const struct profile *profile, const struct frame *frame);
/* Returns the path of the frame's module, "" when there is none. */
const char *frame_module_path(const struct profile *profile, const struct frame *frame);
/* Returns what follows the last slash. */
const char *path_base(const char *path);

#endif
