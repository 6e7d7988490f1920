/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/json_answer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/io.h"

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
