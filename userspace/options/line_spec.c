/* SPDX-License-Identifier: BSD-2-Clause */
#include "options/line_spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/line_target.h"

static int refuse(char why[LINE_SPEC_WHY_BYTES], const char *text)
{
	snprintf(why, LINE_SPEC_WHY_BYTES, "%s", text);
	return -EINVAL;
}

int line_spec_parse(const char *text, struct pp_line_target *ret_target,
		    char why[LINE_SPEC_WHY_BYTES])
{
	const char *end = text + line_target_file_bytes(text);
	const char *name = *end ? end + 1 : "", *dot = strrchr(name, '.');
	struct pp_line_target target = {};
	size_t file_size, name_size;

	if (dot)
		name = dot + 1;
	while (!strncmp(text, "./", 2))
		text += 2;
	file_size = (size_t)(end - text);
	name_size = strlen(name);
	if (!file_size)
		return refuse(why, "names no file: give FILE or FILE:FUNC, as in "
				   "train.py:Model.step");
	if (*end && !name_size)
		return refuse(why, "names no function after the colon: leave the colon out to "
				   "count all functions of the file");
	if (file_size >= PP_LINE_FILE_BYTES)
		return refuse(why, "has too long a path: its end is enough, as in pkg/train.py");
	if (name_size >= PP_LINE_NAME_BYTES)
		return refuse(why, "has a function of more than 127 bytes: leave it out to count "
				   "all functions of the file");
	memcpy(target.file, text, file_size);
	memcpy(target.name, name, name_size);
	target.file_bytes = (__u32)file_size;
	target.name_bytes = (__u32)name_size;
	*ret_target = target;
	return 0;
}
