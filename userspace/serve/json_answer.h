/* SPDX-License-Identifier: BSD-2-Clause */
/* An answer that is one JSON object, and the range that it is of. */
#ifndef SERVE_JSON_ANSWER_H
#define SERVE_JSON_ANSWER_H

#include "base/json_writer.h"
#include "serve/answer.h"

/* Release with json_answer_release(); a zeroed one is empty. */
struct json_answer {
	struct json_writer json;
	char *text; /* owned */
	size_t size;
	FILE *out; /* owned; NULL: not begun, or ended */
};

void json_answer_release(struct json_answer *body);
/* Opens the object.  Returns 0 or -ENOMEM. */
int json_answer_begin(struct json_answer *body);
/* Closes the object and makes it the answer, with status 200.  Returns 0 or -ENOMEM. */
int json_answer_end(struct json_answer *body, struct answer *ret_answer);
/* Puts the defaults of request_range() into a request.  Returns false, and an answer: the range is
 * none. */
bool json_answer_range(struct request *request, uint64_t now_ms, struct answer *ret_answer);

#endif
