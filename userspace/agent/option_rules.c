/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/option_rules.h"

#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *text, const char *end)
{
	size_t text_size = strlen(text), end_size = strlen(end);

	return text_size >= end_size && !strcmp(text + text_size - end_size, end);
}

static enum options_output_kind kind_of_output(const struct options *options)
{
	struct stat status;

	if (!strcmp(options->output, "-"))
		return OPTIONS_OUTPUT_PPROF;
	if (options->output_is_default || ends_with(options->output, "/"))
		return OPTIONS_OUTPUT_DIRECTORY;
	if (!stat(options->output, &status) && S_ISDIR(status.st_mode))
		return OPTIONS_OUTPUT_DIRECTORY;
	if (ends_with(options->output, ".folded") || ends_with(options->output, ".txt"))
		return OPTIONS_OUTPUT_FOLDED;
	return OPTIONS_OUTPUT_PPROF;
}

void option_rules_apply(struct options *options)
{
	options->output_kind = kind_of_output(options);
}
