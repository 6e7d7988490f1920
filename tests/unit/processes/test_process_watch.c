/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables, rings, /proc and interpreters are stand-ins that write down what they are asked to do. */
#include "processes/process_watch.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "attach/mapping_locks.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
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

#define NOW_NS (100 * NS_PER_SEC)

struct ring {
	struct drain_handlers handlers;
};

/* A process and what the tables say of it. */
struct known {
	struct process process;
	struct process_python python;
	uint16_t flags;
	bool wants_read, has_python;
};

static char calls[4096];
static char told[1024];
static const char *fails; /* the call that fails */
static int error;	  /* what it returns */
static struct known known[8];
static size_t known_count;
static bool files_are_due;
static uint32_t unread_tgid; /* maps a file that the child has not examined */
static bool must_match;	     /* the filter's answer */
static bool needs_details;
static unsigned int matches; /* that on_files() was told of as new */
static struct ring ring;
static struct pp_event coming[8]; /* what the ring holds */
static size_t coming_count;
static struct proc_stat listed[4]; /* what /proc holds */
static size_t listed_count;
static uint32_t generations[128];	 /* that the kernel side knows */
static struct pp_space_record spaces[4]; /* as the kernel tells */
static size_t space_count;
static uint64_t moving_ns; /* what a reading of mappings moves the clock on by */
static uint64_t time_now_ns;
static int self_test;
static const char *self_test_reason;
static struct python_thread threads[3];
static size_t thread_count;
static uint32_t online[8];
static size_t online_count;
static struct sideband_stats sideband_stats;
/* What the side-band delivers before the next call: handlers are called with it. */
static void (*sideband_delivers)(const struct sideband_handlers *handlers);
static uint64_t delivered_ns[8];
static size_t deliveries;

__attribute__((format(printf, 1, 2))) static int call(const char *format, ...)
{
	const size_t used = strlen(calls);
	char name[64];
	va_list args;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	snprintf(calls + used, sizeof(calls) - used, "%s%s", used ? " " : "", name);
	return fails && !strcmp(fails, name) ? error : 0;
}

static struct known *of_process(const struct process *process)
{
	return (struct known *)(uintptr_t)process; /* its first member */
}

/* ---- stand-ins ---- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = (time_t)(time_now_ns / NS_PER_SEC),
				  .tv_nsec = (long)(time_now_ns % NS_PER_SEC)};
	return 0;
}

void log_line(enum log_level level, const char *format, ...)
{
	const size_t used = strlen(told);
	va_list args;

	if (level == LOG_LEVEL_DEBUG)
		return;
	va_start(args, format);
	vsnprintf(told + used, sizeof(told) - used, format, args);
	va_end(args);
	strcat(told, "\n");
}

int log_line_errno(enum log_level level, int err, const char *format, ...)
{
	log_line(level, "%s", format);
	return err;
}

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table;
	for (size_t i = 0; i < known_count; i++)
		if (!memcmp(&known[i].process.id, &id, sizeof(id)))
			return &known[i].process;
	return NULL;
}

struct process *process_table_find_tgid(const struct process_table *table, uint32_t tgid)
{
	(void)table;
	for (size_t i = 0; i < known_count; i++)
		if (known[i].process.id.tgid == tgid)
			return &known[i].process;
	return NULL;
}

struct process *process_table_next(const struct process_table *table, const struct process *process)
{
	const size_t next = process ? (size_t)(of_process(process) - known) + 1 : 0;

	(void)table;
	return next < known_count ? &known[next].process : NULL;
}

static struct known *add_known(uint32_t tgid, uint32_t generation)
{
	struct known *one = &known[known_count++];

	*one = (struct known){.process = {.id = {.tgid = tgid, .generation = generation},
					  .is_user_known = true,
					  .tables = one}};
	return one;
}

int process_table_add(struct process_table *table, struct pp_process_id id, uint32_t ppid,
		      uint64_t start_ns, struct process **ret_process)
{
	const int err = call("add%u:%u", id.tgid, ppid);

	if (err)
		return err;
	if (process_table_find(table, id))
		return -EEXIST;
	*ret_process = &add_known(id.tgid, id.generation)->process;
	(*ret_process)->start_ns = start_ns;
	of_process(*ret_process)->wants_read = true;
	return 0;
}

int process_table_read_maps(struct process_table *table, struct process *process,
			    struct proc_maps_summary *ret_summary)
{
	int err;

	(void)table;
	assert_null(ret_summary);
	err = call("maps%u", process->id.tgid);
	time_now_ns += moving_ns;
	if (err && err != -ESRCH)
		return err;
	process->mappings_changed |= of_process(process)->wants_read;
	of_process(process)->wants_read = false;
	return err;
}

void process_table_lost(struct process *process)
{
	of_process(process)->wants_read = true;
}

bool process_table_wants_read(const struct process *process)
{
	return !process->exit_ns && of_process(process)->wants_read;
}

int process_table_exit(struct process_table *table, struct pp_process_id id, uint64_t time_ns)
{
	process_table_find(table, id)->exit_ns = time_ns;
	return call("exit%u", id.tgid);
}

int process_table_apply(struct process_table *table, const struct pp_event *event)
{
	call("apply%u:%u", event->type, event->id.tgid);
	if (event->type == PP_EVENT_EXIT)
		return 0;
	if (!process_table_find(table, event->id))
		add_known(event->id.tgid, event->id.generation)->process.tables = NULL;
	return 0;
}

int process_table_map(struct process_table *table, uint32_t tgid, const struct mapping *mapping)
{
	(void)table, (void)mapping;
	return call("map%u", tgid);
}

int process_table_new_context(struct process_table *table, uint32_t tgid, uint64_t time_ns)
{
	(void)table;
	return call("context%u@%llu", tgid, (unsigned long long)time_ns);
}

int context_table_find_files(struct context_table *table, struct process *process,
			     const struct slice *slice)
{
	(void)table, (void)process, (void)slice;
	return 0;
}

bool context_table_is_due(struct context_table *table, uint64_t now_ns)
{
	const bool was_due = files_are_due;

	(void)table;
	assert_true(now_ns);
	files_are_due = false;
	return was_due;
}

bool context_table_ask_again(struct context_table *table, const struct process *process,
			     const struct slice *slice)
{
	(void)table;
	assert_non_null(slice);
	return process->id.tgid == unread_tgid;
}

int context_table_publish(struct context_table *table, struct process *process, uint16_t flags)
{
	(void)table;
	of_process(process)->flags = flags;
	process->mappings_changed = false;
	process->tables = process;
	return call("publish%u", process->id.tgid);
}

uint16_t context_table_flags(const struct process *process)
{
	return of_process(process)->flags;
}

struct process_python *context_table_python(struct process *process)
{
	return of_process(process)->has_python ? &of_process(process)->python : NULL;
}

int context_table_fork(struct context_table *table, const struct process *parent,
		       struct process *child)
{
	(void)table;
	of_process(child)->flags = of_process(parent)->flags;
	child->tables = child;
	return call("fork%u-%u", parent->id.tgid, child->id.tgid);
}

void context_table_retire(struct context_table *table, struct process *process)
{
	(void)table;
	call("retire%u.%u", process->id.tgid, process->id.generation);
}

void context_table_release(struct context_table *table, struct process *process)
{
	(void)table;
	call("release%u", process->id.tgid);
}

struct kernel_side_parts kernel_side_parts(const struct kernel_side *side)
{
	(void)side;
	return (struct kernel_side_parts){.events = 55, .spaces = 66};
}

static uint32_t refused_tgid; /* in /proc, beyond its user's share */

