/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/url.h"

#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"

static void config_url_hide__leaves_scheme_host_port_and_path(void **state)
{
	static const struct {
		const char *url, *shown;
	} cases[] = {
		{"http://h:4318/p", "http://h:4318/p"},
		{"https://[::1]:1", "https://[::1]:1"},
		{"http://u:geheim@h:1/p", "http://***@h:1/p"},
		{"u:geheim@h:1", "***@h:1"},
		{"http://h/p?t=geheim", "http://h/p?***"},
		{"http://h/p#geheim", "http://h/p#***"},
		{"http://u:ge/heim@h?x", "http://***@h?***"},
		{"http://u:geh@eim@h", "http://***@h"},
		/* Either may be the secret. */
		{"http://u:geheim?x@h", "http://***"},
		{"http://h/?t=geheim@h", "http://***"},
		{"u:geheim@h?http://x", "***@h?***"},
		{"u:ge://heim@h", "***@h"},
		{"socks5h://u:geheim@h", "socks5h://***@h"},
		{"", ""},
	};
	char text[CONFIG_URL_SHOWN_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		config_url_hide(cases[i].url, text);
		assert_string_equal(text, cases[i].shown);
		assert_int_equal(config_url_has_secret(cases[i].url),
				 strcmp(cases[i].url, cases[i].shown) != 0);
	}
}

static void config_url_hide__cuts_what_is_too_long(void **state)
{
	char url[CONFIG_URL_SHOWN_BYTES * 2], text[CONFIG_URL_SHOWN_BYTES];

	(void)state;
	memset(url, 'a', sizeof(url));
	url[sizeof(url) - 1] = '\0';
	config_url_hide(url, text);
	assert_int_equal(strlen(text), sizeof(text) - 1);
}

static void config_url_fault__takes_ports_from_1_to_65535(void **state)
{
	static const char *const right[] = {"http://h", "http://h:1", "https://h:65535/p?q=a:b",
					    "http://[::1]", "http://[::1]:4318/p"};
	static const char *const wrong[] = {"http://h:0",
					    "http://h:65536",
					    "http://h:99999/p",
					    "http://h:",
					    "http://h:4a",
					    "http://[::1]:70000",
					    "http://h:18446744073709551617"};

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		assert_null(config_url_fault(right[i]));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_non_null(config_url_fault(wrong[i]));
}

static void config_url_proxy_fault__wants_a_scheme_and_a_host(void **state)
{
	static const char *const right[] = {"http://p:3128", "https://u:geheim@p:1", "socks5h://p",
					    "http://[::1]:3128/", "http://u:a@b@p:1"};
	static const char *const wrong[] = {"foo",	    "p:3128",	      "ftp://p:1",
					    "http://",	    "http://:3128",   "http://u@",
					    "http:///p",    "http://p:99999", "http://p q:1",
					    "socks6://p:1", "HTTP://p:1"};

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		assert_null(config_url_proxy_fault(right[i]));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_non_null(config_url_proxy_fault(wrong[i]));
}

static void config_url_own_path__is_a_protocols_at_the_end(void **state)
{
	static const char *const none[] = {"http://h", "http://h/", "http://h/push",
					   "http://h/api/profiles/writeraw/x",
					   "http://h?to=/api/profiles/writeraw"};

	(void)state;
	assert_string_equal(config_url_own_path("http://h:4040/push.v1.PusherService/Push"),
			    "/push.v1.PusherService/Push");
	assert_string_equal(config_url_own_path("http://h/x/v1development/profiles/?a=b"),
			    "/v1development/profiles");
	assert_string_equal(config_url_own_path("http://h/api/profiles/writeraw//"),
			    "/api/profiles/writeraw");
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_null(config_url_own_path(none[i]));
}

static void config_url_decode__control_codes_and_cut_off_signs(void **state)
{
	static const struct {
		const char *text;
		bool has_plus;
		const char *decoded; /* NULL: refused */
	} cases[] = {{"a%20b%2Fc", false, "a b/c"},
		     {"a+b", true, "a b"},
		     {"a+b", false, "a+b"},
		     {"%", false, "%"},
		     {"%4", false, "%4"},
		     {"%4g", false, "%4g"},
		     {"%41", false, "A"},
		     {"%0a", false, NULL},
		     {"\n", false, NULL},
		     {"%7f", false, NULL},
		     {"", false, ""}};
	char to[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const bool is_taken = config_url_decode(cases[i].text, strlen(cases[i].text),
							cases[i].has_plus, to);

		assert_int_equal(is_taken, cases[i].decoded != NULL);
		if (is_taken)
			assert_string_equal(to, cases[i].decoded);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_url_hide__leaves_scheme_host_port_and_path),
		cmocka_unit_test(config_url_hide__cuts_what_is_too_long),
		cmocka_unit_test(config_url_fault__takes_ports_from_1_to_65535),
		cmocka_unit_test(config_url_proxy_fault__wants_a_scheme_and_a_host),
		cmocka_unit_test(config_url_own_path__is_a_protocols_at_the_end),
		cmocka_unit_test(config_url_decode__control_codes_and_cut_off_signs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
