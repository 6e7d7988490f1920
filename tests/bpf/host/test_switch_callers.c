/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sources: drain/thread_slots.c drain/wait_shares.c drain/counts.c drain/table.c base/index_table.c render/share_error.c */
/* Callers that differ at one place: their shares, and the spread that the counters tell of. */
#include "switch.h"

#include <math.h>

#include "render/share_error.h"

struct pattern {
	uint32_t period; /* one wait in so many is the second caller's */
	uint64_t short_us, long_us; /* the first one's, the second one's */
	bool is_random; /* lengths are exponential */
	uint32_t waits, runs;
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

/* What the waits of a thread were, by its own clock. */
static void waits_run(const struct pattern *pattern, struct shares *ret_shares)
{
	uint64_t ns[2] = {0, 0};

	host->config.miss_tokens = 0;
	comes(&one, 0);
	host->ns_a_copy = 10 * US; /* a walk takes some */
	for (uint32_t i = 0; i < pattern->waits; i++) {
		uint32_t second = i % pattern->period == pattern->period - 1;
		uint64_t begin_ns;

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
	comes(&two, 0);
	leaves(&two, 1);
	hash = place_of(&two)->user_stack;
	comes(&two, 2);
	dies(&two, 3);
	host_drop_records();
	return hash;
}

/* The second caller's share and its standard error, as pyprof has them of a profile of one window. */
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

/* The mean over many runs has no bias, sums are exact, and the error that is told holds the truth as often
 * as it says: 1.96 of it in 95 of 100. */
static void check_pattern(void **state, const struct pattern *pattern, double low)
{
	double got = 0, truth = 0, squares = 0, error = 0;
	uint32_t inside = 0;

	for (uint64_t run = 1; run <= pattern->runs; run++) {
		struct shares s = shares_of(pattern, run * 0x9e3779b97f4a7c15);

		assert_int_equal(s.got_ns, s.all_ns);
		assert_int_equal(s.events, pattern->waits);
		inside += fabs(s.got - s.truth) <= 1.96 * s.error;
		got += s.got / pattern->runs;
		truth += s.truth / pattern->runs;
		squares += (s.got - s.truth) * (s.got - s.truth) / pattern->runs;
		error += s.error / pattern->runs;
		switch_teardown(state);
		switch_setup(state);
	}
	print_message("one in %u%s: %.4f, is %.4f; error %.4f, told %.4f; in %u of %u\n",
		      pattern->period, pattern->is_random ? ", exponential" : "", got, truth,
		      sqrt(squares), error, inside, pattern->runs);
	assert_true(fabs(got - truth) < 5 * sqrt(squares / pattern->runs) + 0.002);
	assert_true(inside >= low * pattern->runs && inside <= 0.97 * pattern->runs);
}

static void callers__that_alternate_have_their_shares(void **state)
{
	static const uint32_t period[] = {2, 3, 4, 6, 7};

	for (size_t i = 0; i < sizeof(period) / sizeof(period[0]); i++)
		check_pattern(state, &(struct pattern){period[i], 200, 800, false, 12000, 1000}, 0.93);
}

static void callers__of_waits_of_all_lengths_have_their_shares(void **state)
{
	check_pattern(state, &(struct pattern){2, 200, 800, true, 12000, 1000}, 0.93);
	check_pattern(state, &(struct pattern){2, 400, 400, true, 12000, 1000}, 0.93);
	check_pattern(state, &(struct pattern){7, 200, 800, true, 40000, 1000}, 0.93);
	/* Some 14 walks of the rarer one, of lengths that differ: 891 by the normal distribution. */
	check_pattern(state, &(struct pattern){7, 200, 800, true, 12000, 1000}, 0.915);
}

static void callers__that_are_rare_have_their_shares(void **state)
{
	check_pattern(state, &(struct pattern){50, 400, 400, false, 100000, 200}, 0.90);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		switch_test(callers__that_alternate_have_their_shares),
		switch_test(callers__that_are_rare_have_their_shares),
		switch_test(callers__of_waits_of_all_lengths_have_their_shares),
	};

	return cmocka_run_group_tests_name("bpf/switch_callers", tests, NULL, NULL);
}
