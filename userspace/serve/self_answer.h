/* SPDX-License-Identifier: BSD-2-Clause */
/* /api/v1/self: who asks, what that one sees, and what there is to ask for. */
#ifndef SERVE_SELF_ANSWER_H
#define SERVE_SELF_ANSWER_H

#include "serve/answer.h"

#define SELF_INTERVAL_MS 10000U /* of windows, where the store has none */

/* Answers a request for REQUEST_SELF.  store: its directory, of which only names are read.  now_ms:
 * since 1970. */
void self_answer(const char *store, const struct answer_view *view, uint64_t now_ms,
		 struct answer *ret_answer);

#endif
