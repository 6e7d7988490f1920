/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc and the table of processes are stand-ins. */
#include "agent/window_facts.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/context_table.h"
#include "base/clock.h"
#include "base/io.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"

#define PROCESSES 3U

static const char *host;
static struct proc_stat stats[PROCESSES]; /* pid 0: it cannot be read */
static struct process processes[PROCESSES];
static size_t process_count;
static bool is_wanted[PROCESSES];

int read_file(const char *path, size_t max_bytes, char **ret_text, size_t *ret_size)
{
	(void)max_bytes, (void)ret_size;
	assert_string_equal(path, "/proc/stat");
	if (!host)
		return -EACCES;
	*ret_text = strdup(host);
	return *ret_text ? 0 : -ENOMEM;
}

int proc_stat_read(uint32_t pid, struct proc_stat *ret_stat)
{
	for (size_t i = 0; i < PROCESSES; i++) {
		if (stats[i].pid != pid)
			continue;
		*ret_stat = stats[i];
		return 0;
	}
	return -ESRCH;
}

struct process *process_table_next(const struct process_table *table, const struct process *process)
{
	size_t next = process ? (size_t)(process - processes) + 1 : 0;

	assert_non_null(table);
	return next < process_count ? &processes[next] : NULL;
}

uint16_t context_table_flags(const struct process *process)
{
	return is_wanted[process - processes] ? PP_CONTEXT_MATCHES : 0;
}

static const struct process_table *table = (const struct process_table *)&processes;

static int setup(void **state)
{
	(void)state;
	host = NULL;
	memset(stats, 0, sizeof(stats));
	memset(processes, 0, sizeof(processes));
	process_count = 0;
	return 0;
}

/* A process that started so long after the coverage is opened; below 0: before. */
static void add_process(uint32_t pid, int64_t after_ns, uint64_t cpu_ns)
{
	is_wanted[process_count] = true;
	processes[process_count].id.tgid = pid;
	stats[process_count++] =
		(struct proc_stat){.pid = pid,
				   .start_ns = (uint64_t)((int64_t)mono_ns() + after_ns),
				   .cpu_ns = cpu_ns};
}

/* Less than the machine is up. */
#define MINUTE_NS (60 * (int64_t)NS_PER_SEC)

static void machine__has_user_nice_and_system_time(void **state)
{
	const uint64_t tick_ns = NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	struct coverage *coverage;

	(void)state;
	host = "cpu 100 20 3 5000 600 70 8 9\n";
	assert_int_equal(coverage_new(NULL, &coverage), 0);
	assert_int_equal(coverage_take(coverage), 0);
	host = "cpu 101 22 6 9000 900 90 90 90\n";
	assert_int_equal(coverage_take(coverage), (1 + 2 + 3) * tick_ns);
	assert_int_equal(coverage_take(coverage), 0);
	host = "cpu 90 22 6 9000\n"; /* moved to another host */
	assert_int_equal(coverage_take(coverage), 0);
	host = "cpu 91 22 6 9000\n";
	assert_int_equal(coverage_take(coverage), tick_ns);
	coverage_free(coverage);
}

static void machine__that_cannot_be_read_covers_nothing(void **state)
{
	struct coverage *coverage;

	(void)state;
	assert_int_equal(coverage_new(NULL, &coverage), 0);
	host = "cpu 100 20 3 5000\n";
	/* What it had done before is not known. */
	assert_int_equal(coverage_take(coverage), 0);
	host = "cpu 100 20\n";
	assert_int_equal(coverage_take(coverage), 0);
	host = "cpu 300 20 3 5000\n";
	assert_int_equal(coverage_take(coverage), 0);
	coverage_free(coverage);
	assert_int_equal(coverage_take(NULL), 0);
	coverage_free(NULL);
}

static void process__counts_from_the_start_on(void **state)
{
	struct coverage *coverage;

	(void)state;
	add_process(10, -MINUTE_NS, 700);
	assert_int_equal(coverage_new(table, &coverage), 0);
	assert_int_equal(coverage_take(coverage), 0);
	stats[0].cpu_ns = 1000;
	assert_int_equal(coverage_take(coverage), 300);
	/* One that began later has all of its time since. */
	add_process(11, MINUTE_NS, 40);
	stats[0].cpu_ns = 1001;
	assert_int_equal(coverage_take(coverage), 41);
	/* One that ran before, and is chosen only now, has none yet. */
	add_process(12, -MINUTE_NS, 5000);
	assert_int_equal(coverage_take(coverage), 0);
	stats[2].cpu_ns = 5006;
	assert_int_equal(coverage_take(coverage), 6);
	coverage_free(coverage);
}

static void process__with_the_number_of_an_older_one_begins_anew(void **state)
{
	struct coverage *coverage;

	(void)state;
	add_process(10, -MINUTE_NS, 700);
	assert_int_equal(coverage_new(table, &coverage), 0);
	stats[0].start_ns += 2 * (uint64_t)MINUTE_NS;
	stats[0].cpu_ns = 50;
	assert_int_equal(coverage_take(coverage), 50);
	stats[0].cpu_ns = 49; /* the kernel's sums may step back */
	assert_int_equal(coverage_take(coverage), 0);
	coverage_free(coverage);
}

static void process__that_is_gone_or_not_chosen_is_left_out(void **state)
{
	struct coverage *coverage;

	(void)state;
	add_process(10, MINUTE_NS, 100);
	add_process(11, MINUTE_NS, 10);
	add_process(12, MINUTE_NS, 1);
	is_wanted[0] = false;
	processes[1].exit_ns = 5;
	assert_int_equal(coverage_new(table, &coverage), 0);
	stats[0].cpu_ns = stats[1].cpu_ns = 1000;
	stats[2].cpu_ns = 3;
	assert_int_equal(coverage_take(coverage), 2);
	stats[2].pid = 0;
	assert_int_equal(coverage_take(coverage), 0);
	/* Nothing is kept of one that was not found: as the kernel's number may be used again. */
	stats[2].pid = 12;
	assert_int_equal(coverage_take(coverage), 3);
	coverage_free(coverage);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(machine__has_user_nice_and_system_time),
		TEST(machine__that_cannot_be_read_covers_nothing),
		TEST(process__counts_from_the_start_on),
		TEST(process__with_the_number_of_an_older_one_begins_anew),
		TEST(process__that_is_gone_or_not_chosen_is_left_out),
	};

	return cmocka_run_group_tests_name("agent/coverage", tests, NULL, NULL);
}
