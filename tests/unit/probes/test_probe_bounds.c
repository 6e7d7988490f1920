/* SPDX-License-Identifier: BSD-2-Clause */
/* The worker, CUDA's kernel side and the programs' clocks are the test's. */
#include "probes/probe_bounds.h"

#include <cmocka.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "attach/cuda_side.h"
#include "attach/probe_side.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/task.h"
#include "discover/process.h"
#include "discover/process_table.h"
#include "drain/table.h"
#include "options/options.h"
#include "probes/probe_plan.h"
#include "probes/probe_worker.h"
#include "windows/profiles.h"

#define PID 100
#define OTHER 200
#define UID 1000U
#define FULL 1000000U /* ppm */
#define HIT_NS 1000U
#define STEPPED_NS 3000U
#define RETURN_NS 2000U
#define ALLOC_END_NS 500U
#define LAUNCH_OWN_NS 90U
#define ROWS 6U

enum { PYTHON, LEAF, TIMED, COMMON, FREE, RARE };

static struct probe_row row[ROWS + PP_CUDA_LAUNCHES + 1];
static struct probe_plan plan;
static struct options options;
static struct probe_bounds bounds;
static struct probe_costs costs;
static uint64_t launch_on_ns[PP_CUDA_LAUNCHES], cpu_ns[2], delay_ns[2], now_ns;
static struct pp_cuda_hits launches[2];
static uint32_t share[PP_PROBES_MAX], price[PP_PROBES_MAX], leader[PP_PROBES_MAX];
static uint32_t bound_launches_from, shares_set;
static bool is_bound[PP_PROBES_MAX], has_side, lacks_costs, is_unknown;
static char comments[4096];
static uint32_t warnings, other_hits, gate_set, gates_set;

void probe_worker_bound(struct probe_worker *worker, uint32_t probe, uint32_t with)
{
	assert_ptr_equal(worker, &plan);
	is_bound[probe] = true;
	leader[probe] = with;
}

void probe_worker_bound_launches(struct probe_worker *worker, uint32_t first_probe)
{
	assert_ptr_equal(worker, &plan);
	bound_launches_from = first_probe;
}

void probe_worker_set_share(struct probe_worker *worker, uint32_t probe, uint32_t share_ppm,
			    uint32_t hit_ns)
{
	assert_ptr_equal(worker, &plan);
	share[probe] = share_ppm;
	price[probe] = hit_ns;
	shares_set++;
}

int probe_worker_get_costs(struct probe_worker *worker, struct probe_costs *ret_costs)
{
	assert_ptr_equal(worker, &plan);
	*ret_costs = costs;
	return lacks_costs ? -EAGAIN : 0;
}

uint64_t probe_worker_on_ns(struct probe_worker *worker, uint32_t probe, uint64_t at_ns)
{
	assert_int_equal(at_ns, now_ns);
	assert_ptr_equal(worker, &plan);
	assert_in_range(probe, ROWS, ROWS + PP_CUDA_LAUNCHES - 1);
	return launch_on_ns[probe - ROWS];
}

struct probe_worker_prices probe_worker_get_prices(struct probe_worker *worker)
{
	struct probe_worker_prices prices = {.alloc_end_ns = ALLOC_END_NS};

	assert_ptr_equal(worker, &plan);
	prices.of.hit_ns[PROBE_COST_EMULATED] = HIT_NS;
	prices.of.hit_ns[PROBE_COST_SINGLE_STEP] = STEPPED_NS;
	prices.of.return_ns = RETURN_NS;
	return prices;
}

static const struct cuda_side side = {.threads = 7, .thread_bytes = sizeof(struct pp_cuda_hits)};

const struct cuda_side *probe_worker_cuda(struct probe_worker *worker)
{
	assert_ptr_equal(worker, &plan);
	return has_side ? &side : NULL;
}

static const struct probe_side probes = {.payers = 8};

