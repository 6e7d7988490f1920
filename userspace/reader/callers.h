/* SPDX-License-Identifier: BSD-2-Clause */
/* report --callers and --callees: who calls the functions that match, and what they call. */
#ifndef READER_CALLERS_H
#define READER_CALLERS_H

#include "reader/input.h"

/* Either regex may be NULL.  0 or -ENOMEM. */
int callers_print(const struct input *input, const regex_t *callers, const regex_t *callees,
		  bool color);

#endif
