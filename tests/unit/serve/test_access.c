/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/exchange.h"

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/secret.h"

#define TOKEN "0123456789abcdef-token"

static void client__sees_by_who_it_is(void **state)
{
	static const struct {
		struct access_client client;
		enum access_view view;
	} cases[] = {
		{{.has_uid = true, .uid = 0}, ACCESS_ALL},
		{{.has_uid = true, .uid = 1000}, ACCESS_OWN},
		/* From another machine: nobody knows who it is. */
		{{.has_uid = false, .uid = 0}, ACCESS_NOTHING},
		{{.token = TOKEN}, ACCESS_ALL},
		{{.has_uid = true, .uid = 1000, .token = TOKEN}, ACCESS_ALL},
		{{.has_certificate = true}, ACCESS_ALL},
		/* A wrong token is refused whoever shows it. */
		{{.has_uid = true, .uid = 0, .token = "wrong"}, ACCESS_NOTHING},
		{{.has_uid = true, .uid = 1000, .token = ""}, ACCESS_NOTHING},
		{{.has_certificate = true, .token = "wrong"}, ACCESS_NOTHING},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (access_decide(&cases[i].client, TOKEN) != cases[i].view)
			fail_msg("case %zu", i);
	/* Where the server has none, any token is wrong. */
	assert_int_equal(access_decide(&cases[3].client, NULL), ACCESS_NOTHING);
	assert_int_equal(access_decide(&cases[0].client, NULL), ACCESS_ALL);
}

static void token__is_compared_whole(void **state)
{
	static const char *const wrong[] = {"",
					    "0",
					    "0123456789abcdef-toke",
					    "0123456789abcdef-tokenx",
					    "0123456789abcdef-toKen",
					    "1123456789abcdef-token"};
	char longer[CONFIG_TOKEN_MAX_BYTES + 20];

	(void)state;
	assert_true(access_token_is(TOKEN, TOKEN));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_false(access_token_is(wrong[i], TOKEN));
	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_false(access_token_is(longer, TOKEN));
}

/* A page of another site whose name resolves to this address sends its own name. */
static void host__is_an_address_or_a_configured_name(void **state)
{
	static const char *const name[] = {"node7.example"};
	static const char *const good[] = {"127.0.0.1",	    "127.0.0.1:4041",	  "[::1]:4041",
					   "[::1]",	    "localhost",	  "LOCALHOST:80",
					   "node7.example", "Node7.Example:4041", "10.0.0.7:4041"};
	static const char *const bad[] = {"",
					  "evil.example",
					  "evil.example:4041",
					  "127.0.0.1:",
					  "127.0.0.1:x",
					  "127.0.0.1.evil.example",
					  "[::1",
					  "::1",
					  "[evil.example]",
					  ":4041",
					  "localhost.evil.example",
					  "127.0.0.1:80@evil",
					  "1"};
	char longest[400];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (!access_host_is_ours(good[i], name, 1))
			fail_msg("%s", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (access_host_is_ours(bad[i], name, 1))
			fail_msg("%s", bad[i]);
	assert_false(access_host_is_ours(NULL, name, 1));
	assert_false(access_host_is_ours("node7.example", NULL, 0));
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_false(access_host_is_ours(longest, name, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(client__sees_by_who_it_is),
		cmocka_unit_test(token__is_compared_whole),
		cmocka_unit_test(host__is_an_address_or_a_configured_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
