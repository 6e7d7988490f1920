/* SPDX-License-Identifier: BSD-2-Clause */
/* /metrics: the agent's metrics as the live socket tells them, and this program's own, in the text
 * format of Prometheus. */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#include "collectors/push.h"
#include "query/folder.h"

/* ---- what is counted ---- */

/* What pyprofd-serve counts of itself.  Thread-safe. */

/* X(id, label): answers by their status. */
#define COUNTS_CODES(X)                                                                            \
	X(200, "200")                                                                              \
	X(303, "303")                                                                              \
	X(400, "400")                                                                              \
	X(401, "401")                                                                              \
	X(403, "403")                                                                              \
	X(404, "404")                                                                              \
	X(405, "405")                                                                              \
	X(500, "500")                                                                              \
	X(503, "503")
/* X(id, label): why a client was not served. */
#define COUNTS_REFUSALS(X)                                                                         \
	X(BUSY, "busy")	  /* no place for its work */                                              \
	X(SHARE, "share") /* the user has as many connections, or bytes, as are his */             \
	X(LATE_REQUEST, "late_request") /* the request did not come in time */                     \
	X(LATE_READER, "late_reader")	/* the answer was not read in time */                      \
	X(HOST, "host")			/* Host is neither an address nor a configured name */     \
	X(TOKEN, "token")		/* a wrong one */

#define COUNTS_ENUM_CODE(id, label) COUNTS_##id,
enum counts_code { COUNTS_CODES(COUNTS_ENUM_CODE) COUNTS_CODE_COUNT };
#define COUNTS_ENUM_REFUSAL(id, label) COUNTS_REFUSED_##id,
enum counts_refusal { COUNTS_REFUSALS(COUNTS_ENUM_REFUSAL) COUNTS_REFUSAL_COUNT };

struct counts {
	atomic_ullong code[COUNTS_CODE_COUNT];
	atomic_ullong refused[COUNTS_REFUSAL_COUNT];
	atomic_ullong sent_bytes; /* of bodies */
	atomic_uint connections;
};

/* X(name, COUNTER or GAUGE, label or "", where its values are (metrics.c), what it says) */
#define SERVE_METRICS(X)                                                                           \
	X("pyprofd_up", GAUGE, "", UP,                                                             \
	  "1: pyprofd answered this scrape; 0: its metrics are missing.")                          \
	X("pyprofd_store_files", GAUGE, "", STORE_FILES, "Files of the store.")                    \
	X("pyprofd_store_bytes", GAUGE, "", STORE_BYTES, "Size of the files of the store.")        \
	X("pyprofd_store_oldest_seconds", GAUGE, "", STORE_OLDEST,                                 \
	  "How long ago the oldest window of the store began; 0: it has none.")                    \
	X("pyprofd_store_newest_seconds", GAUGE, "", STORE_NEWEST,                                 \
	  "How long ago the newest window of the store ended; 0: it has none.")                    \
	X("pyprofd_serve_requests_total", COUNTER, "code", CODES,                                  \
	  "Requests, by the answer's status.")                                                     \
	X("pyprofd_serve_refused_total", COUNTER, "reason", REFUSALS,                              \
	  "Clients not served, by reason.")                                                        \
	X("pyprofd_serve_sent_bytes_total", COUNTER, "", SENT, "Bytes of bodies that were sent.")  \
	X("pyprofd_serve_connections", GAUGE, "", CONNECTIONS, "Open connections.")                \
	X("pyprofd_serve_work", GAUGE, "", WORK, "Requests that wait for, or get, their profile.") \
	X("process_cpu_seconds_total", COUNTER, "", CPU, "CPU time of pyprofd-serve.")             \
	X("process_resident_memory_bytes", GAUGE, "", RSS, "Resident memory of pyprofd-serve.")

/* Where the numbers come from; all borrowed. */
struct metrics_sources {
	const char *live; /* path of the socket */
	const struct counts *counts;
	struct push *push;	    /* NULL: without [push] */
	const struct extent *store; /* with its bytes */
	unsigned int work;	    /* how many requests wait for a worker or have one */
	uint64_t now_ms;	    /* since 1970 */
};

/* Makes the text, on the heap.  An agent that does not answer within 5 s is `pyprofd_up 0`.
 * Returns 0 or -ENOMEM. */
int metrics_text(const struct metrics_sources *sources, char **ret_text, size_t *ret_size);

/* For tests: writes one line of the agent's answer, which is not trusted, as Prometheus wants it.
 * `name` is the metric that values belong to, at first "".  Returns 1: the answer has ended; 0;
 * -EBADMSG. */
#define METRICS_NAME_BYTES 128U
struct metrics_head {
	char name[METRICS_NAME_BYTES];
	unsigned int kind; /* enum live_metric */
};
int metrics_take_line(char *line, size_t size, struct metrics_head *head, FILE *out);

#endif
