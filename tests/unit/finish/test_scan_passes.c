/* SPDX-License-Identifier: BSD-2-Clause */
/* The scan of blocked threads over a machine that each test invents: what the kernel's iterator
 * shows in each pass, who was seen at a switch, and what a walk finds, are fakes in this file. */
#include "finish/scan.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "drain/thread_slots.h"
#include "finish/scan_walk.h"
#include "finish/user_unwind.h"
#include "scan_whole.h"

#define PASSES 4U /* three that walk, and one that compares */
#define THREADS 32U
#define TIDS 64U
#define TGID 500U
#define GENERATION 7U
#define SEED 77U
#define SLOTS 40U
#define DICTIONARY_MAX 64U

static struct finisher finisher;
static struct scan *scan;

/* ---- the machine ---- */

static struct process process, other;
/* What the iterator shows in each pass. */
static struct pp_scan_record shown[PASSES][THREADS];
static unsigned int shown_count[PASSES];
/* By tid. */
static struct {
	struct thread_glance glance;
	bool has_slot;
	uint64_t moves;
	bool moves_while_walked;
	uint64_t stack; /* hash; 0: the walk finds none */
	uint16_t python_frames, native_frames;
} of[TIDS];
static struct pp_thread slots[1];
static uint32_t slot_count;
static struct pp_config config;
static uint64_t now_ns, read_ns, walk_ns;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = (time_t)(now_ns / NS_PER_SEC),
				  .tv_nsec = (long)(now_ns % NS_PER_SEC)};
	return 0;
}

/* ---- instead of attach/ and discover/ ---- */

#define KERNEL ((struct kernel_side *)&config)
#define PROCESSES ((struct process_table *)&process)

static int open_result[PASSES];
static unsigned int passes_opened;
static bool is_generation_known;
static uint16_t context_flags;

int kernel_side_open_scan(struct kernel_side *side, int *ret_fd)
{
	assert_ptr_equal(side, KERNEL);
	assert_true(passes_opened < PASSES);
	*ret_fd = (int)passes_opened;
	return open_result[passes_opened++];
}

struct pp_thread *kernel_side_threads(const struct kernel_side *side, uint32_t *ret_count)
{
	assert_ptr_equal(side, KERNEL);
	*ret_count = slot_count;
	return slots;
}

volatile struct pp_config *kernel_side_config(const struct kernel_side *side)
{
	assert_ptr_equal(side, KERNEL);
	return &config;
}

int kernel_side_get_generation(struct kernel_side *side, uint32_t tgid, uint32_t *ret_generation)
{
	assert_ptr_equal(side, KERNEL);
	assert_int_equal(tgid, TGID);
	if (!is_generation_known)
		return -ENOENT;
	*ret_generation = GENERATION;
	return 0;
}

static bool is_in_table;

struct process *process_table_find_tgid(const struct process_table *table, uint32_t tgid)
{
	assert_ptr_equal(table, PROCESSES);
	if (tgid == other.id.tgid)
		return &other;
	assert_int_equal(tgid, TGID);
	return is_in_table ? &process : NULL;
}

uint16_t context_table_flags(const struct process *asked)
{
	return asked == &process ? context_flags : PP_CONTEXT_MATCHES;
}

/* ---- instead of drain/ ---- */

static struct {
	uint64_t hash;
	unsigned int times;
	bool is_kernel;
} known[DICTIONARY_MAX];
static size_t known_count;
static int describe_result;
static const uint64_t kernel_addresses[] = {0xa1, 0xa2, 0xa3};

bool thread_slots_glance(const struct pp_thread *all, uint32_t count, uint32_t seed, uint32_t tid,
			 struct thread_glance *ret_glance)
{
	assert_ptr_equal(all, slots);
	assert_int_equal(count, slot_count);
	assert_int_equal(seed, SEED);
	*ret_glance = of[tid].glance;
	return of[tid].has_slot;
}

uint64_t thread_slots_moves(const struct pp_thread *all, uint32_t count, uint32_t seed,
			    uint32_t tid)
{
	assert_ptr_equal(all, slots);
	assert_int_equal(count, slot_count);
	assert_int_equal(seed, SEED);
	return of[tid].moves;
}

static int describe(uint64_t hash, bool is_kernel)
{
	size_t i = 0;

	assert_true(hash & 1);
	while (i < known_count && known[i].hash != hash)
		i++;
	assert_true(i < DICTIONARY_MAX);
	if (i == known_count) {
		known_count++;
		known[i].times = 0;
	}
	known[i].hash = hash;
	known[i].is_kernel = is_kernel;
	known[i].times++;
	return describe_result;
}

int dictionary_add_kernel(struct dictionary *dictionary, const struct decoded_kernel *kernel)
{
	assert_ptr_equal(dictionary, finisher.dictionary);
	assert_int_equal(kernel->record->record.type, PP_RECORD_KERNEL);
	assert_int_equal(kernel->record->record.size,
			 sizeof(*kernel->record) + kernel->count * sizeof(uint64_t));
	assert_in_range(kernel->count, 1, 3);
	assert_memory_equal(kernel->record->address, kernel_addresses,
			    kernel->count * sizeof(uint64_t));
	return describe(kernel->record->hash, true);
}

/* How often the stack was added to the dictionary. */
static unsigned int described(uint64_t hash)
{
	for (size_t i = 0; i < known_count; i++)
		if (known[i].hash == hash)
			return known[i].times;
	return 0;
}

