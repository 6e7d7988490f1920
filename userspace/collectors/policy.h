/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides what becomes of a request by its answer.  Pure functions; any thread.
 * The tables are measured at real collectors (docs/design/collectors.md): Pyroscope 2, Parca 0.2x,
 * the OpenTelemetry collector 0.155. */
#ifndef COLLECTORS_POLICY_H
#define COLLECTORS_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/collector.h"
#include "collectors/http_client.h"

/* Pauses between two tries of the same request. */
#define PUSH_PAUSE_FIRST_MS 1000U
#define PUSH_PAUSE_MAX_MS 60000U	/* of those that double */
#define PUSH_PAUSE_CAP_MS (5U * 60000U) /* of Retry-After, and where someone has to act */
/* A malformed profile is a 500 as often as a collector in trouble is: so many tries decide. */
#define PUSH_TRIES_OF_500 3U

enum push_verdict {
	PUSH_DONE,    /* the collector has it */
	PUSH_RETRY,   /* the collector, or the way there, does not work now */
	PUSH_HOLD,    /* nothing will work before someone acts: a token, a password */
	PUSH_POISON,  /* the collector refuses this profile, and will do so again */
	PUSH_REFUSED, /* the collector has no use for such requests at this address */
};

struct push_answer {
	enum http_client_end end;
	unsigned int status; /* of HTTP, with HTTP_CLIENT_ANSWERED */
	const char *body;    /* NUL-terminated; "" when there is none */
	size_t body_size;
};

struct push_decision {
	enum push_verdict verdict;
	/* The collector may have taken the request; another try may count it twice. */
	bool is_ambiguous;
};

/* tries: how often this request was sent, with this time; from 1. */
struct push_decision push_decide(const struct collector *collector,
				 const struct push_answer *answer, unsigned int tries);

/* Returns how many profiles a collector of OTLP says that it has left out, in an answer that is a
 * success for the rest (partial_success.rejected_profiles). */
uint64_t push_rejected_count(const struct collector *collector, const struct push_answer *answer);

/* Returns how long to wait before the next try.  random: any number, which spreads the tries of
 * many nodes; retry_after_ms: what the answer asks for, 0: nothing. */
uint64_t push_pause_ms(enum push_verdict verdict, unsigned int tries, uint32_t random,
		       uint64_t retry_after_ms);

/* Reads the value of Retry-After: seconds, or a date (RFC 9110, 10.2.3, in its first form).
 * now_s: seconds since 1970.  Returns 0 for what is neither, or over; never more than
 * PUSH_PAUSE_CAP_MS. */
uint64_t push_retry_after_ms(const char *value, int64_t now_s);

/* Returns whether the collector refuses a window that ended then, because it is too old. */
bool push_is_too_old(const struct collector *collector, uint64_t end_ms, uint64_t now_ms);

#endif
