/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles and the output are fakes in this file that record what they are given. */
#include "windows/profiles.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pyprofd/wait.h>

#define MAX_SAMPLES 8
#define START_WALL_NS 1700000000000000000ULL
#define STACK ((uint32_t)PP_STOP_ROOT << PP_COUNT_STOP_SHIFT)

struct profile {
	struct profile_options options;
	int64_t value[MAX_SAMPLES][PROFILE_MAX_VALUES];
	size_t samples, comments, modules;
	char comment[160];
	uint64_t duration_ns;
};

struct output {
	char kinds[64]; /* in the order of their writing */
	int err;
};

static int profiles_left; /* of those that profile_new() made; a teardown wants none */

int profile_new(const struct profile_options *options, struct intern *strings,
		struct profile **ret_profile)
{
	(void)strings;
	*ret_profile = calloc(1, sizeof(**ret_profile));
	assert_non_null(*ret_profile);
	(*ret_profile)->options = *options;
	profiles_left++;
	return 0;
}

void profile_free(struct profile *profile)
{
	profiles_left -= profile != NULL;
	free(profile);
}

void profile_set_duration(struct profile *profile, uint64_t duration_ns)
{
	profile->duration_ns = duration_ns;
}

int profile_add_module(struct profile *profile, const struct module *module, uint32_t *ret_index)
{
	(void)module;
	*ret_index = (uint32_t)++profile->modules;
	return 0;
}

int profile_add(struct profile *profile, const struct profile_sample *sample)
{
	assert_true(profile->samples < MAX_SAMPLES);
	memcpy(profile->value[profile->samples++], sample->value, sizeof(sample->value));
	return 0;
}

int profile_add_record(struct profile *profile, const struct record *record)
{
	(void)record;
	profile->samples++;
	return 0;
}

int profile_add_comment(struct profile *profile, const char *comment)
{
	profile->comments++;
	snprintf(profile->comment, sizeof(profile->comment), "%s", comment);
	return 0;
}

int output_write(struct output *output, struct writer_window *window)
{
	assert_int_equal(window->start_wall_ns, START_WALL_NS);
	assert_true(window->is_last);
	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++) {
		const struct profile *profile = window->profile[kind];
		const size_t used = strlen(output->kinds);

		if (!profile)
			continue;
		assert_int_equal(window->duration_ns, profile->duration_ns);
		snprintf(output->kinds + used, sizeof(output->kinds) - used, "%s ",
			 profile->options.kind);
		profile_free(window->profile[kind]);
	}
	return output->err;
}

static void open_events(struct profiles *profiles, unsigned int events)
{
	const struct options options = {
		.events = events, .hz = 100, .output_kind = OPTIONS_OUTPUT_NONE};

	*profiles = (struct profiles){};
	assert_int_equal(profiles_open(profiles, &options, NULL, START_WALL_NS), 0);
	assert_true(profiles->is_open);
}

static int teardown(void **state)
{
	(void)state;
	return profiles_left;
}

#define ALL (PP_CAPTURE_CPU | PP_CAPTURE_OFFCPU | PP_CAPTURE_GIL)

/* ---- kinds ---- */

static void kinds__are_those_that_the_events_ask_for(void **state)
{
	static const struct {
		unsigned int events;
		bool has[PP_PROFILE_COUNT]; /* cpu, offcpu, wall, gil */
	} row[] = {
		{PP_CAPTURE_CPU, {true, false, false, false}},
		{PP_CAPTURE_OFFCPU, {false, true, false, false}},
		{PP_CAPTURE_GIL, {false, false, false, true}},
		{PP_CAPTURE_CPU | PP_CAPTURE_OFFCPU, {true, true, true, false}},
		{PP_CAPTURE_CPU | PP_CAPTURE_GIL, {true, false, false, true}},
		{PP_CAPTURE_OFFCPU | PP_CAPTURE_GIL, {false, true, false, true}},
		{ALL, {true, true, true, true}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct profiles profiles;

		open_events(&profiles, row[i].events);
		for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++)
			assert_int_equal(profiles.profile[kind] != NULL,
					 kind == PP_PROFILE_LEDGER
						 ? (row[i].events & ~PP_CAPTURE_CPU) != 0
						 : row[i].has[kind]);
		profiles_close(&profiles);
		assert_false(profiles.is_open);
	}
}

