/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: files/stack_starts.c elf/elf_image.c elf/elf_symbol_table.c */
/* An ELF file that may be the greenlet extension: the function that is found is one of its symbols,
 * and the work is bounded. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_symbol_table.h"
#include "files/stack_starts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_function_at(const struct elf_image *image, uint32_t type, uint64_t address)
{
	struct elf_symbol_table table;

	if (elf_image_symbol_table(image, type, &table))
		return false;
	for (size_t i = 0; i < table.count; i++)
		if (elf_symbol_table_entry(&table, i).st_value == address)
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	uint64_t address;

	if (elf_image_from_memory(data, size, &image))
		return 0;
	address = greenlet_first_function(image);
	assert(!address || has_function_at(image, SHT_DYNSYM, address) ||
	       has_function_at(image, SHT_SYMTAB, address));
	return 0;
}
