/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/budget.bpf.h: the bound on the cost of walks at switches, and what is counted beyond
 * it. */
#include "switch.h"

/* ---- the budget ---- */

#define RANDOM_WAITS 60000U
#define RANDOM_PLACES 200U
#define LONG_PLACE 7U /* its waits are 20 times as long */
#define SEEDS 36U

struct outcome {
	uint64_t truth_ns, walks, walk_ns, long_truth_ns, long_waits;
	uint64_t counted_ns, events, long_counted_ns, long_events;
	double variance; /* of counted_ns */
};

/* A stack that is new for the thread; ns of a wait there.  Each copy of user memory costs 10 us, so
 * that a walk costs as much or more: 10,000 a second are over 2 % of a CPU ten times.  No wait is
 * shorter than its own walk, which would make it longer. */
static void wait_at_random(struct outcome *outcome, uint32_t function)
{
	uint64_t length_us = 40 + bpf_get_prandom_u32() % 60, left_ns, length_ns;
	struct pp_thread *t = slot_of(&one);

	length_us *= function == LONG_PLACE ? 20 : 1;
	actor_stands(&one, function);
	one.task.__state = INTERRUPTIBLE;
	left_ns = host->now_ns;
	run_switch(false, &one, NULL);
	if (!(t->flags & PP_THREAD_SKIPPED)) {
		outcome->walks++;
		outcome->walk_ns += t->since_ns - left_ns;
	}
	left_ns = t->since_ns;
	host_drop_records();
	host->now_ns = left_ns + length_us * US;
	run_switch(false, NULL, &one);
	length_ns = t->since_ns - left_ns;
	outcome->truth_ns += length_ns;
	if (function == LONG_PLACE) {
		outcome->long_truth_ns += length_ns;
		outcome->long_waits++;
	}
	/* A wait of length d that stands for 2^s is missed or overstated: d^2 (2^s - 1) in the
	 * mean. */
	outcome->variance += (double)length_ns * (double)length_ns *
			     (double)((1U << t->weight_shift) - 1);
	host->now_ns += 10 * US;
}

static uint64_t stack_of_function(uint32_t function)
{
	uint64_t hash;

	actor_init(&two, 70, 72);
	actor_stands(&two, function);
	switch_in(&two, 0);
	switch_out(&two, 1);
	hash = wait_site_of(&two)->user_stack;
	switch_in(&two, 2);
	dies(&two, 3);
	assert_int_not_equal(hash, 0);
	return hash;
}

/* Each wait at another site than the three before it: none is known. */
static struct outcome waits_at_random(uint64_t seed, bool is_scaled)
{
	struct outcome outcome = {};
	uint64_t long_stack;

	host->random = seed;
	host->config.incomplete_tokens = 0;
	for (uint32_t i = 1; i <= RANDOM_PLACES; i++)
		*library_rule(i) = rule_sp(16);
	long_stack = stack_of_function(LONG_PLACE);
	switch_in(&one, 10);
	host->ns_a_copy = 10 * US;
	for (uint32_t i = 0; i < RANDOM_WAITS; i++)
		wait_at_random(&outcome, 1 + i % RANDOM_PLACES);
	host->ns_a_copy = 0;
	if (is_scaled)
		ledger_ns = outcome.truth_ns;
	window_close(host->now_ns - START_NS);
	outcome.counted_ns = waited(71, PP_WAIT_SLEEP).weight;
	outcome.events = waited(71, PP_WAIT_SLEEP).samples;
	for (size_t i = 0; i < harvested.count; i++) {
		if (harvested.entry[i].key.user_stack != long_stack ||
		    harvested.entry[i].key.tid != 71)
			continue;
		outcome.long_counted_ns += harvested.entry[i].count.weight;
		outcome.long_events += harvested.entry[i].count.samples;
	}
	return outcome;
}

