/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles and clients are stand-ins. */
#include "windows/record_sink.h"

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "profile/record.h"
#include "windows/profiles.h"
#include "windows/source.h"
#include "windows/top.h"

static struct pp_process_id written, sent; /* whose row was last */
static struct intern *strings;

int profiles_add_record(struct profiles *profiles, const struct record *record)
{
	assert_ptr_equal(profiles->strings, strings);
	written = record->id;
	return 0;
}

struct intern *top_strings(const struct top *top)
{
	(void)top;
	return strings;
}

void top_add_record(struct top *top, const struct record *record)
{
	(void)top;
	sent = record->id;
}

static void put__goes_to_profiles_or_to_clients(void **state)
{
	const struct services services = {0};
	struct profiles profiles = {0};
	struct record_sink sink;
	struct record record;

	(void)state;
	assert_int_equal(intern_new(&strings), 0);
	profiles.strings = strings;
	assert_int_equal(record_begin(&record, strings, PP_PROFILE_GPU,
				      (struct pp_process_id){7, 1}, "a"),
			 0);
	sink = record_sink_profiles(&services, &profiles);
	assert_int_equal(record_put(&sink, &record), 0);
	assert_int_equal(written.tgid, 7);
	assert_int_equal(sent.tgid, 0);
	sink = record_sink_clients(&services);
	assert_int_equal(record_put(&sink, &record), 0);
	assert_int_equal(sent.tgid, 7);
	sink = record_sink_profiles(&services, &profiles);
	sink.is_other = true;
	assert_int_equal(record_put(&sink, &record), 0);
	assert_int_equal(written.tgid, 0);
	intern_free(strings);
}

static void turns__users_have_them_by_size(void **state)
{
	struct record_turn turn[] = {
		{.user = 1, .pid = 1, .size = 50}, {.user = 1, .pid = 2, .size = 60},
		{.user = 1, .pid = 3, .size = 70}, {.user = 2, .pid = 4, .size = 5},
		{.user = 3, .pid = 5, .size = 6},  {.user = 3, .pid = 6, .size = 6}};
	static const uint32_t wanted[] = {3, 5, 4, 2, 6, 1};

	(void)state;
	record_take_turns(turn, ARRAY_SIZE(turn));
	for (size_t i = 0; i < ARRAY_SIZE(turn); i++)
		assert_int_equal(turn[i].pid, wanted[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put__goes_to_profiles_or_to_clients),
		cmocka_unit_test(turns__users_have_them_by_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
