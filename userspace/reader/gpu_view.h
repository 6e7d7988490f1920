/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows what processes had the GPU do, as text. */
#ifndef READER_GPU_VIEW_H
#define READER_GPU_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "reader/gpu_table.h"
#include "render/table.h"

struct gpu_shown {
	const struct gpu_table *table;
	const struct gpu_groups *groups; /* of views other than GPU_VIEW_ALL */
	enum gpu_view view;
	uint64_t duration_ns; /* that was recorded */
	uint32_t rows;	      /* 0: all */
	bool color;
	bool is_scaled; /* launches were counted for a part of the time */
};

/* Returns 0 or -ENOMEM. */
int gpu_print_text(const struct gpu_shown *shown);
/* Of gpu_export.c: writes tables for programs, and as Markdown: `lines`, `calls` and `times`, or
 * `rows` of another view.  Columns that end with _error are the standard errors of what is divided
 * by stacks; they are empty, null or NULL where they are not known.  Returns 0 or -ENOMEM. */
int gpu_put_tables(const struct gpu_shown *shown, struct table *table);

#endif
