/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc and the directories of logs say are stand-ins. */
#include "processes/identities.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/slice.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "files/user_time.h"
#include "processes/who.h"

#define PIDS 256U
#define ID "4a7d1ed414474e4033ac29ccb8653d9b0123456789abcdef0123456789abcdef"
#define POD_CGROUP "/kubepods/pod8f0b2c1e-1f2a-4c07-b1dd-3c3a0a5e1f11/" ID

static struct process_table *processes;
static struct identities *identities;
/* Of each process: arguments and variables with '|' between them; NULL: there is none such. */
static const char *line[PIDS], *environment[PIDS], *cgroup[PIDS];
static int text_error;
static unsigned int reads;
static bool is_without_details;
static uint64_t now_ns, text_ns; /* text_ns: that each text takes */
static bool has_logs;
static size_t padding; /* NULs behind each environment */

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	(void)clock;
	*ret_time = (struct timespec){.tv_sec = (time_t)(now_ns / NS_PER_SEC),
				      .tv_nsec = (long)(now_ns % NS_PER_SEC)};
	return 0;
}

int process_live_task(pid_t pid, pid_t *ret_tid)
{
	*ret_tid = pid;
	return line[pid] ? 0 : -ESRCH;
}

int process_read_text(pid_t tid, enum process_text which, size_t max_bytes, char **ret_text,
		      size_t *ret_size)
{
	const char *text;

	if (which == PROCESS_USERS) {
		*ret_text = strdup("root:x:0:0::/:\nweb:x:1000:1000::/:\n");
		*ret_size = strlen(*ret_text);
		return 0;
	}
	text = which == PROCESS_ENVIRONMENT ? environment[tid] : line[tid];
	reads++;
	now_ns += text_ns;
	assert_true(max_bytes >= 16384);
	if (text_error)
		return text_error;
	*ret_size = text ? strlen(text) : 0;
	*ret_text = calloc(1, *ret_size + padding + 1);
	assert_non_null(*ret_text);
	for (size_t i = 0; i < *ret_size; i++)
		(*ret_text)[i] = text[i] == '|' ? '\0' : text[i];
	if (which == PROCESS_ENVIRONMENT)
		*ret_size += padding;
	return 0;
}

int process_list_logs(enum process_log_directory which, char **ret_entries, size_t *ret_size)
{
	static const char name[] = "web-7d9_shop_nginx-" ID ".log";
	const size_t head = 19, size = head + sizeof(name);
	const unsigned short length = (unsigned short)size;

	if (!has_logs || which != PROCESS_LOGS_CONTAINERS)
		return -ENOENT;
	*ret_entries = calloc(1, size);
	assert_non_null(*ret_entries);
	memcpy(*ret_entries + 16, &length, sizeof(length));
	memcpy(*ret_entries + head, name, sizeof(name));
	*ret_size = size;
	return 0;
}

int process_read_maps(pid_t tid, size_t max_bytes, char **ret_text, size_t *ret_size)
{
	(void)tid, (void)max_bytes, (void)ret_text, (void)ret_size;
	return -ESRCH;
}

void who_read_details(struct process_table *table, struct process *process)
{
	if (process->exit_ns || process->details_read || is_without_details)
		return;
	if (cgroup[process->id.tgid])
		assert_int_equal(
			process_table_intern(table, cgroup[process->id.tgid], &process->cgroup), 0);
	if (strstr(process->cgroup, ID))
		assert_int_equal(process_table_intern(table, ID, &process->container_id), 0);
	process->uid = 1000;
	process->details_read = true;
}

uint32_t process_user_kept(struct process *process)
{
	(void)process;
	return 1000;
}

static int setup(void **state)
{
	(void)state;
	memset(line, 0, sizeof(line));
	memset(environment, 0, sizeof(environment));
	memset(cgroup, 0, sizeof(cgroup));
	text_error = 0;
	text_ns = 0;
	is_without_details = false;
	padding = 0;
	reads = 0;
	now_ns = 100 * NS_PER_SEC;
	has_logs = false;
	return process_table_new(&processes) || identities_new(processes, &identities);
}

static int teardown(void **state)
{
	(void)state;
	identities_free(identities);
	process_table_free(processes);
	return 0;
}

static struct pp_process_id id_of(uint32_t pid, uint32_t generation)
{
	return (struct pp_process_id){.tgid = pid, .generation = generation};
}

static struct process *add(uint32_t pid, uint32_t ppid, const char *comm, const char *arguments)
{
	struct process *process = NULL;

	line[pid] = arguments;
	assert_int_equal(process_table_add(processes, id_of(pid, 1), ppid, 1, &process), 0);
	snprintf(process->comm, sizeof(process->comm), "%s", comm);
	return process;
}

