/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides what becomes of a request by its answer.  Pure functions; any thread.
 * The tables are measured at real collectors (docs/design/collectors.md): Pyroscope 2, Parca 0.2x,
 * the OpenTelemetry collector 0.155. */
#ifndef PUSH_POLICY_H
#define PUSH_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum push_protocol { PUSH_OTLP, PUSH_PYROSCOPE, PUSH_PARCA };

/* Pauses between two tries of the same request. */
#define PUSH_PAUSE_FIRST_MS 1000U
#define PUSH_PAUSE_MAX_MS 60000U	 /* of those that double */
#define PUSH_PAUSE_CAP_MS (5U * 60000U) /* of Retry-After, and where someone has to act */
/* A malformed profile is a 500 as often as a collector in trouble is: so many tries decide. */
#define PUSH_TRIES_OF_500 3U
/* Pyroscope refuses what is an hour old. */
#define PUSH_PYROSCOPE_MAX_AGE_MS (50U * 60000U)

enum push_verdict {
	PUSH_DONE,    /* the collector has it */
	PUSH_RETRY,   /* the collector, or the way there, does not work now */
	PUSH_HOLD,    /* nothing will work before someone acts: a token, a password */
	PUSH_POISON,  /* the collector refuses this profile, and will do so again */
	PUSH_REFUSED, /* the collector has no use for such requests at this address */
};

/* Why no answer came. */
enum push_failure {
	PUSH_ANSWERED,
	PUSH_NOT_SENT, /* nothing of the request went out: no connection, no TLS */
	PUSH_CUT_OFF,  /* some of it did: the collector may have it all the same */
	PUSH_BAD_TLS,  /* a certificate that does not hold: nothing went out */
};

struct push_answer {
	enum push_failure failure;
	unsigned int status; /* of HTTP, with PUSH_ANSWERED */
	const char *body;    /* NUL-terminated; "" when there is none */
	size_t body_size;
};

struct push_decision {
	enum push_verdict verdict;
	/* The collector may have taken the request; another try may count it twice. */
	bool is_ambiguous;
};

/* tries: how often this request was sent, with this time; from 1. */
struct push_decision push_decide(enum push_protocol protocol, const struct push_answer *answer,
				 unsigned int tries);

/* Returns how many profiles a collector of OTLP says that it has left out, in an answer that is a
 * success for the rest (partial_success.rejected_profiles). */
uint64_t push_rejected_count(enum push_protocol protocol, const struct push_answer *answer);

/* Returns how long to wait before the next try.  random: any number, which spreads the tries of
 * many nodes; retry_after_ms: what the answer asks for, 0: nothing. */
uint64_t push_pause_ms(enum push_verdict verdict, unsigned int tries, uint32_t random,
		       uint64_t retry_after_ms);

/* Reads the value of Retry-After: seconds, or a date (RFC 9110, 10.2.3, in its first form).
 * now_s: seconds since 1970.  Returns 0 for what is neither, or over; never more than
 * PUSH_PAUSE_CAP_MS. */
uint64_t push_retry_after_ms(const char *value, int64_t now_s);

/* Returns whether the collector refuses a window that ended then, because it is too old. */
bool push_is_too_old(enum push_protocol protocol, uint64_t end_ms, uint64_t now_ms);

#endif
