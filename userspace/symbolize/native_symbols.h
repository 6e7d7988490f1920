/* SPDX-License-Identifier: BSD-2-Clause */
/* Names addresses in ELF files, for all files of the host, with a bounded cache.
 * Path: (file, vaddr) -> cached ranges -> the child that parses files, for all that is missing.
 * No symbol table stays in memory: only the functions that were found, and the range of addresses
 * around each lookup for which the answer is the same.  One thread per object. */
#ifndef SYMBOLIZE_NATIVE_SYMBOLS_H
#define SYMBOLIZE_NATIVE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "files/client.h"

struct native_symbols;

/* The answer for one address.  The cache owns the strings; they are valid until the next
 * native_symbols_resolve() or native_symbols_free(), so the caller copies what it keeps (into the
 * intern table of its window). */
struct native_symbol {
	const char *name;	 /* demangled; "[libfoo.so]" when no function covers the address */
	const char *system_name; /* the linker's name where it differs from name, else "" */
	uint64_t start;		 /* vaddr of the function; 0 when not found */
	bool found;
};

struct native_file {
	uint32_t id;	  /* same id: same contents */
	const char *path; /* as the process sees it; "[vdso]"; "" anonymous */
	/* A file that cannot be asked about is not tried again in the same round. */
	uint32_t round;
	/* Finds the functions of ascending addresses that are missing in the cache, as
	 * foreign_names(). */
	int (*find)(void *context, const struct native_file *file, const uint64_t *vaddr,
		    size_t count, foreign_function_handler *found, void *found_context);
	void *context;
};

struct native_symbols_counters {
	uint64_t asked, cached;	  /* addresses */
	uint64_t scans;		  /* of a file's symbols */
	uint64_t open_failures;	  /* tried again in the next round */
	uint64_t refused_files;	  /* not tried again: more work than elf/elf_image.h allows, or
				   * the child was late or ended */
	uint64_t evicted_files;	  /* from the cache, least recently used first */
	uint64_t dropped_symbols; /* left unnamed: one resolve exceeded twice the bound */
};

/* Creates a cache of max_bytes.  The bound is checked when a resolve begins, so the answers of one
 * resolve may exceed it, up to twice the bound. */
int native_symbols_new(size_t max_bytes, struct native_symbols **ret_symbols);
void native_symbols_free(struct native_symbols *symbols);
DEFINE_OWNED(struct native_symbols, native_symbols)

/* Names `count` addresses (vaddr as in the ELF file, any order, repeats are fine).  For a caller's
 * frame ask for RA - 1, so that a call at the end of a function is not taken for the next function.
 * ret_symbol has room for count.  A file that cannot be opened or has no symbols still gives 0, and
 * names in brackets.  Returns 0 or -ENOMEM. */
int native_symbols_resolve(struct native_symbols *symbols, const struct native_file *file,
			   const uint64_t *vaddr, size_t count, struct native_symbol *ret_symbol);
struct native_symbols_counters native_symbols_counters(const struct native_symbols *symbols);

#endif
