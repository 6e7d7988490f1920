/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes what processes had the GPU do as tables for programs, and as Markdown: `lines`, `calls`
 * and `times`, or `rows` of another view.  Columns that end with _error are the standard errors of
 * what is divided by stacks; they are empty, null or NULL where they are not known. */
#ifndef READER_GPU_EXPORT_H
#define READER_GPU_EXPORT_H

#include "reader/gpu_view.h"
#include "render/table.h"

/* Returns 0 or -ENOMEM. */
int gpu_put_tables(const struct gpu_shown *shown, struct table *table);

#endif
