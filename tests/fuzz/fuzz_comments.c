/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: profile/comments.c query/coverage.c base/intern.c base/index_table.c diff/table.c render/code_table.c render/short_paths.c profile/profile.c profile/stack_table.c base/utf8.c base/kinds.c */
/* The comments of profiles, one a line, as whoever wrote the files chose them: capture metadata,
 * and the program that wrote it.  Every second line is of the other side of a comparison.
 * runs: 4000 at most in `make check`. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "diff/table.h"
#include "profile/comments.h"
#include "query/coverage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each fact lies in the text, in which it is found again by its name. */
static void read_facts(const char *text)
{
	const char *at = text;
	struct fact fact, found;

	while (fact_next(&at, &fact)) {
		OWNED_MEM char *name = strndup(fact.name, fact.name_size);

		assert(fact.name >= text && fact.text + fact.text_size <= text + strlen(text));
		assert(fact.text == fact.name + fact.name_size + 1 && at >= fact.text);
		assert(!memchr(fact.text, ' ', fact.text_size) && fact.name_size);
		assert(fact.is_number || !fact.number);
		assert(name && fact_is(&fact, name) && facts_find(text, name, &found));
		assert(found.name <= fact.name);
	}
}

/* What is a list's or a window's comment is written again as it was, but for leading zeros. */
static void read_window(const char *text)
{
	char again[WINDOW_MARK_CHARS];
	struct window_mark mark, other;
	const char *own;

	if (window_mark_parse(text, &mark)) {
		window_mark_format(&mark, again);
		assert(window_mark_parse(again, &other));
		assert(!memcmp(&mark, &other, sizeof(mark)));
	}
	own = window_comment_parse(text, &mark.offset_ms);
	assert(!own || (own > text && own <= text + strlen(text)));
}

static void read_comment(const char *text)
{
	read_window(text);
	read_facts(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWNED_MEM char *copy = malloc(size + 1);
	struct coverage coverage = {0};
	struct diff_facts side[2] = {{.unit_ns = 1}, {.unit_ns = 1}};
	char text[COVERAGE_BYTES], why[DIFF_WHY_BYTES], *rest = copy, *line;

	assert(copy);
	if (size)
		memcpy(copy, data, size);
	copy[size] = '\0';
	for (unsigned int i = 0; (line = strsep(&rest, "\n")); i++) {
		read_comment(line);
		coverage_add(&coverage, line);
		diff_facts_add_comment(&side[i & 1], line);
		diff_facts_add_window(&side[i & 1], (int64_t)strtoull(line, NULL, 10),
				      1 + (int64_t)i);
	}
	(void)coverage_text(&coverage, "cpu", text);
	assert(strlen(coverage_text(&coverage, "wall", text)) < sizeof(text));
	if (comparable_sides(&side[0], &side[1], why) != COMPARABLE)
		assert(strlen(why) < sizeof(why));
	return 0;
}
