/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/verifier_log.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

static bool is_statistic(const char *line)
{
	static const char *const beginning[] = {"processed ", "verification time", "stack depth"};

	for (size_t i = 0; i < ARRAY_SIZE(beginning); i++)
		if (!strncmp(line, beginning[i], strlen(beginning[i])))
			return true;
	return false;
}

const char *verifier_log_reason(char *log)
{
	const char *reason = NULL;
	char *line = log;

	while (line && *line) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		if (*line && !is_statistic(line))
			reason = line;
		line = end ? end + 1 : NULL;
	}
	return reason;
}
