/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots, /proc and the ledger are stand-ins that write down what they get. */
#include "agent/waits.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pyprofd/config.h>

#include "agent/progress.h"
#include "attach/context_table.h"
#include "attach/kernel_side.h"
#include "base/clock.h"
#include "base/intern.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/thread_slots.h"
#include "drain/wait_shares.h"
#include "ledger/ledger_check.h"
#include "ledger/ledger_records.h"
#include "options/options.h"
#include "profile/profile.h"
#include "windows/profiles.h"
#include "windows/source.h"
#include "windows/top.h"

#define SLOTS 4U
#define LINES_MAX 300U

struct ledger {
	struct ledger_line line[LINES_MAX];
	size_t count;
};
struct ledger_check {
	char dummy;
};
struct ledger_sums {
	struct ledger_sum sum[LINES_MAX];
	size_t count;
};

static char calls[1024];
static const char *fails; /* the name of the call that fails */
static struct ledger ledger;
static struct ledger_check check;
static struct ledger_sums sums[2]; /* of the profile, of the run */
static size_t opened_sums;
static struct pp_config config;
static struct pp_user_share user_share[PP_USER_SHARE_ROWS];
static bool turns_go_round;
static int open_parts;
static struct pp_thread slots[SLOTS];
static struct process processes[3];
static size_t process_count;
static struct proc_status status;
static int status_err;
static bool is_written_meanwhile;
static size_t told_lines;
static struct profiles profiles;
static struct summary summary;
extern const struct source waits_source;
static struct options options;
static struct services services;

__attribute__((format(printf, 1, 2))) static int call(const char *format, ...)
{
	const size_t used = strlen(calls);
	char name[64];
	va_list args;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	snprintf(calls + used, sizeof(calls) - used, "%s%s", used ? " " : "", name);
	return fails && !strcmp(fails, name) ? -ENOMEM : 0;
}

const char *wait_label(enum pp_wait wait)
{
	return wait == PP_WAIT_GIL ? "gil" : wait == PP_WAIT_GPU ? "gpu" : "other";
}

/* ---- stand-ins ---- */

int ledger_new(struct ledger **ret_ledger)
{
	const int err = call("ledger");

	if (err)
		return err;
	*ret_ledger = &ledger;
	open_parts++;
	return 0;
}

void ledger_free(struct ledger *of)
{
	open_parts -= of != NULL;
}

int ledger_check_new(struct ledger_check **ret_check)
{
	const int err = call("check");

	if (err)
		return err;
	*ret_check = &check;
	open_parts++;
	return 0;
}

void ledger_check_free(struct ledger_check *of)
{
	open_parts -= of != NULL;
}

int ledger_sums_new(struct ledger_sums **ret_sums)
{
	const int err = call("sums%zu", opened_sums);

	if (err)
		return err;
	*ret_sums = &sums[opened_sums++];
	open_parts++;
	return 0;
}

void ledger_sums_free(struct ledger_sums *of)
{
	open_parts -= of != NULL;
}

void ledger_begin(struct ledger *of)
{
	assert_ptr_equal(of, &ledger);
	call("begin");
}

int ledger_add_exited(struct ledger *of, int map_fd)
{
	(void)of;
	assert_int_equal(map_fd, 55);
	return call("exited");
}

int ledger_add_thread(struct ledger *of, const struct pp_thread *thread, uint64_t end_ns)
{
	(void)of;
	assert_int_equal(end_ns, 10 * NS_PER_SEC);
	return call("thread%u", thread->tid);
}

int ledger_add_gone(struct ledger *of, const struct pp_thread *thread, uint64_t end_ns)
{
	(void)of;
	return call("gone%u@%llu", thread->tid, (unsigned long long)(end_ns / NS_PER_SEC));
}

int ledger_add_rest(struct ledger *of, const struct pp_ledger_sum *sum)
{
	(void)of;
	return call("rest%llu:%llu:%llu:%u", (unsigned long long)sum->total_ns[PP_LEDGER_SLEEP],
		    (unsigned long long)sum->life_ns, (unsigned long long)sum->threads,
		    sum->leaders);
}

