/* SPDX-License-Identifier: BSD-2-Clause */
#include "diff/rule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *text)
{
	return text + strspn(text, " \t,");
}

/* Takes a word from the front of the text; it must not be followed by a letter. */
static bool take_word(const char **text, const char *word)
{
	size_t size = strlen(word);
	const char *at = skip_blanks(*text);

	if (strncmp(at, word, size) || (at[size] >= 'a' && at[size] <= 'z'))
		return false;
	*text = at + size;
	return true;
}

static bool take_sign(const char **text, char sign)
{
	const char *at = skip_blanks(*text);

	if (*at != sign)
		return false;
	*text = at + 1;
	return true;
}

static bool take_number(const char **text, double *ret_number)
{
	const char *at = skip_blanks(*text);
	char *end;
	double number = strtod(at, &end);

	if (end == at || !isfinite(number))
		return false;
	*text = end;
	*ret_number = number;
	return true;
}

static bool take_change(const char **text, struct diff_rule *rule)
{
	double points;

	if (take_sign(text, '<'))
		rule->shrinks = true;
	else if (!take_sign(text, '>'))
		return false;
	if (!take_number(text, &points) || !take_sign(text, '%'))
		return false;
	rule->change = points / 100;
	/* "self < 3%" would be true for nearly every function. */
	return rule->shrinks ? points <= 0 : points >= 0;
}

int diff_rule_parse(const char *text, struct diff_rule *ret_rule)
{
	struct diff_rule rule = {.p = DIFF_RULE_DEFAULT_P};

	if (take_word(&text, "line"))
		rule.by = DIFF_BY_LINE;
	else if (take_word(&text, "stack"))
		rule.by = DIFF_BY_STACK;
	else
		(void)take_word(&text, "function");
	if (take_word(&text, "total"))
		rule.column = DIFF_TOTAL;
	else if (!take_word(&text, "self"))
		return -EINVAL;
	if (rule.by == DIFF_BY_STACK && rule.column == DIFF_TOTAL)
		return -EINVAL;
	if (!take_change(&text, &rule))
		return -EINVAL;
	(void)take_word(&text, "and");
	if (take_word(&text, "p") &&
	    (!take_sign(&text, '<') || !take_number(&text, &rule.p) || rule.p <= 0 || rule.p > 1))
		return -EINVAL;
	if (*skip_blanks(text))
		return -EINVAL;
	*ret_rule = rule;
	return 0;
}

bool diff_rule_holds(const struct diff_rule *rule, const struct diff_row *row)
{
	const struct diff_change *change = &row->change[rule->column];
	double difference = change->share[DIFF_B] - change->share[DIFF_A];

	if (change->p < 0 || change->p >= rule->p)
		return false;
	return rule->shrinks ? difference < rule->change : difference > rule->change;
}
