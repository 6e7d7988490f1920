/* SPDX-License-Identifier: BSD-2-Clause */
/* All stages are stand-ins that write down when they are called: what a window is made of is their
 * order. */
#include "agent/window.h"

#include <cmocka.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/live.h"
#include "agent/naming.h"
#include "agent/samples.h"
#include "agent/stack_intake.h"
#include "agent/tables.h"
#include "agent/window_facts.h"
#include "attach/context_table.h"
#include "attach/file_table.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/log.h"
#include "discover/process_table.h"
#include "drain/thread_slots.h"
#include "options/options.h"
#include "processes/identities.h"
#include "processes/process_watch.h"
#include "processes/thread_names.h"
#include "store/output.h"
#include "windows/modules.h"
#include "windows/profile_shares.h"
#include "windows/profiles.h"
#include "windows/source.h"
#include "windows/top.h"

#define INTERVAL_NS (10 * NS_PER_SEC)
#define CLOSED_TABLES 6U
#define CPUS 12U
#define HZ 97U

static char calls[512];
static const char *fails; /* the name of the call that fails */
static bool is_store, wants_comment, begins_epoch;
static struct slots_window slots;
static size_t process_count;
static uint64_t allowed_ns; /* of which the open profiles have the share of the store */
static uint64_t begun_wall_ns, written_start_ns, written_length_ns, watched_ns, forgotten_ns;
static uint64_t unused_before_ns, unused_slots, closed_slots;
static bool written_last;
static const char *watched_comment;
static int interns;	/* that are open */
static int late_stacks; /* calls that leave stacks in the ring or the queue */
static bool has_stacks_slice;
static unsigned int more_samples, more_clients; /* calls that leave some */
static bool window_closes_last;
static struct summary *told[2];

static int call(const char *name)
{
	const size_t used = strlen(calls);

	snprintf(calls + used, sizeof(calls) - used, "%s%s", used ? " " : "", name);
	return fails && !strcmp(fails, name) ? -EIO : 0;
}

/* ---- stand-ins ---- */

int intern_new(struct intern **ret_intern)
{
	interns++;
	*ret_intern = (struct intern *)calls;
	return 0;
}

void intern_free(struct intern *intern)
{
	interns -= intern != NULL;
}

void modules_begin(struct modules *modules, struct intern *strings)
{
	(void)modules;
	assert_non_null(strings);
	call("modules");
}

int profiles_open(struct profiles *profiles, const struct options *options, struct intern *strings,
		  uint64_t start_wall_ns)
{
	(void)options, (void)strings;
	begun_wall_ns = start_wall_ns;
	profiles->is_open = true;
	return call("open");
}

void profile_shares_reset(struct profile_shares *shares)
{
	(void)shares;
	allowed_ns = 0;
}

void profile_shares_allow(struct profile_shares *shares, uint64_t duration_ns, uint32_t cpus,
			  uint32_t hz)
{
	(void)shares;
	assert_int_equal(cpus, CPUS);
	assert_int_equal(hz, HZ);
	allowed_ns = duration_ns;
}

void profile_shares_release(struct profile_shares *shares)
{
	(void)shares;
}

void profiles_close(struct profiles *profiles)
{
	profiles->is_open = false;
}

const struct profile *profiles_any(const struct profiles *profiles)
{
	(void)profiles;
	return (const struct profile *)calls;
}

int profiles_add_comment(struct profiles *profiles, const char *comment)
{
	(void)profiles;
	assert_string_equal(comment, "facts");
	return call("comment");
}

int profiles_write(struct profiles *of, struct output *output, struct writer_window *written)
{
	(void)of, (void)output;
	written_start_ns = written->start_wall_ns;
	written_length_ns = written->duration_ns;
	written_last = written->is_last;
	assert_non_null(written->strings);
	intern_free(TAKE(written->strings)); /* the window's are gone */
	return call("write");
}

void tables_start(const struct tables *tables, uint64_t started_ns)
{
	(void)tables, (void)started_ns;
	call("start");
}

uint32_t tables_begin_window(struct tables *tables, uint64_t ended_ns)
{
	assert_true(ended_ns > 0);
	tables->window++;
	call("swap");
	return CLOSED_TABLES;
}

uint64_t coverage_take(struct coverage *coverage)
{
	(void)coverage;
	call("coverage");
	return 1000;
}

void tables_settle(void)
{
	call("settle");
}

int process_watch_follow(struct process_watch *watch)
{
	(void)watch;
	return call("follow");
}

