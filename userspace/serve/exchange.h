/* SPDX-License-Identifier: BSD-2-Clause */
/* One request and its answer, without a socket: which request it is, who may ask it, and all
 * answers that take no work. */
#ifndef SERVE_EXCHANGE_H
#define SERVE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/access.h"
#include "serve/answer.h"
#include "serve/counts.h"
#include "serve/request.h"

#define EXCHANGE_PARAMETERS_MAX 32U
#define EXCHANGE_COOKIE "pyprofd_session"

/* What a client has sent; everything is from anybody, and borrowed. */
struct exchange_ask {
	const char *method, *path;
	const char *host;	   /* NULL: no such header */
	const char *authorization; /* as host */
	const char *cookie;	   /* value of EXCHANGE_COOKIE; NULL: none */
	struct exchange_parameter {
		const char *name, *value; /* decoded; value NULL: none */
	} parameter[EXCHANGE_PARAMETERS_MAX];
	size_t parameter_count; /* more than EXCHANGE_PARAMETERS_MAX: too many */
	bool has_body;
	struct access_client client; /* its token is found here */
};

struct exchange_rules {
	const char *token; /* NULL: none */
	const struct sessions *sessions; /* what a cookie may name; NULL: none */
	const char *const *name;
	size_t name_count;
};

enum exchange_step {
	EXCHANGE_ANSWER,   /* the answer is there */
	EXCHANGE_REDIRECT, /* to the path, with a session as a cookie */
	EXCHANGE_WORK,	   /* a worker makes it, by its endpoint */
	EXCHANGE_METRICS,  /* metrics_text() makes it */
	EXCHANGE_READY,	   /* whether pyprofd answers makes it */
};

/* Returns whether it matters who asks for this path: finding out costs what others have sockets
 * open, where the kernel cannot be asked for one (peer.h). */
bool exchange_needs_client(const char *path);
/* Decides what is to be done.  Fills in the request and whose view it is, or the answer.  Counts
 * what is refused. */
enum exchange_step exchange_begin(const struct exchange_ask *ask,
				  const struct exchange_rules *rules, uint64_t now_ms,
				  struct counts *counts, struct request *ret_request,
				  struct answer_view *ret_view, struct answer *ret_answer);

#endif
