/* SPDX-License-Identifier: BSD-2-Clause */
/* Scans, processes and the reply are stand-ins; the thread that runs is that of a child in /proc:
 * this program may have one of the sanitizer's beside its own. */
#include "agent/dump.h"

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/slice.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/thread_slots.h"
#include "finish/scan.h"
#include "finish/scan_walk.h"
#include "finish/user_unwind.h"
#include "live/server.h"
#include "processes/thread_names.h"
#include "processes/who.h"
#include "python/python_process.h"
#include "windows/source.h"

/* Numbers that no process has: nothing of them is in /proc. */
#define SEED 31U
#define PID_A 0x7ffffff1U
#define PID_B 0x7ffffff2U
#define PID_C 0x7ffffff3U

struct scan {
	char dummy;
};
struct dump_text {
	char text[1024];
};

static struct scan scan;
static struct scan_scope scope;
static struct scan_stats stats;
static struct scanned found[8];
static int scan_steps, scan_err, follow_err, text_err;
static struct process processes[4];
static size_t process_count;
static bool matches[4];
static struct dump_text reply;
static uint64_t left_out;
static unsigned int refreshed, followed;
static uint32_t hidden;	      /* may not be seen */
static uint32_t hidden_later; /* ... from the second question on */
static unsigned int asked;
static struct thread_glance glance;
static bool has_slot;
static pid_t child; /* of one thread */
static uint64_t now_ns, ns_a_reading;
static size_t written, ended; /* threads, processes */
static unsigned int refreshed_text;
static uint64_t used_stack; /* the last one */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	now_ns += ns_a_reading;
	*time = (struct timespec){.tv_sec = (time_t)(now_ns / NS_PER_SEC),
				  .tv_nsec = (long)(now_ns % NS_PER_SEC)};
	return 0;
}

int scan_new(const struct finisher *finisher, const struct scan_scope *of, struct scan **ret_scan)
{
	assert_non_null(finisher);
	scope = *of;
	if (scan_err)
		return scan_err;
	*ret_scan = &scan;
	return 0;
}

void scan_free(struct scan *of)
{
	(void)of;
}

int scan_step(struct scan *of, uint64_t budget_ns)
{
	(void)of;
	assert_int_equal(budget_ns, 1000);
	return scan_steps > 0 ? scan_steps-- > 0 : scan_steps;
}

struct scanned *scan_next(struct scan *of, const struct scanned *last)
{
	const size_t next = last ? (size_t)(last - found) + 1 : 0;

	(void)of;
	return next < stats.threads ? &found[next] : NULL;
}

void scan_get_stats(const struct scan *of, struct scan_stats *ret_stats)
{
	(void)of;
	*ret_stats = stats;
}

int scan_refresh(struct scan *of)
{
	assert_ptr_equal(of, &scan);
	refreshed++;
	return 0;
}

int scan_walker_new(const struct finisher *finisher, struct scan_walker **ret_walker)
{
	(void)finisher;
	*ret_walker = NULL;
	return 0;
}

void scan_walker_free(struct scan_walker *walker)
{
	(void)walker;
}

int scan_walk_state(struct scan_walker *walker, struct process *process, uint32_t tid,
		    uint64_t thread_state, struct scanned *ret_scanned,
		    struct pp_stack_record **ret_record)
{
	(void)walker, (void)process, (void)tid, (void)thread_state, (void)ret_scanned;
	(void)ret_record;
	return -ENOENT;
}

int user_unwind_describe(struct dictionary *dictionary, const struct pp_stack_record *record)
{
	(void)dictionary, (void)record;
	return 0;
}

int dump_text_new(const struct services *of, bool no_native, struct dump_text **ret_text)
{
	assert_non_null(of);
	assert_false(no_native);
	reply.text[0] = '\0';
	*ret_text = &reply;
	return 0;
}

void dump_text_free(struct dump_text *text)
{
	(void)text;
}

void dump_text_count(struct dump_text *text, uint64_t count)
{
	(void)text;
	left_out += count;
}

