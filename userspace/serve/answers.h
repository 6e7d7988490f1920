/* SPDX-License-Identifier: BSD-2-Clause */
/* What the server says of profiles: the profiles themselves, and what is in those of the store.
 * All of it reads files, and takes its time: workers call it. */
#ifndef SERVE_ANSWERS_H
#define SERVE_ANSWERS_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "query/input.h"
#include "query/machine.h"
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

/* /api/v1/waits: where the time of each process went, from the ledgers of the store.  Answers a
 * request for REQUEST_WAITS of one who sees everything.  now_ms: since 1970. */
void waits_answer(const struct answer_sources *sources, const struct request *request,
		  const struct answer_view *view, uint64_t now_ms, struct answer *ret_answer);

#define WAITS_PROCESSES_SHOWN 100U

/* Writes "processes":[{"pid","comm","ms":{"running",...},"running_ms":{"python",...}}],"more":N
 * into an object that is open, in milliseconds summed over threads; and, of all processes,
 * "others": the sum of those that are not shown or have no rows of their own. */
void waits_put(const struct machine *machine, bool is_of_all, struct json_writer *json);

#define SELF_INTERVAL_MS 10000U /* of windows, where the store has none */
/* /api/v1/self: who asks, what that one sees, and what there is to ask for.  store: its directory,
 * of which only names are read.  now_ms: since 1970. */
void self_answer(const char *store, const struct answer_view *view, uint64_t now_ms,
		 struct answer *ret_answer);

/* The store's own files, unchanged, for readers on other machines (docs/design/serve.md).  List the
 * names of those in a range, one a line, sorted by start: REQUEST_FILES; get one: REQUEST_FILE. */
void files_list(const char *store, const struct request *request, struct answer *ret_answer);
void files_get(const char *store, const struct request *request, struct answer *ret_answer);

/* The pages that pyprofd-serve has by itself. */

/* Of most pages: nothing is loaded from elsewhere, and nobody frames them. */
#define PAGES_POLICY                                                                               \
	"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "                  \
	"base-uri 'none'; form-action 'none'"

/* Of the history (web/): REQUEST_PAGE, its style REQUEST_STYLE and its script REQUEST_SCRIPT; and
 * what there is to ask for: REQUEST_INDEX. */
void pages_get(enum request_endpoint endpoint, struct answer *answer);

#endif
