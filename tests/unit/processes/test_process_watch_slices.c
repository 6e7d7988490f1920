/* SPDX-License-Identifier: BSD-2-Clause */
/* Many new programs with files that take long to read: how much of it one turn of the loop does.
 * The clock is a number that each file's reading moves on; tables, rings and /proc are
 * stand-ins. */
#include "processes/process_watch.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "attach/context_table.h"
#include "attach/kernel_side.h"
#include "attach/mapping_locks.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/slice.h"
#include "discover/cpus.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "discover/sideband.h"
#include "discover/target.h"
#include "drain/ring.h"
#include "options/options.h"
#include "processes/process_shares.h"
#include "processes/who.h"
#include "python/python_process.h"

#include "counted_shares.h"

#define PROCESSES 20U
#define FILES 10U
#define FILE_NS (30 * NS_PER_MS)
#define MAPS_NS (7 * NS_PER_MS)
#define PROC_STEPS 30U
/* The slice, and the file that it could not foresee. */
#define TURN_MAX_NS (40 * NS_PER_MS + FILE_NS)

struct ring {
	struct drain_handlers handlers;
};

static struct ring ring;
static uint64_t now_ns;
static struct process process[PROCESSES];
static unsigned int files_read[PROCESSES], published[PROCESSES], maps_read[PROCESSES];
static bool wants_read[PROCESSES];
static unsigned int proc_steps, listings_ended;
static unsigned int forks; /* in the ring of events */
static char tables;
static size_t endless; /* the process that maps new files all the time */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = (time_t)(now_ns / NS_PER_SEC),
				  .tv_nsec = (long)(now_ns % NS_PER_SEC)};
	return 0;
}

/* ---- the table of contexts: ten files a process, of which each takes long ---- */

static size_t number_of(const struct process *of)
{
	return (size_t)(of - process);
}

int context_table_find_files(struct context_table *table, struct process *of,
			     const struct slice *slice)
{
	bool has_found = false;

	(void)table;
	while (files_read[number_of(of)] < FILES || number_of(of) == endless) {
		if (has_found && slice_is_over(slice))
			return -EAGAIN;
		files_read[number_of(of)]++;
		now_ns += FILE_NS;
		has_found = true;
	}
	return 0;
}

bool context_table_is_due(struct context_table *table, uint64_t at_ns)
{
	(void)table, (void)at_ns;
	return false;
}

bool context_table_ask_again(struct context_table *table, const struct process *of,
			     const struct slice *slice)
{
	(void)table, (void)of, (void)slice;
	return false;
}

int context_table_publish(struct context_table *table, struct process *of, uint16_t flags)
{
	(void)table, (void)flags;
	assert_int_equal(files_read[number_of(of)], FILES);
	published[number_of(of)]++;
	of->mappings_changed = false;
	of->tables = &tables;
	return 0;
}

uint16_t context_table_flags(const struct process *of)
{
	(void)of;
	return 0;
}
struct process_python *context_table_python(struct process *of)
{
	(void)of;
	return NULL;
}
int context_table_fork(struct context_table *table, const struct process *parent,
		       struct process *child)
{
	(void)table, (void)parent, (void)child;
	return 0;
}
void context_table_retire(struct context_table *table, struct process *of)
{
	(void)table, (void)of;
}
void context_table_release(struct context_table *table, struct process *of)
{
	(void)table, (void)of;
}

