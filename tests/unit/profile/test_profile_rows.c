/* SPDX-License-Identifier: BSD-2-Clause */
#include "fixture.h"

#include "profile/profile_data.h"

/* Of so many things that are told apart by hashes of 32 bits, five pairs or so have the same
 * hash. */
#define MANY 200000U

static void profile_add_location__many_that_differ_in_one_field_are_as_many(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	uint32_t location;

	(void)state;
	fixture_init(&f);
	for (uint32_t i = 0; i < MANY; i++) {
		struct frame frame = code_frame(&f, FRAME_NATIVE, "f", 0, i % 2 ? i : 0);

		frame.line = i % 2 ? 0 : i;
		assert_int_equal(profile_add_location(f.profile, &frame, &location), 0);
		assert_int_equal(location, i);
		assert_int_equal(profile_add_location(f.profile, &frame, &location), 0);
		assert_int_equal(location, i);
	}
}

static void profile_add_row__many_stacks_and_label_sets_are_as_many_rows(void **state)
{
	static const int64_t value[2] = {1, 10};
	CLEANUP(fixture_release) struct fixture f = {0};
	uint32_t row;

	(void)state;
	fixture_init(&f);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(
			profile_add_row(f.profile, i % 2 ? i : 0, i % 2 ? 0 : i, value, &row), 0);
		assert_int_equal(row, i);
	}
	assert_int_equal(profile_sample_count(f.profile), MANY);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(profile_row_values(f.profile, i)[0], 1);
		assert_int_equal(profile_row_values(f.profile, i)[1], 10);
	}
}

static void profile_add_row__values_are_summed_and_stay_at_the_greatest(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	uint32_t row;

	(void)state;
	fixture_init(&f);
	assert_int_equal(profile_add_row(f.profile, 3, 4, (int64_t[]){2, INT64_MAX - 5}, &row), 0);
	assert_int_equal(profile_add_row(f.profile, 3, 4, (int64_t[]){3, 5}, &row), 0);
	assert_int_equal(profile_row_values(f.profile, row)[0], 5);
	assert_true(profile_row_values(f.profile, row)[1] == INT64_MAX);
	assert_int_equal(profile_add_row(f.profile, 3, 4, (int64_t[]){3, 1}, &row), 0);
	assert_true(profile_row_values(f.profile, row)[1] == INT64_MAX);
}

/* Stacks of the ids of locations: each length, also one that is longer than what is reserved at a
 * time. */
