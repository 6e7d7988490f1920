/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc, the kernel side and the other stages are stand-ins, so that each figure is known. */
#include "agent/window_facts.h"

#include <cmocka.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/naming.h"
#include "agent/progress.h"
#include "agent/stack_intake.h"
#include "agent/tables.h"
#include "attach/context_table.h"
#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/user_quota.h"
#include "discover/process_table.h"
#include "drain/dictionary.h"
#include "drain/incomplete_queue.h"
#include "drain/ring.h"
#include "drain/text_table.h"
#include "files/client.h"
#include "options/options.h"
#include "peek/client.h"
#include "probes/probes.h"
#include "processes/identities.h"
#include "processes/process_watch.h"
#include "profile/comments.h"
#include "store/keeper.h"
#include "store/output.h"
#include "unwind/row_store.h"
#include "windows/source.h"

static const char *host, *statm;
static uint64_t losses[PP_LOSS_COUNT];
static struct pp_times times[PP_PROGRAM_COUNT];
static struct dictionary_stats dictionary;
static struct tables tables;
static struct summary summary;
static struct window_facts facts;
static char *text; /* of the last comment */

int read_file(const char *path, size_t max_bytes, char **ret_text, size_t *ret_size)
{
	const char *content = !strcmp(path, "/proc/stat") ? host : statm;

	if (!strcmp(path, "/proc/self/statm"))
		assert_int_equal(max_bytes, 256); /* seven numbers */
	else
		assert_true(max_bytes >= 1 << 20);
	assert_true(!ret_size);
	assert_true(!strcmp(path, "/proc/stat") || !strcmp(path, "/proc/self/statm"));
	if (!content)
		return -EACCES;
	*ret_text = strdup(content);
	return *ret_text ? 0 : -ENOMEM;
}

int getrusage(__rusage_who_t who, struct rusage *usage)
{
	assert_int_equal(who, RUSAGE_SELF);
	*usage = (struct rusage){.ru_utime = {.tv_sec = 1, .tv_usec = 250000},
				 .ru_stime = {.tv_sec = 2, .tv_usec = 500}};
	return 0;
}

int kernel_side_get_losses(const struct kernel_side *side, uint64_t ret_losses[PP_LOSS_COUNT])
{
	(void)side;
	memcpy(ret_losses, losses, sizeof(losses));
	return 0;
}

int kernel_side_get_times(const struct kernel_side *side,
			  struct pp_times ret_times[PP_PROGRAM_COUNT])
{
	(void)side;
	memcpy(ret_times, times, sizeof(times));
	return 0;
}

void dictionary_get_stats(const struct dictionary *stats_of, struct dictionary_stats *ret_stats)
{
	(void)stats_of;
	*ret_stats = dictionary;
}

void keeper_get_stats(struct keeper *keeper, struct keeper_stats *ret_stats)
{
	(void)keeper;
	*ret_stats = (struct keeper_stats){.kept = 37, .failed = 38, .left_out = 39};
}

static uint64_t source_cpu_ns;

static const struct sources of_run;

/* Behind what the kernel side has lost. */
void sources_summarize(const struct sources *sources, struct summary *of)
{
	assert_ptr_equal(sources, &of_run);
	of->loss[PP_LOSS_THREADS_TORN] = 21;
	of->loss[PP_LOSS_SWITCHES_UNSEEN] += 22;
	of->own_cpu_ns += source_cpu_ns;
}

void identities_get_stats(const struct identities *identities, struct identities_stats *ret_stats)
{
	(void)identities;
	*ret_stats = (struct identities_stats){.refused = 34, .unread = 35, .ended = 36};
}

uint64_t text_table_refused(const struct text_table *table)
{
	(void)table;
	return 37;
}

void naming_count(const struct naming *naming, uint64_t loss[PP_LOSS_COUNT])
{
	(void)naming;
	loss[PP_LOSS_PERF_MAPS_REFUSED] = 24;
	loss[PP_LOSS_CODES_REFUSED] = 33;
	loss[PP_LOSS_FILES_REFUSED] = 28;
}

void output_count(const struct output *output, uint64_t loss[PP_LOSS_COUNT])
{
	(void)output;
	loss[PP_LOSS_PROFILES_DROPPED] = 41;
}

uint64_t ring_bad_count(const struct ring *ring)
{
	(void)ring;
	return 40;
}

