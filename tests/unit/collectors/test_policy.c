/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/collector.h"

#include <cmocka.h>
#include <string.h>

/* As the collectors answered: their status tables, row by row. */
static void push_decide__every_row_of_the_tables_has_its_verdict(void **state)
{
	static const struct {
		const struct collector *collector;
		unsigned int status;
		const char *body;
		unsigned int tries;
		enum push_verdict verdict;
		bool is_ambiguous;
	} rows[] = {
		/* Pyroscope, push.v1 */
		{&collector_pyroscope, 200, "", 1, PUSH_DONE, false},
		{&collector_pyroscope, 400,
		 "{\"code\":\"invalid_argument\",\"message\":\"invalid metric"
		 " name\"}",
		 1, PUSH_POISON, false},
		{&collector_pyroscope, 400,
		 "{\"code\":\"invalid_argument\",\"message\":\"profile is too"
		 " old\"}",
		 1, PUSH_POISON, false},
		{&collector_pyroscope, 500,
		 "{\"code\":\"unknown\",\"message\":\"gzip reset: unexpected"
		 " EOF\"}",
		 1, PUSH_RETRY, false},
		{&collector_pyroscope, 500,
		 "{\"code\":\"unknown\",\"message\":\"gzip reset: unexpected"
		 " EOF\"}",
		 2, PUSH_RETRY, false},
		{&collector_pyroscope, 500,
		 "{\"code\":\"unknown\",\"message\":\"gzip reset: unexpected"
		 " EOF\"}",
		 3, PUSH_POISON, false},
		{&collector_pyroscope, 500,
		 "{\"code\":\"unknown\",\"message\":\"service is"
		 " unavailable\"}",
		 9, PUSH_RETRY, false},
		{&collector_pyroscope, 429,
		 "{\"code\":\"resource_exhausted\",\"message\":\"ingestion"
		 " rate limit\"}",
		 9, PUSH_RETRY, false},
		{&collector_pyroscope, 429,
		 "{\"code\":\"resource_exhausted\",\"message\":\"message size"
		 " 3000000 is larger than configured max 1048576\"}",
		 1, PUSH_POISON, false},
		{&collector_pyroscope, 413, "", 1, PUSH_POISON, false},
		{&collector_pyroscope, 401, "{\"code\":\"unauthenticated\"}", 1, PUSH_HOLD, false},
		{&collector_pyroscope, 405, "", 1, PUSH_REFUSED, false},
		{&collector_pyroscope, 415, "", 1, PUSH_REFUSED, false},
		{&collector_pyroscope, 501, "{\"code\":\"unimplemented\"}", 1, PUSH_REFUSED, false},
		{&collector_pyroscope, 422, "service is unavailable", 1, PUSH_RETRY, false},
		{&collector_pyroscope, 422, "junk", 1, PUSH_POISON, false},
		/* Parca, writeraw */
		{&collector_parca, 200, "{}", 1, PUSH_DONE, false},
		{&collector_parca, 200, " {}\n", 1, PUSH_DONE, false},
		{&collector_parca, 400, "{\"code\":3,\"message\":\"missing name\"}", 1, PUSH_POISON,
		 false},
		{&collector_parca, 500, "{\"code\":2,\"message\":\"bad type\"}", 2, PUSH_RETRY,
		 false},
		{&collector_parca, 500, "{\"code\":2,\"message\":\"bad type\"}", 3, PUSH_POISON,
		 false},
		{&collector_parca, 404, "", 1, PUSH_REFUSED, false},
		/* OTLP over HTTP: the collector, and Pyroscope */
		{&collector_otlp, 200, "\n", 1, PUSH_HOLD, false}, /* a message that is cut off */
		{&collector_otlp, 400, "http: request body too large", 1, PUSH_POISON, false},
		{&collector_otlp, 401, "no basic auth provided", 1, PUSH_HOLD, false},
		{&collector_otlp, 404, "404 page not found", 1, PUSH_REFUSED, false},
		{&collector_otlp, 415, "", 1, PUSH_REFUSED, false},
		{&collector_otlp, 413, "", 1, PUSH_POISON, false},
		{&collector_otlp, 429, "rate limit", 1, PUSH_RETRY, false},
		{&collector_otlp, 500, "InvalidArgument", 3, PUSH_POISON, false},
		/* for all of them: what stands between */
		{&collector_otlp, 204, "", 1, PUSH_DONE, false},
		{&collector_otlp, 502, "", 99, PUSH_RETRY, true},
		{&collector_otlp, 503, "", 99, PUSH_RETRY, false},
		{&collector_otlp, 504, "", 99, PUSH_RETRY, true},
		{&collector_otlp, 408, "", 1, PUSH_RETRY, true},
		{&collector_otlp, 403, "", 1, PUSH_HOLD, false},
		{&collector_otlp, 407, "", 1, PUSH_HOLD, false},
		{&collector_parca, 301, "", 1, PUSH_REFUSED, false},
		{&collector_parca, 302, "", 1, PUSH_REFUSED, false},
		{&collector_parca, 307, "", 1, PUSH_REFUSED, false},
		{&collector_pyroscope, 308, "", 1, PUSH_REFUSED, false},
		/* somebody else's page */
		{&collector_pyroscope, 200, "<html>Sign in</html>", 1, PUSH_HOLD, false},
		{&collector_parca, 200, "<html>Sign in</html>", 1, PUSH_HOLD, false},
		{&collector_parca, 200, "", 1, PUSH_HOLD, false},
		{&collector_otlp, 200, "{}", 1, PUSH_HOLD, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct push_answer answer = {.status = rows[i].status,
					     .body = rows[i].body,
					     .body_size = strlen(rows[i].body)};
		struct push_decision got = push_decide(rows[i].collector, &answer, rows[i].tries);

		if (got.verdict != rows[i].verdict || got.is_ambiguous != rows[i].is_ambiguous)
			fail_msg("row %zu: status %u is %d, %d", i, rows[i].status, got.verdict,
				 got.is_ambiguous);
	}
}

static void push_decide__an_empty_partial_success_is_success(void **state)
{
	struct push_answer answer = {.status = 200, .body = "\n\0", .body_size = 2};

	(void)state;
	assert_int_equal(push_decide(&collector_otlp, &answer, 1).verdict, PUSH_DONE);
}

static void push_rejected_count__is_that_of_partial_success(void **state)
{
	const struct push_answer some = {.status = 200, .body = "\n\002\010\007", .body_size = 4};
	const struct push_answer none = {.status = 200, .body = "\n\0", .body_size = 2};
	const struct push_answer huge = {
		.status = 200,
		.body = "\n\013\010\377\377\377\377\377\377\377\377\377\001",
		.body_size = 13};

	(void)state;
	assert_int_equal(push_rejected_count(&collector_otlp, &some), 7);
	assert_int_equal(push_rejected_count(&collector_pyroscope, &some), 0);
	assert_int_equal(push_rejected_count(&collector_otlp, &none), 0);
	assert_int_equal(push_rejected_count(&collector_otlp, &huge), 0);
}

static void push_decide__no_answer_is_ambiguous_when_something_was_sent(void **state)
{
	struct push_answer answer = {.end = HTTP_CLIENT_NOT_SENT, .body = ""};
	struct push_decision decision = push_decide(&collector_otlp, &answer, 100);

	(void)state;
	assert_int_equal(decision.verdict, PUSH_RETRY);
	assert_false(decision.is_ambiguous);
	answer.end = HTTP_CLIENT_CUT_OFF;
	decision = push_decide(&collector_otlp, &answer, 100);
	assert_int_equal(decision.verdict, PUSH_RETRY);
	assert_true(decision.is_ambiguous);
	answer.end = HTTP_CLIENT_BAD_TLS;
	decision = push_decide(&collector_otlp, &answer, 1);
	assert_int_equal(decision.verdict, PUSH_HOLD);
	assert_false(decision.is_ambiguous);
}

static void push_pause_ms__doubles_up_to_a_minute_and_is_spread_over_a_half(void **state)
{
	static const uint64_t longest[] = {1000,  1000,	 2000,	4000,  8000,
					   16000, 32000, 60000, 60000, 60000};

	(void)state;
	for (unsigned int i = 0; i < sizeof(longest) / sizeof(longest[0]); i++) {
		uint64_t half = longest[i] / 2 < 1000 ? 1000 : longest[i] / 2;

		assert_int_equal(push_pause_ms(PUSH_RETRY, i, 0, 0), longest[i]);
		assert_int_equal(push_pause_ms(PUSH_RETRY, i, UINT32_MAX, 0), half);
	}
	assert_int_equal(push_pause_ms(PUSH_RETRY, UINT32_MAX, 0, 0), 60000);
	assert_in_range(push_pause_ms(PUSH_RETRY, 7, UINT32_MAX / 2, 0), 44000, 46000);
	assert_int_equal(push_pause_ms(PUSH_HOLD, 1, 0, 0), 300000);
	assert_int_equal(push_pause_ms(PUSH_HOLD, 1, UINT32_MAX, 0), 150000);
}

static void push_pause_ms__the_collectors_wish_counts_up_to_five_minutes(void **state)
{
	(void)state;
	assert_int_equal(push_pause_ms(PUSH_RETRY, 1, 0, 30000), 30000);
	assert_int_equal(push_pause_ms(PUSH_RETRY, 7, 0, 30000), 60000);
	assert_int_equal(push_pause_ms(PUSH_RETRY, 1, 0, 86400000), 300000);
}

static void push_is_too_old__after_50_minutes_and_for_pyroscope_alone(void **state)
{
	const uint64_t now = 1795200000000, limit = 50 * 60 * 1000;

	(void)state;
	assert_false(push_is_too_old(&collector_pyroscope, now - limit, now));
	assert_true(push_is_too_old(&collector_pyroscope, now - limit - 1, now));
	assert_false(push_is_too_old(&collector_pyroscope, now + 1, now));
	assert_false(push_is_too_old(&collector_parca, 0, now));
	assert_false(push_is_too_old(&collector_otlp, 0, now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push_decide__every_row_of_the_tables_has_its_verdict),
		cmocka_unit_test(push_decide__an_empty_partial_success_is_success),
		cmocka_unit_test(push_rejected_count__is_that_of_partial_success),
		cmocka_unit_test(push_decide__no_answer_is_ambiguous_when_something_was_sent),
		cmocka_unit_test(push_pause_ms__doubles_up_to_a_minute_and_is_spread_over_a_half),
		cmocka_unit_test(push_pause_ms__the_collectors_wish_counts_up_to_five_minutes),
		cmocka_unit_test(push_is_too_old__after_50_minutes_and_for_pyroscope_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
