/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/relabel.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Applies rules to labels, "a=1 b=2", and tells what becomes of them; "dropped". */
static const char *applied(const char *rules_text, const char *labels_text)
{
	static char text[4096];
	OWNED(relabel_rules) struct relabel_rules *rules = NULL;
	struct relabel_labels labels = {0};
	char why[RELABEL_WHY_BYTES] = "", copy[2048], *rest = copy, *word;
	bool keep = false;
	size_t used = 0;

	snprintf(copy, sizeof(copy), "%s", labels_text);
	while ((word = strsep(&rest, " "))) {
		char *equals = strchr(word, '=');

		assert_non_null(equals);
		*equals = '\0';
		assert_int_equal(relabel_labels_set(&labels, word, equals + 1), 0);
	}
	if (relabel_rules_parse(rules_text, &rules, why))
		fail_msg("%s", why);
	assert_int_equal(relabel_rules_apply(rules, &labels, &keep), 0);
	snprintf(text, sizeof(text), "%s", keep ? "" : "dropped");
	for (size_t i = 0; i < labels.count && keep; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s=%s", i ? " " : "",
					 labels.label[i].name, labels.label[i].value);
	relabel_labels_release(&labels);
	return text;
}

static void expect_why(const char *rules_text, const char *expected)
{
	struct relabel_rules *rules = NULL;
	char why[RELABEL_WHY_BYTES] = "";

	assert_int_equal(relabel_rules_parse(rules_text, &rules, why), -EINVAL);
	assert_null(rules);
	assert_string_equal(why, expected);
}

static void replace__takes_groups_of_the_whole_source(void **state)
{
	(void)state;
	assert_string_equal(applied("source_labels=app regex=(.*)\\.py target_label=service_name",
				    "app=train.py"),
			    "app=train.py service_name=train");
	assert_string_equal(applied("source_labels=app regex=(.*)\\.py target_label=app",
				    "app=train.pyc"),
			    "app=train.pyc");
	assert_string_equal(applied("source_labels=a,b,c target_label=d", "a=1 c=3"),
			    "a=1 c=3 d=1;;3");
	assert_string_equal(applied("source_labels=a,b separator=/ regex=([^/]*)/(.*) "
				    "replacement=$2-${1}x$$1$0$9$z target_label=a",
				    "a=1 b=2"),
			    "a=2-1x$11/2$z b=2");
	assert_string_equal(applied("source_labels=a regex=(x)|(y) replacement=<$1$2> "
				    "target_label=b",
				    "a=y"),
			    "a=y b=<y>");
}

static void replace__constant_and_empty(void **state)
{
	(void)state;
	assert_string_equal(applied("target_label=team replacement=\"data \\\"x\\\" \\\\ $\"",
				    "a=1"),
			    "a=1 team=data \"x\" \\ $");
	assert_string_equal(applied("target_label=a replacement=\"\"", "a=1 b=2"), "b=2");
	assert_string_equal(applied("target_label=a replacement=", "a=1 b=2"), "b=2");
}

static void keep_and_drop__by_the_whole_value(void **state)
{
	(void)state;
	assert_string_equal(applied("action=keep source_labels=app regex=a|b", "app=b"), "app=b");
	assert_string_equal(applied("action=keep source_labels=app regex=a|b", "app=ab"),
			    "dropped");
	assert_string_equal(applied("action=keep source_labels=app regex=a|b", "x=a"), "dropped");
	assert_string_equal(applied("action=drop source_labels=user regex=root", "user=root"),
			    "dropped");
	assert_string_equal(applied("action=drop source_labels=user regex=root", "user=roots"),
			    "user=roots");
	/* Nothing follows a drop. */
	assert_string_equal(applied("action=drop source_labels=a regex=1\n"
				    "action=keep source_labels=a regex=1",
				    "a=1"),
			    "dropped");
}

static void case__of_letters(void **state)
{
	(void)state;
	assert_string_equal(applied("action=lowercase source_labels=a target_label=b",
				    "a=ABZ[@`{Ä"),
			    "a=ABZ[@`{Ä b=abz[@`{Ä");
	assert_string_equal(applied("action=uppercase source_labels=a target_label=a", "a=abz[@`{"),
			    "a=ABZ[@`{");
}

static void names__are_dropped_and_kept(void **state)
{
	(void)state;
	assert_string_equal(applied("action=labeldrop regex=a.*", "ab=1 b=2 a=3 ba=4"), "b=2 ba=4");
	assert_string_equal(applied("action=labelkeep regex=a.*", "ab=1 b=2 a=3 ba=4"), "ab=1 a=3");
}

static void rules__are_applied_in_order(void **state)
{
	(void)state;
	assert_string_equal(applied("\nsource_labels=app target_label=x\n  \n"
				    "source_labels=x\tregex=t(.*) target_label=x\n"
				    "action=labeldrop regex=app\n",
				    "app=train"),
			    "x=rain");
	assert_string_equal(applied("", "a=1"), "a=1");
}

