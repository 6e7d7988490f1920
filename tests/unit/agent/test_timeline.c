/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings, texts, lanes and the file are stand-ins that write down what they are asked to do. */
#include "agent/timeline.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/stack_intake.h"
#include "attach/kernel_side.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "discover/process_table.h"
#include "drain/ring.h"
#include "options/options.h"
#include "processes/process_watch.h"
#include "processes/thread_names.h"
#include "store/output.h"
#include "timeline/lanes.h"
#include "windows/source.h"

#define RECORDS_MAX 131072U
#define SLOTS 9U
#define NOW_NS (100 * NS_PER_SEC)

struct ring {
	struct drain_handlers handlers;
};
struct intern {
	char dummy;
};
struct stack_texts {
	char dummy;
};
struct trace_file {
	char dummy;
};
struct lanes {
	char dummy;
};

static char calls[4096];
static char told[1024];
static const char *fails; /* the name of the call that fails */
static int error;	  /* what it returns */
static int open_parts;
static struct ring ring;
static const struct stack_intake stacks;
static struct pp_timeline_record coming[8]; /* what the ring holds */
static size_t coming_count;
static size_t coming_times; /* each is there so often */
static struct trace_file_options file_options;
static unsigned int max_frames;
static struct lanes_names names;
static struct pp_timeline_record added[SLOTS];
static struct lanes_event event; /* last */
static size_t added_count;
static uint64_t refused;
static struct pp_thread slots[SLOTS];
static struct process process;

/* Writes the call down, and returns its result. */
static int call(const char *name)
{
	if (strlen(calls) + strlen(name) + 2 < sizeof(calls)) {
		strcat(calls, name);
		strcat(calls, " ");
	}
	return fails && !strcmp(fails, name) ? error : 0;
}

/* ---- stand-ins ---- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = NOW_NS / NS_PER_SEC};
	return 0;
}

int nanosleep(const struct timespec *time, struct timespec *ret_rest)
{
	(void)ret_rest;
	assert_int_equal(time->tv_nsec, PP_SETTLE_NS);
	call("settle");
	return 0;
}

void log_line(enum log_level level, const char *format, ...)
{
	const size_t used = strlen(told);
	va_list args;

	(void)level;
	va_start(args, format);
	vsnprintf(told + used, sizeof(told) - used, format, args);
	va_end(args);
	strcat(told, "\n");
}

int log_line_errno(enum log_level level, int err, const char *format, ...)
{
	char line[256];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log_line(level, "%s: %s", line, strerror(-err));
	return err;
}

/* A part that is opened, or not. */
static int opened(const char *name)
{
	const int err = call(name);

	open_parts += !err;
	return err;
}

struct kernel_side_parts kernel_side_parts(const struct kernel_side *side)
{
	(void)side;
	return (struct kernel_side_parts){.timeline = 55};
}

struct pp_thread *kernel_side_threads(const struct kernel_side *side, uint32_t *ret_count)
{
	(void)side;
	*ret_count = SLOTS;
	return slots;
}

int ring_new(int fd, enum ring_kind kind, const struct drain_handlers *handlers,
	     struct ring **ret_ring)
{
	const int err = opened("ring_new");

	assert_int_equal(fd, 55);
	assert_int_equal(kind, RING_TIMELINE);
	ring.handlers = *handlers;
	if (!err)
		*ret_ring = &ring;
	return err;
}

void ring_free(struct ring *of)
{
	open_parts -= of != NULL;
}

int ring_fd(const struct ring *of)
{
	assert_ptr_equal(of, &ring);
	return 56;
}

int stack_intake_serve(const struct stack_intake *intake, const struct slice *slice)
{
	assert_ptr_equal(intake, &stacks);
	assert_non_null(slice);
	return call("stacks");
}

int ring_consume(struct ring *of)
{
	assert_ptr_equal(of, &ring);
	for (size_t i = 0; i < coming_times * coming_count; i++)
		ring.handlers.timeline(ring.handlers.context, &coming[i % coming_count]);
	coming_count = 0;
	return call("ring");
}

