/* SPDX-License-Identifier: BSD-2-Clause */
/* Scans, slots and /proc are stand-ins; time stands still unless a test moves it. */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/waits.h"
#include "attach/kernel_side.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "discover/proc_scan.h"
#include "finish/scan.h"
#include "finish/user_unwind.h"
#include "ledger/ledger.h"
#include "options/options.h"
#include "windows/source.h"
#include "windows/summary.h"

extern const struct source scans_source;

#define SCANS_MAX 16U
#define SEED 31U
#define SLEEPERS_MAX 4U
#define WINDOW_NS (10 * NS_PER_SEC)
#define START_NS (100 * NS_PER_SEC)
#define END_NS (START_NS + WINDOW_NS)
#define SINCE_NS (START_NS - 5 * NS_PER_SEC)

struct scan {
	struct scanned sleeper[SLEEPERS_MAX];
	size_t count;
	int steps; /* until it is done; below 0: it breaks off so */
	struct scan_stats stats;
	struct scan_scope scope;
	unsigned int refreshed;
	bool is_open;
};

static uint64_t now_ns;
static struct scan scan[SCANS_MAX + 1];
static size_t scan_count;
static int scan_err;
static uint64_t budget_ns; /* of the last step */
static bool is_last;	   /* the window that is collected */
static unsigned int steps;
static char calls[1024];
static char told[512];
static struct thread_glance glance;
static bool has_slot;
static uint64_t moves;
static struct proc_status status;
static int status_err;
static unsigned int status_reads;
static uint64_t threads_full, threads_share;
static int losses_err;
static struct pp_thread counted; /* last */
static struct slots_window part;
static const char *fails;

__attribute__((format(printf, 1, 2))) static void call(const char *format, ...)
{
	const size_t used = strlen(calls);
	va_list args;

	va_start(args, format);
	vsnprintf(calls + used, sizeof(calls) - used, format, args);
	va_end(args);
}

/* ---- stand-ins ---- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = (time_t)(now_ns / NS_PER_SEC),
				  .tv_nsec = (long)(now_ns % NS_PER_SEC)};
	return 0;
}

void log_line(enum log_level level, const char *format, ...)
{
	va_list args;

	if (level == LOG_LEVEL_DEBUG)
		return;
	va_start(args, format);
	vsnprintf(told, sizeof(told), format, args);
	va_end(args);
}

static struct finisher finisher;

int scan_new(const struct finisher *of, const struct scan_scope *scope, struct scan **ret_scan)
{
	assert_ptr_equal(of, &finisher);
	assert_null(scope->wants);
	if (scan_err)
		return scan_err;
	assert_true(scan_count < ARRAY_SIZE(scan));
	*ret_scan = &scan[scan_count++];
	(*ret_scan)->scope = *scope;
	(*ret_scan)->is_open = true;
	return 0;
}

void scan_free(struct scan *of)
{
	assert_true(of->is_open);
	of->is_open = false;
}

int scan_step(struct scan *of, uint64_t budget)
{
	assert_true(of->is_open);
	budget_ns = budget;
	steps++;
	return of->steps > 0 ? of->steps-- > 0 : of->steps;
}

struct scanned *scan_next(struct scan *of, const struct scanned *last)
{
	size_t next = last ? (size_t)(last - of->sleeper) + 1 : 0;

	while (next < of->count && !of->sleeper[next].tid)
		next++;
	return next < of->count ? &of->sleeper[next] : NULL;
}

const struct scanned *scan_find(const struct scan *of, uint32_t tid)
{
	for (size_t i = 0; i < of->count; i++)
		if (of->sleeper[i].tid == tid)
			return &of->sleeper[i];
	return NULL;
}

void scan_forget(struct scan *of, struct scanned *scanned)
{
	(void)of;
	scanned->tid = 0;
}

int scan_refresh(struct scan *of)
{
	of->refreshed++;
	return 0;
}

void scan_get_stats(const struct scan *of, struct scan_stats *ret_stats)
{
	*ret_stats = of->stats;
}

volatile struct pp_config *kernel_side_config(const struct kernel_side *side)
{
	static struct pp_config config = {.thread_seed = SEED};

	(void)side;
	return &config;
}

struct pp_thread *kernel_side_threads(const struct kernel_side *side, uint32_t *ret_count)
{
	(void)side;
	*ret_count = 9;
	return NULL;
}

int kernel_side_get_losses(const struct kernel_side *side, uint64_t ret_losses[PP_LOSS_COUNT])
{
	(void)side;
	if (!losses_err)
		ret_losses[PP_LOSS_THREADS_FULL] = threads_full;
	if (!losses_err)
		ret_losses[PP_LOSS_THREADS_SHARE] = threads_share;
	return losses_err;
}

uint64_t thread_slots_moves(const struct pp_thread *slots, uint32_t count, uint32_t seed,
			    uint32_t tid)
{
	(void)slots, (void)tid;
	assert_int_equal(count, 9);
	assert_int_equal(seed, SEED);
	return moves;
}

bool thread_slots_glance(const struct pp_thread *slots, uint32_t count, uint32_t seed, uint32_t tid,
			 struct thread_glance *ret_glance)
{
	(void)slots, (void)tid;
	assert_int_equal(count, 9);
	assert_int_equal(seed, SEED);
	*ret_glance = glance;
	return has_slot;
}

int thread_status_read(uint32_t tgid, uint32_t tid, struct proc_status *ret_status)
{
	assert_int_equal(tgid, 70);
	assert_true(tid >= 71);
	*ret_status = status;
	status_reads++;
	return status_err;
}

int thread_slot_count(const struct pp_thread *thread, const struct slots_window *window,
		      struct counts *counts)
{
	(void)counts;
	counted = *thread;
	part = *window;
	if (fails && !strcmp(fails, "count"))
		return -ENOMEM;
	call("%u:%lld-%lld ", thread->tid, (long long)(window->start_ns / NS_PER_SEC),
	     (long long)(window->end_ns / NS_PER_SEC));
	return 0;
}

int ledger_add_sleep(struct ledger *ledger, struct pp_process_id id, enum pp_wait wait, uint64_t ns,
		     bool is_alone)
{
	(void)ledger;
	assert_int_equal(id.tgid, 70);
	assert_int_equal(wait, PP_WAIT_POLL);
	call("%llu%s|", (unsigned long long)(ns / NS_PER_SEC), is_alone ? "" : "+");
	return fails && !strcmp(fails, "ledger") ? -ENOMEM : 0;
}

/* ---- */