static void values__are_bounded_and_clean(void **state)
{
	char rule[1100] = "target_label=a replacement=", labels[1200] = "a=";
	const char *value;

	(void)state;
	memset(labels + 2, 'x', 1100);
	value = applied("source_labels=a,a,a target_label=a", labels);
	assert_int_equal(strlen(value), 2 + RELABEL_VALUE_MAX_BYTES);
	/* Half of a character is cut off from it. */
	value = applied("source_labels=a regex=.(.) target_label=a", "a=\xc3\xa4");
	assert_string_equal(value, "a=\xef\xbf\xbd");
	assert_true(utf8_is_clean(value, strlen(value)));
	memset(rule + strlen(rule), '\xc3', 900);
	value = applied(rule, "b=1");
	assert_true(utf8_is_clean(value, strlen(value)));
}

static void labels__of_one_too_many(void **state)
{
	OWNED(relabel_rules) struct relabel_rules *rules = NULL;
	struct relabel_labels labels = {0};
	char why[RELABEL_WHY_BYTES], name[16];
	bool keep;

	(void)state;
	for (unsigned int i = 0; i < RELABEL_LABELS_MAX; i++) {
		snprintf(name, sizeof(name), "l%u", i);
		assert_int_equal(relabel_labels_set(&labels, name, "1"), 0);
	}
	assert_int_equal(relabel_labels_set(&labels, "more", "1"), -ENOSPC);
	assert_int_equal(relabel_labels_set(&labels, "l3", "2"), 0);
	assert_string_equal(relabel_labels_get(&labels, "l3"), "2");
	assert_string_equal(relabel_labels_get(&labels, "more"), "");
	assert_int_equal(relabel_rules_parse("target_label=more replacement=1", &rules, why), 0);
	assert_int_equal(relabel_rules_apply(rules, &labels, &keep), -ENOSPC);
	relabel_labels_release(&labels);
}

static void faults__are_told_with_their_rule(void **state)
{
	char line[5000] = "target_label=a replacement=";

	(void)state;
	expect_why("x", "rule 1: expected NAME=VALUE: 'x'");
	expect_why("target_label=a\n\n=x", "rule 2: expected NAME=VALUE: '=x'");
	expect_why("target=a", "rule 1: known are action, source_labels, separator, regex, "
			       "target_label and replacement, not: 'target'");
	expect_why("action=hashmod target_label=a",
		   "rule 1: the action is none of replace, keep, drop, lowercase, uppercase, "
		   "labeldrop and labelkeep: 'hashmod'");
	expect_why("target_label=1a", "rule 1: target_label: this is no label's name: '1a'");
	expect_why("source_labels=a, target_label=a",
		   "rule 1: source_labels: this is no label's name: ''");
	expect_why("source_labels=a,b,c,d,e,f,g,h,i target_label=a",
		   "rule 1: source_labels: there are more than 8: 'i'");
	expect_why("target_label=a regex=(",
		   "rule 1: regex: this is no POSIX extended expression: '('");
	expect_why("target_label=a regex=(a)\\1",
		   "rule 1: regex: there are no back references: '(a)\\1'");
	expect_why("target_label=a regex=((a{1,99}){99})",
		   "rule 1: regex: this repeats too much: '((a{1,99}){99})'");
	expect_why("target_label=a regex=a{1009}",
		   "rule 1: regex: this repeats too much: 'a{1009}'");
	expect_why("target_label=a replacement=\"x",
		   "rule 1: a quote is not closed in the value of: 'replacement'");
	expect_why("replacement=\"x\"target_label=a",
		   "rule 1: a space is missing behind the value of: 'replacement'");
	expect_why("replacement=x", "rule 1: target_label is missing");
	expect_why("action=drop regex=x", "rule 1: source_labels is missing");
	expect_why("action=drop source_labels=a target_label=b",
		   "rule 1: target_label has no meaning for this action");
	expect_why("action=labeldrop source_labels=a",
		   "rule 1: source_labels has no meaning for this action");
	memset(line + strlen(line), 'x', 1025);
	expect_why(line, "rule 1: replacement: this is longer than 1024 bytes: "
			 "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'");
	memset(line + strlen(line), 'x', 3500);
	expect_why(line, "rule 1: this is longer than 4095 bytes: "
			 "'target_label=a replacement=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'");
}

static void rules__are_64_at_most(void **state)
{
	OWNED(relabel_rules) struct relabel_rules *rules = NULL;
	char text[RELABEL_RULES_MAX * 16 + 32] = "", why[RELABEL_WHY_BYTES];

	(void)state;
	for (unsigned int i = 0; i < RELABEL_RULES_MAX; i++)
		strcat(text, "target_label=a\n");
	assert_int_equal(relabel_rules_parse(text, &rules, why), 0);
	strcat(text, "target_label=b");
	expect_why(text, "rule 65: there are more than 64 rules, with: 'target_label=b'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replace__takes_groups_of_the_whole_source),
		cmocka_unit_test(replace__constant_and_empty),
		cmocka_unit_test(keep_and_drop__by_the_whole_value),
		cmocka_unit_test(case__of_letters),
		cmocka_unit_test(names__are_dropped_and_kept),
		cmocka_unit_test(rules__are_applied_in_order),
		cmocka_unit_test(values__are_bounded_and_clean),
		cmocka_unit_test(labels__of_one_too_many),
		cmocka_unit_test(faults__are_told_with_their_rule),
		cmocka_unit_test(rules__are_64_at_most),
	};

	return cmocka_run_group_tests_name("config/relabel", tests, NULL, NULL);
}