int process_watch_follow(struct process_watch *watch)
{
	(void)watch;
	return call("follow");
}

int intern_new(struct intern **ret_intern)
{
	static struct intern strings;
	const int err = opened("intern_new");

	if (!err)
		*ret_intern = &strings;
	return err;
}

void intern_free(struct intern *intern)
{
	open_parts -= intern != NULL;
}

int stack_texts_new(const struct stack_texts_sources *sources, struct stack_texts **ret_texts)
{
	static struct stack_texts texts;
	const int err = opened("texts_new");

	assert_non_null(sources->strings);
	max_frames = sources->max_frames;
	if (!err)
		*ret_texts = &texts;
	return err;
}

void stack_texts_free(struct stack_texts *texts)
{
	open_parts -= texts != NULL;
}

int stack_texts_note(struct stack_texts *texts, struct pp_process_id id, uint64_t user,
		     uint64_t kernel)
{
	(void)texts;
	assert_int_equal(id.tgid, 70);
	assert_true(kernel == 0 || kernel == user + 1);
	return call("note");
}

int stack_texts_resolve(struct stack_texts *texts)
{
	(void)texts;
	return call("resolve");
}

void stack_texts_tidy(struct stack_texts *texts)
{
	(void)texts;
	call("tidy");
}

struct stack_text stack_texts_find(const struct stack_texts *texts, uint64_t user, uint64_t kernel)
{
	(void)texts;
	if (!user)
		return (struct stack_text){};
	assert_int_equal(kernel, user + 1);
	return (struct stack_text){
		.function = (uint32_t)user + 100, .text = (uint32_t)user + 200, .is_python = true};
}

void output_owner(uid_t *ret_uid, gid_t *ret_gid)
{
	*ret_uid = 1000;
	*ret_gid = 1001;
}

int trace_file_open(const struct trace_file_options *of, struct trace_file **ret_file)
{
	static struct trace_file file;
	const int err = opened("file_open");

	file_options = *of;
	if (!err)
		*ret_file = &file;
	return err;
}

void trace_file_free(struct trace_file *file)
{
	open_parts -= file != NULL;
}

int trace_file_flush(struct trace_file *file)
{
	assert_non_null(file);
	return call("flush");
}

void trace_file_end(struct trace_file *file)
{
	assert_non_null(file);
	call("file_end");
}

int trace_file_close(struct trace_file *file)
{
	assert_non_null(file);
	return call("file_close");
}

uint64_t trace_file_bytes(const struct trace_file *file)
{
	assert_non_null(file);
	return 3 << 19;
}

static int sink_end(void *context)
{
	assert_ptr_equal(context, &open_parts);
	return call("sink_end");
}

static void sink_free(void *context)
{
	assert_ptr_equal(context, &open_parts);
	open_parts--;
}

static int sink_new(const char *name, const struct trace_start *start, struct trace_sink *ret_sink)
{
	const int err = opened(name);

	assert_int_equal(start->monotonic_ns, NOW_NS);
	assert_int_equal(start->boottime_ns, NOW_NS);
	assert_int_equal(start->wall_ns, NOW_NS);
	if (!err)
		*ret_sink = (struct trace_sink){
			.context = &open_parts, .end = sink_end, .free = sink_free};
	return err;
}

int perfetto_sink_new(struct trace_file *file, const struct intern *strings,
		      const struct trace_start *start, struct trace_sink *ret_sink)
{
	assert_non_null(file);
	assert_non_null(strings);
	return sink_new("perfetto", start, ret_sink);
}

int chrome_sink_new(struct trace_file *file, const struct intern *strings,
		    const struct trace_start *start, struct trace_sink *ret_sink)
{
	assert_non_null(file);
	assert_non_null(strings);
	return sink_new("chrome", start, ret_sink);
}

int lanes_new(struct intern *strings, const struct trace_sink *sink, const struct lanes_names *of,
	      struct lanes **ret_lanes)
{
	static struct lanes lanes;
	const int err = opened("lanes_new");

	(void)strings;
	assert_ptr_equal(sink->context, &open_parts);
	names = *of;
	if (!err)
		*ret_lanes = &lanes;
	return err;
}