int ledger_turns(const void *lines, size_t count, size_t size, struct record_turn **ret_turn)
{
	const struct ledger_line *line = lines;

	assert_int_equal(size, sizeof(*line));
	*ret_turn = calloc(count + 1, sizeof(**ret_turn));
	assert_non_null(*ret_turn);
	for (size_t i = 0; i < count; i++)
		(*ret_turn)[i].of = &line[turns_go_round ? count - 1 - i : i];
	return call("turns");
}

struct record_sink record_sink_profiles(const struct services *of, struct profiles *to)
{
	return (struct record_sink){.services = of, .profiles = to};
}

struct record_sink record_sink_clients(const struct services *of)
{
	return (struct record_sink){.services = of, .strings = (struct intern *)&told_lines};
}

bool top_wants(const struct top *top, uint32_t kinds)
{
	assert_int_equal(kinds, 1U << PP_PROFILE_LEDGER);
	return top;
}

int ledger_record_put(const struct record_sink *sink, const struct ledger_line *line,
		      const char *comm)
{
	(void)comm;
	assert_ptr_equal(sink->services, &services);
	assert_ptr_equal(sink->strings, &told_lines);
	told_lines += line->life_ns > 0;
	return call("told%u", line->id.tgid);
}

int ledger_records_put(struct record_sink *sink, const struct ledger_sums *of)
{
	assert_ptr_equal(sink->services, &services);
	assert_ptr_equal(sink->profiles, &profiles);
	assert_ptr_equal(of, &sums[0]);
	return call("put%zu", of->count);
}

void ledger_busy(const struct ledger *of, uint64_t min_ns,
		 void (*callback)(void *context, uint32_t tgid), void *context)
{
	(void)of;
	assert_int_equal(min_ns, 20 * NS_PER_MS);
	assert_ptr_equal(callback, ledger_check_read);
	assert_ptr_equal(context, &check);
	call("busy");
}

int ledger_add_sample(struct ledger *of, struct pp_process_id id, enum ledger_part part,
		      uint64_t weight)
{
	assert_ptr_equal(of, &ledger);
	return call("sample%u:%u:%llu", id.tgid, part, (unsigned long long)weight);
}

bool ledger_find(const struct ledger *of, struct pp_process_id id, enum pp_ledger where,
		 uint64_t *ret_ns)
{
	assert_ptr_equal(of, &ledger);
	*ret_ns = id.tgid * 10 + where;
	return id.tgid != 9;
}

int ledger_end(struct ledger *of, struct ledger_line **ret_lines, size_t *ret_count)
{
	*ret_lines = of->line;
	*ret_count = of->count;
	return call("end");
}

void ledger_check_begin(struct ledger_check *of, uint32_t tgid)
{
	assert_ptr_equal(of, &check);
	call("begin%u", tgid);
}

void ledger_check_read(void *context, uint32_t tgid)
{
	(void)context, (void)tgid;
}

void ledger_check_add(struct ledger_check *of, const struct ledger_line *line)
{
	(void)of;
	call("add%u", line->id.tgid);
}

void ledger_check_compare(struct ledger_check *of, struct ledger_line *line)
{
	(void)of;
	call("compare%u", line->id.tgid);
}

int ledger_sums_add(struct ledger_sums *of, const struct ledger_line *line, const char *comm)
{
	struct ledger_sum *sum;

	assert_true(of->count < ARRAY_SIZE(of->sum));
	sum = &of->sum[of->count++];
	sum->line = *line;
	snprintf(sum->comm, sizeof(sum->comm), "%s", comm);
	return call("%s%u", of == &sums[0] ? "profile" : "run", line->id.tgid);
}

void ledger_sums_clear(struct ledger_sums *of)
{
	of->count = 0;
	call("clear");
}

void ledger_sums_print(const struct ledger_sums *of, FILE *stream)
{
	assert_ptr_equal(of, &sums[1]);
	assert_ptr_equal(stream, stderr);
	call("print");
}

struct pp_thread *kernel_side_threads(const struct kernel_side *side, uint32_t *ret_count)
{
	(void)side;
	*ret_count = SLOTS;
	return slots;
}

volatile struct pp_config *kernel_side_config(const struct kernel_side *side)
{
	(void)side;
	return &config;
}

struct kernel_side_parts kernel_side_parts(const struct kernel_side *side)
{
	(void)side;
	return (struct kernel_side_parts){.user_shares.row = user_share, .ledgers = 55};
}

