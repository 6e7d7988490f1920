/* SPDX-License-Identifier: BSD-2-Clause */
/* The server, clients that watch, and dumps are stand-ins. */
#include "agent/live.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/dump.h"
#include "agent/progress.h"
#include "base/clock.h"
#include "base/log.h"
#include "live/server.h"
#include "options/options.h"
#include "windows/source.h"
#include "windows/top.h"

struct live_server {
	bool is_open, wants_stats, is_waited_for;
	uid_t asks[8]; /* in the order in which they came; their number is 1 + who asks */
	size_t ask_count;
	uid_t trusted;
	char reply[16];
	int refused; /* why */
	char why[80];
	unsigned int served;
};
struct top {
	unsigned int served;
	bool is_open;
};
struct dump {
	unsigned int steps, refreshed;
	uid_t uid;
	bool is_open;
};

static struct live_server server;
static struct top top;
static struct dump dump[8];
static size_t dump_count; /* ever */
static uid_t last_reply;  /* who had it */
static int open_err, top_err, dump_err, step_result, take_err, metrics_err;
static uint64_t step_ns; /* how long a step takes */
static uint64_t now_ns;
static const struct services *given;

/* Time passes when a test says so. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = (time_t)(now_ns / NS_PER_SEC),
				  .tv_nsec = (long)(now_ns % NS_PER_SEC)};
	return 0;
}

int live_server_open(const char *path, struct live_server **ret_server)
{
	assert_string_equal(path, "/run/p.sock");
	if (open_err)
		return open_err;
	server = (struct live_server){.is_open = true, .is_waited_for = true};
	*ret_server = &server;
	return 0;
}

void live_server_trust(struct live_server *of, uid_t uid)
{
	of->trusted = uid;
}

void live_server_close(struct live_server *of)
{
	if (of)
		of->is_open = false;
}

int live_server_fd(const struct live_server *of)
{
	assert_ptr_equal(of, &server);
	return 9;
}

void live_server_facts(const struct live_server *of, struct live_server_facts *ret_facts)
{
	(void)of;
	*ret_facts = (struct live_server_facts){0};
}

void live_server_serve(struct live_server *of, uint64_t at_ns)
{
	assert_true(at_ns == now_ns);
	of->served++;
}

bool live_server_next(struct live_server *of, struct live_choice choice, struct live_job *ret_job)
{
	if (choice.verb == LIVE_STATS) {
		assert_true(choice.root_only);
		if (!of->wants_stats)
			return false;
		of->wants_stats = false;
		*ret_job = (struct live_job){.number = 3};
		return true;
	}
	assert_int_equal(choice.verb, LIVE_DUMP);
	for (size_t i = 0; i < of->ask_count; i++) {
		const uid_t uid = of->asks[i];

		if (!choice.may_take(choice.context, uid))
			continue;
		*ret_job = (struct live_job){.number = 1 + uid, .uid = uid, .who = uid};
		memmove(&of->asks[i], &of->asks[i + 1], (--of->ask_count - i) * sizeof(uid));
		return true;
	}
	return false;
}

bool live_server_waits(const struct live_server *of, uint64_t number)
{
	assert_true(number);
	return of->is_waited_for;
}

void live_server_reply(struct live_server *of, uint64_t number, char *text, size_t size,
		       uint64_t at_ns)
{
	assert_true(at_ns == now_ns);
	last_reply = (uid_t)number - 1;
	assert_int_equal(size, 5);
	memcpy(of->reply, text, 6);
	free(text);
}

void live_server_refuse(struct live_server *of, uint64_t number, int err, const char *why,
			uint64_t at_ns)
{
	assert_true(at_ns == now_ns);
	assert_true(number);
	of->refused = err;
	strncpy(of->why, why, sizeof(of->why) - 1);
}

int top_new(const struct options *options, struct live_server *of,
	    const struct process_table *processes, struct top **ret_top)
{
	(void)options, (void)processes;
	assert_ptr_equal(of, &server);
	if (top_err)
		return top_err;
	top = (struct top){.is_open = true};
	*ret_top = &top;
	return 0;
}

void top_free(struct top *of)
{
	if (of)
		of->is_open = false;
}

void top_serve(struct top *of, uint64_t at_ns)
{
	assert_true(at_ns == now_ns);
	of->served++;
}

int dump_new(const struct services *of, uid_t uid, const struct live_request *request,
	     struct dump **ret_dump)
{
	(void)request;
	assert_ptr_equal(of, given);
	if (dump_err)
		return dump_err;
	dump[dump_count] = (struct dump){.is_open = true, .uid = uid};
	*ret_dump = &dump[dump_count++];
	return 0;
}

void dump_free(struct dump *of)
{
	if (of)
		of->is_open = false;
}

int dump_step(struct dump *of, uint64_t budget_ns)
{
	assert_int_equal(budget_ns, 10 * NS_PER_MS);
	of->steps++;
	now_ns += step_ns;
	return step_result;
}

int dump_take(struct dump *of, char **ret_text, size_t *ret_size)
{
	(void)of;
	if (take_err)
		return take_err;
	*ret_text = strdup("stack");
	*ret_size = 5;
	return 0;
}

int metrics_tell(const struct services *of, char **ret_text, size_t *ret_size)
{
	assert_ptr_equal(of, given);
	if (metrics_err)
		return metrics_err;
	*ret_text = strdup("stats");
	*ret_size = 5;
	return 0;
}

void dump_refresh(struct dump *of)
{
	of->refreshed++;
}

/* ---- */

