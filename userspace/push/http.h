/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends the requests of a sink, one at a time.  One thread an object; curl_global_init() comes
 * first. */
#ifndef PUSH_HTTP_H
#define PUSH_HTTP_H

#include <stdatomic.h>

#include "push/target.h"

#define PUSH_ANSWER_MAX_BYTES 65536U /* of a body; what is behind is not kept */
#define PUSH_FAULT_BYTES 512U

struct push_http;

/* target: borrowed.  has_to_stop: ends a request that waits.  Returns 0 or -ENOMEM. */
int push_http_new(const struct push_target *target, const atomic_bool *has_to_stop,
		  struct push_http **ret_http);
void push_http_free(struct push_http *http);
DEFINE_OWNED(struct push_http, push_http)

/* What came back; texts are the sender's, until the next request. */
struct push_reply {
	struct push_answer answer;
	uint64_t retry_after_ms; /* 0: not asked for */
	char fault[PUSH_FAULT_BYTES]; /* one line; "" after success */
};

/* Sends a body.  Reads the token's file anew each time.  Redirects are never followed: a token
 * would go where they lead.  Returns 0, whatever the collector answers; -EPERM, -EINVAL, -errno:
 * nothing was sent, as the token's file cannot be used, with fault set; -ENOMEM. */
int push_http_post(struct push_http *http, const struct push_request *request,
		   struct push_reply *ret_reply);

/* Returns whether the file of the token has another text than at the last request. */
bool push_http_has_new_token(struct push_http *http);

#endif