/* ---- instead of the rest of finish/ ---- */

static int reader_result, walker_result, walk_result, next_error;
static unsigned int readers_open, walkers_open, forgotten, walks_without_process, walks;
static unsigned int fails_at; /* next_error comes after so many records of a pass */
static uint32_t walked_tid[THREADS * PASSES];

struct scan_reader {
	unsigned int pass, at;
};
struct scan_walker {
	int unused;
};

int scan_reader_new(int fd, struct scan_reader **ret_reader)
{
	if (reader_result)
		return reader_result;
	*ret_reader = calloc(1, sizeof(**ret_reader));
	assert_non_null(*ret_reader);
	(*ret_reader)->pass = (unsigned int)fd;
	readers_open++;
	return 0;
}

void scan_reader_free(struct scan_reader *reader)
{
	readers_open -= reader != NULL;
	free(reader);
}

int scan_reader_next(struct scan_reader *reader, const struct pp_scan_record **ret_record)
{
	now_ns += read_ns;
	if (next_error && reader->at == fails_at)
		return next_error;
	if (reader->at == shown_count[reader->pass])
		return 0;
	*ret_record = &shown[reader->pass][reader->at++];
	return 1;
}

int scan_walker_new(const struct finisher *by, struct scan_walker **ret_walker)
{
	assert_ptr_equal(by, &finisher);
	if (walker_result)
		return walker_result;
	*ret_walker = calloc(1, sizeof(**ret_walker));
	assert_non_null(*ret_walker);
	walkers_open++;
	return 0;
}

void scan_walker_free(struct scan_walker *walker)
{
	walkers_open -= walker != NULL;
	free(walker);
}

void scan_walker_forget(struct scan_walker *walker)
{
	assert_non_null(walker);
	forgotten++;
}

int scan_walk(struct scan_walker *walker, const struct pp_scan_record *thread,
	      struct process *asked, struct scanned *ret_scanned,
	      struct pp_stack_record **ret_record)
{
	const size_t frames = (size_t)of[thread->tid].python_frames + of[thread->tid].native_frames;

	assert_non_null(walker);
	assert_true(!asked || asked->id.tgid == thread->tgid);
	assert_null(*ret_record);
	now_ns += walk_ns;
	walks_without_process += !asked;
	walked_tid[walks++] = thread->tid;
	ret_scanned->flags = PP_COUNT_PYTHON;
	ret_scanned->wait = thread->wait;
	of[thread->tid].moves += of[thread->tid].moves_while_walked;
	if (walk_result)
		return walk_result;
	if (!of[thread->tid].stack || !asked)
		return 0;
	*ret_record = calloc(1, sizeof(**ret_record) + frames * sizeof(struct pp_frame));
	assert_non_null(*ret_record);
	(*ret_record)->hash = of[thread->tid].stack;
	(*ret_record)->id = asked->id;
	(*ret_record)->python_stored = of[thread->tid].python_frames;
	(*ret_record)->native_stored = of[thread->tid].native_frames;
	return 0;
}

/* The copy that the scan keeps has all its frames. */
int user_unwind_describe(struct dictionary *dictionary, const struct pp_stack_record *record)
{
	const size_t frames = (size_t)record->python_stored + record->native_stored;

	assert_ptr_equal(dictionary, finisher.dictionary);
	assert_int_equal(record->id.tgid, TGID);
	for (size_t i = 0; i < frames; i++)
		assert_int_equal(record->frame[i].where, 0);
	return describe(record->hash, false);
}

/* ---- the agent's callbacks ---- */

static struct process *found_process;
static int follow_result;
static unsigned int follows, names_wanted, processes_found;

static struct process *find_process(void *context, struct pp_process_id id)
{
	assert_ptr_equal(context, &follows);
	assert_int_equal(id.tgid, TGID);
	assert_int_equal(id.generation, GENERATION);
	processes_found++;
	return found_process;
}

static int follow_processes(void *context)
{
	assert_ptr_equal(context, &follows);
	follows++;
	return follow_result;
}

static void want_names(void *context, struct pp_process_id id)
{
	assert_ptr_equal(context, &follows);
	assert_int_equal(id.tgid, TGID);
	names_wanted++;
}

/* ---- fixture ---- */

static int setup(void **state)
{
	(void)state;
	process = (struct process){.id = {.tgid = TGID, .generation = 3}};
	other = (struct process){.id = {.tgid = TGID + 1, .generation = 4}};
	memset(shown_count, 0, sizeof(shown_count));
	memset(of, 0, sizeof(of));
	for (uint32_t tid = 0; tid < TIDS; tid++) {
		of[tid].stack = 0x1001 + tid * 2;
		of[tid].native_frames = 3;
		of[tid].moves = 100 * tid;
	}
	slot_count = SLOTS;
	config = (struct pp_config){.thread_seed = SEED};
	now_ns = 1000 * NS_PER_SEC;
	read_ns = walk_ns = NS_PER_MS;
	memset(open_result, 0, sizeof(open_result));
	passes_opened = 0;
	is_generation_known = is_in_table = true;
	context_flags = PP_CONTEXT_MATCHES;
	known_count = 0;
	describe_result = reader_result = walker_result = walk_result = next_error = 0;
	readers_open = walkers_open = forgotten = walks_without_process = walks = fails_at = 0;
	found_process = &process;
	follow_result = 0;
	follows = names_wanted = processes_found = 0;
	scan = NULL;
	finisher = (struct finisher){
		.kernel = KERNEL,
		.dictionary = (struct dictionary *)&known_count,
		.processes = PROCESSES,
		.context = &follows,
		.find_process = find_process,
		.follow_processes = follow_processes,
		.want_names = want_names,
	};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	scan_free(scan);
	assert_int_equal(readers_open, 0);
	assert_int_equal(walkers_open, 0);
	return 0;
}

