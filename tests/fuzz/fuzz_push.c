/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: collectors/collector.c collectors/queue.c base/io.c base/kinds.c store/store_query.c */
/* What collectors answer, and a cursor's file as anyone may have left it: every answer has a
 * verdict, every pause its bounds, and a file that is taken says the same when it is written. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/collector.h"
#include "collectors/queue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the answers of the three differ in. */
static const struct collector collectors[] = {
	{.tells_rejected = true}, {.max_age_ms = 1}, {.answers_json = true}};

static void check_answer(const uint8_t *data, const char *text, size_t size)
{
	const struct push_answer answer = {.end = (enum http_client_end)(data[0] & 3),
					   .status = 100U + data[1] * 2U + (data[0] >> 7),
					   .body = text,
					   .body_size = size};
	unsigned int tries = data[2];
	struct push_decision decision =
		push_decide(&collectors[(data[0] >> 2 & 3) % 3], &answer, tries);
	const uint64_t wish_ms = data[1] * 2000ULL;
	uint64_t pause_ms = push_pause_ms(decision.verdict, tries, data[1] * 0x1010101U, wish_ms);

	assert(push_rejected_count(&collectors[0], &answer) <= INT64_MAX);
	assert(pause_ms >= PUSH_PAUSE_FIRST_MS && pause_ms <= PUSH_PAUSE_CAP_MS);
	assert(decision.verdict != PUSH_DONE || (answer.status >= 200 && answer.status < 300));
	assert(!decision.is_ambiguous || decision.verdict == PUSH_RETRY);
}

static void check_cursor(const char *text, size_t size)
{
	struct push_cursor cursor, again;
	char printed[PUSH_CURSOR_BYTES], printed_again[PUSH_CURSOR_BYTES];

	if (push_cursor_parse(text, size, &cursor))
		return;
	push_cursor_format(&cursor, printed);
	assert(!push_cursor_parse(printed, strlen(printed), &again));
	push_cursor_format(&again, printed_again);
	assert(!strcmp(printed, printed_again));
}

/* The first three bytes say what request it was; the rest is text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size < 3)
		return 0;
	text = malloc(size - 2);
	assert(text);
	memcpy(text, data + 3, size - 3);
	text[size - 3] = '\0';
	check_answer(data, text, size - 3);
	check_cursor(text, size - 3);
	free(text);
	return 0;
}
