/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/series.h"

#include "config/relabel.h"
#include "push_fixture.h"

static struct push_division divide(struct fixture *f, const struct push_label_choice *choice,
				   struct push_known_series *known, uint64_t start_ms)
{
	struct push_division division = {0};

	assert_int_equal(push_divide(f->profile, choice, start_ms, known, &division), 0);
	return division;
}

static const char *value(struct fixture *f, const struct push_division *division, uint32_t series,
			 uint32_t index)
{
	assert_in_range(series, 0, division->count - 1);
	return intern_get(f->strings, division->series[series].value[index], NULL);
}

static void push_service_name__the_first_of_its_labels_counts(void **state)
{
	const char *const *const labels[] = {
		LABELS("comm=python3", "app=shop", "service_name=orders", "container=web"),
		LABELS("container=web", "comm=python3", "app=shop"),
		LABELS("comm=python3", "container=web"),
		LABELS("comm=python3", "thread=main"),
		LABELS("thread=main"),
		LABELS("app#7", "comm=python3"),
	};
	static const char *const names[] = {"orders", "shop", "web", "python3", "", "python3"};
	struct fixture f;

	(void)state;
	fixture_init(&f);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		add(&f, "work", 10, labels[i]);
		assert_string_equal(intern_get(f.strings, push_service_name(f.profile, (uint32_t)i),
					       NULL),
				    names[i]);
	}
	fixture_release(&f);
}

static void push_divide__one_series_a_service_and_chosen_labels(void **state)
{
	const struct push_label_choice choice = {.key = {"pod", "rank"}, .count = 2};
	struct push_known_series known = {0};
	struct push_division division;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	add(&f, "a", 10, LABELS("app=shop", "pod=p1", "tid#1"));
	add(&f, "b", 20, LABELS("app=shop", "pod=p1", "tid#2"));
	add(&f, "a", 100, LABELS("app=shop", "pod=p2", "tid#3"));
	add(&f, "a", 5, LABELS("app=train", "rank#3"));
	division = divide(&f, &choice, &known, START_MS);
	assert_int_equal(division.count, 3);
	assert_int_equal(division.folded_count, 0);
	/* The heaviest first. */
	assert_string_equal(value(&f, &division, 0, 1), "p2");
	assert_int_equal(division.series[0].weight, 100);
	assert_string_equal(value(&f, &division, 1, 0), "shop");
	assert_string_equal(value(&f, &division, 1, 1), "p1");
	assert_string_equal(value(&f, &division, 1, 2), "");
	assert_int_equal(division.series[1].row_count, 2);
	assert_int_equal(division.series[1].row[0], 0);
	assert_int_equal(division.series[1].row[1], 1);
	assert_string_equal(value(&f, &division, 2, 0), "train");
	assert_string_equal(value(&f, &division, 2, 2), "3");
	push_division_release(&division);
	fixture_release(&f);
}

/* Rules see all labels of a sample; what they make is sent where it was chosen. */
static void push_divide__rules_change_labels_before_they_are_chosen(void **state)
{
	struct push_label_choice choice = {.key = {"team"}, .count = 1};
	struct push_known_series known = {0};
	OWNED(relabel_rules) struct relabel_rules *rules = NULL;
	char why[RELABEL_WHY_BYTES];
	struct push_division division;
	struct fixture f;

	(void)state;
	assert_int_equal(relabel_rules_parse("source_labels=app regex=tmp action=drop\n"
					     "source_labels=unit regex=(.*).service "
					     "target_label=team\n"
					     "source_labels=service_name regex=shop.* "
					     "target_label=service_name replacement=shop\n"
					     "source_labels=tid target_label=unsent",
					     &rules, why),
			 0);
	choice.rules = rules;
	fixture_init(&f);
	add(&f, "a", 10, LABELS("app=shop1", "unit=web.service", "tid#1"));
	add(&f, "b", 20, LABELS("app=shop2", "unit=web.service", "tid#2"));
	add(&f, "c", 90, LABELS("app=tmp", "tid#3"));
	add(&f, "d", 5, LABELS("comm=cron"));
	division = divide(&f, &choice, &known, START_MS);
	assert_int_equal(division.count, 2);
	assert_string_equal(value(&f, &division, 0, 0), "shop");
	assert_string_equal(value(&f, &division, 0, 1), "web");
	assert_int_equal(division.series[0].row_count, 2);
	assert_string_equal(value(&f, &division, 1, 0), "cron");
	assert_string_equal(value(&f, &division, 1, 1), "");
	push_division_release(&division);
	fixture_release(&f);
}

