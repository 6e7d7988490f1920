/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/sideband.h"

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "discover/process_table.h"

#define MAX_SEEN 2048U

struct seen {
	uint32_t tgid; /* whose records are kept */
	size_t count;
	struct mapping mapping[MAX_SEEN];
	char path[MAX_SEEN][256];
	uint64_t lost;
	uint64_t last_ns;
	bool is_out_of_order;
	struct process_table *table;
};

static void note_time(struct seen *seen, uint64_t time_ns)
{
	seen->is_out_of_order |= time_ns < seen->last_ns;
	seen->last_ns = time_ns;
}

static void on_mapping(void *context, uint32_t tgid, const struct mapping *mapping)
{
	struct seen *seen = context;

	note_time(seen, mapping->time_ns);
	if (seen->table)
		process_table_map(seen->table, tgid, mapping);
	if (tgid != seen->tgid || seen->count == MAX_SEEN)
		return;
	seen->mapping[seen->count] = *mapping;
	snprintf(seen->path[seen->count], sizeof(seen->path[0]), "%s", mapping->path);
	seen->mapping[seen->count].path = seen->path[seen->count];
	seen->count++;
}

static void on_lost(void *context, uint32_t cpu, uint64_t count)
{
	(void)cpu;
	((struct seen *)context)->lost += count;
}

static struct sideband_handlers handlers_of(struct seen *seen)
{
	return (struct sideband_handlers){.context = seen, .mapping = on_mapping, .lost = on_lost};
}

static void open_or_skip(const struct sideband_options *options, struct sideband **ret_sideband)
{
	int err = sideband_open(options, ret_sideband);

	if (err == -EACCES || err == -EPERM || err == -ENOSYS || err == -ENOENT) {
		print_message("skipped: no system-wide perf events here: %s\n", strerror(-err));
		skip();
	}
	assert_int_equal(err, 0);
}

static int collect_and_deliver(struct sideband *sideband, const struct sideband_handlers *handlers)
{
	int err = sideband_collect(sideband);

	sideband_deliver(sideband, UINT64_MAX, handlers);
	return err;
}

static void wait_readable(const struct sideband *sideband)
{
	struct pollfd wanted = {.fd = sideband_fd(sideband), .events = POLLIN};

	assert_int_equal(poll(&wanted, 1, 10000), 1);
}

static void expect_key_of_file(const struct mapping *mapping)
{
	struct stat status;

	assert_int_equal(stat(mapping->path, &status), 0);
	assert_int_equal(mapping->key.inode, status.st_ino);
}

static const struct mapping *seen_path(const struct seen *seen, const char *end)
{
	for (size_t i = 0; i < seen->count; i++) {
		size_t size = strlen(seen->path[i]), end_size = strlen(end);

		if (size >= end_size && !strcmp(seen->path[i] + size - end_size, end))
			return &seen->mapping[i];
	}
	return NULL;
}

static void check_exec_of_true(const struct sideband_options *options)
{
	static struct seen seen;
	const struct sideband_handlers handlers = handlers_of(&seen);
	OWNED(sideband) struct sideband *sideband = NULL;
	struct sideband_stats stats;
	uint64_t before_ns;
	pid_t pid;

	open_or_skip(options, &sideband);
	memset(&seen, 0, sizeof(seen));
	before_ns = mono_ns();
	pid = fork();
	if (pid == 0) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	seen.tgid = (uint32_t)pid;
	waitpid(pid, NULL, 0);
	wait_readable(sideband);
	assert_int_equal(collect_and_deliver(sideband, &handlers), 0);
	sideband_get_stats(sideband, &stats);
	assert_int_equal(stats.bad, 0);
	assert_false(seen.is_out_of_order);
	assert_non_null(seen_path(&seen, "/true"));
	assert_non_null(seen_path(&seen, "[vdso]"));
	/* The program, its loader, libc. */
	assert_true(seen.count >= 3);
	for (size_t i = 0; i < seen.count; i++) {
		assert_true(seen.mapping[i].time_ns > before_ns);
		assert_true(seen.mapping[i].time_ns < mono_ns());
		if (seen.path[i][0] == '/')
			expect_key_of_file(&seen.mapping[i]);
	}
}

static void sideband_read__exec_with_inodes(void **state)
{
	(void)state;
	check_exec_of_true(NULL);
}

#define RARE_LIBRARY "libBrokenLocale.so.1" /* glibc's; nothing loads it */

/* A child that loads it, and writes the times before and after; 0: it could not. */
static pid_t start_dlopen(int ready_fd)
{
	uint64_t time_ns[2] = {mono_ns(), 0};
	pid_t pid = fork();

	if (pid)
		return pid;
	if (dlopen(RARE_LIBRARY, RTLD_NOW))
		time_ns[1] = mono_ns();
	if (write(ready_fd, time_ns, sizeof(time_ns)) == sizeof(time_ns))
		for (;;)
			pause();
	_exit(1);
}

