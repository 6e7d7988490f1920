/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/policy.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/proto.h"

#define MS_PER_SEC 1000U

/* Returns whether the bytes are one message of protobuf, as far as a look at its fields tells.  An
 * empty one is. */
static bool is_message(const struct push_answer *answer)
{
	struct wire wire = {(const uint8_t *)answer->body,
			    (const uint8_t *)answer->body + answer->body_size};
	struct wire_field field;
	int more;

	while ((more = wire_next(&wire, &field)) > 0)
		;
	return !more;
}

static bool is_object(const struct push_answer *answer)
{
	const char *first = answer->body, *last = answer->body + answer->body_size;

	while (first < last && isspace((unsigned char)*first))
		first++;
	while (last > first && isspace((unsigned char)last[-1]))
		last--;
	return last - first >= 2 && *first == '{' && last[-1] == '}';
}

/* A page of somebody else's (a portal, a proxy's login) is a 200, too.  That is not the collector:
 * what was sent there is not in it. */
static struct push_decision decide_success(const struct collector *collector,
					   const struct push_answer *answer)
{
	bool is_its = collector->answers_json ? is_object(answer) : is_message(answer);

	return (struct push_decision){.verdict = is_its ? PUSH_DONE : PUSH_HOLD};
}

static enum push_verdict decide_server_error(const struct push_answer *answer, unsigned int tries)
{
	switch (answer->status) {
	case 501: /* also Pyroscope's answer to a compression that it does not have */
	case 505:
		return PUSH_REFUSED;
	case 500:
		if (strcasestr(answer->body, "unavailable") || tries < PUSH_TRIES_OF_500)
			return PUSH_RETRY;
		return PUSH_POISON;
	default:
		return PUSH_RETRY;
	}
}

static enum push_verdict decide_client_error(const struct push_answer *answer)
{
	switch (answer->status) {
	case 401:
	case 403:
	case 407:
		return PUSH_HOLD;
	case 408:
	case 425:
		return PUSH_RETRY;
	case 422: /* a Pyroscope that begins to run */
		return strcasestr(answer->body, "unavailable") ? PUSH_RETRY : PUSH_POISON;
	case 429: /* "message size N is larger than configured max": no time makes it smaller */
		return strcasestr(answer->body, "message size") ? PUSH_POISON : PUSH_RETRY;
	case 400:
	case 413:
		return PUSH_POISON;
	default:
		return PUSH_REFUSED;
	}
}

struct push_decision push_decide(const struct collector *collector,
				 const struct push_answer *answer, unsigned int tries)
{
	struct push_decision decision = {PUSH_RETRY, false};

	if (answer->end != HTTP_CLIENT_ANSWERED) {
		decision.is_ambiguous = answer->end == HTTP_CLIENT_CUT_OFF;
		if (answer->end == HTTP_CLIENT_BAD_TLS)
			decision.verdict = PUSH_HOLD;
		return decision;
	}
	if (answer->status >= 200 && answer->status < 300)
		return decide_success(collector, answer);
	if (answer->status >= 500)
		decision.verdict = decide_server_error(answer, tries);
	else if (answer->status >= 400)
		decision.verdict = decide_client_error(answer);
	else
		decision.verdict = PUSH_REFUSED; /* a redirect would carry the token elsewhere */
	/* A proxy that gave up waiting, or lost the collector's answer. */
	decision.is_ambiguous =
		answer->status == 408 || answer->status == 502 || answer->status == 504;
	return decision;
}

uint64_t push_rejected_count(const struct collector *collector, const struct push_answer *answer)
{
	struct wire wire = {(const uint8_t *)answer->body,
			    (const uint8_t *)answer->body + answer->body_size};
	uint64_t rejected = 0, *const place[] = {NULL, &rejected};
	struct wire_field field;

	if (!collector->tells_rejected)
		return 0;
	while (wire_next(&wire, &field) > 0)
		if (field.number == 1 && field.is_bytes)
			(void)wire_numbers(field.bytes, place, ARRAY_SIZE(place));
	return rejected <= INT64_MAX ? rejected : 0;
}

uint64_t push_pause_ms(enum push_verdict verdict, unsigned int tries, uint32_t random,
		       uint64_t retry_after_ms)
{
	uint64_t pause = PUSH_PAUSE_FIRST_MS;

	if (verdict == PUSH_HOLD)
		pause = PUSH_PAUSE_CAP_MS;
	else
		for (unsigned int i = 1; i < tries && pause < PUSH_PAUSE_MAX_MS; i++)
			pause *= 2;
	if (verdict != PUSH_HOLD && pause > PUSH_PAUSE_MAX_MS)
		pause = PUSH_PAUSE_MAX_MS;
	/* From its half on. */
	pause -= (pause / 2) * (uint64_t)random / UINT32_MAX;
	if (pause < PUSH_PAUSE_FIRST_MS)
		pause = PUSH_PAUSE_FIRST_MS;
	if (pause < retry_after_ms)
		pause = retry_after_ms;
	return pause < PUSH_PAUSE_CAP_MS ? pause : PUSH_PAUSE_CAP_MS;
}

uint64_t push_retry_after_ms(const char *value, int64_t now_s)
{
	struct tm date = {0};
	int64_t seconds;
	char *end;

	while (*value == ' ' || *value == '\t')
		value++;
	if (isdigit((unsigned char)*value)) {
		seconds = (int64_t)strtoll(value, &end, 10);
	} else {
		end = strptime(value, "%a, %d %b %Y %H:%M:%S GMT", &date);
		if (!end || __builtin_sub_overflow((int64_t)timegm(&date), now_s, &seconds))
			return 0;
	}
	end += strspn(end, " \t");
	if (*end || seconds <= 0)
		return 0;
	if (seconds >= PUSH_PAUSE_CAP_MS / MS_PER_SEC)
		return PUSH_PAUSE_CAP_MS;
	return (uint64_t)seconds * MS_PER_SEC;
}

bool push_is_too_old(const struct collector *collector, uint64_t end_ms, uint64_t now_ms)
{
	return collector->max_age_ms && end_ms < now_ms && now_ms - end_ms > collector->max_age_ms;
}