/* A slot with the process 99 is torn. */
bool thread_slot_take(struct pp_thread *slot, uint32_t window, struct pp_thread *ret_copy,
		      uint64_t *ret_torn)
{
	assert_int_equal(window, 6);
	*ret_copy = *slot;
	*ret_torn += slot->id.tgid == 99;
	return slot->id.tgid != 99;
}

int thread_slot_count(const struct pp_thread *thread, const struct slots_window *window,
		      struct counts *counts)
{
	(void)window;
	counts->count++;
	return call("count%u%s", thread->tid, thread->wait == PP_WAIT_OTHER ? "!" : "");
}

void thread_slot_stray(struct pp_thread *copy)
{
	copy->wait = PP_WAIT_OTHER;
}

bool thread_slot_free(struct pp_thread *slot, const struct pp_thread *copy)
{
	assert_int_equal(slot->tid & ~PP_TID_ENDED, copy->tid);
	call("free%u", copy->tid);
	return !is_written_meanwhile;
}

void kernel_side_give_slot(struct kernel_side *side, uint32_t user)
{
	(void)side;
	call("give%u", user);
}

int thread_status_read(uint32_t pid, uint32_t tid, struct proc_status *ret_status)
{
	call("status%u:%u", pid, tid);
	*ret_status = status;
	return status_err;
}

struct process *process_table_next(const struct process_table *table, const struct process *process)
{
	const size_t next = process ? (size_t)(process - processes) + 1 : 0;

	(void)table;
	return next < process_count ? &processes[next] : NULL;
}

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table;
	for (size_t i = 0; i < process_count; i++)
		if (processes[i].id.tgid == id.tgid)
			return &processes[i];
	return NULL;
}

uint16_t context_table_flags(const struct process *process)
{
	return process->id.tgid == 20 ? 0 : PP_CONTEXT_MATCHES;
}

int wait_shares_divide(const struct wait_shares *shares, struct counts *counts)
{
	uint64_t ns = 0;

	(void)counts;
	assert_true(shares->exact_ns(shares->context, (struct pp_process_id){.tgid = 3},
				     PP_LEDGER_LOCK, &ns));
	assert_int_equal(ns, 30 + PP_LEDGER_LOCK);
	assert_false(shares->exact_ns(shares->context, (struct pp_process_id){.tgid = 9},
				      PP_LEDGER_LOCK, &ns));
	return call("divide%s", shares->leaves_short_out ? " without short ones" : "");
}

/* ---- */

static struct waits *waits;

static int waits_new(const struct services *of, struct waits **ret_waits)
{
	void *state = NULL;
	int err = source_new(&waits_source, of, &state);

	*ret_waits = state;
	return err;
}

static void waits_free(struct waits *of)
{
	assert_true(source_free(&waits_source, of));
}

static void waits_start(struct waits *of)
{
	assert_int_equal(waits_source.begin(of, 0), 0);
}

static int waits_collect(struct waits *of, const struct slots_window *slots_of,
			 struct counts *counts)
{
	return waits_source.collect_slots(of, &(struct source_window){.slots = *slots_of,
								      .counts = counts});
}

static int waits_divide(struct waits *of, const struct slots_window *slots_of,
			struct counts *counts)
{
	return waits_source.collect(of,
				    &(struct source_window){.slots = *slots_of, .counts = counts});
}

static int waits_close(struct waits *of)
{
	return waits_source.finish(of, NULL, NULL);
}

static int waits_describe(struct waits *of, struct profiles *to)
{
	return waits_source.describe(of, to);
}

static void open_waits(bool is_filtered, bool has_short_waits)
{
	options.offcpu_min_ns = !has_short_waits;
	services = (struct services){
		.options = &options, .summary = &summary, .is_filtered = is_filtered};
	assert_int_equal(waits_new(&services, &waits), 0);
	calls[0] = '\0';
}

static uint64_t loss_of(enum pp_loss which)
{
	struct summary counted = {0};

	waits_source.summarize(waits, &counted);
	return counted.loss[which];
}