static void sideband_read__dlopen_is_told_at_once(void **state)
{
	static struct seen seen;
	const struct sideband_handlers handlers = handlers_of(&seen);
	OWNED(sideband) struct sideband *sideband = NULL;
	const struct mapping *mapping = NULL;
	uint64_t time_ns[2], read_ns;
	int done[2];
	pid_t pid;

	(void)state;
	open_or_skip(NULL, &sideband);
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(pipe(done), 0);
	pid = start_dlopen(done[1]);
	seen.tgid = (uint32_t)pid;
	for (int i = 0; i < 100 && !mapping; i++) {
		struct pollfd wanted = {.fd = sideband_fd(sideband), .events = POLLIN};

		poll(&wanted, 1, 20);
		assert_int_equal(collect_and_deliver(sideband, &handlers), 0);
		mapping = seen_path(&seen, "/" RARE_LIBRARY);
	}
	read_ns = mono_ns();
	assert_int_equal(read(done[0], time_ns, sizeof(time_ns)), sizeof(time_ns));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(done[0]);
	close(done[1]);
	if (!time_ns[1]) {
		print_message("skipped: no " RARE_LIBRARY " to load\n");
		skip();
	}
	assert_non_null(mapping);
	assert_true(mapping->time_ns >= time_ns[0] && mapping->time_ns <= time_ns[1]);
	print_message("told %.3f ms after the mapping\n",
		      (double)(read_ns - mapping->time_ns) / NS_PER_MS);
}

static int compare_with_table(void *context, const struct mapping *mapping)
{
	const struct process *process = context;

	for (size_t i = 0; i < process->mapping_count; i++) {
		const struct mapping *known = &process->mapping[i];

		if (known->start != mapping->start || known->end != mapping->end)
			continue;
		assert_int_equal(known->offset, mapping->offset);
		assert_string_equal(known->path, mapping->path);
		return 0;
	}
	print_message("not in the table: %s\n", mapping->path);
	return -ENOENT;
}

/* After fork and exec the table must hold what /proc/PID/maps shows, and no more. */
static void sideband_read__table_agrees_with_proc_maps(void **state)
{
	static struct seen seen;
	const struct sideband_handlers handlers = handlers_of(&seen);
	OWNED(process_table) struct process_table *table = NULL;
	OWNED(sideband) struct sideband *sideband = NULL;
	const struct pp_process_id self = {(uint32_t)getpid(), 1};
	struct process *process;
	uint64_t fork_ns;
	int go[2];
	char byte;
	pid_t pid;

	(void)state;
	open_or_skip(NULL, &sideband);
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(pipe(go), 0);
	assert_int_equal(process_table_new(&table), 0);
	seen.table = table;
	process_table_add(table, self, 1, 1, &process);
	assert_int_equal(process_table_read_maps(table, process, NULL), 0);
	pid = fork();
	if (pid == 0) {
		if (read(go[0], &byte, 1) == 1)
			execl("/bin/sleep", "sleep", "60", NULL);
		_exit(127);
	}
	fork_ns = mono_ns();
	process_table_fork(table, self, (struct pp_process_id){(uint32_t)pid, 2}, fork_ns);
	/* As the kernel side tells of its execve. */
	process_table_new_context(table, (uint32_t)pid, mono_ns());
	assert_int_equal(write(go[1], "x", 1), 1);
	/* Until the last of it, libc, is there. */
	seen.tgid = (uint32_t)pid;
	for (int i = 0; i < 100 && !seen_path(&seen, "/libc.so.6"); i++) {
		wait_readable(sideband);
		assert_int_equal(collect_and_deliver(sideband, &handlers), 0);
	}
	process_table_exec(table, (struct pp_process_id){(uint32_t)pid, 2},
			   (struct pp_process_id){(uint32_t)pid, 3}, mono_ns());
	process = process_table_find(table, (struct pp_process_id){(uint32_t)pid, 3});
	size_t count = process->mapping_count;

	assert_int_equal(proc_maps_read((uint32_t)pid, compare_with_table, process, NULL), 0);
	process->mappings_changed = false;
	assert_int_equal(process_table_read_maps(table, process, NULL), 0);
	assert_int_equal(process->mapping_count, count);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(go[0]);
	close(go[1]);
}