/* ---- processes ---- */

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table;
	return id.tgid - 1 < PROCESSES ? &process[id.tgid - 1] : NULL;
}
struct process *process_table_find_tgid(const struct process_table *table, uint32_t tgid)
{
	return process_table_find(table, (struct pp_process_id){.tgid = tgid});
}
struct process *process_table_next(const struct process_table *table,
				   const struct process *previous)
{
	const size_t next = previous ? number_of(previous) + 1 : 0;

	(void)table;
	return next < PROCESSES ? &process[next] : NULL;
}
int process_table_add(struct process_table *table, struct pp_process_id id, uint32_t ppid,
		      uint64_t start_ns, struct process **ret_process)
{
	(void)table, (void)id, (void)ppid, (void)start_ns, (void)ret_process;
	return -EEXIST;
}
int process_table_apply(struct process_table *table, const struct pp_event *event)
{
	(void)table;
	if (event->type == PP_EVENT_EXIT)
		process[event->id.tgid - 1].exit_ns = 1;
	return 0;
}
int process_table_exit(struct process_table *table, struct pp_process_id id, uint64_t time_ns)
{
	(void)table, (void)id, (void)time_ns;
	return 0;
}
int process_table_map(struct process_table *table, uint32_t tgid, const struct mapping *mapping)
{
	(void)table, (void)tgid, (void)mapping;
	return 0;
}
int process_table_new_context(struct process_table *table, uint32_t tgid, uint64_t time_ns)
{
	(void)table, (void)tgid, (void)time_ns;
	return 0;
}
int process_table_read_maps(struct process_table *table, struct process *of,
			    struct proc_maps_summary *ret_summary)
{
	(void)table, (void)ret_summary;
	maps_read[number_of(of)]++;
	wants_read[number_of(of)] = false;
	now_ns += MAPS_NS;
	return 0;
}
bool process_table_wants_read(const struct process *of)
{
	return !of->exit_ns && wants_read[number_of(of)];
}
void process_table_lost(struct process *of)
{
	wants_read[number_of(of)] = true;
}
int proc_scan(int (*callback)(void *context, const struct proc_stat *stat), void *context)
{
	(void)callback, (void)context;
	return 0;
}
/* It takes PROC_STEPS readings. */
int proc_scan_step(struct proc_scanning *scanning,
		   int (*callback)(void *context, const struct proc_stat *stat), void *context,
		   const struct slice *slice)
{
	(void)scanning, (void)callback, (void)context;
	do {
		now_ns += MAPS_NS;
		if (++proc_steps >= PROC_STEPS)
			return 0;
	} while (!slice_is_over(slice));
	return 1;
}
void proc_scanning_end(struct proc_scanning *scanning)
{
	(void)scanning;
	listings_ended++;
}

/* ---- events ---- */

int ring_new(int fd, enum ring_kind kind, const struct drain_handlers *handlers,
	     struct ring **ret_ring)
{
	(void)fd;
	assert_int_equal(kind, RING_EVENTS);
	ring.handlers = *handlers;
	*ret_ring = &ring;
	return 0;
}
void ring_free(struct ring *freed)
{
	(void)freed;
}
int ring_consume(struct ring *of)
{
	struct pp_event event = {.type = PP_EVENT_FORK};

	for (; forks; forks--) {
		event.id.tgid = PROCESSES - forks + 1;
		event.time_ns++;
		of->handlers.event(of->handlers.context, &event);
	}
	return 0;
}
int sideband_collect(struct sideband *sideband)
{
	(void)sideband;
	return 0;
}
void sideband_deliver(struct sideband *sideband, uint64_t until_ns,
		      const struct sideband_handlers *handlers)
{
	(void)sideband, (void)until_ns, (void)handlers;
}
void sideband_get_stats(const struct sideband *sideband, struct sideband_stats *ret_stats)
{
	(void)sideband, (void)ret_stats;
}
void process_table_get_stats(const struct process_table *processes,
			     struct process_table_stats *ret_stats)
{
	(void)processes, (void)ret_stats;
}
uint64_t ring_bad_count(const struct ring *of)
{
	(void)of;
	return 0;
}
int sideband_add_cpu(struct sideband *sideband, uint32_t cpu)
{
	(void)sideband, (void)cpu;
	return 0;
}
int sideband_remove_cpu(struct sideband *sideband, uint32_t cpu)
{
	(void)sideband, (void)cpu;
	return 0;
}

/* ---- the rest ---- */

struct kernel_side_parts kernel_side_parts(const struct kernel_side *side)
{
	(void)side;
	return (struct kernel_side_parts){.events = 0};
}

bool process_shares_take(const struct kernel_side *kernel, uint32_t tgid)
{
	(void)kernel, (void)tgid;
	return true;
}

