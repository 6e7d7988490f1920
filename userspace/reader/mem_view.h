/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows a table of memory by line (reader/mem_table.h), and the processes' resident memory. */
#ifndef READER_MEM_VIEW_H
#define READER_MEM_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "query/process_memory.h"
#include "reader/mem_table.h"

struct mem_view {
	const struct mem_table *table;		  /* sorted */
	const struct held *held;		  /* of kind alloc */
	const struct process_memories *processes; /* sorted */
	const char *title;
	uint64_t duration_ns; /* that was recorded */
	uint32_t rows;	      /* 0: all */
	bool leaks;	      /* the columns of --leaks */
	bool color;
};

void mem_print_text(const struct mem_view *view);
/* Return 0 or -EIO. */
int mem_print_csv(const struct mem_view *view, FILE *out);
int mem_print_json(const struct mem_view *view, FILE *out);

#endif