/* The iterator shows the thread in a pass, from 1. */
static struct pp_scan_record *show(unsigned int pass, uint32_t tid, uint64_t switches)
{
	struct pp_scan_record *record = &shown[pass - 1][shown_count[pass - 1]++];

	*record = (struct pp_scan_record){.size = sizeof(*record),
					  .tgid = TGID,
					  .tid = tid,
					  .state = 1,
					  .wait = PP_WAIT_SLEEP,
					  .started_ns = 5,
					  .switches = switches};
	return record;
}

/* In each pass as it was in the first: it sleeps. */
static void show_asleep(uint32_t tid)
{
	for (unsigned int pass = 1; pass <= PASSES; pass++)
		show(pass, tid, 1);
}

static void see_at_switch(uint32_t tid)
{
	of[tid].has_slot = true;
	of[tid].glance.flags = PP_THREAD_MATCHES;
}

static void open_scope(const struct scan_scope *scope)
{
	assert_int_equal(scan_new(&finisher, scope, &scan), 0);
}

/* Runs a scan of all threads to its end. */
static struct scan_stats run(void)
{
	struct scan_stats stats;

	assert_int_equal(scan_whole(&finisher, &scan), 0);
	scan_get_stats(scan, &stats);
	return stats;
}

/* The rest of an open one. */
static struct scan_stats finish(void)
{
	struct scan_stats stats;

	assert_int_equal(scan_step(scan, UINT64_MAX), 0);
	scan_get_stats(scan, &stats);
	return stats;
}

/* ---- what is found ---- */

static void scan__thread_that_sleeps_through_two_passes_is_found_whole(void **state)
{
	const struct scanned *scanned;
	struct scan_stats stats;

	(void)state;
	show_asleep(9);
	show_asleep(5);
	stats = run();
	assert_int_equal(stats.threads, 2);
	assert_int_equal(stats.walks, 2);
	assert_int_equal(stats.passes, 2);
	assert_int_equal(stats.torn, 0);
	assert_int_equal(stats.late, 0);
	assert_int_equal(stats.refused, 0);
	/* Two walks, and six reads: each pass has two threads and an end. */
	assert_int_equal(stats.spent_ns, 8 * NS_PER_MS);
	assert_int_equal(forgotten, 2);
	assert_null(scan_find(scan, 6));
	scanned = scan_find(scan, 5);
	assert_non_null(scanned);
	assert_int_equal(scanned->tid, 5);
	assert_int_equal(scanned->id.tgid, TGID);
	assert_int_equal(scanned->id.generation, 3);
	assert_int_equal(scanned->user_stack, of[5].stack);
	assert_int_equal(scanned->kernel_stack, 0);
	assert_int_equal(scanned->flags, PP_COUNT_PYTHON);
	assert_int_equal(scanned->wait, PP_WAIT_SLEEP);
	assert_int_equal(scanned->switches, 1);
	assert_int_equal(scanned->moves, 500);
	assert_false(scanned->is_torn);
	assert_int_equal(scan_find(scan, 9)->moves, 900);
	assert_int_equal(described(of[5].stack), 1);
	assert_int_equal(described(of[9].stack), 1);
	/* There is nothing left to do. */
	assert_int_equal(scan_step(scan, UINT64_MAX), 0);
	assert_int_equal(follows, 1);
}

static void scan__entries_are_sorted_by_tid(void **state)
{
	struct scanned *each = NULL;

	(void)state;
	for (uint32_t i = 0; i < THREADS; i++)
		show_asleep(1 + (i * 11 + 5) % THREADS);
	run();
	for (uint32_t i = 0; i < THREADS; i++) {
		each = scan_next(scan, each);
		assert_non_null(each);
		assert_int_equal(each->tid, 1 + i);
		assert_ptr_equal(scan_find(scan, 1 + i), each);
	}
	assert_null(scan_next(scan, each));
}

static void scan__machine_without_blocked_threads_has_no_entries(void **state)
{
	struct scan_stats stats = run();

	(void)state;
	assert_int_equal(stats.passes, 1);
	assert_null(scan_find(scan, 1));
	assert_null(scan_next(scan, NULL));
}

