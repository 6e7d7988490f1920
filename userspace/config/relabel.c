/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/relabel.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/regex_copies.h"
#include "base/utf8.h"

/* X(id, name, whether it has a target label) */
#define RELABEL_ACTIONS(X)                                                                         \
	X(REPLACE, "replace", 1)                                                                   \
	X(KEEP, "keep", 0)                                                                         \
	X(DROP, "drop", 0)                                                                         \
	X(LOWERCASE, "lowercase", 1)                                                               \
	X(UPPERCASE, "uppercase", 1)                                                               \
	X(LABELDROP, "labeldrop", 0)                                                               \
	X(LABELKEEP, "labelkeep", 0)

#define RELABEL_ENUM_ACTION(id, ...) RELABEL_##id,
enum relabel_action { RELABEL_ACTIONS(RELABEL_ENUM_ACTION) RELABEL_ACTION_COUNT };

struct relabel_rule {
	enum relabel_action action;
	char *source[RELABEL_SOURCES_MAX]; /* owned; names */
	size_t source_count;
	char *separator, *target, *replacement; /* owned */
	regex_t regex; /* of the whole text; its first group is all of it */
	bool has_regex;
};

struct relabel_rules {
	struct relabel_rule rule[RELABEL_RULES_MAX];
	size_t count;
};

#define LINE_MAX_BYTES 4096U

static int complain(char why[RELABEL_WHY_BYTES], const char *what, const char *value)
{
	snprintf(why, RELABEL_WHY_BYTES, "%s: '%.64s'", what, value);
	return -EINVAL;
}

/* ---- words ---- */

#define BLANKS " \t"

/* Takes a value in quotes, and writes it over itself without them.  Returns what is behind it, with
 * its fault or NULL. */
static char *take_quoted(char *value, const char **ret_fault)
{
	char *from = value + 1, *to = value;
	bool is_closed;

	while (*from && *from != '"') {
		from += *from == '\\' && (from[1] == '"' || from[1] == '\\');
		*to++ = *from++;
	}
	is_closed = *from == '"';
	*to = '\0';
	*ret_fault = NULL;
	if (!is_closed)
		*ret_fault = "a quote is not closed in the value of";
	else if (from[1] && !strchr(BLANKS, from[1]))
		*ret_fault = "a space is missing behind the value of";
	return from + is_closed;
}

/* Takes the next word, NAME=VALUE, of a line that is written over.  Returns 0 with both parts; 1:
 * there is none; -EINVAL. */
static int take_word(char **at, char **ret_name, char **ret_value, char why[RELABEL_WHY_BYTES])
{
	char *name = *at + strspn(*at, BLANKS), *end = name + strcspn(name, "=" BLANKS);
	const char *fault = NULL;

	if (!*name)
		return 1;
	if (*end != '=' || end == name)
		return complain(why, "expected NAME=VALUE", name);
	*end = '\0';
	*ret_name = name;
	*ret_value = end + 1;
	end = end[1] == '"' ? take_quoted(end + 1, &fault) : end + 1 + strcspn(end + 1, BLANKS);
	if (fault)
		return complain(why, fault, name);
	*at = *end ? end + 1 : end;
	*end = '\0';
	return 0;
}

/* ---- values ---- */

static bool is_label_name(const char *name)
{
	const size_t size = strlen(name);

	if (!size || size > RELABEL_NAME_MAX_BYTES || (name[0] >= '0' && name[0] <= '9'))
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == size;
}