bool process_shares_take(const struct kernel_side *kernel, uint32_t tgid)
{
	(void)kernel;
	return tgid != refused_tgid;
}

int kernel_side_get_generation(struct kernel_side *side, uint32_t tgid, uint32_t *ret_generation)
{
	(void)side;
	if (!generations[tgid])
		return -ENOENT;
	*ret_generation = generations[tgid];
	return 0;
}

int mapping_spaces_read(int link,
			void (*on_space)(void *context, const struct pp_space_record *space),
			void *context)
{
	assert_int_equal(link, 66);
	if (fails && !strcmp(fails, "spaces"))
		return error;
	for (size_t i = 0; i < space_count; i++)
		on_space(context, &spaces[i]);
	return 0;
}

/* A fork that is seen meanwhile: the kernel side gives the generation 9. */
static bool is_forked_meanwhile;

int kernel_side_add_process(struct kernel_side *side, struct pp_process_id id)
{
	int err;

	(void)side;
	err = call("new%u.%u", id.tgid, id.generation);
	if (!is_forked_meanwhile)
		return err;
	generations[id.tgid] = 9;
	return -EEXIST;
}

int kernel_side_set_thread_state(struct kernel_side *side, const struct pp_thread_key *key,
				 uint64_t thread_state)
{
	(void)side;
	return call("state%u/%u=%llx", key->id.tgid, key->tid, (unsigned long long)thread_state);
}

int kernel_side_follow_cpus(struct kernel_side *side, const uint32_t *cpus, size_t count)
{
	(void)side;
	assert_memory_equal(cpus, online, count * sizeof(*cpus));
	return call("cpus%zu", count);
}

int ring_new(int fd, enum ring_kind kind, const struct drain_handlers *handlers,
	     struct ring **ret_ring)
{
	assert_int_equal(fd, 55);
	assert_int_equal(kind, RING_EVENTS);
	ring.handlers = *handlers;
	*ret_ring = &ring;
	return call("ring");
}

void ring_free(struct ring *of)
{
	assert_ptr_equal(of, &ring);
	call("ring_free");
}

int ring_consume(struct ring *of)
{
	assert_ptr_equal(of, &ring);
	for (size_t i = 0; i < coming_count; i++)
		ring.handlers.event(ring.handlers.context, &coming[i]);
	coming_count = 0;
	return fails && !strcmp(fails, "consume") ? error : 0;
}

int sideband_collect(struct sideband *sideband)
{
	(void)sideband;
	return fails && !strcmp(fails, "collect") ? error : 0;
}

void sideband_deliver(struct sideband *sideband, uint64_t until_ns,
		      const struct sideband_handlers *handlers)
{
	(void)sideband;
	if (deliveries < ARRAY_SIZE(delivered_ns))
		delivered_ns[deliveries] = until_ns;
	deliveries++;
	if (until_ns == UINT64_MAX && sideband_delivers)
		sideband_delivers(handlers);
}

int sideband_add_cpu(struct sideband *sideband, uint32_t cpu)
{
	(void)sideband;
	return call("cpu+%u", cpu);
}

int sideband_remove_cpu(struct sideband *sideband, uint32_t cpu)
{
	(void)sideband;
	if (cpu < 8)
		call("cpu-%u", cpu);
	return 0;
}

void sideband_get_stats(const struct sideband *sideband, struct sideband_stats *ret_stats)
{
	(void)sideband;
	*ret_stats = sideband_stats;
}

static struct process_table_stats table_stats;

void process_table_get_stats(const struct process_table *processes,
			     struct process_table_stats *ret_stats)
{
	(void)processes;
	*ret_stats = table_stats;
}