const struct probe_side *probe_worker_side(struct probe_worker *worker)
{
	assert_ptr_equal(worker, &plan);
	return &probes;
}

int probe_side_set_payer_gate(const struct probe_side *to, const struct pp_payer_key *key,
			      uint32_t gate)
{
	assert_ptr_equal(to, &probes);
	assert_int_equal(key->tgid, PID);
	assert_int_equal(key->probe, LEAF);
	gate_set = gate;
	gates_set++;
	return 0;
}

/* Each is another user's, where there are two. */
struct process *process_table_find_tgid(const struct process_table *table, uint32_t tgid)
{
	static struct process process;

	assert_ptr_equal(table, &row);
	if (is_unknown)
		return NULL;
	process = (struct process){
		.id.tgid = tgid, .is_user_known = true, .user = tgid == PID ? UID : UID + 1};
	return &process;
}

/* What process PID has hit, and the other one when there is one. */
static int read_payers(table_on_entry *on_entry, void *context)
{
	for (uint32_t i = 0; i < ROWS; i++) {
		const struct pp_payer_key key = {.tgid = PID, .probe = i},
					  others = {.tgid = OTHER, .probe = i};
		const struct pp_payer took = {.hits = (uint32_t)costs.hits[i].hits,
					      .ns = costs.hits[i].ns},
				      others_took = {.hits = other_hits};

		assert_int_equal(on_entry(context, &key, &took), 0);
		if (other_hits && i == LEAF)
			assert_int_equal(on_entry(context, &others, &others_took), 0);
	}
	return 0;
}

/* One thread of each process; the second process has none until it has hits. */
int table_read(int map_fd, size_t key_bytes, size_t value_bytes, table_on_entry *on_entry,
	       void *context)
{
	const uint64_t keys[2] = {(uint64_t)PID << 32 | (PID + 1), (uint64_t)OTHER << 32 | OTHER};

	if (map_fd == probes.payers)
		return read_payers(on_entry, context);
	assert_int_equal(map_fd, 7);
	assert_int_equal(key_bytes, sizeof(uint64_t));
	assert_int_equal(value_bytes, sizeof(struct pp_cuda_hits));
	for (size_t i = 0; i < 2; i++)
		if (!i || launches[i].of[0])
			assert_int_equal(on_entry(context, &keys[i], &launches[i]), 0);
	return 0;
}

int profiles_add_comment(struct profiles *profiles, const char *comment)
{
	assert_ptr_equal(profiles, &costs);
	snprintf(comments + strlen(comments), sizeof(comments) - strlen(comments), "%s\n", comment);
	return 0;
}

uint64_t process_cpu_ns(pid_t pid)
{
	return cpu_ns[pid == OTHER];
}

uint64_t process_delay_ns(pid_t pid)
{
	return delay_ns[pid == OTHER];
}

void log_line(enum log_level level, const char *format, ...)
{
	(void)format;
	assert_int_equal(level, LOG_LEVEL_WARN);
	warnings++;
}

/* A process of another user's maps the probed file. */
static uint64_t rows_of(const void *context, uint32_t file)
{
	assert_ptr_equal(context, &costs);
	return file == 77 ? 1ULL << LEAF : 0;
}

static struct mapping mapping = {.file = 77};
static struct process mapper = {
	.is_user_known = true, .user = UID + 1, .mapping = &mapping, .mapping_count = 1};

struct process *process_table_next(const struct process_table *table, const struct process *process)
{
	assert_ptr_equal(table, &row);
	return process ? NULL : &mapper;
}

static struct probe_bounds_users users = {.processes = (struct process_table *)&row,
					  .context = &costs};

static void begin(void)
{
	assert_int_equal(probe_bounds_init(&bounds, &options, &plan, (struct probe_worker *)&plan,
					   &users),
			 0);
}

