/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/labels.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "pprof/profile_read.h"
#include "query/input.h"
#include "serve/answers.h"

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

/* Texts by the alphabet, in whatever order they came, numbers by their size. */
static void labels__of_equal_weight_are_in_their_own_order(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	OWNED_MEM char *text = NULL;

	(void)state;
	fixture_init(&f);
	for (unsigned int i = 0; i < 3; i++) {
		static const int64_t gpu[] = {10, 9, 100};
		static const char *const comm[] = {"b", "a", "c"};
		const struct profile_label label[] = {
			text_label(&f, "comm", comm[i]),
			{.key = "gpu", .is_number = 1, .number = gpu[i]}};

		add_row(&f, label, 2, 5);
	}
	text = written(&f);
	assert_non_null(strstr(text, "{\"value\":\"a\",\"total\":5},{\"value\":\"b\",\"total\":5},"
				     "{\"value\":\"c\",\"total\":5}"));
	assert_non_null(strstr(text, "{\"value\":\"9\",\"total\":5},{\"value\":\"10\",\"total\":5},"
				     "{\"value\":\"100\",\"total\":5}"));
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
		/* The key before has a value of its own. */
		add(&f, i, i, comm, "one", i);
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

/* Its first sample may lack them. */
static void process__has_the_first_name_that_is_told(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	OWNED_MEM char *text = NULL;

	(void)state;
	fixture_init(&f);
	add_row(&f, &(struct profile_label){.key = "pid", .is_number = 1, .number = 7}, 1, 90);
	add(&f, 7, 7, "python3", "train.py", 10);
	text = written(&f);
	assert_non_null(strstr(text, "\"processes\":[{\"pid\":7,\"comm\":\"python3\","
				     "\"app\":\"train.py\",\"total\":100}]"));
}

/* A foreign profile may have any number of keys. */
static void keys__beyond_the_most_are_left_out(void **state)
{
	static char key[LABELS_KEYS_MAX + 1][8];
	CLEANUP(fixture_release) struct fixture f;
	OWNED_MEM char *text = NULL;
	size_t keys = 0;

	(void)state;
	fixture_init(&f);
	/* That of processes is none of them. */
	add_row(&f, &(struct profile_label){.key = "pid", .is_number = 1, .number = 7}, 1, 5);
	for (unsigned int i = 0; i <= LABELS_KEYS_MAX; i++) {
		snprintf(key[i], sizeof(key[i]), "k%03u", i);
		add_row(&f, &(struct profile_label){.key = key[i], .is_number = 1}, 1, 5);
	}
	text = written(&f);
	for (const char *at = text; (at = strstr(at, "\"key\":")); at++)
		keys++;
	assert_int_equal(keys, LABELS_KEYS_MAX);
	assert_non_null(strstr(text, "k127"));
	assert_null(strstr(text, "k128"));
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

/* ---- the answer ---- */

static const struct fixture *stored; /* what request_read() finds */
static int read_err;

int request_read(const struct answer_sources *sources, const struct request *request,
		 const struct answer_view *view, const struct input_options *wanted,
		 struct input **ret_input, struct answer *ret_answer)
{
	(void)sources, (void)request, (void)view;
	assert_true(wanted->may_be_none);
	if (read_err)
		answer_say(ret_answer, 404, "nothing\n");
	else
		*ret_input = (struct input *)stored;
	return read_err;
}

struct profile *input_profile(const struct input *input)
{
	return ((const struct fixture *)(const void *)input)->profile;
}

const struct profile_reader *input_reader(const struct input *input)
{
	return (const void *)input;
}

unsigned int profile_reader_value_index(const struct profile_reader *reader)
{
	assert_ptr_equal(reader, stored);
	return 1;
}

void input_free(struct input *input)
{
	assert_true(!input || input == (const void *)stored);
}

static void assert_answer(const struct request *request, unsigned int status, const char *body)
{
	CLEANUP(answer_release) struct answer answer;

	labels_answer(NULL, request, NULL, 9000, &answer);
	assert_int_equal(answer.status, status);
	assert_string_equal(answer.body, body);
}

static void answer__tells_kind_and_range_and_the_labels(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	struct request request = {.stored = "offcpu", .from_ms = 1234, .until_ms = 5678};

	(void)state;
	read_err = 0;
	stored = NULL;
	assert_answer(&request, 200,
		      "{\"kind\":\"offcpu\",\"from_ms\":1234,\"until_ms\":5678,\"total\":0,"
		      "\"labels\":[],\"processes\":[],\"processes_more\":0}\n");
	fixture_init(&f);
	add_row(&f, &(struct profile_label){.key = "rank", .is_number = 1, .number = 3}, 1, 5);
	stored = &f;
	assert_answer(&request, 200,
		      "{\"kind\":\"offcpu\",\"from_ms\":1234,\"until_ms\":5678,\"total\":5,"
		      "\"labels\":[{\"key\":\"rank\",\"values\":[{\"value\":\"3\",\"total\":5}],"
		      "\"more\":0}],\"processes\":[],\"processes_more\":0}\n");
	read_err = -ENOENT;
	assert_answer(&request, 404, "nothing\n");
	read_err = 0;
	request.until_ms = 1234;
	assert_answer(&request, 400, "from is not before until\n");
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
		cmocka_unit_test(labels__of_equal_weight_are_in_their_own_order),
		cmocka_unit_test(process__has_the_name_of_most_of_it),
		cmocka_unit_test(values__beyond_a_hundred_are_counted),
		cmocka_unit_test(numbers__are_values_and_hostile_names_are_escaped),
		cmocka_unit_test(process__has_the_first_name_that_is_told),
		cmocka_unit_test(keys__beyond_the_most_are_left_out),
		cmocka_unit_test(sets__without_a_value_are_left_out),
		cmocka_unit_test(labels__of_no_profile_are_none),
		cmocka_unit_test(answer__tells_kind_and_range_and_the_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