void lanes_free(struct lanes *lanes)
{
	open_parts -= lanes != NULL;
}

int lanes_add(struct lanes *lanes, const struct lanes_event *of)
{
	(void)lanes;
	event = *of;
	if (added_count < ARRAY_SIZE(added))
		added[added_count] = *of->record;
	added_count++;
	return call("add");
}

int lanes_end(struct lanes *lanes)
{
	assert_non_null(lanes);
	return call("lanes_end");
}

uint64_t lanes_refused(const struct lanes *lanes)
{
	assert_non_null(lanes);
	return refused;
}

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table;
	return id.tgid == process.id.tgid ? &process : NULL;
}

struct process *process_table_find_or_tgid(const struct process_table *table,
					   struct pp_process_id id)
{
	return process_table_find(table, id);
}

const char *thread_names_get(struct thread_names *of, const struct process *whose, uint32_t tid,
			     const char *comm)
{
	(void)of, (void)comm;
	assert_ptr_equal(whose, &process);
	return tid == 71 ? "worker" : "";
}

uint32_t thread_names_host_tid(const struct thread_names *of, const struct process *whose,
			       uint32_t inner)
{
	(void)of;
	assert_ptr_equal(whose, &process);
	return inner + 5000;
}

/* ---- */

static struct options options;
static const struct services services = {.options = &options};
static const struct timeline_sources sources = {.services = &services, .stacks = &stacks};
static struct timeline *timeline;

static int setup(void **state)
{
	(void)state;
	calls[0] = told[0] = '\0';
	fails = NULL;
	error = -ENOMEM;
	open_parts = 0;
	coming_count = added_count = 0;
	coming_times = 1;
	refused = 0;
	memset(slots, 0, sizeof(slots));
	memset(added, 0, sizeof(added));
	process = (struct process){.id = {.tgid = 70}, .comm = "app"};
	options = (struct options){.timeline = "out.json",
				   .timeline_max_bytes = 12345,
				   .timeline_kind = OPTIONS_TIMELINE_CHROME,
				   .quiet = true};
	timeline = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	timeline_free(timeline);
	return open_parts;
}

static void open_timeline(void)
{
	assert_int_equal(timeline_open(&sources, &timeline), 0);
	assert_non_null(timeline);
	calls[0] = told[0] = '\0';
}

static void come(uint64_t user_stack, uint32_t holder_tid)
{
	coming[coming_count++] =
		(struct pp_timeline_record){.id = {.tgid = 70, .generation = 1},
					    .tid = 71,
					    .user_stack = user_stack,
					    .kernel_stack = user_stack ? user_stack + 1 : 0,
					    .holder_tid = holder_tid};
}

/* ---- opening ---- */

static void open__makes_nothing_unless_a_timeline_is_wanted(void **state)
{
	(void)state;
	options.timeline = NULL;
	assert_int_equal(timeline_open(&sources, &timeline), 0);
	assert_null(timeline);
	assert_string_equal(calls, "");
	assert_int_equal(timeline_close(NULL), 0);
	timeline_free(NULL);
}

static void open__file_is_as_the_options_say(void **state)
{
	(void)state;
	assert_int_equal(timeline_open(&sources, &timeline), 0);
	assert_string_equal(calls, "file_open ring_new intern_new texts_new chrome lanes_new ");
	assert_string_equal(file_options.path, "out.json");
	assert_int_equal(file_options.max_bytes, 12345);
	assert_int_equal(file_options.uid, 1000);
	assert_int_equal(file_options.gid, 1001);
	assert_false(file_options.gzip);
	assert_int_equal(max_frames, 16); /* each event has its text */
	assert_int_equal(timeline_fd(timeline), 56);
}