static void scan__thread_that_ran_is_walked_again(void **state)
{
	struct scan_stats stats;
	uint64_t kernel_stack;

	(void)state;
	show(1, 5, 1);
	show(2, 5, 2);
	show(3, 5, 2);
	for (uint32_t pass = 0; pass < 2; pass++) {
		shown[pass][0].kernel_count = 1 + pass;
		memcpy(shown[pass][0].kernel, kernel_addresses, sizeof(kernel_addresses));
	}
	open_scope(&(struct scan_scope){});
	while (passes_opened < 2)
		assert_int_equal(scan_step(scan, 1), 1);
	kernel_stack = scan_next(scan, NULL)->kernel_stack;
	of[5].stack = 0x2001;
	of[5].moves++;
	shown[1][0].wait = PP_WAIT_PIPE;
	process.id.generation++;
	stats = finish();
	assert_int_equal(stats.threads, 1);
	assert_int_equal(stats.walks, 2);
	assert_int_equal(stats.passes, 3);
	assert_int_equal(stats.torn, 0);
	assert_int_equal(scan_find(scan, 5)->switches, 2);
	assert_int_equal(scan_find(scan, 5)->user_stack, 0x2001);
	assert_int_not_equal(scan_find(scan, 5)->kernel_stack, kernel_stack);
	assert_int_equal(scan_find(scan, 5)->wait, PP_WAIT_PIPE);
	assert_int_equal(scan_find(scan, 5)->id.generation, 4);
	assert_int_equal(scan_find(scan, 5)->moves, 501);
	/* The first walk's stacks are dropped. */
	assert_int_equal(scan_refresh(scan), 0);
	assert_int_equal(described(0x1001 + 5 * 2), 1);
	assert_int_equal(described(kernel_stack), 1);
	assert_int_equal(described(0x2001), 2);
	assert_int_equal(described(scan_find(scan, 5)->kernel_stack), 2);
}

static void scan__second_walk_may_find_no_stack(void **state)
{
	(void)state;
	show(1, 5, 1);
	show(2, 5, 2);
	show(3, 5, 2);
	open_scope(&(struct scan_scope){});
	while (passes_opened < 2)
		assert_int_equal(scan_step(scan, 1), 1);
	of[5].stack = 0;
	finish();
	assert_int_equal(scan_find(scan, 5)->user_stack, 0);
}

static void scan__tid_of_another_thread_is_walked_again(void **state)
{
	struct scan_stats stats;

	(void)state;
	show(1, 5, 1);
	show(2, 5, 1)->started_ns = 6;
	show(3, 5, 1)->started_ns = 6;
	stats = run();
	assert_int_equal(stats.walks, 2);
	assert_int_equal(stats.passes, 3);
	assert_int_equal(stats.torn, 0);
}

static void scan__thread_that_never_rests_is_torn(void **state)
{
	struct scan_stats stats;

	(void)state;
	for (unsigned int pass = 1; pass <= PASSES; pass++)
		show(pass, 5, pass);
	for (unsigned int pass = 1; pass <= PASSES; pass++)
		show(pass, 7, pass);
	show_asleep(6);
	stats = run();
	assert_int_equal(stats.passes, 4);
	/* The last pass compares only. */
	assert_int_equal(stats.walks, 3 + 1 + 3);
	assert_int_equal(stats.torn, 2);
	assert_true(scan_find(scan, 5)->is_torn);
	assert_false(scan_find(scan, 6)->is_torn);
	assert_true(scan_find(scan, 7)->is_torn);
}

static void scan__thread_that_rests_in_the_last_pass_is_whole(void **state)
{
	struct scan_stats stats;

	(void)state;
	show(1, 5, 1);
	show(2, 5, 2);
	show(3, 5, 3);
	show(4, 5, 3);
	stats = run();
	assert_int_equal(stats.passes, 4);
	assert_int_equal(stats.walks, 3);
	assert_int_equal(stats.torn, 0);
}

static void scan__thread_that_comes_later_is_left_to_the_switch_program(void **state)
{
	(void)state;
	show(1, 5, 1);
	show(2, 5, 1);
	show(2, 6, 1);
	assert_int_equal(run().threads, 1);
	assert_null(scan_find(scan, 6));
	assert_int_equal(walks, 1);
}

/* ---- who is seen at a switch ---- */

static void scan__thread_seen_at_a_switch_is_left_out(void **state)
{
	(void)state;
	show_asleep(5);
	show_asleep(6);
	show_asleep(7);
	show_asleep(8);
	see_at_switch(5);
	of[6].has_slot = true;
	of[6].glance.has_exited = true;
	/* A slot that does not match the filter, or that it has no longer, says nothing. */
	of[7].has_slot = true;
	of[8].glance.flags = PP_THREAD_MATCHES;
	assert_int_equal(run().threads, 2);
	assert_null(scan_find(scan, 5));
	assert_null(scan_find(scan, 6));
	assert_non_null(scan_find(scan, 7));
	assert_non_null(scan_find(scan, 8));
}

static void scan__thread_seen_after_its_walk_needs_no_other_pass(void **state)
{
	(void)state;
	show(1, 5, 1);
	show(2, 5, 2);
	show(1, 6, 1);
	show(2, 6, 1);
	open_scope(&(struct scan_scope){});
	while (passes_opened < 2)
		assert_int_equal(scan_step(scan, 1), 1);
	see_at_switch(5);
	assert_int_equal(finish().passes, 2);
	assert_int_equal(walks, 2);
}

static void scan__thread_seen_within_the_first_pass_needs_no_other(void **state)
{
	(void)state;
	show(1, 5, 1);
	show(1, 6, 1);
	open_scope(&(struct scan_scope){});
	for (uint32_t tid = 5; tid < 7; tid++) {
		assert_int_equal(scan_step(scan, 1), 1);
		see_at_switch(tid);
	}
	assert_int_equal(finish().passes, 1);
}

/* Where it is neither seen nor shown again, the remaining passes look for it. */
static void scan__thread_that_runs_unseen_is_looked_for_in_all_passes(void **state)
{
	struct scan_stats stats;

	(void)state;
	show(1, 5, 1);
	stats = run();
	assert_int_equal(stats.passes, 4);
	assert_int_equal(stats.walks, 1);
	assert_int_equal(stats.torn, 0);
	assert_false(scan_find(scan, 5)->is_torn);
}