static void profile_add_stack__is_the_ids_that_were_given(void **state)
{
	static uint32_t ids[200000];
	CLEANUP(fixture_release) struct fixture f = {0};
	static const size_t sizes[] = {0, 1, 2, 3, 100, 60000, 70000, 200000, 5};
	uint32_t stack, again;

	(void)state;
	fixture_init(&f);
	for (uint32_t i = 0; i < ARRAY_SIZE(ids); i++)
		ids[i] = i * 7;
	for (uint32_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		const struct stack *added;

		assert_int_equal(
			profile_add_stack(f.profile, sizes[i] ? ids : NULL, sizes[i], &stack), 0);
		assert_int_equal(stack, i);
		added = &f.profile->stacks.stack[stack];
		assert_int_equal(added->count, sizes[i]);
		assert_memory_equal(added->location, ids, sizes[i] * sizeof(ids[0]));
		assert_int_equal(
			profile_add_stack(f.profile, sizes[i] ? ids : NULL, sizes[i], &again), 0);
		assert_int_equal(again, stack);
	}
	/* Nothing was written over. */
	for (uint32_t i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_memory_equal(f.profile->stacks.stack[i].location, ids,
				    sizes[i] * sizeof(ids[0]));
}

static void profile_add_label_set__each_key_unit_and_value_tells_apart(void **state)
{
	static const struct profile_label labels[] = {
		{.key = "pid", .number = 1, .is_number = 1},
		{.key = "pid", .number = 1},
		{.key = "pid", .number = 2, .is_number = 1},
		{.key = "tid", .number = 1, .is_number = 1},
		{.key = "pid", .number = 1, .is_number = 1, .unit = "bytes"},
		{.key = "pid", .number = 1, .is_number = 1, .unit = "count"},
		{.key = "pid", .string = 7},
	};
	CLEANUP(fixture_release) struct fixture f = {0};
	uint32_t ids[ARRAY_SIZE(labels)], found;
	char unit[] = "bytes";
	struct profile_label label = labels[4];

	(void)state;
	fixture_init(&f);
	for (uint32_t i = 0; i < ARRAY_SIZE(labels); i++) {
		assert_int_equal(profile_add_label_set(f.profile, &labels[i], 1, &ids[i]), 0);
		assert_int_equal(ids[i], i);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(labels); i++) {
		assert_int_equal(profile_add_label_set(f.profile, &labels[i], 1, &found), 0);
		assert_int_equal(found, ids[i]);
	}
	/* Units are compared as text, too. */
	label.unit = unit;
	assert_int_equal(profile_add_label_set(f.profile, &label, 1, &found), 0);
	assert_int_equal(found, 4);
}

/* Six labels in all orders of a few: the set is the same, and each label is in it. */
static void profile_add_label_set__is_sorted_whatever_the_order(void **state)
{
	static const char *const keys[] = {"a", "b", "c", "d", "e", "f"};
	static const int order[][6] = {
		{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {3, 0, 5, 1, 4, 2}, {2, 5, 0, 4, 1, 3}};
	CLEANUP(fixture_release) struct fixture f = {0};

	(void)state;
	fixture_init(&f);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		struct profile_label label[6];
		uint32_t set;

		for (size_t k = 0; k < 6; k++)
			label[k] = (struct profile_label){.key = keys[order[i][k]],
							  .number = order[i][k] * 11,
							  .is_number = 1};
		assert_int_equal(profile_add_label_set(f.profile, label, 6, &set), 0);
		assert_int_equal(set, 0);
	}
	assert_int_equal(f.profile->label_set[0].count, 6);
	for (int i = 0; i < 6; i++)
		assert_int_equal(f.profile->label[f.profile->label_set[0].first + i].value, 11 * i);
}

/* Of each sample once, however many of its frames are in a module. */
static void profile_add__modules_have_the_weight_of_the_samples_that_contain_them(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame[4];
	uint32_t lib, other, unused;

	(void)state;
	fixture_init(&f);
	lib = add_module(&f, "/lib/a.so", "aa", 1, 2, 3);
	other = add_module(&f, "/lib/b.so", "bb", 1, 2, 3);
	unused = add_module(&f, "/lib/c.so", "cc", 1, 2, 3);
	frame[0] = code_frame(&f, FRAME_NATIVE, "f", lib, 1);
	frame[1] = code_frame(&f, FRAME_JIT, "g", other, 2);
	frame[2] = code_frame(&f, FRAME_NATIVE, "h", lib, 3);
	frame[3] = code_frame(&f, FRAME_NATIVE, "i", 77, 3); /* no such module */
	for (int i = 0; i < 2; i++) {
		add_sample(&f, frame, 4, 5, 0, NULL);
		add_sample(&f, frame, 1, 3, 0, NULL);
		assert_int_equal(f.profile->module[lib - 1].weight, 8 * (i + 1));
		assert_int_equal(f.profile->module[other - 1].weight, 5 * (i + 1));
		assert_int_equal(f.profile->module[unused - 1].weight, 0);
	}
	assert_int_equal(f.profile->module[lib - 1].kinds, 1U << FRAME_NATIVE);
	assert_int_equal(f.profile->module[other - 1].kinds, 1U << FRAME_JIT);
	assert_int_equal(f.profile->module[unused - 1].kinds, 0);
	/* Weighed again, from the rows: the same. */
	for (int i = 0; i < 2; i++) {
		profile_weigh_modules(f.profile);
		assert_int_equal(f.profile->module[lib - 1].weight, 16);
		assert_int_equal(f.profile->module[other - 1].weight, 10);
		assert_int_equal(f.profile->module[unused - 1].weight, 0);
	}
	/* The sample after that is one of its own. */
	add_sample(&f, frame, 1, 1, 0, NULL);
	assert_int_equal(f.profile->module[lib - 1].weight, 17);
}

static void profile_module__is_found_by_its_index_from_1_on(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	uint32_t first, second;

	(void)state;
	fixture_init(&f);
	assert_null(profile_module(f.profile, 0));
	assert_null(profile_module(f.profile, 1));
	first = add_module(&f, "/lib/a.so", "aa", 1, 2, 3);
	second = add_module(&f, "/lib/b.so", "aa", 1, 2, 3);
	assert_int_equal(profile_module(f.profile, first)->path, id(&f, "/lib/a.so"));
	assert_int_equal(profile_module(f.profile, second)->path, id(&f, "/lib/b.so"));
	assert_null(profile_module(f.profile, 0));
	assert_null(profile_module(f.profile, second + 1));
}

static void profile_add_comment__are_kept_in_order(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};

	(void)state;
	fixture_init(&f);
	assert_int_equal(profile_add_comment(f.profile, "one"), 0);
	assert_int_equal(profile_add_comment(f.profile, "two"), 0);
	assert_int_equal(profile_add_comment(f.profile, "one"), 0);
	assert_int_equal(f.profile->comment_count, 3);
	assert_int_equal(f.profile->comment[0], id(&f, "one"));
	assert_int_equal(f.profile->comment[1], id(&f, "two"));
	assert_int_equal(f.profile->comment[2], id(&f, "one"));
	profile_set_duration(f.profile, 77);
	assert_int_equal(f.profile->options.duration_ns, 77);
}