int stack_intake_serve(const struct stack_intake *intake, const struct slice *slice)
{
	(void)intake;
	has_stacks_slice = slice;
	return call("stacks") ? -EIO : late_stacks ? late_stacks-- > 0 : 0;
}

/* The last window's: it has a second. */
int stack_intake_end(const struct stack_intake *intake, const struct slice *slice)
{
	const uint64_t now_ns = mono_ns();

	(void)intake;
	assert_non_null(slice);
	assert_in_range(slice->ends_ns, now_ns, now_ns + NS_PER_SEC);
	return call("stacks") ? -EIO : 0;
}

void tables_take(struct tables *tables, struct counts *ret_counts, struct wakes *ret_wakes)
{
	(void)tables;
	*ret_counts = (struct counts){.count = 2};
	*ret_wakes = (struct wakes){.count = 3};
	call("take");
}

void tables_end_slots(const struct tables *tables, uint32_t window)
{
	/* That of the window that was closed, not of the open one. */
	assert_int_equal(window + 1, tables->window);
	call("slots_read");
}

int tables_drain(struct tables *tables, uint32_t number, struct counts *counts, struct wakes *wakes)
{
	(void)tables, (void)wakes;
	assert_int_equal(number, CLOSED_TABLES);
	counts->bounded = 5;
	return call("drain");
}

void counts_release(struct counts *counts)
{
	(void)counts;
	call("release");
}

void wakes_release(struct wakes *wakes)
{
	(void)wakes;
}

void top_begin(struct top *top, struct intern *strings, uint64_t start_wall_ns)
{
	(void)top, (void)strings;
	begun_wall_ns = start_wall_ns;
	call("top");
}

int samples_add(const struct samples *samples, const struct counts *counts,
		struct samples_adding *adding, const struct slice *slice)
{
	(void)samples;
	assert_int_equal(counts->count, 2);
	adding->noted++;
	assert_true(!more_samples || slice);
	return call("samples") ? -EIO : more_samples ? (int)(more_samples-- > 0) : 0;
}

static size_t noted_at_release; /* of what was let go last */

void samples_adding_release(struct samples_adding *adding)
{
	noted_at_release = adding->noted;
	*adding = (struct samples_adding){};
}

bool top_wants_comment(const struct top *top)
{
	(void)top;
	return wants_comment;
}

bool top_end(struct top *top, const struct top_facts *facts, const struct slice *slice)
{
	(void)top, (void)slice;
	assert_non_null(facts->modules);
	assert_true(facts->spent_ns > 0); /* the stages before took some */
	watched_ns = facts->duration_ns;
	watched_comment = facts->comment ? "facts" : NULL;
	call("top_end");
	return more_clients ? more_clients-- > 0 : false;
}

void wakers_adding_free(struct wakers_adding *adding)
{
	(void)adding;
}

int wakers_add(const struct samples *samples, const struct wakes *wakes,
	       struct wakers_adding **adding, const struct slice *slice)
{
	(void)samples, (void)adding, (void)slice;
	assert_int_equal(wakes->count, 3);
	return call("wakers");
}

int window_facts_tell(const struct window_facts *facts, struct summary *summary, char **ret_text)
{
	const int err = call("facts");

	(void)facts;
	told[1] = told[0];
	told[0] = summary;
	if (!err)
		*ret_text = strdup("facts");
	return err;
}

bool output_is_store(const struct output *output)
{
	(void)output;
	return is_store;
}

void identities_expire(struct identities *identities, uint64_t before_ns)
{
	(void)identities;
	assert_int_equal(before_ns, forgotten_ns);
}

void thread_names_expire(struct thread_names *names, uint64_t before_ns)
{
	(void)names;
	forgotten_ns = before_ns;
	call("forget");
}

static struct process *expired;

size_t process_table_count(const struct process_table *table)
{
	(void)table;
	return process_count;
}

void process_table_expire(struct process_table *table, uint64_t before_ns,
			  void (*release)(void *context, struct process *process), void *context)
{
	(void)table;
	assert_int_equal(before_ns, forgotten_ns);
	release(context, expired);
}

void context_table_release(struct context_table *table, struct process *process)
{
	assert_ptr_equal(table, calls);
	assert_ptr_equal(process, expired);
	call("image");
}

void context_table_tidy(struct context_table *table, uint64_t before_ns)
{
	assert_ptr_equal(table, calls);
	assert_int_equal(before_ns, forgotten_ns);
	call("numbers");
}