static int set_up(void **state)
{
	static const char *const names[ROWS] = {"gc", "leaf", "timed", "malloc", "free", "mmap"};

	(void)state;
	memset(row, 0, sizeof(row));
	memset(&costs, 0, sizeof(costs));
	memset(launches, 0, sizeof(launches));
	memset(is_bound, 0, sizeof(is_bound));
	memset(launch_on_ns, 0, sizeof(launch_on_ns));
	memset(cpu_ns, 0, sizeof(cpu_ns));
	memset(delay_ns, 0, sizeof(delay_ns));
	options = (struct options){.slowdown_ppm = FULL / 10};
	plan = (struct probe_plan){.row = row,
				   .count = ROWS,
				   .alloc_row = COMMON,
				   .cuda_row = ROWS,
				   .cuda_launch_row = ROWS};
	for (uint32_t i = 0; i < ROWS; i++)
		row[i] = (struct probe_row){.name = names[i],
					    .place = i == PYTHON  ? PROBE_IN_PYTHON
						     : i < COMMON ? PROBE_IN_BINARY
								  : PROBE_IN_ANY,
					    .leg_count = 1};
	row[TIMED].leg_count = 2;
	row[TIMED].leg[1].is_return = true;
	for (uint32_t i = 0; i < PP_CUDA_LAUNCHES; i++)
		row[ROWS + i] = (struct probe_row){.name = i ? "launch dear" : "launch",
						   .place = PROBE_IN_DRIVER};
	now_ns = 1000 * NS_PER_SEC;
	has_side = lacks_costs = false;
	bound_launches_from = shares_set = warnings = 0;
	other_hits = gates_set = gate_set = 0;
	is_unknown = false;
	users.rows_of = NULL;
	mapper.user = UID + 1;
	comments[0] = '\0';
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	probe_bounds_release(&bounds);
	return 0;
}

/* A run of CUDA's launches, beside the other rows. */
static void begin_cuda(void)
{
	plan.count = ROWS + PP_CUDA_LAUNCHES;
	has_side = true;
	begin();
}

static void look_after(uint64_t ns)
{
	now_ns += ns;
	probe_bounds_look(&bounds, now_ns);
}

/* A second of a program that takes a CPU, in which the probe is on for its share and is hit so
 * often. */
static void second(uint32_t probe, uint32_t hits)
{
	costs.hits[probe].hits += hits;
	for (uint32_t i = 0; i < ROWS; i++)
		costs.on_ns[i] += NS_PER_SEC / 1000 * (share[i] / 1000);
	cpu_ns[0] += NS_PER_SEC;
	look_after(NS_PER_SEC);
}

static void all_on(void)
{
	for (uint32_t i = 0; i < PP_PROBES_MAX; i++)
		share[i] = FULL;
}

static void init__python_and_tracepoints_stay_on(void **state)
{
	(void)state;
	row[TIMED].place = PROBE_IN_KERNEL;
	begin();
	assert_false(is_bound[PYTHON]);
	assert_false(is_bound[TIMED]);
	assert_true(is_bound[LEAF] && is_bound[COMMON] && is_bound[FREE] && is_bound[RARE]);
	assert_int_equal(bound_launches_from, 0);
}

static void init__free_is_on_with_malloc_and_always_for_leaks(void **state)
{
	(void)state;
	begin();
	assert_int_equal(probe_bounds_leader(&bounds, LEAF), LEAF);
	assert_int_equal(probe_bounds_leader(&bounds, FREE), COMMON);
	assert_int_equal(leader[FREE], COMMON);
	assert_int_equal(probe_bounds_leader(&bounds, RARE), RARE);
	probe_bounds_release(&bounds);
	memset(is_bound, 0, sizeof(is_bound));
	options.leaks = true;
	begin();
	assert_int_equal(probe_bounds_leader(&bounds, FREE), FREE);
	assert_false(is_bound[FREE]);
	assert_true(is_bound[COMMON] && is_bound[RARE]);
}

