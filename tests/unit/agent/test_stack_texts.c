/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/timeline.h"

#include "stacks.h"

#define STACKS_MAX 32768U
#define TEXT_MAX_BYTES (16U << 20)

static const struct pp_process_id id = {.tgid = 7, .generation = 1};
static struct known_stack stacks[] = {
	{1, "ppn", {"inner", "outer", "main"}, .file = "/app/lib/mod.py", .line = 12},
	{3, "nn", {"read", "main"}, .module = 4},
	{5, "kk", {"io_schedule", "vfs_read"}, .file = NULL},
	{7, "kkk", {"tracepoint", "__schedule", "schedule"}, .file = NULL},
	{9, "p", {"script"}, .file = "plain.py", .line = 3},
	{11, "npn", {"memcpy", "caller", "main"}, .file = "m.py", .line = 1},
};
static struct stack_texts *texts;
static bool is_lost; /* user stacks have not come yet */
static bool is_raw;  /* ... or their code objects are not decoded */

const struct dict_stack *dictionary_find_stack(const struct dictionary *dictionary, uint64_t hash)
{
	(void)dictionary;
	return is_lost ? NULL : dict_user(hash);
}

const struct dict_kernel *dictionary_find_kernel(const struct dictionary *dictionary, uint64_t hash)
{
	(void)dictionary;
	return dict_kernel(hash);
}

bool dictionary_has_raw(const struct dictionary *dictionary, const struct dict_stack *stack)
{
	(void)dictionary;
	assert_non_null(stack);
	return is_raw;
}

/* ---- */

static void open_texts(unsigned int max_frames)
{
	const struct stack_texts_sources sources = {.strings = strings, .max_frames = max_frames};

	stack_texts_free(texts);
	assert_int_equal(stack_texts_new(&sources, &texts), 0);
}

static int setup(void **state)
{
	(void)state;
	known_stacks = stacks;
	known_stack_count = sizeof(stacks) / sizeof(stacks[0]);
	stacks_fail = NULL;
	is_lost = is_raw = is_resolved = false;
	noted_count = 0;
	assert_int_equal(intern_new(&strings), 0);
	open_texts(10);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	stack_texts_free(texts);
	texts = NULL;
	intern_free(strings);
	return symbolizers != 0;
}

static struct stack_text named(uint64_t user, uint64_t kernel)
{
	assert_int_equal(stack_texts_note(texts, id, user, kernel), 0);
	assert_int_equal(stack_texts_resolve(texts), 0);
	return stack_texts_find(texts, user, kernel);
}

static void assert_text(uint64_t user, uint64_t kernel, const char *function, const char *text)
{
	const struct stack_text found = named(user, kernel);

	assert_string_equal(intern_get(strings, found.function, NULL), function);
	assert_string_equal(intern_get(strings, found.text, NULL), text);
}

static void text__begins_at_the_leaf(void **state)
{
	(void)state;
	assert_text(1, 0, "inner", "inner (mod.py:12) < outer (mod.py:12) < main");
	assert_text(3, 0, "read", "read < main");
	assert_text(0, 5, "io_schedule", "io_schedule_[k] < vfs_read_[k]");
	assert_text(9, 0, "script", "script (plain.py:3)");
	assert_text(3, 5, "read", "io_schedule_[k] < vfs_read_[k] < read < main");
}

static void text__is_without_the_frames_of_the_switch(void **state)
{
	(void)state;
	assert_text(3, 7, "read", "read < main");
	/* There would be nothing else. */
	assert_text(0, 7, "tracepoint", "tracepoint_[k] < __schedule_[k] < schedule_[k]");
}

static void function__is_the_innermost_of_python_or_of_the_program(void **state)
{
	(void)state;
	assert_text(11, 5, "caller",
		    "io_schedule_[k] < vfs_read_[k] < memcpy < caller (m.py:1) < main");
	assert_true(stack_texts_find(texts, 11, 5).is_python);
	assert_text(3, 5, "read", "io_schedule_[k] < vfs_read_[k] < read < main");
	assert_false(stack_texts_find(texts, 3, 5).is_python);
}

static void text__shows_so_many_frames(void **state)
{
	(void)state;
	open_texts(2);
	assert_text(3, 0, "read", "read < main");
	assert_text(1, 0, "inner", "inner (mod.py:12) < outer (mod.py:12) < ... 1 more");
	assert_text(3, 5, "read", "io_schedule_[k] < vfs_read_[k] < ... 2 more");
}

static void stacks__are_named_once_and_together(void **state)
{
	(void)state;
	assert_int_equal(stack_texts_note(texts, id, 1, 0), 0);
	assert_int_equal(stack_texts_note(texts, id, 3, 5), 0);
	assert_int_equal(stack_texts_note(texts, id, 1, 0), 0);
	assert_int_equal(stack_texts_find(texts, 1, 0).text, 0);
	assert_int_equal(stack_texts_resolve(texts), 0);
	assert_int_equal(noted_count, 2);
	assert_true(is_noted(1) && is_noted(3));
	assert_int_not_equal(stack_texts_find(texts, 1, 0).text, 0);
	assert_int_not_equal(stack_texts_find(texts, 3, 5).text, 0);
	/* A key is both stacks. */
	assert_int_equal(stack_texts_find(texts, 3, 0).text, 0);
	is_resolved = false;
	(void)named(1, 0);
	assert_false(is_resolved);
}

