/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: serve/answer.c serve/exchange.c serve/request.c base/nearest.c serve/files.c query/select.c base/kinds.c store/store_query.c base/regex_copies.c base/io.c base/json_writer.c base/utf8.c */
/* A request of anybody: method, path, Host, Authorization, cookie and parameters, one a line; of a
 * stranger, a user or root by the first byte. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "serve/exchange.h"

#define LINES_MAX 64U
#define MAX_BYTES 16384U
#define TOKEN "0123456789abcdef-token"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Splits into lines that end in NUL.  Returns how many there are. */
static size_t split(char *text, const char *line[LINES_MAX])
{
	size_t count = 0;

	for (char *at = text; at && count < LINES_MAX; count++) {
		char *end = strchr(at, '\n');

		line[count] = at;
		if (end)
			*end++ = '\0';
		at = end;
	}
	return count;
}

static void take_parameters(const char *const *line, size_t count, struct exchange_ask *ask)
{
	for (size_t i = 0; i < count; i++) {
		char *equals = strchr(line[i], '=');

		if (equals)
			*equals++ = '\0';
		if (ask->parameter_count++ < EXCHANGE_PARAMETERS_MAX)
			ask->parameter[ask->parameter_count - 1] =
				(struct exchange_parameter){line[i], equals};
	}
}

static void check(const struct exchange_ask *ask, enum exchange_step step,
		  const struct request *request, const struct answer_view *view)
{
	const bool shows_token = ask->authorization || ask->cookie;

	if (step != EXCHANGE_WORK)
		return;
	assert(request->pid <= 4U << 20 && request->seconds <= REQUEST_SECONDS_MAX);
	assert(request->label_count <= REQUEST_LABELS_MAX);
	for (unsigned int i = 0; i < request->label_count; i++)
		assert(memchr(request->label[i], '\0', sizeof(request->label[i])));
	assert(memchr(request->stored, '\0', sizeof(request->stored)));
	/* Nobody gets what is not for them. */
	if (request->endpoint != REQUEST_LIVE && request->endpoint != REQUEST_SELF &&
	    request->endpoint != REQUEST_READY)
		assert(!view->is_of_user);
	assert(request->points <= REQUEST_POINTS_MAX);
	if (ask->client.uid && !shows_token && !ask->parameter_count &&
	    request->endpoint != REQUEST_READY)
		assert(view->is_of_user && view->uid == ask->client.uid);
	assert(ask->client.has_uid || shows_token || ask->parameter_count ||
	       request->endpoint == REQUEST_READY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct access_client clients[] = {
		{.has_uid = false}, {.has_uid = true, .uid = 1000}, {.has_uid = true, .uid = 0}};
	static const char *const names[] = {"node7.example"};
	static const struct exchange_rules rules = {.token = TOKEN, .name = names, .name_count = 1};
	static struct counts counts;
	const char *line[LINES_MAX];
	struct exchange_ask ask = {0};
	struct request request = {0};
	struct answer_view view = {0};
	struct answer answer = {0};
	enum exchange_step step;
	char *text;
	size_t count;

	if (!size || size > MAX_BYTES)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	assert(text);
	count = split(text, line);
	ask.client = clients[data[0] % 3];
	ask.method = count > 0 ? line[0] : "GET";
	ask.path = count > 1 ? line[1] : "/";
	ask.host = count > 2 && line[2][0] ? line[2] : NULL;
	ask.authorization = count > 3 && line[3][0] ? line[3] : NULL;
	ask.cookie = count > 4 && line[4][0] ? line[4] : NULL;
	if (count > 5)
		take_parameters(line + 5, count - 5, &ask);
	step = exchange_begin(&ask, &rules, 1795273360165ULL, &counts, &request, &view, &answer);
	assert((step == EXCHANGE_ANSWER) == (answer.status != 0));
	assert(step != EXCHANGE_ANSWER || answer.is_head || answer.size);
	check(&ask, step, &request, &view);
	answer_release(&answer);
	free(text);
	return 0;
}