static void look__cheap_probes_stay_on(void **state)
{
	(void)state;
	begin();
	all_on();
	probe_bounds_see_site(&bounds, LEAF, PROBE_COST_EMULATED);
	probe_bounds_add_process(&bounds, PID);
	look_after(0);
	second(LEAF, 1000);
	second(LEAF, 1000);
	assert_int_equal(share[LEAF], FULL);
	assert_int_equal(bounds.programs ? budget_now(bounds.programs)->least_ppm : 0, FULL);
}

/* 400,000 hits of 1 us take 400 ms, and a tenth of a second of one CPU is allowed. */
static void look__dear_probes_are_thinned(void **state)
{
	const struct budget_now *now;

	(void)state;
	begin();
	all_on();
	probe_bounds_see_site(&bounds, LEAF, PROBE_COST_EMULATED);
	probe_bounds_add_process(&bounds, PID);
	look_after(0);
	second(LEAF, 400000);
	assert_int_equal(share[LEAF], FULL / 4);
	assert_int_equal(price[LEAF], HIT_NS);
	now = budget_now(bounds.programs);
	assert_int_equal(now->least_ppm, share[LEAF]);
	assert_int_equal(now->cost_ppm, FULL * 4 / 10);
	/* Those that stay on are never set; those without a site are not thinned. */
	assert_int_equal(share[TIMED], FULL);
	assert_int_equal(price[PYTHON], 0);
}

static void look__first_probe_is_thinned_as_any_other(void **state)
{
	(void)state;
	row[PYTHON].place = PROBE_IN_BINARY;
	begin();
	all_on();
	probe_bounds_see_site(&bounds, PYTHON, PROBE_COST_EMULATED);
	probe_bounds_add_process(&bounds, PID);
	look_after(0);
	second(PYTHON, 400000);
	assert_int_equal(share[PYTHON], FULL / 4);
	assert_int_equal(price[PYTHON], HIT_NS);
}

static void look__dearer_sites_and_returns_have_their_price(void **state)
{
	(void)state;
	begin();
	all_on();
	probe_bounds_see_site(&bounds, LEAF, PROBE_COST_SINGLE_STEP);
	probe_bounds_see_site(&bounds, LEAF, PROBE_COST_EMULATED);
	probe_bounds_see_site(&bounds, TIMED, PROBE_COST_EMULATED);
	probe_bounds_see_site(&bounds, COMMON, PROBE_COST_EMULATED);
	/* What stays on is accounted for, too. */
	probe_bounds_see_site(&bounds, PYTHON, PROBE_COST_EMULATED);
	probe_bounds_add_process(&bounds, PID);
	look_after(0);
	costs.hits[PYTHON].hits = 30;
	second(LEAF, 200000);
	assert_int_equal(budget_now(bounds.programs)->hits[PYTHON], 30);
	assert_int_equal(budget_now(bounds.programs)->cost_ppm,
			 (200000 * STEPPED_NS + 30 * HIT_NS) / 1000);
	assert_int_equal(price[LEAF], STEPPED_NS);
	assert_int_equal(price[TIMED], (HIT_NS + RETURN_NS) / 2);
	assert_int_equal(price[COMMON], HIT_NS + ALLOC_END_NS);
}

static void look__once_a_second_and_seldom_where_nothing_is_bounded(void **state)
{
	(void)state;
	begin();
	all_on();
	probe_bounds_see_site(&bounds, LEAF, PROBE_COST_EMULATED);
	probe_bounds_add_process(&bounds, PID);
	lacks_costs = true;
	look_after(0);
	assert_int_equal(bounds.looked_ns, 0);
	lacks_costs = false;
	look_after(0);
	costs.hits[LEAF].hits += 900000;
	cpu_ns[0] += NS_PER_SEC;
	look_after(NS_PER_SEC - 1);
	assert_int_equal(shares_set, 0);
	costs.on_ns[LEAF] = NS_PER_SEC;
	look_after(1);
	assert_true(shares_set > 0);
	probe_bounds_release(&bounds);
	plan.count = 1;
	begin();
	look_after(0);
	look_after(9 * NS_PER_SEC);
	assert_int_equal(bounds.looked_ns, now_ns - 9 * NS_PER_SEC);
	look_after(NS_PER_SEC);
	assert_int_equal(bounds.looked_ns, now_ns);
}

