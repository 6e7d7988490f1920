/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Callers that differ at one site: their shares, and the spread that the counters tell of. */
#include "switch.h"

#include <math.h>

#include "render/totals.h"

struct pattern {
	uint32_t period; /* one wait in so many is the second caller's */
	uint64_t short_us, long_us; /* the first one's, the second one's */
	bool is_random; /* lengths are exponential */
	uint32_t waits, runs;
	uint32_t change_ms; /* not in turns: the second one has all waits from then on */
	/* the budget is spent at the start, and takes one walk in 1 << spent_shift */
	uint32_t spent_shift;
};

struct shares {
	double truth, got, error; /* of the second caller's time */
	uint64_t all_ns, got_ns, events, effective;
};

/* In function 1, called by `caller`. */
static void stands_under(struct actor *actor, uint32_t caller)
{
	*library_rule(1) = rule_sp(16);
	*library_rule(caller) = rule_sp(16);
	actor->regs.rip = library_pc(1);
	put_word(actor->regs.rsp + 8, library_pc(caller));
	put_word(actor->regs.rsp + 24, library_pc(255));
}

static uint64_t length_ns(const struct pattern *pattern, uint64_t mean_us)
{
	double chance = (bpf_get_prandom_u32() + 0.5) / 4294967296.0;

	return pattern->is_random ? (uint64_t)(-log(chance) * (double)mean_us * US) + 1000
				  : mean_us * US;
}

static bool is_second(const struct pattern *pattern, uint32_t i, uint64_t passed_ns)
{
	if (pattern->change_ms)
		return passed_ns >= pattern->change_ms * MS;
	return i % pattern->period == pattern->period - 1;
}

/* Others spent it.  The site is known by now, so that no wait is left out. */
static void budget_is_spent(uint32_t shift)
{
	host->switch_state.budget = (struct budget){.started_ns = host->now_ns,
						    .credit_ns = -(int64_t)PP_BUDGET_CREDIT_NS,
						    .shift = shift};
}

/* What the waits of a thread were, by its own clock. */
static void waits_run(const struct pattern *pattern, struct shares *ret_shares)
{
	uint64_t ns[2] = {0, 0}, started_ns;

	host->config.incomplete_tokens = 0;
	switch_in(&one, 0);
	host->ns_a_copy = 10 * US; /* a walk takes some */
	started_ns = host->now_ns;
	for (uint32_t i = 0; i < pattern->waits; i++) {
		uint32_t second = is_second(pattern, i, host->now_ns - started_ns);
		uint64_t begin_ns;

		if (i == 8 && pattern->spent_shift)
			budget_is_spent(pattern->spent_shift);
		stands_under(&one, 2 + second);
		one.task.__state = INTERRUPTIBLE;
		host->now_ns += 20 * US;
		run_switch(false, &one, NULL);
		host_drop_records();
		begin_ns = slot_of(&one)->since_ns;
		host->now_ns = begin_ns +
			       length_ns(pattern, second ? pattern->long_us : pattern->short_us);
		run_switch(false, NULL, &one);
		ns[second] += slot_of(&one)->since_ns - begin_ns;
	}
	host->ns_a_copy = 0;
	ret_shares->all_ns = ns[0] + ns[1];
	ret_shares->truth = (double)ns[1] / (double)ret_shares->all_ns;
	window_close(host->now_ns - START_NS);
}

static uint64_t hash_under(uint32_t caller)
{
	uint64_t hash;

	actor_init(&two, 70, 72);
	stands_under(&two, caller);
	switch_in(&two, 0);
	switch_out(&two, 1);
	hash = wait_site_of(&two)->user_stack;
	switch_in(&two, 2);
	dies(&two, 3);
	host_drop_records();
	return hash;
}

/* The second caller's share and its standard error, as pyprof has them of a profile of one
 * window. */
static void read_shares(uint64_t second_stack, struct shares *shares)
{
	struct share_part part[2] = {{0, 0}, {0, 0}}, all;

	for (size_t i = 0; i < harvested.count; i++) {
		const struct counted *row = &harvested.entry[i];
		uint32_t second = row->key.user_stack == second_stack;

		if (row->key.tid != 71)
			continue;
		assert_int_equal(row->key.kind, PP_KIND_WAIT);
		assert_true(row->count.effective > 0);
		part[second].value += (double)row->count.weight;
		part[second].per_event += (double)row->count.weight * (double)row->count.weight /
					  (double)row->count.effective;
		shares->events += row->count.samples;
		shares->effective += row->count.effective;
	}
	all = (struct share_part){.value = part[0].value + part[1].value,
				  .per_event = part[0].per_event + part[1].per_event};
	shares->got_ns = (uint64_t)all.value;
	shares->got = part[1].value / all.value;
	shares->error = share_error(&part[1], &all, true);
}

static struct shares shares_of(const struct pattern *pattern, uint64_t seed)
{
	struct shares shares = {};
	uint64_t second_stack;

	host->random = seed;
	second_stack = hash_under(3);
	waits_run(pattern, &shares);
	read_shares(second_stack, &shares);
	return shares;
}