static void add_services(struct fixture *f, unsigned int first, unsigned int count,
			 const char *user)
{
	char label[32];

	for (unsigned int i = first; i < first + count; i++) {
		snprintf(label, sizeof(label), "app=service%u", i);
		add(f, "work", 1000 - (int)(i - first), LABELS(label, user));
	}
}

static void push_divide__series_beyond_the_bound_are_one(void **state)
{
	const struct push_label_choice choice = {0};
	struct push_known_series known = {0};
	struct push_division division;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	add_services(&f, 0, PUSH_SERIES_MAX + 100, "user=root");
	division = divide(&f, &choice, &known, START_MS);
	assert_int_equal(division.count, PUSH_SERIES_MAX);
	assert_int_equal(division.folded_count, 101);
	assert_string_equal(value(&f, &division, 0, 0), "service0");
	assert_string_equal(value(&f, &division, PUSH_SERIES_MAX - 1, 0), PUSH_SERIES_OTHER);
	assert_int_equal(division.series[PUSH_SERIES_MAX - 1].row_count, 101);
	push_division_release(&division);
	fixture_release(&f);

	/* Light ones of the same hour have no room; in the next they have. */
	fixture_init(&f);
	add_services(&f, 5000, 2, "user=root");
	add(&f, "work", 10000000, LABELS("app=service0", "user=root"));
	division = divide(&f, &choice, &known, START_MS + 10000);
	assert_int_equal(division.count, 2);
	assert_string_equal(value(&f, &division, 1, 0), PUSH_SERIES_OTHER);
	push_division_release(&division);
	division = divide(&f, &choice, &known, START_MS + PUSH_SERIES_HOUR_MS);
	assert_int_equal(division.count, 3);
	assert_int_equal(division.folded_count, 0);
	push_division_release(&division);
	fixture_release(&f);
}

static void push_divide__many_programs_of_one_user_leave_the_others_theirs(void **state)
{
	const struct push_label_choice choice = {0};
	struct push_known_series known = {0};
	struct push_division division;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	add_services(&f, 0, PUSH_SERIES_MAX, "user=mallory");
	division = divide(&f, &choice, &known, START_MS);
	assert_int_equal(division.count, PUSH_SERIES_MAX / 2);
	push_division_release(&division);
	fixture_release(&f);

	/* A name that another has, too, is not lost to him by that. */
	fixture_init(&f);
	add_services(&f, 7000, 2, "user=mallory");
	add(&f, "work", 9, LABELS("app=victim", "user=mallory"));
	add(&f, "work", 9, LABELS("app=victim", "user=alice"));
	add(&f, "work", 1, LABELS("app=own", "user=alice"));
	add(&f, "work", 1, LABELS("app=cron", "user=root"));
	add(&f, "work", 10000000, LABELS("app=service0", "user=mallory"));
	division = divide(&f, &choice, &known, START_MS + 10000);
	assert_int_equal(division.count, 5);
	assert_int_equal(division.folded_count, 3);
	assert_string_equal(value(&f, &division, 1, 0), "victim");
	assert_string_equal(value(&f, &division, 1, 1), "alice");
	assert_int_equal(division.series[1].weight, 9);
	assert_string_equal(value(&f, &division, 2, 0), "own");
	assert_string_equal(value(&f, &division, 3, 0), "cron");
	push_division_release(&division);
	fixture_release(&f);
}