/* One thread a slice. */
int dump_text_add(struct dump_text *text, const struct process *process,
		  const struct dump_thread *thread, size_t count, const struct slice *slice)
{
	size_t used = strlen(text->text);

	if (!written)
		used += (size_t)snprintf(text->text + used, sizeof(text->text) - used,
					 "%u:", process->id.tgid);
	while (written < count) {
		const struct dump_thread *one = &thread[written++];

		used += (size_t)snprintf(text->text + used, sizeof(text->text) - used,
					 " %u/%llu/%llu/%llu%s%s", one->tid,
					 (unsigned long long)one->user_stack,
					 (unsigned long long)one->kernel_stack,
					 (unsigned long long)one->waited_ns,
					 one->is_torn ? " torn" : "", one->runs ? " runs" : "");
		if (written < count && slice_is_over(slice))
			return 1;
	}
	snprintf(text->text + used, sizeof(text->text) - used, "\n");
	return text_err;
}

void dump_text_end_process(struct dump_text *text)
{
	(void)text;
	written = 0;
	ended++;
}

void dump_text_refresh(struct dump_text *text)
{
	(void)text;
	refreshed_text++;
}

const struct dict_stack *dictionary_use_stack(struct dictionary *dictionary, uint64_t hash)
{
	(void)dictionary;
	used_stack = hash;
	return NULL;
}

int dump_text_take(struct dump_text *text, char **ret_text, size_t *ret_size)
{
	*ret_text = text->text;
	*ret_size = strlen(text->text);
	return 0;
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
		if (processes[i].id.tgid == id.tgid && processes[i].id.generation == id.generation)
			return &processes[i];
	return NULL;
}

uint16_t context_table_flags(const struct process *process)
{
	return matches[process - processes] ? PP_CONTEXT_MATCHES : 0;
}

struct process_python *context_table_python(struct process *process)
{
	(void)process;
	return NULL;
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
	*ret_count = 0;
	return NULL;
}

bool thread_slots_glance(const struct pp_thread *slots, uint32_t count, uint32_t seed, uint32_t tid,
			 struct thread_glance *ret_glance)
{
	(void)slots, (void)count, (void)tid;
	assert_int_equal(seed, SEED);
	*ret_glance = glance;
	return has_slot;
}

int thread_status_read(uint32_t tgid, uint32_t tid, struct proc_status *ret_status)
{
	(void)tid;
	assert_int_equal(tgid, child);
	*ret_status = (struct proc_status){.is_runnable = true};
	return 0;
}

int proc_status_read(uint32_t pid, struct proc_status *ret_status)
{
	*ret_status = (struct proc_status){.uid = pid == PID_A ? 77 : 0};
	return pid == PID_A ? 0 : -ESRCH;
}

bool live_may_see(uid_t uid, uint32_t tgid)
{
	assert_int_equal(uid, 1000);
	if (tgid == hidden_later && asked++)
		return false;
	return tgid != hidden;
}

void who_read_details(struct process_table *table, struct process *process)
{
	(void)table, (void)process;
}

void thread_names_want(struct thread_names *names, struct pp_process_id id)
{
	(void)names, (void)id;
	fail_msg("no process here has an interpreter");
}

void thread_names_tick(struct thread_names *names)
{
	(void)names;
}

int python_process_threads(const struct python_info *info, pid_t pid, uint64_t bias,
			   struct python_thread **ret_threads, size_t *ret_count)
{
	(void)info, (void)pid, (void)bias, (void)ret_threads, (void)ret_count;
	return -EIO;
}

int python_process_inner_tid(pid_t pid, bool is_musl, uint64_t thread_id, uint64_t native_id,
			     uint32_t *ret_tid)
{
	(void)pid, (void)is_musl, (void)thread_id, (void)native_id, (void)ret_tid;
	return -EIO;
}

static int follow(void *context)
{
	(void)context;
	followed++;
	return follow_err;
}

/* ---- */

static struct finisher finisher = {.follow_processes = follow};
static const struct services services = {.finisher = &finisher};
static struct live_request request;

