/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/process_table.h"

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static struct pp_process_id id(uint32_t tgid, uint32_t generation)
{
	return (struct pp_process_id){.tgid = tgid, .generation = generation};
}

static int map(struct process_table *table, uint32_t tgid, uint64_t start, const char *path,
	       uint64_t time_ns)
{
	const struct mapping mapping = {.start = start,
					.end = start + 0x1000,
					.time_ns = time_ns,
					.key = {.major = 8, .inode = 1 + (start >> 12)},
					.path = path};

	return process_table_map(table, tgid, &mapping);
}

/* "/a /b" of a process. */
static const char *paths(const struct process_table *table, struct pp_process_id which)
{
	static char text[256];
	const struct process *process = process_table_find(table, which);
	size_t used = 0;

	text[0] = '\0';
	if (!process)
		return "none";
	for (size_t i = 0; i < process->mapping_count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "",
					 process->mapping[i].path);
	return text;
}

static void process_table_add__twice_is_eexist_and_a_new_generation_ends_the_old(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct process *process;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	assert_int_equal(process_table_add(table, id(10, 1), 2, 100, &process), 0);
	assert_int_equal(process->ppid, 2);
	assert_string_equal(process->cgroup, "");
	assert_int_equal(process_table_add(table, id(10, 1), 3, 100, NULL), -EEXIST);
	assert_int_equal(process_table_add(table, id(10, 2), 2, 200, NULL), 0);
	assert_int_equal(process->exit_ns, 200);
	assert_int_equal(process_table_count(table), 2);
	assert_int_equal(process_table_live_count(table), 1);
	assert_int_equal(process_table_find_tgid(table, 10)->id.generation, 2);
	assert_null(process_table_find_tgid(table, 11));
	assert_null(process_table_find(table, id(10, 3)));
}

/* A stack, or a look at /proc, tells of a program before the events of its fork and its exec do. */
static void process_table_fork__of_a_program_that_has_executed_ends_at_once(void **state)
{
	static const uint32_t generations[][2] = {{3, 5}, {UINT32_MAX - 3, 5}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		OWNED(process_table) struct process_table *table = NULL;
		const struct pp_process_id forked = id(10, generations[i][0]);
		const struct pp_process_id executed = id(10, generations[i][1]);

		assert_int_equal(process_table_new(&table), 0);
		assert_int_equal(process_table_add(table, executed, 0, 290, NULL), 0);
		assert_int_equal(process_table_fork(table, id(2, 1), forked, 300), 0);
		assert_int_equal(process_table_find(table, executed)->exit_ns, 0);
		assert_int_equal(process_table_find(table, forked)->exit_ns, 300);
		assert_int_equal(process_table_exec(table, forked, executed, 310), -EEXIST);
		assert_int_equal(process_table_find(table, executed)->exit_ns, 0);
		assert_ptr_equal(process_table_find_tgid(table, 10),
				 process_table_find(table, executed));
		assert_int_equal(map(table, 10, 0x1000, "/a", 320), 0);
		assert_string_equal(paths(table, executed), "/a");
		assert_int_equal(process_table_live_count(table), 1);
		assert_int_equal(process_table_exit(table, executed, 400), 0);
		assert_int_equal(process_table_live_count(table), 0);
	}
}

/* Generations wrap around after 73 minutes: one that seems to be later may be older by 40. */
static void process_table_exec__long_after_the_start_ends_the_old_program(void **state)
{
	const uint64_t then_ns = NS_PER_SEC, now_ns = then_ns + 2400 * NS_PER_SEC;
	const struct pp_process_id old = id(10, (uint32_t)(then_ns >> 10));
	const struct pp_process_id new = id(10, (uint32_t)(now_ns >> 10));
	OWNED(process_table) struct process_table *table = NULL;

	(void)state;
	assert_true((int32_t)(old.generation - new.generation) > 0);
	assert_int_equal(process_table_new(&table), 0);
	assert_int_equal(process_table_add(table, old, 2, then_ns, NULL), 0);
	assert_int_equal(process_table_exec(table, old, new, now_ns), 0);
	assert_int_equal(process_table_find(table, old)->exit_ns, now_ns);
	assert_int_equal(process_table_find(table, new)->exit_ns, 0);
	assert_int_equal(process_table_find_tgid(table, 10)->id.generation, new.generation);
}