/* 400 ms of the same hits: a tenth of the 0.6 s without them, and of the second at least that a
 * program has that sleeps. */
static void look__time_is_that_of_the_process(void **state)
{
	(void)state;
	begin();
	all_on();
	probe_bounds_see_site(&bounds, LEAF, PROBE_COST_EMULATED);
	probe_bounds_add_process(&bounds, PID);
	probe_bounds_add_process(&bounds, OTHER);
	probe_bounds_add_process(&bounds, OTHER);
	assert_int_equal(bounds.process_count, 2);
	look_after(0);
	cpu_ns[0] += NS_PER_SEC;
	second(LEAF, 400000);
	assert_in_range(share[LEAF], FULL * 4 / 10 - 1, FULL * 4 / 10);
	probe_bounds_drop_process(&bounds, PID);
	assert_int_equal(bounds.process_count, 1);
	assert_int_equal(bounds.process[0].pid, OTHER);
	probe_bounds_drop_process(&bounds, PID);
	assert_int_equal(bounds.process_count, 1);
}

/* Another user's program hits the same probe seldom: that stays on, and who hits it without pause
 * is thinned alone. */
static void look__one_user_does_not_thin_another_ones_hits(void **state)
{
	(void)state;
	begin();
	all_on();
	probe_bounds_see_site(&bounds, LEAF, PROBE_COST_EMULATED);
	other_hits = 1;
	look_after(0);
	for (uint32_t i = 0; i < 3; i++) {
		other_hits += 1500;
		second(LEAF, 400000);
		assert_int_equal(share[LEAF], FULL);
		assert_int_equal(gate_set, 65536 / 4);
	}
	assert_int_equal(gates_set, 1);
	assert_int_equal(warnings, 1);
	/* It has stopped. */
	for (uint32_t i = 0; i < 20; i++) {
		other_hits += 1500;
		second(LEAF, 0);
	}
	assert_int_equal(gate_set, 0);
	assert_int_equal(warnings, 1);
}

/* A program that computes a tenth of a second and waits for a CPU meanwhile has that tenth; one
 * that sleeps has the whole second. */
static void look__waiting_for_a_cpu_is_no_time_of_a_program(void **state)
{
	uint32_t late;

	(void)state;
	begin();
	all_on();
	probe_bounds_see_site(&bounds, LEAF, PROBE_COST_EMULATED);
	probe_bounds_add_process(&bounds, PID);
	look_after(0);
	cpu_ns[0] -= NS_PER_SEC * 9 / 10;
	delay_ns[0] += NS_PER_SEC * 9 / 10;
	second(LEAF, 50000);
	late = share[LEAF];
	assert_int_equal(budget_now(bounds.programs)->cost_ppm, FULL / 2);
	/* What it waited then is over. */
	cpu_ns[0] -= NS_PER_SEC * 9 / 10;
	second(LEAF, 50000);
	assert_int_equal(budget_now(bounds.programs)->cost_ppm, FULL / 20);
	probe_bounds_release(&bounds);
	begin();
	all_on();
	probe_bounds_see_site(&bounds, LEAF, PROBE_COST_EMULATED);
	probe_bounds_add_process(&bounds, PID);
	look_after(0);
	cpu_ns[0] -= NS_PER_SEC * 9 / 10;
	second(LEAF, 50000);
	assert_true(late < FULL / 2);
	assert_int_equal(share[LEAF], FULL);
}

