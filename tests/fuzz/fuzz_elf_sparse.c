/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: elf/elf_image.c elf/elf_symbol_table.c elf/elf_symbols.c elf/debug_file.c base/safe_file.c unwind/cfi.c unwind/cfi_program.c unwind/cfi_go.c unwind/cfi_rule.c python/python_accessor.c python/python_debug_offsets.c python/python_info.c python/python_offsets.c python/python_tls.c files/stack_starts.c elf/x86_decode.c elf/go_table.c */
/* An ELF file in tmpfs with a hole of up to 2 GiB behind it (the first byte says how much).
 * Whatever it claims: the work stays within the budget of what it stores, and its hole is not
 * filled. */
#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "elf/elf_symbols.h"
#include "files/stack_starts.h"
#include "python/python_info.h"
#include "unwind/cfi.h"

#define ADDRESSES 16U
#define MAX_CODE_BYTES (64ULL << 20)
/* The budget of a small file takes 20 ms; sanitizers make that ten times as much. */
#define MAX_CPU_NS 2000000000ULL
/* Single reads of less than ELF_HOLE_CHECK_BYTES may fill a hole: names, notes, headers. */
#define MAX_FILLED_BYTES (4U << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t stored_bytes(int fd)
{
	struct stat status;

	assert(!fstat(fd, &status));
	return (uint64_t)status.st_blocks * 512;
}

static void ignore(void *context, size_t index, const struct elf_function *function)
{
	(void)context, (void)index, (void)function;
}

static void check_work(const struct elf_image *image, uint64_t stored)
{
	assert(image->work->limit <= elf_work_limit(stored + 8192));
	assert(image->work->spent <= image->work->limit + 1);
}

static void read_rows(const struct elf_image *image)
{
	OWNED(cfi) struct cfi *cfi = NULL;
	struct cfi_rows rows = {0};

	if (cfi_open(image, &cfi))
		return;
	cfi_set_outermost(cfi, greenlet_first_function(image));
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segment[i];
		const uint64_t bytes = segment->memory_size < MAX_CODE_BYTES ? segment->memory_size
									     : MAX_CODE_BYTES;

		rows.count = 0;
		if (bytes)
			(void)cfi_compile(cfi, segment->vaddr, segment->vaddr + bytes, &rows, NULL);
	}
	free(rows.row);
}

static void read_names(const struct elf_image *image)
{
	uint64_t vaddr[ADDRESSES];

	for (uint64_t i = 0; i < ADDRESSES; i++)
		vaddr[i] = image->min_vaddr + (image->max_vaddr - image->min_vaddr) / ADDRESSES * i;
	(void)elf_symbols_find_many(image, NULL, vaddr, ADDRESSES, ignore, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWNED(elf_image) struct elf_image *image = NULL, *again = NULL;
	OWNED(python_info) struct python_info *info = NULL;
	const uint64_t start_ns = cpu_ns();
	OWNED_FD int fd = -1;
	const char *why;
	uint64_t filled;

	if (size < 2 || size > 65536)
		return 0;
	fd = memfd_create("sparse", MFD_CLOEXEC);
	assert(fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)size - 1);
	assert(!ftruncate(fd, (off_t)(size - 1 + ((uint64_t)data[0] << 23))));
	if (elf_image_open(fd, &image))
		return 0;
	(void)python_info_read(image, &info, &why);
	read_rows(image);
	check_work(image, size);
	/* What single reads have filled counts as stored from now on. */
	filled = stored_bytes(fd);
	assert(filled <= size + 8192 + MAX_FILLED_BYTES);
	if (!elf_image_open(fd, &again)) {
		read_names(again);
		check_work(again, filled);
	}
	assert(stored_bytes(fd) <= size + 8192 + MAX_FILLED_BYTES);
	assert(cpu_ns() - start_ns < MAX_CPU_NS);
	return 0;
}