static void expect(struct process *process, enum identity_label label, const char *expected)
{
	const struct identity *identity = identities_get(identities, process);

	assert_non_null(identity);
	assert_string_equal(value_text(identity->value[label]), expected);
}

static struct identities_stats stats(void)
{
	struct identities_stats found;

	identities_get_stats(identities, &found);
	return found;
}

/* ---- one process ---- */

static void process__is_looked_at_once(void **state)
{
	struct process *process = add(70, 1, "python3", "python3|train.py");
	const struct slice slice = {.ends_ns = UINT64_MAX};

	(void)state;
	environment[70] = "RANK=2|SECRET=canary|SLURM_JOB_ID=9";
	cgroup[70] = "/system.slice/train.service";
	identities_want(identities, process->id);
	identities_want(identities, id_of(71, 1)); /* gone */
	assert_false(identities_step(identities, &slice));
	assert_int_equal(reads, 2);
	expect(process, IDENTITY_APP, "train.py");
	expect(process, IDENTITY_SERVICE_NAME, "train.py");
	expect(process, IDENTITY_USER, "web");
	expect(process, IDENTITY_UNIT, "train.service");
	expect(process, IDENTITY_RANK, "2");
	expect(process, IDENTITY_SLURM_JOB, "9");
	expect(process, IDENTITY_POD, "");
	now_ns += 100 * NS_PER_SEC;
	identities_want(identities, process->id);
	assert_false(identities_step(identities, &slice));
	expect(process, IDENTITY_APP, "train.py");
	assert_int_equal(reads, 2);
}

static void service_name__by_the_rule(void **state)
{
	struct process *named = add(70, 1, "python3", "python3|a.py");
	struct process *container = add(71, 1, "nginx", "nginx|-g");
	struct process *other = add(72, 1, "postgres\n", "postgres");

	(void)state;
	has_logs = true;
	environment[70] = "OTEL_SERVICE_NAME=shop";
	cgroup[71] = POD_CGROUP;
	expect(named, IDENTITY_SERVICE_NAME, "shop");
	expect(named, IDENTITY_APP, "a.py");
	expect(container, IDENTITY_SERVICE_NAME, "nginx");
	expect(container, IDENTITY_CONTAINER, "nginx");
	expect(container, IDENTITY_NAMESPACE, "shop");
	expect(container, IDENTITY_POD, "web-7d9");
	expect(container, IDENTITY_UNIT, "");
	expect(other, IDENTITY_SERVICE_NAME, "postgres\\n");
}

static void pod__whose_log_comes_late_is_named_then(void **state)
{
	struct process *process = add(70, 1, "postgres", "postgres");

	(void)state;
	cgroup[70] = POD_CGROUP;
	expect(process, IDENTITY_SERVICE_NAME, "postgres");
	has_logs = true;
	expect(process, IDENTITY_POD, "");
	now_ns += PODS_AGAIN_NS;
	expect(process, IDENTITY_POD, "web-7d9");
	expect(process, IDENTITY_SERVICE_NAME, "nginx");
	assert_int_equal(reads, 2);
}

static void process__that_does_not_answer_is_asked_three_times(void **state)
{
	struct process *process = add(70, 1, "python3", "python3|a.py");
	struct process *late = add(71, 1, "python3", "python3|b.py");

	(void)state;
	text_error = -ETIMEDOUT;
	expect(process, IDENTITY_SERVICE_NAME, "python3");
	expect(process, IDENTITY_SERVICE_NAME, "python3");
	assert_int_equal(reads, 1);
	for (unsigned int i = 0; i < 5; i++) {
		now_ns += 2 * NS_PER_SEC;
		expect(process, IDENTITY_APP, "");
	}
	assert_int_equal(reads, 3);
	assert_int_equal(stats().unread, 1);
	expect(late, IDENTITY_APP, "");
	text_error = 0;
	now_ns += 2 * NS_PER_SEC;
	expect(late, IDENTITY_APP, "b.py");
	expect(late, IDENTITY_SERVICE_NAME, "b.py");
	assert_int_equal(stats().unread, 1);
}

static void environment__that_is_too_long_is_counted(void **state)
{
	struct process *process = add(70, 1, "python3", "python3|a.py");

	(void)state;
	environment[70] = "RANK=1";
	padding = ENVIRONMENT_BYTES - strlen(environment[70]) - 1;
	expect(process, IDENTITY_RANK, "1");
	assert_int_equal(stats().unread, 0);
	padding++;
	expect(add(71, 1, "python3", "python3|a.py"), IDENTITY_RANK, "");
	environment[72] = "RANK=2";
	expect(add(72, 1, "python3", "python3|a.py"), IDENTITY_RANK, "2");
	assert_int_equal(stats().unread, 1);
}

