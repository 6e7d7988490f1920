/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernel addresses to names, from /proc/kallsyms.  Read on the first use; code only.
 * Memory: 10 bytes a symbol and the names once; 3.2 MiB for 100,000 symbols.  One thread. */
#ifndef SYMBOLIZE_KERNEL_SYMBOLS_H
#define SYMBOLIZE_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define KERNEL_SYMBOLS_MAX (1U << 19)
#define KERNEL_MODULES_MAX 4096U
#define KERNEL_NAMES_MAX_BYTES (16U << 20)
#define KERNEL_FUNCTION_MAX_BYTES (1U << 20) /* an address further from a symbol has no name */

struct kernel_symbols;

/* proc: "/proc"; borrowed.  Nothing is read yet. */
int kernel_symbols_new(const char *proc, struct kernel_symbols **ret_symbols);
void kernel_symbols_free(struct kernel_symbols *symbols);
DEFINE_OWNED(struct kernel_symbols, kernel_symbols)

/* The function of an address; module: "nf_tables", "bpf", "" for the kernel itself.  The strings are
 * valid until kernel_symbols_refresh() or kernel_symbols_forget().
 * Returns 0; -ENOENT; -EPERM, once a load, when the kernel hides its addresses (kptr_restrict, no
 * CAP_SYSLOG): then -ENOENT; -ENOMEM; -errno of reading, once a load. */
int kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address, const char **ret_name,
			const char **ret_module);
/* Once a window: forgets the table when modules came or went since it was read.
 * Returns 1 when it did, else 0. */
int kernel_symbols_refresh(struct kernel_symbols *symbols);
/* The next find reads anew; for side-band records of BPF programs (PERF_RECORD_KSYMBOL), which
 * /proc/modules does not tell of. */
void kernel_symbols_forget(struct kernel_symbols *symbols);
size_t kernel_symbols_count(const struct kernel_symbols *symbols);
size_t kernel_symbols_bytes(const struct kernel_symbols *symbols);

#endif