uint64_t ring_bad_count(const struct ring *of)
{
	(void)of;
	return 3;
}

int cpus_online(struct cpu_list *ret_list)
{
	if (fails && !strcmp(fails, "online"))
		return error;
	*ret_list = (struct cpu_list){.cpu = online, .count = online_count};
	return 0;
}

void cpu_list_release(struct cpu_list *list)
{
	(void)list;
}

int proc_scan(int (*callback)(void *context, const struct proc_stat *stat), void *context)
{
	for (size_t i = 0; i < listed_count; i++)
		assert_int_equal(callback(context, &listed[i]), 0);
	return call("scan");
}

int proc_scan_step(struct proc_scanning *scanning,
		   int (*callback)(void *context, const struct proc_stat *stat), void *context,
		   const struct slice *slice)
{
	assert_null(scanning->dir);
	assert_non_null(slice);
	return proc_scan(callback, context);
}

void proc_scanning_end(struct proc_scanning *scanning)
{
	(void)scanning;
}

bool target_needs_details(const struct target_filter *filter)
{
	assert_non_null(filter);
	return needs_details;
}

bool target_matches(const struct target_filter *filter, const struct process_table *table,
		    const struct process *process)
{
	(void)filter, (void)table, (void)process;
	return must_match;
}

void who_read_details(struct process_table *table, struct process *process)
{
	(void)table;
	call("details%u", process->id.tgid);
}

int python_process_self_test(const struct python_info *info, pid_t pid, uint64_t bias,
			     const char **ret_reason)
{
	(void)info;
	assert_int_equal(bias, 0x4000);
	call("test%d", pid);
	if (self_test == -EBADMSG)
		*ret_reason = self_test_reason;
	return self_test;
}

int python_process_threads(const struct python_info *info, pid_t pid, uint64_t bias,
			   struct python_thread **ret_threads, size_t *ret_count)
{
	const int err = call("threads%d", pid);

	(void)info;
	assert_int_equal(bias, 0x4000);
	if (err)
		return err;
	*ret_threads = malloc(sizeof(threads));
	assert_non_null(*ret_threads);
	memcpy(*ret_threads, threads, sizeof(threads));
	*ret_count = thread_count;
	return 0;
}

int python_process_inner_tid(pid_t pid, bool is_musl, uint64_t thread_id, uint64_t native_id,
			     uint32_t *ret_tid)
{
	(void)pid, (void)native_id;
	assert_true(is_musl);
	*ret_tid = (uint32_t)thread_id;
	return thread_id ? 0 : -EFAULT;
}

/* ---- */

static struct options options;
static struct process_watch_sources sources;
static struct process_watch *watch;
static const char filter; /* stands for one */

static void on_files(void *context, const struct process *process, bool is_new)
{
	assert_ptr_equal(context, &matches);
	assert_non_null(process);
	matches += is_new;
}

/* For on_victim, whose context is that of on_files. */
static void on_victim(void *context, struct process *process, uint64_t time_ns)
{
	assert_ptr_equal(context, &matches);
	(void)call("victim%u@%llu", process->id.tgid, (unsigned long long)time_ns);
}

static void open_watch(void)
{
	assert_int_equal(process_watch_new(&sources, &watch), 0);
	assert_ptr_equal(process_watch_ring(watch), &ring);
	calls[0] = '\0';
}

static int setup(void **state)
{
	(void)state;
	calls[0] = told[0] = '\0';
	fails = NULL;
	error = -ENOMEM;
	known_count = coming_count = listed_count = deliveries = thread_count = online_count = 0;
	must_match = needs_details = is_forked_meanwhile = files_are_due = false;
	refused_tgid = 0;
	unread_tgid = 0;
	matches = 0;
	memset(generations, 0, sizeof(generations));
	space_count = 0;
	time_now_ns = NOW_NS;
	moving_ns = 0;
	self_test = 0;
	self_test_reason = NULL;
	sideband_delivers = NULL;
	sideband_stats = (struct sideband_stats){};
	options = (struct options){};
	sources = (struct process_watch_sources){.options = &options,
						 .on_files = on_files,
						 .on_victim = on_victim,
						 .context = &matches,
						 .online_cpus = 2};
	open_watch();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	process_watch_free(watch);
	watch = NULL;
	return 0;
}

/* Returns what was called since the last time. */
static const char *seen(void)
{
	static char taken[sizeof(calls)];

	memcpy(taken, calls, sizeof(calls));
	calls[0] = '\0';
	return taken;
}

static void use_filter(void)
{
	process_watch_free(watch);
	sources.filter = (const struct target_filter *)&filter;
	open_watch();
}

static struct file interpreter;

static struct known *add_python(uint32_t tgid)
{
	struct known *one = add_known(tgid, 1);

	one->has_python = true;
	one->python =
		(struct process_python){.file = &interpreter, .bias = 0x4000, .is_musl = true};
	return one;
}

static void come(enum pp_event_type type, uint32_t tgid, uint32_t parent, uint64_t time_ns)
{
	coming[coming_count++] = (struct pp_event){.type = type,
						   .tid = tgid + 1,
						   .time_ns = time_ns,
						   .id = {.tgid = tgid, .generation = 1},
						   .parent = {.tgid = parent, .generation = 1},
						   .comm = "late"};
}

/* What a tick queues is published in the same turn of the loop. */
static void tick(void)
{
	process_watch_tick(watch);
	assert_int_equal(process_watch_follow(watch), 0);
}

/* ---- the whole ---- */

static void new__fails_without_the_ring(void **state)
{
	struct process_watch *other = NULL;

	(void)state;
	fails = "ring";
	assert_int_equal(process_watch_new(&sources, &other), -ENOMEM);
	assert_null(other);
}

