/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A walk's memory is used again: what a sample finds there from the one before must not show. */
#define HOST_WHOLE_PROGRAM
#include "host.h"

#define SP (STACK + 0x1000) /* of the leaf */
#define USER_CS 0x33

/* What one sample left behind. */
struct left {
	struct host_hash counts[2];
	uint64_t losses[PP_LOSS_COUNT];
	struct host_record record[4];
	uint32_t record_count;
};

static void take_left(struct left *left)
{
	memcpy(left->counts, host->counts, sizeof(left->counts));
	memcpy(left->losses, host->losses, sizeof(left->losses));
	left->record_count = host->record_count;
	assert_true(host->record_count <= sizeof(left->record) / sizeof(left->record[0]));
	memcpy(left->record, host->record, host->record_count * sizeof(left->record[0]));
	host->record_count = 0; /* their bytes are ours now */
}

/* One sample of a fresh machine, whose walks have each byte set to `filling`. */
static void sample_once(uint64_t rip, uint64_t cs, uint32_t kernel_frames, int filling,
			struct left *left)
{
	static const struct pp_process_id id = {.tgid = 70, .generation = 3};
	const struct pp_process_context context = {
		.map_set = 1, .map_chunks = 1, .map_version = 1, .flags = PP_CONTEXT_MATCHES};
	struct bpf_perf_event_data sampled = {.sample_period = 10101010};

	host_teardown(NULL);
	host_setup(NULL);
	host->task = (struct task_struct){.tgid = 70, .pid = 71, .comm = "worker"};
	host->config =
		(struct pp_config){.epoch = 1, .incomplete_tokens = 4, .sample_budget_ns = 100000};
	bpf_map_update_elem(&processes, &id.tgid, &id.generation, BPF_ANY);
	bpf_map_update_elem(&contexts, &id, &context, BPF_ANY);
	sampled.regs.cs = cs;
	sampled.regs.rip = rip;
	sampled.regs.rsp = SP;
	host->kernel_frames = kernel_frames;
	host->kernel_stack[0] = 0xffffffff81000000;
	*library_rule(1) = rule_sp(16);
	put_word(SP + 8, library_pc(2));
	memset(&host->walk, filling, sizeof(host->walk));
	host->walk.is_identified = 0; /* the process is looked up when this is not set */
	host->walk.zero = 0;
	assert_int_equal(on_cpu_sample(&sampled), 0);
	take_left(left);
}

/* The head of a Python frame says nothing unless Python's walk ran out of time. */
static void clear_unused(struct host_record *record)
{
	struct pp_incomplete_record *incomplete = record->data;

	if (incomplete->record.type == PP_RECORD_INCOMPLETE &&
	    incomplete->py_stop != PP_PY_STOP_MAX_TIME)
		memset(incomplete->frame_head, 0, sizeof(incomplete->frame_head));
}

static void expect_same(uint64_t rip, uint64_t cs, uint32_t kernel_frames, int filling)
{
	static struct left fresh, used;

	sample_once(rip, cs, kernel_frames, 0, &fresh);
	sample_once(rip, cs, kernel_frames, filling, &used);
	assert_int_equal(used.record_count, fresh.record_count);
	assert_memory_equal(used.losses, fresh.losses, sizeof(fresh.losses));
	assert_memory_equal(used.counts, fresh.counts, sizeof(fresh.counts));
	for (uint32_t i = 0; i < fresh.record_count; i++) {
		assert_int_equal(used.record[i].size, fresh.record[i].size);
		clear_unused(&fresh.record[i]);
		clear_unused(&used.record[i]);
		assert_memory_equal(used.record[i].data, fresh.record[i].data,
				    fresh.record[i].size);
		free(used.record[i].data);
		free(fresh.record[i].data);
	}
}

static void sample__nothing_of_the_walk_before_shows(void **state)
{
	static const struct {
		uint64_t rip, cs;
		uint32_t kernel_frames;
	} samples[] = {
		{LIBRARY + FUNCTION_BYTES + 0x10, USER_CS, 0}, /* a whole stack */
		{0x1234, USER_CS, 0},			       /* an incomplete one */
		{LIBRARY + FUNCTION_BYTES + 0x10, 0x10, 1},    /* in the kernel */
		{LIBRARY + FUNCTION_BYTES + 0x10, 0x10, 0},    /* without a kernel stack */
	};
	static const int fillings[] = {0x01, 0xa5, 0xff};

	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		for (size_t k = 0; k < sizeof(fillings) / sizeof(fillings[0]); k++)
			expect_same(samples[i].rip, samples[i].cs, samples[i].kernel_frames,
				    fillings[k]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(sample__nothing_of_the_walk_before_shows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
