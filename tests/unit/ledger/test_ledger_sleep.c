/* SPDX-License-Identifier: BSD-2-Clause */
/* Times of threads without a slot. */
#include "ledger/ledger.h"

#include <cmocka.h>

#include <string.h>

#include "base/clock.h"

static const struct pp_process_id id = {.tgid = 12, .generation = 3};

/* Waits for a lock since `since`; first seen then. */
static struct pp_thread waiting(uint32_t tid, uint64_t since_ns)
{
	return (struct pp_thread){.tid = tid,
				  .id = id,
				  .flags = PP_THREAD_MATCHES | PP_THREAD_WAITING,
				  .wait = PP_WAIT_LOCK,
				  .created_ns = since_ns,
				  .since_ns = since_ns};
}

static struct ledger_line *only_line(struct ledger *ledger)
{
	struct ledger_line *line;
	size_t count;

	assert_int_equal(ledger_end(ledger, &line, &count), 0);
	assert_int_equal(count, 1);
	return line;
}

static void add_sleep__lasts_beside_the_times_of_a_slot(void **state)
{
	OWNED(ledger) struct ledger *ledger = NULL;
	struct ledger_line *line;
	struct pp_thread thread = waiting(5, 1300);

	(void)state;
	assert_int_equal(ledger_new(&ledger), 0);
	/* 1000 to 2000: one sleeps all the time, the other one until it got its slot. */
	ledger_begin(ledger);
	assert_int_equal(ledger_add_thread(ledger, &thread, 2000), 0);
	assert_int_equal(ledger_add_sleep(ledger, id, PP_WAIT_SLEEP, 1000, true), 0);
	assert_int_equal(ledger_add_sleep(ledger, id, PP_WAIT_POLL, 300, false), 0);
	line = only_line(ledger);
	assert_int_equal(line->threads, 2);
	assert_int_equal(line->life_ns, 2000);
	assert_int_equal(line->total_ns[PP_LEDGER_SLEEP], 1000);
	assert_int_equal(line->total_ns[PP_LEDGER_NET], 300);
	assert_int_equal(line->total_ns[PP_LEDGER_LOCK], 700);
	/* 2000 to 3000: nobody's time comes twice, or is taken back. */
	ledger_begin(ledger);
	assert_int_equal(ledger_add_thread(ledger, &thread, 3000), 0);
	assert_int_equal(ledger_add_sleep(ledger, id, PP_WAIT_SLEEP, 1000, true), 0);
	line = only_line(ledger);
	assert_int_equal(line->threads, 2);
	assert_int_equal(line->life_ns, 2000);
	assert_int_equal(line->total_ns[PP_LEDGER_SLEEP], 1000);
	assert_int_equal(line->total_ns[PP_LEDGER_NET], 0);
	assert_int_equal(line->total_ns[PP_LEDGER_LOCK], 1000);
}

static void add_sleep__alone_makes_a_line(void **state)
{
	OWNED(ledger) struct ledger *ledger = NULL;
	const struct ledger_line *line;

	(void)state;
	assert_int_equal(ledger_new(&ledger), 0);
	ledger_begin(ledger);
	assert_int_equal(ledger_add_sleep(ledger, id, PP_WAIT_CHILD, 2 * NS_PER_SEC, true), 0);
	line = only_line(ledger);
	assert_int_equal(line->id.tgid, 12);
	assert_int_equal(line->threads, 1);
	assert_int_equal(line->life_ns, 2 * NS_PER_SEC);
	for (unsigned int i = 0; i < PP_LEDGER_COUNT; i++)
		assert_int_equal(line->total_ns[i], i == PP_LEDGER_CHILD ? 2 * NS_PER_SEC : 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add_sleep__lasts_beside_the_times_of_a_slot),
		cmocka_unit_test(add_sleep__alone_makes_a_line),
	};

	return cmocka_run_group_tests_name("agent/ledger_sleep", tests, NULL, NULL);
}
