/* SPDX-License-Identifier: BSD-2-Clause */
/* /api/v1/waits: where the time of each process went, from the ledgers of the store. */
#ifndef SERVE_WAITS_ANSWER_H
#define SERVE_WAITS_ANSWER_H

#include "serve/answer.h"

/* Answers a request for REQUEST_WAITS of one who sees everything.  now_ms: since 1970. */
void waits_answer(const struct answer_sources *sources, const struct request *request,
		  const struct answer_view *view, uint64_t now_ms, struct answer *ret_answer);

#endif
