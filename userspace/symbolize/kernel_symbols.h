/* SPDX-License-Identifier: BSD-2-Clause */
/* Names kernel addresses from /proc/kallsyms, code only.  The file is read at the first lookup.
 * Memory: 10 bytes a symbol and each name once; 3.2 MiB for 100,000 symbols.  One thread. */
#ifndef SYMBOLIZE_KERNEL_SYMBOLS_H
#define SYMBOLIZE_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/slice.h"

#define KERNEL_SYMBOLS_MAX (1U << 19)
#define KERNEL_MODULES_MAX 4096U
#define KERNEL_NAMES_MAX_BYTES (16U << 20)
/* an address further than this from a symbol has no name */
#define KERNEL_FUNCTION_MAX_BYTES (1U << 20)

struct kernel_symbols;

/* Creates the object without reading anything.  proc: "/proc"; borrowed. */
int kernel_symbols_new(const char *proc, struct kernel_symbols **ret_symbols);
void kernel_symbols_free(struct kernel_symbols *symbols);
DEFINE_OWNED(struct kernel_symbols, kernel_symbols)

/* Reads the file until the slice is over (NULL: to its end), so that the first find need not.
 * Returns 1: the next call goes on; 0: it is read; the errors of reading, as the first find
 * would. */
int kernel_symbols_read(struct kernel_symbols *symbols, const struct slice *slice);
/* Finds the function of an address.  module: "nf_tables", "bpf", "" for the kernel itself.  The
 * strings are valid until kernel_symbols_refresh() or kernel_symbols_forget().
 * Returns 0; -ENOENT; -ENOMEM.  Two errors are returned once after each load, and -ENOENT after
 * that: -EPERM, when the kernel hides its addresses (kptr_restrict, no CAP_SYSLOG), and -errno of
 * reading. */
int kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address, const char **ret_name,
			const char **ret_module);
/* Drops the table when modules were loaded or unloaded since it was read; call it once a window.
 * Returns 1 when it did, else 0. */
int kernel_symbols_refresh(struct kernel_symbols *symbols);
/* Drops the table, so that the next find reads the file again: for side-band records of BPF
 * programs (PERF_RECORD_KSYMBOL), which /proc/modules does not show. */
void kernel_symbols_forget(struct kernel_symbols *symbols);

#endif
