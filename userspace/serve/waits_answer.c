/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/waits_answer.h"

#include <errno.h>

#include "base/cleanup.h"
#include "query/machine.h"
#include "serve/json_answer.h"
#include "serve/request_read.h"
#include "serve/waits.h"

/* What is read of the ledgers. */
struct ledgers {
	struct machine machine;
	int err;
};

static void on_comment(void *context, const char *text)
{
	struct ledgers *ledgers = context;

	if (!ledgers->err)
		ledgers->err = machine_add(&ledgers->machine, text);
}

static int encode(struct machine *machine, const struct request *request, struct answer *answer)
{
	CLEANUP(json_answer_release) struct json_answer body = {0};
	int err = json_answer_begin(&body);

	if (err)
		return err;
	json_put_int(&body.json, "from_ms", (int64_t)request->from_ms);
	json_put_int(&body.json, "until_ms", (int64_t)request->until_ms);
	machine_sort(machine);
	waits_put(machine, request->pid, &body.json);
	return json_answer_end(&body, answer);
}

void waits_answer(const struct answer_sources *sources, const struct request *request,
		  const struct answer_view *view, uint64_t now_ms, struct answer *ret_answer)
{
	struct ledgers ledgers = {.machine.by_pid = true};
	const struct input_options options = {.comments_only = true,
					      .drop_addresses = true,
					      .drop_lines = true,
					      .may_be_none = true,
					      .comment = on_comment,
					      .context = &ledgers};
	OWNED(input) struct input *input = NULL;
	struct request ranged = *request;
	int err;

	*ret_answer = (struct answer){0};
	ranged.pid = 0; /* ledgers are in comments, which no sample's label chooses */
	if (!json_answer_range(&ranged, now_ms, ret_answer))
		return;
	err = request_read(sources, &ranged, view, &options, &input, ret_answer);
	ranged.pid = request->pid;
	if (!err) {
		err = ledgers.err ? ledgers.err : encode(&ledgers.machine, &ranged, ret_answer);
		if (err)
			answer_say(ret_answer, 503, "no memory\n");
	}
	machine_release(&ledgers.machine);
}
