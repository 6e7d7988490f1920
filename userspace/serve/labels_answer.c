/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/labels_answer.h"

#include <errno.h>

#include "base/cleanup.h"
#include "serve/json_answer.h"
#include "serve/labels.h"
#include "serve/request_read.h"

static int encode(const struct labels *labels, const struct request *request, struct answer *answer)
{
	CLEANUP(json_answer_release) struct json_answer body = {0};
	int err = json_answer_begin(&body);

	if (err)
		return err;
	json_put_string(&body.json, "kind", request->stored);
	json_put_int(&body.json, "from_ms", (int64_t)request->from_ms);
	json_put_int(&body.json, "until_ms", (int64_t)request->until_ms);
	labels_put(labels, &body.json);
	return json_answer_end(&body, answer);
}

void labels_answer(const struct answer_sources *sources, const struct request *request,
		   const struct answer_view *view, uint64_t now_ms, struct answer *ret_answer)
{
	const struct input_options options = {.drop_stacks = true, .may_be_none = true};
	CLEANUP(labels_release) struct labels labels = {0};
	OWNED(input) struct input *input = NULL;
	struct request ranged = *request;
	int err = 0;

	*ret_answer = (struct answer){0};
	if (!json_answer_range(&ranged, now_ms, ret_answer) ||
	    request_read(sources, &ranged, view, &options, &input, ret_answer))
		return;
	if (input)
		err = labels_of_profile(input_profile(input),
					profile_reader_value_index(input_reader(input)), &labels);
	if (!err)
		err = encode(&labels, &ranged, ret_answer);
	if (err)
		answer_say(ret_answer, 503, "no memory\n");
}