static void kinds__wakers_take_the_place_of_waits_in_one_file(void **state)
{
	struct options options = {.events = PP_CAPTURE_OFFCPU | PP_CAPTURE_WAKERS, .hz = 99};
	struct profiles profiles = {};

	(void)state;
	options.output_kind = OPTIONS_OUTPUT_DIRECTORY;
	assert_int_equal(profiles_open(&profiles, &options, NULL, START_WALL_NS), 0);
	assert_non_null(profiles.profile[PP_PROFILE_OFFCPU]);
	assert_string_equal(profiles.profile[PP_PROFILE_WAKER]->options.kind, "waker");
	assert_string_equal(profiles.profile[PP_PROFILE_WAKER]->options.value_type[0].type,
			    "off_cpu");
	profiles_close(&profiles);
	options.output_kind = OPTIONS_OUTPUT_PPROF;
	assert_int_equal(profiles_open(&profiles, &options, NULL, START_WALL_NS), 0);
	assert_null(profiles.profile[PP_PROFILE_OFFCPU]);
	assert_non_null(profiles.profile[PP_PROFILE_WAKER]);
	profiles_close(&profiles);
}

static void kinds__of_a_store_are_without_wall_beside_cpu(void **state)
{
	struct options options = {.events = PP_CAPTURE_CPU | PP_CAPTURE_OFFCPU,
				  .hz = 99,
				  .output_kind = OPTIONS_OUTPUT_DIRECTORY};
	struct profiles profiles = {};

	(void)state;
	assert_int_equal(profiles_open(&profiles, &options, NULL, START_WALL_NS), 0);
	assert_non_null(profiles.profile[PP_PROFILE_CPU]);
	assert_non_null(profiles.profile[PP_PROFILE_OFFCPU]);
	assert_null(profiles.profile[PP_PROFILE_WALL]);
	profiles_close(&profiles);
	/* A client of the live socket gets it all the same. */
	assert_int_equal(profiles_open_some(&profiles, &options, 1U << PP_PROFILE_WALL, NULL,
					    START_WALL_NS),
			 0);
	assert_non_null(profiles.profile[PP_PROFILE_WALL]);
	profiles_close(&profiles);
}

static void records__have_a_file_in_a_store_and_values_in_one_file(void **state)
{
	struct options options = {
		.events = PP_CAPTURE_ALLOC, .hz = 99, .output_kind = OPTIONS_OUTPUT_DIRECTORY};
	const struct record record = {.kind = PP_PROFILE_RESIDENT};
	const struct profile_options *alloc;
	struct profiles profiles = {};

	(void)state;
	assert_int_equal(profiles_open(&profiles, &options, NULL, START_WALL_NS), 0);
	assert_int_equal(profiles.profile[PP_PROFILE_RESIDENT]->options.value_count,
			 kind_value_count(PP_PROFILE_RESIDENT));
	assert_int_equal(profiles.profile[PP_PROFILE_ALLOC]->options.value_count,
			 kind_value_count(PP_PROFILE_ALLOC));
	assert_int_equal(profiles_add_record(&profiles, &record), 0);
	assert_int_equal(profiles.profile[PP_PROFILE_RESIDENT]->samples, 1);
	profiles_close(&profiles);
	options.output_kind = OPTIONS_OUTPUT_PPROF;
	assert_int_equal(profiles_open(&profiles, &options, NULL, START_WALL_NS), 0);
	assert_null(profiles.profile[PP_PROFILE_RESIDENT]);
	alloc = &profiles.profile[PP_PROFILE_ALLOC]->options;
	assert_int_equal(alloc->value_count, kind_value_count(PP_PROFILE_ALLOC) +
						     kind_value_count(PP_PROFILE_RESIDENT));
	assert_string_equal(alloc->value_type[kind_value_count(PP_PROFILE_ALLOC)].type, "resident");
	assert_string_equal(alloc->default_value_type, "alloc_space");
	profiles_close(&profiles);
	options.output_kind = OPTIONS_OUTPUT_FOLDED;
	assert_int_equal(profiles_open(&profiles, &options, NULL, START_WALL_NS), 0);
	assert_int_equal(profiles.profile[PP_PROFILE_ALLOC]->options.value_count,
			 kind_value_count(PP_PROFILE_ALLOC));
	profiles_close(&profiles);
}

