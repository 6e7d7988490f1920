/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: base/remote_url.c */
#include "base/remote_url.h"

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"

static void parse__tells_a_node_from_a_collector_and_from_a_profile(void **state)
{
	static const struct {
		const char *text, *plain;
		enum remote_protocol protocol;
	} good[] = {
		{"http://h", "http://h", REMOTE_NODE},
		{"http://h:4041/", "http://h:4041/", REMOTE_NODE},
		{"https://[::1]:4041", "https://[::1]:4041", REMOTE_NODE},
		{"pyprofd+https://h/p", "https://h/p", REMOTE_NODE},
		{"pyroscope+http://h", "http://h", REMOTE_PYROSCOPE},
		{"parca+https://h/p?node=x", "https://h/p?node=x", REMOTE_PARCA},
		{"http://h/p", "http://h/p", REMOTE_PROFILE},
		{"http://h/?a=b", "http://h/?a=b", REMOTE_PROFILE},
		{"http://h?a=b", "http://h?a=b", REMOTE_PROFILE},
		{"http://h//", "http://h//", REMOTE_PROFILE},
	};
	enum remote_protocol protocol;
	const char *plain;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(remote_url_parse(good[i].text, &protocol, &plain));
		assert_int_equal(protocol, good[i].protocol);
		assert_string_equal(plain, good[i].plain);
	}
}

static void parse__what_may_be_a_file_is_no_url(void **state)
{
	static const char *const bad[] = {"",	       "cpu.pb.gz",	"/var/lib/pyprofd",
					  "http:/h",   "http:",		"ftp://h",
					  "parca+",    "parca+ftp://h", "loki+http://h",
					  "./http://h", "HTTP://h"};
	enum remote_protocol protocol;
	const char *plain;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(remote_url_parse(bad[i], &protocol, &plain));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__tells_a_node_from_a_collector_and_from_a_profile),
		cmocka_unit_test(parse__what_may_be_a_file_is_no_url),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
