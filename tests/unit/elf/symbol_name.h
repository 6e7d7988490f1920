/* SPDX-License-Identifier: BSD-2-Clause */
/* The name of an entry of a symbol table. */
#ifndef TESTS_ELF_SYMBOL_NAME_H
#define TESTS_ELF_SYMBOL_NAME_H

#include <string.h>

#include "elf/elf_symbol_table.h"

/* NULL: it does not end inside the string table.  Only for files that nobody writes to: the NUL
 * could vanish after the check. */
static inline const char *symbol_name(const struct elf_symbol_table *table, const Elf64_Sym *symbol)
{
	const char *name = table->names + symbol->st_name;

	if (symbol->st_name >= table->names_size ||
	    !memchr(name, '\0', table->names_size - symbol->st_name))
		return NULL;
	return name;
}

#endif