static void free__releases_all_contexts(void **state)
{
	(void)state;
	add_known(70, 1);
	add_known(71, 1);
	process_watch_free(watch);
	assert_string_equal(seen(), "release70 release71 ring_free");
	process_watch_free(NULL);
	assert_string_equal(seen(), "");
	open_watch();
}

/* ---- reading /proc ---- */

static void start__makes_known_what_runs(void **state)
{
	(void)state;
	listed[0] = (struct proc_stat){.pid = 10, .is_kernel_thread = true};
	listed[1] = (struct proc_stat){.pid = 11, .is_zombie = true};
	listed[2] = (struct proc_stat){.pid = 12, .ppid = 1, .comm = "app", .start_ns = 77};
	listed[3] = (struct proc_stat){.pid = 13, .ppid = 12};
	listed_count = 4;
	generations[13] = 5; /* forked since the kernel side is attached */
	assert_int_equal(process_watch_start(watch), 0);
	assert_string_equal(seen(), "new12.97656250 add12:1 add13:12 scan maps12 maps13 "
				    "publish12 publish13");
	assert_int_equal(known[0].process.id.generation, 97656250); /* NOW_NS in 1,024 ns */
	assert_string_equal(known[0].process.comm, "app");
	assert_int_equal(known[0].process.start_ns, 77);
	assert_int_equal(known[1].process.id.generation, 5);
	/* Once more: what is known is not read again, unless it has gaps. */
	listed_count = 3;
	generations[12] = 97656250;
	assert_int_equal(process_watch_start(watch), 0);
	assert_string_equal(seen(), "scan");
	known[0].wants_read = true;
	assert_int_equal(process_watch_start(watch), 0);
	assert_string_equal(seen(), "scan maps12 publish12");
}

static void start__takes_the_generation_of_a_fork_meanwhile(void **state)
{
	(void)state;
	listed[0] = (struct proc_stat){.pid = 12, .ppid = 1};
	listed_count = 1;
	is_forked_meanwhile = true;
	assert_int_equal(process_watch_start(watch), 0);
	assert_int_equal(known_count, 1);
	assert_int_equal(known[0].process.id.generation, 9);
	/* It has gone, or there is no room for it. */
	is_forked_meanwhile = false;
	listed[0].pid = 14;
	fails = "new14.97656250";
	error = -E2BIG;
	assert_int_equal(process_watch_start(watch), 0);
	assert_int_equal(known_count, 1);
}

/* One that the kernel side follows already took its part of the share when it began. */
static void start__leaves_a_process_beyond_its_users_share_out(void **state)
{
	(void)state;
	listed[0] = (struct proc_stat){.pid = 12, .ppid = 1};
	listed[1] = (struct proc_stat){.pid = 13, .ppid = 1};
	listed_count = 2;
	refused_tgid = 12;
	assert_int_equal(process_watch_start(watch), 0);
	assert_string_equal(seen(), "new13.97656250 add13:1 scan maps13 publish13");
	generations[12] = 5;
	generations[13] = 97656250;
	assert_int_equal(process_watch_start(watch), 0);
	assert_string_equal(seen(), "add12:1 scan maps12 publish12");
}

static void start__needs_proc(void **state)
{
	(void)state;
	fails = "scan";
	error = -EACCES;
	assert_int_equal(process_watch_start(watch), -EACCES);
	assert_string_equal(told, "cannot read /proc\n");
}

static void process__that_ends_while_it_is_read_is_marked(void **state)
{
	(void)state;
	listed[0] = (struct proc_stat){.pid = 12};
	listed_count = 1;
	generations[12] = 1;
	fails = "maps12";
	error = -ESRCH;
	assert_int_equal(process_watch_start(watch), 0);
	assert_string_equal(seen(), "add12:0 scan maps12 exit12");
	assert_int_equal(known[0].process.exit_ns, NOW_NS);
	known_count = 0;
	error = -EIO; /* it lives, but cannot be read */
	assert_int_equal(process_watch_start(watch), 0);
	assert_string_equal(seen(), "add12:0 scan maps12");
	known_count = 0;
	fails = "add12:0";
	error = -ENOSPC;
	assert_int_equal(process_watch_start(watch), 0);
	assert_string_equal(seen(), "add12:0 scan");
}

/* The child that reads may be a new one, for a process that was late before it. */
static void process__that_cannot_be_read_in_time_is_read_with_the_next_ticks(void **state)
{
	(void)state;
	listed[0] = (struct proc_stat){.pid = 12};
	listed_count = 1;
	generations[12] = 1;
	fails = "maps12";
	error = -ETIMEDOUT;
	assert_int_equal(process_watch_start(watch), 0);
	assert_string_equal(seen(), "add12:0 scan maps12");
	tick();
	assert_string_equal(seen(), "maps12");
	fails = NULL;
	tick();
	assert_string_equal(seen(), "maps12 publish12");
	tick();
	assert_string_equal(seen(), "");
}

static void process__that_cannot_be_read_in_time_is_dropped_when_it_ends(void **state)
{
	(void)state;
	come(PP_EVENT_UNKNOWN, 71, 0, 20);
	fails = "maps71";
	error = -ETIMEDOUT;
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "add71:0 maps71");
	known[0].process.exit_ns = NOW_NS;
	tick();
	assert_string_equal(seen(), "");
	known[0].process.exit_ns = 0;
	tick();
	assert_string_equal(seen(), "");
}

