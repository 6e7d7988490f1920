/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/verifier_log.h"

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/* The reason and statistics (include/linux/bpf_verifier.h: BPF_LOG_STATS).  libbpf's own second try
 * asks for each instruction as well, for which no buffer has room: before Linux 6.4 the error is
 * then ENOSPC, and the log ends before the reason. */
#define LEVEL_STATISTICS 4U

void verifier_log_set(struct bpf_program *program, char *log)
{
	(void)bpf_program__set_log_buf(program, log, VERIFIER_LOG_BYTES);
	(void)bpf_program__set_log_level(program, LEVEL_STATISTICS);
}

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
