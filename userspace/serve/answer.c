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
		answer->type = ANSWER_TEXT;
		return;
	}
	*answer = (struct answer){
		.status = status, .type = ANSWER_TEXT, .body = text, .size = (size_t)size};
}

void answer_say_clean(struct answer *answer, unsigned int status, const char *line)
{
	const size_t size = strlen(line);
	OWNED_MEM char *clean = calloc(size + 1, UTF8_CLEAN_MAX_GROWTH);

	if (clean)
		clean[utf8_clean(line, size, clean)] = '\0';
	answer_say(answer, clean ? status : 500, "%s\n", clean ? clean : "no memory");
}

int answer_write(struct answer *answer, int (*write)(FILE *out, void *context), void *context)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int err;

	if (!out)
		return -ENOMEM;
	err = write(out, context);
	if (close_memory_file(out, &text) || err)
		return err ? err : -ENOMEM;
	if (size > ANSWER_MAX_BYTES)
		return -EFBIG;
	answer->body = TAKE(text);
	answer->size = size;
	return 0;
}

/* ---- one that is a JSON object, and the range that it is of ---- */

struct object {
	void (*put)(struct json_writer *json, const void *context);
	const void *context;
};

static int write_object(FILE *out, void *context)
{
	const struct object *object = context;
	struct json_writer json = json_writer_to(out);

	json_open(&json, '{');
	object->put(&json, object->context);
	json_close(&json, '}');
	putc('\n', out);
	return json_finish(&json);
}

void answer_json(struct answer *answer, void (*put)(struct json_writer *json, const void *context),
		 const void *context)
{
	struct object object = {put, context};

	*answer = (struct answer){.status = 200, .type = ANSWER_JSON};
	if (answer_write(answer, write_object, &object))
		answer_say(answer, 503, "no memory\n");
}

bool answer_range(struct request *request, uint64_t now_ms, struct answer *ret_answer)
{
	request_range(request, now_ms, &request->from_ms, &request->until_ms);
	if (request->from_ms < request->until_ms)
		return true;
	answer_say(ret_answer, 400, "from is not before until\n");
	return false;
}

/* ---- what the headers of answers to work say ---- */

/* Of the flame graph's page: its own scripts alone, and an origin of its own, so that whatever a
 * name in it did could neither use the viewer's session nor ask anybody. */
static const char page_policy[] =
	"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
	"base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
	"sandbox allow-scripts allow-downloads";

static const struct {
	const char *type, *policy; /* as in struct answer */
	const char *ending;	   /* NULL: it is shown, not saved */
} formats[] = {
	[REQUEST_PPROF] = {"application/octet-stream", NULL, ".pb.gz"},
	[REQUEST_JSON] = {ANSWER_JSON, NULL, ".json"},
	[REQUEST_FOLDED] = {ANSWER_TEXT, NULL, ".folded"},
	[REQUEST_HTML] = {"text/html; charset=utf-8", page_policy, NULL},
};

void answer_head_set(const struct request *request, struct answer *answer)
{
	answer->status = 200;
	answer->type = ANSWER_JSON;
	if (request->endpoint == REQUEST_FILES)
		answer->type = ANSWER_TEXT;
	if (request->endpoint == REQUEST_FILE) {
		answer->type = "application/octet-stream";
		store_file_name(&request->file, answer->file_name);
	}
	if (request->endpoint != REQUEST_LIVE && request->endpoint != REQUEST_STORED)
		return;
	answer->type = formats[request->format].type;
	answer->policy = formats[request->format].policy;
	if (formats[request->format].ending)
		snprintf(answer->file_name, sizeof(answer->file_name), "%s%s",
			 request_kind(request), formats[request->format].ending);
}

void answer_head(const struct request *request, struct answer *answer)
{
	*answer = (struct answer){.is_head = true};
	answer_head_set(request, answer);
}
