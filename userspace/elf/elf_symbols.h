/* SPDX-License-Identifier: BSD-2-Clause */
/* The function names of one ELF file, sorted by address: .symtab, .dynsym, .gnu_debugdata (xz), and
 * the separate debug file (build-id path, then .gnu_debuglink with its CRC) when installed.
 * Memory: about 16 bytes a symbol and the names once. */
#ifndef ELF_ELF_SYMBOLS_H
#define ELF_ELF_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_image.h"

struct elf_symbols;

/* root: where the process sees its files ("/" or "/proc/PID/root"), for debug files; path: the
 * file's path below it.  A file without any symbol gives an empty table and 0.
 * Returns 0; -EBADMSG; -ENOMEM. */
int elf_symbols_read(const struct elf_image *image, const char *root, const char *path,
		     struct elf_symbols **ret_symbols);
void elf_symbols_free(struct elf_symbols *symbols);
DEFINE_OWNED(struct elf_symbols, elf_symbols)

/* The function that covers a virtual address.  A symbol of size 0 reaches to the next one, at most
 * to the end of its section.  Returns 0; -ENOENT.  name: raw (mangled), owned by the table. */
int elf_symbols_find(const struct elf_symbols *symbols, uint64_t vaddr, const char **ret_name,
		     uint64_t *ret_start);
size_t elf_symbols_count(const struct elf_symbols *symbols);
size_t elf_symbols_bytes(const struct elf_symbols *symbols);

#endif
