/* SPDX-License-Identifier: BSD-2-Clause */
/* What pyprofd-serve counts of itself.  Thread-safe. */
#ifndef SERVE_COUNTS_H
#define SERVE_COUNTS_H

#include <stdatomic.h>

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
	X(BUSY, "busy")		  /* no place for its work */                                      \
	X(SHARE, "share")	  /* the user has as many connections, or bytes, as are his */     \
	X(LATE_REQUEST, "late_request") /* the request did not come in time */                     \
	X(LATE_READER, "late_reader")	/* the answer was not read in time */                      \
	X(HOST, "host")		  /* Host is neither an address nor a configured name */           \
	X(TOKEN, "token")	  /* a wrong one */

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

#endif