static int set_text(char **text, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

static int set_action(struct relabel_rule *rule, char *value, char why[RELABEL_WHY_BYTES])
{
#define ACTION_NAME(id, name, ...) name,
	static const char *const name[] = {RELABEL_ACTIONS(ACTION_NAME)};

	for (size_t i = 0; i < RELABEL_ACTION_COUNT; i++) {
		if (strcmp(value, name[i]) != 0)
			continue;
		rule->action = (enum relabel_action)i;
		return 0;
	}
	return complain(why,
			"the action is none of replace, keep, drop, lowercase, uppercase, "
			"labeldrop and labelkeep",
			value);
}

static int set_sources(struct relabel_rule *rule, char *value, char why[RELABEL_WHY_BYTES])
{
	char *name;

	while ((name = strsep(&value, ","))) {
		if (!is_label_name(name))
			return complain(why, "source_labels: this is no label's name", name);
		if (rule->source_count == RELABEL_SOURCES_MAX)
			return complain(why, "source_labels: there are more than 8", name);
		if (set_text(&rule->source[rule->source_count], name))
			return -ENOMEM;
		rule->source_count++;
	}
	return 0;
}

static int set_target(struct relabel_rule *rule, char *value, char why[RELABEL_WHY_BYTES])
{
	if (!is_label_name(value))
		return complain(why, "target_label: this is no label's name", value);
	return set_text(&rule->target, value);
}

static int set_separator(struct relabel_rule *rule, char *value, char why[RELABEL_WHY_BYTES])
{
	(void)why;
	return set_text(&rule->separator, value);
}

static int set_replacement(struct relabel_rule *rule, char *value, char why[RELABEL_WHY_BYTES])
{
	if (strlen(value) > RELABEL_VALUE_MAX_BYTES)
		return complain(why, "replacement: this is longer than 1024 bytes", value);
	return set_text(&rule->replacement, value);
}

/* Back references take exponential time, and nested repeats all memory. */
static const char *regex_fault(const char *regex)
{
	if (strlen(regex) > RELABEL_REGEX_MAX_BYTES)
		return "regex: this is longer than 256 bytes";
	for (const char *at = regex; *at; at += at[0] == '\\' && at[1] ? 2 : 1)
		if (at[0] == '\\' && at[1] >= '0' && at[1] <= '9')
			return "regex: there are no back references";
	return regex_copies_too_much(regex) ? "regex: this repeats too much" : NULL;
}

static int set_regex(struct relabel_rule *rule, char *value, char why[RELABEL_WHY_BYTES])
{
	char whole[RELABEL_REGEX_MAX_BYTES + sizeof("^()$")];
	const char *fault = regex_fault(value);
	int err;

	if (fault)
		return complain(why, fault, value);
	if (rule->has_regex)
		regfree(&rule->regex);
	snprintf(whole, sizeof(whole), "^(%s)$", value);
	err = regcomp(&rule->regex, whole, REG_EXTENDED);
	rule->has_regex = !err;
	if (err)
		return err == REG_ESPACE ? -ENOMEM
					 : complain(why,
						    "regex: this is no POSIX extended "
						    "expression",
						    value);
	return 0;
}

/* ---- reading rules ---- */

static void rule_release(struct relabel_rule *rule)
{
	for (size_t i = 0; i < rule->source_count; i++)
		free(rule->source[i]);
	free(rule->separator);
	free(rule->target);
	free(rule->replacement);
	if (rule->has_regex)
		regfree(&rule->regex);
}

static int set_word(struct relabel_rule *rule, const char *name, char *value,
		    char why[RELABEL_WHY_BYTES])
{
	static const struct {
		const char *name;
		int (*set)(struct relabel_rule *rule, char *value, char why[RELABEL_WHY_BYTES]);
	} word[] = {{"action", set_action},	  {"source_labels", set_sources},
		    {"separator", set_separator}, {"regex", set_regex},
		    {"target_label", set_target}, {"replacement", set_replacement}};

	for (size_t i = 0; i < ARRAY_SIZE(word); i++)
		if (!strcmp(name, word[i].name))
			return word[i].set(rule, value, why);
	return complain(why,
			"known are action, source_labels, separator, regex, target_label and "
			"replacement, not",
			name);
}

static int set_defaults(struct relabel_rule *rule)
{
	char all[] = "(.*)", why[RELABEL_WHY_BYTES];
	int err = set_text(&rule->separator, ";");

	if (!err)
		err = set_text(&rule->replacement, "$1");
	return err ? err : set_regex(rule, all, why);
}

/* Returns what a rule lacks, or has without a use. */
static const char *rule_fault(const struct relabel_rule *rule)
{
#define ACTION_TARGET(id, name, has_target) has_target,
	static const bool has_target[] = {RELABEL_ACTIONS(ACTION_TARGET)};
	const bool is_of_names =
		rule->action == RELABEL_LABELDROP || rule->action == RELABEL_LABELKEEP;

	if (has_target[rule->action] && !rule->target)
		return "target_label is missing";
	if (!has_target[rule->action] && rule->target)
		return "target_label has no meaning for this action";
	if (is_of_names && rule->source_count)
		return "source_labels has no meaning for this action";
	if (!is_of_names && !rule->source_count && rule->action != RELABEL_REPLACE)
		return "source_labels is missing";
	return NULL;
}

static int read_rule(struct relabel_rule *rule, char *line, char why[RELABEL_WHY_BYTES])
{
	int err = set_defaults(rule);
	char *name, *value;
	const char *fault;

	while (!err) {
		err = take_word(&line, &name, &value, why);
		if (!err)
			err = set_word(rule, name, value, why);
	}
	if (err < 0)
		return err;
	fault = rule_fault(rule);
	if (fault)
		snprintf(why, RELABEL_WHY_BYTES, "%s", fault);
	return fault ? -EINVAL : 0;
}

static int add_rule(struct relabel_rules *rules, const char *text, size_t size,
		    char why[RELABEL_WHY_BYTES])
{
	char line[LINE_MAX_BYTES];

	if (rules->count == RELABEL_RULES_MAX)
		return complain(why, "there are more than 64 rules, with", text);
	if (size >= sizeof(line))
		return complain(why, "this is longer than 4095 bytes", text);
	memcpy(line, text, size);
	line[size] = '\0';
	return read_rule(&rules->rule[rules->count++], line, why);
}

int relabel_rules_parse(const char *text, struct relabel_rules **ret_rules,
			char why[RELABEL_WHY_BYTES])
{
	OWNED(relabel_rules) struct relabel_rules *rules = calloc(1, sizeof(*rules));
	char what[RELABEL_WHY_BYTES] = "";

	if (!rules)
		return -ENOMEM;
	for (size_t number = 1; *text;) {
		const size_t size = strcspn(text, "\n");
		const bool is_empty = strspn(text, " \t") >= size;
		int err = is_empty ? 0 : add_rule(rules, text, size, what);

		if (err == -EINVAL)
			snprintf(why, RELABEL_WHY_BYTES, "rule %zu: %.130s", number, what);
		if (err)
			return err;
		number += !is_empty;
		text += size + (text[size] == '\n');
	}
	*ret_rules = TAKE(rules);
	return 0;
}

void relabel_rules_free(struct relabel_rules *rules)
{
	if (!rules)
		return;
	for (size_t i = 0; i < rules->count; i++)
		rule_release(&rules->rule[i]);
	free(rules);
}

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

/* ---- applying them ---- */

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