static void add_process(uint32_t tgid, uint32_t generation)
{
	matches[process_count] = true;
	processes[process_count++] =
		(struct process){.id = {.tgid = tgid, .generation = generation}};
}

static void add_sleeper(uint32_t tgid, uint32_t generation, uint32_t tid)
{
	found[stats.threads++] = (struct scanned){.id = {.tgid = tgid, .generation = generation},
						  .tid = tid,
						  .user_stack = tid + 1000,
						  .kernel_stack = tid + 2000};
}

static int setup(void **state)
{
	(void)state;
	scan_steps = scan_err = follow_err = text_err = 0;
	stats = (struct scan_stats){};
	process_count = 0;
	left_out = 0;
	refreshed = followed = asked = 0;
	hidden = hidden_later = 0;
	has_slot = false;
	now_ns = 100 * NS_PER_SEC;
	ns_a_reading = 0;
	written = ended = 0;
	refreshed_text = 0;
	used_stack = 0;
	request = (struct live_request){};
	finisher.is_filtered = false;
	return 0;
}

static const char *text_of_dump(void)
{
	OWNED(dump) struct dump *dump = NULL;
	int more;

	assert_int_equal(dump_new(&services, 1000, &request, &dump), 0);
	while ((more = dump_step(dump, 1000)) > 0)
		;
	assert_int_equal(more, 0);
	return reply.text;
}

static void threads__are_sorted_by_process_and_number(void **state)
{
	(void)state;
	add_process(PID_B, 1);
	add_process(PID_A, 1);
	add_sleeper(PID_B, 1, 4);
	add_sleeper(PID_A, 1, 9);
	add_sleeper(PID_A, 1, 3);
	assert_string_equal(text_of_dump(), "2147483633: 3/1003/2003/0 9/1009/2009/0\n"
					    "2147483634: 4/1004/2004/0\n");
	assert_int_equal(processes[1].uid, 77); /* that of now */
	assert_int_equal(left_out, 0);
}

static void threads__of_a_program_that_was_replaced_are_left_out(void **state)
{
	(void)state;
	add_process(PID_B, 2);
	add_sleeper(PID_A, 1, 3); /* not in the table any more */
	add_sleeper(PID_B, 1, 4); /* what ran before the exec */
	add_sleeper(PID_B, 2, 5);
	add_sleeper(PID_C, 1, 6);
	assert_string_equal(text_of_dump(), "2147483634: 5/1005/2005/0\n");
}

static void threads__that_the_scan_left_out_are_counted(void **state)
{
	(void)state;
	add_process(PID_A, 1);
	add_sleeper(PID_A, 1, 3);
	found[0].is_torn = true;
	stats.late = 4;
	stats.refused = 30;
	assert_string_equal(text_of_dump(), "2147483633: 3/1003/2003/0 torn\n");
	assert_int_equal(left_out, 34);
}

static void process__that_has_ended_or_was_not_asked_for_is_left_out(void **state)
{
	(void)state;
	add_process(PID_A, 1);
	add_process(PID_B, 1);
	add_process(PID_C, 1);
	processes[0].exit_ns = 5;
	request.pid[0] = PID_A;
	request.pid[1] = PID_C;
	request.pid_count = 2;
	assert_string_equal(text_of_dump(), "2147483635:\n");
}

static void process__that_does_not_match_the_filter_is_left_out(void **state)
{
	(void)state;
	add_process(PID_A, 1);
	add_process(PID_B, 1);
	matches[0] = false;
	finisher.is_filtered = true;
	assert_string_equal(text_of_dump(), "2147483634:\n");
	finisher.is_filtered = false;
	assert_string_equal(text_of_dump(), "2147483633:\n2147483634:\n");
}