static int setup(void **state)
{
	(void)state;
	calls[0] = '\0';
	fails = NULL;
	ledger.count = opened_sums = process_count = 0;
	open_parts = 0;
	memset(sums, 0, sizeof(sums));
	memset(ledger.line, 0, sizeof(ledger.line));
	memset(slots, 0, sizeof(slots));
	memset(processes, 0, sizeof(processes));
	status = (struct proc_status){.is_runnable = true};
	status_err = 0;
	is_written_meanwhile = false;
	summary = (struct summary){};
	config = (struct pp_config){};
	memset(user_share, 0, sizeof(user_share));
	turns_go_round = false;
	waits = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	waits_free(waits);
	return open_parts;
}

static void nothing__is_done_where_waits_are_not_captured(void **state)
{
	(void)state;
	assert_int_equal(waits_add_sample(NULL, (struct pp_process_id){}, LEDGER_NATIVE, 1), 0);
	assert_null(waits_ledger(NULL));
	assert_string_equal(calls, "");
}

static void open__releases_what_it_had_when_memory_ends(void **state)
{
	static const char *const part[] = {"ledger", "check", "sums0", "sums1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		opened_sums = 0;
		fails = part[i];
		assert_int_equal(waits_new(&services, &waits), -ENOMEM);
		assert_null(waits);
		assert_int_equal(open_parts, 0);
	}
}

static void start__compares_from_now_on_what_runs_already(void **state)
{
	(void)state;
	process_count = 3;
	processes[0].id.tgid = 10;
	processes[1].id.tgid = 20; /* does not match the filter */
	processes[2] = (struct process){.id = {.tgid = 30}, .exit_ns = 5};
	open_waits(false, true);
	waits_start(waits);
	assert_string_equal(calls, "begin10 begin20");
	waits_free(waits);
	opened_sums = 0;
	open_waits(true, true);
	waits_start(waits);
	assert_string_equal(calls, "begin10");
}

/* ---- slots ---- */

static const struct slots_window ten_s = {
	.number = 6, .start_ns = 0, .end_ns = 10 * NS_PER_SEC, .wait_min_ns = 4};

static void collect__reads_exits_then_each_thread_once(void **state)
{
	struct counts counts = {};

	(void)state;
	slots[0] = (struct pp_thread){.tid = 5, .id = {.tgid = 5}};
	slots[2] = (struct pp_thread){.tid = 6, .id = {.tgid = 99}}; /* torn */
	slots[3] = (struct pp_thread){.tid = 7, .id = {.tgid = 5}};
	open_waits(false, true);
	assert_int_equal(waits_collect(waits, &ten_s, &counts), 0);
	assert_string_equal(calls, "begin exited count5 thread5 count7 thread7 busy");
	assert_int_equal(counts.count, 2);
	assert_int_equal(loss_of(PP_LOSS_THREADS_TORN), 1);
	assert_ptr_equal(waits_ledger(waits), &ledger);
}

static void collect__ends_at_the_first_error(void **state)
{
	static const struct {
		const char *fails, *calls;
	} row[] = {{"exited", "begin exited"},
		   {"count5", "begin exited count5"},
		   {"thread5", "begin exited count5 thread5"}};
	struct counts counts = {};

	(void)state;
	slots[0] = (struct pp_thread){.tid = 5};
	slots[1] = (struct pp_thread){.tid = 6};
	open_waits(false, true);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		calls[0] = '\0';
		fails = row[i].fails;
		assert_int_equal(waits_collect(waits, &ten_s, &counts), -ENOMEM);
		assert_string_equal(calls, row[i].calls);
	}
}

static void collect_one(const struct pp_thread *thread, const char *wanted)
{
	struct counts counts = {};

	calls[0] = '\0';
	slots[0] = *thread;
	assert_int_equal(waits_collect(waits, &ten_s, &counts), 0);
	assert_string_equal(calls, wanted);
}

