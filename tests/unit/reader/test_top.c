/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pprof/pprof.h"
#include "query/input.h"
#include "reader/text.h"
#include "reader/top_view.h"

struct given {
	const char *stack; /* leaf first: "p:step:12 n:read k:__schedule": kind, name, line */
	int64_t pid;
	const char *comm, *wait, *gil; /* NULL: no such label */
	int64_t ms;
};

static size_t read_stack(const char *text, struct intern *strings, struct frame *frame)
{
	char copy[256], *rest, *word;
	size_t count = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		char kind, name[64], file[80];
		unsigned int line = 0;

		assert_true(sscanf(word, "%c:%63[^:]:%u", &kind, name, &line) >= 2);
		frame[count] = (struct frame){.kind = kind == 'p'   ? FRAME_PYTHON
						      : kind == 'k' ? FRAME_KERNEL
								    : FRAME_NATIVE,
					      .line = line};
		assert_int_equal(intern_string(strings, name, &frame[count].name), 0);
		snprintf(file, sizeof(file), "/srv/%s.py", name);
		if (kind == 'p')
			assert_int_equal(intern_string(strings, file, &frame[count].file), 0);
		count++;
	}
	return count;
}

static void add_label(struct profile_sample *sample, struct intern *strings, const char *key,
		      const char *value)
{
	struct profile_label *label = &sample->label[sample->label_count];

	if (!value)
		return;
	*label = (struct profile_label){.key = key};
	assert_int_equal(intern_string(strings, value, &label->string), 0);
	sample->label_count++;
}

static void add_window(struct top_model *model, const struct given *given, size_t count,
		       uint64_t duration_ns)
{
	const struct profile_options options = {.kind = "wall",
						.value_type = {{"wall", "nanoseconds"}},
						.value_count = 1,
						.default_value_type = "wall",
						.period_type = {"wall", "nanoseconds"},
						.period = 1,
						.start_wall_ns = 1700000000ULL * NS_PER_SEC,
						.duration_ns = duration_ns};
	OWNED(intern) struct intern *strings = NULL;
	OWNED(profile) struct profile *profile = NULL;
	OWNED_MEM void *bytes = NULL;
	size_t size;

	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(profile_new(&options, strings, &profile), 0);
	for (size_t i = 0; i < count; i++) {
		struct frame frame[8] = {};
		struct profile_sample sample = {
			.frame = frame,
			.frame_count = read_stack(given[i].stack, strings, frame),
			.value = {given[i].ms * (int64_t)NS_PER_MS},
			.label = {{.key = "pid", .is_number = 1, .number = given[i].pid}},
			.label_count = 1};

		add_label(&sample, strings, "comm", given[i].comm);
		add_label(&sample, strings, "wait", given[i].wait);
		add_label(&sample, strings, "gil", given[i].gil);
		assert_int_equal(profile_add(profile, &sample), 0);
	}
	assert_int_equal(profile_encode_pprof(profile, &bytes, &size), 0);
	assert_int_equal(top_model_add(model, bytes, size, true), 0);
}

static const struct given one_window[] = {
	{"n:memcpy p:copy:7 p:step:12 p:run:3", 11, "python3", NULL, "held", 300},
	{"p:step:13 p:run:3", 11, "python3", NULL, "held", 200},
	{"p:step:12 p:step:14 p:run:3", 11, "python3", NULL, NULL, 100},
	{"k:schedule n:futex p:step:12 p:run:3", 11, "python3", "gil", NULL, 900},
	{"k:schedule n:poll p:run:4", 11, "python3", "poll", NULL, 100},
	{"k:fill n:deflate n:main", 22, "gzip", NULL, NULL, 500},
	{"k:schedule n:read n:main", 33, "cat", "pipe", NULL, 1000},
};

static struct top_model *model_of_one(void)
{
	struct top_model *model;

	assert_int_equal(top_model_new(false, &model), 0);
	add_window(model, one_window, ARRAY_SIZE(one_window), NS_PER_SEC);
	return model;
}

static const struct top_view as_started = {.depth = 3, .functions = 5, .lines = 2};

static char *printed(const struct top_view *view, const struct top_model *model)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(top_view_print(view, model, "\n", out), 0);
	fclose(out);
	return text;
}

static void expect(const struct top_view *view, const struct top_model *model, const char *table)
{
	char *text = printed(view, model);
	const char *rest = strstr(text, "NAME\n");

	assert_non_null(rest);
	assert_string_equal(rest + 5, table);
	free(text);
}