void process_watch_count(const struct process_watch *watch, uint64_t loss[PP_LOSS_COUNT])
{
	(void)watch;
	loss[PP_LOSS_RECORDS_BAD] += 2;
}

/* Of users' shares: who was refused how often. */
static struct user_quota refused_12 = {.refused = 12}, refused_17 = {.refused = 17},
			 stacks_12 = {.refused = 12}, profile_17 = {.refused = 17}, pages, pythons,
			 labels, sets, mappings;
static struct user_quota *telling; /* has a user of whom nothing was told before */
static struct file_unopened unopened;
static char logged[512];
static unsigned int log_lines;

bool user_quota_tell(struct user_quota *quota, uint32_t *ret_uid)
{
	if (quota != telling)
		return false;
	telling = NULL;
	*ret_uid = 4711;
	return true;
}

struct user_quota *context_table_python_quota(struct context_table *table)
{
	(void)table;
	return &pythons;
}

struct user_quota *context_table_sets_quota(struct context_table *table)
{
	(void)table;
	return &sets;
}

struct user_quota *process_table_mapping_quota(struct process_table *table)
{
	(void)table;
	return &mappings;
}

struct user_quota *identities_quota(const struct identities *identities)
{
	(void)identities;
	return &labels;
}

bool file_table_tell_unopened(struct file_table *table, struct file_unopened *ret_unopened)
{
	(void)table;
	*ret_unopened = unopened;
	return unopened.error;
}

void log_line(enum log_level level, const char *format, ...)
{
	va_list arguments;

	assert_int_equal(level, LOG_LEVEL_WARN);
	va_start(arguments, format);
	vsnprintf(logged, sizeof(logged), format, arguments);
	va_end(arguments);
	log_lines++;
}

struct row_store_quotas row_store_quotas(struct row_store *store)
{
	(void)store;
	return (struct row_store_quotas){
		.pages = &pages, .rows = &refused_12, .rules = &refused_17};
}

void row_store_get_stats(const struct row_store *store, struct row_store_stats *ret_stats)
{
	(void)store;
	*ret_stats = (struct row_store_stats){.rules_exhausted = 42};
}

void file_table_get_stats(const struct file_table *table, struct file_table_stats *ret_stats)
{
	(void)table;
	*ret_stats = (struct file_table_stats){.text_refused = 28, .lost = 43, .no_space = 1};
}

void context_table_get_stats(const struct context_table *table,
			     struct context_table_stats *ret_stats)
{
	(void)table;
	*ret_stats = (struct context_table_stats){.sets_refused = 44, .pythons_refused = 45};
}

uint64_t probes_refused(const struct probes *probes)
{
	(void)probes;
	return 46;
}

struct user_quota *incomplete_queue_quota(struct incomplete_queue *queue)
{
	(void)queue;
	return &stacks_12;
}

static const struct incomplete_counts incomplete = {.left_out = 47};
static struct foreign_stats asked;
static uint64_t reads_cpu_ns;

/* As the contracts say: of none, nothing is changed. */
void peek_get_stats(const struct peek *peek, struct peek_stats *ret_stats)
{
	if (peek)
		*ret_stats = (struct peek_stats){
			.late = 29, .left_alone = 30, .stuck = 3, .cpu_ns = reads_cpu_ns};
}

void foreign_get_stats(const struct foreign *foreign, struct foreign_stats *ret_stats)
{
	if (foreign)
		*ret_stats = asked;
}

static struct options options;
static struct services services;

static int setup(void **state)
{
	(void)state;
	host = statm = NULL;
	memset(losses, 0, sizeof(losses));
	memset(times, 0, sizeof(times));
	dictionary = (struct dictionary_stats){};
	tables = (struct tables){};
	asked = (struct foreign_stats){0};
	reads_cpu_ns = 0;
	summary = (struct summary){};
	options.clock = OPTIONS_CLOCK_CPU;
	services = (struct services){.options = &options,
				     .sources = &of_run,
				     .summary = &summary,
				     .foreign = (void *)&asked};
	facts = (struct window_facts){.services = &services,
				      .incomplete = &incomplete,
				      .profile_quota = &profile_17,
				      .tables = &tables,
				      .peek = (void *)&reads_cpu_ns,
				      .started_ns = mono_ns()};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(text);
	text = NULL;
	return 0;
}