static void stray__thread_that_does_not_run_is_corrected(void **state)
{
	struct pp_thread thread = {.tid = 8,
				   .id = {.tgid = 5},
				   .flags = PP_THREAD_MATCHES,
				   .since_ns = 9 * NS_PER_SEC};

	(void)state;
	open_waits(false, true);
	status.is_runnable = false;
	/* It has run for a second without a switch; /proc is asked. */
	collect_one(&thread, "begin exited status5:8 count8! thread8 busy");
	assert_int_equal(loss_of(PP_LOSS_SWITCHES_UNSEEN), 1);
	thread.since_ns++;
	collect_one(&thread, "begin exited count8 thread8 busy");
	thread.since_ns = 0;
	thread.flags |= PP_THREAD_WAITING;
	collect_one(&thread, "begin exited count8 thread8 busy");
	thread.flags = 0;
	collect_one(&thread, "begin exited count8 thread8 busy");
	assert_int_equal(loss_of(PP_LOSS_SWITCHES_UNSEEN), 1);
	thread.flags = PP_THREAD_MATCHES;
	status.is_runnable = true;
	collect_one(&thread, "begin exited status5:8 count8 thread8 busy");
	assert_int_equal(loss_of(PP_LOSS_SWITCHES_UNSEEN), 1);
}

static void stray__thread_that_has_ended_gives_its_slot_back(void **state)
{
	const struct pp_thread thread = {
		.tid = 8, .id = {.tgid = 5}, .flags = PP_THREAD_MATCHES, .user = 1000};

	(void)state;
	open_waits(false, true);
	status_err = -ESRCH;
	collect_one(&thread, "begin exited status5:8 count8! free8 give1000 gone8@10 busy");
	assert_int_equal(loss_of(PP_LOSS_SWITCHES_UNSEEN), 1);
	/* Who has it now, has it from the kernel side. */
	is_written_meanwhile = true;
	collect_one(&thread, "begin exited status5:8 count8! free8 gone8@10 busy");
	is_written_meanwhile = false;
	status_err = -EMFILE; /* nobody can say */
	collect_one(&thread, "begin exited status5:8 count8 thread8 busy");
	assert_int_equal(loss_of(PP_LOSS_SWITCHES_UNSEEN), 2);
}

static void collect__thread_that_ended_in_its_slot_gives_it_back(void **state)
{
	const struct pp_thread thread = {.tid = 8 | PP_TID_ENDED,
					 .id = {.tgid = 5},
					 .flags = PP_THREAD_MATCHES,
					 .since_ns = 4 * NS_PER_SEC,
					 .user = 1000};

	(void)state;
	open_waits(false, true);
	collect_one(&thread, "begin exited count8 free8 give1000 gone8@4 busy");
	assert_int_equal(loss_of(PP_LOSS_SWITCHES_UNSEEN), 0);
}

static void collect__takes_what_found_no_row_once(void **state)
{
	struct counts counts = {};

	(void)state;
	config.ledgers_taken = 70;
	config.ledger_turn = 3;
	user_share[0].rest = (struct pp_ledger_sum){.life_ns = 6, .threads = 2, .leaders = 1};
	user_share[0].rest.total_ns[PP_LEDGER_SLEEP] = 5;
	user_share[PP_USER_SHARE_COMMON].rest =
		(struct pp_ledger_sum){.life_ns = 9, .threads = 4, .leaders = 3};
	open_waits(false, true);
	assert_int_equal(waits_collect(waits, &ten_s, &counts), 0);
	assert_string_equal(calls, "begin exited rest5:6:2:1 rest0:9:4:3 busy");
	assert_int_equal(config.ledgers_taken, 0);
	assert_int_equal(config.ledger_turn, 4);
	calls[0] = '\0';
	assert_int_equal(waits_collect(waits, &ten_s, &counts), 0);
	assert_string_equal(calls, "begin exited busy");
	user_share[7].rest = user_share[8].rest = (struct pp_ledger_sum){.threads = 1};
	fails = "rest0:0:1:0";
	calls[0] = '\0';
	assert_int_equal(waits_collect(waits, &ten_s, &counts), -ENOMEM);
	assert_string_equal(calls, "begin exited rest0:0:1:0");
}

static void divide__asks_the_ledger(void **state)
{
	const struct slots_window all = {};
	struct counts counts = {};

	(void)state;
	open_waits(false, true);
	assert_int_equal(waits_divide(waits, &ten_s, &counts), 0);
	assert_string_equal(calls, "divide without short ones");
	calls[0] = '\0';
	assert_int_equal(waits_divide(waits, &all, &counts), 0);
	assert_string_equal(calls, "divide");
	fails = "divide";
	assert_int_equal(waits_divide(waits, &all, &counts), -ENOMEM);
}