static void *scans; /* the source's state */
static struct counts counts;

/* For the source. */
struct ledger *waits_ledger(struct waits *waits)
{
	(void)waits;
	return NULL;
}

static struct options options;
static const struct sources sources;
static const struct services services = {
	.options = &options, .finisher = &finisher, .sources = &sources};

static int setup(void **state)
{
	(void)state;
	now_ns = SINCE_NS;
	memset(scan, 0, sizeof(scan));
	scan_count = 0;
	scan_err = losses_err = status_err = 0;
	budget_ns = steps = status_reads = 0;
	is_last = false;
	calls[0] = told[0] = '\0';
	glance = (struct thread_glance){};
	has_slot = false;
	moves = 5;
	threads_full = threads_share = 0;
	status = (struct proc_status){.tgid = 70, .switches = 40};
	fails = NULL;
	options.interval_ns = WINDOW_NS;
	assert_int_equal(source_new(&scans_source, &services, &scans), 0);
	return 0;
}

static int teardown(void **state)
{
	int open = 0;

	(void)state;
	source_free(&scans_source, scans);
	for (size_t i = 0; i < scan_count; i++)
		open += scan[i].is_open;
	return open;
}

static void add_sleeper(struct scan *of, uint32_t tid)
{
	of->sleeper[of->count++] = (struct scanned){.tid = tid,
						    .id = {.tgid = 70, .generation = 1},
						    .user_stack = 11,
						    .kernel_stack = 13,
						    .flags = PP_COUNT_PYTHON,
						    .wait = PP_WAIT_POLL,
						    .switches = 40,
						    .moves = 5};
	of->stats.threads = of->count;
}

static uint64_t lost(void)
{
	struct summary summary = {};

	scans_source.summarize(scans, &summary);
	return summary.loss[PP_LOSS_SWEPT_LOST];
}

/* Whether any scan has found a thread that is not known to have moved: the next one passes it
 * over. */
static bool is_known(uint32_t tid)
{
	const struct scan_scope *scope = &scan[scan_count - 1].scope;

	return scope->is_known(scope->context, tid);
}

/* Counts a window, and returns what was counted. */
static const char *collected_in(uint64_t start_ns, uint64_t end_ns)
{
	const struct source_window window = {
		.slots = {.number = 6, .start_ns = start_ns, .end_ns = end_ns},
		.is_last = is_last,
		.counts = &counts};

	calls[0] = '\0';
	assert_int_equal(scans_source.collect_slots(scans, &window), 0);
	return calls;
}

