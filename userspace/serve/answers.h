/* SPDX-License-Identifier: BSD-2-Clause */
/* What the server says of profiles: the profiles themselves, and what is in those of the store.
 * All of it reads files, and takes its time: workers call it. */
#ifndef SERVE_ANSWERS_H
#define SERVE_ANSWERS_H

#include "base/cleanup.h"
#include "query/input.h"
#include "serve/answer.h"

/* Reads the profiles that a request names: of what runs from now on, or of the store.
 * wanted: its `select` and `watcher` are filled in here.  Returns 0, and with wanted.may_be_none
 * NULL where the store has nothing; -errno, and an answer that says why. */
int request_read(const struct answer_sources *sources, const struct request *request,
		 const struct answer_view *view, const struct input_options *wanted,
		 struct input **ret_input, struct answer *ret_answer);

/* Gets the profile that a request for REQUEST_LIVE or REQUEST_STORED names. */
void profile_answer(const struct answer_sources *sources, const struct request *request,
		    const struct answer_view *view, struct answer *ret_answer);

/* /api/v1/labels: which labels the samples of the store have, and how much each one is. */

/* Answers a request for REQUEST_LABELS of one who sees everything.  now_ms: since 1970. */
void labels_answer(const struct answer_sources *sources, const struct request *request,
		   const struct answer_view *view, uint64_t now_ms, struct answer *ret_answer);

/* /api/v1/waits: where the time of each process went, from the ledgers of the store. */

/* Answers a request for REQUEST_WAITS of one who sees everything.  now_ms: since 1970. */
void waits_answer(const struct answer_sources *sources, const struct request *request,
		  const struct answer_view *view, uint64_t now_ms, struct answer *ret_answer);

/* /api/v1/strip: how much of a kind the store has when.  Thread-safe: workers call it. */

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