static void process_table_map__unknown_process_is_esrch_and_remembered(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	assert_int_equal(map(table, 20, 0x1000, "/a", 105), -ESRCH);
	assert_int_equal(process_table_fork(table, id(2, 1), id(2, 2), 50), 0);
	assert_true(process_table_wants_read(process_table_find(table, id(2, 2))));
	assert_int_equal(process_table_exec(table, id(2, 2), id(2, 3), 60), 0);
	process_table_new_context(table, 2, 70);
	map(table, 2, 0x1000, "/b", 80);
	process_table_exec(table, id(2, 3), id(2, 4), 90);
	assert_false(process_table_wants_read(process_table_find(table, id(2, 4))));

	assert_int_equal(process_table_fork(table, id(2, 4), id(20, 1), 100), 0);
	assert_int_equal(process_table_fork(table, id(2, 4), id(21, 1), 100), 0);
	assert_true(process_table_wants_read(process_table_find(table, id(20, 1))));
	assert_false(process_table_wants_read(process_table_find(table, id(21, 1))));
	/* A later process of the same number is not concerned, nor is a dead one. */
	process_table_exit(table, id(20, 1), 110);
	assert_int_equal(process_table_fork(table, id(2, 4), id(20, 2), 120), 0);
	assert_false(process_table_wants_read(process_table_find(table, id(20, 1))));
	assert_false(process_table_wants_read(process_table_find(table, id(20, 2))));
}

static void process_table_lost__makes_it_to_be_read(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct process *process;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	process_table_add(table, id((uint32_t)getpid(), 1), 1, 100, &process);
	assert_int_equal(process_table_read_maps(table, process, NULL), 0);
	assert_false(process_table_wants_read(process));
	process_table_lost(process);
	assert_true(process_table_wants_read(process));
	assert_int_equal(process_table_read_maps(table, process, NULL), 0);
	assert_false(process_table_wants_read(process));
}

static void process_table_fork__child_has_what_the_parent_had(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct process *parent, *child;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	process_table_add(table, id(10, 1), 1, 100, &parent);
	parent->uid = 33;
	snprintf(parent->comm, sizeof(parent->comm), "gunicorn");
	assert_int_equal(process_table_intern(table, "/web", &parent->cgroup), 0);
	map(table, 10, 0x1000, "/a", 110);
	map(table, 10, 0x3000, "/later", 300);
	assert_int_equal(process_table_fork(table, id(10, 1), id(11, 2), 200), 0);
	child = process_table_find(table, id(11, 2));
	assert_int_equal(child->ppid, 10);
	assert_int_equal(child->uid, 33);
	assert_int_equal(child->inner_pid, 11);
	assert_int_equal(child->start_ns, 200);
	assert_string_equal(child->comm, "gunicorn");
	assert_string_equal(child->cgroup, "/web");
	assert_false(child->details_read);
	assert_string_equal(paths(table, id(11, 2)), "/a");
	assert_true(child->mappings_changed);
	assert_int_equal(map(table, 11, 0x5000, "/own", 250), 0);
	assert_string_equal(paths(table, id(11, 2)), "/a /own");
	assert_string_equal(paths(table, id(10, 1)), "/a /later");
}

