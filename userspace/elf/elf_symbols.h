/* SPDX-License-Identifier: BSD-2-Clause */
/* The function names of one ELF file, from .symtab, .dynsym, .gnu_debugdata (xz), and the separate
 * debug file when installed (by build-id path, then by .gnu_debuglink with its CRC): one pass for a
 * batch of addresses, which keeps nothing.
 * The function of an address is, of those with a size that cover it, the one that starts last. When
 * none covers it, it is the symbol before it, if that one has no size, up to the end of its
 * section. Of several names for one start we choose one with a size, then global before local, then
 * fewer leading underscores, then the shorter. */
#ifndef ELF_ELF_SYMBOLS_H
#define ELF_ELF_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/debug_file.h"
#include "elf/elf_image.h"

/* The answer for one address of a batch. */
struct elf_function {
	const char *name; /* raw, not terminated, valid during the call; NULL: no function */
	size_t name_size;
	uint64_t start;
	/* Every address in [low, high) has this answer, also when the answer is "none". */
	uint64_t low, high;
};
typedef void elf_function_handler(void *context, size_t index, const struct elf_function *function);

/* files: where a stripped file's symbols may be; NULL: nowhere.
 * Scans the tables once for `count` ascending addresses and calls found() for each in turn.
 * Memory: some 100 bytes an address while it runs, and the debug files.
 * Returns 0; -EBADMSG when functions overlap as in no honest file; -E2BIG when the file takes more
 * work than its budget; -ENOMEM. After an error found() has not been called. */
int elf_symbols_find_many(const struct elf_image *image, const struct debug_files *files,
			  const uint64_t *vaddr, size_t count, elf_function_handler *found,
			  void *context);

#endif