static void expect_torn(bool is_torn)
{
	struct scan_stats stats;

	show(1, 5, 1);
	stats = finish();
	assert_int_equal(stats.torn, is_torn);
	assert_int_equal(scan_find(scan, 5)->is_torn, is_torn);
}

static void scan__thread_that_moved_while_it_was_walked_is_torn(void **state)
{
	(void)state;
	of[5].moves_while_walked = true;
	open_scope(&(struct scan_scope){});
	expect_torn(true);
	/* The number is that from before the walk. */
	assert_int_equal(scan_find(scan, 5)->moves, 500);
}

static void scan__thread_that_moved_is_whole_when_the_next_pass_says_so(void **state)
{
	(void)state;
	of[5].moves_while_walked = true;
	show(2, 5, 1);
	open_scope(&(struct scan_scope){});
	expect_torn(false);
}

/* While counting is paused no thread gets a slot, so that its moves say nothing. */
static void scan__while_paused_only_the_next_pass_tells(void **state)
{
	(void)state;
	config.flags = PP_CONFIG_PAUSED;
	open_scope(&(struct scan_scope){});
	expect_torn(true);
}

/* ---- scopes ---- */

static uint32_t wanted_tgid;

static bool wants(void *context, uint32_t tgid)
{
	assert_ptr_equal(context, &wanted_tgid);
	return tgid == wanted_tgid;
}

static bool is_known(void *context, uint32_t tid)
{
	assert_ptr_equal(context, &wanted_tgid);
	return tid == 6;
}

static void scan__wanted_processes_are_scanned_with_threads_that_were_seen(void **state)
{
	struct scan_stats stats;

	(void)state;
	wanted_tgid = TGID;
	show_asleep(5);
	show_asleep(6);
	see_at_switch(5);
	show_asleep(7);
	for (unsigned int i = 0; i < PASSES; i++)
		shown[i][2].tgid = TGID + 1;
	open_scope(&(struct scan_scope){.context = &wanted_tgid, .wants = wants});
	stats = finish();
	assert_int_equal(stats.threads, 2);
	assert_int_equal(stats.torn, 0);
	assert_non_null(scan_find(scan, 5));
	assert_null(scan_find(scan, 7));
}

/* Its moves do not tell that a thread with a slot ran. */
static void scan__wanted_thread_is_torn_until_the_next_pass(void **state)
{
	(void)state;
	wanted_tgid = TGID;
	open_scope(&(struct scan_scope){.context = &wanted_tgid, .wants = wants});
	expect_torn(true);
}

static void scan__known_and_seen_threads_are_left_out(void **state)
{
	(void)state;
	for (uint32_t tid = 5; tid < 8; tid++)
		show_asleep(tid);
	see_at_switch(7);
	open_scope(&(struct scan_scope){.context = &wanted_tgid, .is_known = is_known});
	assert_int_equal(finish().threads, 1);
	assert_non_null(scan_find(scan, 5));
}

/* ---- processes and the filter ---- */

static void scan__process_that_nobody_announced_is_found_by_its_generation(void **state)
{
	(void)state;
	is_in_table = false;
	show_asleep(5);
	run();
	assert_int_equal(processes_found, 1);
	assert_int_equal(scan_find(scan, 5)->id.generation, 3);
	assert_int_equal(walks_without_process, 0);
}

static void scan__process_that_has_ended_is_looked_up_anew(void **state)
{
	(void)state;
	process.exit_ns = 1;
	found_process = NULL;
	show_asleep(5);
	run();
	assert_int_equal(processes_found, 1);
	assert_int_equal(walks_without_process, 1);
	assert_int_equal(scan_find(scan, 5)->id.tgid, TGID);
	assert_int_equal(scan_find(scan, 5)->id.generation, GENERATION);
	assert_int_equal(scan_find(scan, 5)->user_stack, 0);
}

static void scan__process_without_a_generation_is_unknown(void **state)
{
	(void)state;
	is_in_table = is_generation_known = false;
	show_asleep(5);
	run();
	assert_int_equal(processes_found, 0);
	assert_int_equal(walks_without_process, 1);
	assert_int_equal(scan_find(scan, 5)->id.tgid, TGID);
	assert_int_equal(scan_find(scan, 5)->id.generation, 0);
}

static void scan__filter_leaves_out_who_does_not_match(void **state)
{
	(void)state;
	finisher.is_filtered = true;
	context_flags = (uint16_t)~PP_CONTEXT_MATCHES;
	show_asleep(5);
	show_asleep(6);
	for (unsigned int i = 0; i < PASSES; i++)
		shown[i][1].tgid = TGID + 1;
	of[6].stack = 0;
	assert_int_equal(run().threads, 1);
	assert_non_null(scan_find(scan, 6));
}

static void scan__filter_leaves_out_who_is_unknown(void **state)
{
	(void)state;
	finisher.is_filtered = true;
	is_in_table = is_generation_known = false;
	show_asleep(5);
	assert_int_equal(run().threads, 0);
}

static void scan__filter_that_no_longer_matches_ends_the_walks(void **state)
{
	(void)state;
	finisher.is_filtered = true;
	for (unsigned int pass = 1; pass <= PASSES; pass++)
		show(pass, 5, pass);
	open_scope(&(struct scan_scope){});
	while (passes_opened < 2)
		assert_int_equal(scan_step(scan, 1), 1);
	context_flags = 0;
	assert_int_equal(finish().walks, 1);
}