static void sample__goes_to_the_ledger(void **state)
{
	(void)state;
	open_waits(false, true);
	assert_int_equal(
		waits_add_sample(waits, (struct pp_process_id){.tgid = 4}, LEDGER_KERNEL, 70), 0);
	assert_string_equal(calls, "sample4:2:70");
}

/* ---- the ledger ---- */

static void add_line(uint32_t tgid, uint64_t cpu_ns, uint64_t wait_ns, int64_t over_ns)
{
	struct ledger_line *line = &ledger.line[ledger.count++];

	*line = (struct ledger_line){.id = {.tgid = tgid}, .life_ns = 100, .over_ns = over_ns};
	line->total_ns[PP_LEDGER_CPU] = cpu_ns;
	line->total_ns[PP_LEDGER_SLEEP] = wait_ns;
	line->total_ns[PP_LEDGER_UNKNOWN] = 1;
}

static void close__adds_each_line_to_profile_and_run(void **state)
{
	(void)state;
	process_count = 1;
	processes[0].id.tgid = 10;
	memcpy(processes[0].comm, "python3", 8);
	add_line(10, 40, 60, 0);
	add_line(20, 4, 6, 0);
	add_line(30, 0, 0, 0);
	ledger.line[2].life_ns = 0;
	open_waits(false, true);
	assert_int_equal(waits_close(waits), 0);
	/* A comparison needs the sums of all lines. */
	assert_string_equal(calls,
			    "end add10 add20 add30 turns compare10 profile10 run10 compare20 "
			    "profile20 run20 compare30");
	assert_string_equal(sums[0].sum[0].comm, "python3");
	assert_string_equal(sums[1].sum[1].comm, ""); /* nobody knows it any more */
}

static void close__says_how_long_was_waited(void **state)
{
	(void)state;
	add_line(10, 40, 60, 0);
	add_line(20, 4, 6, 0);
	open_waits(false, true);
	waits_close(waits);
	assert_int_equal(summary.ledger_wait_ns, 60 + 1 + 6 + 1);
	assert_int_equal(summary.scheduler_ns, 0); /* of the machine /proc/stat knows it */
	waits_free(waits);
	opened_sums = 0;
	open_waits(false, false); /* --offcpu-min leaves waits out of the profiles */
	waits_close(waits);
	assert_int_equal(summary.ledger_wait_ns, 68);
}

static void close__says_what_the_scheduler_gave_to_chosen_processes(void **state)
{
	(void)state;
	add_line(10, 40, 0, 5); /* the ledger has 5 more than the scheduler */
	add_line(20, 100, 0, -7);
	add_line(30, 10, 0, 10);
	add_line(40, 10, 0, 11);
	open_waits(true, true);
	waits_close(waits);
	assert_int_equal(summary.scheduler_ns, 35 + 107);
}

static void close__ends_at_the_first_error(void **state)
{
	static const struct {
		const char *fails, *calls;
	} row[] = {{"end", "end"},
		   {"turns", "end add10 add20 turns"},
		   {"profile10", "end add10 add20 turns compare10 profile10"},
		   {"run10", "end add10 add20 turns compare10 profile10 run10"}};

	(void)state;
	add_line(10, 1, 1, 0);
	add_line(20, 1, 1, 0);
	open_waits(false, true);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		calls[0] = '\0';
		fails = row[i].fails;
		assert_int_equal(waits_close(waits), -ENOMEM);
		assert_string_equal(calls, row[i].calls);
	}
}

static void describe__adds_the_profiles_rows_and_begins_anew(void **state)
{
	(void)state;
	add_line(10, 1, 1, 0);
	add_line(20, 1, 1, 0);
	open_waits(false, true);
	waits_close(waits);
	calls[0] = '\0';
	assert_int_equal(waits_describe(waits, &profiles), 0);
	assert_int_equal(waits_describe(waits, &profiles), 0);
	assert_string_equal(calls, "put2 clear put0 clear");
	assert_int_equal(sums[1].count, 2); /* the run has them still */
	fails = "put2";
	waits_close(waits);
	assert_int_equal(waits_describe(waits, &profiles), -ENOMEM);
	assert_int_equal(sums[0].count, 0);
	waits_source.print(waits, stderr);
	assert_non_null(strstr(calls, "print"));
}

