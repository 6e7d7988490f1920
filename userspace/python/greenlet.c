/* SPDX-License-Identifier: BSD-2-Clause */
#include "python/greenlet.h"

#include <stdbool.h>
#include <string.h>

#include "elf/elf_symbol_table.h"

static bool starts_with(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

/* greenlet 2 and later: UserGreenlet::inner_bootstrap() calls what the greenlet runs, and does not
 * return.  Before, g_initialstub() does so itself. */
static bool is_first_function(const char *name)
{
	return starts_with(name, "_ZN8greenlet12UserGreenlet15inner_bootstrap") ||
	       !strcmp(name, "g_initialstub");
}

static uint64_t find(const struct elf_image *image, uint32_t type, bool *ret_is_greenlet)
{
	struct elf_symbol_table table;

	if (elf_image_symbol_table(image, type, &table))
		return 0;
	for (size_t i = 0; i < table.count; i++) {
		const Elf64_Sym symbol = elf_symbol_table_entry(&table, i);
		const char *name;

		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !symbol.st_value)
			continue;
		name = elf_symbol_table_name(&table, &symbol);
		if (!name)
			continue;
		if (is_first_function(name) && !strstr(name, ".cold"))
			return symbol.st_value;
		*ret_is_greenlet |= starts_with(name, "PyInit__greenlet") ||
				    starts_with(name, "PyInit_greenlet");
	}
	return 0;
}

uint64_t greenlet_first_function(const struct elf_image *image)
{
	bool is_greenlet = false;
	uint64_t address = find(image, SHT_DYNSYM, &is_greenlet);

	return address || !is_greenlet ? address : find(image, SHT_SYMTAB, &is_greenlet);
}