static void process__with_a_file_that_was_not_examined_is_published_again(void **state)
{
	(void)state;
	come(PP_EVENT_UNKNOWN, 71, 0, 20);
	come(PP_EVENT_UNKNOWN, 72, 0, 21);
	assert_int_equal(process_watch_follow(watch), 0);
	(void)seen();
	unread_tgid = 71;
	tick();
	assert_string_equal(seen(), "");
	files_are_due = true;
	tick();
	assert_string_equal(seen(), "publish71");
	tick();
	assert_string_equal(seen(), "");
	/* Nobody waits for what has ended. */
	known[0].process.exit_ns = NOW_NS;
	files_are_due = true;
	tick();
	assert_string_equal(seen(), "");
}

static void find__makes_a_process_known_that_a_sample_shows(void **state)
{
	const struct pp_process_id id = {.tgid = 12, .generation = 3}, of_any = {.tgid = 12};

	(void)state;
	assert_null(process_watch_find(watch, of_any));
	assert_string_equal(seen(), "");
	assert_ptr_equal(process_watch_find(watch, id), &known[0].process);
	assert_string_equal(seen(), "add12:0 maps12 publish12");
	assert_ptr_equal(process_watch_find(watch, id), &known[0].process);
	assert_ptr_equal(process_watch_find(watch, of_any), &known[0].process);
	assert_string_equal(seen(), "");
}

/* ---- publishing ---- */

static void publish__tells_the_filters_result(void **state)
{
	struct known *one = add_known(70, 1);

	(void)state;
	options.raw = true;
	assert_int_equal(process_watch_publish(watch, &one->process, NULL), 0);
	assert_int_equal(one->flags, PP_CONTEXT_NO_FOLD); /* there is no filter */
	options.raw = false;
	use_filter();
	assert_int_equal(process_watch_publish(watch, &one->process, NULL), 0);
	assert_int_equal(one->flags, 0);
	must_match = needs_details = true;
	(void)seen();
	assert_int_equal(process_watch_publish(watch, &one->process, NULL), 0);
	assert_int_equal(one->flags, PP_CONTEXT_MATCHES);
	assert_string_equal(seen(), "details70 publish70");
	one->process.exit_ns = 1;
	assert_int_equal(process_watch_publish(watch, &one->process, NULL), 0);
	assert_string_equal(seen(), "");
	one->process.exit_ns = 0;
	fails = "publish70";
	error = -ENOSPC;
	assert_int_equal(process_watch_publish(watch, &one->process, NULL), -ENOSPC);
}

static void match__that_is_new_asks_for_a_scan(void **state)
{
	struct known *one = add_known(70, 1);

	(void)state;
	use_filter();
	must_match = true;
	(void)process_watch_publish(watch, &one->process, NULL);
	assert_int_equal(matches, 0); /* by ancestry: known since the fork */
	one->flags = 0;
	needs_details = true;
	(void)process_watch_publish(watch, &one->process, NULL);
	assert_int_equal(matches, 1);
	(void)process_watch_publish(watch, &one->process, NULL);
	assert_int_equal(matches, 1); /* it matched before */
	one->flags = 0;
	must_match = false;
	(void)process_watch_publish(watch, &one->process, NULL);
	assert_int_equal(matches, 1);
	needs_details = false;
	must_match = true;
	options.comm = "app";
	(void)process_watch_publish(watch, &one->process, NULL);
	assert_int_equal(matches, 2);
}

static void self_test__is_made_once(void **state)
{
	struct known *one = add_python(70);

	(void)state;
	(void)process_watch_publish(watch, &one->process, NULL);
	assert_string_equal(seen(), "publish70 test70");
	assert_true(one->python.is_checked);
	(void)process_watch_publish(watch, &one->process, NULL);
	assert_string_equal(seen(), "publish70");
	tick();
	assert_string_equal(seen(), "");
	assert_string_equal(told, "");
}

static void self_test__waits_for_the_interpreter(void **state)
{
	struct known *one = add_python(70);

	(void)state;
	self_test = -EAGAIN;
	(void)process_watch_publish(watch, &one->process, NULL);
	for (unsigned int i = 0; i < 20; i++) {
		assert_string_equal(seen(), "publish70 test70");
		tick();
	}
	assert_false(one->python.is_checked);
	self_test = 0;
	tick();
	(void)seen();
	tick();
	assert_string_equal(seen(), "");
	/* Nobody waits for one that has ended. */
	one->python.is_checked = false;
	self_test = -EAGAIN;
	(void)process_watch_publish(watch, &one->process, NULL);
	(void)seen();
	one->process.exit_ns = 1;
	tick();
	assert_string_equal(seen(), "");
}

static void self_test__refuses_what_fails_again_and_again(void **state)
{
	struct known *one = add_python(70);

	(void)state;
	self_test = -EBADMSG;
	self_test_reason = "no code objects";
	memcpy(one->process.comm, "app", 4);
	(void)process_watch_publish(watch, &one->process, NULL);
	for (unsigned int i = 0; i < 4; i++)
		tick();
	assert_false(one->python.is_refused);
	assert_string_equal(told, "");
	(void)seen();
	tick(); /* the sixth test */
	assert_true(one->python.is_refused);
	assert_true(one->python.is_checked);
	assert_string_equal(told, "process 70 (app): Python frames are not available: no code "
				  "objects\n");
	assert_string_equal(seen(), "publish70 test70 publish70");
	tick();
	assert_string_equal(seen(), "");
}

static void python__that_is_not_known_is_told_once(void **state)
{
	struct known *one = add_python(70);

	(void)state;
	one->python.file = NULL;
	one->python.reason = "version 1.5";
	(void)process_watch_publish(watch, &one->process, NULL);
	(void)process_watch_publish(watch, &one->process, NULL);
	assert_string_equal(seen(), "publish70 publish70");
	assert_string_equal(told, "process 70 (): Python frames are not available: version 1.5\n");
}

