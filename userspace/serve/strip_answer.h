/* SPDX-License-Identifier: BSD-2-Clause */
/* /api/v1/strip: how much of a kind the store has when.  Thread-safe: workers call it. */
#ifndef SERVE_STRIP_ANSWER_H
#define SERVE_STRIP_ANSWER_H

#include "base/cleanup.h"
#include "serve/answer.h"

/* How long one answer reads files that nobody has asked for yet.  Who asks again while `pending`
 * is not 0 gets more; nothing is read while nobody asks. */
#define STRIP_BUDGET_NS 200000000ULL

struct strip_source;
/* store: borrowed.  Returns 0 or -ENOMEM. */
int strip_source_new(const char *store, struct strip_source **ret_source);
void strip_source_free(struct strip_source *source);
DEFINE_OWNED(struct strip_source, strip_source)

/* Answers a request for REQUEST_STRIP of one who sees everything.  now_ms: since 1970. */
void strip_answer(struct strip_source *source, const struct request *request, uint64_t now_ms,
		  struct answer *ret_answer);

#endif
