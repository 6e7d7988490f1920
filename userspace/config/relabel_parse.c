/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the rules of relabel.h. */
#include "config/relabel_parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/regex_copies.h"

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

/* ---- rules ---- */

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