void file_table_tidy(struct file_table *table, uint64_t before_ns)
{
	(void)table;
	assert_int_equal(before_ns, forgotten_ns);
	call("files");
}

bool file_table_find_unused(const struct file_table *table, uint64_t before_ns, uint64_t *ret_slots)
{
	(void)table;
	unused_before_ns = before_ns;
	ret_slots[0] = unused_slots;
	return unused_slots != 0;
}

/* The file 4 is left for later. */
bool naming_keep(struct naming *naming, uint64_t *files, const struct slice *slice)
{
	const uint64_t now_ns = mono_ns();

	(void)naming;
	assert_int_equal(files[0], unused_slots);
	assert_in_range(slice->ends_ns, now_ns, now_ns + 40 * NS_PER_MS);
	call("keep");
	files[0] &= ~16ULL;
	return unused_slots & 16;
}

void file_table_close(struct file_table *table, const uint64_t *slots_of_files)
{
	(void)table;
	closed_slots = slots_of_files[0];
	call("close");
}

bool epochs_end_window(struct epochs *epochs)
{
	(void)epochs;
	call("epoch");
	return begins_epoch;
}

void live_refresh(struct live *live)
{
	(void)live;
	call("live");
}

/* ---- two sources, of which the first has all that windows ask for ---- */

static struct source_window seen;   /* at the last call */
static unsigned int more_of_source; /* calls that leave some */

static int source_collect_slots(void *state, const struct source_window *of)
{
	assert_ptr_equal(state, &seen);
	assert_int_equal(of->counts->count, 2);
	slots = of->slots;
	return call("slots");
}

static int source_collect(void *state, const struct source_window *of)
{
	assert_ptr_equal(state, &seen);
	assert_int_equal(of->is_last, window_closes_last);
	seen = *of;
	return call("first");
}

static int source_add(void *state, const struct source_window *of, const struct slice *slice)
{
	(void)slice;
	assert_ptr_equal(state, &seen);
	assert_memory_equal(of, &seen, sizeof(seen));
	return call("more") ? -EIO : more_of_source ? (int)(more_of_source-- > 0) : 0;
}

static int source_finish(void *state, const struct source_window *of, const struct slice *slice)
{
	(void)slice;
	assert_ptr_equal(state, &seen);
	assert_memory_equal(of, &seen, sizeof(seen));
	return call("finish") ? -EIO : more_of_source ? (int)(more_of_source-- > 0) : 0;
}

static int source_describe(void *state, struct profiles *of)
{
	assert_ptr_equal(state, &seen);
	assert_true(of->is_open);
	return call("describe");
}

static void source_refresh(void *state)
{
	assert_ptr_equal(state, &seen);
	call("refresh");
}

static int second_collect(void *state, const struct source_window *of)
{
	(void)of;
	assert_ptr_equal(state, calls);
	return call("second");
}

static int second_add(void *state, const struct source_window *of, const struct slice *slice)
{
	(void)of, (void)slice;
	assert_ptr_equal(state, calls);
	return call("more2");
}

static const struct source first = {.collect_slots = source_collect_slots,
				    .collect = source_collect,
				    .add = source_add,
				    .finish = source_finish,
				    .describe = source_describe,
				    .refresh = source_refresh};
static const struct source second = {.collect = second_collect, .add = second_add};
/* Between them is one that is not open. */
static const struct source *const table[PP_SOURCE_COUNT] = {&first, NULL, &second};
static const struct sources sources = {.table = table, .state = {&seen, NULL, calls}};

/* ---- */

#define COLLECT "swap coverage settle follow stacks take slots slots_read drain first second "
#define TAKE_LAST "top more more2 samples finish top_end wakers"
#define TAKE_ALL "top stacks more more2 samples finish top_end wakers"
#define FORGET " forget image numbers files epoch"

static struct profiles profiles;
static struct summary summary;
static struct tables tables;
static struct window_facts facts;
static struct samples samples;
static struct options options;
static const struct services services = {.options = &options,
					 .sources = &sources,
					 .summary = &summary,
					 .contexts = (struct context_table *)calls,
					 .online_cpus = CPUS};
static struct window window;

static void opened_at(uint64_t started_ns)
{
	assert_int_equal(window_open(&window, started_ns), 0);
	calls[0] = '\0';
}

static int close_as(enum window_end end)
{
	window_closes_last = end == WINDOW_LAST;
	return window_close(&window, end);
}

