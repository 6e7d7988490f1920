/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/comments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* ---- facts ---- */

void facts_put(FILE *out, const char *prefix, const char *name, uint64_t value)
{
	fprintf(out, "%s%s%s=%" PRIu64, ftell(out) ? " " : "", prefix, name, value);
}

bool fact_next(const char **at, struct fact *ret_fact)
{
	struct fact fact = {.name = *at, .name_size = strcspn(*at, "= ")};
	char *end;

	if (!fact.name_size || fact.name[fact.name_size] != '=')
		return false;
	fact.text = fact.name + fact.name_size + 1;
	fact.text_size = strcspn(fact.text, " ");
	if (fact.text[0] >= '0' && fact.text[0] <= '9') {
		errno = 0;
		fact.number = strtoull(fact.text, &end, 10);
		fact.is_number = !errno && end == fact.text + fact.text_size;
		fact.number = fact.is_number ? fact.number : 0;
	}
	*at = fact.text + fact.text_size;
	*at += **at == ' ';
	*ret_fact = fact;
	return true;
}

bool fact_is(const struct fact *fact, const char *name)
{
	return fact->name_size == strlen(name) && !memcmp(fact->name, name, fact->name_size);
}

bool facts_find(const char *comment, const char *name, struct fact *ret_fact)
{
	while (fact_next(&comment, ret_fact))
		if (fact_is(ret_fact, name))
			return true;
	return false;
}

uint64_t facts_number(const char *comment, const char *name)
{
	struct fact fact;

	return facts_find(comment, name, &fact) ? fact.number : 0;
}

bool facts_are_of_window(const char *comment)
{
	struct fact fact;

	return fact_next(&comment, &fact) && fact.is_number;
}

/* ---- files of several windows ---- */

void window_mark_format(const struct window_mark *mark, char text[WINDOW_MARK_CHARS])
{
	snprintf(text, WINDOW_MARK_CHARS,
		 WINDOW_LABEL "=%" PRIu64 " start_ms=%" PRIu64 " duration_ms=%" PRIu64
			      " start_ns=%" PRIu64 " duration_ns=%" PRIu64 " period=%" PRId64,
		 mark->offset_ms, mark->start_ms, mark->duration_ms, mark->start_wall_ns,
		 mark->duration_ns, mark->period);
}

bool window_mark_parse(const char *comment, struct window_mark *ret_mark)
{
	static const char *const names[] = {WINDOW_LABEL, "start_ms",	 "duration_ms",
					    "start_ns",	  "duration_ns", "period"};
	uint64_t number[ARRAY_SIZE(names)];
	struct fact fact;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!fact_next(&comment, &fact) || !fact_is(&fact, names[i]) || !fact.is_number)
			return false;
		number[i] = fact.number;
	}
	if (*comment || number[5] > INT64_MAX)
		return false;
	*ret_mark = (struct window_mark){.offset_ms = number[0],
					 .start_ms = number[1],
					 .duration_ms = number[2],
					 .start_wall_ns = number[3],
					 .duration_ns = number[4],
					 .period = (int64_t)number[5]};
	return true;
}

char *window_comment_format(uint64_t offset_ms, const char *comment)
{
	char *text;

	return asprintf(&text, WINDOW_LABEL "=%" PRIu64 " %s", offset_ms, comment) < 0 ? NULL
										       : text;
}

const char *window_comment_parse(const char *comment, uint64_t *ret_offset_ms)
{
	struct window_mark mark;
	struct fact fact;

	if (window_mark_parse(comment, &mark) || !fact_next(&comment, &fact) ||
	    !fact_is(&fact, WINDOW_LABEL) || !fact.is_number || !*comment)
		return NULL;
	*ret_offset_ms = fact.number;
	return comment;
}