/* OTEL_SERVICE_NAME is everybody's own. */
static void push_divide__a_name_that_two_users_have_has_their_label(void **state)
{
	struct push_label_choice choice = {.key = {"pod", "user"}, .count = 1};
	struct push_known_series known = {0};
	struct push_division division;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	add(&f, "work", 50, LABELS("app=shop", "user=alice"));
	add(&f, "work", 40, LABELS("app=shop", "user=mallory"));
	add(&f, "work", 30, LABELS("app=shop", "pod=p1", "user=mallory"));
	add(&f, "a", 10, LABELS("app=shop", "user=alice", "tid#1"));
	add(&f, "work", 5, LABELS("app=shop")); /* it has ended before anybody could look */
	add(&f, "work", 4, LABELS("app=own", "user=mallory"));
	add(&f, "work", 3, LABELS("app=own"));
	division = divide(&f, &choice, &known, START_MS);
	assert_int_equal(division.count, 5);
	assert_int_equal(division.series[0].weight, 60);
	assert_string_equal(value(&f, &division, 0, 2), "alice");
	assert_string_equal(push_series_key(&choice, 2), "user");
	assert_null(push_series_key(&choice, 3));
	assert_int_equal(division.series[1].weight, 40);
	assert_string_equal(value(&f, &division, 1, 2), "mallory");
	/* The names of these are their own. */
	assert_string_equal(value(&f, &division, 2, 1), "p1");
	assert_string_equal(value(&f, &division, 2, 2), "");
	assert_string_equal(value(&f, &division, 3, 0), "own");
	assert_string_equal(value(&f, &division, 3, 2), "");
	assert_int_equal(division.series[3].weight, 7);
	assert_int_equal(division.series[3].row_count, 2);
	assert_string_equal(value(&f, &division, 4, 0), "shop");
	assert_string_equal(value(&f, &division, 4, 2), "");
	push_division_release(&division);
	/* A label that is chosen is not there twice. */
	choice.count = 2;
	division = divide(&f, &choice, &known, START_MS);
	assert_string_equal(value(&f, &division, 0, 2), "alice");
	assert_string_equal(value(&f, &division, 0, 3), "");
	push_division_release(&division);
	fixture_release(&f);
}

/* As it was seen: a window of short programs, then the service that all the time went to. */
static void push_divide__a_heavy_newcomer_takes_the_place_of_a_light_series(void **state)
{
	const struct push_label_choice choice = {0};
	struct push_known_series known = {0};
	struct push_division division;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	add_services(&f, 0, PUSH_SERIES_MAX, "user=root");
	division = divide(&f, &choice, &known, START_MS);
	push_division_release(&division);
	fixture_release(&f);
	fixture_init(&f);
	add(&f, "work", 90, LABELS("app=victim", "user=root"));
	division = divide(&f, &choice, &known, START_MS + 10000);
	assert_int_equal(division.folded_count, 0);
	assert_string_equal(value(&f, &division, 0, 0), "victim");
	push_division_release(&division);
	fixture_release(&f);
}

static void push_label_name__is_one_that_every_collector_takes(void **state)
{
	static const struct {
		const char *key, *name;
	} cases[] = {{"pod", "pod"},  {"k8s.pod-name", "k8s_pod_name"},
		     {"1st", "_1st"}, {"__name__", "_name__"},
		     {"", "_"},	      {"__", "_"},
		     {"_x", "_x"},    {"\xc3\xa4", "__"}};
	char name[PUSH_LABEL_NAME_MAX_BYTES + 1], longest[PUSH_LABEL_NAME_MAX_BYTES + 10];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		push_label_name(cases[i].key, name);
		assert_string_equal(name, cases[i].name);
	}
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	push_label_name(longest, name);
	assert_int_equal(strlen(name), PUSH_LABEL_NAME_MAX_BYTES);
	longest[0] = '1';
	push_label_name(longest, name);
	assert_int_equal(strlen(name), PUSH_LABEL_NAME_MAX_BYTES);
}

static void push_label_value_size__cuts_between_characters(void **state)
{
	char text[PUSH_LABEL_VALUE_MAX_BYTES + 8];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(push_label_value_size(text), PUSH_LABEL_VALUE_MAX_BYTES);
	memcpy(text + PUSH_LABEL_VALUE_MAX_BYTES - 1, "\xe2\x82\xac", 3);
	assert_int_equal(push_label_value_size(text), PUSH_LABEL_VALUE_MAX_BYTES - 1);
	text[PUSH_LABEL_VALUE_MAX_BYTES] = '\0';
	assert_int_equal(push_label_value_size(text), PUSH_LABEL_VALUE_MAX_BYTES);
	assert_int_equal(push_label_value_size(""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push_service_name__the_first_of_its_labels_counts),
		cmocka_unit_test(push_divide__one_series_a_service_and_chosen_labels),
		cmocka_unit_test(push_divide__rules_change_labels_before_they_are_chosen),
		cmocka_unit_test(push_divide__series_beyond_the_bound_are_one),
		cmocka_unit_test(push_divide__many_programs_of_one_user_leave_the_others_theirs),
		cmocka_unit_test(push_divide__a_name_that_two_users_have_has_their_label),
		cmocka_unit_test(push_divide__a_heavy_newcomer_takes_the_place_of_a_light_series),
		cmocka_unit_test(push_label_name__is_one_that_every_collector_takes),
		cmocka_unit_test(push_label_value_size__cuts_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