/* A context that is replaced is the first sign of an exec, which makes another process of it. */
static void process_table_forked_from__until_it_executes(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct pp_process_id parent;
	struct process *process;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	assert_int_equal(process_table_add(table, id(10, 1), 1, 100, &process), 0);
	assert_false(process_table_forked_from(process, &parent));
	assert_int_equal(process_table_fork(table, id(10, 1), id(11, 2), 200), 0);
	assert_int_equal(process_table_new_context(table, 11, 250), 0);
	assert_int_equal(process_table_exec(table, id(11, 2), id(11, 3), 300), 0);
	assert_true(process_table_forked_from(process_table_find(table, id(11, 2)), &parent));
	assert_int_equal(parent.tgid, 10);
	assert_int_equal(parent.generation, 1);
	assert_false(process_table_forked_from(process_table_find(table, id(11, 3)), &parent));
}

static void process_table_fork__in_a_pid_namespace_the_inner_pid_is_unknown(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct process *parent;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	process_table_add(table, id(10, 1), 1, 100, &parent);
	parent->inner_pid = 1;
	process_table_fork(table, id(10, 1), id(11, 2), 200);
	assert_int_equal(process_table_find(table, id(11, 2))->inner_pid, 0);
}

static void process_table_fork__a_mapping_that_comes_late_reaches_the_children(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	process_table_add(table, id(10, 1), 1, 100, NULL);
	process_table_fork(table, id(10, 1), id(11, 2), 200);
	process_table_fork(table, id(11, 2), id(12, 3), 300);
	process_table_fork(table, id(10, 1), id(13, 4), 130);
	process_table_fork(table, id(10, 1), id(14, 5), 210);
	process_table_exec(table, id(14, 5), id(14, 6), 220);
	assert_int_equal(map(table, 10, 0x1000, "/numpy", 150), 0);
	assert_string_equal(paths(table, id(10, 1)), "/numpy");
	assert_string_equal(paths(table, id(11, 2)), "/numpy");
	assert_string_equal(paths(table, id(12, 3)), "/numpy");
	assert_string_equal(paths(table, id(13, 4)), "");
	assert_string_equal(paths(table, id(14, 6)), "");
}

static void process_table_map__record_of_an_earlier_process_of_that_pid_is_stale(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct process_table_stats stats;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	process_table_add(table, id(1, 1), 0, 10, NULL);
	process_table_fork(table, id(1, 1), id(10, 2), 200);
	assert_int_equal(map(table, 10, 0x1000, "/old", 150), 0);
	assert_string_equal(paths(table, id(10, 2)), "");
	process_table_get_stats(table, &stats);
}

/* The order of the kernel: the address space is replaced (300), the program is mapped (310, 320),
 * exec is told (330), the program maps libraries (340). */
static void start_exec(struct process_table *table)
{
	process_table_add(table, id(10, 1), 1, 100, NULL);
	map(table, 10, 0x1000, "/bin/sh", 110);
	map(table, 10, 0x8000, "/dlopened", 299);
}

static void process_table_exec__records_in_order(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct process *process;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	start_exec(table);
	assert_int_equal(process_table_new_context(table, 10, 300), 0);
	map(table, 10, 0x1000, "/bin/python", 310);
	map(table, 10, 0x4000, "/ld.so", 320);
	assert_int_equal(process_table_exec(table, id(10, 1), id(10, 2), 330), 0);
	map(table, 10, 0x6000, "/libc", 340);
	assert_string_equal(paths(table, id(10, 2)), "/bin/python /ld.so /libc");
	process = process_table_find(table, id(10, 1));
	assert_int_equal(process->exit_ns, 330);
	process = process_table_find(table, id(10, 2));
	assert_int_equal(process->ppid, 1);
	assert_int_equal(process->exit_ns, 0);
	assert_false(process_table_wants_read(process));
}

static void process_table_exec__told_before_the_side_band(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	start_exec(table);
	assert_int_equal(process_table_exec(table, id(10, 1), id(10, 2), 330), 0);
	assert_string_equal(paths(table, id(10, 2)), "");
	assert_true(process_table_wants_read(process_table_find(table, id(10, 2))));
	map(table, 10, 0x6000, "/libc", 340);
	process_table_new_context(table, 10, 300);
	map(table, 10, 0x1000, "/bin/python", 310);
	/* Of the old program: */
	map(table, 10, 0xa000, "/older", 250);
	assert_string_equal(paths(table, id(10, 2)), "/bin/python /libc");
}

