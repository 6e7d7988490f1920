/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/findings.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "files/client.h"

/* What the child says: a site of each cost that is not negative, by wanted probe. */
enum { GC_START, GC_DONE, IMPORT_START, IMPORT_DONE, ENTRY, RETURN, LINE, LINE_AGAIN, WANTED };
struct answer {
	int err;
	int cost[WANTED];
};
static const struct answer *answer;

int foreign_probes(struct foreign *foreign, const struct foreign_file *file,
		   const struct probe_wanted *wanted, size_t count, struct probe_sites *ret_sites)
{
	static const char *const names[WANTED] = {"gc__start",
						  "gc__done",
						  "import__find__load__start",
						  "import__find__load__done",
						  "function__entry",
						  "function__return",
						  "line",
						  "line"};

	(void)foreign;
	(void)file;
	assert_int_equal(count, WANTED);
	if (answer->err)
		return answer->err;
	*ret_sites = (struct probe_sites){.site = calloc(WANTED, sizeof(struct probe_site))};
	for (uint32_t i = 0; i < WANTED; i++) {
		assert_true(probe_wanted_is_sound(&wanted[i]));
		assert_string_equal(wanted[i].provider, "python");
		assert_string_equal(wanted[i].name, names[i]);
		if (answer->cost[i] < 0)
			continue;
		ret_sites->site[ret_sites->site_count++] =
			(struct probe_site){.wanted = i, .cost = (uint8_t)answer->cost[i]};
		ret_sites->found[i].sites = 1;
	}
	return 0;
}

static void expect_said_of(uint32_t minor, const struct answer *given,
			   const struct probe_prices *prices, const char *wanted)
{
	const struct foreign_file file = {.number = 1};
	struct doctor_file_probes probes;
	struct findings findings = {0};
	OWNED_MEM char *said = NULL;
	size_t size;

	answer = given;
	doctor_probes_ask(NULL, &file, &probes);
	findings.out = open_memstream(&said, &size);
	doctor_probes_tell(&findings, "/py", minor, &probes, prices);
	fclose(findings.out);
	assert_string_equal(said, wanted);
}

static void expect_said(const struct answer *given, const struct probe_prices *prices,
			const char *wanted)
{
	expect_said_of(11, given, prices, wanted);
}

static const struct probe_prices measured = {
	.hit_ns = {400, 200, 9700}, .return_ns = 300, .is_measured = true};

static void doctor_probes__all_probes_are_listed_with_prices_and_a_call(void **state)
{
	(void)state;
	expect_said(
		&(struct answer){.cost = {0, 0, 0, 0, 0, 1, 2, 2}}, &measured,
		"ok    probes           '/py': gc (0.4 us), import (0.4 us), function entry and "
		"return (0.4 us), line (9.7 us) a hit; exact calls: yes, about 1.2 us a call\n");
}

static void doctor_probes__no_functions_propose_the_sampled_table(void **state)
{
	(void)state;
	expect_said(&(struct answer){.cost = {0, 0, 1, 0, -1, -1, -1, -1}}, &measured,
		    "ok    probes           '/py': gc (0.4 us), import (0.2 us) a hit; no function "
		    "probes: pyprof calls --live samples instead\n");
	expect_said(&(struct answer){.cost = {-1, -1, -1, -1, -1, -1, -1, -1}}, &measured,
		    "ok    probes           '/py': none; no function probes: pyprof calls --live "
		    "samples instead\n");
}

static void doctor_probes__functions_of_3_15_are_not_exact(void **state)
{
	(void)state;
	expect_said_of(15, &(struct answer){.cost = {-1, -1, -1, -1, 0, 0, -1, -1}}, &measured,
		       "ok    probes           '/py': function entry and return (0.4 us) a hit; "
		       "exact calls: no, this version does not hit its function probes at "
		       "specialized calls: pyprof calls --live samples instead\n");
}

static void doctor_probes__beginning_without_end_is_not_listed(void **state)
{
	(void)state;
	expect_said(&(struct answer){.cost = {0, -1, -1, 0, 0, -1, -1, -1}}, &measured,
		    "ok    probes           '/py': none; no function probes: pyprof calls --live "
		    "samples instead\n");
}

static void doctor_probes__typical_prices_are_said_to_be_such(void **state)
{
	const struct probe_prices typical = probe_prices_typical();

	(void)state;
	expect_said(&(struct answer){.cost = {0, 0, -1, -1, 0, 0, -1, -1}}, &typical,
		    "ok    probes           '/py': gc (0.5 us), function entry and return (0.5 us) "
		    "a hit (not measured here); exact calls: yes, about 1.6 us a call\n");
}

static void doctor_probes__child_that_fails_is_a_warning(void **state)
{
	(void)state;
	expect_said(&(struct answer){.err = -E2BIG}, &measured,
		    "warn  probes           '/py': its probes cannot be read: Argument list too "
		    "long\n");
}

static void doctor_probes__dearest_site_counts(void **state)
{
	struct probe_site site[] = {{.wanted = GC_START, .cost = PROBE_COST_SINGLE_STEP},
				    {.wanted = GC_START, .cost = PROBE_COST_EMULATED},
				    {.wanted = GC_DONE, .cost = PROBE_COST_LONG_NOP},
				    {.wanted = WANTED, .cost = PROBE_COST_SINGLE_STEP},
				    {.wanted = GC_DONE, .cost = PROBE_COSTS}};
	const struct probe_sites sites = {.site = site,
					  .site_count = ARRAY_SIZE(site),
					  .found = {[GC_START].sites = 2, [GC_DONE].sites = 1}};
	struct doctor_file_probes probes;

	(void)state;
	doctor_probes_take(&sites, &probes);
	assert_true(probes.of[DOCTOR_PROBE_GC].is_there);
	assert_int_equal(probes.of[DOCTOR_PROBE_GC].begin_cost, PROBE_COST_SINGLE_STEP);
	assert_int_equal(probes.of[DOCTOR_PROBE_GC].end_cost, PROBE_COST_LONG_NOP);
	assert_false(probes.of[DOCTOR_PROBE_IMPORT].is_there);
}

static void doctor_probes__without_rights_nothing_is_said_of_the_kernel(void **state)
{
	struct findings findings = {0};
	OWNED_MEM char *said = NULL;
	struct probe_prices prices;
	size_t size;

	(void)state;
	findings.out = open_memstream(&said, &size);
	prices = doctor_probes_kernel(&findings, false);
	fclose(findings.out);
	assert_string_equal(said, "");
	assert_false(prices.is_measured);
	assert_true(prices.hit_ns[PROBE_COST_EMULATED] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doctor_probes__all_probes_are_listed_with_prices_and_a_call),
		cmocka_unit_test(doctor_probes__no_functions_propose_the_sampled_table),
		cmocka_unit_test(doctor_probes__functions_of_3_15_are_not_exact),
		cmocka_unit_test(doctor_probes__beginning_without_end_is_not_listed),
		cmocka_unit_test(doctor_probes__typical_prices_are_said_to_be_such),
		cmocka_unit_test(doctor_probes__child_that_fails_is_a_warning),
		cmocka_unit_test(doctor_probes__dearest_site_counts),
		cmocka_unit_test(doctor_probes__without_rights_nothing_is_said_of_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
