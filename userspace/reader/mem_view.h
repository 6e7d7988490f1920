/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows a table of memory by line, and the processes' resident memory. */
#ifndef READER_MEM_VIEW_H
#define READER_MEM_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile_data.h"
#include "query/machine.h"
#include "render/code_table.h"
#include "render/held.h"
#include "render/table.h"

/* The columns of both kinds: in the order of kinds.h. */
enum { MEM_TOUCHED, MEM_COPIED, MEM_FAULTS, MEM_TYPES };
enum { MEM_ALLOCATED, MEM_OBJECTS, MEM_HELD, MEM_HELD_OBJECTS, MEM_ALLOC_TYPES };
#define MEM_COLUMNS 4U

struct mem_row {
	uint32_t code; /* in mem_table.code */
	int64_t value[MEM_COLUMNS];
	/* Of kind alloc. */
	int64_t at_peak, for_long;
	int64_t point[HELD_POINTS];
	double growth;		      /* bytes a minute, from the first point to the last one */
	unsigned int grew, intervals; /* between points, and in how many of them it grew */
};

/* Release with mem_table_release(). */
struct mem_table {
	bool is_alloc;
	struct code_table code;
	struct mem_row *row; /* owned */
	uint32_t count;
	int64_t all[MEM_COLUMNS]; /* sums */
};

void mem_table_release(struct mem_table *table);
/* Fills a zeroed table.  held: of the windows of a profile of kind alloc.  Returns 0; -ENOMEM;
 * -EPROTO: the profile has other sample types than the kinds mem and alloc. */
int mem_table_fill(struct mem_table *table, const struct profile *profile, const struct held *held);
/* Returns whether a line's held bytes grew, and that in most intervals. */
bool mem_row_leaks(const struct mem_row *row);
/* Puts rows in order: those with the most touched or held bytes first; by_leak: those that leak by
 * their growth, then the others by what they hold for long. */
void mem_table_sort(struct mem_table *table, bool by_leak);

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