static void open__format_is_as_the_options_say(void **state)
{
	(void)state;
	options.timeline_kind = OPTIONS_TIMELINE_PERFETTO;
	assert_int_equal(timeline_open(&sources, &timeline), 0);
	assert_non_null(strstr(calls, " perfetto "));
	assert_false(file_options.gzip);
	assert_int_equal(max_frames, 128);
	timeline_free(timeline);
	timeline = NULL;
	calls[0] = '\0';
	options.timeline_kind = OPTIONS_TIMELINE_CHROME_GZ;
	assert_int_equal(timeline_open(&sources, &timeline), 0);
	assert_non_null(strstr(calls, " chrome "));
	assert_true(file_options.gzip);
}

static void open__releases_what_it_had_at_each_error(void **state)
{
	static const char *const part[] = {"ring_new", "intern_new", "texts_new", "chrome",
					   "lanes_new"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		told[0] = '\0';
		fails = part[i];
		assert_int_equal(timeline_open(&sources, &timeline), -ENOMEM);
		assert_null(timeline);
		assert_int_equal(open_parts, 0);
		assert_string_equal(told, "cannot start the timeline: Cannot allocate memory\n");
	}
}

static void open__says_what_is_wrong_with_the_file(void **state)
{
	static const struct {
		int err;
		const char *line;
	} each[] = {
		{-EINVAL, "--timeline: 'out.json' is not a regular file\n"},
		{-EEXIST, "--timeline: 'out.json' belongs to another user: give another name\n"},
		{-EACCES, "cannot write to 'out.json': Permission denied\n"},
	};

	(void)state;
	fails = "file_open";
	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		told[0] = '\0';
		error = each[i].err;
		assert_int_equal(timeline_open(&sources, &timeline), each[i].err);
		assert_null(timeline);
		assert_string_equal(told, each[i].line);
		assert_int_equal(open_parts, 0);
	}
}

/* ---- recording ---- */

static void tick__writes_records_when_their_stacks_have_come(void **state)
{
	(void)state;
	open_timeline();
	timeline_tick(timeline);
	assert_string_equal(calls, "ring "); /* nothing has come */
	calls[0] = '\0';
	come(11, 0);
	come(13, 0);
	timeline_tick(timeline);
	assert_string_equal(calls, "ring follow stacks tidy note note resolve add add flush ");
	assert_int_equal(added[0].user_stack, 11);
	assert_int_equal(added[1].user_stack, 13);
	assert_int_equal(event.function, 113);
	assert_int_equal(event.stack, 213);
	assert_true(event.is_python);
	calls[0] = '\0';
	timeline_tick(timeline); /* written once */
	assert_string_equal(calls, "ring ");
}

static void holder__is_numbered_as_the_host_does(void **state)
{
	(void)state;
	open_timeline();
	come(11, 3);
	come(11, 0);
	timeline_tick(timeline);
	assert_int_equal(added[0].holder_tid, 5003);
	assert_int_equal(added[1].holder_tid, 0);
	process.id.tgid = 99; /* the table does not know it any more */
	come(11, 3);
	timeline_tick(timeline);
	assert_int_equal(added[2].holder_tid, 0);
}

static void names__are_those_of_the_process_and_the_thread(void **state)
{
	const char *process_name = "?", *thread_name = "?";

	(void)state;
	open_timeline();
	names.find(names.context, (struct pp_process_id){.tgid = 70}, 71, &process_name,
		   &thread_name);
	assert_string_equal(process_name, "app");
	assert_string_equal(thread_name, "worker");
	process_name = thread_name = "?";
	names.find(names.context, (struct pp_process_id){.tgid = 80}, 71, &process_name,
		   &thread_name);
	assert_string_equal(process_name, "?");
	assert_string_equal(thread_name, "?");
}

static void records__beyond_the_bound_are_dropped_and_told(void **state)
{
	(void)state;
	open_timeline();
	come(11, 0);
	coming_times = RECORDS_MAX;
	timeline_tick(timeline);
	assert_int_equal(added_count, RECORDS_MAX);
	come(11, 0);
	coming_times = RECORDS_MAX + 3;
	timeline_tick(timeline);
	assert_int_equal(added_count, 2 * RECORDS_MAX);
	assert_string_equal(told, "");
	refused = 4;
	assert_int_equal(timeline_close(timeline), 0);
	assert_non_null(strstr(told, "incomplete: 3 records came faster than they could be read, "
				     "4 were of threads beyond the first"));
}

