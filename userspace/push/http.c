/* SPDX-License-Identifier: BSD-2-Clause */
#include "push/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/http_client.h"

#define HANGS_AFTER_S 20U /* a collector that takes nothing for so long */
#define CONTENT_TYPE_BYTES 128U

struct push_http {
	struct http_client *client; /* owned */
	const struct push_target *target;
	char content_type[CONTENT_TYPE_BYTES];
	const char *header[3]; /* of each request, NULL at the end */
	char body[PUSH_ANSWER_MAX_BYTES];
	size_t body_size;
};

void push_http_free(struct push_http *http)
{
	if (!http)
		return;
	http_client_free(http->client);
	free(http);
}

static int take_body(void *context, unsigned int status, const void *bytes, size_t size)
{
	struct push_http *http = context;
	size_t room = sizeof(http->body) - 1 - http->body_size;

	(void)status;
	memcpy(http->body + http->body_size, bytes, size < room ? size : room);
	http->body_size += size < room ? size : room;
	return 0;
}

static enum push_failure failure_of(enum http_client_end end)
{
	switch (end) {
	case HTTP_CLIENT_ANSWERED:
		return PUSH_ANSWERED;
	case HTTP_CLIENT_BAD_TLS:
		return PUSH_BAD_TLS;
	case HTTP_CLIENT_NOT_SENT:
		return PUSH_NOT_SENT;
	default:
		return PUSH_CUT_OFF;
	}
}

int push_http_post(struct push_http *http, const struct push_request *request,
		   struct push_reply *ret_reply)
{
	const struct http_client_request post = {.url = http->target->url,
						 .header = http->header,
						 .body = request->body,
						 .size = request->size,
						 .take = take_body,
						 .context = http};
	struct http_client_reply reply;
	int err;

	http->body_size = 0;
	err = http_client_send(http->client, &post, &reply);
	http->body[http->body_size] = '\0';
	*ret_reply = (struct push_reply){
		.answer = {.failure = failure_of(reply.end),
			   .status = reply.status,
			   .body = http->body,
			   .body_size = http->body_size},
		.retry_after_ms = push_retry_after_ms(reply.retry_after, (int64_t)time(NULL))};
	snprintf(ret_reply->fault, sizeof(ret_reply->fault), "%s", reply.fault);
	return err;
}

bool push_http_has_new_token(struct push_http *http)
{
	return http_client_has_new_token(http->client);
}

static void set_headers(struct push_http *http)
{
	const struct push_target *target = http->target;
	size_t count = 0;

	snprintf(http->content_type, sizeof(http->content_type), "Content-Type: %s",
		 push_content_type(target->protocol));
	http->header[count++] = http->content_type;
	if (target->protocol == PUSH_OTLP && target->packs_otlp)
		http->header[count++] = "Content-Encoding: gzip";
	if (target->protocol == PUSH_PYROSCOPE)
		http->header[count++] = "Connect-Protocol-Version: 1";
}

int push_http_new(const struct push_target *target, const atomic_bool *has_to_stop,
		  struct push_http **ret_http)
{
	const struct http_client_options options = {.token_file = target->token_file,
						    .token = target->token,
						    .user = target->user,
						    .ca = target->ca,
						    .cert = target->cert,
						    .key = target->key,
						    .proxy = target->proxy,
						    .tenant = target->tenant,
						    .header = target->header,
						    .header_count = target->header_count,
						    .timeout_ms = target->timeout_ms,
						    .idle_s = HANGS_AFTER_S,
						    .has_to_stop = has_to_stop};
	OWNED(push_http) struct push_http *http = calloc(1, sizeof(*http));
	int err;

	if (!http)
		return -ENOMEM;
	http->target = target;
	set_headers(http);
	err = http_client_new(&options, &http->client);
	if (err)
		return err;
	*ret_http = TAKE(http);
	return 0;
}