/* Of a process that comes later, what was before does not count. */
static void look__time_of_a_process_begins_when_it_is_added(void **state)
{
	(void)state;
	for (unsigned int is_late = 0; is_late < 2; is_late++) {
		probe_bounds_release(&bounds);
		begin();
		all_on();
		probe_bounds_see_site(&bounds, LEAF, PROBE_COST_EMULATED);
		probe_bounds_add_process(&bounds, PID);
		look_after(0);
		cpu_ns[1] += is_late ? 0 : 100 * NS_PER_SEC;
		delay_ns[1] += is_late ? 5 * NS_PER_SEC : 0;
		probe_bounds_add_process(&bounds, OTHER);
		if (is_late)
			cpu_ns[0] -= NS_PER_SEC * 9 / 10;
		second(LEAF, is_late ? 50000 : 400000);
		assert_int_equal(share[LEAF], is_late ? FULL : FULL / 4);
	}
}

/* Launches have an accounting of their own. */
static void look__sites_of_the_driver_are_none_of_the_programs(void **state)
{
	(void)state;
	begin_cuda();
	all_on();
	probe_bounds_see_site(&bounds, ROWS, PROBE_COST_EMULATED);
	probe_bounds_see_site(&bounds, RARE, PROBE_COST_EMULATED);
	look_after(0);
	costs.hits[ROWS].hits += 400000;
	costs.hits[RARE].hits += 1000;
	look_after(NS_PER_SEC);
	assert_int_equal(budget_now(bounds.programs)->cost_ppm, 1000);
}

/* Nor the hits that are to come: once the other one maps the file. */
static void look__other_users_programs_keep_probes_on(void **state)
{
	(void)state;
	users.rows_of = rows_of;
	mapper.user = UID;
	begin();
	all_on();
	probe_bounds_see_site(&bounds, LEAF, PROBE_COST_EMULATED);
	look_after(0);
	second(LEAF, 400000);
	second(LEAF, 100000);
	assert_in_range(share[LEAF], FULL / 5, FULL / 4);
	mapper.user = UID + 1;
	second(LEAF, 100000);
	assert_int_equal(share[LEAF], FULL);
	assert_in_range(gate_set, 65536 / 5, 65536 / 4);
}

static void describe__hits_prices_and_scaling_since_the_last_one(void **state)
{
	(void)state;
	begin();
	all_on();
	probe_bounds_see_site(&bounds, LEAF, PROBE_COST_EMULATED);
	probe_bounds_see_site(&bounds, PYTHON, PROBE_COST_EMULATED);
	assert_int_equal(probe_bounds_describe(&bounds, (struct profiles *)&costs, now_ns), 0);
	assert_string_equal(comments, "");
	costs.hits[LEAF].hits = 77; /* before the first look: nothing was attached yet */
	costs.hits[PYTHON].hits = 33;
	look_after(0);
	costs.hits[LEAF].hits += 100;
	costs.hits[LEAF].ns += 20000;
	costs.hits[PYTHON].hits += 3;
	costs.on_ns[LEAF] += NS_PER_SEC;
	now_ns += 4 * NS_PER_SEC;
	assert_int_equal(probe_bounds_describe(&bounds, (struct profiles *)&costs, now_ns), 0);
	assert_string_equal(comments, "probe=gc hits=3 ns_per_hit=1000\n"
				      "probe=leaf hits=100 ns_per_hit=1200 on=0.250\n");
	comments[0] = '\0';
	costs.on_ns[LEAF] += NS_PER_SEC;
	now_ns += NS_PER_SEC;
	assert_int_equal(probe_bounds_describe(&bounds, (struct profiles *)&costs, now_ns), 0);
	assert_string_equal(comments, "probe=gc hits=0 ns_per_hit=1000\n"
				      "probe=leaf hits=0 ns_per_hit=1000\n");
	comments[0] = '\0';
	costs.hits[LEAF].hits += 10;
	costs.hits[LEAF].ns += 5000;
	costs.on_ns[LEAF] += NS_PER_SEC / 4;
	now_ns += NS_PER_SEC;
	assert_int_equal(probe_bounds_describe(&bounds, (struct profiles *)&costs, now_ns), 0);
	assert_string_equal(comments, "probe=gc hits=0 ns_per_hit=1000\n"
				      "probe=leaf hits=10 ns_per_hit=1500 on=0.250\n");
}

