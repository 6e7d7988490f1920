/* SPDX-License-Identifier: BSD-2-Clause */
/* The function names of one ELF file, from .symtab, .dynsym, .gnu_debugdata (xz), the separate
 * debug file when installed (by build-id path, then by .gnu_debuglink with its CRC), and Go's
 * .gopclntab: one pass for a batch of addresses, which keeps nothing.
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
#include "elf/elf_symbol_table.h"

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

/* ---- all symbol tables that describe one file, private to elf/ ---- */

#define SYMBOL_SOURCES_MAX 4U
#define SYMBOL_SOURCE_MAX_SYMBOLS (1U << 21) /* of one table; the rest is not read */
#define SYMBOL_NAME_MAX_BYTES 16384U	     /* of one name; longer ones are cut */
#define DEBUGDATA_MAX_BYTES (64U << 20)	     /* decompressed .gnu_debugdata */
/* What its decoder may take: xz -6 and what distributions use need 9 MiB, xz -8 33. */
#define DEBUGDATA_DECODER_MAX_BYTES (34U << 20)
#define DEBUG_CRC_MAX_BYTES (256U << 20) /* a larger debug file must match by build-id */

struct symbol_section {
	uint64_t end; /* vaddr */
	bool is_code;
};

struct symbol_source {
	const struct elf_image *image;	/* the image that the table is in */
	struct elf_symbol_table table;	/* count is cut to SYMBOL_SOURCE_MAX_SYMBOLS */
	struct symbol_section *section; /* owned; by st_shndx */
	size_t section_count;
};

struct symbol_sources {
	const struct elf_image *image; /* borrowed */
	struct symbol_source source[SYMBOL_SOURCES_MAX];
	size_t count;
	/* private */
	struct elf_image *debug_file, *debugdata;
	void *debugdata_bytes;
};

/* One function as one table describes it. */
struct symbol_function {
	uint64_t start, end; /* vaddr; end of a symbol without size: its section's */
	const char *name;    /* raw, in the file, not terminated: see symbol_function_name_size() */
	size_t name_room;
	struct elf_work *work; /* of the image; reading the name pays from it */
	bool has_size, is_local;
};

/* Opens all tables of an image. files: as for elf_symbols_find_many(). Missing or damaged debug
 * files are ignored. Returns 0 (count 0: no symbols); -E2BIG when the file takes more work than its
 * budget; -ENOMEM. */
int symbol_sources_open(const struct elf_image *image, const struct debug_files *files,
			struct symbol_sources **ret_sources);
void symbol_sources_free(struct symbol_sources *sources);
DEFINE_OWNED(struct symbol_sources, symbol_sources)

/* Reads entry `index` of a source. Returns false when the entry is not a function of the image. */
bool symbol_source_function(const struct symbol_sources *sources, size_t source, size_t index,
			    struct symbol_function *ret_function);
/* Returns the size of the name without a symbol version ("@GLIBC_2.2.5"), which some .symtab
 * contain. */
size_t symbol_function_name_size(const struct symbol_function *function);
/* Returns whether `a` is the better of two names for one address: has a size, is global, has fewer
 * leading underscores, is shorter, comes first. */
bool symbol_function_is_better(const struct symbol_function *a, const struct symbol_function *b);

#endif
