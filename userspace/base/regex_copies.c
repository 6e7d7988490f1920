/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/regex_copies.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64U

/* What is open: the parts of a group before the last one, and that, which an operator repeats. */
struct group {
	unsigned long before, last;
};

static unsigned long add(unsigned long a, unsigned long b)
{
	return a > ULONG_MAX - b ? ULONG_MAX : a + b;
}

static unsigned long multiply(unsigned long a, unsigned long b)
{
	return b && a > ULONG_MAX / b ? ULONG_MAX : a * b;
}

static void add_part(struct group *group, unsigned long nodes)
{
	group->before = add(group->before, group->last);
	group->last = nodes;
}

/* Returns what is behind a bracket expression: "]" stands for itself as its first member, and
 * inside of [. .], [= =] and [: :] (POSIX.1-2017, XBD 9.3.5). */
static const char *skip_bracket(const char *at)
{
	at += at[1] == '^' ? 2 : 1;
	at += *at == ']';
	while (*at && *at != ']') {
		const char kind = *at == '[' ? at[1] : '\0';

		at++;
		if (kind != '.' && kind != '=' && kind != ':')
			continue;
		for (at++; *at && !(at[0] == kind && at[1] == ']'); at++)
			;
		at += *at ? 2 : 0;
	}
	return at + (*at == ']');
}

/* Repeats the last part as often as "{m,n}" says, or once more than "{m,}" does. */
static const char *take_interval(struct group *group, const char *at)
{
	unsigned long most = 0;

	while (*at && *at != '}') {
		const unsigned long count = strtoul(at + 1, NULL, 10);

		most = count > most ? count : most;
		at += 1 + strcspn(at + 1, ",}");
	}
	group->last = multiply(group->last, add(most, 1));
	return at + (*at == '}');
}

/* Takes what is neither "(" nor ")".  Returns what is behind it. */
static const char *take_part(struct group *group, const char *at)
{
	switch (*at) {
	case '+':
		group->last = multiply(group->last, 2);
		return at + 1;
	case '{':
		return take_interval(group, at);
	case '*':
	case '?':
		return at + 1;
	case '[':
		add_part(group, 1);
		return skip_bracket(at);
	default:
		add_part(group, 1);
		return at + (at[0] == '\\' && at[1] ? 2 : 1);
	}
}

/* Returns the number of parts with all copies; ULONG_MAX: too many to count. */
static unsigned long count_parts(const char *regex)
{
	struct group group[DEPTH_MAX] = {{0}};
	unsigned int depth = 0;
	unsigned long parts = 0;

	for (const char *at = regex; *at;) {
		if (*at == '(') {
			if (++depth == DEPTH_MAX)
				return ULONG_MAX;
			group[depth] = (struct group){0};
			at++;
		} else if (*at == ')' && depth) {
			depth--;
			add_part(&group[depth],
				 add(group[depth + 1].before, group[depth + 1].last));
			at++;
		} else {
			at = take_part(&group[depth], at);
		}
	}
	for (unsigned int i = 0; i <= depth; i++)
		parts = add(parts, add(group[i].before, group[i].last));
	return parts;
}

bool regex_copies_too_much(const char *regex)
{
	const unsigned long parts = count_parts(regex);

	return parts > REGEX_COPIES_MAX && parts - REGEX_COPIES_MAX > strlen(regex);
}
