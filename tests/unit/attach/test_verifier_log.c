/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/object_builds.h"

#include <cmocka.h>

static void verifier_log_reason__is_the_last_line_that_is_no_statistic(void **state)
{
	/* Of Linux 6.1, a program that reads beyond its context. */
	char log[] = "0: R1=ctx(off=0,imm=0) R10=fp0\n"
		     "1: (79) r1 = *(u64 *)(r1 +4096)\n"
		     "invalid bpf_context access off=4096 size=8\n"
		     "verification time 31 usec\n"
		     "stack depth 0\n"
		     "processed 2 insns (limit 1000000) max_states_per_insn 0 total_states 0\n";

	(void)state;
	assert_string_equal(verifier_log_reason(log), "invalid bpf_context access off=4096 size=8");
}

static void verifier_log_reason__log_may_end_anywhere(void **state)
{
	char cut[] = "BPF program is too large. Processed 1000001 insn";
	char blank[] = "\nno room\n\n\nprocessed 1 insns\n\n";

	(void)state;
	assert_string_equal(verifier_log_reason(cut),
			    "BPF program is too large. Processed 1000001 insn");
	assert_string_equal(verifier_log_reason(blank), "no room");
}

static void verifier_log_reason__without_one_there_is_none(void **state)
{
	char empty[] = "", statistics[] = "processed 2 insns (limit 1000000)\n";

	(void)state;
	assert_null(verifier_log_reason(empty));
	assert_null(verifier_log_reason(statistics));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verifier_log_reason__is_the_last_line_that_is_no_statistic),
		cmocka_unit_test(verifier_log_reason__log_may_end_anywhere),
		cmocka_unit_test(verifier_log_reason__without_one_there_is_none),
	};

	return cmocka_run_group_tests_name("attach/verifier_log", tests, NULL, NULL);
}
