/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: elf/elf_image.c elf/elf_symbol_table.c elf/elf_symbols.c elf/debug_file.c base/safe_file.c elf/demangle.c elf/go_table.c */
/* An ELF file.  The range of an answer must contain the address. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "elf/demangle.h"
#include "elf/elf_symbol_table.h"
#include "elf/elf_symbols.h"

#define ADDRESSES 64U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_function(void *context, size_t index, const struct elf_function *function)
{
	const uint64_t vaddr = ((const uint64_t *)context)[index];
	char text[DEMANGLE_MAX_BYTES];

	assert(function->low <= vaddr);
	assert(vaddr < function->high || vaddr == UINT64_MAX);
	if (!function->name)
		return;
	assert(function->start <= vaddr);
	assert(function->name_size <= 16384);
	if (demangle(function->name, function->name_size, text))
		assert(strlen(text) < DEMANGLE_MAX_BYTES);
}

static void read_parts(const struct elf_image *image)
{
	static const char *const names[] = {".text", ".eh_frame", ".gnu_debugdata", ""};
	volatile uint8_t sum = 0;
	struct elf_section section;
	struct elf_symbol symbol;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!elf_image_section(image, names[i], &section) && section.data && section.size)
			sum += section.data[0] + section.data[section.size - 1];
	if (!elf_image_eh_frame_hdr(image, &section))
		sum += section.data[0] + section.data[section.size - 1];
	for (size_t i = 0; i < image->build_id_size; i++)
		sum += image->build_id[i];
	if (elf_image_at(image, image->entry, 16))
		sum += *elf_image_at(image, image->entry, 16);
	elf_image_symbol(image, "_PyRuntime", &symbol);
	elf_image_symbol(image, "main", &symbol);
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	uint64_t vaddr[ADDRESSES];

	if (elf_image_from_memory(data, size, &image))
		return 0;
	read_parts(image);
	for (size_t i = 0; i < ADDRESSES; i++)
		vaddr[i] = image->min_vaddr +
			   (image->max_vaddr - image->min_vaddr) / ADDRESSES * i +
			   (size ? data[i % size] : 0);
	qsort(vaddr, ADDRESSES, sizeof(*vaddr), compare);
	elf_symbols_find_many(image, NULL, vaddr, ADDRESSES, on_function, vaddr);
	return 0;
}
