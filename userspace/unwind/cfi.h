/* SPDX-License-Identifier: BSD-2-Clause */
/* Our own decoder of .eh_frame, .debug_frame and Go's .gopclntab. elf_image -> [cfi] -> rows. The
 * bytes are not trusted: every read is checked, every loop bounded. Source: System V psABI x86-64,
 * EH_FRAME sections; DWARF 5 section 6.4; elf/go_table.h. */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/unwind.h>

#include "base/cleanup.h"
#include "elf/elf_image.h"

/* One decoded row: the rule holds from vaddr to the next row. */
struct cfi_row {
	uint64_t vaddr;
	struct pp_rule rule;
};

struct cfi; /* CIE cache and the sorted table of FDEs of one file */

/* Opens the unwind information of an image, which is borrowed and must outlive the object. Uses the
 * table in .eh_frame_hdr when it is sane, else walks .eh_frame. Code that has none there is looked
 * up in .gopclntab, or, without that, in .debug_frame.
 * Returns 0; -ENODATA when there is no such section; -EBADMSG; -E2BIG when the file takes more work
 * than its budget (elf/elf_image.h); -ENOMEM. */
int cfi_open(const struct elf_image *image, struct cfi **ret_cfi);
void cfi_free(struct cfi *cfi);
DEFINE_OWNED(struct cfi, cfi)

/* Declares that the function at vaddr has no caller, whatever its FDE says, because a stack of its
 * own begins there. 0: there is no such function. */
void cfi_set_outermost(struct cfi *cfi, uint64_t vaddr);

/* Declares that functions of stacks of their own return to vaddr, where no call is: what calls them
 * is none. At most four; others are left out. */
void cfi_add_root(struct cfi *cfi, uint64_t vaddr);

/* Functions, or parts of some, with FDEs or in Go's table. */
size_t cfi_fde_count(const struct cfi *cfi);
/* Compiles the rows of all code in [low, high), sorted by vaddr, equal neighbours merged. The first
 * row is at `low` and gives the rule that holds there. Addresses that no FDE covers have
 * PP_RULE_NO_INFO. A damaged FDE gives NO_INFO for its range and counts in *ret_bad_fdes (may be
 * NULL).
 * Rows are appended to *rows (realloc'd; the caller frees). Returns 0; -E2BIG when the file takes
 * more work than its budget: what was appended is not to be used; -ENOMEM. */
struct cfi_rows {
	struct cfi_row *row;
	size_t count, capacity;
};
int cfi_compile(struct cfi *cfi, uint64_t low, uint64_t high, struct cfi_rows *rows,
		size_t *ret_bad_fdes);
/* Finds the rule at one address, for unwinding in user space. Returns 0; the rule is NO_INFO when
 * nothing covers the address. */
int cfi_rule_at(struct cfi *cfi, uint64_t vaddr, struct pp_rule *ret_rule);
/* The code of an FDE, or of a function in Go's table. */
struct cfi_range {
	uint64_t low, high;
	bool starts_inside; /* the frame is set up already, unlike that of a function just called */
};
/* Reads the FDE of a number below cfi_fde_count(). Returns 0; -EBADMSG. */
int cfi_fde_at(struct cfi *cfi, size_t number, struct cfi_range *ret_range);
/* Finds the FDE that covers vaddr. Returns 0; -ENOENT. */
int cfi_fde_find(struct cfi *cfi, uint64_t vaddr, struct cfi_range *ret_range);

#endif