static void full__file_ends_the_timeline_and_is_told_once(void **state)
{
	(void)state;
	open_timeline();
	fails = "add";
	error = -EFBIG;
	come(11, 0);
	come(13, 0);
	timeline_tick(timeline);
	assert_int_equal(added_count, 1);
	assert_string_equal(told,
			    "the timeline 'out.json' ends here: it has reached timeline-max\n");
	calls[0] = told[0] = '\0';
	fails = NULL;
	come(15, 0);
	timeline_tick(timeline);
	assert_string_equal(calls, "ring "); /* so that it does not fill up */
	calls[0] = '\0';
	assert_int_equal(timeline_close(timeline), 0);
	assert_string_equal(calls, "file_end lanes_end sink_end file_close ");
	assert_string_equal(told, "");
}

static void error__of_each_step_ends_the_timeline(void **state)
{
	static const char *const step[] = {"note", "resolve", "add", "flush"};

	(void)state;
	error = -EIO;
	for (size_t i = 0; i < ARRAY_SIZE(step); i++) {
		open_timeline();
		fails = step[i];
		come(11, 0);
		timeline_tick(timeline);
		fails = NULL;
		assert_string_equal(told, "the timeline 'out.json' ends here: Input/output "
					  "error\n");
		come(11, 0);
		calls[0] = '\0';
		timeline_tick(timeline);
		assert_string_equal(calls, "ring ");
		timeline_free(timeline);
	}
	timeline = NULL;
}

/* ---- the end ---- */

static struct pp_thread *add_slot(uint32_t tid)
{
	struct pp_thread *slot = &slots[tid ? tid - 71 : 0];

	*slot = (struct pp_thread){.tid = tid,
				   .id = {.tgid = 70, .generation = 1},
				   .flags = PP_THREAD_MATCHES,
				   .timeline_cpu = 6,
				   .timeline_flags = 4,
				   .ran_since_ns = NOW_NS - 30,
				   .since_ns = NOW_NS - 20,
				   .last_key = 77,
				   .wait = PP_WAIT_POLL};
	return slot;
}

static void close__writes_what_threads_do_at_the_end(void **state)
{
	struct pp_thread *slot;

	(void)state;
	open_timeline();
	add_slot(71);
	slot = add_slot(72);
	slot->flags |= PP_THREAD_WAITING;
	slot->at = PP_THREAD_WAIT_SITES + 1;
	slot->site[1] = (struct pp_wait_site){.key = 77, .user_stack = 21, .kernel_stack = 22};
	slot = add_slot(73);
	slot->flags |= PP_THREAD_WAITING;
	slot->wait = PP_WAIT_RUN_QUEUE;
	slot->site[0] = (struct pp_wait_site){.key = 78, .user_stack = 21, .kernel_stack = 22};
	assert_int_equal(timeline_close(timeline), 0);
	assert_int_equal(added_count, 3);
	assert_int_equal(added[0].tid, 71); /* it runs */
	assert_int_equal(added[0].id.tgid, 70);
	assert_int_equal(added[0].cpu, 6);
	assert_int_equal(added[0].record.type, PP_TIMELINE_SWITCH);
	assert_int_equal(added[0].record.size, sizeof(added[0]));
	assert_int_equal(added[0].run_ns, NOW_NS - 20);
	assert_int_equal(added[0].leave_ns, NOW_NS);
	assert_int_equal(added[0].back_ns, NOW_NS);
	assert_int_equal(added[0].wait, PP_WAIT_NONE);
	assert_int_equal(added[0].flags, 0);
	assert_int_equal(added[1].run_ns, NOW_NS - 30); /* it waits */
	assert_int_equal(added[1].leave_ns, NOW_NS - 20);
	assert_int_equal(added[1].woken_ns, NOW_NS);
	assert_int_equal(added[1].back_ns, NOW_NS);
	assert_int_equal(added[1].wait, PP_WAIT_POLL);
	assert_int_equal(added[1].flags, 4);
	assert_int_equal(added[1].user_stack, 21);
	assert_int_equal(added[1].kernel_stack, 22);
	assert_int_equal(added[2].woken_ns, NOW_NS - 20); /* it could run all the time */
	assert_int_equal(added[2].back_ns, NOW_NS);
	assert_int_equal(added[2].user_stack, 0); /* of an earlier wait */
}