/* ---- stacks ---- */

static void scan__kernel_stacks_that_are_equal_are_one(void **state)
{
	uint64_t hash;

	(void)state;
	for (uint32_t tid = 5; tid < 9; tid++)
		show_asleep(tid);
	for (uint32_t i = 0; i < 4; i++) {
		shown[0][i].kernel_count = i == 2 ? 2 : i == 3 ? 0 : 3;
		memcpy(shown[0][i].kernel, kernel_addresses, sizeof(kernel_addresses));
	}
	run();
	hash = scan_find(scan, 5)->kernel_stack;
	assert_int_equal(hash & 1, 1);
	assert_int_equal(described(hash), 1);
	assert_int_equal(scan_find(scan, 6)->kernel_stack, hash);
	assert_int_not_equal(scan_find(scan, 7)->kernel_stack, hash);
	assert_int_equal(described(scan_find(scan, 7)->kernel_stack), 1);
	assert_int_equal(scan_find(scan, 8)->kernel_stack, 0);
	for (size_t i = 0; i < known_count; i++)
		assert_int_equal(known[i].is_kernel,
				 known[i].hash == hash ||
					 known[i].hash == scan_find(scan, 7)->kernel_stack);
}

static void scan__kernel_stacks_may_be_left_out(void **state)
{
	(void)state;
	finisher.no_kernel = true;
	show_asleep(5);
	shown[0][0].kernel_count = 3;
	memcpy(shown[0][0].kernel, kernel_addresses, sizeof(kernel_addresses));
	run();
	assert_int_equal(scan_find(scan, 5)->kernel_stack, 0);
	assert_int_not_equal(scan_find(scan, 5)->user_stack, 0);
}

static void scan__names_are_wanted_of_python_stacks(void **state)
{
	(void)state;
	show_asleep(5);
	show_asleep(6);
	show_asleep(7);
	of[6].python_frames = 2;
	run();
	assert_int_equal(names_wanted, 1);
}

static void scan__walk_without_a_stack_is_an_entry_without_one(void **state)
{
	struct scan_stats stats;

	(void)state;
	show_asleep(5);
	of[5].stack = 0;
	stats = run();
	assert_int_equal(stats.threads, 1);
	assert_int_equal(stats.refused, 0);
	assert_int_equal(scan_find(scan, 5)->user_stack, 0);
	assert_int_equal(known_count, 0);
}

static void scan__walk_without_memory_is_counted_as_refused(void **state)
{
	struct scan_stats stats;

	(void)state;
	show_asleep(5);
	walk_result = -ENOMEM;
	stats = run();
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.threads, 1);
	assert_int_equal(scan_find(scan, 5)->user_stack, 0);
}

/* Ten stacks that fill them to the last byte; `more`: one has a frame too much. */
static struct scan_stats fill_16_mib(uint16_t more)
{
	const size_t frames = ((16U << 20) - 10 * sizeof(struct pp_stack_record)) / 16;
	const uint16_t each = (uint16_t)(frames / 20);

	_Static_assert(10 * sizeof(struct pp_stack_record) % sizeof(struct pp_frame) == 0, "exact");
	for (uint32_t tid = 5; tid < 15; tid++) {
		show_asleep(tid);
		of[tid].python_frames = of[tid].native_frames = each;
	}
	of[5].native_frames = (uint16_t)(frames - 19U * each);
	of[14].native_frames = (uint16_t)(of[14].native_frames + more);
	return run();
}

static void scan__stacks_of_16_mib_are_kept(void **state)
{
	(void)state;
	assert_int_equal(fill_16_mib(0).refused, 0);
	assert_int_equal(known_count, 10);
}

static void scan__stack_beyond_16_mib_is_refused(void **state)
{
	(void)state;
	assert_int_equal(fill_16_mib(1).refused, 1);
	assert_int_equal(known_count, 9);
	assert_int_equal(scan_find(scan, 14)->user_stack, 0);
	assert_int_not_equal(scan_find(scan, 13)->user_stack, 0);
}

/* What was dropped makes room. */
static void scan__stack_fits_again_after_one_was_dropped(void **state)
{
	(void)state;
	for (uint32_t tid = 5; tid < 25; tid++) {
		show(1, tid, 1);
		show(2, tid, 2);
		show(3, tid, 2);
		of[tid].python_frames = of[tid].native_frames = 25000; /* 800 kB */
	}
	assert_int_equal(run().refused, 0);
}

static void scan__threads_beyond_the_slots_are_refused(void **state)
{
	struct scan_stats stats;

	(void)state;
	slot_count = 3;
	for (uint32_t tid = 5; tid < 10; tid++)
		show_asleep(tid);
	stats = run();
	assert_int_equal(stats.threads, 3);
	assert_int_equal(stats.refused, 2);
	assert_null(scan_find(scan, 8));
}

/* ---- slices ---- */