static const char *collected(void)
{
	return collected_in(START_NS, END_NS);
}

static void start__that_fails_is_told_and_counted(void **state)
{
	(void)state;
	scan_err = -ENOTSUP;
	assert_int_equal(scans_source.begin(scans, SINCE_NS), 0);
	assert_string_equal(told,
			    "threads that have slept since before the start are not measured: "
			    "Operation not supported");
	assert_int_equal(lost(), 1);
	scans_source.step(scans);
	assert_int_equal(steps, 0);
	assert_string_equal(collected(), "");
}

static void step__leaves_pauses(void **state)
{
	(void)state;
	scans_source.step(scans); /* none was started */
	assert_int_equal(scans_source.timeout_ms(scans, 250), 250);
	assert_int_equal(scans_source.begin(scans, SINCE_NS), 0);
	scan[0].steps = 2;
	assert_int_equal(scans_source.timeout_ms(scans, 250), 0);
	scans_source.step(scans);
	assert_int_equal(steps, 1);
	assert_int_equal(budget_ns, 10 * NS_PER_MS);
	assert_int_equal(scans_source.timeout_ms(scans, 250), 21);
	assert_int_equal(scans_source.timeout_ms(scans, 15), 15);
	scans_source.step(scans);
	now_ns += 20 * NS_PER_MS - 1;
	scans_source.step(scans);
	assert_int_equal(steps, 1);
	now_ns++;
	assert_int_equal(scans_source.timeout_ms(scans, 250), 0);
	scans_source.step(scans);
	assert_int_equal(steps, 2);
	now_ns += NS_PER_SEC;
	scans_source.step(scans); /* done */
	assert_int_equal(steps, 3);
	assert_int_equal(scans_source.timeout_ms(scans, 250), 250);
	now_ns += NS_PER_SEC;
	scans_source.step(scans);
	assert_int_equal(steps, 3);
}

static void another_scan__waits_for_the_first_and_costs_little(void **state)
{
	(void)state;
	scans_source.see_process(scans, NULL, true);
	now_ns += 100 * NS_PER_SEC;
	scans_source.step(scans); /* the first one is still to come */
	assert_int_equal(scan_count, 0);
	assert_int_equal(scans_source.begin(scans, SINCE_NS), 0);
	scans_source.see_process(scans, NULL, true);
	scan[0].stats.spent_ns = 10 * NS_PER_MS;
	scans_source.step(scans); /* done: the next one in 1 + 200 * 0.01 s */
	now_ns += 3 * NS_PER_SEC - 1;
	scans_source.step(scans);
	assert_int_equal(scan_count, 1);
	now_ns++;
	scans_source.step(scans);
	assert_int_equal(scan_count, 2);
	assert_int_equal(steps, 2);
	/* It was asked for once. */
	now_ns += 100 * NS_PER_SEC;
	scans_source.step(scans);
	assert_int_equal(scan_count, 2);
	/* A thread may switch out unseen until the filter was evaluated again. */
	scans_source.see_process(scans, NULL, true);
	now_ns += 200 * NS_PER_MS - 1;
	scans_source.step(scans);
	assert_int_equal(scan_count, 2);
	now_ns++;
	scans_source.step(scans);
	assert_int_equal(scan_count, 3);
}

/* Makes one more scan, which finds a sleeper. */
static void scan_again(uint32_t tid)
{
	const size_t next = scan_count;

	if (next < ARRAY_SIZE(scan))
		add_sleeper(&scan[next], tid);
	scans_source.see_process(scans, NULL, true);
	now_ns += 10 * NS_PER_SEC;
	scans_source.step(scans);
}

static void scans__with_sleepers_are_bounded(void **state)
{
	(void)state;
	assert_int_equal(scans_source.begin(scans, SINCE_NS), 0);
	add_sleeper(&scan[0], 71);
	scans_source.step(scans);
	for (uint32_t i = 1; i < SCANS_MAX; i++)
		scan_again(71 + i);
	assert_int_equal(scan_count, SCANS_MAX);
	assert_int_equal(lost(), 0);
	scan_again(1000);
	assert_int_equal(scan_count, SCANS_MAX);
	assert_int_equal(lost(), 1);
	/* All are looked through, and none is found again. */
	assert_true(is_known(71));
	assert_true(is_known(71 + SCANS_MAX - 1));
	assert_false(is_known(70));
	assert_true(scan[1].scope.is_known(scan[1].scope.context, 71));
	assert_false(scan[1].scope.is_known(scan[1].scope.context, 70));
	scans_source.refresh(scans);
	assert_int_equal(scan[0].refreshed, 1);
	assert_int_equal(scan[SCANS_MAX - 1].refreshed, 1);
}

