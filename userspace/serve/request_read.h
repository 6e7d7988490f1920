/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the profiles that a request names: of what runs from now on, or of the store. */
#ifndef SERVE_REQUEST_READ_H
#define SERVE_REQUEST_READ_H

#include "query/input.h"
#include "serve/answer.h"

/* wanted: its `select` and `watcher` are filled in here.  Returns 0, and with wanted.may_be_none
 * NULL where the store has nothing; -errno, and an answer that says why. */
int request_read(const struct answer_sources *sources, const struct request *request,
		 const struct answer_view *view, const struct input_options *wanted,
		 struct input **ret_input, struct answer *ret_answer);

#endif
