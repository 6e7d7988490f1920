/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "diff/significance.h"
#include "diff/table.h"

static struct diff_rule rule_of(const char *text)
{
	struct diff_rule rule = {0};

	assert_int_equal(diff_rule_parse(text, &rule), 0);
	return rule;
}

static void diff_rule__parts_are_read(void **state)
{
	struct diff_rule rule = rule_of("self > 3% p < 0.01");

	(void)state;
	assert_int_equal(rule.by, DIFF_BY_FUNCTION);
	assert_int_equal(rule.column, DIFF_SELF);
	assert_false(rule.shrinks);
	assert_true(rule.change > 0.0299 && rule.change < 0.0301);
	assert_true(rule.p > 0.0099 && rule.p < 0.0101);
	rule = rule_of("line total<-2.5%");
	assert_int_equal(rule.by, DIFF_BY_LINE);
	assert_int_equal(rule.column, DIFF_TOTAL);
	assert_true(rule.shrinks);
	assert_true(rule.change < -0.0249 && rule.p > 0.0499 && rule.p < 0.0501);
	rule = rule_of("self < 0%"); /* shrinks at all */
	assert_true(rule.shrinks && rule.change == 0);
	rule = rule_of("  stack self>0% and p<1e-3 ");
	assert_int_equal(rule.by, DIFF_BY_STACK);
	assert_true(rule.p < 0.00101);
	rule = rule_of("self > 0% p < 1");
	assert_true(rule.p == 1);
}

static void diff_rule__nonsense_is_einval(void **state)
{
	static const char *const bad[] = {"",
					  "self",
					  "self > 3",
					  "self 3%",
					  "selfish > 3%",
					  "selfa > 3%",
					  "selfz > 3%",
					  "linea > 3%",
					  "lineself > 3%",
					  "self > 3% andp < 0.01",
					  "self > 3% pz < 0.01",
					  "self > -3%",
					  "self < 3%",
					  "self < 1%",
					  "self > x%",
					  "self > nan%",
					  "self > inf%",
					  "self > %",
					  "self > 3% p < nan",
					  "self > 3% p < 0",
					  "self > 3% p > 1",
					  "self > 3% p < 2",
					  "stack total > 3%",
					  "self > 3% p < 0.01 x",
					  "self > 3% 0.01"};
	struct diff_rule rule;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(diff_rule_parse(bad[i], &rule), -EINVAL);
}

static void diff_rule__wants_change_and_p(void **state)
{
	struct diff_rule rule = rule_of("self > 3% p < 0.01"), shrinks = rule_of("self < -3%");
	struct diff_row row = {.change = {{.share = {0.10, 0.15}, .p = 0.001}}};

	(void)state;
	assert_true(diff_rule_holds(&rule, &row));
	assert_false(diff_rule_holds(&shrinks, &row));
	row.change[DIFF_SELF].p = 0.01;
	assert_false(diff_rule_holds(&rule, &row));
	row.change[DIFF_SELF].p = -1; /* not tested */
	assert_false(diff_rule_holds(&rule, &row));
	row.change[DIFF_SELF].p = 0.001;
	row.change[DIFF_SELF].share[DIFF_B] = 0.12;
	assert_false(diff_rule_holds(&rule, &row));
	row.change[DIFF_SELF].share[DIFF_B] = 0.05;
	assert_true(diff_rule_holds(&shrinks, &row));
	row.change[DIFF_SELF].p = 0; /* beyond what a number can say */
	assert_true(diff_rule_holds(&shrinks, &row));
}

/* A quarter has no rounding. */
static void diff_rule__change_of_just_that_much_is_none(void **state)
{
	struct diff_rule grows = rule_of("self > 25%"), shrinks = rule_of("self < -25%");
	struct diff_row row = {.change = {{.share = {0.25, 0.5}, .p = 0.001}}};

	(void)state;
	assert_false(diff_rule_holds(&grows, &row));
	row.change[DIFF_SELF].share[DIFF_B] = 0.75;
	assert_true(diff_rule_holds(&grows, &row));
	row.change[DIFF_SELF].share[DIFF_A] = 1;
	assert_false(diff_rule_holds(&shrinks, &row));
}

static struct diff_facts facts_of(const char *writer, const char *facts, int64_t value)
{
	struct diff_facts ret = {.unit_ns = 1};

	diff_facts_add_comment(&ret, writer);
	diff_facts_add_comment(&ret, facts);
	diff_facts_add_window(&ret, 10000000, value);
	return ret;
}