static void lost__are_all_that_a_scan_left_out(void **state)
{
	(void)state;
	assert_int_equal(scans_source.begin(scans, SINCE_NS), 0);
	scan[0].stats = (struct scan_stats){.threads = 1000, .torn = 1, .late = 20, .refused = 300};
	scans_source.step(scans);
	assert_int_equal(lost(), 321);
	scan[1].steps = -EIO;
	scan_again(71);
	assert_int_equal(scan_count, 2);
	assert_int_equal(lost(), 322);
	assert_int_equal(scans_source.timeout_ms(scans, 250), 250); /* it is done all the same */
	assert_true(is_known(71));
}

/* ---- counting ---- */

static void scan_one_sleeper(void)
{
	assert_int_equal(scans_source.begin(scans, SINCE_NS), 0);
	add_sleeper(&scan[0], 71);
	scans_source.step(scans);
}

static void window__hurries_a_scan_within_a_bound(void **state)
{
	(void)state;
	assert_int_equal(scans_source.begin(scans, SINCE_NS), 0);
	assert_string_equal(collected(), "");
	assert_int_equal(steps, 1);
	assert_int_equal(budget_ns, 40 * NS_PER_MS);
	for (unsigned int seconds = 1; seconds <= 10; seconds += 9) {
		source_free(&scans_source, scans);
		options.interval_ns = seconds * NS_PER_SEC;
		assert_int_equal(source_new(&scans_source, &services, &scans), 0);
		assert_int_equal(scans_source.begin(scans, SINCE_NS), 0);
		is_last = true;
		assert_string_equal(collected(), "");
		assert_int_equal(budget_ns, seconds == 1 ? NS_PER_SEC / 2 : NS_PER_SEC);
	}
	assert_string_equal(collected(), "");
	assert_int_equal(steps, 3);
	assert_int_equal(lost(), 0);
}

/* The loop waits for a scan before it ends a window. */
static void window__that_waits_leaves_no_pauses(void **state)
{
	(void)state;
	assert_false(scans_source.hurry(scans));
	assert_int_equal(scans_source.begin(scans, SINCE_NS), 0);
	scan[0].steps = 4;
	scan[0].stats.passes = 2;
	scans_source.step(scans);
	scans_source.step(scans);
	assert_int_equal(steps, 1);
	assert_true(scans_source.hurry(scans));
	scans_source.step(scans);
	scans_source.step(scans);
	assert_int_equal(steps, 3);
	assert_string_equal(collected(), "");
	assert_int_equal(steps, 4);
	scans_source.step(scans);
	assert_int_equal(steps, 5);
	assert_false(scans_source.hurry(scans)); /* done */
}

static void window__that_ends_before_the_scan_misses_what_is_found_later(void **state)
{
	(void)state;
	assert_int_equal(scans_source.begin(scans, SINCE_NS), 0);
	scan[0].steps = 1;
	scan[0].stats.passes = 1;
	add_sleeper(&scan[0], 71);
	assert_string_equal(collected(), "71:100-110 10|");
	assert_int_equal(lost(), 1);
	add_sleeper(&scan[0], 72);
	add_sleeper(&scan[0], 73);
	now_ns += NS_PER_SEC;
	scans_source.step(scans);
	assert_int_equal(lost(), 3);
	scan_again(74);
	assert_int_equal(lost(), 3);
}

static void window__misses_none_when_all_threads_were_reached(void **state)
{
	(void)state;
	assert_int_equal(scans_source.begin(scans, SINCE_NS), 0);
	scan[0].steps = 1;
	scan[0].stats.passes = 2;
	add_sleeper(&scan[0], 71);
	assert_string_equal(collected(), "71:100-110 10|");
	add_sleeper(&scan[0], 72);
	now_ns += NS_PER_SEC;
	scans_source.step(scans);
	assert_int_equal(lost(), 0);
}

static void sleep__is_counted_window_by_window(void **state)
{
	(void)state;
	scan_one_sleeper();
	assert_string_equal(collected(), "71:100-110 10|");
	assert_string_equal(collected_in(END_NS, END_NS + NS_PER_SEC), "71:110-111 1|");
	assert_int_equal(status_reads, 0);
	/* Not before it was known to sleep. */
	assert_string_equal(collected_in(SINCE_NS - NS_PER_SEC, END_NS), "71:95-110 15|");
	assert_int_equal(lost(), 0);
}

