/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread that attaches and the kernel side are stand-ins. */
#include "probes/cuda_events.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include <pyprofd/probe.h>

#include "attach/cuda_side.h"
#include "probes/probe_plan.h"
#include "probes/probe_worker.h"

static struct {
	bool is_loaded, is_held, is_on, is_followed;
	uint32_t captures;
	unsigned int held, followed; /* how often these were set */
	int err;
} seen;
static struct cuda_events events;

void probe_worker_hold(struct probe_worker *worker, uint32_t probe, bool is_held)
{
	assert_null(worker);
	assert_int_equal(probe, 5);
	seen.is_held = is_held;
	seen.held++;
	/* What is taken off is not followed any more. */
	if (is_held)
		assert_false(seen.is_followed);
}

bool probe_worker_is_on(struct probe_worker *worker, uint32_t probe)
{
	(void)worker;
	assert_int_equal(probe, 5);
	return seen.is_on;
}

const struct cuda_side *probe_worker_cuda(struct probe_worker *worker)
{
	(void)worker;
	return seen.is_loaded ? (const struct cuda_side *)&seen : NULL;
}

int cuda_side_captures(const struct cuda_side *side, uint32_t *ret_captures)
{
	(void)side;
	if (!seen.err)
		*ret_captures = seen.captures;
	return seen.err;
}

int cuda_side_follow_events(const struct cuda_side *side, bool are_followed)
{
	(void)side;
	seen.followed++;
	if (!seen.err)
		seen.is_followed = are_followed;
	return seen.err;
}

static void begin(uint32_t row)
{
	const struct probe_plan plan = {.cuda_events_row = row};

	memset(&seen, 0, sizeof(seen));
	cuda_events_begin(&events, &plan, NULL);
}

static void look(uint64_t now_s)
{
	cuda_events_look(&events, NULL, now_s * 1000000000);
}

static void events__are_probed_from_the_first_capture_on(void **state)
{
	(void)state;
	begin(5);
	assert_true(seen.is_held);
	look(1); /* nothing is loaded */
	seen.is_loaded = true;
	look(2);
	assert_true(seen.is_held);
	assert_int_equal(seen.held, 1);
	seen.captures = 1;
	look(3);
	assert_false(seen.is_held);
	/* The links are not there yet. */
	assert_false(seen.is_followed);
	seen.is_on = true;
	look(4);
	assert_true(seen.is_followed);
	/* Those of a process that has just begun are not. */
	seen.is_on = false;
	look(5);
	assert_false(seen.is_followed);
	seen.is_on = true;
	look(6);
	look(7);
	assert_true(seen.is_followed);
	assert_int_equal(seen.held, 2);
	assert_int_equal(seen.followed, 3);
}

static void events__are_left_alone_when_nothing_is_captured_any_more(void **state)
{
	(void)state;
	begin(5);
	seen.is_loaded = seen.is_on = true;
	seen.captures = 1;
	look(10);
	look(300);
	assert_true(seen.is_followed);
	seen.captures = 2;
	look(301);
	look(600);
	assert_true(seen.is_followed);
	look(602);
	assert_false(seen.is_followed);
	assert_true(seen.is_held);
	seen.captures = 3;
	look(603);
	assert_false(seen.is_held);
}

static void events__without_a_row_are_no_matter(void **state)
{
	(void)state;
	begin(PP_PROBES_MAX);
	seen.is_loaded = true;
	seen.captures = 7;
	look(1);
	assert_int_equal(seen.held, 0);
	assert_int_equal(seen.followed, 0);
}

static void errors__leave_all_as_it_is(void **state)
{
	(void)state;
	begin(5);
	seen.is_loaded = seen.is_on = true;
	seen.captures = 1;
	seen.err = -EPERM;
	look(1);
	assert_true(seen.is_held);
	seen.err = 0;
	look(2);
	assert_true(seen.is_followed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events__are_probed_from_the_first_capture_on),
		cmocka_unit_test(events__are_left_alone_when_nothing_is_captured_any_more),
		cmocka_unit_test(events__without_a_row_are_no_matter),
		cmocka_unit_test(errors__leave_all_as_it_is),
	};

	return cmocka_run_group_tests_name("agent/cuda_events", tests, NULL, NULL);
}
