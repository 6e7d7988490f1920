/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "live/record.h"
#include "live/reply.h"

struct seen {
	unsigned int count;
	char last[32];
	uint64_t flags;
};

static int on_window(void *context, const char *file, size_t size, uint64_t flags)
{
	struct seen *seen = context;

	assert_true(size < sizeof(seen->last));
	memcpy(seen->last, file, size);
	seen->last[size] = '\0';
	seen->flags = flags;
	seen->count++;
	return strcmp(seen->last, "stop") ? 0 : -ECANCELED;
}

/* The same however the bytes are cut. */
static void feed__windows_of_any_pieces(void **state)
{
	static const char text[] =
		"window\t3\t1\nabcweather\t7\nwindow\t0\t0\nwindow\t5\t0\t9\na\nb\nc";

	(void)state;
	for (size_t piece = 1; piece <= sizeof(text); piece++) {
		CLEANUP(live_feed_release) struct live_feed feed = {};
		struct seen seen = {};
		const struct live_feed_handler handler = {.on_window = on_window, .context = &seen};

		for (size_t at = 0; at < sizeof(text) - 1; at += piece) {
			size_t size = sizeof(text) - 1 - at < piece ? sizeof(text) - 1 - at : piece;

			assert_int_equal(live_feed_take(&feed, text + at, size, &handler), 0);
		}
		assert_int_equal(seen.count, 3);
		assert_string_equal(seen.last, "a\nb\nc");
		assert_int_equal(seen.flags, 0);
	}
}

static void feed__what_is_wrong(void **state)
{
	static const struct {
		const char *text;
		int err;
	} cases[] = {
		{"end\t0\t0\t0\t0\n", -EBADMSG},
		{"window\tx\t0\n", -EBADMSG},
		{"window\t67108865\t0\n", -EBADMSG},
		{"window\t18446744073709551615\t0\n", -EBADMSG},
		{"error\t95\tit counts cycles\n", -EREMOTEIO},
		{"window\t4\t0\nstop", -ECANCELED},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(live_feed_release) struct live_feed feed = {};
		struct seen seen = {};
		const struct live_feed_handler handler = {.on_window = on_window, .context = &seen};

		assert_int_equal(live_feed_take(&feed, cases[i].text, strlen(cases[i].text),
						&handler),
				 cases[i].err);
		if (cases[i].err == -EREMOTEIO)
			assert_string_equal(feed.why, "it counts cycles");
	}
}

static void feed__a_line_without_an_end(void **state)
{
	CLEANUP(live_feed_release) struct live_feed feed = {};
	static char many[LIVE_LINE_BYTES + 1];
	struct seen seen = {};
	const struct live_feed_handler handler = {.on_window = on_window, .context = &seen};

	(void)state;
	memset(many, 'x', sizeof(many));
	assert_int_equal(live_feed_take(&feed, many, sizeof(many), &handler), -EBADMSG);
}

static void feed__from_a_socket_until_its_end(void **state)
{
	CLEANUP(live_feed_release) struct live_feed feed = {};
	struct seen seen = {};
	const struct live_feed_handler handler = {.on_window = on_window, .context = &seen};
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(live_feed_read(&feed, pair[0], &handler), 0);
	assert_int_equal(send(pair[1], "window\t2\t0\nokwin", 16, 0), 16);
	assert_int_equal(live_feed_read(&feed, pair[0], &handler), 0);
	assert_int_equal(seen.count, 1);
	close(pair[1]);
	assert_int_equal(live_feed_read(&feed, pair[0], &handler), -EPIPE);
	close(pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(feed__windows_of_any_pieces),
		cmocka_unit_test(feed__what_is_wrong),
		cmocka_unit_test(feed__a_line_without_an_end),
		cmocka_unit_test(feed__from_a_socket_until_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