static void kinds__have_the_types_that_collectors_know(void **state)
{
	static const struct {
		const char *kind, *preferred;
		struct profile_value_type type[PROFILE_MAX_VALUES];
		size_t count;
		int64_t period;
	} row[PP_PROFILE_WAKER] = {
		{"cpu", "cpu", {{"samples", "count"}, {"cpu", "nanoseconds"}}, 2, 10000000},
		{"offcpu",
		 "off_cpu",
		 {{"off_cpu", "nanoseconds"}, {"events", "count"}, {"effective", "count"}},
		 3,
		 1},
		{"wall", "wall", {{"wall", "nanoseconds"}}, 1, 1},
		{"gil",
		 "gil_wait",
		 {{"gil_wait", "nanoseconds"},
		  {"gil_blame", "nanoseconds"},
		  {"gil_held", "nanoseconds"}},
		 3,
		 1},
	};
	struct profiles profiles;

	(void)state;
	open_events(&profiles, ALL);
	for (unsigned int kind = 0; kind < PP_PROFILE_WAKER; kind++) {
		const struct profile_options *options = &profiles.profile[kind]->options;

		assert_string_equal(options->kind, row[kind].kind);
		assert_string_equal(options->default_value_type, row[kind].preferred);
		assert_string_equal(options->period_type.type, row[kind].preferred);
		assert_string_equal(options->period_type.unit, "nanoseconds");
		assert_int_equal(options->period, row[kind].period);
		assert_int_equal(options->start_wall_ns, START_WALL_NS);
		assert_int_equal(options->value_count, row[kind].count);
		for (size_t i = 0; i < row[kind].count; i++) {
			assert_string_equal(options->value_type[i].type, row[kind].type[i].type);
			assert_string_equal(options->value_type[i].unit, row[kind].type[i].unit);
		}
		assert_non_null(strstr(profiles.profile[kind]->comment, row[kind].kind));
	}
	profiles_close(&profiles);
}

static void kinds__cycles_are_no_nanoseconds(void **state)
{
	const struct options options = {.events = ALL, .hz = 100, .clock = OPTIONS_CLOCK_CYCLES};
	struct profiles profiles = {};
	const struct profile_options *cpu;

	(void)state;
	assert_int_equal(profiles_open(&profiles, &options, NULL, START_WALL_NS), 0);
	cpu = &profiles.profile[PP_PROFILE_CPU]->options;
	assert_string_equal(cpu->value_type[1].type, "cycles");
	assert_string_equal(cpu->value_type[1].unit, "count");
	assert_string_equal(cpu->default_value_type, "cycles");
	assert_string_equal(profiles.profile[PP_PROFILE_OFFCPU]->options.value_type[0].unit,
			    "nanoseconds");
	profiles_close(&profiles);
}

/* With what a kind needs it is there, with less it is not. */
static void kinds__each_is_there_when_all_that_it_needs_is_captured(void **state)
{
	(void)state;
	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++) {
		const uint32_t needs = kind_get((enum pp_profile)kind)->needs;

		for (uint32_t bit = 0; bit < 32; bit++) {
			const uint32_t captures = needs & ~(1U << bit);
			const struct options options = {.events = captures, .hz = 99};

			/* Of records, a part is enough. */
			assert_int_equal(profiles_kinds(&options) >> kind & 1,
					 kind_is_record((enum pp_profile)kind) ? captures != 0
									       : captures == needs);
		}
	}
}

/* ---- which counter goes where ---- */

/* What a counter of 3 and 50 adds to each profile; -1 first: nothing. */
struct expected {
	int64_t cpu[3], offcpu[3], wall[3], gil[2][3];
};

#define NOTHING {-1}

static void assert_values(const struct profile *profile, size_t at, const int64_t expected[3])
{
	if (expected[0] == -1) {
		assert_true(profile->samples <= at);
		return;
	}
	assert_true(profile->samples > at);
	for (size_t i = 0; i < profile->options.value_count; i++)
		assert_int_equal(profile->value[at][i], expected[i]);
}

