/* SPDX-License-Identifier: BSD-2-Clause */
/* The child is a script of the shell, which writes down how it was called. */
#include "agent/server.h"

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "config/config.h"
#include "options/options.h"

#define LIMIT_NS (20 * NS_PER_SEC)

static char folder[] = "/tmp/server-XXXXXX", program[64], calls[64];
static struct config *config;
static struct options options;

static void write_program(const char *body)
{
	FILE *file = fopen(program, "w");

	assert_non_null(file);
	fprintf(file, "#!/bin/sh\necho \"$@\" >> %s\n%s\n", calls, body);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(program, 0755), 0);
	(void)unlink(calls);
}

static int setup(void **state)
{
	char why[CONFIG_WHY_BYTES];

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	assert_int_equal(config_new(&config), 0);
	assert_int_equal(config_set(config, "http.listen=127.0.0.1:4042", why), 0);
	options = (struct options){.config = config,
				   .output_kind = OPTIONS_OUTPUT_DIRECTORY,
				   .output = "/var/lib/p",
				   .live = "/run/p.sock"};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	config_free(config);
	while (waitpid(-1, NULL, 0) > 0) /* those that were killed */
		;
	return 0;
}

static struct server *opened(void)
{
	struct server *server = NULL;

	assert_int_equal(server_new(&options, program, &server), 0);
	assert_non_null(server);
	return server;
}

/* Waits until the child has been called so often.  Returns what it was called with. */
static char *wait_for_calls(unsigned int wanted)
{
	const uint64_t until_ns = mono_ns() + LIMIT_NS;

	for (;;) {
		char *text = NULL;
		unsigned int count = 0;

		if (!read_file(calls, 65536, &text, NULL))
			for (const char *at = text; (at = strchr(at, '\n')); at++)
				count++;
		if (count >= wanted)
			return text;
		free(text);
		if (mono_ns() > until_ns)
			fail_msg("%u calls", count);
		usleep(1000);
	}
}

/* Turns until it has been started so often at this time; the end of a child takes its time. */
static void turn_until(struct server *server, uint64_t now_ns, unsigned int wanted)
{
	const uint64_t until_ns = mono_ns() + LIMIT_NS;
	char *text = NULL;
	unsigned int count = 0;

	while (count < wanted && mono_ns() < until_ns) {
		server_turn(server, now_ns);
		free(text);
		text = NULL;
		count = 0;
		if (!read_file(calls, 65536, &text, NULL))
			for (const char *at = text; (at = strchr(at, '\n')); at++)
				count++;
		usleep(1000);
	}
	free(text);
	assert_int_equal(count, wanted);
}

/* Whether there is a child, also one that has ended and has not been reaped. */
static bool has_child(void)
{
	return !waitid(P_ALL, 0, &(siginfo_t){}, WEXITED | WNOHANG | WNOWAIT);
}

static void server__is_told_what_the_agent_was_told(void **state)
{
	char wanted[256];
	struct server *server;
	char *text;

	(void)state;
	write_program("exec sleep 60");
	assert_int_equal(unsetenv("STATE_DIRECTORY"), 0);
	server = opened();
	server_turn(server, 1);
	server_turn(server, 2);
	text = wait_for_calls(1);
	snprintf(wanted, sizeof(wanted),
		 "--with-parent=%d --settings-fd=3 --live=/run/p.sock --store=/var/lib/p\n",
		 getpid());
	assert_string_equal(text, wanted);
	free(text);
	server_free(server);
}

/* The last folder of the service manager's is the store. */
static void server__of_a_service_keeps_its_state_below_the_store(void **state)
{
	struct server *server;
	char *text;

	(void)state;
	write_program("exec sleep 60");
	assert_int_equal(setenv("STATE_DIRECTORY", "/var/lib/p", 1), 0);
	server = opened();
	assert_int_equal(unsetenv("STATE_DIRECTORY"), 0);
	server_turn(server, 1);
	text = wait_for_calls(1);
	assert_non_null(strstr(text, " --state=/var/lib/p/push\n"));
	free(text);
	server_free(server);
}

/* Also those of --set, and none of them in argv, which everybody may read. */
static void server__gets_settings_and_secrets_by_a_descriptor(void **state)
{
	char body[128], why[CONFIG_WHY_BYTES];
	struct server *server;
	char *text;

	(void)state;
	assert_int_equal(config_set(config, "push.a.b.header=X-Key: canary", why), 0);
	snprintf(body, sizeof(body), "cat /dev/fd/3 >> %s; exit 0", calls);
	write_program(body);
	server = opened();
	server_turn(server, 1);
	text = wait_for_calls(4);
	assert_string_equal(strchr(text, '\n'), "\nhttp.listen=127.0.0.1:4042\n"
						"push.a.b.header=X-Key: canary\n"
						"push.a.b.kinds=cpu,offcpu\n");
	free(text);
	server_free(server);
}

