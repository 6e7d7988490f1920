/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char head[] = "facts ";

void facts_begin(FILE *out)
{
	fputs("facts", out);
}

void facts_put(FILE *out, const char *prefix, const char *name, uint64_t value)
{
	fprintf(out, " %s%s=%" PRIu64, prefix, name, value);
}

void facts_read(const char *comment,
		void (*on_fact)(void *context, const char *name, size_t size, uint64_t value),
		void *context)
{
	const char *text = comment + strlen(head);

	if (strncmp(comment, head, strlen(head)))
		return;
	while (*text) {
		size_t size = strcspn(text, "= ");
		unsigned long long value;
		char *end;

		if (text[size] != '=')
			return;
		errno = 0;
		value = strtoull(text + size + 1, &end, 10);
		if (end == text + size + 1 || errno)
			return;
		on_fact(context, text, size, value);
		text = end + strspn(end, " ");
	}
}