static void user__whose_programs_took_too_much_time_waits(void **state)
{
	struct process *process;

	(void)state;
	text_ns = USER_TIME_BURST_NS; /* two of them */
	expect(add(70, 1, "python3", "python3|a.py"), IDENTITY_APP, "a.py");
	text_ns = 0;
	process = add(71, 1, "python3", "python3|b.py");
	expect(process, IDENTITY_APP, "");
	assert_int_equal(reads, 2);
	now_ns += USER_TIME_SHARE * USER_TIME_BURST_NS;
	expect(process, IDENTITY_APP, "");
	now_ns += USER_TIME_SHARE * USER_TIME_BURST_NS;
	expect(process, IDENTITY_APP, "b.py");
	assert_int_equal(stats().unread, 0);
}

static void process__that_has_ended_has_its_command(void **state)
{
	struct process *process = add(70, 1, "cc1", "cc1|secret.c");

	(void)state;
	assert_int_equal(process_table_exit(processes, process->id, 5), 0);
	expect(process, IDENTITY_SERVICE_NAME, "cc1");
	expect(process, IDENTITY_USER, "");
	assert_int_equal(reads, 0);
	assert_int_equal(stats().ended, 1);
	assert_int_equal(stats().unread, 0);
}

/* ---- parents ---- */

static struct process *fork_of(uint32_t parent, uint32_t pid)
{
	assert_int_equal(process_table_fork(processes, id_of(parent, 1), id_of(pid, 1), now_ns), 0);
	return process_table_find(processes, id_of(pid, 1));
}

static void fork__is_who_its_parent_is(void **state)
{
	struct process *parent = add(70, 1, "gunicorn", "python3|/v/gunicorn|shop.wsgi:app");
	struct process *child;

	(void)state;
	environment[70] = "DD_SERVICE=shop|WORLD_SIZE=4";
	expect(parent, IDENTITY_APP, "shop.wsgi");
	child = fork_of(70, 71);
	/* Its title has taken the place of both. */
	line[71] = "gunicorn: worker [other]";
	environment[71] = "||||";
	cgroup[71] = "/system.slice/x.service";
	expect(child, IDENTITY_APP, "shop.wsgi");
	expect(child, IDENTITY_SERVICE_NAME, "shop");
	expect(child, IDENTITY_WORLD_SIZE, "4");
	expect(child, IDENTITY_UNIT, "x.service");
	assert_int_equal(reads, 2);
	/* One that has ended, too; and a parent that nobody had looked at. */
	child = fork_of(71, 72);
	assert_int_equal(process_table_exit(processes, child->id, now_ns), 0);
	expect(child, IDENTITY_SERVICE_NAME, "shop");
	assert_int_equal(stats().ended, 0);
	(void)add(80, 1, "python3", "python3|b.py");
	expect(fork_of(80, 81), IDENTITY_APP, "b.py");
}

static void fork__of_a_parent_that_answers_late_is_named_then(void **state)
{
	struct process *child;

	(void)state;
	(void)add(70, 1, "python3", "python3|a.py");
	child = fork_of(70, 71);
	text_error = -ETIMEDOUT;
	expect(child, IDENTITY_APP, "");
	text_error = 0;
	now_ns += 2 * NS_PER_SEC;
	expect(child, IDENTITY_APP, "a.py");
	assert_int_equal(reads, 3);
}

static void place__that_was_not_known_is_looked_at_again(void **state)
{
	struct process *process = add(70, 1, "nginx", "nginx");

	(void)state;
	has_logs = true;
	cgroup[70] = POD_CGROUP;
	is_without_details = true;
	expect(process, IDENTITY_USER, "");
	is_without_details = false;
	now_ns += PODS_AGAIN_NS;
	expect(process, IDENTITY_USER, "web");
	expect(process, IDENTITY_POD, "web-7d9");
}

static void place__is_followed(void **state)
{
	struct process *process;

	(void)state;
	cgroup[1] = "/system.slice/cron.service";
	process = add(1, 0, "web", "web");
	expect(process, IDENTITY_UNIT, "cron.service");
	expect(process, IDENTITY_USER, "web");
	process->uid = 33; /* as who_follow() says */
	process->moves++;
	expect(process, IDENTITY_USER, "33");
	expect(process, IDENTITY_UNIT, "cron.service");
	cgroup[1] = POD_CGROUP;
	has_logs = true;
	process->details_read = false;
	process->moves++;
	expect(process, IDENTITY_UNIT, "");
	expect(process, IDENTITY_POD, "web-7d9");
	cgroup[1] = "/system.slice/web.service";
	process->details_read = false;
	process->moves++;
	expect(process, IDENTITY_UNIT, "web.service");
	expect(process, IDENTITY_POD, "");
}