static void sleep__is_counted_as_a_slot_would_be(void **state)
{
	const struct pp_wait_site *site = &counted.site[0];

	(void)state;
	scan_one_sleeper();
	(void)collected();
	assert_int_equal(counted.tid, 71);
	assert_int_equal(counted.id.tgid, 70);
	assert_int_equal(counted.flags, PP_THREAD_MATCHES | PP_THREAD_WAITING);
	assert_int_equal(counted.wait, PP_WAIT_POLL);
	assert_int_equal(counted.since_ns, START_NS);
	assert_int_equal(part.number, 6);
	assert_int_equal(site->user_stack, 11);
	assert_int_equal(site->kernel_stack, 13);
	assert_int_equal(site->flags, PP_COUNT_PYTHON | PP_COUNT_SWEPT);
	assert_int_not_equal(site->sum[0].window, 6);
	assert_int_not_equal(site->sum[1].window, 6);
}

static void sleep__of_a_torn_stack_has_none(void **state)
{
	const struct pp_wait_site *site = &counted.site[0];

	(void)state;
	scan_one_sleeper();
	scan[0].sleeper[0].is_torn = true;
	scan[0].sleeper[0].flags |=
		PP_STOP_ROOT << PP_COUNT_STOP_SHIFT | PP_PY_STOP_ROOT << PP_COUNT_PY_STOP_SHIFT;
	(void)collected();
	assert_int_equal(site->user_stack, 0);
	assert_int_equal(site->kernel_stack, 13);
	assert_int_equal(site->flags, PP_COUNT_PYTHON | PP_COUNT_SWEPT |
					      PP_STOP_READ_FAULT << PP_COUNT_STOP_SHIFT);
}

static void waking__is_when_the_thread_first_took_a_slot(void **state)
{
	(void)state;
	scan_one_sleeper();
	has_slot = true;
	glance = (struct thread_glance){.first_ns = START_NS + 4 * NS_PER_SEC,
					.created_ns = START_NS + 6 * NS_PER_SEC,
					.flags = PP_THREAD_MATCHES};
	assert_string_equal(collected(), "71:100-104 4+|");
	assert_false(is_known(71));
	assert_int_equal(lost(), 0);
	assert_int_equal(status_reads, 0);
	assert_false(scan[0].is_open); /* none sleeps any more */
}

static void waking__after_the_window_is_for_the_next(void **state)
{
	(void)state;
	scan_one_sleeper();
	has_slot = true;
	glance = (struct thread_glance){.first_ns = END_NS, .created_ns = END_NS};
	assert_string_equal(collected(), "71:100-110 10|");
	assert_true(is_known(71));
	assert_string_equal(collected_in(END_NS, END_NS + WINDOW_NS), "");
	assert_false(is_known(71));
}

static void waking__is_when_an_older_slot_was_made_anew(void **state)
{
	(void)state;
	scan_one_sleeper();
	has_slot = true;
	glance = (struct thread_glance){.first_ns = SINCE_NS - 1,
					.created_ns = START_NS + 7 * NS_PER_SEC};
	assert_string_equal(collected(), "71:100-107 7|"); /* its slot is not of a match */
	scan_again(72);
	/* It woke up at once. */
	glance = (struct thread_glance){.first_ns = now_ns, .created_ns = END_NS};
	assert_string_equal(collected(), "");
	assert_false(is_known(72));
}

static void waking__is_unknown_where_slots_were_full(void **state)
{
	(void)state;
	scan_one_sleeper();
	has_slot = true;
	threads_full = 3;
	glance = (struct thread_glance){.first_ns = START_NS + 4 * NS_PER_SEC};
	assert_string_equal(collected(), "");
	assert_int_equal(lost(), 1);
	assert_false(is_known(71));
}