/* The end that a reload asks for is none that the next start waits for. */
static void server__begins_anew_with_another_configuration(void **state)
{
	OWNED(config) struct config *other = NULL, *none = NULL;
	char body[128], why[CONFIG_WHY_BYTES];
	struct server *server;
	uint64_t until_ns;
	char *text;

	(void)state;
	assert_int_equal(config_new(&none), 0);
	assert_int_equal(config_new(&other), 0);
	assert_int_equal(config_set(other, "http.listen=127.0.0.1:4043", why), 0);
	snprintf(body, sizeof(body), "cat /dev/fd/3 >> %s; exec sleep 60", calls);
	write_program(body);
	server = opened();
	server_turn(server, 1);
	free(wait_for_calls(2));
	server_follow(server, other, 1);
	turn_until(server, 1, 4);
	text = wait_for_calls(4);
	assert_non_null(strstr(text, "\nhttp.listen=127.0.0.1:4043\n"));
	free(text);
	server_follow(server, none, 1);
	until_ns = mono_ns() + LIMIT_NS;
	while (has_child() && mono_ns() < until_ns)
		server_turn(server, 1);
	server_turn(server, 2);
	assert_false(has_child());
	server_free(server);
}

static void server__that_does_not_begin_anew_is_killed(void **state)
{
	struct server *server;

	(void)state;
	write_program("trap '' TERM; echo >> /dev/null; while :; do sleep 0.1; done");
	server = opened();
	server_turn(server, 1);
	free(wait_for_calls(1));
	server_follow(server, config, 1);
	turn_until(server, 3 * NS_PER_SEC, 2);
	server_free(server);
}

static void server__that_ends_is_started_later_and_later(void **state)
{
	struct server *server;
	uint64_t now_ns = NS_PER_SEC;

	(void)state;
	write_program("exit 2");
	server = opened();
	turn_until(server, now_ns, 1);
	for (unsigned int i = 1; i < 4; i++) {
		/* It has ended and been reaped, and rests. */
		usleep(50000);
		server_turn(server, now_ns);
		now_ns += (NS_PER_SEC << (i - 1)) - 1;
		server_turn(server, now_ns);
		usleep(20000);
		turn_until(server, now_ns, i);
		now_ns += 1;
		turn_until(server, now_ns, i + 1);
	}
	server_free(server);
}

static void server__that_does_not_want_to_end_is_killed(void **state)
{
	struct server *server;

	(void)state;
	write_program("trap '' TERM; while :; do sleep 0.1; done");
	server = opened();
	server_turn(server, 1);
	free(wait_for_calls(1));
	server_free(server);
}

static void server__that_is_not_there_is_no_end(void **state)
{
	struct server *server = NULL;

	(void)state;
	assert_int_equal(server_new(&options, "/no/such/program", &server), 0);
	server_turn(server, 1);
	server_turn(server, 2);
	server_free(server);
}

static void server__is_only_where_it_is_wanted(void **state)
{
	struct server *server = NULL;
	struct config *empty;

	(void)state;
	write_program("exec sleep 60");
	options.no_serve = true;
	assert_int_equal(server_new(&options, program, &server), 0);
	assert_null(server);
	options.no_serve = false;
	options.output_kind = OPTIONS_OUTPUT_NONE;
	assert_int_equal(server_new(&options, program, &server), 0);
	assert_null(server);
	options.output_kind = OPTIONS_OUTPUT_DIRECTORY;
	assert_int_equal(config_new(&empty), 0);
	options.config = empty;
	assert_int_equal(server_new(&options, program, &server), 0);
	config_free(empty);
	server_turn(server, 1);
	assert_false(has_child());
	server_free(server);
	server_turn(NULL, 1);
	server_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(server__is_told_what_the_agent_was_told),
		TEST(server__of_a_service_keeps_its_state_below_the_store),
		TEST(server__gets_settings_and_secrets_by_a_descriptor),
		TEST(server__begins_anew_with_another_configuration),
		TEST(server__that_does_not_begin_anew_is_killed),
		TEST(server__that_ends_is_started_later_and_later),
		TEST(server__that_does_not_want_to_end_is_killed),
		TEST(server__that_is_not_there_is_no_end),
		TEST(server__is_only_where_it_is_wanted),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	snprintf(program, sizeof(program), "%s/serve", folder);
	snprintf(calls, sizeof(calls), "%s/calls", folder);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(program);
	(void)unlink(calls);
	(void)rmdir(folder);
	return failed;
}