static void scan_step__ends_at_its_budget(void **state)
{
	struct scan_stats stats;
	unsigned int steps = 0;

	(void)state;
	walk_ns = 0;
	for (uint32_t tid = 5; tid < 25; tid++)
		show_asleep(tid);
	open_scope(&(struct scan_scope){});
	/* Four of a millisecond each. */
	for (; passes_opened < 2; steps++) {
		scan_get_stats(scan, &stats);
		assert_int_equal(stats.threads, 4 * steps);
		assert_int_equal(scan_step(scan, 4 * NS_PER_MS), 1);
		assert_null(scan_find(scan, 5));
	}
	assert_int_equal(steps, 6);
	assert_int_equal(follows, 6);
	assert_int_equal(finish().passes, 2);
	assert_non_null(scan_find(scan, 5));
}

/* A time that the machine's clock may not have reached yet. */
static void scan_step__budget_may_be_longer_than_the_machine_is_up(void **state)
{
	(void)state;
	now_ns = NS_PER_MS;
	walk_ns = 0;
	for (uint32_t tid = 5; tid < 25; tid++)
		show_asleep(tid);
	open_scope(&(struct scan_scope){});
	assert_int_equal(scan_step(scan, 4 * NS_PER_MS), 1);
	assert_int_equal(walks, 4);
	assert_int_equal(finish().passes, 2);
}

static void scan_step__after_5_s_walks_have_no_user_stack(void **state)
{
	struct scan_stats stats;

	(void)state;
	read_ns = 0;
	walk_ns = 5 * NS_PER_SEC / 2;
	for (uint32_t tid = 5; tid < 10; tid++) {
		show_asleep(tid);
		shown[0][tid - 5].kernel_count = 1;
		shown[0][tid - 5].kernel[0] = kernel_addresses[0];
	}
	open_scope(&(struct scan_scope){});
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(scan_step(scan, 1), 1);
	stats = finish();
	/* The third one begins after 5 s. */
	assert_int_equal(stats.late, 2);
	assert_int_equal(stats.walks, 5);
	assert_int_equal(walks_without_process, 2);
	assert_int_not_equal(scan_find(scan, 7)->user_stack, 0);
	assert_int_equal(scan_find(scan, 8)->user_stack, 0);
	assert_int_not_equal(scan_find(scan, 8)->kernel_stack, 0);
}

static void scan_step__goes_on_until_it_is_done(void **state)
{
	(void)state;
	read_ns = 2 * NS_PER_SEC;
	show_asleep(5);
	show_asleep(6);
	assert_int_equal(run().passes, 2);
	assert_non_null(scan_find(scan, 6));
	assert_true(follows > 1);
}

/* ---- errors ---- */

static void scan_new__passes_errors_on(void **state)
{
	(void)state;
	open_result[0] = -ENOTSUP;
	assert_int_equal(scan_new(&finisher, &(struct scan_scope){}, &scan), -ENOTSUP);
	passes_opened = 0;
	assert_int_equal(scan_whole(&finisher, &scan), -ENOTSUP);
	open_result[0] = 0;
	passes_opened = 0;
	reader_result = -ENOMEM;
	assert_int_equal(scan_new(&finisher, &(struct scan_scope){}, &scan), -ENOMEM);
	walker_result = -EPERM;
	assert_int_equal(scan_new(&finisher, &(struct scan_scope){}, &scan), -EPERM);
	assert_null(scan);
	assert_int_equal(walkers_open, 0);
}

static void scan_step__failure_leaves_what_was_found(void **state)
{
	(void)state;
	show_asleep(9);
	show_asleep(5);
	show_asleep(7);
	next_error = -EBADMSG;
	fails_at = 2;
	open_scope(&(struct scan_scope){});
	assert_int_equal(scan_step(scan, UINT64_MAX), -EBADMSG);
	assert_int_equal(scan_step(scan, UINT64_MAX), 0);
	/* Sorted, although the first pass has not ended. */
	assert_int_equal(scan_next(scan, NULL)->tid, 5);
	assert_non_null(scan_find(scan, 9));
	assert_null(scan_find(scan, 7));
	assert_int_equal(readers_open, 0);
	assert_int_equal(walkers_open, 0);
}

static void scan_step__pass_that_does_not_open_is_told(void **state)
{
	struct scan_stats stats;

	(void)state;
	show_asleep(5);
	open_result[1] = -EMFILE;
	open_scope(&(struct scan_scope){});
	assert_int_equal(scan_step(scan, UINT64_MAX), -EMFILE);
	scan_get_stats(scan, &stats);
	assert_int_equal(stats.passes, 1);
	assert_non_null(scan_find(scan, 5));
}

static void scan_step__lost_process_events_are_told(void **state)
{
	(void)state;
	show_asleep(5);
	follow_result = -EIO;
	open_scope(&(struct scan_scope){});
	assert_int_equal(scan_step(scan, UINT64_MAX), -EIO);
	assert_int_equal(walks, 0);
	passes_opened = 0;
	scan_free(scan);
	scan = NULL;
	assert_int_equal(scan_whole(&finisher, &scan), -EIO);
	assert_null(scan);
}

/* ---- afterwards ---- */