static void proc__is_asked_where_slots_do_not_tell(void **state)
{
	(void)state;
	scan_one_sleeper();
	moves = 6; /* another thread took a slot that this one may take */
	assert_string_equal(collected(), "71:100-110 10|");
	assert_int_equal(status_reads, 1);
	assert_string_equal(collected(), "71:100-110 10|");
	assert_int_equal(status_reads, 1); /* no more moves since */
	threads_full = 1;
	assert_string_equal(collected(), "71:100-110 10|");
	assert_int_equal(status_reads, 2);
	assert_string_equal(collected(), "71:100-110 10|");
	assert_int_equal(status_reads, 2); /* none was left out since */
	threads_share = 1;
	assert_string_equal(collected(), "71:100-110 10|");
	assert_int_equal(status_reads, 3);
	status_reads = 2;
	losses_err = -EIO;
	assert_string_equal(collected(), "71:100-110 10|");
	assert_int_equal(status_reads, 3);
	losses_err = 0;
	assert_string_equal(collected(), "71:100-110 10|");
	assert_int_equal(status_reads, 4); /* it may have grown meanwhile */
	has_slot = true;		   /* outside of the filter, older than the scan */
	glance = (struct thread_glance){.first_ns = 1, .created_ns = SINCE_NS - 1};
	assert_string_equal(collected(), "71:100-110 10|");
	assert_int_equal(status_reads, 5);
	glance.flags = PP_THREAD_MATCHES;
	assert_string_equal(collected(), "71:100-110 10+|");
	assert_int_equal(lost(), 0);
}

static void proc__that_tells_of_a_run_ends_the_sleep(void **state)
{
	(void)state;
	moves = 6;
	for (unsigned int i = 0; i < 4; i++) {
		const struct proc_status each[] = {
			{.tgid = 70, .switches = 41},
			{.tgid = 70, .switches = 40, .is_runnable = true},
			{.tgid = 69, .switches = 40},
			{.tgid = 70, .switches = 40}, /* cannot be read */
		};

		source_free(&scans_source, scans);
		memset(scan, 0, sizeof(scan));
		scan_count = 0;
		assert_int_equal(source_new(&scans_source, &services, &scans), 0);
		scan_one_sleeper();
		status = each[i];
		status_err = i == 3 ? -ESRCH : 0;
		assert_string_equal(collected(), "");
		assert_false(is_known(71));
		assert_int_equal(lost(), 1);
	}
}

static void tidy__keeps_the_scan_that_is_not_done(void **state)
{
	(void)state;
	scan_one_sleeper();
	scans_source.see_process(scans, NULL, true);
	now_ns += 10 * NS_PER_SEC;
	scan[1].steps = 100;
	scans_source.step(scans);
	assert_int_equal(scan_count, 2);
	scan_forget(&scan[0], &scan[0].sleeper[0]);
	(void)collected();
	assert_false(scan[0].is_open);
	assert_true(scan[1].is_open);
	scan[1].steps = 0;
	add_sleeper(&scan[1], 72);
	(void)collected();
	assert_true(is_known(72));
}

static void collect__ends_where_memory_ends(void **state)
{
	static const char *const part_of[] = {"count", "ledger"};
	const struct source_window window = {.slots = {.start_ns = START_NS, .end_ns = END_NS},
					     .counts = &counts};

	(void)state;
	scan_one_sleeper();
	for (size_t i = 0; i < ARRAY_SIZE(part_of); i++) {
		fails = part_of[i];
		assert_int_equal(scans_source.collect_slots(scans, &window), -ENOMEM);
	}
	fails = NULL;
	assert_string_equal(collected(), "71:100-110 10|");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(start__that_fails_is_told_and_counted),
		TEST(step__leaves_pauses),
		TEST(another_scan__waits_for_the_first_and_costs_little),
		TEST(scans__with_sleepers_are_bounded),
		TEST(lost__are_all_that_a_scan_left_out),
		TEST(window__hurries_a_scan_within_a_bound),
		TEST(window__that_waits_leaves_no_pauses),
		TEST(window__that_ends_before_the_scan_misses_what_is_found_later),
		TEST(window__misses_none_when_all_threads_were_reached),
		TEST(sleep__is_counted_window_by_window),
		TEST(sleep__is_counted_as_a_slot_would_be),
		TEST(sleep__of_a_torn_stack_has_none),
		TEST(waking__is_when_the_thread_first_took_a_slot),
		TEST(waking__after_the_window_is_for_the_next),
		TEST(waking__is_when_an_older_slot_was_made_anew),
		TEST(waking__is_unknown_where_slots_were_full),
		TEST(proc__is_asked_where_slots_do_not_tell),
		TEST(proc__that_tells_of_a_run_ends_the_sleep),
		TEST(tidy__keeps_the_scan_that_is_not_done),
		TEST(collect__ends_where_memory_ends),
	};

	return cmocka_run_group_tests_name("agent/scans", tests, NULL, NULL);
}
