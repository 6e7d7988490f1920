/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds labels to a sample.  One that finds no room (PROFILE_MAX_LABELS) is left out. */
#ifndef WINDOWS_LABEL_H
#define WINDOWS_LABEL_H

#include <stdint.h>

struct intern;
struct profile_sample;

/* key: a string literal.  Does nothing for a value that is NULL or empty.  strings: of the profile
 * that the sample goes into.  Returns 0 or -ENOMEM. */
int label_string(struct intern *strings, struct profile_sample *sample, const char *key,
		 const char *value);
void label_number(struct profile_sample *sample, const char *key, int64_t value);

#endif
