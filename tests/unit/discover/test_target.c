/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/target.h"

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct process *add(struct process_table *table, uint32_t tgid, uint32_t ppid)
{
	struct process *process;

	assert_int_equal(
		process_table_add(table, (struct pp_process_id){tgid, 1}, ppid, 1, &process), 0);
	return process;
}

static void target_matches__empty_filter_wants_everything(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct target_filter filter = {0};

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	assert_true(target_matches(&filter, table, add(table, 5, 1)));
	assert_false(target_needs_details(&filter));
	target_filter_release(&filter);
}

static void target_matches__pids_and_their_descendants(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct target_filter filter = {0};
	struct process *parent, *child, *grandchild, *other, *orphan;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	parent = add(table, 10, 1);
	child = add(table, 11, 10);
	grandchild = add(table, 12, 11);
	other = add(table, 13, 1);
	orphan = add(table, 14, 999);
	assert_int_equal(target_add_pid(&filter, 500), 0);
	assert_int_equal(target_add_pid(&filter, 10), 0);
	assert_true(target_matches(&filter, table, parent));
	assert_true(target_matches(&filter, table, child));
	assert_true(target_matches(&filter, table, grandchild));
	assert_false(target_matches(&filter, table, other));
	assert_false(target_matches(&filter, table, orphan));
	/* A parent that has died still counts. */
	process_table_exit(table, child->id, 5);
	assert_true(target_matches(&filter, table, grandchild));
	target_filter_release(&filter);
}

static void target_matches__circle_of_parents_ends(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct target_filter filter = {0};

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	add(table, 10, 11);
	add(table, 12, 12);
	target_add_pid(&filter, 500);
	assert_false(target_matches(&filter, table, add(table, 11, 10)));
	target_filter_release(&filter);
}

static void target_matches__comm_is_an_extended_expression(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct target_filter filter = {0}, bad = {0};
	struct process *process;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	process = add(table, 10, 1);
	assert_int_equal(target_set_comm(&filter, "^(python|uwsgi)[0-9.]*$"), 0);
	assert_int_equal(target_set_comm(&filter, "x"), -EEXIST);
	snprintf(process->comm, sizeof(process->comm), "python3.11");
	assert_true(target_matches(&filter, table, process));
	snprintf(process->comm, sizeof(process->comm), "ipython3");
	assert_false(target_matches(&filter, table, process));
	assert_int_equal(target_set_comm(&bad, "(unbalanced"), -EINVAL);
	target_filter_release(&bad);
	target_filter_release(&filter);
}

static void target_matches__each_kind_must_hold(void **state)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct target_filter filter = {0};
	struct process *process;

	(void)state;
	assert_int_equal(process_table_new(&table), 0);
	process = add(table, 10, 1);
	process->uid = 33;
	snprintf(process->comm, sizeof(process->comm), "python3");
	target_add_uid(&filter, 1000);
	assert_false(target_matches(&filter, table, process));
	target_add_uid(&filter, 33);
	assert_true(target_matches(&filter, table, process));
	target_set_comm(&filter, "ruby");
	assert_false(target_matches(&filter, table, process));
	assert_true(target_needs_details(&filter));
	target_filter_release(&filter);
}

static bool matches_cgroup(const char *prefix, const char *cgroup)
{
	OWNED(process_table) struct process_table *table = NULL;
	struct target_filter filter = {0};
	struct process *process;
	bool matches;

	assert_int_equal(process_table_new(&table), 0);
	process = add(table, 10, 1);
	process->cgroup = cgroup;
	assert_int_equal(target_set_cgroup(&filter, prefix), 0);
	matches = target_matches(&filter, table, process);
	target_filter_release(&filter);
	return matches;
}

static void target_matches__cgroup_in_any_spelling(void **state)
{
	const char *const same[] = {
		"/system.slice/web.service",
		"system.slice/web.service",
		"/system.slice/web.service//",
		"/sys/fs/cgroup/system.slice/web.service",
		"/sys/fs/cgroup/unified/system.slice/web.service/",
		"/sys/fs/cgroup/systemd/system.slice/web.service",
		"/sys/fs/cgroup",
		"/sys/fs/cgroup/pids",
		"/",
		"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		assert_true(matches_cgroup(same[i], "/system.slice/web.service"));
		assert_true(matches_cgroup(same[i], "/system.slice/web.service/worker"));
	}
	assert_false(matches_cgroup(same[0], "/system.slice/web.service2"));
	assert_false(matches_cgroup(same[0], "/system.slice"));
	assert_false(matches_cgroup(same[0], ""));
	assert_false(matches_cgroup("/sys/fs/cgroupX", "/system.slice"));
	assert_true(matches_cgroup("/pids2", "/pids2/a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(target_matches__empty_filter_wants_everything),
		cmocka_unit_test(target_matches__pids_and_their_descendants),
		cmocka_unit_test(target_matches__circle_of_parents_ends),
		cmocka_unit_test(target_matches__comm_is_an_extended_expression),
		cmocka_unit_test(target_matches__each_kind_must_hold),
		cmocka_unit_test(target_matches__cgroup_in_any_spelling),
	};

	return cmocka_run_group_tests_name("discover/target", tests, NULL, NULL);
}