static void close__lines_come_in_turns_with_their_users(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 290; i++) {
		add_line(i + 1, 1000 - i, 1, 0);
		ledger.line[i].user = LEDGER_USER_UNKNOWN;
	}
	ledger.line[1].user = 0;
	process_count = 3;
	for (size_t i = 0; i < 3; i++)
		processes[i] = (struct process){
			.id.tgid = (uint32_t)i + 1, .user = 77, .is_user_known = i < 2};
	open_waits(false, true);
	turns_go_round = true;
	assert_int_equal(waits_close(waits), 0);
	assert_int_equal(sums[0].sum[0].line.id.tgid, 290);
	assert_int_equal(sums[0].sum[287].line.user, LEDGER_USER_UNKNOWN);
	assert_int_equal(sums[0].sum[288].line.user, 0);
	assert_int_equal(sums[0].sum[289].line.user, 77);
}

static void close__tells_clients_of_every_process(void **state)
{
	(void)state;
	open_waits(false, true);
	for (uint32_t i = 0; i < 290; i++)
		add_line(i + 1, 1, 1, 0);
	told_lines = 0;
	waits_close(waits); /* nobody asks */
	assert_int_equal(told_lines, 0);
	services.top = (struct top *)&told_lines;
	sums[0].count = sums[1].count = 0;
	waits_close(waits);
	assert_int_equal(told_lines, 290);
	calls[0] = '\0';
	fails = "told1";
	assert_int_equal(waits_close(waits), -ENOMEM);
}

/* All labels as "key=value key=value". */
static const char *label_of(uint32_t flags)
{
	static char text[256];
	const struct pp_count_key key = {.kind = PP_KIND_WAIT, .flags = flags};
	OWNED(intern) struct intern *strings = NULL;
	struct profile_sample sample = {};

	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(waits_source.label(NULL, &key, strings, &sample), 0);
	text[0] = '\0';
	for (size_t i = 0; i < sample.label_count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s=%s", i ? " " : "",
			 sample.label[i].key, intern_get(strings, sample.label[i].string, NULL));
	return text;
}

static void label__says_the_reason_and_how_it_was_found(void **state)
{
	const uint32_t gil = (uint32_t)PP_WAIT_GIL << PP_COUNT_WAIT_SHIFT;

	(void)state;
	assert_string_equal(label_of(gil), "wait=gil");
	assert_string_equal(label_of(gil | PP_COUNT_SWEPT), "wait=gil swept=yes");
	assert_string_equal(label_of(gil | PP_COUNT_EARLIER), "wait=gil stack=earlier");
	assert_string_equal(label_of((uint32_t)PP_WAIT_GPU << PP_COUNT_WAIT_SHIFT), "wait=gpu");
	assert_true(waits_source.labelled_kinds ==
		    (1U << PP_KIND_WAIT | 1U << PP_KIND_WAKE)); /* what is no wait has none */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing__is_done_where_waits_are_not_captured),
		TEST(open__releases_what_it_had_when_memory_ends),
		TEST(start__compares_from_now_on_what_runs_already),
		TEST(collect__reads_exits_then_each_thread_once),
		TEST(collect__ends_at_the_first_error),
		TEST(stray__thread_that_does_not_run_is_corrected),
		TEST(stray__thread_that_has_ended_gives_its_slot_back),
		TEST(collect__thread_that_ended_in_its_slot_gives_it_back),
		TEST(collect__takes_what_found_no_row_once),
		TEST(divide__asks_the_ledger),
		TEST(sample__goes_to_the_ledger),
		TEST(close__adds_each_line_to_profile_and_run),
		TEST(close__says_how_long_was_waited),
		TEST(close__says_what_the_scheduler_gave_to_chosen_processes),
		TEST(close__ends_at_the_first_error),
		TEST(close__lines_come_in_turns_with_their_users),
		TEST(close__tells_clients_of_every_process),
		TEST(describe__adds_the_profiles_rows_and_begins_anew),
		TEST(label__says_the_reason_and_how_it_was_found),
	};

	return cmocka_run_group_tests_name("agent/waits", tests, NULL, NULL);
}
