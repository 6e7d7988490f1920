/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes values of labels from what other programs have written: bounded, valid UTF-8, nothing that
 * a terminal obeys.  No state. */
#ifndef IDENTITY_LABEL_VALUE_H
#define IDENTITY_LABEL_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#define LABEL_VALUE_MAX_BYTES 128U /* what is longer is cut at a character */
#define LABEL_VALUE_BYTES (LABEL_VALUE_MAX_BYTES + 1U)

/* Cleans bytes as utf8_clean() does, up to the first NUL, and without the spaces around them. */
void label_value(const char *bytes, size_t size, char ret_value[LABEL_VALUE_BYTES]);
/* Takes bytes that are a decimal number of at most ten digits.  Returns whether they are; else
 * *ret_value is "". */
bool label_value_number(const char *bytes, size_t size, char ret_value[LABEL_VALUE_BYTES]);

#endif
