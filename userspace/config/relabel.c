/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/relabel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "config/relabel_parse.h"

#define GROUPS 11U /* all of it twice, and nine of the expression's own */
/* Of the joined source; longer values are cut before they are looked at. */
#define SUBJECT_BYTES (RELABEL_SOURCES_MAX * (RELABEL_VALUE_MAX_BYTES + 1U))

/* ---- labels ---- */

void relabel_labels_release(struct relabel_labels *labels)
{
	for (size_t i = 0; i < labels->count; i++) {
		free(labels->label[i].name);
		free(labels->label[i].value);
	}
	labels->count = 0;
}

static struct relabel_label *find(const struct relabel_labels *labels, const char *name)
{
	for (size_t i = 0; i < labels->count; i++)
		if (!strcmp(labels->label[i].name, name))
			return (struct relabel_label *)&labels->label[i];
	return NULL;
}

const char *relabel_labels_get(const struct relabel_labels *labels, const char *name)
{
	const struct relabel_label *label = find(labels, name);

	return label ? label->value : "";
}

static void take_away(struct relabel_labels *labels, struct relabel_label *label)
{
	const size_t behind = (size_t)(&labels->label[labels->count] - (label + 1));

	free(label->name);
	free(label->value);
	memmove(label, label + 1, behind * sizeof(*label));
	labels->count--;
}

static int add(struct relabel_labels *labels, const char *name, const char *value)
{
	OWNED_MEM char *copy = NULL, *text = NULL;

	if (labels->count == RELABEL_LABELS_MAX)
		return -ENOSPC;
	copy = strdup(name);
	text = strdup(value);
	if (!copy || !text)
		return -ENOMEM;
	labels->label[labels->count++] = (struct relabel_label){TAKE(copy), TAKE(text)};
	return 0;
}

int relabel_labels_set(struct relabel_labels *labels, const char *name, const char *value)
{
	struct relabel_label *label = find(labels, name);
	char *copy;

	if (!*value) {
		if (label)
			take_away(labels, label);
		return 0;
	}
	if (!label)
		return add(labels, name, value);
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	free(label->value);
	label->value = copy;
	return 0;
}

/* ---- texts ---- */

/* A text that grows up to a bound; what is behind that is left out. */
struct text {
	char *bytes;
	size_t size, room; /* without the NUL */
};

static void append(struct text *text, const char *bytes, size_t size)
{
	if (size > text->room - text->size)
		size = text->room - text->size;
	memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
	text->bytes[text->size] = '\0';
}

static void join_sources(const struct relabel_rule *rule, const struct relabel_labels *labels,
			 struct text *subject)
{
	for (size_t i = 0; i < rule->source_count; i++) {
		const char *value = relabel_labels_get(labels, rule->source[i]);

		if (i)
			append(subject, rule->separator, strlen(rule->separator));
		append(subject, value, strnlen(value, RELABEL_VALUE_MAX_BYTES));
	}
}

/* Reads the number of a group behind '$'.  Returns what is behind it; NULL: it is none. */
static const char *take_group(const char *at, unsigned int *ret_group)
{
	const bool has_brace = *at == '{';

	at += has_brace;
	if (*at < '0' || *at > '9')
		return NULL;
	*ret_group = (unsigned int)(*at - '0');
	if (has_brace && at[1] != '}')
		return NULL;
	return at + 1 + has_brace;
}

static void expand(const char *replacement, const char *subject, const regmatch_t match[GROUPS],
		   struct text *result)
{
	for (const char *at = replacement; *at;) {
		unsigned int group;
		const char *behind = *at == '$' ? take_group(at + 1, &group) : NULL;

		if (behind) {
			const regmatch_t *found = &match[group + 1];

			if (found->rm_so >= 0)
				append(result, subject + found->rm_so,
				       (size_t)(found->rm_eo - found->rm_so));
			at = behind;
			continue;
		}
		append(result, at, 1);
		at += 1 + (at[0] == '$' && at[1] == '$');
	}
}

/* Sets a label to bytes: a group may begin or end inside of a character. */
static int set_clean(struct relabel_labels *labels, const char *name, const struct text *value)
{
	char clean[RELABEL_VALUE_MAX_BYTES * UTF8_CLEAN_MAX_GROWTH + 1];
	size_t size = utf8_clean(value->bytes, value->size, clean);

	if (size > RELABEL_VALUE_MAX_BYTES)
		for (size = RELABEL_VALUE_MAX_BYTES; ((unsigned char)clean[size] & 0xc0) == 0x80;)
			size--;
	clean[size] = '\0';
	return relabel_labels_set(labels, name, clean);
}

/* ---- rules ---- */

static int replace(const struct relabel_rule *rule, struct relabel_labels *labels,
		   const struct text *subject)
{
	char bytes[RELABEL_VALUE_MAX_BYTES + 1] = "";
	struct text result = {.bytes = bytes, .room = RELABEL_VALUE_MAX_BYTES};
	regmatch_t match[GROUPS];

	if (regexec(&rule->regex, subject->bytes, GROUPS, match, 0))
		return 0;
	expand(rule->replacement, subject->bytes, match, &result);
	return set_clean(labels, rule->target, &result);
}

static int change_case(const struct relabel_rule *rule, struct relabel_labels *labels,
		       const struct text *subject)
{
	const char first = rule->action == RELABEL_LOWERCASE ? 'A' : 'a';
	char bytes[RELABEL_VALUE_MAX_BYTES + 1] = "";
	struct text result = {.bytes = bytes, .room = RELABEL_VALUE_MAX_BYTES};

	append(&result, subject->bytes, subject->size);
	for (size_t i = 0; i < result.size; i++)
		if (bytes[i] >= first && bytes[i] <= first + ('Z' - 'A'))
			bytes[i] = (char)(bytes[i] ^ ('a' ^ 'A'));
	return set_clean(labels, rule->target, &result);
}

static void drop_names(const struct relabel_rule *rule, struct relabel_labels *labels)
{
	const bool wants_match = rule->action == RELABEL_LABELDROP;

	for (size_t i = labels->count; i-- > 0;)
		if (!regexec(&rule->regex, labels->label[i].name, 0, NULL, 0) == wants_match)
			take_away(labels, &labels->label[i]);
}

static int apply(const struct relabel_rule *rule, struct relabel_labels *labels, bool *keep)
{
	char bytes[SUBJECT_BYTES] = "";
	struct text subject = {.bytes = bytes, .room = sizeof(bytes) - 1};

	join_sources(rule, labels, &subject);
	switch (rule->action) {
	case RELABEL_KEEP:
	case RELABEL_DROP:
		*keep = !regexec(&rule->regex, subject.bytes, 0, NULL, 0) ==
			(rule->action == RELABEL_KEEP);
		return 0;
	case RELABEL_LOWERCASE:
	case RELABEL_UPPERCASE:
		return change_case(rule, labels, &subject);
	case RELABEL_LABELDROP:
	case RELABEL_LABELKEEP:
		drop_names(rule, labels);
		return 0;
	default:
		return replace(rule, labels, &subject);
	}
}

int relabel_rules_apply(const struct relabel_rules *rules, struct relabel_labels *labels,
			bool *ret_keep)
{
	bool keep = true;
	int err = 0;

	for (size_t i = 0; i < rules->count && keep && !err; i++)
		err = apply(&rules->rule[i], labels, &keep);
	if (!err)
		*ret_keep = keep;
	return err;
}
