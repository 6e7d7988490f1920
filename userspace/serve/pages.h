/* SPDX-License-Identifier: BSD-2-Clause */
/* The pages that pyprofd-serve has by itself. */
#ifndef SERVE_PAGES_H
#define SERVE_PAGES_H

#include "serve/answer.h"

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

#endif
