/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes what processes had the GPU do for other programs.  Columns that end with _error are the
 * standard errors of what is divided by stacks; they are empty, null or NULL where they are not
 * known.  All return 0 or -EIO. */
#ifndef READER_GPU_EXPORT_H
#define READER_GPU_EXPORT_H

#include <stdio.h>

#include "reader/gpu_view.h"

/* A record a line: of GPU_VIEW_ALL with its call's figures in columns that begin with call_. */
int gpu_print_csv(const struct gpu_shown *shown, FILE *out);
int gpu_print_json(const struct gpu_shown *shown, FILE *out);
/* A script for sqlite3 with the tables recording, calls, lines and times, whatever the view. */
int gpu_print_sql(const struct gpu_shown *shown, FILE *out);

#endif