static void profile_add_module__many_that_differ_in_one_field_are_as_many(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};

	(void)state;
	fixture_init(&f);
	for (uint32_t turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < MANY; i++) {
			const struct module module = {.path = 1, .build_id = 2, .start = i};
			uint32_t index;

			assert_int_equal(profile_add_module(f.profile, &module, &index), 0);
			assert_int_equal(index, i + 1);
		}
	}
}

/* Two labels or three, so that arrays grow in the middle of a set. */
static void profile_add_label_set__many_are_as_many(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	uint32_t set;

	(void)state;
	fixture_init(&f);
	for (uint32_t turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < 2 * MANY; i++) {
			const struct profile_label label[3] = {
				{.key = "pid", .number = i, .is_number = 1},
				{.key = "tid", .string = i},
				{.key = "cpu", .number = i, .is_number = 1}};

			assert_int_equal(profile_add_label_set(f.profile, label, 2 + i % 2, &set),
					 0);
			assert_int_equal(set, i);
		}
	}
	for (uint32_t i = 0; i < 2 * MANY; i++) {
		const struct label_set *found = &f.profile->label_set[i];

		assert_int_equal(found->count, 2 + i % 2);
		for (uint32_t k = 0; k < found->count; k++)
			assert_int_equal(f.profile->label[found->first + k].value, i);
	}
}

/* The same set, whatever was on the stack before. */
static void profile_add_label_set__equal_ones_are_one(void **state)
{
	static const struct profile_label two[] = {{.key = "a", .number = 1, .is_number = 1},
						   {.key = "b", .number = -1, .is_number = 1}};
	CLEANUP(fixture_release) struct fixture f = {0};
	uint32_t ids[3], again;

	(void)state;
	fixture_init(&f);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(profile_add_label_set(f.profile, two, i, &ids[i]), 0);
		assert_int_equal(ids[i], i);
	}
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t k = 0; k < 3; k++) {
			assert_int_equal(profile_add_label_set(f.profile, two, i, &again), 0);
			assert_int_equal(again, ids[i]);
			assert_int_equal(profile_add_label_set(f.profile, two, k, &again), 0);
			assert_int_equal(again, ids[k]);
		}
	}
	assert_int_equal(f.profile->label_count, 3);
}