static void comparable__same_kind_and_rate_are_alike(void **state)
{
	struct diff_facts a = facts_of("pyprofd=0.1.0 kind=cpu hz=99 host=a b", "elapsed_ns=5", 7);
	struct diff_facts b = facts_of("other 1", "", 8);
	char why[DIFF_WHY_BYTES];

	(void)state;
	assert_string_equal(a.kind, "cpu");
	assert_int_equal(a.hz, 99);
	assert_string_equal(a.host, "a");
	assert_int_equal(comparable_sides(&a, &a, why), COMPARABLE);
	assert_int_equal(comparable_sides(&a, &b, why), COMPARABLE);
}

static void comparable__windows_of_other_periods_are_told(void **state)
{
	static const struct {
		int64_t period;
		enum comparable says;
	} cases[] = {{10000000, COMPARABLE},	 {10100000, COMPARABLE},    {9900000, COMPARABLE},
		     {10100001, NOT_COMPARABLE}, {9899999, NOT_COMPARABLE}, {0, COMPARABLE},
		     {1, NOT_COMPARABLE}};
	char why[DIFF_WHY_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct diff_facts a = facts_of("pyprofd=0.1.0 kind=wall hz=99 host=a", "", 7),
				  b = a;

		diff_facts_add_window(&b, cases[i].period, 7);
		assert_int_equal(b.value, 14);
		assert_int_equal(b.windows, 2);
		assert_int_equal(comparable_sides(&a, &b, why), cases[i].says);
		assert_int_equal(comparable_sides(&b, &a, why), cases[i].says);
		if (cases[i].says == NOT_COMPARABLE)
			assert_non_null(
				strstr(why, "10000000 and 10000000, some windows have others"));
	}
}

static void diff_facts__names_and_writers_are_read_whole(void **state)
{
	struct diff_facts facts =
		facts_of("pyprofd=0.1.0 kind=k hz=99",
			 "host_busy_xx=5 elapsed_ns=3 elapsed_xx=4 host_cpux=9", 7);
	struct diff_facts other = facts_of("pyprofd=0.1.0 kind=m hz=99", "", INT64_MAX),
			  unknown = facts_of("pyprofd=0.1.0", "", 7);
	char why[DIFF_WHY_BYTES];

	(void)state;
	assert_string_equal(facts.kind, "k");
	assert_string_equal(facts.host, "");
	assert_int_equal(facts.host_busy_ns, 0);
	assert_int_equal(facts.host_cpus, 0);
	assert_int_equal(facts.elapsed_ns, 3);
	assert_int_equal(comparable_sides(&facts, &other, why), NOT_COMPARABLE);
	assert_string_equal(why, "one is of kind k, the other of m");
	assert_int_equal(comparable_sides(&facts, &unknown, why), COMPARABLE);
	assert_int_equal(comparable_sides(&unknown, &facts, why), COMPARABLE);
	diff_facts_add_window(&other, 10000000, 1);
	assert_true(other.value == INT64_MAX);
}

static void comparable__kind_rate_and_period_are_told(void **state)
{
	struct diff_facts a = facts_of("pyprofd=0.1.0 kind=wall hz=99 host=a", "", 7);
	struct diff_facts kind = facts_of("pyprofd=0.1.0 kind=cpu hz=99 host=a", "", 7);
	struct diff_facts rate = facts_of("pyprofd=0.1.0 kind=wall hz=199 host=a", "", 7);
	struct diff_facts period = {.value = 7, .period = 5000000};
	struct diff_facts none = facts_of("pyprofd=0.1.0 kind=wall hz=99 host=a", "", 0);
	char why[DIFF_WHY_BYTES];

	(void)state;
	assert_int_equal(comparable_sides(&a, &kind, why), NOT_COMPARABLE);
	assert_string_equal(why, "one is of kind wall, the other of cpu");
	assert_int_equal(comparable_sides(&a, &rate, why), NOT_COMPARABLE);
	assert_non_null(strstr(why, "99 Hz, the other at 199 Hz"));
	assert_int_equal(comparable_sides(&a, &period, why), NOT_COMPARABLE);
	assert_non_null(strstr(why, "10000000 and 5000000"));
	assert_int_equal(comparable_sides(&a, &none, why), NOTHING_TO_COMPARE);
	assert_string_equal(why, "the second one has no samples: nothing to compare");
	assert_int_equal(comparable_sides(&none, &a, why), NOTHING_TO_COMPARE);
	assert_string_equal(why, "the first one has no samples: nothing to compare");
	assert_int_equal(comparable_sides(&none, &none, why), NOTHING_TO_COMPARE);
	assert_string_equal(why, "both have no samples: nothing to compare");
}

