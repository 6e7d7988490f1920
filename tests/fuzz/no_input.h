/* SPDX-License-Identifier: BSD-2-Clause */
/* Definitions for targets of views without an input: text.c's head line needs them to link, and no
 * such target prints it.  Include it in one file of a program. */
#ifndef TEST_FUZZ_NO_INPUT_H
#define TEST_FUZZ_NO_INPUT_H

#include "reader/text.h"

struct profile *input_profile(const struct input *input)
{
	(void)input;
	return NULL;
}
const struct profile_reader *input_reader(const struct input *input)
{
	(void)input;
	return NULL;
}
struct profile_read_totals input_totals(const struct input *input)
{
	(void)input;
	return (struct profile_read_totals){0};
}
const struct profile_value_type *input_value_type(const struct input *input)
{
	(void)input;
	return NULL;
}
const char *input_coverage(const struct input *input, char buffer[COVERAGE_BYTES])
{
	(void)input;
	buffer[0] = '\0';
	return buffer;
}
const char *input_title(const struct input *input)
{
	(void)input;
	return "";
}

#endif