int kernel_side_get_generation(struct kernel_side *side, uint32_t tgid, uint32_t *ret_generation)
{
	(void)side, (void)tgid, (void)ret_generation;
	return -ENOENT;
}
int mapping_spaces_read(int link,
			void (*on_space)(void *context, const struct pp_space_record *space),
			void *context)
{
	(void)link, (void)on_space, (void)context;
	return 0;
}
int kernel_side_add_process(struct kernel_side *side, struct pp_process_id id)
{
	(void)side, (void)id;
	return 0;
}
int kernel_side_follow_cpus(struct kernel_side *side, const uint32_t *online, size_t count)
{
	(void)side, (void)online, (void)count;
	return 0;
}
int kernel_side_set_thread_state(struct kernel_side *side, const struct pp_thread_key *key,
				 uint64_t thread_state)
{
	(void)side, (void)key, (void)thread_state;
	return 0;
}
int cpus_online(struct cpu_list *ret_list)
{
	(void)ret_list;
	return -ENOENT;
}
void cpu_list_release(struct cpu_list *list)
{
	(void)list;
}
bool target_needs_details(const struct target_filter *filter)
{
	(void)filter;
	return false;
}
bool target_matches(const struct target_filter *filter, const struct process_table *table,
		    const struct process *of)
{
	(void)filter, (void)table, (void)of;
	return true;
}
void who_read_details(struct process_table *processes, struct process *of)
{
	(void)processes, (void)of;
}
int python_process_self_test(const struct python_info *info, pid_t pid, uint64_t bias,
			     const char **ret_reason)
{
	(void)info, (void)pid, (void)bias, (void)ret_reason;
	return 0;
}
int python_process_threads(const struct python_info *info, pid_t pid, uint64_t bias,
			   struct python_thread **ret_threads, size_t *ret_count)
{
	(void)info, (void)pid, (void)bias, (void)ret_threads, (void)ret_count;
	return -ESRCH;
}
int python_process_inner_tid(pid_t pid, bool is_musl, uint64_t thread_id, uint64_t native_id,
			     uint32_t *ret_tid)
{
	(void)pid, (void)is_musl, (void)thread_id, (void)native_id, (void)ret_tid;
	return -ESRCH;
}

static const struct options options;

static int setup(void **state)
{
	const struct process_watch_sources sources = {.options = &options};
	struct process_watch *watch = NULL;

	memset(files_read, 0, sizeof(files_read));
	memset(published, 0, sizeof(published));
	memset(maps_read, 0, sizeof(maps_read));
	memset(wants_read, 0, sizeof(wants_read));
	proc_steps = listings_ended = 0;
	for (uint32_t i = 0; i < PROCESSES; i++)
		process[i] = (struct process){.id.tgid = i + 1,
					      .mappings_changed = true,
					      .is_user_known = true,
					      .user = i};
	forks = PROCESSES;
	endless = PROCESSES;
	now_ns = NS_PER_SEC;
	assert_int_equal(process_watch_new(&sources, &watch), 0);
	*state = watch;
	return 0;
}

static int teardown(void **state)
{
	process_watch_free(*state);
	return 0;
}

/* Returns how long it took. */
static uint64_t follow(struct process_watch *watch)
{
	const uint64_t started_ns = now_ns;

	assert_int_equal(process_watch_follow(watch), 0);
	return now_ns - started_ns;
}

static void follow__no_turn_takes_longer_than_its_slice_and_a_file(void **state)
{
	struct process_watch *watch = *state;
	unsigned int turns = 0;

	do {
		assert_in_range(follow(watch), 1, TURN_MAX_NS);
		turns++;
	} while (process_watch_has_more(watch));
	/* Nothing was left out, and nothing done twice. */
	for (unsigned int i = 0; i < PROCESSES; i++) {
		assert_int_equal(files_read[i], FILES);
		assert_int_equal(published[i], 1);
		assert_false(process[i].is_queued);
	}
	assert_true(turns >= PROCESSES * FILES * FILE_NS / TURN_MAX_NS);
	assert_int_equal(follow(watch), 0);
}

/* A stack of the last one has come; it waits for its own files alone. */
static void find__publishes_before_the_queue(void **state)
{
	struct process_watch *watch = *state;
	const struct pp_process_id last = process[PROCESSES - 1].id;
	unsigned int calls = 0;

	(void)follow(watch);
	while (!published[PROCESSES - 1] && calls++ < FILES) {
		const uint64_t started_ns = now_ns;

		assert_ptr_equal(process_watch_find(watch, last), &process[PROCESSES - 1]);
		assert_in_range(now_ns - started_ns, 1, TURN_MAX_NS);
	}
	assert_int_equal(published[PROCESSES - 1], 1);
	assert_int_equal(published[1], 0);
	while (process_watch_has_more(watch))
		(void)follow(watch);
	assert_int_equal(published[PROCESSES - 1], 1);
	assert_int_equal(published[1], 1);
}

