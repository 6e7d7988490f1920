/* SPDX-License-Identifier: BSD-2-Clause */
/* report --callers and --callees: the callers of the functions that match, and what these call. */
#ifndef READER_CALLERS_H
#define READER_CALLERS_H

#include "query/input.h"

/* Prints callers and callees; either regex may be NULL.  Returns 0 or -ENOMEM. */
int callers_print(const struct input *input, const regex_t *callers, const regex_t *callees,
		  bool color, FILE *out);

#endif