static void top__screen_of_a_window(void **state)
{
	OWNED(top_model) struct top_model *model = model_of_one();
	char *text = printed(&as_started, model);

	(void)state;
	assert_non_null(strstr(text, "  1.0 s  110.0 % CPU  3 processes  by cpu\n"));
	free(text);
	/* C is its caller's, and so is the kernel: gzip's main has called deflate. */
	expect(&as_started, model,
	       "    60.0            50.0   100.0  11 python3  waits: gil 90 %, poll 10 %\n"
	       "    30.0    60.0    20.0    90.0    step  /srv/step.py\n"
	       "    20.0            20.0     0.0        line 13\n"
	       "    10.0             0.0    90.0        line 12\n"
	       "    30.0    30.0    30.0     0.0    copy  /srv/copy.py\n"
	       "    30.0            30.0     0.0        line 7\n"
	       "     0.0    60.0     0.0    10.0    run  /srv/run.py\n"
	       "    50.0             0.0     0.0  22 gzip\n"
	       "    50.0    50.0     0.0     0.0    deflate  \n"
	       "     0.0    50.0     0.0     0.0    main  \n");
}

static void top__by_wait_and_by_leaf(void **state)
{
	OWNED(top_model) struct top_model *model = NULL;
	struct top_view view = as_started;

	(void)state;
	assert_int_equal(top_model_new(true, &model), 0);
	add_window(model, one_window, ARRAY_SIZE(one_window), NS_PER_SEC);
	view.sort = TOP_BY_WAIT;
	expect(&view, model,
	       "    60.0            50.0   100.0  11 python3  waits: gil 90 %, poll 10 %\n"
	       "     0.0     0.0     0.0   100.0    schedule  [kernel.kallsyms]\n"
	       "     0.0             0.0   100.0  33 cat  waits: pipe 100 %\n"
	       "     0.0     0.0     0.0   100.0    schedule  [kernel.kallsyms]\n");
}

static void top__windows_add_up(void **state)
{
	static const struct given second[] = {
		{"p:step:13 p:run:3", 11, "renamed", NULL, "held", 1000},
	};
	OWNED(top_model) struct top_model *model = model_of_one();
	struct top_view view = as_started;

	(void)state;
	add_window(model, second, 1, NS_PER_SEC);
	view.depth = 1;
	expect(&view, model,
	       "    80.0            75.0    50.0  11 renamed  waits: gil 90 %, poll 10 %\n"
	       "    25.0             0.0     0.0  22 gzip\n");
}

static void top__keys(void **state)
{
	OWNED(top_model) struct top_model *model = model_of_one();
	struct top_view view = as_started;

	(void)state;
	assert_false(top_view_keys(&view, "x", 1));
	assert_true(top_view_keys(&view, "g1", 2));
	expect(&view, model,
	       "    60.0            50.0   100.0  11 python3  waits: gil 90 %, poll 10 %\n");
	assert_true(top_view_keys(&view, "ni", 2));
	expect(&view, model,
	       "     0.0             0.0   100.0  33 cat  waits: pipe 100 %\n"
	       "    50.0             0.0     0.0  22 gzip\n"
	       "    60.0            50.0   100.0  11 python3  waits: gil 90 %, poll 10 %\n");
	assert_true(top_view_keys(&view, "\033[Bj", 4));
	expect(&view, model,
	       "    60.0            50.0   100.0  11 python3  waits: gil 90 %, poll 10 %\n");
	assert_true(top_view_keys(&view, "\033[5~", 4));
	assert_int_equal(view.first, 0);
	assert_true(top_view_keys(&view, " ", 1));
	assert_true(view.is_frozen);
	assert_true(top_view_keys(&view, "q", 1));
	assert_true(view.wants_end);
}

static void top__filter_keeps_processes_or_only_functions(void **state)
{
	OWNED(top_model) struct top_model *model = model_of_one();
	CLEANUP(top_view_release) struct top_view view = as_started;

	(void)state;
	assert_true(top_view_keys(&view, "2/gzx\177ip\r", 9));
	assert_string_equal(view.filter, "gzip");
	expect(&view, model,
	       "    50.0             0.0     0.0  22 gzip\n"
	       "    50.0    50.0     0.0     0.0    deflate  \n"
	       "     0.0    50.0     0.0     0.0    main  \n");
	/* The old one stays while another is typed, and when that is none. */
	assert_true(top_view_keys(&view, "/", 1));
	for (int i = 0; i < 4; i++)
		top_view_keys(&view, "\b", 1);
	assert_true(top_view_keys(&view, "q(\r", 3));
	assert_false(view.wants_end);
	assert_string_equal(view.filter, "gzip");
	assert_non_null(view.error);
	assert_int_equal(top_view_set_filter(&view, "^copy$"), 0);
	expect(&view, model,
	       "    60.0            50.0   100.0  11 python3  waits: gil 90 %, poll 10 %\n"
	       "    30.0    30.0    30.0     0.0    copy  /srv/copy.py\n");
	assert_true(top_view_keys(&view, "\033", 1));
	assert_string_equal(view.filter, "");
	assert_null(view.regex);
}