static void process_table_exec__mappings_told_before_the_new_context(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	start_exec(table);
	map(table, 10, 0x1000, "/bin/python", 310);
	process_table_new_context(table, 10, 300);
	process_table_exec(table, id(10, 1), id(10, 2), 330);
	assert_string_equal(paths(table, id(10, 2)), "/bin/python");
}

static void process_table_exec__without_a_side_band_keeps_only_what_is_newer(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	start_exec(table);
	map(table, 10, 0x6000, "/libc", 340);
	process_table_exec(table, id(10, 1), id(10, 2), 330);
	assert_string_equal(paths(table, id(10, 2)), "/libc");
}

/* fork, exec, exec: the address space of the first exec says nothing of the second. */
static void process_table_exec__twice_after_a_fork(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	start_exec(table);
	process_table_fork(table, id(10, 1), id(11, 2), 400);
	assert_string_equal(paths(table, id(11, 2)), "/bin/sh /dlopened");
	process_table_new_context(table, 11, 410);
	map(table, 11, 0x1000, "/bin/env", 420);
	process_table_exec(table, id(11, 2), id(11, 3), 430);
	map(table, 11, 0x2000, "/libc", 440);
	process_table_new_context(table, 11, 450);
	map(table, 11, 0x1000, "/bin/python", 460);
	process_table_exec(table, id(11, 3), id(11, 4), 470);
	assert_string_equal(paths(table, id(11, 4)), "/bin/python");
	assert_string_equal(paths(table, id(10, 1)), "/bin/sh /dlopened");
}

static void process_table_exec__unknown_process_is_added(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	assert_int_equal(process_table_exec(table, id(10, 1), id(10, 2), 330), 0);
	assert_true(process_table_wants_read(process_table_find(table, id(10, 2))));
	assert_int_equal(process_table_new_context(table, 99, 1), -ESRCH);
}

static void process_table_exit__stays_findable_until_it_expires(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	process_table_add(table, id(10, 1), 1, 100, NULL);
	map(table, 10, 0x1000, "/a", 110);
	assert_int_equal(process_table_exit(table, id(10, 1), 200), 0);
	assert_int_equal(process_table_exit(table, id(11, 1), 200), -ESRCH);
	assert_int_equal(map(table, 10, 0x2000, "/b", 210), -ESRCH);
	assert_string_equal(paths(table, id(10, 1)), "/a");
	process_table_expire(table, 200, NULL, NULL);
	assert_non_null(process_table_find_tgid(table, 10));
	process_table_expire(table, 201, NULL, NULL);
	assert_null(process_table_find_tgid(table, 10));
	assert_int_equal(process_table_count(table), 0);
}

static void count_release(void *context, struct process *process)
{
	*(uint32_t *)context += process->id.generation;
}

static void process_table_expire__any_of_several_of_one_tgid(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	uint32_t released = 0;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	process_table_add(table, id(10, 1), 1, 100, NULL);
	process_table_exec(table, id(10, 1), id(10, 2), 200);
	process_table_exec(table, id(10, 2), id(10, 4), 300);
	process_table_expire(table, 201, count_release, &released);
	assert_int_equal(released, 1);
	assert_int_equal(process_table_find_tgid(table, 10)->id.generation, 4);
	process_table_exit(table, id(10, 4), 250);
	process_table_expire(table, 260, count_release, &released);
	assert_int_equal(released, 5);
	assert_int_equal(process_table_find_tgid(table, 10)->id.generation, 2);
	process_table_expire(table, 1000, count_release, &released);
	assert_int_equal(released, 7);
	assert_null(process_table_find_tgid(table, 10));
}