static void user__gets_what_the_user_may_see(void **state)
{
	OWNED(dump) struct dump *dump = NULL;

	(void)state;
	add_process(PID_A, 1);
	add_process(PID_B, 1);
	hidden = PID_A;
	assert_string_equal(text_of_dump(), "2147483634:\n");
	request.pid[0] = PID_A;
	request.pid_count = 1;
	assert_int_equal(dump_new(&services, 1000, &request, &dump), 0);
	/* The scan asks, too: neither a stranger's process nor one that was not asked for. */
	assert_false(scope.wants(scope.context, PID_A));
	assert_false(scope.wants(scope.context, PID_B));
	hidden = 0;
	assert_false(
		scope.wants(scope.context, PID_A)); /* asked once for all threads of a process */
	request.pid_count = 0;
}

static void user__gets_nothing_of_a_program_that_came_between(void **state)
{
	(void)state;
	add_process(PID_A, 1);
	hidden_later = PID_A;
	assert_string_equal(text_of_dump(), "");
	assert_int_equal(asked, 2);
}

static void wait__lasts_since_the_switch_of_its_slot(void **state)
{
	(void)state;
	add_process(PID_A, 1);
	add_sleeper(PID_A, 1, 3);
	has_slot = true;
	glance = (struct thread_glance){.flags = PP_THREAD_WAITING, .since_ns = now_ns - 5};
	assert_string_equal(text_of_dump(), "2147483633: 3/1003/2003/5\n");
	glance.since_ns = now_ns + 1; /* another clock's moment */
	assert_string_equal(text_of_dump(), "2147483633: 3/1003/2003/0\n");
	glance.since_ns = now_ns - 5;
	glance.has_exited = true;
	assert_string_equal(text_of_dump(), "2147483633: 3/1003/2003/0\n");
	glance.has_exited = false;
	glance.flags = 0;
	assert_string_equal(text_of_dump(), "2147483633: 3/1003/2003/0\n");
}

static void kernel_stacks__are_left_out_on_demand(void **state)
{
	(void)state;
	add_process(PID_A, 1);
	add_sleeper(PID_A, 1, 3);
	request.no_kernel = true;
	assert_string_equal(text_of_dump(), "2147483633: 3/1003/0/0\n");
}

static int start_child(void **state)
{
	const pid_t parent = getpid();

	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			pause();
		_exit(0);
	}
	return child < 0 ? -1 : setup(state);
}

static int end_child(void **state)
{
	(void)state;
	kill(child, SIGKILL);
	return waitpid(child, NULL, 0) == child ? 0 : -1;
}

static void running__threads_are_those_that_no_scan_has_found(void **state)
{
	const uint32_t pid = (uint32_t)child;
	char wanted[64];

	(void)state;
	add_process(pid, 1);
	snprintf(wanted, sizeof(wanted), "%u: %u/0/0/0 runs\n", pid, pid);
	assert_string_equal(text_of_dump(), wanted);
	add_sleeper(pid, 1, pid);
	snprintf(wanted, sizeof(wanted), "%u: %u/%u/%u/0\n", pid, pid, pid + 1000, pid + 2000);
	assert_string_equal(text_of_dump(), wanted);
	/* Found among others, on each side. */
	add_sleeper(pid, 1, pid + 1);
	add_sleeper(pid, 1, pid - 1);
	add_sleeper(pid, 1, pid + 2);
	assert_null(strstr(text_of_dump(), "runs"));
}

static void steps__scan_first_then_go_process_by_process(void **state)
{
	OWNED(dump) struct dump *dump = NULL;
	char *text;
	size_t size;

	(void)state;
	add_process(PID_A, 1);
	add_process(PID_B, 1);
	scan_steps = 2;
	assert_int_equal(dump_new(&services, 1000, &request, &dump), 0);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(dump_step(dump, 1000), 1);
	assert_int_equal(followed, 0);
	dump_refresh(dump);
	assert_int_equal(refreshed, 1);
	assert_int_equal(dump_step(dump, 1000), 0); /* time stands still: both at once */
	assert_int_equal(followed, 1);
	assert_int_equal(dump_take(dump, &text, &size), 0);
	assert_string_equal(text, "2147483633:\n2147483634:\n");
	assert_int_equal(size, 24);
}

