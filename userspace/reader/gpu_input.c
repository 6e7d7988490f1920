/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/gpu_input.h"

#include <sys/stat.h>

#include "base/kinds.h"
#include "base/collectors.h"
#include "query/extent.h"
#include "reader/complain.h"
#include "reader/read_input.h"
#include "reader/verb.h"

int gpu_input_none(const char *title, const char *how_to_record)
{
	return complain("%s: nothing of a GPU was recorded: %s", title, how_to_record);
}

static int check_directory(const char *path, const char *how_to_record)
{
	struct extent extent;
	int err = extent_read(path, false, &extent);

	if (err) {
		complain_of(path, err);
		return READER_BAD_INPUT;
	}
	return extent.kinds & 1U << PP_PROFILE_CUDA ? 0 : gpu_input_none(path, how_to_record);
}

/* Reads a file's comments alone, to find out what kind it is. */
static int check_file(char *path, const char *how_to_record)
{
	struct select select = {.path = &path, .path_count = 1};
	const struct input_options input_options = {.select = &select, .comments_only = true};
	OWNED(input) struct input *input = NULL;
	int err = read_input(input_options, &input);
	const char *name;

	if (err)
		return err;
	name = profile_kind(input_profile(input));
	if (kind_is(name, PP_PROFILE_CUDA))
		return 0;
	return complain("%s: a profile of kind %s, which has nothing of a GPU: %s",
			input_title(input), name, how_to_record);
}

int gpu_input_check(const struct select_options *shared, const char *how_to_record)
{
	const struct select *select = &shared->select;
	enum collector_id ignored;
	const char *plain;
	struct stat status;

	if (!select->path_count || remote_url_parse(select->path[0], &ignored, &plain) ||
	    stat(select->path[0], &status))
		return 0;
	if (S_ISDIR(status.st_mode))
		return check_directory(select->path[0], how_to_record);
	return S_ISREG(status.st_mode) ? check_file(select->path[0], how_to_record) : 0;
}
