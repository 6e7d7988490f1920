/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void facts_read(const char *comment,
		void (*on_fact)(void *context, const char *name, size_t size, uint64_t value),
		void *context)
{
	static const char head[] = "facts ";
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