static struct live *live;
static const char *live_user = "1234";

static int open_socket(bool is_default)
{
	static struct options options;
	static const struct services services = {.options = &options};

	options = (struct options){.live = (char *)"/run/p.sock",
				   .live_is_default = is_default,
				   .live_user = live_user};
	given = &services;
	live = NULL;
	return live_open(&services, &live);
}

static int setup(void **state)
{
	(void)state;
	open_err = top_err = dump_err = take_err = metrics_err = 0;
	step_result = 1;
	step_ns = 0;
	memset(dump, 0, sizeof(dump));
	dump_count = 0;
	log_set_level(LOG_LEVEL_ERROR);
	return open_socket(true);
}

static int teardown(void **state)
{
	(void)state;
	live_free(live);
	for (size_t i = 0; i < dump_count; i++)
		if (dump[i].is_open)
			return 1;
	return server.is_open || top.is_open;
}

static void ask(uid_t uid)
{
	server.asks[server.ask_count++] = uid;
}

static void open__without_a_socket_is_no_error(void **state)
{
	const struct options none = {};
	const struct services services = {.options = &none};

	(void)state;
	live_free(live);
	live = NULL;
	assert_int_equal(live_open(&services, &live), 0);
	assert_null(live);
	live_serve(NULL);
	live_step(NULL);
	live_refresh(NULL);
	live_free(NULL);
	assert_null(live_top(NULL));
	assert_int_equal(live_timeout_ms(NULL, 55), 55);
}

static void open__fails_for_a_path_that_was_given(void **state)
{
	(void)state;
	live_free(live);
	open_err = -EADDRINUSE;
	assert_int_equal(open_socket(true), 0);
	assert_null(live);
	assert_int_equal(open_socket(false), -EADDRINUSE);
	assert_null(live);
	open_err = 0;
	top_err = -ENOMEM;
	assert_int_equal(open_socket(true), -ENOMEM);
	assert_null(live);
	assert_false(server.is_open);
}

static void serve__is_for_the_socket_and_who_watches(void **state)
{
	(void)state;
	live_serve(live);
	assert_int_equal(server.served, 1);
	assert_int_equal(top.served, 1);
	assert_ptr_equal(live_top(live), &top);
	assert_int_equal(live_fd(live), 9);
}

static void dump__is_made_in_steps_and_sent(void **state)
{
	(void)state;
	live_step(live);
	assert_int_equal(dump[0].steps, 0);
	assert_int_equal(live_timeout_ms(live, 500), 500); /* nothing to do */
	ask(0);
	live_step(live);
	assert_int_equal(dump[0].steps, 1);
	assert_int_equal(live_timeout_ms(live, 500), 11); /* the next one begins after 10 ms */
	assert_int_equal(live_timeout_ms(live, 7), 7);
	now_ns += 10 * NS_PER_MS - 1;
	assert_int_equal(live_timeout_ms(live, 500), 1);
	live_step(live);
	assert_int_equal(dump[0].steps, 1); /* other work comes first */
	now_ns++;
	assert_int_equal(live_timeout_ms(live, 500), 0);
	step_result = 0;
	live_step(live);
	assert_int_equal(dump[0].steps, 2);
	assert_string_equal(server.reply, "stack");
	assert_int_equal(server.refused, 0);
	assert_false(dump[0].is_open);
	assert_int_equal(live_timeout_ms(live, 500), 500);
}

static void dump__that_fails_says_so(void **state)
{
	(void)state;
	ask(0);
	step_result = -EIO;
	live_step(live);
	assert_int_equal(server.refused, -EIO);
	assert_string_equal(server.why, "the dump failed");
	assert_string_equal(server.reply, "");
	assert_false(dump[0].is_open);
	now_ns += 10 * NS_PER_MS;
	ask(0);
	step_result = 0;
	take_err = -ENOMEM;
	live_step(live);
	assert_int_equal(server.refused, -ENOMEM);
	assert_false(dump[0].is_open);
}

static void dump__without_waits_says_what_it_needs(void **state)
{
	(void)state;
	ask(0);
	dump_err = -ENOTSUP;
	live_step(live);
	assert_int_equal(server.refused, -ENOTSUP);
	assert_non_null(strstr(server.why, "--events offcpu"));
	assert_int_equal(live_timeout_ms(live, 500), 500);
	/* The next request is served. */
	dump_err = 0;
	ask(0);
	live_step(live);
	assert_int_equal(dump[0].steps, 1);
}

