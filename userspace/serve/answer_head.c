/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/answer_head.h"

#include <stdio.h>

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
