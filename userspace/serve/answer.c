/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/answer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json_writer.h"
#include "base/utf8.h"

/* An answer that is one JSON object, and the range that it is of. */

void json_answer_release(struct json_answer *body)
{
	if (body->out)
		fclose(body->out);
	free(body->text);
	*body = (struct json_answer){0};
}

int json_answer_begin(struct json_answer *body)
{
	body->out = open_memstream(&body->text, &body->size);
	if (!body->out)
		return -ENOMEM;
	body->json = json_writer_to(body->out);
	json_open(&body->json, '{');
	return 0;
}

int json_answer_end(struct json_answer *body, struct answer *ret_answer)
{
	int err;

	json_close(&body->json, '}');
	putc('\n', body->out);
	err = json_finish(&body->json);
	if (close_memory_file(TAKE(body->out), &body->text) || err)
		return -ENOMEM;
	*ret_answer = (struct answer){
		.status = 200, .type = ANSWER_JSON, .body = TAKE(body->text), .size = body->size};
	return 0;
}

bool json_answer_range(struct request *request, uint64_t now_ms, struct answer *ret_answer)
{
	request_range(request, now_ms, &request->from_ms, &request->until_ms);
	if (request->from_ms < request->until_ms)
		return true;
	answer_say(ret_answer, 400, "from is not before until\n");
	return false;
}

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