static int setup(void **state)
{
	(void)state;
	calls[0] = '\0';
	fails = NULL;
	is_store = wants_comment = begins_epoch = window_closes_last = false;
	late_stacks = 0;
	process_count = 5;
	more_samples = more_clients = 0;
	more_of_source = 0;
	written_start_ns = written_length_ns = watched_ns = 0;
	profiles = (struct profiles){};
	summary = (struct summary){};
	tables = (struct tables){.window = 7};
	facts = (struct window_facts){};
	options = (struct options){.hz = HZ, .interval_ns = INTERVAL_NS, .offcpu_min_ns = 77};
	samples = (struct samples){.services = &services, .profiles = &profiles, .tables = &tables};
	window = (struct window){.services = &services, .samples = &samples, .facts = &facts};
	log_set_level(LOG_LEVEL_ERROR);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	window_release(&window);
	return interns;
}

static void open__first_window_begins_where_samples_do(void **state)
{
	const uint64_t now_ns = mono_ns(), now_wall_ns = wall_ns();

	(void)state;
	assert_int_equal(window_open(&window, now_ns - 500), 0);
	assert_string_equal(calls, "start modules open");
	assert_int_equal(window.started_ns, now_ns - 500);
	assert_int_equal(window.profile_started_ns, now_ns - 500);
	assert_int_equal(window.profile_started_wall_ns, window.started_wall_ns);
	assert_int_equal(begun_wall_ns, window.started_wall_ns);
	/* The same moment by the other clock; both were read one after the other. */
	assert_in_range(window.started_wall_ns, now_wall_ns - 500 - NS_PER_SEC,
			now_wall_ns + NS_PER_SEC);
	calls[0] = '\0';
	assert_int_equal(window_open(&window, now_ns), 0);
	assert_string_equal(calls, ""); /* it is open */
	assert_int_equal(window.started_ns, now_ns - 500);
}

static void open__wall_time_is_that_of_the_start(void **state)
{
	const uint64_t hour_ns = 3600 * NS_PER_SEC;

	(void)state;
	/* Both clocks are read within a minute of each other. */
	assert_int_equal(window_open(&window, mono_ns() - hour_ns), 0);
	assert_in_range(window.started_wall_ns, wall_ns() - hour_ns - 60 * NS_PER_SEC,
			wall_ns() - hour_ns + 60 * NS_PER_SEC);
}

static char logged[256];

void log_line(enum log_level level, const char *format, ...)
{
	va_list arguments;

	(void)level;
	va_start(arguments, format);
	vsnprintf(logged, sizeof(logged), format, arguments);
	va_end(arguments);
}

/* Somebody has set the clock by that much since the window before. */
static void check_set_clock(int64_t by_ns, bool is_followed)
{
	const bool is_told =
		by_ns >= 10 * (int64_t)NS_PER_SEC || -by_ns >= 10 * (int64_t)NS_PER_SEC;
	uint64_t wall;

	logged[0] = '\0';
	window_release(&window);
	window.started_ns = 0;
	opened_at(mono_ns());
	window_release(&window);
	wall = window.started_wall_ns;
	window.started_wall_ns -= (uint64_t)by_ns;
	assert_int_equal(window_open(&window, 0), 0);
	if (is_followed)
		assert_in_range(window.started_wall_ns, wall - 50 * NS_PER_MS,
				wall + 50 * NS_PER_MS);
	else
		assert_int_equal(window.started_wall_ns, wall - (uint64_t)by_ns);
	assert_int_equal(window.profile_started_wall_ns, window.started_wall_ns);
	assert_int_equal(!!*logged, is_told);
	assert_true(!is_told || strstr(logged, by_ns > 0 ? " s on: " : " s back: "));
}

static void open__name_follows_a_clock_that_was_set(void **state)
{
	const int64_t year_ns = 365 * 86400 * (int64_t)NS_PER_SEC;

	(void)state;
	/* The first window began long ago: nobody has set a clock. */
	logged[0] = '\0';
	assert_int_equal(window_open(&window, mono_ns() - 3600 * NS_PER_SEC), 0);
	assert_string_equal(logged, "");
	check_set_clock(year_ns, true);
	check_set_clock(-year_ns, true);
	check_set_clock((int64_t)NS_PER_SEC, true);
	check_set_clock(11 * (int64_t)NS_PER_SEC, true);
	check_set_clock(-11 * (int64_t)NS_PER_SEC, true);
	/* Slewed: the windows' names meet. */
	check_set_clock(20 * (int64_t)NS_PER_MS, false);
	check_set_clock(-20 * (int64_t)NS_PER_MS, false);
}