/* Maps and unmaps `count` times a page for execution, at addresses that tell them apart. */
static void map_pages(size_t count)
{
	char *area = mmap(NULL, (count + 1) * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < count; i++)
		mmap(area + i * 8192, 4096, PROT_READ | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void sideband_read__records_that_wrap_around_the_ring_are_whole(void **state)
{
	static struct seen seen;
	const struct sideband_options options = {.ring_bytes = 4096};
	const struct sideband_handlers handlers = handlers_of(&seen);
	OWNED(sideband) struct sideband *sideband = NULL;
	struct sideband_stats stats;
	size_t count = 0;

	(void)state;
	open_or_skip(&options, &sideband);
	for (int round = 0; round < 100; round++) {
		memset(&seen, 0, sizeof(seen));
		seen.tgid = (uint32_t)getpid();
		map_pages(7);
		assert_int_equal(collect_and_deliver(sideband, &handlers), 0);
		for (size_t i = 0; i < seen.count; i++) {
			assert_string_equal(seen.path[i], "");
			assert_int_equal(seen.mapping[i].end - seen.mapping[i].start, 4096);
			if (i)
				assert_int_equal(seen.mapping[i].start - seen.mapping[i - 1].start,
						 8192);
		}
		count += seen.count;
	}
	sideband_get_stats(sideband, &stats);
	assert_int_equal(stats.bad, 0);
	/* Others on this machine may fill the small ring. */
	if (!stats.lost)
		assert_int_equal(count, 700);
}

/* Each CPU has a ring, and its losses are told there. */
static void stay_on_this_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void sideband_read__full_ring_tells_how_many_are_lost(void **state)
{
	static struct seen seen;
	const struct sideband_options options = {.ring_bytes = 4096};
	const struct sideband_handlers handlers = handlers_of(&seen);
	OWNED(sideband) struct sideband *sideband = NULL;
	struct sideband_stats stats;

	(void)state;
	open_or_skip(&options, &sideband);
	stay_on_this_cpu();
	memset(&seen, 0, sizeof(seen));
	seen.tgid = (uint32_t)getpid();
	map_pages(500);
	collect_and_deliver(sideband, &handlers);
	/* The kernel tells with the next record that has room, on the same CPU. */
	for (int i = 0; i < 100 && seen.count + seen.lost < 500; i++) {
		map_pages(1);
		collect_and_deliver(sideband, &handlers);
	}
	sideband_get_stats(sideband, &stats);
	assert_true(seen.lost >= 400);
	assert_int_equal(stats.lost, seen.lost);
	assert_true(seen.count + seen.lost >= 500);
}

static void sideband_deliver__keeps_what_is_newer(void **state)
{
	static struct seen seen;
	const struct sideband_handlers handlers = handlers_of(&seen);
	OWNED(sideband) struct sideband *sideband = NULL;
	uint64_t between_ns;

	(void)state;
	open_or_skip(NULL, &sideband);
	memset(&seen, 0, sizeof(seen));
	seen.tgid = (uint32_t)getpid();
	map_pages(3);
	between_ns = mono_ns();
	map_pages(2);
	assert_int_equal(sideband_collect(sideband), 0);
	sideband_deliver(sideband, between_ns, &handlers);
	assert_int_equal(seen.count, 3);
	map_pages(4);
	/* Makes room and must not spoil what is kept. */
	assert_int_equal(sideband_collect(sideband), 0);
	sideband_deliver(sideband, between_ns, &handlers);
	assert_int_equal(seen.count, 3);
	sideband_deliver(sideband, UINT64_MAX, &handlers);
	assert_int_equal(seen.count, 9);
	assert_false(seen.is_out_of_order);
}

static void sideband_remove_cpu__and_back_again(void **state)
{
	static struct seen seen;
	const struct sideband_handlers handlers = handlers_of(&seen);
	OWNED(sideband) struct sideband *sideband = NULL;
	struct sideband_stats stats;
	uint32_t cpus;

	(void)state;
	open_or_skip(NULL, &sideband);
	memset(&seen, 0, sizeof(seen));
	seen.tgid = (uint32_t)getpid();
	sideband_get_stats(sideband, &stats);
	cpus = stats.cpus;
	assert_int_equal(sideband_add_cpu(sideband, 0), -EEXIST);
	assert_int_equal(sideband_remove_cpu(sideband, 0), 0);
	assert_int_equal(sideband_remove_cpu(sideband, 0), -ENOENT);
	sideband_get_stats(sideband, &stats);
	assert_int_equal(stats.cpus, cpus - 1);
	assert_int_equal(sideband_add_cpu(sideband, 0), 0);
	assert_true(sideband_add_cpu(sideband, 8000) < 0);
	map_pages(5);
	wait_readable(sideband);
	assert_int_equal(collect_and_deliver(sideband, &handlers), 0);
	assert_int_equal(seen.count, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sideband_read__exec_with_inodes),
		cmocka_unit_test(sideband_read__dlopen_is_told_at_once),
		cmocka_unit_test(sideband_read__table_agrees_with_proc_maps),
		cmocka_unit_test(sideband_read__records_that_wrap_around_the_ring_are_whole),
		cmocka_unit_test(sideband_read__full_ring_tells_how_many_are_lost),
		cmocka_unit_test(sideband_deliver__keeps_what_is_newer),
		cmocka_unit_test(sideband_remove_cpu__and_back_again),
	};

	return cmocka_run_group_tests_name("discover/sideband", tests, NULL, NULL);
}
