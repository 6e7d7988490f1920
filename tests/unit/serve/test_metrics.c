/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent is a socket that already has its answer. */
#include "serve/metrics.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "live/client.h"

#define NOW_MS 1795273360165ULL

static const char *answered; /* NULL: nobody is there */
static struct extent extent; /* of the store */
static int connection;

int live_client_open(const char *path, const struct live_request *request, FILE *words,
		     struct live_client **ret_client)
{
	int pair[2];

	(void)words;
	assert_string_equal(path, "/run/p.sock");
	assert_int_equal(request->verb, LIVE_STATS);
	if (!answered)
		return -ECONNREFUSED;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(write(pair[1], answered, strlen(answered)), strlen(answered));
	close(pair[1]);
	connection = pair[0];
	*ret_client = (struct live_client *)&connection;
	return 0;
}

void live_client_close(struct live_client *client)
{
	if (client)
		close(connection);
}

int live_client_fd(const struct live_client *client)
{
	return *(const int *)client;
}

void push_write_metrics(struct push *push, FILE *out)
{
	assert_non_null(push);
	fputs("pushed 7\n", out);
}

static char *scrape(const char *answer)
{
	static struct counts counts = {.connections = 3, .sent_bytes = 12345};
	static const struct metrics_sources sources = {.live = "/run/p.sock",
						       .counts = &counts,
						       .push = (struct push *)&counts,
						       .store = &extent,
						       .work = 2,
						       .now_ms = NOW_MS};
	char *text;
	size_t size;

	answered = answer;
	counts.refused[COUNTS_REFUSED_TOKEN] = 7;
	counts.code[COUNTS_303] = 5;
	assert_int_equal(metrics_text(&sources, &text, &size), 0);
	assert_int_equal(strlen(text), size);
	return text;
}

static void text__is_the_agents_and_its_own(void **state)
{
	static const char wanted[] = "# HELP pyprofd_a_total What a is.\n"
				     "# TYPE pyprofd_a_total counter\n"
				     "pyprofd_a_total{kind=\"cpu\"} 12\npyprofd_a_total 13\n"
				     "# HELP b What b is.\n"
				     "# TYPE b gauge\nb{of=\"\"} 1.500000000\n"
				     "# HELP c What c is.\n# TYPE c gauge\n"
				     "c{gpu=\"0\",uuid=\"GPU-1\"} 7\n"
				     "# HELP pyprofd_up ";
	OWNED_MEM char *text = scrape("metric\t0\tpyprofd_a_total\tWhat a is.\n"
				      "value\t12\tkind=\"cpu\"\nvalue\t13\t\n"
				      "metric\t3\tb\tWhat b is.\n"
				      "value\t1500000000\tof=\"\"\nlater\t1\tthing\n"
				      "metric\t1\tc\tWhat c is.\n"
				      "value\t7\tgpu=\"0\",uuid=\"GPU-1\"\n"
				      "end\t0\t0\t0\t0\n");

	(void)state;
	assert_int_equal(strncmp(text, wanted, sizeof(wanted) - 1), 0);
	assert_non_null(strstr(text, "\npyprofd_up 1\n"));
	assert_non_null(strstr(text, "\npyprofd_serve_refused_total{reason=\"token\"} 7\n"));
	assert_non_null(strstr(text, "\npyprofd_serve_refused_total{reason=\"share\"} 0\n"));
	assert_non_null(strstr(text, "\npyprofd_serve_requests_total{code=\"303\"} 5\n"));
	assert_non_null(strstr(text, "\npyprofd_serve_requests_total{code=\"200\"} 0\n"));
	assert_non_null(strstr(text, "\npyprofd_serve_sent_bytes_total 12345\n"));
	assert_non_null(strstr(text, "\npyprofd_serve_connections 3\n"));
	assert_non_null(strstr(text, "\npyprofd_serve_work 2\n"));
}

static void store__has_its_size_and_ages(void **state)
{
	static const struct extent some = {.files = 3,
					   .from_ms = NOW_MS - 86400500,
					   .until_ms = NOW_MS - 7001,
					   .bytes = 123456789012ULL};
	/* The clock was set back. */
	static const struct extent ahead = {
		.files = 1, .from_ms = NOW_MS + 5, .until_ms = NOW_MS + 6};
	OWNED_MEM char *empty = scrape(NULL), *text = NULL, *early = NULL;

	(void)state;
	extent = some;
	text = scrape(NULL);
	extent = ahead;
	early = scrape(NULL);
	extent = (struct extent){0};
	assert_non_null(strstr(text, "\npyprofd_store_files 3\n"));
	assert_non_null(strstr(text, "\npyprofd_store_bytes 123456789012\n"));
	assert_non_null(strstr(text, "\npyprofd_store_oldest_seconds 86400.500000000\n"));
	assert_non_null(strstr(text, "\npyprofd_store_newest_seconds 7.001000000\n"));
	assert_non_null(strstr(empty, "\npyprofd_store_files 0\n"));
	assert_non_null(strstr(empty, "\npyprofd_store_oldest_seconds 0.000000000\n"));
	assert_non_null(strstr(early, "\npyprofd_store_oldest_seconds 0.000000000\n"));
	assert_non_null(strstr(early, "\npyprofd_store_newest_seconds 0.000000000\n"));
}

/* Of an answer that cannot be right nothing is shown. */
static void agent__that_is_gone_or_wrong_is_down(void **state)
{
	static const char *const bad[] = {
		NULL,
		"",
		"metric\t0\tpyprofd_a\tHelp\nvalue\t1\t\n", /* without an end */
		"value\t1\t\nend\t0\t0\t0\t0\n",
		"metric\t0\tpyprofd a\tHelp\nend\t0\t0\t0\t0\n",
		"metric\t0\ta\tone\\x0atwo\nend\t0\t0\t0\t0\n",
		"metric\t0\ta\tHelp\nvalue\t1\t} 1\\x0aevil\nend\t0\t0\t0\t0\n",
		"metric\t0\ta\tHelp\nvalue\t1\tx=\"a\"b\"\nend\t0\t0\t0\t0\n",
		"metric\t0\ta\tHelp\nvalue\t1\t=\"a\"\nend\t0\t0\t0\t0\n",
		"metric\t0\ta\tHelp\nvalue\t1\tx=\"a\",\nend\t0\t0\t0\t0\n",
		"metric\t0\ta\tHelp\nvalue\t1\tx=\"a\"y=\"b\"\nend\t0\t0\t0\t0\n",
		"metric\t0\ta\tHelp\nvalue\t1\tx=\"a\",y=b\nend\t0\t0\t0\t0\n",
		"metric\t0\ta\tHelp\nvalue\t1\tx=\"\nend\t0\t0\t0\t0\n",
		"error\t1\tonly root sees this\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		OWNED_MEM char *text = scrape(bad[i]);

		if (strncmp(text, "# HELP pyprofd_up ", 18) || !strstr(text, "\npyprofd_up 0\n"))
			fail_msg("case %zu: %.200s", i, text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text__is_the_agents_and_its_own),
		cmocka_unit_test(store__has_its_size_and_ages),
		cmocka_unit_test(agent__that_is_gone_or_wrong_is_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
