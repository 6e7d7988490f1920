/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: symbolize/kernel_symbols.c base/io.c */
/* /proc/kallsyms and, behind a byte 0, /proc/modules: the names in both are chosen by whoever built
 * the modules.  What is found at an address is a name of the table.
 * runs: 1500 at most in `make check`: each writes two files. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/kernel_symbols.h"

#define ADDRESSES 64U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[] = "/tmp/fuzz_kernel_symbols.XXXXXX";
static int kallsyms = -1, modules = -1;

static void path_of(const char *name, char path[96])
{
	snprintf(path, 96, "%s/%s", directory, name);
}

static void remove_files(void)
{
	char path[96];

	path_of("kallsyms", path);
	unlink(path);
	path_of("modules", path);
	unlink(path);
	rmdir(directory);
}

/* Returns a file in memory, to which a link in the directory leads. */
static int make_file(const char *name)
{
	char path[96], target[64];
	int fd = memfd_create(name, MFD_CLOEXEC);

	assert(fd >= 0);
	path_of(name, path);
	snprintf(target, sizeof(target), "/proc/self/fd/%d", fd);
	assert(!symlink(target, path));
	return fd;
}

static void write_file(int fd, const void *data, size_t size)
{
	assert(!ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
}

static void look_up(struct kernel_symbols *symbols, uint64_t address)
{
	const char *name = NULL, *module = NULL;

	if (kernel_symbols_find(symbols, address, &name, &module))
		return;
	assert(name && *name && module && !strpbrk(name, " \t\n") && !strchr(module, ']'));
}

/* Looks up each number of the text, and its neighbours. */
static void look_up_all(struct kernel_symbols *symbols, const char *text, size_t size)
{
	char *copy = strndup(text, size), *at = copy;

	assert(copy);
	for (unsigned int i = 0; at && i < ADDRESSES; i++) {
		const uint64_t address = strtoull(at, NULL, 16);

		look_up(symbols, address - 1);
		look_up(symbols, address);
		look_up(symbols, address + 1);
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	look_up(symbols, UINT64_MAX);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, 0, size) : NULL;
	const size_t first = end ? (size_t)(end - data) : size;
	OWNED(kernel_symbols) struct kernel_symbols *symbols = NULL;

	if (kallsyms < 0) {
		assert(mkdtemp(directory));
		atexit(remove_files);
		kallsyms = make_file("kallsyms");
		modules = make_file("modules");
	}
	write_file(kallsyms, data, first);
	write_file(modules, end ? end + 1 : data, end ? size - first - 1 : 0);
	assert(!kernel_symbols_new(directory, &symbols));
	look_up_all(symbols, (const char *)data, first);
	/* Another module is loaded: what was read is forgotten, and read again. */
	write_file(modules, "a 1 0 - Live 0x1\n", 17);
	(void)kernel_symbols_refresh(symbols);
	look_up_all(symbols, (const char *)data, first);
	return 0;
}