static void find__of_a_published_process_does_nothing(void **state)
{
	struct process_watch *watch = *state;

	do
		(void)follow(watch);
	while (process_watch_has_more(watch));
	(void)process_watch_find(watch, process[3].id);
	assert_int_equal(published[3], 1);
}

static void follow__a_process_that_ended_in_the_queue_holds_up_nobody(void **state)
{
	struct process_watch *watch = *state;

	(void)follow(watch);
	for (unsigned int i = 0; i + 1 < PROCESSES; i++)
		process[i].exit_ns = now_ns;
	while (process_watch_has_more(watch))
		(void)follow(watch);
	assert_int_equal(published[0] + published[1], 0);
	assert_int_equal(published[PROCESSES - 1], 1);
}

static void follow__a_process_that_maps_files_all_the_time_holds_up_nobody(void **state)
{
	struct process_watch *watch = *state;
	unsigned int turns = 0;

	endless = 0;
	while (!published[PROCESSES - 1] && turns++ < PROCESSES * FILES)
		assert_in_range(follow(watch), 1, TURN_MAX_NS);
	for (unsigned int i = 1; i < PROCESSES; i++)
		assert_int_equal(published[i], 1);
	assert_int_equal(published[0], 0);
	assert_true(process_watch_has_more(watch));
}

/* Events were lost: processes that may have ended are read again, and then all of /proc. */
static void rescan__takes_turns_of_a_slice(void **state)
{
	struct process_watch *watch = *state;
	unsigned int turns = 0;

	forks = 0;
	for (unsigned int i = 0; i < PROCESSES; i++) {
		process[i].mappings_changed = false;
		process[i].tables = &tables;
	}
	process[3].exit_ns = 1;
	process_watch_want_rescan(watch);
	assert_false(process_watch_has_more(watch));
	process_watch_tick(watch);
	assert_int_equal(maps_read[0], 0);
	while (process_watch_has_more(watch)) {
		assert_in_range(follow(watch), 1, 40 * NS_PER_MS + MAPS_NS);
		turns++;
		/* One that ends meanwhile is left alone. */
		process[PROCESSES - 1].exit_ns = 1;
	}
	assert_true(turns >= (PROCESSES + PROC_STEPS) * MAPS_NS / (40 * NS_PER_MS + MAPS_NS));
	for (unsigned int i = 0; i < PROCESSES; i++)
		assert_int_equal(maps_read[i], i != 3 && i != PROCESSES - 1);
	assert_int_equal(proc_steps, PROC_STEPS);
	assert_int_equal(listings_ended, 1);
}

/* What was lost while /proc was read may lie before the place where that was. */
static void rescan__that_is_wanted_meanwhile_comes_after(void **state)
{
	struct process_watch *watch = *state;

	forks = 0;
	process_watch_want_rescan(watch);
	for (unsigned int round = 1; round <= 2; round++) {
		do {
			process_watch_tick(watch);
			(void)follow(watch);
		} while (!proc_steps);
		process_watch_want_rescan(watch);
		while (process_watch_has_more(watch))
			(void)follow(watch);
		assert_int_equal(listings_ended, round);
		proc_steps = 0;
	}
}

/* What is taken in for a stack is not published then. */
static void take_in__publishes_nothing(void **state)
{
	struct process_watch *watch = *state;
	const uint64_t started_ns = now_ns;

	assert_int_equal(process_watch_take_in(watch), 0);
	assert_int_equal(now_ns, started_ns);
	assert_true(process_watch_has_more(watch));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			follow__no_turn_takes_longer_than_its_slice_and_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(find__publishes_before_the_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(find__of_a_published_process_does_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			follow__a_process_that_ended_in_the_queue_holds_up_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(
			follow__a_process_that_maps_files_all_the_time_holds_up_nobody, setup,
			teardown),
		cmocka_unit_test_setup_teardown(rescan__takes_turns_of_a_slice, setup, teardown),
		cmocka_unit_test_setup_teardown(rescan__that_is_wanted_meanwhile_comes_after, setup,
						teardown),
		cmocka_unit_test_setup_teardown(take_in__publishes_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