static void close__collects_in_the_order_in_which_nothing_is_missed(void **state)
{
	(void)state;
	opened_at(1000);
	window.paused_ns = 5000;
	assert_int_equal(close_as(WINDOW_PART), 0);
	assert_string_equal(calls, COLLECT TAKE_ALL " release");
	assert_int_equal(slots.number, 7);
	assert_int_equal(slots.start_ns, 1000);
	assert_int_equal(slots.end_ns, 5000);
	assert_int_equal(slots.wait_min_ns, 77);
	assert_int_equal(watched_ns, 4000);
	assert_null(watched_comment);
	assert_int_equal(summary.scheduler_ns, 1000);
	assert_int_equal(facts.bounded, 5);
}

/* Where profiles begin anew, sources do, too. */
static void close__tells_sources_what_becomes_of_the_window(void **state)
{
	(void)state;
	opened_at(1000);
	assert_int_equal(close_as(WINDOW_PART), 0);
	assert_true(seen.is_part && !seen.is_last && !seen.is_written);
	assert_int_equal(close_as(WINDOW_WHOLE), 0);
	assert_true(!seen.is_part && !seen.is_last && !seen.is_written);
	assert_null(strstr(calls, "describe"));
	is_store = true;
	assert_int_equal(close_as(WINDOW_WHOLE), 0);
	assert_true(!seen.is_part && !seen.is_last && seen.is_written);
	assert_non_null(strstr(calls, "describe"));
	opened_at(1000);
	assert_int_equal(close_as(WINDOW_LAST), 0);
	assert_true(!seen.is_part && seen.is_last && seen.is_written);
}

/* A source that has failed in one window begins the next one with its first stage. */
static void close__begins_with_the_first_source_after_an_error(void **state)
{
	(void)state;
	opened_at(1000);
	fails = "more2";
	assert_int_equal(close_as(WINDOW_PART), 0);
	fails = NULL;
	calls[0] = '\0';
	assert_int_equal(close_as(WINDOW_PART), 0);
	assert_string_equal(calls, COLLECT TAKE_ALL " release");
}

static void close__next_window_begins_where_this_one_ends(void **state)
{
	uint64_t wall;

	(void)state;
	opened_at(1000);
	wall = window.started_wall_ns;
	window.paused_ns = 5000;
	close_as(WINDOW_PART);
	assert_int_equal(begun_wall_ns, wall); /* that of the window, not of its end */
	assert_int_equal(window.started_ns, 5000);
	assert_int_equal(window.started_wall_ns, wall + 4000);
	window.paused_ns = 5700;
	close_as(WINDOW_PART);
	assert_int_equal(slots.number, 8);
	assert_int_equal(slots.start_ns, 5000);
	assert_int_equal(watched_ns, 700);
	assert_int_equal(summary.scheduler_ns, 2000);
	assert_int_equal(facts.bounded, 10);
}

static void close__without_a_pause_ends_now(void **state)
{
	uint64_t before_ns = mono_ns();

	(void)state;
	opened_at(1000);
	close_as(WINDOW_PART);
	assert_in_range(slots.end_ns, before_ns, mono_ns());
}

static void close__of_one_file_goes_on_until_the_last(void **state)
{
	uint64_t wall;

	(void)state;
	opened_at(1000);
	wall = window.started_wall_ns;
	window.paused_ns = 5000;
	assert_int_equal(close_as(WINDOW_WHOLE), 0);
	assert_string_equal(calls, COLLECT TAKE_ALL FORGET " release");
	assert_true(profiles.is_open);
	calls[0] = '\0';
	window.paused_ns = 9000;
	assert_int_equal(close_as(WINDOW_LAST), 0);
	assert_string_equal(calls,
			    COLLECT TAKE_LAST " facts comment" FORGET " describe write release");
	assert_int_equal(written_start_ns, wall);
	assert_int_equal(written_length_ns, 8000); /* of both windows */
	assert_int_equal(allowed_ns, 8000);
	assert_true(written_last);
	assert_false(profiles.is_open);
	assert_null(samples.strings);
	assert_int_equal(interns, 0);
}

