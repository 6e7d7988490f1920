/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows a table of memory by line (reader/mem_table.h), and the processes' resident memory. */
#ifndef READER_MEM_VIEW_H
#define READER_MEM_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "query/process_memory.h"
#include "reader/mem_table.h"
#include "render/table.h"

struct mem_view {
	const struct mem_table *table;		  /* sorted */
	const struct held *held;		  /* of kind alloc */
	const struct process_memories *processes; /* sorted */
	uint32_t rows;				  /* 0: all */
	bool leaks;				  /* the columns of --leaks */
};

/* Writes lines and processes: people get processes first. */
void mem_view_put(const struct mem_view *view, struct table *table);

#endif