/* The seeds are the same in each build, so the build without sanitizers judges the shares of all
 * runs.  With sanitizers, which take four times as long, one of ten runs is looked at: each is
 * the same code. */
#ifdef __SANITIZE_ADDRESS__
#define RUNS_DIVIDED_BY 10U
#else
#define RUNS_DIVIDED_BY 1U
#endif

static struct pattern turns(uint32_t period, uint64_t short_us, uint64_t long_us, bool is_random,
			    uint32_t waits, uint32_t runs)
{
	return (struct pattern){.period = period,
				.short_us = short_us,
				.long_us = long_us,
				.is_random = is_random,
				.waits = waits,
				.runs = runs / RUNS_DIVIDED_BY};
}

/* Sums are exact in each run.  What is found over all runs: the second one's share, its error, the
 * error that is told, and how often 1.96 of that holds the truth. */
struct found {
	double got, truth, squares, error;
	uint32_t inside;
};

static struct found find_shares(void **state, const struct pattern *pattern)
{
	struct found found = {};

	for (uint64_t run = 1; run <= pattern->runs; run++) {
		struct shares s = shares_of(pattern, run * 0x9e3779b97f4a7c15);

		assert_int_equal(s.got_ns, s.all_ns);
		assert_int_equal(s.events, pattern->waits);
		found.inside += fabs(s.got - s.truth) <= 1.96 * s.error;
		found.got += s.got / pattern->runs;
		found.truth += s.truth / pattern->runs;
		found.squares += (s.got - s.truth) * (s.got - s.truth) / pattern->runs;
		found.error += s.error / pattern->runs;
		switch_teardown(state);
		switch_setup(state);
	}
	print_message("%.4f, is %.4f; error %.4f, told %.4f; in %u of %u\n", found.got, found.truth,
		      sqrt(found.squares), found.error, found.inside, pattern->runs);
	return found;
}

/* The mean over many runs has no bias, and the error that is told holds the truth as often as it
 * says: 1.96 of it in 95 of 100, of 250 runs give or take 1.4. */
static void check_turns(void **state, struct pattern pattern, double low)
{
	struct found found;

	print_message("one in %u%s: ", pattern.period, pattern.is_random ? ", exponential" : "");
	found = find_shares(state, &pattern);
	if (RUNS_DIVIDED_BY > 1)
		return;
	assert_true(fabs(found.got - found.truth) < 5 * sqrt(found.squares / pattern.runs) + 0.002);
	assert_true(found.inside >= low * pattern.runs && found.inside <= 0.98 * pattern.runs);
}

/* Most of the error is that of few walks; the rest is that the last refused walks of the first
 * caller are the second one's. */
static void check_change(void **state, uint64_t us, uint32_t waits, uint32_t spent_shift)
{
	struct pattern pattern = turns(1, us, us, true, waits, 50);
	struct found found;

	pattern.change_ms = 1250;
	pattern.spent_shift = spent_shift;
	print_message("change, waits of %u us, one walk in %u: ", (unsigned)us, 1U << spent_shift);
	found = find_shares(state, &pattern);
	if (RUNS_DIVIDED_BY > 1)
		return;
	assert_true(fabs(found.got - found.truth) < 0.04);
	assert_true(found.squares < 0.15 * 0.15);
	assert_true(found.inside >= 0.83 * pattern.runs);
}

static void callers__that_change_while_the_budget_is_spent_have_their_shares(void **state)
{
	static const uint32_t shift[] = {0, 3, 6, 9};

	for (size_t i = 0; i < sizeof(shift) / sizeof(shift[0]); i++) {
		check_change(state, 10, 150000, shift[i]);
		check_change(state, 400, 12000, shift[i]);
	}
}

static void callers__that_alternate_have_their_shares(void **state)
{
	static const uint32_t period[] = {2, 3, 4, 6, 7};

	for (size_t i = 0; i < sizeof(period) / sizeof(period[0]); i++)
		check_turns(state, turns(period[i], 200, 800, false, 12000, 250), 0.92);
}

static void callers__of_waits_of_all_lengths_have_their_shares(void **state)
{
	check_turns(state, turns(2, 200, 800, true, 12000, 250), 0.92);
	check_turns(state, turns(2, 400, 400, true, 12000, 250), 0.92);
	check_turns(state, turns(7, 200, 800, true, 40000, 250), 0.92);
	/* Some 14 walks of the rarer one, of lengths that differ: 0.89 by the normal
	 * distribution. */
	check_turns(state, turns(7, 200, 800, true, 12000, 250), 0.905);
}

static void callers__that_are_rare_have_their_shares(void **state)
{
	check_turns(state, turns(50, 400, 400, false, 100000, 50), 0.90);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		switch_test(callers__that_alternate_have_their_shares),
		switch_test(callers__that_change_while_the_budget_is_spent_have_their_shares),
		switch_test(callers__that_are_rare_have_their_shares),
		switch_test(callers__of_waits_of_all_lengths_have_their_shares),
	};

	return cmocka_run_group_tests_name("bpf/switch_callers", tests, NULL, NULL);
}
