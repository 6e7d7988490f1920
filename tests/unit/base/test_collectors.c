/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/collectors.h"

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"

static void remote_url_parse__tells_a_node_from_a_collector_and_from_a_profile(void **state)
{
	static const struct {
		const char *text, *plain;
		enum collector_id collector;
	} good[] = {
		{"http://h", "http://h", COLLECTOR_NODE},
		{"http://h:4041/", "http://h:4041/", COLLECTOR_NODE},
		{"https://[::1]:4041", "https://[::1]:4041", COLLECTOR_NODE},
		{"pyprofd+https://h/p", "https://h/p", COLLECTOR_NODE},
		{"pyroscope+http://h", "http://h", COLLECTOR_PYROSCOPE},
		{"parca+https://h/p?node=x", "https://h/p?node=x", COLLECTOR_PARCA},
		{"http://h/p", "http://h/p", COLLECTOR_URL},
		{"http://h/?a=b", "http://h/?a=b", COLLECTOR_URL},
		{"http://h?a=b", "http://h?a=b", COLLECTOR_URL},
		{"http://h//", "http://h//", COLLECTOR_URL},
	};
	enum collector_id collector;
	const char *plain;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(remote_url_parse(good[i].text, &collector, &plain));
		assert_int_equal(collector, good[i].collector);
		assert_string_equal(plain, good[i].plain);
	}
}

static void remote_url_parse__what_may_be_a_file_is_no_url(void **state)
{
	static const char *const bad[] = {"",		"cpu.pb.gz",	 "/var/lib/pyprofd",
					  "http:/h",	"http:",	 "ftp://h",
					  "parca+",	"parca+ftp://h", "loki+http://h",
					  "./http://h", "HTTP://h",	 "url+http://h"};
	enum collector_id collector;
	const char *plain;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(remote_url_parse(bad[i], &collector, &plain));
}

static void collector_find_push__finds_what_has_a_path_for_pushes(void **state)
{
	enum collector_id id;

	(void)state;
	assert_true(collector_find_push("parca", &id));
	assert_int_equal(id, COLLECTOR_PARCA);
	assert_string_equal(collector_push_path(id), "/api/profiles/writeraw");
	assert_false(collector_find_push("pyprofd", &id));
	assert_false(collector_find_push("url", &id));
	assert_false(collector_find_push("", &id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			remote_url_parse__tells_a_node_from_a_collector_and_from_a_profile),
		cmocka_unit_test(remote_url_parse__what_may_be_a_file_is_no_url),
		cmocka_unit_test(collector_find_push__finds_what_has_a_path_for_pushes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