/* A stack is read before the event that tells of its program. */
static void process_table_apply__names_what_was_known_without_a_name(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct pp_event event = {
		.type = PP_EVENT_EXEC, .id = id(10, 2), .parent = id(10, 1), .comm = "named"};
	struct process *process;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	assert_int_equal(process_table_add(table, id(10, 1), 0, 50, NULL), 0);
	assert_int_equal(process_table_add(table, id(10, 2), 0, 100, &process), 0);
	event.time_ns = 90;
	assert_int_equal(process_table_apply(table, &event), -EEXIST);
	assert_int_equal(process_table_find(table, id(10, 1))->exit_ns, 90);
	assert_string_equal(process_table_find(table, id(10, 2))->comm, "named");
	memcpy(event.comm, "other", 6);
	assert_int_equal(process_table_apply(table, &event), -EEXIST);
	assert_string_equal(process_table_find(table, id(10, 2))->comm, "named");
}

static void process_table_apply__a_life_from_records(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct pp_event event = {.type = PP_EVENT_UNKNOWN, .id = {10, 1}, .time_ns = 100};

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	memset(event.comm, 'x', sizeof(event.comm));
	assert_int_equal(process_table_apply(table, &event), 0);
	assert_string_equal(process_table_find(table, id(10, 1))->comm, "xxxxxxxxxxxxxxx");
	event = (struct pp_event){.type = PP_EVENT_FORK,
				  .id = {11, 2},
				  .parent = {10, 1},
				  .time_ns = 200,
				  .comm = "sh"};
	assert_int_equal(process_table_apply(table, &event), 0);
	event = (struct pp_event){.type = PP_EVENT_EXEC,
				  .id = {11, 3},
				  .parent = {11, 2},
				  .time_ns = 300,
				  .comm = "python3"};
	assert_int_equal(process_table_apply(table, &event), 0);
	assert_int_equal(process_table_apply(table, &event), -EEXIST);
	assert_string_equal(process_table_find(table, id(11, 2))->comm, "sh");
	assert_string_equal(process_table_find(table, id(11, 3))->comm, "python3");
	assert_int_equal(process_table_find(table, id(11, 3))->ppid, 10);
	event = (struct pp_event){.type = PP_EVENT_EXIT, .id = {11, 3}, .time_ns = 400};
	assert_int_equal(process_table_apply(table, &event), 0);
	assert_int_equal(process_table_find(table, id(11, 3))->exit_ns, 400);
	event.type = PP_EVENT_THREAD_STATE;
	assert_int_equal(process_table_apply(table, &event), -EINVAL);
}

static void process_table_next__visits_each_once(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	uint64_t sum = 0;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	assert_null(process_table_next(table, NULL));
	for (uint32_t i = 1; i <= 100; i++)
		process_table_add(table, id(i, i), 0, i, NULL);
	for (const struct process *process = process_table_next(table, NULL); process;
	     process = process_table_next(table, process))
		sum += process->id.tgid;
	assert_int_equal(sum, 5050);
}

static void process_table_map__strings_no_longer_used_are_thrown_out(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct process_table_stats stats;
	char path[4000];

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	process_table_add(table, id(10, 1), 1, 100, NULL);
	map(table, 10, 0x100000, "/stays", 110);
	process_table_fork(table, id(10, 1), id(11, 1), 120);
	memset(path, 'a', sizeof(path));
	for (uint32_t i = 0; i < 6000; i++) {
		snprintf(path, sizeof(path), "/%u%*s", i, 3900, "x");
		assert_int_equal(map(table, 10, 0x2000, path, 130 + i), 0);
	}
	process_table_get_stats(table, &stats);
	assert_true(stats.string_rebuilds >= 2);
	assert_string_equal(paths(table, id(11, 1)), "/stays");
	assert_string_equal(process_table_find(table, id(10, 1))->mapping[0].path, path);
}

static void process_table_fork__thousands_of_children_share_their_mappings(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	process_table_add(table, id(1, 1), 1, 1, NULL);
	for (uint64_t i = 0; i < 200; i++)
		map(table, 1, 0x10000 * (i + 1), "/lib", 2);
	for (uint32_t i = 2; i <= 5000; i++)
		process_table_fork(table, id(1, 1), id(i, 1), 10);
	assert_int_equal(process_table_find(table, id(5000, 1))->mapping_count, 200);
}