static void close__of_a_store_writes_each_window(void **state)
{
	(void)state;
	is_store = true;
	opened_at(1000);
	window.paused_ns = 5000;
	assert_int_equal(close_as(WINDOW_PART), 0);
	assert_string_equal(calls, COLLECT TAKE_ALL " release");
	calls[0] = '\0';
	window.paused_ns = 6000;
	assert_int_equal(close_as(WINDOW_WHOLE), 0);
	assert_string_equal(calls,
			    COLLECT TAKE_ALL " facts comment" FORGET " describe write release");
	assert_int_equal(written_length_ns, 5000); /* its part is in it */
	assert_int_equal(allowed_ns, 5000);
	assert_false(written_last);
	assert_false(profiles.is_open);
	/* The next one has a file of its own. */
	opened_at(99);
	assert_true(profiles.is_open);
	assert_int_equal(window.profile_started_ns, 6000);
	assert_int_equal(window.started_ns, 6000);
	assert_ptr_equal(told[0], &window.facts_told);
}

/* Clients see the longest turn of the window so far; the next file begins anew. */
static void close__forgets_the_loops_longest_turn_when_it_is_written(void **state)
{
	(void)state;
	wants_comment = is_store = true;
	opened_at(1000);
	summary.loop_stall_max_ns = 77;
	assert_int_equal(close_as(WINDOW_PART), 0);
	assert_int_equal(summary.loop_stall_max_ns, 77);
	assert_int_equal(close_as(WINDOW_WHOLE), 0);
	assert_int_equal(summary.loop_stall_max_ns, 0);
}

static void close__tells_clients_what_changed_for_them(void **state)
{
	(void)state;
	wants_comment = is_store = true;
	opened_at(1000);
	assert_int_equal(close_as(WINDOW_WHOLE), 0);
	assert_string_equal(watched_comment, "facts");
	assert_ptr_equal(told[1], &window.facts_watched);
	assert_ptr_equal(told[0], &window.facts_told);
	fails = "facts";
	opened_at(1000);
	assert_int_equal(close_as(WINDOW_PART), 0);
	assert_null(watched_comment);
}

static void close__describes_stacks_again_in_a_new_epoch(void **state)
{
	(void)state;
	begins_epoch = true;
	opened_at(1000);
	assert_int_equal(close_as(WINDOW_WHOLE), 0);
	assert_string_equal(calls, COLLECT TAKE_ALL FORGET " refresh live release");
}

/* A window that cannot be read is told and lost; what was collected is released, and the slots
 * count as read. */
/* What there is gets written.  At the end it is no success; before, the run goes on. */
static void close__goes_on_after_what_cannot_be_read(void **state)
{
	static const struct {
		const char *fails, *calls;
	} row[] = {
		{"follow", "swap coverage settle follow take slots_read first second top top_end"},
		{"stacks",
		 "swap coverage settle follow stacks take slots_read first second top top_end"},
		{"slots", "swap coverage settle follow stacks take slots slots_read first second "
			  "top top_end"},
		{"drain", COLLECT "top top_end"},
		{"first", COLLECT "top top_end"},
		{"second", COLLECT "top top_end"},
		{"more", COLLECT "top more top_end"},
		{"more2", COLLECT "top more more2 top_end"},
		{"samples", COLLECT "top more more2 samples top_end"},
		{"finish", COLLECT "top more more2 samples finish top_end"},
		{"wakers", COLLECT TAKE_LAST},
	};
	char wanted[512];

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		opened_at(1000);
		fails = row[i].fails;
		snprintf(wanted, sizeof(wanted), "%s%s describe write release", row[i].calls,
			 FORGET);
		assert_int_equal(close_as(WINDOW_LAST), -EIO);
		assert_string_equal(calls, wanted);
		assert_false(profiles.is_open);
		opened_at(1000);
		is_store = true;
		fails = row[i].fails;
		assert_int_equal(close_as(WINDOW_WHOLE), 0);
		assert_non_null(strstr(calls, "describe write release"));
		is_store = false;
	}
}

/* ---- in slices ---- */

static const struct slice over = {.ends_ns = 1};