/* The process with two sleepers, in steps of which each is over when it looks. */
static unsigned int steps_of_two_sleepers(struct dump *dump)
{
	unsigned int steps = 0;

	add_process(PID_A, 1);
	add_sleeper(PID_A, 1, 7);
	add_sleeper(PID_A, 1, 8);
	ns_a_reading = 1000;
	while (!steps || !written) {
		assert_int_equal(dump_step(dump, 1000), 1);
		steps++;
	}
	return steps;
}

static void steps__go_thread_by_thread(void **state)
{
	OWNED(dump) struct dump *dump = NULL;
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(dump_new(&services, 1000, &request, &dump), 0);
	assert_true(steps_of_two_sleepers(dump) > 2);
	assert_int_equal(written, 1);
	assert_int_equal(ended, 0);
	dump_refresh(dump);
	assert_int_equal(refreshed_text, 1);
	assert_int_equal(used_stack, 1008);
	assert_int_equal(dump_step(dump, 1000), 0);
	assert_int_equal(ended, 1);
	assert_int_equal(dump_take(dump, &text, &size), 0);
	assert_string_equal(text, "2147483633: 7/1007/2007/0 8/1008/2008/0\n");
}

/* Its stacks are known already. */
static void process__that_ends_while_it_is_written_is_written(void **state)
{
	OWNED(dump) struct dump *dump = NULL;
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(dump_new(&services, 1000, &request, &dump), 0);
	(void)steps_of_two_sleepers(dump);
	processes[0].exit_ns = 1;
	assert_int_equal(dump_step(dump, 1000), 0);
	assert_int_equal(dump_take(dump, &text, &size), 0);
	assert_string_equal(text, "2147483633: 7/1007/2007/0 8/1008/2008/0\n");
}

static void process__that_is_forgotten_meanwhile_is_left(void **state)
{
	OWNED(dump) struct dump *dump = NULL;

	(void)state;
	assert_int_equal(dump_new(&services, 1000, &request, &dump), 0);
	(void)steps_of_two_sleepers(dump);
	process_count = 0;
	assert_int_equal(dump_step(dump, 1000), 0);
	assert_int_equal(ended, 1);
}

static void error__ends_it(void **state)
{
	OWNED(dump) struct dump *dump = NULL;

	(void)state;
	scan_err = -ENOTSUP;
	assert_int_equal(dump_new(&services, 1000, &request, &dump), -ENOTSUP);
	assert_null(dump);
	scan_err = 0;
	add_process(PID_A, 1);
	assert_int_equal(dump_new(&services, 1000, &request, &dump), 0);
	scan_steps = -EIO;
	assert_int_equal(dump_step(dump, 1000), -EIO);
	scan_steps = 0;
	assert_int_equal(dump_step(dump, 1000), 1);
	follow_err = -EBADF;
	assert_int_equal(dump_step(dump, 1000), -EBADF);
	follow_err = 0;
	text_err = -ENOMEM;
	assert_int_equal(dump_step(dump, 1000), -ENOMEM);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(threads__are_sorted_by_process_and_number),
		TEST(threads__of_a_program_that_was_replaced_are_left_out),
		TEST(threads__that_the_scan_left_out_are_counted),
		TEST(process__that_has_ended_or_was_not_asked_for_is_left_out),
		TEST(process__that_does_not_match_the_filter_is_left_out),
		TEST(user__gets_what_the_user_may_see),
		TEST(user__gets_nothing_of_a_program_that_came_between),
		TEST(wait__lasts_since_the_switch_of_its_slot),
		TEST(kernel_stacks__are_left_out_on_demand),
		cmocka_unit_test_setup_teardown(running__threads_are_those_that_no_scan_has_found,
						start_child, end_child),
		TEST(steps__scan_first_then_go_process_by_process),
		TEST(steps__go_thread_by_thread),
		TEST(process__that_ends_while_it_is_written_is_written),
		TEST(process__that_is_forgotten_meanwhile_is_left),
		TEST(error__ends_it),
	};

	return cmocka_run_group_tests_name("agent/dump", tests, NULL, NULL);
}