static void stacks__that_do_not_exist_are_not_asked_for(void **state)
{
	(void)state;
	assert_int_equal(named(0, 0).text, 0);
	assert_false(is_resolved);
	assert_int_equal(stack_texts_resolve(texts), 0);
	assert_false(is_resolved);
}

static void lost__stack_is_named_when_it_comes(void **state)
{
	(void)state;
	is_lost = true;
	assert_text(3, 5, "", "");
	assert_text(0, 5, "io_schedule", "io_schedule_[k] < vfs_read_[k]"); /* it has no other */
	is_resolved = false;
	(void)named(0, 5);
	assert_false(is_resolved);
	assert_int_equal(stack_texts_note(texts, id, 3, 5), 0); /* twice before it is looked for */
	assert_text(3, 5, "", "");
	assert_int_equal(noted_count, 1);
	is_lost = false;
	assert_text(3, 5, "read", "io_schedule_[k] < vfs_read_[k] < read < main");
	is_resolved = false;
	(void)named(3, 5);
	assert_false(is_resolved);
}

static void unnamed__stack_is_named_again_until_all_its_code_is_decoded(void **state)
{
	(void)state;
	is_raw = true;
	stacks[4].name[0] = "[not decoded]";
	assert_text(9, 0, "[not decoded]", "[not decoded] (plain.py:3)");
	assert_text(9, 0, "[not decoded]", "[not decoded] (plain.py:3)");
	is_raw = false;
	stacks[4].name[0] = "script";
	assert_text(9, 0, "script", "script (plain.py:3)");
	is_resolved = false;
	(void)named(9, 0);
	assert_false(is_resolved);
}

static void texts__are_bounded_functions_stay(void **state)
{
	char *large = calloc(1, TEXT_MAX_BYTES + 1);
	uint32_t large_id;

	(void)state;
	assert_non_null(large);
	assert_int_equal(intern_bytes(strings, large, TEXT_MAX_BYTES / 4, &large_id), 0);
	assert_text(3, 0, "read", "read < main");
	assert_int_equal(intern_bytes(strings, large, TEXT_MAX_BYTES + 1, &large_id), 0);
	free(large);
	assert_text(1, 0, "inner", "");
	assert_true(stack_texts_find(texts, 1, 0).is_python);
}

static void tidy__forgets_all_stacks_when_there_are_many(void **state)
{
	(void)state;
	assert_text(3, 0, "read", "read < main");
	for (uint64_t i = 1; i < STACKS_MAX; i++)
		assert_int_equal(stack_texts_note(texts, id, 1000 + i, 0), 0);
	stack_texts_tidy(texts);
	assert_int_not_equal(stack_texts_find(texts, 3, 0).text, 0);
	assert_int_equal(stack_texts_note(texts, id, 1000 + STACKS_MAX, 0), 0);
	stack_texts_tidy(texts);
	assert_int_equal(stack_texts_find(texts, 3, 0).text, 0);
	is_resolved = false;
	assert_int_equal(stack_texts_resolve(texts), 0); /* nor are any to be named */
	assert_false(is_resolved);
	assert_text(3, 0, "read", "read < main");
}

static void resolve__stops_when_memory_ends(void **state)
{
	static const char *const step[] = {"begin", "note", "resolve", "stack"};

	(void)state;
	for (size_t i = 0; i < sizeof(step) / sizeof(step[0]); i++) {
		open_texts(10);
		assert_int_equal(stack_texts_note(texts, id, 1, 0), 0);
		stacks_fail = step[i];
		assert_int_equal(stack_texts_resolve(texts), -ENOMEM);
		assert_int_equal(symbolizers, 0);
		stacks_fail = NULL;
		is_resolved = false;
		assert_int_equal(stack_texts_resolve(texts), 0);
		assert_false(is_resolved);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(text__begins_at_the_leaf),
		TEST(text__is_without_the_frames_of_the_switch),
		TEST(function__is_the_innermost_of_python_or_of_the_program),
		TEST(text__shows_so_many_frames),
		TEST(stacks__are_named_once_and_together),
		TEST(stacks__that_do_not_exist_are_not_asked_for),
		TEST(lost__stack_is_named_when_it_comes),
		TEST(unnamed__stack_is_named_again_until_all_its_code_is_decoded),
		TEST(texts__are_bounded_functions_stay),
		TEST(tidy__forgets_all_stacks_when_there_are_many),
		TEST(resolve__stops_when_memory_ends),
	};

	return cmocka_run_group_tests_name("agent/stack_texts", tests, NULL, NULL);
}
