/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses in ELF files to function names, for all files of the host in a bounded cache.
 * Path: (file, vaddr) -> cached ranges -> one scan of the file's symbols for all that is missing.
 * No symbol table stays in memory: only the functions that were seen, and for how far around the
 * asked address each answer holds.  One thread per object. */
#ifndef SYMBOLIZE_NATIVE_SYMBOLS_H
#define SYMBOLIZE_NATIVE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct native_symbols;

/* The strings belong to the cache and are valid until the next native_symbols_resolve() or
 * native_symbols_free(): the caller copies what it keeps (as ids of its window's intern table). */
struct native_symbol {
	const char *name;	 /* demangled; "[libfoo.so]" when no function covers the address */
	const char *system_name; /* the linker's name where it differs from name, else "" */
	uint64_t start;		 /* vaddr of the function; 0 when not found */
	bool found;
};

struct native_file {
	uint32_t id;	  /* same id: same contents */
	const char *root; /* "/" or "/proc/PID/root" */
	const char *path; /* below root, as the process sees it; "[vdso]"; "" anonymous */
	/* Opens the file (regular, or a memfd as for the vDSO); called when an address is missing.
	 * NULL: root_file_open(root, path).  Returns 0 and a descriptor to close, or -errno. */
	int (*open)(void *context, const struct native_file *file, int *ret_fd);
	void *open_context;
};

struct native_symbols_counters {
	uint64_t asked, cached;	  /* addresses */
	uint64_t scans;		  /* of a file's symbols */
	uint64_t open_failures;	  /* tried again at the next resolve */
	uint64_t bad_files;	  /* unreadable as ELF; not tried again */
	uint64_t dropped_files;	  /* from the cache, least recently used first */
	uint64_t dropped_symbols; /* left unnamed: one resolve passed twice the bound */
};

/* max_bytes: of the whole cache; checked at the start of a resolve, so one resolve's answers may
 * pass it, to twice that at most. */
int native_symbols_new(size_t max_bytes, struct native_symbols **ret_symbols);
void native_symbols_free(struct native_symbols *symbols);
DEFINE_OWNED(struct native_symbols, native_symbols)

/* Names `count` addresses (vaddr as in the ELF file, any order, repeats are fine).  A caller's
 * address is asked as RA - 1, so that a call at a function's end is not the next function.
 * ret_symbol has room for count.  A file that cannot be opened or has no symbols still gives 0 and
 * names in brackets.  Returns 0 or -ENOMEM. */
int native_symbols_resolve(struct native_symbols *symbols, const struct native_file *file,
			   const uint64_t *vaddr, size_t count, struct native_symbol *ret_symbol);
size_t native_symbols_bytes(const struct native_symbols *symbols);
struct native_symbols_counters native_symbols_counters(const struct native_symbols *symbols);

#endif