static void close__leaves_out_slots_that_say_nothing(void **state)
{
	(void)state;
	open_timeline();
	add_slot(0);
	add_slot(72)->flags = PP_THREAD_WAITING; /* outside of the filter */
	add_slot(73)->since_ns = NOW_NS + 1;
	add_slot(74)->ran_since_ns = NOW_NS - 19; /* half written */
	add_slot(75)->flags |= PP_THREAD_WAITING;
	slots[75 - 71].wait = PP_WAIT_COUNT;
	add_slot(76)->tid |= PP_TID_ENDED; /* its end was recorded */
	assert_int_equal(timeline_close(timeline), 0);
	assert_int_equal(added_count, 0);
}

static void close__takes_what_came_last_and_ends_the_file(void **state)
{
	(void)state;
	options.quiet = false;
	open_timeline();
	come(11, 0);
	add_slot(71);
	assert_int_equal(timeline_close(timeline), 0);
	assert_string_equal(calls, "settle ring follow stacks tidy note resolve add flush "
				   "tidy note resolve add flush "
				   "file_end lanes_end sink_end file_close ");
	assert_string_equal(told, "timeline: 2 records, 1.5 MiB in 'out.json'\n");
}

static void close__says_what_cannot_be_finished(void **state)
{
	static const struct {
		const char *fails;
		int err;
		const char *calls;
	} each[] = {
		{"lanes_end", -EIO, "file_end lanes_end "},
		{"sink_end", -EIO, "file_end lanes_end sink_end "},
		{"file_close", -EIO, "file_end lanes_end sink_end file_close "},
		/* It can be read all the same. */
		{"lanes_end", -EFBIG, "file_end lanes_end sink_end file_close "},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		const int wanted = each[i].err == -EFBIG ? 0 : each[i].err;

		open_timeline();
		fails = each[i].fails;
		error = each[i].err;
		assert_int_equal(timeline_close(timeline), wanted);
		assert_string_equal(strstr(calls, "file_end"), each[i].calls);
		assert_string_equal(told, wanted ? "cannot finish the timeline 'out.json': "
						   "Input/output error\n"
						 : "");
		timeline_free(timeline);
		fails = NULL;
	}
	timeline = NULL;
}

static void close__finishes_the_file_though_the_last_records_failed(void **state)
{
	(void)state;
	open_timeline();
	add_slot(71);
	fails = "resolve";
	error = -ENOMEM;
	assert_int_equal(timeline_close(timeline), 0);
	assert_non_null(strstr(calls, "file_end lanes_end sink_end file_close "));
	assert_string_equal(told, "the timeline 'out.json' ends here: Cannot allocate memory\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(open__makes_nothing_unless_a_timeline_is_wanted),
		TEST(open__file_is_as_the_options_say),
		TEST(open__format_is_as_the_options_say),
		TEST(open__releases_what_it_had_at_each_error),
		TEST(open__says_what_is_wrong_with_the_file),
		TEST(tick__writes_records_when_their_stacks_have_come),
		TEST(holder__is_numbered_as_the_host_does),
		TEST(names__are_those_of_the_process_and_the_thread),
		TEST(records__beyond_the_bound_are_dropped_and_told),
		TEST(full__file_ends_the_timeline_and_is_told_once),
		TEST(error__of_each_step_ends_the_timeline),
		TEST(close__writes_what_threads_do_at_the_end),
		TEST(close__leaves_out_slots_that_say_nothing),
		TEST(close__takes_what_came_last_and_ends_the_file),
		TEST(close__says_what_cannot_be_finished),
		TEST(close__finishes_the_file_though_the_last_records_failed),
	};

	return cmocka_run_group_tests_name("agent/timeline", tests, NULL, NULL);
}