static void scan_forget__stack_that_another_thread_has_remains(void **state)
{
	struct scanned *first, *second;

	(void)state;
	for (uint32_t tid = 5; tid < 8; tid++) {
		show_asleep(tid);
		shown[0][tid - 5].kernel_count = 1;
		shown[0][tid - 5].kernel[0] = kernel_addresses[0];
	}
	of[5].stack = of[6].stack = 0x3001;
	run();
	assert_int_equal(described(0x3001), 1);
	first = scan_next(scan, NULL);
	second = scan_next(scan, first);
	scan_forget(scan, first);
	/* Twice is once. */
	scan_forget(scan, first);
	assert_null(scan_find(scan, 5));
	assert_ptr_equal(scan_next(scan, NULL), second);
	assert_int_equal(scan_refresh(scan), 0);
	assert_int_equal(described(0x3001), 2);
	scan_forget(scan, second);
	assert_int_equal(scan_refresh(scan), 0);
	assert_int_equal(described(0x3001), 2);
	assert_int_equal(described(of[7].stack), 3);
	assert_int_equal(described(scan_find(scan, 7)->kernel_stack), 3);
	scan_forget(scan, scan_next(scan, NULL));
	assert_null(scan_next(scan, NULL));
	known_count = 0;
	assert_int_equal(scan_refresh(scan), 0);
	assert_int_equal(known_count, 0);
}

static void scan_forget__meanwhile_ends_the_scan_of_the_thread(void **state)
{
	struct scan_stats stats;

	(void)state;
	for (unsigned int pass = 1; pass <= PASSES; pass++)
		show(pass, 5, pass);
	open_scope(&(struct scan_scope){});
	assert_int_equal(scan_step(scan, 1), 1);
	scan_forget(scan, scan_next(scan, NULL));
	stats = finish();
	assert_int_equal(stats.passes, 1);
	assert_int_equal(stats.walks, 1);
	assert_null(scan_find(scan, 5));
}

static void scan_refresh__refusal_is_told_and_the_others_are_added(void **state)
{
	(void)state;
	show_asleep(5);
	show_asleep(6);
	run();
	describe_result = -ENOSPC;
	assert_int_equal(scan_refresh(scan), -ENOSPC);
	assert_int_equal(described(of[5].stack), 2);
	assert_int_equal(described(of[6].stack), 2);
}

/* The teardown looks at what it leaves. */
static void scan_free__within_a_pass_closes_it(void **state)
{
	(void)state;
	show_asleep(5);
	open_scope(&(struct scan_scope){});
	assert_int_equal(scan_step(scan, 1), 1);
	assert_int_equal(readers_open, 1);
}

static void scan_free__of_none_does_nothing(void **state)
{
	(void)state;
	scan_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(scan__thread_that_sleeps_through_two_passes_is_found_whole),
		TEST(scan__entries_are_sorted_by_tid),
		TEST(scan__machine_without_blocked_threads_has_no_entries),
		TEST(scan__thread_that_ran_is_walked_again),
		TEST(scan__second_walk_may_find_no_stack),
		TEST(scan__tid_of_another_thread_is_walked_again),
		TEST(scan__thread_that_never_rests_is_torn),
		TEST(scan__thread_that_rests_in_the_last_pass_is_whole),
		TEST(scan__thread_that_comes_later_is_left_to_the_switch_program),
		TEST(scan__thread_seen_at_a_switch_is_left_out),
		TEST(scan__thread_seen_after_its_walk_needs_no_other_pass),
		TEST(scan__thread_seen_within_the_first_pass_needs_no_other),
		TEST(scan__thread_that_runs_unseen_is_looked_for_in_all_passes),
		TEST(scan__thread_that_moved_while_it_was_walked_is_torn),
		TEST(scan__thread_that_moved_is_whole_when_the_next_pass_says_so),
		TEST(scan__while_paused_only_the_next_pass_tells),
		TEST(scan__wanted_processes_are_scanned_with_threads_that_were_seen),
		TEST(scan__wanted_thread_is_torn_until_the_next_pass),
		TEST(scan__known_and_seen_threads_are_left_out),
		TEST(scan__process_that_nobody_announced_is_found_by_its_generation),
		TEST(scan__process_that_has_ended_is_looked_up_anew),
		TEST(scan__process_without_a_generation_is_unknown),
		TEST(scan__filter_leaves_out_who_does_not_match),
		TEST(scan__filter_leaves_out_who_is_unknown),
		TEST(scan__filter_that_no_longer_matches_ends_the_walks),
		TEST(scan__kernel_stacks_that_are_equal_are_one),
		TEST(scan__kernel_stacks_may_be_left_out),
		TEST(scan__names_are_wanted_of_python_stacks),
		TEST(scan__walk_without_a_stack_is_an_entry_without_one),
		TEST(scan__walk_without_memory_is_counted_as_refused),
		TEST(scan__stacks_of_16_mib_are_kept),
		TEST(scan__stack_beyond_16_mib_is_refused),
		TEST(scan__stack_fits_again_after_one_was_dropped),
		TEST(scan__threads_beyond_the_slots_are_refused),
		TEST(scan_step__ends_at_its_budget),
		TEST(scan_step__budget_may_be_longer_than_the_machine_is_up),
		TEST(scan_step__after_5_s_walks_have_no_user_stack),
		TEST(scan_step__goes_on_until_it_is_done),
		TEST(scan_new__passes_errors_on),
		TEST(scan_step__failure_leaves_what_was_found),
		TEST(scan_step__pass_that_does_not_open_is_told),
		TEST(scan_step__lost_process_events_are_told),
		TEST(scan_forget__stack_that_another_thread_has_remains),
		TEST(scan_forget__meanwhile_ends_the_scan_of_the_thread),
		TEST(scan_refresh__refusal_is_told_and_the_others_are_added),
		TEST(scan_free__within_a_pass_closes_it),
		TEST(scan_free__of_none_does_nothing),
	};

	return cmocka_run_group_tests_name("finish/scan_passes", tests, NULL, NULL);
}
