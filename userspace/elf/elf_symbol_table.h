/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw access to .symtab and .dynsym, for callers that scan them or look up by name. */
#ifndef ELF_ELF_SYMBOL_TABLE_H
#define ELF_ELF_SYMBOL_TABLE_H

#include "elf/elf_image.h"

/* Entries may be unaligned, names are not checked. */
struct elf_symbol_table {
	const uint8_t *entry; /* Elf64_Sym[count] */
	size_t count;
	const char *names;
	size_t names_size;
	struct elf_work *work; /* of the image; a loop over entries pays from it */
};
/* Finds a table. type: SHT_SYMTAB or SHT_DYNSYM; the .dynsym of a file without section headers is
 * found by PT_DYNAMIC.
 * Returns 0; -ENOENT when there is none; -EBADMSG. */
int elf_image_symbol_table(const struct elf_image *image, uint32_t type,
			   struct elf_symbol_table *ret_table);
Elf64_Sym elf_symbol_table_entry(const struct elf_symbol_table *table, size_t index);
/* Searches the names from `from` on, and pays for it. Returns where the text is; NULL when it is
 * not there, or the budget is used up. */
const char *elf_symbol_table_search(const struct elf_symbol_table *table, const char *from,
				    const char *text, size_t size);
/* Finds what the loader writes to the 8 bytes at `slot`, from their relocation: for
 * R_X86_64_GLOB_DAT, _64, _RELATIVE an address in the file; for R_X86_64_DTPOFF64, _TPOFF64 an
 * offset in the TLS block.
 * -ENOENT: no relocation there, or one for a symbol of another file. */
int elf_image_relocation(const struct elf_image *image, uint64_t slot, uint32_t *ret_type,
			 uint64_t *ret_value);

#endif
