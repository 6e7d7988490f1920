/* SPDX-License-Identifier: BSD-2-Clause */
/* The BPF object is a stand-in. */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <pyprofd/sample.h>

#include "attach/memory_side.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/log.h"
#include "options/options.h"
#include "profile/profile.h"
#include "windows/source.h"

extern const struct source memory_source;

static int open_err, opened;

int memory_side_open(const struct kernel_side *kernel, char *why, size_t why_size,
		     struct memory_side **ret_side)
{
	(void)kernel;
	if (open_err) {
		snprintf(why, why_size, "no such tracepoint");
		return open_err;
	}
	opened++;
	*ret_side = (struct memory_side *)&opened;
	return 0;
}

void memory_side_free(struct memory_side *side)
{
	opened -= side != NULL;
}

static void open__of_a_bounded_run_is_at_once(void **state)
{
	static const struct options options = {.duration_ns = NS_PER_SEC};
	static const struct services services = {.options = &options};
	void *memory = NULL;

	(void)state;
	open_err = 0;
	assert_int_equal(source_new(&memory_source, &services, &memory), 0);
	assert_int_equal(opened, 1);
	assert_false(memory_source.tick(memory, 0));
	assert_true(source_free(&memory_source, memory));
	assert_int_equal(opened, 0);
	open_err = -ENOENT;
	memory = NULL;
	assert_int_equal(source_new(&memory_source, &services, &memory), -ENOENT);
	assert_null(memory);
}

/* Such a run goes on without the memory. */
static void open__of_an_endless_run_fails_beside_it(void **state)
{
	static const struct options options = {};
	static const struct services services = {.options = &options};
	void *memory = NULL;

	(void)state;
	open_err = -ENOENT;
	assert_int_equal(source_new(&memory_source, &services, &memory), 0);
	assert_true(source_free(&memory_source, memory)); /* waits for the thread */
	assert_int_equal(opened, 0);
}

static void label__is_what_the_memory_is_for(void **state)
{
	static const char *const expected[] = {"heap", "file"};
	OWNED(intern) struct intern *strings = NULL;
	struct pp_count_key key = {.kind = PP_KIND_TOUCH, .detail = PP_MEMORY_HEAP};
	struct profile_sample sample = {};

	(void)state;
	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(memory_source.label(NULL, &key, strings, &sample), 0);
	key = (struct pp_count_key){.kind = PP_KIND_COPY, .detail = PP_MEMORY_FILE};
	assert_int_equal(memory_source.label(NULL, &key, strings, &sample), 0);
	key.detail = PP_MEMORY_COUNT;
	assert_int_equal(memory_source.label(NULL, &key, strings, &sample), 0);
	assert_int_equal(sample.label_count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(sample.label[i].key, "memory");
		assert_string_equal(intern_get(strings, sample.label[i].string, NULL), expected[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__of_a_bounded_run_is_at_once),
		cmocka_unit_test(open__of_an_endless_run_fails_beside_it),
		cmocka_unit_test(label__is_what_the_memory_is_for),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests_name("agent/memory_watch", tests, NULL, NULL);
}