static void step__makes_one_stage_a_slice_that_is_over(void **state)
{
	static const char *const stage[] = {"stacks",
					    "more more2",
					    "samples",
					    "finish",
					    "top_end",
					    "wakers",
					    "facts comment",
					    "forget image numbers files epoch",
					    "describe write release"};

	(void)state;
	is_store = true;
	opened_at(1000);
	assert_int_equal(window_step(&window, &over), 0); /* there is none */
	window.paused_ns = 5000;
	window_cut(&window, WINDOW_WHOLE);
	assert_int_equal(window.started_ns, 5000); /* the next one counts */
	for (size_t i = 0; i < ARRAY_SIZE(stage); i++) {
		const bool is_last_stage = i + 1 == ARRAY_SIZE(stage);

		calls[0] = '\0';
		assert_true(window_is_closing(&window));
		assert_true(profiles.is_open);
		assert_int_equal(window_step(&window, &over), !is_last_stage);
		assert_string_equal(calls, stage[i]);
	}
	assert_false(window_is_closing(&window));
	assert_false(profiles.is_open);
	assert_int_equal(written_length_ns, 4000);
}

static void step__goes_on_with_a_stage_that_has_more(void **state)
{
	(void)state;
	wants_comment = true;
	opened_at(1000);
	window_cut(&window, WINDOW_PART);
	assert_true(has_stacks_slice);
	calls[0] = '\0';
	late_stacks = 2;
	more_samples = more_clients = 2;
	more_of_source = 2;
	while (window_step(&window, &over))
		;
	assert_string_equal(calls,
			    "stacks stacks stacks more more more more2 samples samples samples "
			    "finish facts top_end top_end top_end wakers release");
	assert_string_equal(watched_comment, "facts");
}

/* Stacks that come all the time do not hold up a window for ever. */
static void step__does_not_wait_for_ever_for_stacks(void **state)
{
	(void)state;
	opened_at(1000);
	late_stacks = 1000;
	window.paused_ns = mono_ns() - NS_PER_SEC; /* it ended long ago */
	window_cut(&window, WINDOW_PART);
	calls[0] = '\0';
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(window_step(&window, &over), 1);
	assert_string_equal(calls, "stacks more more2 samples");
	/* Nor when the run ends. */
	assert_int_equal(window_step(&window, NULL), 0);
	window.paused_ns = mono_ns() - NS_PER_SEC;
	window_cut(&window, WINDOW_PART);
	has_stacks_slice = false;
	assert_int_equal(window_step(&window, NULL), 0);
	assert_true(has_stacks_slice);
}

static void close__ends_the_one_before_first(void **state)
{
	(void)state;
	is_store = true;
	opened_at(1000);
	window.paused_ns = 5000;
	window_cut(&window, WINDOW_WHOLE);
	assert_int_equal(window_step(&window, &over), 1);
	calls[0] = '\0';
	window.paused_ns = 6000;
	assert_int_equal(close_as(WINDOW_LAST), 0);
	assert_string_equal(calls, "more more2 samples finish top_end wakers facts comment" FORGET
				   " describe write release modules open " COLLECT TAKE_LAST
				   " facts comment" FORGET " describe write release");
	assert_int_equal(written_length_ns, 1000);
	assert_true(written_last);
}

static void release__of_a_window_that_is_closing(void **state)
{
	(void)state;
	opened_at(1000);
	window_cut(&window, WINDOW_WHOLE);
	calls[0] = '\0';
	window.closing.samples.noted = 5;
	window_release(&window);
	assert_string_equal(calls, "release");
	assert_int_equal(noted_at_release, 5);
	assert_false(window_is_closing(&window));
}

static void close__says_what_cannot_be_read(void **state)
{
	const int saved = dup(STDERR_FILENO), file = memfd_create("stderr", MFD_CLOEXEC);
	char heard[256] = "";
	ssize_t silent;

	(void)state;
	assert_true(saved >= 0 && file >= 0);
	dup2(file, STDERR_FILENO);
	opened_at(1000);
	close_as(WINDOW_PART);
	silent = pread(file, heard, sizeof(heard) - 1, 0);
	fails = "stacks";
	close_as(WINDOW_PART);
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_int_equal(silent, 0);
	assert_true(pread(file, heard, sizeof(heard) - 1, 0) > 0);
	assert_non_null(strstr(heard, "cannot read the counters of a window"));
	close(file);
}

static void close__tells_when_it_cannot_be_written(void **state)
{
	(void)state;
	fails = "write";
	opened_at(1000);
	assert_int_equal(close_as(WINDOW_LAST), -EIO);
	assert_false(profiles.is_open);
	fails = "describe";
	opened_at(1000);
	assert_int_equal(close_as(WINDOW_LAST), -EIO);
	assert_null(strstr(calls, "write"));
	assert_false(profiles.is_open);
	fails = "comment";
	opened_at(1000);
	assert_int_equal(close_as(WINDOW_LAST), -EIO);
	assert_non_null(strstr(calls, "write"));
}