/* ---- events ---- */

static void events__are_applied_by_time_with_the_sideband(void **state)
{
	(void)state;
	add_known(70, 1)->flags = PP_CONTEXT_MATCHES;
	come(PP_EVENT_EXIT, 71, 0, 30);
	come(PP_EVENT_FORK, 71, 70, 20);
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "apply1:71 fork70-71 retire71.1 apply3:71");
	assert_int_equal(deliveries, 3);
	assert_int_equal(delivered_ns[0], 20);
	assert_int_equal(delivered_ns[1], 30);
	assert_int_equal(delivered_ns[2], UINT64_MAX);
	assert_int_equal(process_watch_follow(watch), 0); /* each once */
	assert_string_equal(seen(), "");
}

/* The agent need not ask /proc who answers for it, and counts it. */
static void fork__user_is_known_by_the_event(void **state)
{
	const struct process *process;

	(void)state;
	add_known(70, 1)->flags = PP_CONTEXT_MATCHES;
	come(PP_EVENT_FORK, 71, 70, 20);
	coming[coming_count - 1].user = 1000;
	assert_int_equal(process_watch_follow(watch), 0);
	process = process_table_find(NULL, (struct pp_process_id){71, 1});
	assert_non_null(process);
	assert_true(process->is_user_known);
	assert_int_equal(process->user, 1000);
	assert_int_equal(process->share, 1);
}

static void fork__child_that_may_match_by_itself_is_published(void **state)
{
	(void)state;
	add_known(70, 1);
	come(PP_EVENT_FORK, 71, 70, 20);
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "apply1:71 fork70-71");
	use_filter();
	come(PP_EVENT_FORK, 72, 70, 20);
	come(PP_EVENT_FORK, 75, 70, 30);
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "apply1:72 fork70-72 apply1:75 fork70-75 publish72 publish75");
	known[0].flags = PP_CONTEXT_MATCHES;
	come(PP_EVENT_FORK, 73, 70, 20);
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "apply1:73 fork70-73");
	/* A child of one that is not known has nothing yet. */
	come(PP_EVENT_FORK, 74, 60, 20);
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "apply1:74 publish74");
}

static void exec__retires_what_ran_before(void **state)
{
	(void)state;
	add_known(70, 1);
	add_known(70, 2)->wants_read = true;
	known[1].process.tables = NULL;
	come(PP_EVENT_EXEC, 70, 70, 20);
	coming[0].id.generation = 2;
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "apply2:70 retire70.1 maps70 publish70");
}

static void unknown__process_is_read(void **state)
{
	(void)state;
	come(PP_EVENT_UNKNOWN, 71, 0, 20);
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "add71:0 maps71 publish71");
	assert_string_equal(known[0].process.comm, "late");
	assert_int_equal(known[0].process.start_ns, 20);
	assert_int_equal(known[0].process.share, 1);
	/* It has a name already. */
	come(PP_EVENT_UNKNOWN, 71, 0, 30);
	memcpy(known[0].process.comm, "o", 2);
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(known[0].process.comm, "o");
}

static void table__event_only_wakes_the_agent(void **state)
{
	(void)state;
	come(PP_EVENT_TABLE, 0, 0, 20);
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "");
	assert_int_equal(deliveries, 1);
}

static void victim__is_told_before_its_end(void **state)
{
	(void)state;
	add_known(70, 1);
	come(PP_EVENT_EXIT, 70, 0, 30);
	come(PP_EVENT_OOM, 70, 0, 20);
	come(PP_EVENT_OOM, 71, 0, 25); /* nobody knows it */
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "victim70@20 retire70.1 apply3:70");
}

static void victim__that_is_not_profiled_is_not_told(void **state)
{
	(void)state;
	use_filter();
	add_known(70, 1);
	add_known(71, 1)->flags = PP_CONTEXT_MATCHES;
	come(PP_EVENT_OOM, 70, 0, 20);
	come(PP_EVENT_OOM, 71, 0, 20);
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "victim71@20");
}

static void thread_state__is_given_to_the_thread_that_asked(void **state)
{
	(void)state;
	add_python(70);
	threads[0] = (struct python_thread){.thread_id = 70, .thread_state = 0xa0};
	threads[1] = (struct python_thread){.thread_id = 71, .thread_state = 0xb0};
	threads[2] = (struct python_thread){.thread_id = 0, .thread_state = 0xc0};
	thread_count = 3;
	come(PP_EVENT_THREAD_STATE, 70, 0, 20); /* the thread 71 */
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "threads70 state70/71=b0");
	/* The only one, whatever its number is in a namespace. */
	thread_count = 1;
	come(PP_EVENT_THREAD_STATE, 70, 0, 20);
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "threads70 state70/71=a0");
	come(PP_EVENT_THREAD_STATE, 70, 0, 20);
	fails = "threads70";
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "threads70");
	known[0].python.file = NULL;
	come(PP_EVENT_THREAD_STATE, 70, 0, 20);
	come(PP_EVENT_THREAD_STATE, 60, 0, 20); /* not known */
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "");
}

static void deliver_mappings(const struct sideband_handlers *handlers)
{
	const struct mapping mapping = {};

	handlers->mapping(handlers->context, 70, &mapping);
	handlers->mapping(handlers->context, 70, &mapping);
	handlers->mapping(handlers->context, 99, &mapping); /* not known */
}