static void budget__sums_beyond_it_stay_true(void **state)
{
	const struct outcome outcome = waits_at_random(20240229, false);
	const double truth_ns = (double)outcome.truth_ns;
	const double error = (double)outcome.counted_ns - truth_ns;

	(void)state;
	assert_true(outcome.variance > 0);
	assert_true(error * error < 25 * outcome.variance);
	/* The test is sharp: 5 sigma are less than a third of the sum. */
	assert_true(25 * outcome.variance < truth_ns / 3 * truth_ns / 3);
	/* The budget, the credit of the start, and the debt that is allowed. */
	assert_true(outcome.walk_ns <
		    (host->now_ns - START_NS) / 150 + 2 * (int64_t)PP_BUDGET_CREDIT_NS);
	assert_true(outcome.walks > 1000);
	assert_true(host->losses[PP_LOSS_WAITS_WEIGHTED] > outcome.walks / 2);
	/* The ledger is exact all the same; what a look took is in it. */
	assert_in_range(slot_of(&one)->total_ns[PP_LEDGER_SLEEP], outcome.truth_ns,
			outcome.truth_ns + outcome.walk_ns);
}

static void assert_near(double got, double truth, double bound, const char *what)
{
	if (got < truth * (1 - bound) || got > truth * (1 + bound))
		fail_msg("%s: %.0f, not within %.1f %% of %.0f", what, got, bound * 100, truth);
}

/* Over many seeds the error goes away: 2 % of all, 10 % of one stack among 200, are five sigma or
 * more. Without the weight the sums are below a half. */
static void budget__sums_are_unbiased(void **state)
{
	double truth_ns = 0, counted_ns = 0, events = 0, waits = 0, walks = 0;
	double long_truth_ns = 0, long_counted_ns = 0, long_events = 0, long_waits = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		const struct outcome outcome = waits_at_random(seed * 0x9e3779b97f4a7c15, false);

		truth_ns += (double)outcome.truth_ns;
		counted_ns += (double)outcome.counted_ns;
		events += (double)outcome.events;
		waits += RANDOM_WAITS;
		walks += (double)outcome.walks;
		long_truth_ns += (double)outcome.long_truth_ns;
		long_counted_ns += (double)outcome.long_counted_ns;
		long_events += (double)outcome.long_events;
		long_waits += (double)outcome.long_waits;
		switch_teardown(state);
		switch_setup(state);
	}
	assert_true(walks < waits / 4);
	assert_near(counted_ns, truth_ns, 0.02, "ns");
	assert_near(events, waits, 0.02, "events");
	assert_near(long_counted_ns, long_truth_ns, 0.10, "ns of one stack");
	assert_near(long_events, long_waits, 0.10, "events of one stack");
}

/* What is left out is in the ledger: the sum is exact, and no wait shows more than there was. */
static void budget__sums_beyond_it_are_the_ledgers(void **state)
{
	const struct outcome outcome = waits_at_random(20240229, true);
	uint64_t effective = 0;

	(void)state;
	assert_in_range(outcome.counted_ns, outcome.truth_ns - RANDOM_PLACES,
			outcome.truth_ns + RANDOM_PLACES);
	for (size_t i = 0; i < harvested.count; i++)
		effective += harvested.entry[i].count.effective;
	assert_in_range(effective, outcome.walks / 8, outcome.walks);
}

static void budget__is_not_touched_at_known_sites(void **state)
{
	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	host->switch_state.budget =
		(struct budget){.started_ns = host->now_ns, .credit_ns = -1, .shift = 14};
	sites_rest(&one);
	for (uint64_t i = 1; i < 30; i++) {
		switch_in(&one, 2 * i * MS);
		switch_out(&one, (2 * i + 1) * MS);
	}
	window_close(60 * MS);
	assert_waited(&one, PP_WAIT_SLEEP, 30, 30 * MS);
	assert_int_equal(host->switch_state.budget.credit_ns, -1);
}

/* A walk that cannot be paid is put off; the wait is known all the same. */
static void budget__that_pays_no_new_walk_of_a_known_site_leaves_no_wait_out(void **state)
{
	const uint64_t count = 320;

	(void)state;
	switch_in(&one, 0);
	switch_out(&one, 1 * MS);
	for (uint64_t i = 1; i < count; i++) {
		host->switch_state.budget =
			(struct budget){.started_ns = host->now_ns, .credit_ns = -1, .shift = 14};
		switch_in(&one, 2 * i * MS);
		switch_out(&one, (2 * i + 1) * MS);
	}
	window_close(2 * count * MS);
	assert_waited(&one, PP_WAIT_SLEEP, (uint32_t)count, count * MS);
	assert_int_equal(host->losses[PP_LOSS_WAITS_WEIGHTED], 0);
}

