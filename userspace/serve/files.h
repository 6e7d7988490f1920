/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers with the store's own files, unchanged, for readers on other machines: their names, and
 * each by its name (docs/design/serve.md).  Takes its time: workers call it. */
#ifndef SERVE_FILES_H
#define SERVE_FILES_H

#include "serve/answer.h"

/* The pages that pyprofd-serve has by itself. */

/* Of most pages: nothing is loaded from elsewhere, and nobody frames them. */
#define PAGES_POLICY                                                                               \
	"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; "                  \
	"base-uri 'none'; form-action 'none'"

/* What there is to ask for. */
void pages_index(struct answer *answer);
/* The page of the history, its style and its script (web/). */
void pages_history(struct answer *answer);
void pages_history_style(struct answer *answer);
void pages_history_script(struct answer *answer);

/* Lists the names of the files in a range, one a line, sorted by start: REQUEST_FILES. */
void files_list(const char *store, const struct request *request, struct answer *ret_answer);
/* Gets one file: REQUEST_FILE. */
void files_get(const char *store, const struct request *request, struct answer *ret_answer);

#endif