static void add__counter_of_each_kind(void **state)
{
	static const struct {
		uint32_t kind, flags;
		struct expected expected;
	} row[] = {
		{PP_KIND_CPU, 0, {{3, 50}, NOTHING, {50}, {NOTHING, NOTHING}}},
		{PP_KIND_CPU, PP_COUNT_GIL_HELD, {{3, 50}, NOTHING, {50}, {{0, 0, 50}, NOTHING}}},
		{PP_KIND_WAIT,
		 PP_WAIT_SLEEP << PP_COUNT_WAIT_SHIFT,
		 {NOTHING, {50, 3}, {50}, {NOTHING, NOTHING}}},
		/* The flag means nothing for a wait. */
		{PP_KIND_WAIT,
		 PP_WAIT_LOCK << PP_COUNT_WAIT_SHIFT | PP_COUNT_GIL_HELD,
		 {NOTHING, {50, 3}, {50}, {NOTHING, NOTHING}}},
		{PP_KIND_WAIT,
		 PP_WAIT_GIL << PP_COUNT_WAIT_SHIFT,
		 {NOTHING, {50, 3}, {50}, {{50, 0, 0}, NOTHING}}},
		/* The holder's: it is no time of a thread of its own. */
		{PP_KIND_BLAME,
		 PP_WAIT_GIL << PP_COUNT_WAIT_SHIFT,
		 {NOTHING, NOTHING, NOTHING, {{0, 50, 0}, NOTHING}}},
		{PP_KIND_WAKE, 0, {NOTHING, NOTHING, NOTHING, {NOTHING, NOTHING}}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct pp_count_key key = {.kind = row[i].kind,
						 .flags = row[i].flags | STACK};
		const struct pp_count count = {.samples = 3, .weight = 50};
		/* Values of an earlier use of it. */
		struct profile_sample sample = {.value = {7, 7, 7}};
		struct profiles profiles;

		open_events(&profiles, ALL);
		assert_int_equal(profiles_add(&profiles, &key, &count, &sample), 0);
		assert_values(profiles.profile[PP_PROFILE_CPU], 0, row[i].expected.cpu);
		assert_values(profiles.profile[PP_PROFILE_OFFCPU], 0, row[i].expected.offcpu);
		assert_values(profiles.profile[PP_PROFILE_WALL], 0, row[i].expected.wall);
		assert_values(profiles.profile[PP_PROFILE_GIL], 0, row[i].expected.gil[0]);
		assert_values(profiles.profile[PP_PROFILE_GIL], 1, row[i].expected.gil[1]);
		profiles_close(&profiles);
	}
}

static void add__wake_is_one_of_kind_waker_only(void **state)
{
	const struct options options = {
		.events = ALL | PP_CAPTURE_WAKERS, .hz = 99, .output_kind = OPTIONS_OUTPUT_NONE};
	const struct pp_count_key key = {.kind = PP_KIND_WAKE,
					 .flags = PP_WAIT_GIL << PP_COUNT_WAIT_SHIFT |
						  PP_COUNT_GIL_HELD};
	const struct pp_count count = {.samples = 3, .weight = 50};
	struct profile_sample sample = {.value = {7, 7, 7}};
	struct profiles profiles = {};

	(void)state;
	assert_int_equal(profiles_open(&profiles, &options, NULL, START_WALL_NS), 0);
	assert_int_equal(profiles_add(&profiles, &key, &count, &sample), 0);
	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++)
		if (profiles.profile[kind])
			assert_int_equal(profiles.profile[kind]->samples, kind == PP_PROFILE_WAKER);
	assert_int_equal(profiles.profile[PP_PROFILE_WAKER]->value[0][0], 50);
	assert_int_equal(profiles.profile[PP_PROFILE_WAKER]->value[0][1], 3);
	profiles_close(&profiles);
}

static void add__to_what_is_not_asked_for_is_nothing(void **state)
{
	const struct pp_count_key key = {.kind = PP_KIND_WAIT,
					 .flags = PP_WAIT_GIL << PP_COUNT_WAIT_SHIFT};
	const struct pp_count count = {.samples = 3, .weight = 50};
	struct profile_sample sample = {};
	struct profiles profiles;

	(void)state;
	open_events(&profiles, PP_CAPTURE_GIL);
	assert_int_equal(profiles_add(&profiles, &key, &count, &sample), 0);
	assert_int_equal(profiles.profile[PP_PROFILE_GIL]->samples, 1);
	profiles_close(&profiles);
}

