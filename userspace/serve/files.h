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

/* Of the history (web/): REQUEST_PAGE, its style REQUEST_STYLE and its script REQUEST_SCRIPT; and
 * what there is to ask for: REQUEST_INDEX. */
void pages_get(enum request_endpoint endpoint, struct answer *answer);

/* Lists the names of the files in a range, one a line, sorted by start: REQUEST_FILES. */
void files_list(const char *store, const struct request *request, struct answer *ret_answer);
/* Gets one file: REQUEST_FILE. */
void files_get(const char *store, const struct request *request, struct answer *ret_answer);

#endif
