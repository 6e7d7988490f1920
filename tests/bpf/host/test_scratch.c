/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/walk.bpf.h: which of a CPU's scratch areas a program gets; programs interrupt one
 * another, tasks end in any order. */
#define HOST_WHOLE_PROGRAM
#include "host.h"

#include <signal.h>

static void scratch__of_an_interrupt_and_an_nmi_are_two(void **state)
{
	struct scratch interrupt = {}, nmi = {}, third = {};

	(void)state;
	scratch_enter(&interrupt);
	scratch_enter(&nmi);
	assert_int_equal(interrupt.slot, SCRATCH_INTERRUPT);
	assert_int_equal(nmi.slot, SCRATCH_NMI);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 0);
	scratch_enter(&third);
	assert_null(third.walk);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
	scratch_leave(&nmi);
	scratch_enter(&nmi);
	assert_int_equal(nmi.slot, SCRATCH_NMI);
	scratch_leave(&nmi);
	scratch_leave(&interrupt);
}

/* A task's program leaves its CPU in the middle: what comes meanwhile ends before it, or after
 * it. */
static void scratch__of_a_preempted_task_is_nobody_elses(void **state)
{
	struct scratch task = {}, other_task = {}, interrupt = {};

	(void)state;
	scratch_enter_preemptible(&task);
	assert_int_equal(task.slot, SCRATCH_TASK);
	scratch_enter_preemptible(&other_task);
	assert_null(other_task.walk);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
	scratch_enter(&interrupt);
	assert_int_equal(interrupt.slot, SCRATCH_INTERRUPT);
	/* The task ends first. */
	scratch_leave(&task);
	scratch_enter_preemptible(&other_task);
	assert_int_equal(other_task.slot, SCRATCH_TASK);
	scratch_leave(&interrupt);
	scratch_enter(&interrupt);
	assert_int_equal(interrupt.slot, SCRATCH_INTERRUPT);
	scratch_leave(&interrupt);
	scratch_leave(&other_task);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
}

static void scratch__without_walks_for_tasks_is_counted(void **state)
{
	struct scratch task = {};

	(void)state;
	scratch_levels = 2;
	scratch_enter_preemptible(&task);
	assert_null(task.walk);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
	assert_int_equal(host->scratch_claims.is_taken[SCRATCH_TASK], 0);
}

/* ---- preempted between any two instructions: the processor traps after each ---- */

#define TRAP_FLAG "0x100"

/* Under sanitizers ten times as many instructions are looked at, each in a run of all before it:
 * every twelfth.  The build without them stops at each. */
#ifdef __SANITIZE_ADDRESS__
#define TRAP_STRIDE 12U
#else
#define TRAP_STRIDE 1U
#endif

static volatile uint32_t traps, preempted_at;
static struct scratch other_claim;

static void after_instruction(int number)
{
	(void)number;
	if (++traps == preempted_at)
		scratch_enter_preemptible(&other_claim);
}

static void scratch__has_one_owner_wherever_a_task_is_preempted(void **state)
{
	const struct sigaction trap = {.sa_handler = after_instruction};
	uint32_t other_first = 0, other_second = 0, loser;

	(void)state;
	assert_int_equal(sigaction(SIGTRAP, &trap, NULL), 0);
	for (preempted_at = 1;; preempted_at += TRAP_STRIDE) {
		struct scratch claim = {};

		traps = 0;
		other_claim = (struct scratch){};
		asm volatile("pushfq; orq $" TRAP_FLAG ", (%%rsp); popfq" ::: "memory", "cc");
		scratch_enter_preemptible(&claim);
		asm volatile("pushfq; andq $~" TRAP_FLAG ", (%%rsp); popfq" ::: "memory", "cc");
		if (traps < preempted_at)
			break;
		loser = !claim.walk;
		assert_int_equal(!other_claim.walk, !loser);
		other_first += loser;
		other_second += !loser;
		scratch_leave(loser ? &other_claim : &claim);
		assert_int_equal(host->scratch_claims.is_taken[SCRATCH_TASK], 0);
	}
	assert_true(other_first > 2 && other_second > 2);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], other_first + other_second);
	print_message("  %u instructions, %u claims won, %u lost\n", traps, other_second,
		      other_first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(scratch__of_an_interrupt_and_an_nmi_are_two),
		host_test(scratch__of_a_preempted_task_is_nobody_elses),
		host_test(scratch__without_walks_for_tasks_is_counted),
		host_test(scratch__has_one_owner_wherever_a_task_is_preempted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