/* A wait that began in a window and has no time in it yet; one that has nothing at all. */
static void add__empty_counter_is_no_sample(void **state)
{
	const struct pp_count_key key = {.kind = PP_KIND_WAIT,
					 .flags = PP_WAIT_SLEEP << PP_COUNT_WAIT_SHIFT};
	const struct pp_count began = {.samples = 1}, none = {};
	struct profile_sample sample = {};
	struct profiles profiles;

	(void)state;
	open_events(&profiles, ALL);
	assert_int_equal(profiles_add(&profiles, &key, &none, &sample), 0);
	assert_int_equal(profiles.profile[PP_PROFILE_OFFCPU]->samples, 0);
	assert_int_equal(profiles_add(&profiles, &key, &began, &sample), 0);
	assert_int_equal(profiles.profile[PP_PROFILE_OFFCPU]->samples, 1);
	assert_int_equal(profiles.profile[PP_PROFILE_WALL]->samples, 0);
	profiles_close(&profiles);
}

/* ---- all of them ---- */

static void modules__have_the_same_index_in_each(void **state)
{
	const struct module module = {};
	struct profiles profiles;
	uint32_t index = 0;

	(void)state;
	open_events(&profiles, ALL);
	assert_int_equal(profiles_add_module(&profiles, &module, &index), 0);
	assert_int_equal(profiles_add_module(&profiles, &module, &index), 0);
	assert_int_equal(index, 2);
	for (unsigned int kind = 0; kind < PP_PROFILE_WAKER; kind++)
		assert_int_equal(profiles.profile[kind]->modules, 2);
	profiles_close(&profiles);
}

static void write__hands_over_all_kinds(void **state)
{
	struct writer_window window = {
		.start_wall_ns = START_WALL_NS, .duration_ns = 5, .is_last = true};
	struct output output = {.err = -EIO};
	struct profiles profiles;

	(void)state;
	open_events(&profiles, ALL);
	assert_int_equal(profiles_add_comment(&profiles, "a=1"), 0);
	for (unsigned int kind = 0; kind < PP_PROFILE_WAKER; kind++)
		assert_string_equal(profiles.profile[kind]->comment, "a=1");
	assert_int_equal(profiles_write(&profiles, &output, &window), -EIO);
	assert_string_equal(output.kinds, "cpu offcpu wall gil ledger ");
	assert_null(profiles_any(&profiles)); /* they belong to whom they were given */
	profiles_close(&profiles);
}

static void any__is_one_of_the_open_ones(void **state)
{
	struct profiles profiles = {};

	(void)state;
	assert_null(profiles_any(&profiles));
	open_events(&profiles, PP_CAPTURE_CPU);
	assert_ptr_equal(profiles_any(&profiles), profiles.profile[PP_PROFILE_CPU]);
	profiles_close(&profiles);
	open_events(&profiles, PP_CAPTURE_GIL);
	assert_ptr_equal(profiles_any(&profiles), profiles.profile[PP_PROFILE_GIL]);
	profiles_close(&profiles);
}

static void comment__names_the_host(void **state)
{
	struct profiles profiles;
	char host[64] = "";
	const char *named;

	(void)state;
	assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
	open_events(&profiles, PP_CAPTURE_CPU);
	named = strstr(profiles.profile[PP_PROFILE_CPU]->comment, " kind=cpu hz=100 host=");
	assert_non_null(named);
	assert_string_equal(named + strlen(" kind=cpu hz=100 host="), host);
	profiles_close(&profiles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds__are_those_that_the_events_ask_for),
		cmocka_unit_test(kinds__wakers_take_the_place_of_waits_in_one_file),
		cmocka_unit_test(kinds__of_a_store_are_without_wall_beside_cpu),
		cmocka_unit_test(records__have_a_file_in_a_store_and_values_in_one_file),
		cmocka_unit_test(kinds__have_the_types_that_collectors_know),
		cmocka_unit_test(kinds__each_is_there_when_all_that_it_needs_is_captured),
		cmocka_unit_test(kinds__cycles_are_no_nanoseconds),
		cmocka_unit_test(add__counter_of_each_kind),
		cmocka_unit_test(add__wake_is_one_of_kind_waker_only),
		cmocka_unit_test(add__to_what_is_not_asked_for_is_nothing),
		cmocka_unit_test(add__empty_counter_is_no_sample),
		cmocka_unit_test(any__is_one_of_the_open_ones),
		cmocka_unit_test(comment__names_the_host),
		cmocka_unit_test(modules__have_the_same_index_in_each),
		cmocka_unit_test(write__hands_over_all_kinds),
	};

	return cmocka_run_group_tests_name("agent/profiles", tests, NULL, teardown);
}