static void new_space__is_told_in_the_order_of_time(void **state)
{
	(void)state;
	add_known(70, 1);
	come(PP_EVENT_EXIT, 70, 0, 30);
	come(PP_EVENT_NEW_SPACE, 70, 0, 25);
	come(PP_EVENT_NEW_SPACE, 60, 0, 26); /* not known: the table says so */
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "context70@25 context60@26 retire70.1 apply3:70");
}

static void moved__has_its_details_read_again(void **state)
{
	struct process *process = &add_known(70, 1)->process;

	(void)state;
	process->details_read = true;
	come(PP_EVENT_MOVED, 60, 0, 25); /* not known */
	come(PP_EVENT_MOVED, 70, 0, 26);
	assert_int_equal(process_watch_follow(watch), 0);
	assert_false(process->details_read);
	assert_string_equal(seen(), "publish70");
}

static void mapping__is_published_once_for_all(void **state)
{
	(void)state;
	add_known(70, 1)->process.mappings_changed = true;
	sideband_delivers = deliver_mappings;
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "map70 map70 map99 publish70");
	fails = "map70"; /* refused: nothing changed */
	known[0].process.mappings_changed = true;
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "map70 map70 map99");
}

static void follow__returns_the_error_of_a_ring(void **state)
{
	(void)state;
	error = -EIO;
	fails = "consume";
	assert_int_equal(process_watch_follow(watch), -EIO);
	fails = "collect";
	assert_int_equal(process_watch_follow(watch), -EIO);
	assert_int_equal(deliveries, 0);
}

/* ---- what was lost ---- */

static void deliver_loss(const struct sideband_handlers *handlers)
{
	handlers->lost(handlers->context, 1, 5);
	sideband_delivers = NULL;
}

static void lose_records(void)
{
	sideband_delivers = deliver_loss;
	assert_int_equal(process_watch_follow(watch), 0);
}

static void map_code(uint32_t tgid)
{
	size_t i = 0;

	while (i < space_count && spaces[i].tgid != tgid)
		i++;
	if (i == space_count)
		spaces[space_count++] = (struct pp_space_record){.tgid = tgid};
	spaces[i].code_pages++;
}

static void loss__of_mappings_concerns_whose_mappings_have_changed(void **state)
{
	(void)state;
	add_known(70, 1);
	add_known(71, 1);
	add_known(72, 1)->process.exit_ns = 5;
	for (uint32_t tgid = 70; tgid < 74; tgid++)
		map_code(tgid);
	assert_int_equal(process_watch_start(watch), 0);
	assert_string_equal(seen(), "scan");
	lose_records();
	assert_string_equal(seen(), "");
	map_code(70);
	map_code(72);
	lose_records();
	assert_string_equal(seen(), "maps70 publish70");
	tick(); /* once */
	assert_string_equal(seen(), "");
	/* Others than those with code: soon enough. */
	spaces[1].writes++;
	lose_records();
	assert_string_equal(seen(), "");
	tick();
	assert_string_equal(seen(), "maps71 publish71");
	/* Nobody can tell. */
	fails = "spaces";
	error = -EMFILE;
	lose_records();
	fails = NULL;
	tick();
	assert_string_equal(seen(), "maps70 maps71 publish70 publish71");
}

/* One who loses records all the time waits for as long as his readings take; others do not. */
static void loss__is_read_at_the_cost_of_its_user(void **state)
{
	const uint64_t began_ns = time_now_ns;
	uint64_t took_ns;

	(void)state;
	add_known(70, 1)->process.user = 1000;
	add_known(71, 1)->process.user = 1000;
	add_known(72, 1)->process.user = 1001;
	for (uint32_t tgid = 70; tgid < 73; tgid++)
		map_code(tgid);
	moving_ns = 30 * NS_PER_MS;
	lose_records();
	assert_string_equal(seen(), "maps70 maps72 publish70");
	for (unsigned int ticks = 0; ticks < 100; ticks++) {
		time_now_ns += 250 * NS_PER_MS;
		map_code(70);
		map_code(71);
		lose_records();
		tick();
	}
	/* 25 ms in each tick; a reading is too long for one user's part of it. */
	took_ns = time_now_ns - began_ns - 100 * 250 * NS_PER_MS;
	assert_in_range(took_ns, 50 * 25 * NS_PER_MS, 105 * 25 * NS_PER_MS);
	assert_non_null(strstr(calls, "maps71"));
}

/* A fork's too, whose parent is not read yet. */
static void loss__of_children_is_their_users(void **state)
{
	(void)state;
	add_known(70, 1)->process.user = 1000;
	map_code(70);
	moving_ns = 60 * NS_PER_MS;
	lose_records();
	assert_string_equal(seen(), "maps70 publish70");
	coming[0] = (struct pp_event){
		.type = PP_EVENT_EXEC, .id = {.tgid = 71, .generation = 1}, .user = 1000};
	coming_count = 1;
	add_known(71, 1)->wants_read = true;
	assert_int_equal(process_watch_follow(watch), 0);
	assert_null(strstr(seen(), "maps71"));
	for (unsigned int ticks = 0; ticks < 3; ticks++)
		tick();
	assert_non_null(strstr(seen(), "maps71"));
}

static void loss__of_events_makes_the_next_tick_read_proc(void **state)
{
	(void)state;
	add_known(70, 1);
	add_known(71, 1);
	map_code(70);
	assert_int_equal(process_watch_start(watch), 0);
	seen();
	process_watch_want_rescan(watch);
	fails = "maps71";
	error = -ESRCH;
	tick();
	assert_string_equal(seen(), "maps71 retire71.1 exit71 scan");
	assert_int_equal(known[1].process.exit_ns, NOW_NS);
	tick();
	assert_string_equal(seen(), "");
}