static void profile_add_label_set__holds_as_many_as_a_sample_has(void **state)
{
	static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	CLEANUP(fixture_release) struct fixture f = {0};
	struct profile_label label[PROFILE_MAX_LABELS];
	uint32_t set;

	(void)state;
	fixture_init(&f);
	/* Labels of one key keep their order. */
	for (uint32_t i = 0; i < PROFILE_MAX_LABELS; i++)
		label[i] = (struct profile_label){.key = keys[i % 8], .number = i, .is_number = 1};
	assert_int_equal(profile_add_label_set(f.profile, label, PROFILE_MAX_LABELS, &set), 0);
	assert_int_equal(f.profile->label_set[set].count, PROFILE_MAX_LABELS);
	assert_int_equal(f.profile->label_count, PROFILE_MAX_LABELS);
	for (uint32_t i = 0; i < PROFILE_MAX_LABELS; i++) {
		assert_int_equal(f.profile->label[i].key, i / 4);
		assert_int_equal(f.profile->label[i].value, i % 4 * 8 + i / 4);
	}
}

static void profile_find_label__by_its_name_in_its_set_alone(void **state)
{
	static const struct profile_label first[] = {{.key = "a", .number = 5, .is_number = 1},
						     {.key = "b", .string = 7}},
					  second[] = {{.key = "c", .number = 6, .is_number = 1},
						      {.key = "b", .string = 8}};
	CLEANUP(fixture_release) struct fixture f = {0};
	const struct stored_label *found;
	uint32_t sets[2];

	(void)state;
	fixture_init(&f);
	assert_int_equal(profile_add_label_set(f.profile, first, 2, &sets[0]), 0);
	assert_int_equal(profile_add_label_set(f.profile, second, 2, &sets[1]), 0);
	found = profile_find_label(f.profile, sets[0], "a");
	assert_non_null(found);
	assert_int_equal(found->value, 5);
	assert_int_equal(found->is_number, 1);
	found = profile_find_label(f.profile, sets[0], "b");
	assert_non_null(found);
	assert_int_equal(found->value, 7);
	assert_int_equal(found->is_number, 0);
	found = profile_find_label(f.profile, sets[1], "b");
	assert_non_null(found);
	assert_int_equal(found->value, 8);
	found = profile_find_label(f.profile, sets[1], "c");
	assert_non_null(found);
	assert_int_equal(found->value, 6);
	assert_null(profile_find_label(f.profile, sets[0], "c"));
	assert_null(profile_find_label(f.profile, sets[1], "a"));
	assert_null(profile_find_label(f.profile, sets[0], "d"));
}

/* As many modules and rows as their arrays have room for. */
static void profile_weigh_modules__of_full_arrays(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame;
	char path[16];

	(void)state;
	fixture_init(&f);
	while (f.profile->module_count < 64) {
		snprintf(path, sizeof(path), "/%u", f.profile->module_count);
		frame = code_frame(&f, FRAME_NATIVE, "f", add_module(&f, path, "", 1, 2, 3), 1);
		add_sample(&f, &frame, 1, 3, 0, NULL);
	}
	assert_int_equal(f.profile->module_capacity, 64);
	assert_int_equal(f.profile->row_count, 64);
	profile_weigh_modules(f.profile);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(f.profile->module[i].weight, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profile_add_location__many_that_differ_in_one_field_are_as_many),
		cmocka_unit_test(profile_add_row__many_stacks_and_label_sets_are_as_many_rows),
		cmocka_unit_test(profile_add_row__values_are_summed_and_stay_at_the_greatest),
		cmocka_unit_test(profile_add_stack__is_the_ids_that_were_given),
		cmocka_unit_test(profile_add_label_set__each_key_unit_and_value_tells_apart),
		cmocka_unit_test(profile_add_label_set__is_sorted_whatever_the_order),
		cmocka_unit_test(
			profile_add__modules_have_the_weight_of_the_samples_that_contain_them),
		cmocka_unit_test(profile_module__is_found_by_its_index_from_1_on),
		cmocka_unit_test(profile_add_comment__are_kept_in_order),
		cmocka_unit_test(profile_add_module__many_that_differ_in_one_field_are_as_many),
		cmocka_unit_test(profile_add_label_set__many_are_as_many),
		cmocka_unit_test(profile_add_label_set__equal_ones_are_one),
		cmocka_unit_test(profile_add_label_set__holds_as_many_as_a_sample_has),
		cmocka_unit_test(profile_find_label__by_its_name_in_its_set_alone),
		cmocka_unit_test(profile_weigh_modules__of_full_arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
