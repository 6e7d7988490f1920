/* SPDX-License-Identifier: BSD-2-Clause */
/* What the headers of answers to work say. */
#ifndef SERVE_ANSWER_HEAD_H
#define SERVE_ANSWER_HEAD_H

#include "serve/answer.h"

/* Sets what the headers say when the work for a request went well: status, type, policy, name. */
void answer_head_set(const struct request *request, struct answer *answer);
/* Makes the headers alone of what a request for work would get if all goes well: HEAD is not worth
 * the work. */
void answer_head(const struct request *request, struct answer *answer);

#endif