/* Finds a fact, which is told once. */
static bool find(const char *name, struct fact *ret_fact)
{
	const char *at = text;
	unsigned int found = 0;
	struct fact one;

	while (fact_next(&at, &one)) {
		assert_true(one.is_number);
		if (!fact_is(&one, name))
			continue;
		*ret_fact = one;
		found++;
	}
	assert_true(found < 2 && !*at);
	return found;
}

static uint64_t fact(const char *name)
{
	struct fact found = {0};

	if (!find(name, &found))
		fail_msg("no %s in %s", name, text);
	return found.number;
}

static bool has_fact(const char *name)
{
	struct fact found;

	return find(name, &found);
}

static void tell(struct summary *told)
{
	free(text);
	text = NULL;
	assert_int_equal(window_facts_tell(&facts, told, &text), 0);
}

/* ---- the summary ---- */

static void update__adds_the_losses_of_user_space(void **state)
{
	(void)state;
	losses[PP_LOSS_SWITCHES_UNSEEN] = 100;
	losses[PP_LOSS_RING_FULL] = 7;
	losses[PP_LOSS_KEEP_FAILED] = 4;
	losses[PP_LOSS_THREADS_TORN] = 9; /* the kernel side has none of these */
	dictionary.refused = 25 + 32;
	dictionary.users_refused = 32;
	facts.bounded = 26;
	tables.early_swaps = 27;
	asked.put_off = 31;
	asked.opener = (struct opener_stats){.late = 44, .left_alone = 45, .stuck = 46};
	asked.stuck = 2;
	window_facts_update(&facts);
	window_facts_update(&facts); /* sums are read, not added to */
	assert_int_equal(summary.loss[PP_LOSS_RING_FULL], 7);
	assert_int_equal(summary.loss[PP_LOSS_THREADS_TORN], 21);
	assert_int_equal(summary.loss[PP_LOSS_SWITCHES_UNSEEN], 122);
	assert_int_equal(summary.loss[PP_LOSS_PERF_MAPS_REFUSED], 24);
	assert_int_equal(summary.loss[PP_LOSS_FILES_REFUSED], 28);
	assert_int_equal(summary.loss[PP_LOSS_CODES_REFUSED], 33);
	assert_int_equal(summary.loss[PP_LOSS_MEMORY_LATE], 29);
	assert_int_equal(summary.loss[PP_LOSS_TEXTS_REFUSED], 37);
	assert_int_equal(summary.loss[PP_LOSS_MEMORY_LEFT_ALONE], 30);
	assert_int_equal(summary.loss[PP_LOSS_OPENS_LATE], 44);
	assert_int_equal(summary.loss[PP_LOSS_OPENS_LEFT_ALONE], 45);
	assert_int_equal(summary.loss[PP_LOSS_CHILDREN_STUCK], 46 + 3 + 2);
	assert_int_equal(summary.loss[PP_LOSS_DICTIONARY_FULL], 25);
	assert_int_equal(summary.loss[PP_LOSS_ROWS_BOUNDED], 26);
	assert_int_equal(summary.early_swaps, 27);
	assert_int_equal(summary.loss[PP_LOSS_TEXT_REFUSED], 28);
	assert_int_equal(summary.loss[PP_LOSS_ROWS_REFUSED], 12 + 17);
	assert_int_equal(summary.loss[PP_LOSS_ROWS_FULL], 42 + 1);
	assert_int_equal(summary.loss[PP_LOSS_FILES_LOST], 43);
	assert_int_equal(summary.loss[PP_LOSS_MAP_SETS_REFUSED], 44);
	assert_int_equal(summary.loss[PP_LOSS_PYTHONS_REFUSED], 45);
	assert_int_equal(summary.loss[PP_LOSS_SITES_REFUSED], 46);
	assert_int_equal(summary.loss[PP_LOSS_STACKS_LEFT_OUT], 12 + 47);
	assert_int_equal(summary.loss[PP_LOSS_PROFILE_REFUSED], 17);
	assert_int_equal(summary.loss[PP_LOSS_FILES_PUT_OFF], 31);
	assert_int_equal(summary.loss[PP_LOSS_DICTIONARY_SHARE], 32);
	assert_int_equal(summary.loss[PP_LOSS_LABELS_REFUSED], 34);
	assert_int_equal(summary.loss[PP_LOSS_LABELS_UNREAD], 35);
	assert_int_equal(summary.unlabelled, 36);
	assert_int_equal(summary.kept, 37);
	assert_int_equal(summary.loss[PP_LOSS_KEEP_FAILED], 38 + 4);
	assert_int_equal(summary.loss[PP_LOSS_KEEP_SHARE], 39);
}

