/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: reader/source.c base/utf8.c base/io.c base/safe_file.c */
/* A source file of whoever ran the program: its lines are clean, and its blocks lie in it. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "reader/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const struct source *source, uint32_t line)
{
	static const char *const names[] = {"main", "A.method", "<lambda>", "a.<locals>.b", ""};
	const char *found = source_line(source, line);
	const uint32_t end = source_block_end(source, line);

	assert(found && end >= line && end <= source->count);
	for (size_t size; (size = strcspn(found, "\t")), true; found += size + 1) {
		assert(utf8_is_clean(found, size));
		if (!found[size])
			break;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)source_defines(source, line, names[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(source_release) struct source source = {0};
	OWNED_FD int fd = memfd_create("a.py", MFD_CLOEXEC);
	char path[32];

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert(!source_read(path, SOURCE_NAMED_BY_USER, &source) && !source.error);
	assert(!source_line(&source, 0) && !source_line(&source, source.count + 1));
	for (uint32_t line = 1; line <= source.count && line < 256; line++)
		check_line(&source, line);
	(void)source_defines(&source, UINT32_MAX, "main");
	(void)source_block_end(&source, UINT32_MAX);
	return 0;
}
