/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Full and busy tables and rings, nested walks: what is lost is counted. */
#include "sample.h"

static void loss__full_ring_still_counts_and_sends_later(void **state)
{
	struct pp_count count;

	(void)state;
	begin();
	host->ring_is_full = true;
	sample_now();
	assert_int_equal(host->losses[PP_LOSS_RING_FULL], 1);
	the_key(0, &count);
	assert_int_equal(count.samples, 1);
	host->ring_is_full = false;
	sample_now();
	assert_int_equal(host->record_count, 1);
	the_key(0, &count);
	assert_int_equal(count.samples, 2);
}

static void loss__full_and_busy_tables_are_told_apart(void **state)
{
	(void)state;
	begin();
	host->counts[0].room = 0;
	sample_now();
	assert_int_equal(host->losses[PP_LOSS_COUNTS_FULL], 1);
	host->counts[0].refuses = -EBUSY;
	sample_now();
	assert_int_equal(host->losses[PP_LOSS_COUNTS_BUSY], 1);
	assert_int_equal(host->losses[PP_LOSS_COUNTS_FULL], 1);
	assert_int_equal(host->losses[PP_LOSS_COARSE_FULL], 0);
}

/* Its process keeps the amount; where that finds no room either, the machine does. */
static void full__tables_lose_stacks_and_no_amount(void **state)
{
	const struct pp_count_key *coarse = (const void *)host->coarse[0].entry[0].key;
	const struct pp_count *count = (const void *)host->coarse[0].entry[0].value;
	const uint32_t at = pp_rest_index(PP_KIND_CPU, 0, 0);

	(void)state;
	begin();
	host->counts[0].room = 0;
	sample_now();
	sample_now();
	assert_true(host->coarse[0].entry[0].is_taken);
	assert_int_equal(coarse->user_stack, PP_STACK_OTHERS);
	assert_int_equal(coarse->kernel_stack, 0);
	assert_int_equal(coarse->id.tgid, 70);
	assert_int_equal(coarse->tid, 0);
	assert_int_equal(coarse->flags, 0);
	assert_int_equal(coarse->kind, PP_KIND_CPU);
	assert_int_equal(count->samples, 2);
	assert_int_equal(count->weight, 2 * PERIOD);
	host->coarse[0].entry[0].is_taken = false;
	host->coarse[0].refuses = -EBUSY;
	sample_now();
	assert_int_equal(host->losses[PP_LOSS_COARSE_FULL], 1);
	assert_int_equal(host->rest[at].samples, 1);
	assert_int_equal(host->rest[at].weight, PERIOD);
	assert_int_equal(pp_rest_key(at).kind, PP_KIND_CPU);
}

/* Once, and again when the agent has emptied it. */
static void full__half_of_a_table_is_told(void **state)
{
	struct pp_fill *fill = &host->fill[pp_fill_index(PP_TABLE_SAMPLES, 0)];
	const struct pp_event *event;
	uint32_t told = 0;

	(void)state;
	begin();
	fill->half = 2;
	for (uint32_t i = 0; i < 4; i++) {
		host->task.pid = 80 + i;
		sample_now();
		assert_int_equal(fill->rows, i + 1);
		assert_int_equal(fill->is_told, i > 0);
	}
	for (uint32_t i = 0; i < host->record_count; i++) {
		event = host->record[i].data;
		if (host->record[i].ring != &events)
			continue;
		told += event->type == PP_EVENT_TABLE;
		assert_int_equal(host->record[i].flags, BPF_RB_FORCE_WAKEUP);
	}
	assert_int_equal(told, 1);
}

static void loss__walks_nested_too_deeply(void **state)
{
	(void)state;
	begin();
	take_scratch(true);
	assert_int_equal(on_cpu_sample(&sampled), 0);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
	for (uint32_t i = 0; i < PP_WALK_LEVELS; i++)
		assert_int_equal(host->scratch_claims.is_taken[i], 1);
	assert_int_equal(count_keys(0), 0);
}

/* It came online just now. */
static void loss__cpu_without_memory_for_walks(void **state)
{
	(void)state;
	begin();
	host->cpu_place = 0;
	assert_int_equal(on_cpu_sample(&sampled), 0);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
	assert_int_equal(count_keys(0), 0);
	host->cpu_place = 1;
	assert_int_equal(on_cpu_sample(&sampled), 0);
	assert_int_equal(host->losses[PP_LOSS_NO_SCRATCH], 1);
	assert_int_equal(count_keys(0), 1);
}

static void loss__deep_stack_tells_of_omitted_frames(void **state)
{
	const struct pp_stack_record *record;
	struct pp_count count;

	(void)state;
	begin();
	for (uint64_t at = SP + 8; at < STACK + STACK_BYTES; at += 16)
		put_word(at, library_pc(1));
	sample_now();
	assert_int_equal(stop_of(the_key(0, &count)), PP_STOP_MAX_STEPS);
	record = host->record[0].data;
	assert_int_equal(record->native_stored, PP_MAX_FRAMES);
	assert_int_equal(record->native_count, PP_MAX_STEPS);
	assert_int_equal(host->losses[PP_LOSS_FRAMES_OMITTED], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(loss__full_ring_still_counts_and_sends_later),
		host_test(loss__full_and_busy_tables_are_told_apart),
		host_test(full__tables_lose_stacks_and_no_amount),
		host_test(full__half_of_a_table_is_told),
		host_test(loss__walks_nested_too_deeply),
		host_test(loss__cpu_without_memory_for_walks),
		host_test(loss__deep_stack_tells_of_omitted_frames),
	};

	return cmocka_run_group_tests_name("bpf/sample_losses", tests, NULL, NULL);
}
