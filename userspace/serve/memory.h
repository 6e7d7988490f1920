/* SPDX-License-Identifier: BSD-2-Clause */
/* How much memory pyprofd-serve may take, of which each part has a bound of its own: so it answers
 * 503, where it would else be killed.  MemoryMax= of its unit is above that by the files of live
 * windows, which lie in memory where /tmp does, and by the program's text and tables
 * (tests/lint/check_unit.sh). */
#ifndef SERVE_MEMORY_H
#define SERVE_MEMORY_H

#include "collectors/job.h"
#include "serve/http.h"

#define MEMORY_STACK_BYTES (8U << 20) /* of a thread, at most */
#define MEMORY_THREADS (HTTP_WATCHES_MAX + HTTP_MERGES_MAX + 1)
#define MEMORY_TLS_BYTES (40U << 10) /* of a connection's session, beside its request */
/* The program, and what it knows of files (query/file_totals.h). */
#define MEMORY_OWN_BYTES (32U << 20)

/* Of data and stacks.  One sink may read a file of the store meanwhile; what more than that at
 * once want is refused as it comes. */
#define MEMORY_DATA_MAX_BYTES (1728ULL << 20)
_Static_assert(HTTP_MERGES_MAX *(uint64_t)ANSWER_STORED_MAX_BYTES +
			       HTTP_WATCHES_MAX * (uint64_t)ANSWER_LIVE_MAX_BYTES +
			       HTTP_ANSWERS_MAX_BYTES +
			       HTTP_CONNECTIONS_MAX *
				       (uint64_t)(HTTP_CONNECTION_BYTES + MEMORY_TLS_BYTES) +
			       PUSH_MEMORY_MAX + MEMORY_THREADS * (uint64_t)MEMORY_STACK_BYTES +
			       MEMORY_OWN_BYTES <=
		       MEMORY_DATA_MAX_BYTES,
	       "everything at once fits");

#endif
