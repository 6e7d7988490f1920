/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: query/input.c query/remote.c base/collectors.c child/spawn.c query/folder.c query/select.c base/regex_copies.c query/coverage.c profile/comments.c store/store_query.c render/short_paths.c render/code_table.c live/request.c base/io.c base/kinds.c pprof/profile_read.c pprof/read_frames.c pprof/read_samples.c pprof/read_windows.c pprof/pprof_tables.c pprof/gzip.c profile/profile.c profile/stack_table.c base/index_table.c base/utf8.c base/intern.c child/children.c */
/* Profiles of anyone, as a command line selects them: filters, comments, short paths and the title.
 * The first byte selects; the rest is a file, which is read twice.
 * runs: 2000 at most in `make check`: each is read twice. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/utf8.h"
#include "profile/profile_data.h"
#include "query/input.h"
#include "query/live_windows.h"

#define MAX_BYTES 65536U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Instead of query/live_windows.c: nothing is asked for. */
int live_windows_take(const struct live_windows_options *options, char why[WHY_BYTES],
		      struct live_windows **ret_windows)
{
	(void)options;
	(void)ret_windows;
	return say_why(why, "nothing is asked for");
}
void live_windows_free(struct live_windows *windows)
{
	assert(!windows);
}
size_t live_windows_count(const struct live_windows *windows)
{
	(void)windows;
	return 0;
}
enum pp_profile live_windows_kind(const struct live_windows *windows, size_t index)
{
	(void)windows;
	(void)index;
	return PP_PROFILE_DEFAULT;
}
int live_windows_open(const struct live_windows *windows, size_t index, int *ret_fd)
{
	(void)windows;
	(void)index;
	(void)ret_fd;
	return -ENOENT;
}

static int window_done(void *context, struct profile *profile, const struct profile_window *window)
{
	(void)context;
	for (size_t i = 0; i < window->delta_count; i++)
		assert(window->delta[i].row < profile_sample_count(profile));
	return 0;
}

static void check_short_paths(const struct input *input)
{
	const struct profile *profile = input_profile(input);
	const uint32_t count = intern_count(profile->strings);

	for (uint32_t id = 0; id < count; id++) {
		const char *text = intern_get(profile->strings, id, NULL);
		const char *got = short_paths_get(input_short_paths(input), id, text);

		assert(got >= text && got <= text + strlen(text));
	}
}

static void read_as(struct select *select, const struct input_options *options)
{
	OWNED(input) struct input *input = NULL;
	char missing[COVERAGE_BYTES], why[WHY_BYTES] = "";

	if (input_read(options, why, &input)) {
		assert(why[0]);
		return;
	}
	assert(input_title(input)[0] && input_path(input, 1)[0]);
	assert(strlen(input_coverage(input, missing)) < sizeof(missing));
	if (!select->full_paths)
		check_short_paths(input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const labels[] = {"pid", "tid", "comm", NULL};
	static regex_t filter;
	static bool is_compiled;
	char path[64], *paths[] = {path, path};
	struct select select = {.path = paths, .path_count = 2};
	const struct watcher watcher = {.stop_fd = -1};
	struct input_options options = {
		.select = &select, .watcher = &watcher, .window_done = window_done};
	int fd;

	if (!size || size > MAX_BYTES)
		return 0;
	if (!is_compiled)
		is_compiled = !regcomp(&filter, "a|1|^main$", REG_EXTENDED | REG_NOSUB);
	select.focus = data[0] & 1 ? &filter : NULL;
	select.ignore = data[0] & 2 ? &filter : NULL;
	select.comm = select.thread = data[0] & 4 ? &filter : NULL;
	select.pid_count = !!(data[0] & 8);
	select.pid[0] = 1;
	select.full_paths = data[0] & 16;
	select.group_by.keys = data[0] & 32 ? GROUP_BY_THREAD : GROUP_BY_NONE;
	options.keep_labels = data[0] & 64 ? labels : NULL;
	options.drop_lines = options.drop_addresses = options.python_only = data[0] & 128;
	fd = memfd_create("profile", MFD_CLOEXEC);
	assert(fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)size - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_as(&select, &options);
	close(fd);
	return 0;
}