static void mappings__that_do_not_come_in_time_are_read_with_the_next_tick(void **state)
{
	(void)state;
	fails = "maps71";
	error = -ETIMEDOUT;
	come(PP_EVENT_UNKNOWN, 71, 0, 20);
	assert_int_equal(process_watch_follow(watch), 0);
	assert_string_equal(seen(), "add71:0 maps71");
	tick();
	tick();
	assert_string_equal(seen(), "maps71 maps71");
	fails = NULL;
	tick();
	assert_string_equal(seen(), "maps71 publish71");
	tick();
	assert_string_equal(seen(), "");
	/* Nor of one that has ended meanwhile. */
	fails = "maps71";
	map_code(71);
	lose_records();
	assert_string_equal(seen(), "maps71");
	known[0].process.exit_ns = 5;
	tick();
	assert_string_equal(seen(), "");
}

/* ---- CPUs ---- */

static void cpus__that_come_and_go_are_followed(void **state)
{
	(void)state;
	online[0] = 0;
	online[1] = 2;
	online_count = sideband_stats.cpus = 2;
	process_watch_follow_cpus(watch);
	assert_string_equal(seen(), "cpus2");
	online[1] = 3;
	online[2] = 5;
	online_count = 3;
	fails = "cpu+0"; /* is followed already */
	error = -EEXIST;
	process_watch_follow_cpus(watch);
	assert_string_equal(seen(), "cpus3 cpu+0 cpu+3 cpu+5");
	add_known(70, 1);
	map_code(70);
	assert_int_equal(process_watch_follow(watch), 0); /* those made there were not seen */
	assert_string_equal(seen(), "maps70 publish70");
	sideband_stats.cpus = 5;
	fails = NULL;
	process_watch_follow_cpus(watch);
	assert_string_equal(seen(), "cpus3 cpu+0 cpu+3 cpu+5 cpu-1 cpu-2 cpu-4 cpu-6 cpu-7");
	fails = "online";
	process_watch_follow_cpus(watch);
	assert_string_equal(seen(), "");
}

static void cpus__without_memory_are_told_once(void **state)
{
	(void)state;
	online_count = sideband_stats.cpus = 8;
	fails = "cpus8";
	error = -ENOMEM;
	process_watch_follow_cpus(watch);
	assert_string_equal(told, "");
	error = -ENOSPC;
	process_watch_follow_cpus(watch);
	assert_non_null(strstr(told, "8 CPUs are online, and memory was reserved for the 2"));
	told[0] = '\0';
	process_watch_follow_cpus(watch);
	assert_string_equal(told, "");
}

static void count__has_what_the_tables_refused_and_what_did_not_decode(void **state)
{
	uint64_t loss[PP_LOSS_COUNT] = {[PP_LOSS_RECORDS_BAD] = 1};

	(void)state;
	table_stats = (struct process_table_stats){
		.processes_refused = 20, .mappings_refused = 30, .bad_lines = 4};
	sideband_stats.bad = 2;
	process_watch_count(watch, loss);
	assert_int_equal(loss[PP_LOSS_PROCESSES_REFUSED], 20);
	assert_int_equal(loss[PP_LOSS_MAPPINGS_REFUSED], 30);
	assert_int_equal(loss[PP_LOSS_RECORDS_BAD], 1 + 3 + 2 + 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(new__fails_without_the_ring),
		TEST(free__releases_all_contexts),
		TEST(start__makes_known_what_runs),
		TEST(start__takes_the_generation_of_a_fork_meanwhile),
		TEST(start__leaves_a_process_beyond_its_users_share_out),
		TEST(start__needs_proc),
		TEST(process__that_ends_while_it_is_read_is_marked),
		TEST(process__that_cannot_be_read_in_time_is_read_with_the_next_ticks),
		TEST(process__that_cannot_be_read_in_time_is_dropped_when_it_ends),
		TEST(process__with_a_file_that_was_not_examined_is_published_again),
		TEST(find__makes_a_process_known_that_a_sample_shows),
		TEST(publish__tells_the_filters_result),
		TEST(match__that_is_new_asks_for_a_scan),
		TEST(self_test__is_made_once),
		TEST(self_test__waits_for_the_interpreter),
		TEST(self_test__refuses_what_fails_again_and_again),
		TEST(python__that_is_not_known_is_told_once),
		TEST(events__are_applied_by_time_with_the_sideband),
		TEST(fork__user_is_known_by_the_event),
		TEST(fork__child_that_may_match_by_itself_is_published),
		TEST(exec__retires_what_ran_before),
		TEST(unknown__process_is_read),
		TEST(table__event_only_wakes_the_agent),
		TEST(victim__is_told_before_its_end),
		TEST(victim__that_is_not_profiled_is_not_told),
		TEST(thread_state__is_given_to_the_thread_that_asked),
		TEST(new_space__is_told_in_the_order_of_time),
		TEST(moved__has_its_details_read_again),
		TEST(mapping__is_published_once_for_all),
		TEST(follow__returns_the_error_of_a_ring),
		TEST(loss__of_mappings_concerns_whose_mappings_have_changed),
		TEST(loss__is_read_at_the_cost_of_its_user),
		TEST(loss__of_children_is_their_users),
		TEST(loss__of_events_makes_the_next_tick_read_proc),
		TEST(mappings__that_do_not_come_in_time_are_read_with_the_next_tick),
		TEST(cpus__that_come_and_go_are_followed),
		TEST(cpus__without_memory_are_told_once),
		TEST(count__has_what_the_tables_refused_and_what_did_not_decode),
	};

	return cmocka_run_group_tests_name("agent/process_watch", tests, NULL, NULL);
}