static void second_of_launches_by(uint32_t process, uint32_t count)
{
	launches[process].of[PP_CUDA_HIT_LAUNCH] += count;
	launch_on_ns[0] += NS_PER_SEC;
	launch_on_ns[1] += NS_PER_SEC;
	look_after(NS_PER_SEC);
}

static void second_of_launches(uint32_t count)
{
	second_of_launches_by(0, count);
}

static void launches__of_one_process_are_thinned_and_told(void **state)
{
	(void)state;
	begin_cuda();
	all_on();
	assert_int_equal(bound_launches_from, ROWS);
	probe_bounds_add_process(&bounds, OTHER);
	probe_bounds_add_process(&bounds, PID);
	look_after(0);
	/* 200,000 of 1,090 ns: 218 ms of a CPU, of which 100 are allowed, and 1 s is saved. */
	for (uint32_t i = 0; i < 8; i++)
		second_of_launches(200000);
	assert_int_equal(share[ROWS], FULL);
	launches[0].of[PP_CUDA_HIT_LAUNCH] += 200000;
	launch_on_ns[0] += NS_PER_SEC;
	launch_on_ns[1] += NS_PER_SEC;
	look_after(NS_PER_SEC - 1);
	assert_int_equal(warnings, 0);
	look_after(1);
	assert_in_range(share[ROWS], FULL * 4 / 10, FULL / 2);
	assert_int_equal(price[ROWS], HIT_NS + LAUNCH_OWN_NS);
	assert_int_equal(price[ROWS + 1], STEPPED_NS + LAUNCH_OWN_NS);
	assert_int_equal(warnings, 1);
	assert_int_equal(bounds.warned_tgid, PID);
	assert_int_equal(budget_now(bounds.launches)->payer.uid, UID);
	second_of_launches(200000);
	assert_int_equal(warnings, 1);
}

static void launches__payer_is_told_with_its_user(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		set_up(state);
		begin_cuda();
		all_on();
		launches[1].of[0] = 1;
		look_after(0);
		for (unsigned int second = 0; second < 10; second++)
			second_of_launches_by(i, 200000);
		assert_int_equal(budget_now(bounds.launches)->payer.tgid, i ? OTHER : PID);
		assert_int_equal(budget_now(bounds.launches)->payer.uid, UID + i);
		/* One of whom nobody knows. */
		is_unknown = true;
		second_of_launches_by(i, 200000);
		assert_int_equal(budget_now(bounds.launches)->payer.uid, UINT32_MAX);
		probe_bounds_release(&bounds);
	}
}

/* What they take is measured, and bursts of one that launches little altogether are no excess. */
static void launches__cost_what_some_hits_took(void **state)
{
	(void)state;
	begin_cuda();
	all_on();
	look_after(0);
	launches[0].timed = 100;
	launches[0].ns = 100 * 400;
	for (uint32_t i = 0; i < 30; i++)
		second_of_launches(i % 10 ? 0 : 600000);
	assert_int_equal(share[ROWS], FULL);
	assert_int_equal(probe_bounds_describe(&bounds, (struct profiles *)&costs, now_ns), 0);
	assert_non_null(
		strstr(comments, "probe=launch hits=1800000 ns_per_hit=1400 counts=exact\n"));
	launches[0].ns = 100 * 1000;
	for (uint32_t i = 0; i < 30; i++)
		second_of_launches(100000);
	assert_int_equal(price[ROWS], HIT_NS + 1000);
	assert_in_range(share[ROWS], FULL * 4 / 10, FULL * 6 / 10);
}