static void update__measures_the_agent_itself(void **state)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), before_ns = mono_ns();

	(void)state;
	statm = "1000 123 45 6 0 7 0\n";
	facts.started_ns = before_ns - 5 * NS_PER_SEC;
	window_facts_update(&facts);
	assert_in_range(summary.elapsed_ns, 5 * NS_PER_SEC,
			5 * NS_PER_SEC + (mono_ns() - before_ns));
	assert_int_equal(summary.own_cpu_ns, 3250500000); /* 1.25 s and 2.0005 s */
	source_cpu_ns = 5;
	window_facts_update(&facts);
	assert_int_equal(summary.own_cpu_ns, 3250500005);
	source_cpu_ns = 0;
	assert_int_equal(summary.own_rss_bytes, 123 * page);
	statm = NULL;
	window_facts_update(&facts);
	assert_int_equal(summary.own_rss_bytes, 123 * page);
	statm = "1000";
	window_facts_update(&facts);
	assert_int_equal(summary.own_rss_bytes, 123 * page);
}

static void update__adds_the_cpu_time_of_both_children(void **state)
{
	(void)state;
	asked.count[FOREIGN_COST_CPU_NS] = 1000;
	reads_cpu_ns = 20000;
	window_facts_update(&facts);
	assert_int_equal(summary.own_cpu_ns, 3250521000);
}

/* By hand: the first bucket ends at 288 ns, the ninth goes from 512 to 576 ns, and the second one
 * from 288 to 320 ns. */
static void cost__has_walks_by_the_middle_of_their_buckets(void **state)
{
	(void)state;
	times[PP_PROGRAM_SAMPLE].count[0] = 5;
	times[PP_PROGRAM_SAMPLE].count[8] = 6;
	times[PP_PROGRAM_COUNT - 1].count[1] = 7;
	assert_int_equal(window_facts_cost_ns(&facts), 3250500000 + 5 * 144 + 6 * 544 + 7 * 304);
	assert_int_equal(summary.bpf_cpu_ns, 5 * 144 + 6 * 544 + 7 * 304);
}

static void update__without_children_counts_nothing_of_them(void **state)
{
	(void)state;
	services.foreign = NULL;
	facts.peek = NULL;
	asked.put_off = asked.count[FOREIGN_EXAMINE] = 5;
	asked.count[FOREIGN_COST_CPU_NS] = reads_cpu_ns = 1000;
	window_facts_update(&facts);
	assert_int_equal(summary.own_cpu_ns, 3250500000);
	for (unsigned int i = 0; i < FOREIGN_COUNTERS; i++)
		assert_int_equal(summary.asked[i], 0);
	assert_int_equal(summary.loss[PP_LOSS_FILES_PUT_OFF], 0);
	assert_int_equal(summary.loss[PP_LOSS_CHILDREN_STUCK], 0);
	assert_int_equal(summary.loss[PP_LOSS_MEMORY_LATE], 0);
	assert_int_equal(summary.loss[PP_LOSS_MEMORY_LEFT_ALONE], 0);
}