/* A child of the test, which waits to be killed. */
static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	return pid;
}

static void stop_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void process_table_read_maps__replaces_the_old_and_keeps_what_is_known(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct proc_maps_summary summary;
	struct process *process;
	pid_t pid = start_child();
	size_t count;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	process_table_add(table, id((uint32_t)pid, 1), 1, mono_ns(), &process);
	assert_true(process_table_wants_read(process));
	map(table, (uint32_t)pid, 0x1000, "/gone", 1);
	map(table, (uint32_t)pid, 0x3000, "/newer", UINT64_MAX);
	assert_int_equal(process_table_read_maps(table, process, &summary), 0);
	assert_false(process_table_wants_read(process));
	assert_string_equal(process->mapping[0].path, "/newer");
	count = process->mapping_count;
	assert_true(count >= 3);
	/* Older than the reading, so the reading knows better. */
	assert_int_equal(map(table, (uint32_t)pid, 0x1000, "/gone", 2), 0);
	assert_int_equal(process->mapping_count, count);

	process->mapping[1].file = 1234;
	process->mapping[1].bias = 5678;
	process->mappings_changed = false;
	assert_int_equal(process_table_read_maps(table, process, NULL), 0);
	assert_false(process->mappings_changed);
	assert_int_equal(process->mapping_count, count);
	assert_int_equal(process->mapping[1].file, 1234);
	assert_int_equal(process->mapping[1].bias, 5678);

	stop_child(pid);
	assert_int_equal(process_table_read_maps(table, process, NULL), -ESRCH);
	assert_int_equal(process->mapping_count, count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			process_table_add__twice_is_eexist_and_a_new_generation_ends_the_old),
		cmocka_unit_test(process_table_fork__of_a_program_that_has_executed_ends_at_once),
		cmocka_unit_test(process_table_exec__long_after_the_start_ends_the_old_program),
		cmocka_unit_test(process_table_map__unknown_process_is_esrch_and_remembered),
		cmocka_unit_test(process_table_lost__makes_it_to_be_read),
		cmocka_unit_test(process_table_fork__child_has_what_the_parent_had),
		cmocka_unit_test(process_table_forked_from__until_it_executes),
		cmocka_unit_test(process_table_fork__in_a_pid_namespace_the_inner_pid_is_unknown),
		cmocka_unit_test(
			process_table_fork__a_mapping_that_comes_late_reaches_the_children),
		cmocka_unit_test(
			process_table_map__record_of_an_earlier_process_of_that_pid_is_stale),
		cmocka_unit_test(process_table_exec__records_in_order),
		cmocka_unit_test(process_table_exec__told_before_the_side_band),
		cmocka_unit_test(process_table_exec__mappings_told_before_the_new_context),
		cmocka_unit_test(process_table_exec__without_a_side_band_keeps_only_what_is_newer),
		cmocka_unit_test(process_table_exec__twice_after_a_fork),
		cmocka_unit_test(process_table_exec__unknown_process_is_added),
		cmocka_unit_test(process_table_exit__stays_findable_until_it_expires),
		cmocka_unit_test(process_table_expire__any_of_several_of_one_tgid),
		cmocka_unit_test(process_table_apply__a_life_from_records),
		cmocka_unit_test(process_table_apply__names_what_was_known_without_a_name),
		cmocka_unit_test(process_table_next__visits_each_once),
		cmocka_unit_test(process_table_map__strings_no_longer_used_are_thrown_out),
		cmocka_unit_test(process_table_fork__thousands_of_children_share_their_mappings),
		cmocka_unit_test(process_table_read_maps__replaces_the_old_and_keeps_what_is_known),
	};

	return cmocka_run_group_tests_name("discover/process_table", tests, NULL, NULL);
}