/* Each of two processes may take as much as one. */
static void launches__two_processes_do_not_add_up(void **state)
{
	(void)state;
	begin_cuda();
	all_on();
	launches[1].of[0] = 1;
	look_after(0);
	launches[0].of[PP_CUDA_HIT_LAUNCH] += 60000;
	launches[1].of[PP_CUDA_HIT_LAUNCH] += 60000;
	launch_on_ns[0] += NS_PER_SEC;
	launch_on_ns[1] += NS_PER_SEC;
	look_after(NS_PER_SEC);
	assert_int_equal(share[ROWS], FULL);
	assert_int_equal(warnings, 0);
}

static void launches__without_the_kernel_side_nothing_is_looked_at(void **state)
{
	(void)state;
	begin_cuda();
	has_side = false;
	look_after(0);
	assert_int_equal(bounds.launches_looked_ns, 0);
	assert_int_equal(probe_bounds_describe(&bounds, (struct profiles *)&costs, now_ns), 0);
	assert_string_equal(comments, "");
}

static void launches__are_described_where_there_were_hits(void **state)
{
	(void)state;
	begin_cuda();
	all_on();
	launch_on_ns[0] = 5 * NS_PER_SEC; /* before the first look */
	look_after(0);
	launches[0].of[PP_CUDA_HIT_LAUNCH] += 1000;
	launch_on_ns[0] += NS_PER_SEC / 2;
	launch_on_ns[1] += NS_PER_SEC;
	look_after(NS_PER_SEC);
	assert_int_equal(probe_bounds_describe(&bounds, (struct profiles *)&costs, now_ns), 0);
	assert_string_equal(comments, "probe=launch hits=1000 ns_per_hit=1090 on=0.500\n");
	comments[0] = '\0';
	launches[0].of[PP_CUDA_HIT_LAUNCH_DEAR] += 20;
	second_of_launches(0);
	assert_int_equal(probe_bounds_describe(&bounds, (struct profiles *)&costs, now_ns), 0);
	assert_string_equal(comments, "probe=launch dear hits=20 ns_per_hit=3090 counts=exact\n");
	comments[0] = '\0';
	launches[0].of[PP_CUDA_HIT_LAUNCH] += 3;
	launch_on_ns[0] += NS_PER_SEC / 4;
	launch_on_ns[1] += NS_PER_SEC;
	look_after(NS_PER_SEC);
	assert_int_equal(probe_bounds_describe(&bounds, (struct profiles *)&costs, now_ns), 0);
	assert_string_equal(comments, "probe=launch hits=3 ns_per_hit=1090 on=0.250\n");
	comments[0] = '\0';
	now_ns++;
	assert_int_equal(probe_bounds_describe(&bounds, (struct profiles *)&costs, now_ns), 0);
	assert_string_equal(comments, "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(init__python_and_tracepoints_stay_on),
		TEST(init__free_is_on_with_malloc_and_always_for_leaks),
		TEST(look__cheap_probes_stay_on),
		TEST(look__dear_probes_are_thinned),
		TEST(look__first_probe_is_thinned_as_any_other),
		TEST(look__dearer_sites_and_returns_have_their_price),
		TEST(look__once_a_second_and_seldom_where_nothing_is_bounded),
		TEST(look__time_is_that_of_the_process),
		TEST(look__one_user_does_not_thin_another_ones_hits),
		TEST(look__other_users_programs_keep_probes_on),
		TEST(look__waiting_for_a_cpu_is_no_time_of_a_program),
		TEST(look__time_of_a_process_begins_when_it_is_added),
		TEST(look__sites_of_the_driver_are_none_of_the_programs),
		TEST(describe__hits_prices_and_scaling_since_the_last_one),
		TEST(launches__of_one_process_are_thinned_and_told),
		TEST(launches__payer_is_told_with_its_user),
		TEST(launches__cost_what_some_hits_took),
		TEST(launches__two_processes_do_not_add_up),
		TEST(launches__without_the_kernel_side_nothing_is_looked_at),
		TEST(launches__are_described_where_there_were_hits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
