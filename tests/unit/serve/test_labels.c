/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/labels.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

struct fixture {
	struct intern *strings;
	struct profile *profile;
};

static void fixture_init(struct fixture *f)
{
	const struct profile_options options = {.kind = "cpu",
						.value_type = {{"samples", "count"},
							       {"cpu", "nanoseconds"}},
						.value_count = 2,
						.default_value_type = "cpu"};

	assert_int_equal(intern_new(&f->strings), 0);
	assert_int_equal(profile_new(&options, f->strings, &f->profile), 0);
}

static void fixture_release(struct fixture *f)
{
	profile_free(f->profile);
	intern_free(f->strings);
}

static struct profile_label text_label(struct fixture *f, const char *key, const char *text)
{
	struct profile_label label = {.key = key};

	assert_int_equal(intern_string(f->strings, text, &label.string), 0);
	return label;
}

static void add_row(struct fixture *f, const struct profile_label *label, size_t count,
		    int64_t value)
{
	const int64_t values[] = {1, value};
	uint32_t stack, set, row;

	assert_int_equal(profile_add_stack(f->profile, NULL, 0, &stack), 0);
	assert_int_equal(profile_add_label_set(f->profile, label, count, &set), 0);
	assert_int_equal(profile_add_row(f->profile, stack, set, values, &row), 0);
}

/* app NULL: the sample lacks the label. */
static void add(struct fixture *f, int64_t pid, int64_t tid, const char *comm, const char *app,
		int64_t value)
{
	struct profile_label label[4] = {{.key = "pid", .is_number = 1, .number = pid},
					 {.key = "tid", .is_number = 1, .number = tid},
					 text_label(f, "comm", comm)};

	if (app)
		label[3] = text_label(f, "app", app);
	add_row(f, label, app ? 4 : 3, value);
}

/* The text is the caller's to free. */
static char *written(const struct fixture *f)
{
	CLEANUP(labels_release) struct labels labels = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct json_writer json = json_writer_to(out);

	assert_non_null(out);
	assert_int_equal(labels_of_profile(f->profile, 1, &labels), 0);
	labels_put(&labels, &json);
	assert_int_equal(close_memory_file(out, &text), 0);
	return text;
}

static void labels__add_up_over_threads_and_the_largest_comes_first(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	OWNED_MEM char *text = NULL;

	(void)state;
	fixture_init(&f);
	add(&f, 7, 7, "python3", "train.py", 100);
	add(&f, 7, 8, "python3", "train.py", 50);
	add(&f, 9, 9, "gzip", NULL, 400);
	add(&f, 5, 5, "python3", "web", 200);
	text = written(&f);
	assert_string_equal(
		text, "\"total\":750,\"labels\":["
		      "{\"key\":\"app\",\"values\":[{\"value\":\"web\",\"total\":200},"
		      "{\"value\":\"train.py\",\"total\":150}],\"more\":0},"
		      "{\"key\":\"comm\",\"values\":[{\"value\":\"gzip\",\"total\":400},"
		      "{\"value\":\"python3\",\"total\":350}],\"more\":0}],"
		      "\"processes\":[{\"pid\":9,\"comm\":\"gzip\",\"app\":\"\",\"total\":400},"
		      "{\"pid\":5,\"comm\":\"python3\",\"app\":\"web\",\"total\":200},"
		      "{\"pid\":7,\"comm\":\"python3\",\"app\":\"train.py\",\"total\":150}],"
		      "\"processes_more\":0");
}

/* After an exec a pid has two names. */
static void process__has_the_name_of_most_of_it(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	OWNED_MEM char *text = NULL;

	(void)state;
	fixture_init(&f);
	add(&f, 7, 7, "sh", NULL, 10);
	add(&f, 7, 7, "python3", "train.py", 90);
	text = written(&f);
	assert_non_null(strstr(text, "\"processes\":[{\"pid\":7,\"comm\":\"python3\","
				     "\"app\":\"train.py\",\"total\":100}]"));
}

static void values__beyond_a_hundred_are_counted(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	OWNED_MEM char *text = NULL;
	char comm[16];

	(void)state;
	fixture_init(&f);
	for (unsigned int i = 1; i <= LABELS_VALUES_SHOWN + 3; i++) {
		snprintf(comm, sizeof(comm), "c%u", i);
		add(&f, i, i, comm, NULL, i);
	}
	text = written(&f);
	assert_non_null(strstr(text, "{\"value\":\"c103\",\"total\":103}"));
	assert_non_null(strstr(text, "{\"value\":\"c4\",\"total\":4}],\"more\":3}"));
	assert_null(strstr(text, "\"c3\""));
	assert_non_null(strstr(text, "\"processes_more\":3"));
	assert_null(strstr(text, "{\"pid\":3,"));
}

static void numbers__are_values_and_hostile_names_are_escaped(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	OWNED_MEM char *text = NULL;

	(void)state;
	fixture_init(&f);
	{
		const struct profile_label label[] = {{.key = "rank", .is_number = 1, .number = -3},
						      text_label(&f, "app", "</script>\"\\\n")};

		add_row(&f, label, 2, 5);
	}
	text = written(&f);
	assert_string_equal(
		text, "\"total\":5,\"labels\":[{\"key\":\"app\",\"values\":[{\"value\":"
		      "\"\\u003c/script>\\\"\\\\\\u000a\",\"total\":5}],\"more\":0},"
		      "{\"key\":\"rank\",\"values\":[{\"value\":\"-3\",\"total\":5}],\"more\":0}],"
		      "\"processes\":[],\"processes_more\":0");
}

/* gil's default value is 0 for most rows: they are not of this selection. */
static void sets__without_a_value_are_left_out(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	OWNED_MEM char *text = NULL;

	(void)state;
	fixture_init(&f);
	add(&f, 7, 7, "idle", "none", 0);
	add(&f, 8, 8, "busy", NULL, 1);
	text = written(&f);
	assert_null(strstr(text, "idle"));
	assert_null(strstr(text, "none"));
	assert_non_null(strstr(text, "busy"));
}

static void labels__of_no_profile_are_none(void **state)
{
	static const struct labels none = {0};
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct json_writer json = json_writer_to(out);

	(void)state;
	assert_non_null(out);
	labels_put(&none, &json);
	assert_int_equal(close_memory_file(out, &text), 0);
	assert_string_equal(text,
			    "\"total\":0,\"labels\":[],\"processes\":[],\"processes_more\":0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels__add_up_over_threads_and_the_largest_comes_first),
		cmocka_unit_test(process__has_the_name_of_most_of_it),
		cmocka_unit_test(values__beyond_a_hundred_are_counted),
		cmocka_unit_test(numbers__are_values_and_hostile_names_are_escaped),
		cmocka_unit_test(sets__without_a_value_are_left_out),
		cmocka_unit_test(labels__of_no_profile_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
