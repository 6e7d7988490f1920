/* SPDX-License-Identifier: BSD-2-Clause */
/* What an HTTP request asks for: its path and its parameters.  Both come from anybody. */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/kinds.h"
#include "store/store_query.h"

#define REQUEST_SECONDS_DEFAULT 30U
#define REQUEST_SECONDS_MAX 3600U
#define REQUEST_VALUE_BYTES 256U /* of a parameter, its NUL included */
#define REQUEST_WHY_BYTES 256U
#define REQUEST_LABELS_MAX 8U
#define REQUEST_POINTS_DEFAULT 600U
#define REQUEST_POINTS_MAX 2000U
#define REQUEST_RANGE_MS 3600000ULL /* of request_range(), without `from` */

enum request_endpoint {
	REQUEST_PAGE,	 /* / */
	REQUEST_STYLE,	 /* /page.css */
	REQUEST_SCRIPT,	 /* /page.js */
	REQUEST_INDEX,	 /* /debug/pprof/ */
	REQUEST_LIVE,	 /* /debug/pprof/profile, /debug/pprof/KIND: what runs from now on */
	REQUEST_STORED,	 /* /api/v1/profile: what the store has */
	REQUEST_STRIP,	 /* /api/v1/strip: how much of it when */
	REQUEST_LABELS,	 /* /api/v1/labels: which labels it has */
	REQUEST_WAITS,	 /* /api/v1/waits: the ledger of its processes */
	REQUEST_SELF,	 /* /api/v1/self: who asks, and what there is */
	REQUEST_FILES,	 /* /api/v1/files: the names of its files */
	REQUEST_FILE,	 /* /api/v1/files/NAME: one of them */
	REQUEST_METRICS, /* /metrics */
	REQUEST_HEALTH,	 /* /healthz: this program answers */
	REQUEST_READY,	 /* /readyz: and so does pyprofd */
};

enum request_format { REQUEST_PPROF, REQUEST_JSON, REQUEST_FOLDED, REQUEST_HTML };

struct request {
	enum request_endpoint endpoint;
	enum pp_profile kind;	       /* of REQUEST_LIVE */
	char stored[STORE_KIND_CHARS]; /* kind of what the store has; of REQUEST_FILES: "": all */
	struct store_file file;	       /* of REQUEST_FILE */
	uint32_t seconds;
	uint32_t pid;		    /* 0: the whole machine */
	uint64_t from_ms, until_ms; /* since 1970; 0: not given */
	enum request_format format;
	uint32_t points; /* of REQUEST_STRIP */
	/* "KEY=REGEX", as select_add_label() takes it: the value and no other one */
	char label[REQUEST_LABELS_MAX][2 * REQUEST_VALUE_BYTES];
	unsigned int label_count;
};

/* Finds what a path asks for, and fills in the defaults of its parameters.  Returns 0; -ENOENT:
 * there is no such path. */
int request_route(const char *path, struct request *ret_request);
/* Takes a parameter, decoded; value NULL: there is none behind the name.  Of an endpoint that
 * does work, parameters that it does not have are refused; others have none.  now_ms: since 1970,
 * for times like "1h" ago.  Returns 0; -EINVAL, and in why what is wrong, in one line. */
int request_take(struct request *request, const char *name, const char *value, uint64_t now_ms,
		 char why[REQUEST_WHY_BYTES]);
/* Returns the name of the kind that is asked for. */
const char *request_kind(const struct request *request);
/* Returns the range of a request: the hour until now where it gives none.  from_ms may be behind
 * until_ms. */
void request_range(const struct request *request, uint64_t now_ms, uint64_t *ret_from_ms,
		   uint64_t *ret_until_ms);
/* Returns whether a request takes work: a worker answers it. */
bool request_needs_work(const struct request *request);

#endif