static void forget__keeps_three_windows(void **state)
{
	const uint64_t before_ns = mono_ns();

	(void)state;
	options.interval_ns = 1000;
	window_forget(&window);
	assert_in_range(forgotten_ns, before_ns - 3000, mono_ns() - 3000);
	/* Thousands of programs a second: one is enough, in which they are named. */
	process_count = 16385;
	window_forget(&window);
	assert_in_range(forgotten_ns, before_ns - 1000, mono_ns() - 1000);
	process_count = 16384;
	window_forget(&window);
	assert_in_range(forgotten_ns, before_ns - 3000, mono_ns() - 3000);
	options.interval_ns = UINT64_MAX / 4; /* longer than the machine has run */
	window_forget(&window);
	assert_int_equal(forgotten_ns, 0);
}

static void close_files__names_what_is_in_them_first(void **state)
{
	const uint64_t before_ns = mono_ns();

	(void)state;
	unused_slots = 0;
	assert_false(window_close_files(&window));
	assert_string_equal(calls, "");
	assert_in_range(unused_before_ns, before_ns - NS_PER_SEC, mono_ns() - NS_PER_SEC);
	unused_slots = 5;
	assert_false(window_close_files(&window));
	assert_string_equal(calls, "keep close");
	assert_int_equal(closed_slots, 5);
	/* What is not named yet stays open. */
	unused_slots = 21;
	assert_true(window_close_files(&window));
	assert_int_equal(closed_slots, 5);
}

static void release__of_a_window_that_never_was(void **state)
{
	(void)state;
	window_release(&(struct window){});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Ends come at multiples of the interval.  A pause is one window, and no burst follows it. */
static void next_end__leaves_out_the_ends_that_have_passed(void **state)
{
	static const struct {
		double started, due, next; /* intervals */
		uint64_t missed;
	} cases[] = {
		{1, 1, 2, 0},
		{1.01, 1, 2, 0},
		{1.49, 1, 2, 0},
		{1.5, 1, 3, 1},
		{2, 1, 3, 1},
		{2.4, 1, 3, 1},
		{2.6, 1, 4, 2},
		{101.2, 1, 102, 100},
		/* Closed before its time, at the end of the run. */
		{0.5, 1, 2, 0},
	};
	const struct options every = {.interval_ns = INTERVAL_NS};
	const struct services of_every = {.options = &every};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct window open = {.services = &of_every,
				      .started_ns = (uint64_t)(cases[i].started * INTERVAL_NS)};
		uint64_t missed = 77;
		uint64_t next_ns =
			window_next_end(&open, (uint64_t)(cases[i].due * INTERVAL_NS), &missed);

		assert_int_equal(next_ns, (uint64_t)(cases[i].next * INTERVAL_NS));
		assert_int_equal(missed, cases[i].missed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(open__first_window_begins_where_samples_do),
		TEST(open__wall_time_is_that_of_the_start),
		TEST(open__name_follows_a_clock_that_was_set),
		TEST(close__collects_in_the_order_in_which_nothing_is_missed),
		TEST(close__tells_sources_what_becomes_of_the_window),
		TEST(close__begins_with_the_first_source_after_an_error),
		TEST(close__next_window_begins_where_this_one_ends),
		TEST(close__without_a_pause_ends_now),
		TEST(close__of_one_file_goes_on_until_the_last),
		TEST(close__of_a_store_writes_each_window),
		TEST(close__forgets_the_loops_longest_turn_when_it_is_written),
		TEST(close__tells_clients_what_changed_for_them),
		TEST(close__describes_stacks_again_in_a_new_epoch),
		TEST(close__goes_on_after_what_cannot_be_read),
		TEST(close__says_what_cannot_be_read),
		TEST(step__makes_one_stage_a_slice_that_is_over),
		TEST(step__goes_on_with_a_stage_that_has_more),
		TEST(step__does_not_wait_for_ever_for_stacks),
		TEST(close__ends_the_one_before_first),
		TEST(release__of_a_window_that_is_closing),
		TEST(close__tells_when_it_cannot_be_written),
		TEST(forget__keeps_three_windows),
		TEST(close_files__names_what_is_in_them_first),
		TEST(release__of_a_window_that_never_was),
		TEST(next_end__leaves_out_the_ends_that_have_passed),
	};

	return cmocka_run_group_tests_name("agent/window", tests, NULL, NULL);
}