/* proc_stat(5): user nice system idle iowait irq softirq steal, in ticks. */
static void start__begins_with_what_the_host_did_before(void **state)
{
	const uint64_t tick_ns = NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	struct summary told = {};

	(void)state;
	host = "cpu 1 20 300 99999 88888 4000 50000 600000 7 8\ncpu0 1\n";
	options.clock = OPTIONS_CLOCK_CYCLES;
	window_facts_start(&facts, &told);
	assert_true(summary.is_cycles);
	assert_int_equal(summary.host_busy_ns, 654321 * tick_ns);
	assert_int_equal(summary.host_steal_ns, 600000 * tick_ns);
	assert_int_equal(summary.host_steal_start_ns, 600000 * tick_ns);
	host = "cpu 2 20 300 99999 88888 4000 50000 600005 7 8\n";
	tell(&told);
	assert_int_equal(fact("host_busy_ns"), 6 * tick_ns);
	assert_int_equal(fact("host_steal_ns"), 5 * tick_ns);
	assert_int_equal(fact("host_cpus"), sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(summary.host_steal_start_ns, 600000 * tick_ns);
}

static void start__of_an_old_kernel_knows_no_steal(void **state)
{
	const uint64_t tick_ns = NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	struct summary told = {};

	(void)state;
	host = "cpu 1 2 3 4 5 6 7\n";
	window_facts_start(&facts, &told);
	assert_int_equal(summary.host_busy_ns, (1 + 2 + 3 + 6 + 7) * tick_ns);
	assert_int_equal(summary.host_steal_ns, 0);
	host = "cpu 1 2 3 4 5 6\n"; /* no line of this file */
	summary.host_busy_ns = 5;
	window_facts_start(&facts, &told);
	assert_int_equal(summary.host_busy_ns, 5);
	host = NULL;
	window_facts_start(&facts, &told);
	assert_int_equal(summary.host_busy_ns, 5);
	assert_false(summary.is_cycles);
}

/* ---- a comment ---- */

static void tell__has_what_changed_since_the_last_one(void **state)
{
	struct summary told = {};

	(void)state;
	summary.samples = 100;
	summary.stop[PP_STOP_ROOT] = 60;
	summary.stop[PP_STOP_FINISHED] = 20;
	summary.stop[PP_STOP_NO_USER] = 10;
	summary.stop[PP_STOP_NO_INFO] = 10;
	losses[PP_LOSS_NO_SCRATCH] = 4;
	losses[PP_LOSS_RING_FULL] = 2;
	statm = "1000 123 45 6 0 7 0\n";
	tell(&told);
	assert_int_equal(fact("own_rss_bytes"), 123 * (uint64_t)sysconf(_SC_PAGESIZE));
	assert_int_equal(fact("samples"), 100);
	assert_int_equal(fact("complete"), 90);
	assert_int_equal(fact("lost"), 4);
	assert_int_equal(fact("cut_no_info"), 10);
	assert_int_equal(fact("lost_ring_full"), 2);
	assert_int_equal(fact("lost_no_scratch"), 4);
	assert_int_equal(fact("own_cpu_ns"), 3250500000);
	assert_false(has_fact("cut_root"));
	assert_false(has_fact("cut_finished"));
	assert_false(has_fact("cut_no_user"));
	assert_int_equal(told.samples, 100);
	summary.samples = 130;
	summary.stop[PP_STOP_ROOT] = 85;
	summary.stop[PP_STOP_NO_INFO] = 15;
	losses[PP_LOSS_NO_SCRATCH] = 5;
	tell(&told);
	assert_int_equal(fact("samples"), 30);
	assert_int_equal(fact("complete"), 25);
	assert_int_equal(fact("cut_no_info"), 5);
	assert_int_equal(fact("lost"), 1);
	assert_int_equal(fact("lost_no_scratch"), 1);
	assert_int_equal(fact("own_cpu_ns"), 0);
	assert_false(has_fact("lost_ring_full")); /* nothing new */
}

/* Its CPU time is part of the agent's. */
static void tell__has_the_questions_to_the_child_that_parses_files(void **state)
{
	struct summary told = {};

	(void)state;
	asked.count[FOREIGN_EXAMINE] = 3;
	asked.count[FOREIGN_NAMES] = 7;
	asked.count[FOREIGN_COST_BYTES] = 5000;
	asked.count[FOREIGN_COST_CPU_NS] = 4000;
	tell(&told);
	assert_int_equal(fact("asked_layout"), 3);
	assert_int_equal(fact("asked_names"), 7);
	assert_int_equal(fact("child_bytes"), 5000);
	assert_int_equal(fact("child_cpu_ns"), 4000);
	assert_int_equal(fact("own_cpu_ns"), 3250504000);
	assert_false(has_fact("asked_rows"));
	asked.count[FOREIGN_ROWS] = 2;
	tell(&told);
	assert_int_equal(fact("asked_rows"), 2);
	assert_false(has_fact("asked_layout"));
}

static void tell__has_the_time_since_the_last_one(void **state)
{
	struct summary told = {.elapsed_ns = 3 * NS_PER_SEC};
	uint64_t before_ns = mono_ns();

	(void)state;
	facts.started_ns = before_ns - 10 * NS_PER_SEC;
	tell(&told);
	assert_in_range(fact("elapsed_ns"), 7 * NS_PER_SEC,
			7 * NS_PER_SEC + (mono_ns() - before_ns));
}

static void tell__compares_with_the_scheduler_where_it_can(void **state)
{
	struct summary told = {.cpu_ns = 50, .scheduler_ns = 60, .wait_ns = 5, .ledger_wait_ns = 6};
	struct summary same = told;

	(void)state;
	summary = (struct summary){
		.cpu_ns = 150, .scheduler_ns = 170, .wait_ns = 25, .ledger_wait_ns = 36};
	same.scheduler_ns = 170;
	same.ledger_wait_ns = 36;
	tell(&told);
	assert_int_equal(fact("cpu_ns"), 100);
	assert_int_equal(fact("scheduler_ns"), 110);
	assert_int_equal(fact("wait_ns"), 20);
	assert_int_equal(fact("ledger_wait_ns"), 30);
	tell(&same); /* nothing to compare with */
	assert_false(has_fact("cpu_ns"));
	assert_false(has_fact("scheduler_ns"));
	assert_false(has_fact("wait_ns"));
	assert_false(has_fact("ledger_wait_ns"));
	told = (struct summary){};
	summary.is_cycles = true; /* no time */
	tell(&told);
	assert_false(has_fact("cpu_ns"));
	assert_int_equal(fact("wait_ns"), 25);
}

static void tell__says_what_tables_had_no_room_for(void **state)
{
	struct summary told = {.early_swaps = 1, .coarse_cpu_ns = 10, .coarse_wait_ns = 20};

	(void)state;
	summary.coarse_cpu_ns = 15;
	summary.coarse_wait_ns = 27;
	tables.early_swaps = 4;
	tell(&told);
	assert_int_equal(fact("early_swaps"), 3);
	assert_int_equal(fact("coarse_cpu_ns"), 5);
	assert_int_equal(fact("coarse_wait_ns"), 7);
	tell(&told);
	assert_false(has_fact("early_swaps"));
	assert_false(has_fact("coarse_cpu_ns"));
	assert_false(has_fact("coarse_wait_ns"));
}

/* The longest of a window is no difference of two sums: a shorter turn than before is told, too. */
static void tell__has_the_loops_longest_turn(void **state)
{
	struct summary told = {.loop_stall_max_ns = 300};

	(void)state;
	summary.loop_stall_max_ns = 200;
	tell(&told);
	assert_int_equal(fact("loop_stall_max_ns"), 200);
	summary.loop_stall_max_ns = 0;
	tell(&told);
	assert_false(has_fact("loop_stall_max_ns"));
}

/* include/pyprofd/table.h: eight buckets an octave from 256 ns on; the first ends at 288 ns, the
 * ninth begins the second octave and ends at 576 ns. */
static void tell__has_the_times_of_programs_by_their_ends(void **state)
{
	struct summary told = {};

	(void)state;
	times[PP_PROGRAM_SAMPLE].count[0] = 5;
	times[PP_PROGRAM_SAMPLE].count[8] = 6;
	times[PP_PROGRAM_WAKING].count[PP_TIME_BUCKETS - 1] = 7;
	told.times[PP_PROGRAM_SAMPLE].count[8] = 4;
	tell(&told);
	assert_int_equal(fact("on_cpu_sample_288"), 5);
	assert_int_equal(fact("on_cpu_sample_576"), 2);
	assert_int_equal(fact("on_waking_67108864"), 7);
	assert_null(strstr(text, "on_switch_"));
	tell(&told);
	assert_null(strstr(text, "on_"));
	times[PP_PROGRAM_SAMPLE + 1].count[0] = 1; /* lies after the last one of the first */
	tell(&told);
	assert_null(strstr(text, "on_cpu_sample_"));
	assert_non_null(strstr(text, "on_"));
}

static void tell__has_every_reason(void **state)
{
#define NAME_OF(id, name, text) name,
	static const char *const stops[] = {PP_STOPS(NAME_OF)}, *const names[] = {
									PP_LOSSES(NAME_OF)};
	struct summary told = {};
	char name[80];

	(void)state;
	for (unsigned int i = 0; i < PP_LOSS_COUNT; i++)
		losses[i] = i + 1000;
	for (unsigned int i = 0; i < PP_STOP_COUNT; i++)
		summary.stop[i] = i + 1;
	dictionary.refused = 25 + 32;
	dictionary.users_refused = 32;
	facts.bounded = 26;
	asked.put_off = 31;
	asked.opener = (struct opener_stats){.late = 44, .left_alone = 45, .stuck = 46};
	tell(&told);
	for (unsigned int i = 0; i < PP_LOSS_COUNT; i++) {
		snprintf(name, sizeof(name), "lost_%s", names[i]);
		assert_true(fact(name) > 0);
	}
	assert_int_equal(fact("lost_images_full"), 1000 + PP_LOSS_IMAGES_FULL);
	for (unsigned int i = 0; i < PP_STOP_COUNT; i++) {
		snprintf(name, sizeof(name), "cut_%s", stops[i]);
		if (i != PP_STOP_ROOT && i != PP_STOP_FINISHED && i != PP_STOP_NO_USER)
			assert_int_equal(fact(name), i + 1);
	}
}

/* ---- users' shares ---- */

static void assert_logged(const char *beginning, const char *rest)
{
	log_lines = 0;
	logged[0] = '\0';
	window_facts_tell_quotas(&facts);
	if (log_lines != 1 || strncmp(logged, beginning, strlen(beginning)) != 0 ||
	    !strstr(logged, rest))
		fail_msg("%u lines, the last one '%s'", log_lines, logged);
	window_facts_tell_quotas(&facts);
	assert_int_equal(log_lines, 1);
}

static void tell_quotas__has_each_share_once_with_its_counter(void **state)
{
	static const struct {
		struct user_quota *quota;
		const char *counter;
	} row[] = {{&pages, "(text_refused)"},	      {&refused_12, "(rows_refused)"},
		   {&refused_17, "(rows_refused)"},   {&pythons, "(pythons_refused)"},
		   {&stacks_12, "(stacks_left_out)"}, {&profile_17, "(profile_refused)"},
		   {&labels, "(labels_refused)"},     {&sets, "(map_sets_refused)"},
		   {&mappings, "(mappings_refused)"}};

	(void)state;
	unopened.error = 0;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		telling = row[i].quota;
		assert_logged("user 4711: ", row[i].counter);
	}
}

