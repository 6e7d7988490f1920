/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers with profiles: of what runs from now on, and of the store.  Takes its time: workers call
 * it. */
#ifndef SERVE_PROFILE_ANSWER_H
#define SERVE_PROFILE_ANSWER_H

#include "serve/answer.h"

/* Gets the profile that a request for REQUEST_LIVE or REQUEST_STORED names. */
void profile_answer(const struct answer_sources *sources, const struct request *request,
		    const struct answer_view *view, struct answer *ret_answer);

#endif
