/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A machine on which all of bpf/sample_cpu.bpf.c runs: from the perf event to rings and counters.
 * Include it once, first, in each program. */
#ifndef TESTS_BPF_HOST_SAMPLE_H
#define TESTS_BPF_HOST_SAMPLE_H

#define HOST_WHOLE_PROGRAM
#include "host.h"

#define SP (STACK + 0x1000) /* of the leaf */
#define USER_CS 0x33
#define PERIOD 10101010
#define SAMPLE_BUDGET_NS 100000 /* 1 % */

static struct bpf_perf_event_data sampled;

/* A thread of process 70 in the library's function 1, called by function 2. */
static inline void begin(void)
{
	static const struct pp_process_id id = {.tgid = 70, .generation = 3};
	const struct pp_process_context context = {
		.map_set = 1, .map_chunks = 1, .map_version = 1, .flags = PP_CONTEXT_MATCHES};

	host->task = (struct task_struct){.tgid = 70, .pid = 71, .comm = "worker"};
	host->config = (struct pp_config){
		.epoch = 1, .incomplete_tokens = 4, .sample_budget_ns = SAMPLE_BUDGET_NS};
	bpf_map_update_elem(&processes, &id.tgid, &id.generation, BPF_ANY);
	bpf_map_update_elem(&contexts, &id, &context, BPF_ANY);
	memset(&sampled, 0, sizeof(sampled));
	sampled.sample_period = PERIOD;
	sampled.regs.cs = USER_CS;
	sampled.regs.rip = library_pc(1);
	sampled.regs.rsp = SP;
	*library_rule(1) = rule_sp(16);
	put_word(SP + 8, library_pc(2));
}

static inline void sample_now(void)
{
	assert_int_equal(on_cpu_sample(&sampled), 0);
	for (uint32_t i = 0; i < PP_WALK_LEVELS; i++)
		assert_int_equal(host->scratch_claims.is_taken[i], 0);
}

/* The only counter of a window. */
static inline const struct pp_count_key *the_key(uint32_t window, struct pp_count *ret_count)
{
	const struct pp_count_key *found = NULL;

	for (uint32_t i = 0; i < HOST_ENTRIES; i++) {
		struct host_entry *entry = &host->counts[window].entry[i];

		if (!entry->is_taken)
			continue;
		assert_null(found);
		found = (const struct pp_count_key *)entry->key;
		memcpy(ret_count, entry->value, sizeof(*ret_count));
	}
	assert_non_null(found);
	return found;
}

static inline uint32_t count_keys(uint32_t window)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < HOST_ENTRIES; i++)
		count += host->counts[window].entry[i].is_taken;
	return count;
}

static inline uint32_t stop_of(const struct pp_count_key *key)
{
	return key->flags >> PP_COUNT_STOP_SHIFT & 0xff;
}

#endif