static void assert_unopened(int error, const char *why)
{
	unopened = (struct file_unopened){.error = error, .tgid = 77, .path = "/srv/lib.so"};
	log_lines = 0;
	window_facts_tell_quotas(&facts);
	assert_int_equal(log_lines, 1);
	if (!strstr(logged, why))
		fail_msg("'%s'", logged);
}

static void tell_quotas__has_the_file_that_cannot_be_opened_and_why(void **state)
{
	(void)state;
	telling = NULL;
	assert_unopened(-ETIMEDOUT, "'/srv/lib.so', which process 77 has mapped, cannot be opened: "
				    "its file system does not answer; its code");
	assert_unopened(-EACCES, ": Permission denied to root (a user's own FUSE");
	assert_unopened(-EIO, ": Input/output error; its code");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(update__adds_the_losses_of_user_space),
		TEST(update__measures_the_agent_itself),
		TEST(update__adds_the_cpu_time_of_both_children),
		TEST(cost__has_walks_by_the_middle_of_their_buckets),
		TEST(update__without_children_counts_nothing_of_them),
		TEST(start__begins_with_what_the_host_did_before),
		TEST(start__of_an_old_kernel_knows_no_steal),
		TEST(tell__has_what_changed_since_the_last_one),
		TEST(tell__has_the_questions_to_the_child_that_parses_files),
		TEST(tell__has_the_time_since_the_last_one),
		TEST(tell__compares_with_the_scheduler_where_it_can),
		TEST(tell__says_what_tables_had_no_room_for),
		TEST(tell__has_the_loops_longest_turn),
		TEST(tell__has_the_times_of_programs_by_their_ends),
		TEST(tell__has_every_reason),
		TEST(tell_quotas__has_each_share_once_with_its_counter),
		TEST(tell_quotas__has_the_file_that_cannot_be_opened_and_why),
	};

	return cmocka_run_group_tests_name("agent/window_facts", tests, NULL, NULL);
}
