/* SPDX-License-Identifier: BSD-2-Clause */
/* What the verbs that show GPUs say of profiles which have nothing of them. */
#ifndef READER_GPU_INPUT_H
#define READER_GPU_INPUT_H

#include "reader/select_options.h"

/* Both return READER_BAD_INPUT, after a line that says what is missing and how_to_record. */
int gpu_input_none(const char *title, const char *how_to_record);
/* Looks at the first path alone, before anything is read of it: 0 when it may have profiles of kind
 * cuda. */
int gpu_input_check(const struct select_options *shared, const char *how_to_record);

#endif
