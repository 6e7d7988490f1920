/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static const char text_type[] = ANSWER_TEXT;

void answer_release(struct answer *answer)
{
	free(answer->body);
	*answer = (struct answer){0};
}

void answer_say(struct answer *answer, unsigned int status, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int size;

	va_start(args, format);
	size = vasprintf(&text, format, args);
	va_end(args);
	answer_release(answer);
	if (size < 0) {
		answer->status = 500;
		answer->type = text_type;
		return;
	}
	*answer = (struct answer){
		.status = status, .type = text_type, .body = text, .size = (size_t)size};
}

void answer_say_clean(struct answer *answer, unsigned int status, const char *line)
{
	const size_t size = strlen(line);
	OWNED_MEM char *clean = calloc(size + 1, UTF8_CLEAN_MAX_GROWTH);

	if (clean)
		clean[utf8_clean(line, size, clean)] = '\0';
	answer_say(answer, clean ? status : 500, "%s\n", clean ? clean : "no memory");
}