/* 10 s of 2 CPUs: the others took 15 s less the profile's own 5, then 2 s less 1. */
static void comparable__other_load_is_told(void **state)
{
	struct diff_facts a =
		facts_of("pyprofd=0.1.0 kind=cpu hz=99 host=a",
			 "elapsed_ns=10000000000 host_busy_ns=15000000000 host_cpus=2", 5000000000);
	struct diff_facts b =
		facts_of("pyprofd=0.1.0 kind=cpu hz=99 host=a",
			 "elapsed_ns=10000000000 host_busy_ns=2000000000 host_cpus=2", 1000000000);
	char why[DIFF_WHY_BYTES];

	(void)state;
	assert_true(diff_facts_load(&a) > 0.499 && diff_facts_load(&a) < 0.501);
	assert_int_equal(comparable_sides(&a, &b, why), NOT_COMPARABLE);
	assert_non_null(strstr(why, "50 % of its CPUs, then 5 %"));
	assert_int_equal(comparable_sides(&a, &a, why), COMPARABLE);
	a.is_part = true; /* --focus: the rest may be the program's own */
	assert_true(diff_facts_load(&a) < 0);
	assert_int_equal(comparable_sides(&a, &b, why), COMPARABLE);
	a.is_part = false;
	/* A unit of 2 ns: the profile's own are 10 of the 15 s, so the others took 5 of 20 s. */
	a.unit_ns = 2;
	assert_true(diff_facts_load(&a) > 0.249 && diff_facts_load(&a) < 0.251);
	a.unit_ns = 4; /* more than the host says: nothing is left for others */
	assert_true(diff_facts_load(&a) >= 0 && diff_facts_load(&a) < 1e-12);
	a.unit_ns = 1;
	b.host_busy_ns = 0; /* an older agent's */
	assert_true(diff_facts_load(&b) < 0);
	assert_int_equal(comparable_sides(&a, &b, why), COMPARABLE);
}

/* 9 of 10 CPU-seconds, then 6, then none: the profile's own are all that the host says. */
static void comparable__other_load_is_told_in_percent(void **state)
{
	struct diff_facts most =
		facts_of("pyprofd=0.1.0 kind=cpu hz=99 host=a",
			 "elapsed_ns=10000000000 host_busy_ns=9000000001 host_cpus=1", 1);
	struct diff_facts less =
		facts_of("pyprofd=0.1.0 kind=cpu hz=99 host=a",
			 "elapsed_ns=10000000000 host_busy_ns=6000000001 host_cpus=1", 1);
	struct diff_facts none = less;
	char why[DIFF_WHY_BYTES];

	(void)state;
	none.value = 6000000001;
	assert_int_equal(comparable_sides(&most, &less, why), NOT_COMPARABLE);
	assert_non_null(strstr(why, "90 % of its CPUs, then 60 %"));
	assert_int_equal(comparable_sides(&less, &most, why), NOT_COMPARABLE);
	assert_non_null(strstr(why, "60 % of its CPUs, then 90 %"));
	assert_int_equal(comparable_sides(&none, &less, why), NOT_COMPARABLE);
	assert_non_null(strstr(why, "0 % of its CPUs, then 60 %"));
	assert_int_equal(comparable_sides(&less, &none, why), NOT_COMPARABLE);
	assert_non_null(strstr(why, "60 % of its CPUs, then 0 %"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(diff_rule__parts_are_read),
		cmocka_unit_test(diff_rule__nonsense_is_einval),
		cmocka_unit_test(diff_rule__wants_change_and_p),
		cmocka_unit_test(diff_rule__change_of_just_that_much_is_none),
		cmocka_unit_test(comparable__same_kind_and_rate_are_alike),
		cmocka_unit_test(comparable__windows_of_other_periods_are_told),
		cmocka_unit_test(diff_facts__names_and_writers_are_read_whole),
		cmocka_unit_test(comparable__kind_rate_and_period_are_told),
		cmocka_unit_test(comparable__other_load_is_told),
		cmocka_unit_test(comparable__other_load_is_told_in_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