static void top__a_screen_has_its_size(void **state)
{
	OWNED(top_model) struct top_model *model = model_of_one();
	struct top_view view = as_started;
	char *text, *line, *rest;
	unsigned int lines = 0;

	(void)state;
	view.rows = 6;
	view.columns = 46;
	text = printed(&view, model);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		/* What is cut has a "…" of three bytes. */
		assert_true(text_columns_of(line) <= 46);
		lines++;
	}
	assert_int_equal(lines, 6);
	free(text);
	text = printed(&view, NULL);
	assert_non_null(strstr(text, "waiting"));
	free(text);
	top_view_keys(&view, "?", 1);
	view.rows = 30;
	text = printed(&view, model);
	assert_non_null(strstr(text, "quit"));
	assert_null(strstr(text, "python3"));
	free(text);
}

/* Makes one blank of each newline and the blanks around it. */
static void unwrap(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++)
		if ((*from != '\n' && *from != ' ') || (to > text && to[-1] != ' '))
			*to++ = *from == '\n' ? ' ' : *from;
	*to = '\0';
}

/* The head says what is missing from the window, in as many lines as that needs. */
static void top__head_fits_the_terminal(void **state)
{
	static const char said[] =
		"by cpu only 14.0 % of the scheduler's 100.0 s of CPU time and 50.0 % of the "
		"ledger's 200.0 s of waits are in it";
	OWNED(top_model) struct top_model *model = model_of_one();
	struct top_view view = as_started;
	char *text, *line, *rest, *head, *end;

	(void)state;
	model->coverage = (struct coverage){.cpu_ns = 14 * NS_PER_SEC,
					    .scheduler_ns = 100 * NS_PER_SEC,
					    .wait_ns = 100 * NS_PER_SEC,
					    .ledger_wait_ns = 200 * NS_PER_SEC,
					    .samples = 100000};
	for (view.columns = 64; view.columns < 200; view.columns += 7) {
		text = printed(&view, model);
		end = strstr(text, "    %CPU");
		assert_non_null(end);
		*end = '\0';
		head = strdup(text);
		for (line = strtok_r(head, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			assert_true(strlen(line) <= view.columns);
		free(head);
		unwrap(text);
		assert_non_null(strstr(text, said));
		free(text);
	}
}

/* What a process calls itself moves no cursor and changes no colour. */
static void top__names_cannot_speak_to_the_terminal(void **state)
{
	static const struct given evil[] = {
		{"p:a\033[31mb:1", 7,
		 "x\033]0;title\007\xc2\x9b"
		 "2J",
		 NULL, NULL, 500},
		{"p:c\x9b\r\n:1", 8, "\177y", "odd\033[1m", NULL, 500},
	};
	OWNED(top_model) struct top_model *model = NULL;
	struct top_view view = as_started;
	char *text;

	(void)state;
	view.shows_idle = true;
	assert_int_equal(top_model_new(false, &model), 0);
	add_window(model, evil, ARRAY_SIZE(evil), NS_PER_SEC);
	text = printed(&view, model);
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		assert_true(*at == '\n' || *at >= ' ');
		assert_int_not_equal(*at, 0x7f);
		assert_false(at[0] == 0xc2 && at[1] < 0xa0);
	}
	free(text);
}

static void top__broken_windows_are_refused(void **state)
{
	OWNED(top_model) struct top_model *model = NULL;

	(void)state;
	assert_int_equal(top_model_new(false, &model), 0);
	assert_int_equal(top_model_add(model, "what?", 5, true), -EBADMSG);
	assert_int_equal(top_model_add(model, "", 0, true), -ENODATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(top__screen_of_a_window),
		cmocka_unit_test(top__by_wait_and_by_leaf),
		cmocka_unit_test(top__windows_add_up),
		cmocka_unit_test(top__keys),
		cmocka_unit_test(top__filter_keeps_processes_or_only_functions),
		cmocka_unit_test(top__a_screen_has_its_size),
		cmocka_unit_test(top__head_fits_the_terminal),
		cmocka_unit_test(top__names_cannot_speak_to_the_terminal),
		cmocka_unit_test(top__broken_windows_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