static void exec__is_another_program(void **state)
{
	struct process *process = add(70, 1, "sh", "sh|run.sh");
	struct process *program;

	(void)state;
	environment[70] = "RANK=1";
	expect(process, IDENTITY_SERVICE_NAME, "sh");
	process = fork_of(70, 71);
	expect(process, IDENTITY_RANK, "1");
	line[71] = "python3|a.py";
	assert_int_equal(process_table_exec(processes, id_of(71, 1), id_of(71, 2), now_ns), 0);
	program = process_table_find(processes, id_of(71, 2));
	expect(program, IDENTITY_APP, "a.py");
	expect(program, IDENTITY_RANK, "");
	expect(process, IDENTITY_RANK, "1");
}

static void child_of_multiprocessing__has_its_parents_app(void **state)
{
	struct process *spawned;

	(void)state;
	(void)add(70, 1, "python3", "python3|jobs.py");
	environment[70] = "RANK=1";
	spawned = add(71, 70, "python3", "python3|-c|from multiprocessing.spawn import spawn_main");
	environment[71] = "RANK=2";
	expect(spawned, IDENTITY_APP, "jobs.py");
	expect(spawned, IDENTITY_SERVICE_NAME, "jobs.py");
	expect(spawned, IDENTITY_RANK, "2");
}

/* Pids are used again: a chain of parents may be a circle. */
static void parents__in_a_circle_end(void **state)
{
	static const char spawn[] = "python3|-c|from multiprocessing.spawn import spawn_main";
	struct process *process = add(70, 71, "python3", spawn);

	(void)state;
	(void)add(71, 70, "python3", spawn);
	expect(process, IDENTITY_APP, "");
	expect(process, IDENTITY_SERVICE_NAME, "python3");
	for (uint32_t pid = 100; pid < 120; pid++)
		process = add(pid, pid - 1, "python3", pid == 100 ? "python3|a.py" : spawn);
	expect(process, IDENTITY_APP, "");
}

/* ---- bounds ---- */

static void values__of_a_user_are_bounded_and_counted(void **state)
{
	static char name[PIDS][32];
	struct user_quota *quota = identities_quota(identities);

	(void)state;
	quota->total = 20;
	for (uint32_t pid = 1; pid < 40; pid++) {
		snprintf(name[pid], sizeof(name[pid]), "python3|a%u.py", pid);
		expect(add(pid, 0, "python3", name[pid]), IDENTITY_USER, "web");
	}
	/* Ten values are "web" and nine applications; of 30 processes the application is refused,
	 * and the command in its place. */
	assert_int_equal(stats().refused, 60);
	assert_int_equal(user_quota_held(quota, 1000), 10);
}

static void processes__that_ended_are_forgotten(void **state)
{
	struct process *process = add(70, 1, "python3", "python3|a.py");
	struct process *idle = add(71, 1, "python3", "python3|b.py");

	(void)state;
	expect(process, IDENTITY_APP, "a.py");
	expect(idle, IDENTITY_APP, "b.py");
	assert_int_equal(process_table_exit(processes, process->id, now_ns), 0);
	identities_expire(identities, now_ns);
	assert_int_equal(user_quota_held(identities_quota(identities), 1000), 3);
	identities_expire(identities, now_ns + 1);
	assert_int_equal(user_quota_held(identities_quota(identities), 1000), 2);
	expect(idle, IDENTITY_APP, "b.py");
	assert_int_equal(reads, 4);
}

static void step__ends_with_its_slice(void **state)
{
	const struct slice over = {.ends_ns = 1};

	(void)state;
	for (uint32_t pid = 70; pid < 73; pid++)
		identities_want(identities, add(pid, 1, "python3", "python3|a.py")->id);
	assert_true(identities_step(identities, &over));
	assert_int_equal(reads, 2);
	assert_true(identities_step(identities, &over));
	assert_false(identities_step(identities, &over));
	assert_int_equal(reads, 6);
	assert_false(identities_step(identities, &over));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(process__is_looked_at_once),
		TEST(service_name__by_the_rule),
		TEST(pod__whose_log_comes_late_is_named_then),
		TEST(process__that_does_not_answer_is_asked_three_times),
		TEST(environment__that_is_too_long_is_counted),
		TEST(user__whose_programs_took_too_much_time_waits),
		TEST(process__that_has_ended_has_its_command),
		TEST(fork__is_who_its_parent_is),
		TEST(fork__of_a_parent_that_answers_late_is_named_then),
		TEST(place__that_was_not_known_is_looked_at_again),
		TEST(place__is_followed),
		TEST(exec__is_another_program),
		TEST(child_of_multiprocessing__has_its_parents_app),
		TEST(parents__in_a_circle_end),
		TEST(values__of_a_user_are_bounded_and_counted),
		TEST(processes__that_ended_are_forgotten),
		TEST(step__ends_with_its_slice),
	};

	return cmocka_run_group_tests_name("agent/identities", tests, NULL, NULL);
}
