/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of a Go program or library, from .gopclntab, which the program itself needs, so
 * that stripping keeps it: their names, and how far the stack pointer has moved at each address.
 * Each offset is checked, and each loop pays from the image's budget.  Source: runtime/symtab.go
 * and cmd/link/internal/ld/pcln.go of Go 1.18 to 1.26. */
#ifndef ELF_GO_TABLE_H
#define ELF_GO_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_image.h"

struct go_table {
	const struct elf_image *image; /* borrowed */
	const uint8_t *bytes;	       /* the section */
	uint64_t size;
	uint64_t count; /* functions, by address; 0: it is no Go program */
	uint64_t text;	/* the address from which those of functions count */
	/* where in the section: names, tables of the stack pointer, functions and their records */
	uint64_t names, steps, functions;
	uint8_t flags_at; /* in a function's record */
	uint8_t quantum;  /* bytes of the least instruction */
};
/* Returns 0; -ENOENT: it has none, or one of another version; -EBADMSG. */
int go_table_open(const struct elf_image *image, struct go_table *ret_table);

struct go_function {
	uint64_t low, high;
	const char *name; /* not terminated within name_room bytes: damaged */
	size_t name_room;
	uint64_t steps; /* where its table of the stack pointer is */
	bool is_outermost;
	bool sets_stack; /* it goes to another stack, which the table of the stack pointer lacks */
};
/* Returns the number of functions that begin at or below vaddr. */
size_t go_table_upto(const struct go_table *table, uint64_t vaddr);
/* Reads function `index`.  Returns 0; -EBADMSG. */
int go_table_function(const struct go_table *table, size_t index, struct go_function *ret_function);
/* Finds the function that covers vaddr.  Returns 0; -ENOENT. */
int go_table_find(const struct go_table *table, uint64_t vaddr, struct go_function *ret_function);
/* Finds a function by its name.  Returns 0; -ENOENT. */
int go_table_named(const struct go_table *table, const char *name,
		   struct go_function *ret_function);
bool go_function_is(const struct go_function *function, const char *name);

/* Reads a function's table of the stack pointer, step by step. */
struct go_steps {
	const struct go_table *table;
	uint64_t at, end;	   /* in the section */
	uint64_t low, high, limit; /* addresses: of the step; of the function's end */
	int64_t depth;		   /* bytes, in [low, high), that the function has on the stack */
};
void go_steps_begin(const struct go_table *table, const struct go_function *function,
		    struct go_steps *ret_steps);
/* Returns false behind the last step, and where the table is damaged. */
bool go_steps_next(struct go_steps *steps);

#endif
