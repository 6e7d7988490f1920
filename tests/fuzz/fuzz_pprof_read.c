/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: base/kinds.c pprof/profile_read.c pprof/read_frames.c pprof/read_samples.c pprof/read_windows.c profile/comments.c pprof/pprof_tables.c pprof/gzip.c profile/profile.c pprof/pprof.c pprof/folded.c profile/stack_table.c base/index_table.c base/utf8.c base/intern.c base/proto.c */
/* Any bytes, read twice as two files into one profile, which is then encoded. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pprof/pprof.h"
#include "pprof/profile_read.h"

#define MAX_BYTES 65536U
#define MAX_BEYOND (4U << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int add(struct profile_reader *reader, const uint8_t *data, size_t size)
{
	OWNED_FD int fd = memfd_create("pprof", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
		abort();
	return profile_reader_add(reader, fd, NULL);
}

static int on_window(void *context, struct profile *profile, const struct profile_window *window)
{
	(void)context;
	for (size_t i = 0; i < window->delta_count; i++)
		if (window->delta[i].row >= profile_sample_count(profile))
			abort();
	return 0;
}

static void write_again(struct profile *profile)
{
	OWNED_MEM void *bytes = NULL;
	OWNED_MEM char *text = NULL;
	size_t size;

	profile_weigh_modules(profile);
	(void)profile_encode_pprof(profile, &bytes, &size);
	(void)profile_encode_folded(profile, &text, &size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	struct profile_read_options options = {.window_done = on_window};
	struct profile *profile;

	if (size > MAX_BYTES)
		return 0;
	options.python_only = size & 1;
	options.drop_lines = size & 2;
	if (profile_reader_new(&options, &reader))
		return 0;
	(void)add(reader, data, size);
	(void)add(reader, data, size);
	/* Beyond the bound: what one sample of 65,536 frames adds before it is looked at, and
	 * arrays that grow by half. */
	if (profile_reader_bytes(reader) >
	    PROFILE_READ_MEMORY_FREE + 2 * size * PROFILE_READ_MEMORY_FACTOR + MAX_BEYOND)
		abort();
	profile = profile_reader_profile(reader);
	if (profile)
		write_again(profile);
	return 0;
}
