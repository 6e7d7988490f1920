/* SPDX-License-Identifier: BSD-2-Clause */
/* /api/v1/labels: which labels the samples of the store have, and how much each one is. */
#ifndef SERVE_LABELS_ANSWER_H
#define SERVE_LABELS_ANSWER_H

#include "serve/answer.h"

/* Answers a request for REQUEST_LABELS of one who sees everything.  now_ms: since 1970. */
void labels_answer(const struct answer_sources *sources, const struct request *request,
		   const struct answer_view *view, uint64_t now_ms, struct answer *ret_answer);

#endif