/* A wait that was left out is not in the counters, while it goes on neither. */
static void budget__wait_left_out_is_in_the_ledger_only(void **state)
{
	(void)state;
	switch_in(&one, 0);
	host->switch_state.budget =
		(struct budget){.started_ns = START_NS, .credit_ns = -1, .shift = 14};
	switch_out(&one, 1 * MS);
	assert_true(slot_of(&one)->flags & PP_THREAD_SKIPPED);
	window_close(10 * MS);
	switch_in(&one, 12 * MS);
	window_close(20 * MS);
	assert_int_equal(waited(71, PP_WAIT_NONE).weight, 0);
	assert_int_equal(slot_of(&one)->total_ns[PP_LEDGER_SLEEP], 11 * MS);
	assert_false(slot_of(&one)->flags & PP_THREAD_SKIPPED);
}

static void budget__halves_and_doubles_the_share(void **state)
{
	struct budget budget = {.credit_ns = -1};
	uint64_t now_ns = 0;

	(void)state;
	budget_tick_of_switches(&budget, PP_BUDGET_PERIOD_NS - 1);
	assert_int_equal(budget.shift, 0);
	for (int i = 0; i < 100; i++) {
		budget_spend(&budget, SWITCH_BUDGET_NS + 1);
		budget_tick_of_switches(&budget, now_ns += PP_BUDGET_PERIOD_NS);
	}
	assert_int_equal(budget.shift, BUDGET_MAX_SHIFT);
	/* Of one look only what is near its deadline counts. */
	budget_spend(&budget, 1000000000);
	assert_int_equal(budget.spent_ns, BUDGET_SPEND_MAX_NS);
	for (int i = 0; i < 20; i++)
		budget_spend(&budget, BUDGET_SPEND_MAX_NS);
	budget_tick_of_switches(&budget, now_ns += PP_BUDGET_PERIOD_NS);
	assert_int_equal(budget.credit_ns, -(int64_t)PP_BUDGET_CREDIT_NS);
	for (int i = 0; i < 300; i++)
		budget_tick_of_switches(&budget, now_ns += PP_BUDGET_PERIOD_NS);
	assert_int_equal(budget.shift, 0);
	assert_int_equal(budget.credit_ns, (int64_t)PP_BUDGET_CREDIT_NS);
	/* What is spent is less than what comes in: the debt goes away by itself. */
	budget = (struct budget){
		.started_ns = now_ns, .credit_ns = -(int64_t)PP_BUDGET_CREDIT_NS, .shift = 5};
	for (int i = 0; i < 40; i++) {
		budget_spend(&budget, SWITCH_BUDGET_NS / 2);
		budget_tick_of_switches(&budget, now_ns += PP_BUDGET_PERIOD_NS);
	}
	assert_int_equal(budget.shift, 5);
	assert_int_equal(budget.credit_ns, -(int64_t)PP_BUDGET_CREDIT_NS / 2);
	/* Nobody asked for long: the share is whole again at once. */
	budget.shift = 9;
	budget_tick_of_switches(&budget, now_ns += 100 * PP_BUDGET_PERIOD_NS);
	assert_int_equal(budget.shift, 0);
	/* A long time without waits is not saved up. */
	budget.credit_ns = 0;
	budget_tick_of_switches(&budget, now_ns + (1ULL << 60));
	assert_int_equal(budget.credit_ns, (int64_t)PP_BUDGET_CREDIT_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		switch_test(budget__sums_beyond_it_stay_true),
		switch_test(budget__sums_are_unbiased),
		switch_test(budget__sums_beyond_it_are_the_ledgers),
		switch_test(budget__is_not_touched_at_known_sites),
		switch_test(budget__that_pays_no_new_walk_of_a_known_site_leaves_no_wait_out),
		switch_test(budget__wait_left_out_is_in_the_ledger_only),
		switch_test(budget__halves_and_doubles_the_share),
	};

	return cmocka_run_group_tests_name("bpf/switch_budget", tests, NULL, NULL);
}