static void dump__ends_when_its_client_has_gone(void **state)
{
	(void)state;
	ask(0);
	live_step(live);
	now_ns += 10 * NS_PER_MS;
	server.is_waited_for = false;
	live_step(live);
	assert_int_equal(dump[0].steps, 1);
	assert_false(dump[0].is_open);
	assert_string_equal(server.reply, "");
	assert_int_equal(server.refused, 0);
}

/* Nine times as long as the last one took; others do not wait for that. */
static void users__rest_from_a_dump_each_and_root_does_not(void **state)
{
	(void)state;
	ask(1000);
	step_ns = 60 * NS_PER_MS;
	live_step(live);
	now_ns += 10 * NS_PER_MS;
	step_ns = 40 * NS_PER_MS;
	step_result = 0;
	live_step(live);
	assert_string_equal(server.reply, "stack");
	ask(1000);
	now_ns += 10 * NS_PER_MS;
	live_step(live);
	assert_int_equal(server.ask_count, 1);
	step_ns = 0;
	ask(1001);
	ask(0);
	for (int i = 0; i < 2; i++) {
		live_step(live);
		assert_int_equal(last_reply, i ? 1001 : 0);
		now_ns += 20 * NS_PER_MS;
	}
	assert_int_equal(server.ask_count, 1);
	now_ns += (900 - 10 - 40) * NS_PER_MS - 1;
	live_step(live);
	assert_int_equal(server.ask_count, 1);
	now_ns++;
	live_step(live);
	assert_int_equal(server.ask_count, 0);
	assert_int_equal(last_reply, 1000);
}

/* Another user's dump of one thread is done while that of thousands goes on. */
static void users__take_turns_and_root_interrupts(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		ask(1000);
	step_ns = 10 * NS_PER_MS;
	for (int i = 0; i < 5; i++) {
		live_step(live);
		now_ns += 10 * NS_PER_MS;
	}
	assert_int_equal(dump[0].steps, 5);
	assert_int_equal(dump_count, 1);
	ask(1001);
	live_step(live);
	now_ns += 20 * NS_PER_MS; /* two users: no more of a CPU than one takes */
	live_step(live);
	now_ns += 20 * NS_PER_MS;
	assert_int_equal(dump[1].steps, 2);
	ask(0);
	live_step(live);
	assert_int_equal(dump[2].steps, 1);
	assert_int_equal(dump[2].uid, 0);
	now_ns += 10 * NS_PER_MS;
	step_result = 0;
	live_step(live);
	assert_int_equal(last_reply, 0);
	now_ns += 10 * NS_PER_MS;
	live_step(live);
	assert_int_equal(last_reply, 1001);
	assert_int_equal(dump[0].steps, 5);
	now_ns += 20 * NS_PER_MS;
	live_step(live);
	assert_int_equal(last_reply, 1000);
	assert_int_equal(server.ask_count, 3);
	live_refresh(live);
	assert_int_equal(dump[0].refreshed, 0);
}

static void users__have_four_dumps_at_once(void **state)
{
	(void)state;
	for (uid_t uid = 1000; uid < 1005; uid++)
		ask(uid);
	ask(0);
	live_step(live);
	assert_int_equal(dump_count, 5);
	assert_int_equal(server.ask_count, 1);
	assert_int_equal(server.asks[0], 1004);
}

static void refresh__is_for_the_dump_that_goes_on(void **state)
{
	(void)state;
	live_refresh(live);
	assert_int_equal(dump[0].refreshed, 0);
	ask(0);
	live_step(live);
	live_refresh(live);
	assert_int_equal(dump[0].refreshed, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void open__trusts_the_configured_user(void **state)
{
	(void)state;
	assert_int_equal(server.trusted, 1234);
}

/* The unit names pyprofd-serve, which is not everywhere. */
static void open__user_that_is_missing_is_nobody(void **state)
{
	(void)state;
	live_free(live);
	live_user = "no-such-user-here";
	assert_int_equal(open_socket(true), 0);
	live_user = "1234";
	assert_int_equal(server.trusted, 0);
}

static void stats__are_answered_at_once(void **state)
{
	(void)state;
	server.wants_stats = true;
	live_serve(live);
	assert_string_equal(server.reply, "stats");
	metrics_err = -ENOMEM;
	server.wants_stats = true;
	live_serve(live);
	assert_int_equal(server.refused, -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(open__without_a_socket_is_no_error),
		TEST(open__fails_for_a_path_that_was_given),
		TEST(serve__is_for_the_socket_and_who_watches),
		TEST(dump__is_made_in_steps_and_sent),
		TEST(dump__that_fails_says_so),
		TEST(dump__without_waits_says_what_it_needs),
		TEST(dump__ends_when_its_client_has_gone),
		TEST(users__rest_from_a_dump_each_and_root_does_not),
		TEST(users__take_turns_and_root_interrupts),
		TEST(users__have_four_dumps_at_once),
		TEST(refresh__is_for_the_dump_that_goes_on),
		TEST(open__trusts_the_configured_user),
		TEST(open__user_that_is_missing_is_nobody),
		TEST(stats__are_answered_at_once),
	};

	return cmocka_run_group_tests_name("agent/live", tests, NULL, NULL);
}
