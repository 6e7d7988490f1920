/* SPDX-License-Identifier: BSD-2-Clause */
/* The child that parses files is a part of this program. */
#include "symbolize/perf_map.h"

#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include "../files/here.h"
#include "base/io.h"
#include "files/check.h"
#include "files/client.h"
#include "files/decode.h"

#define INNER_PID 7U

/* Adds a text's lines as they come from the child. */
static void add_text(struct perf_map *map, const char *text, size_t size)
{
	OWNED_MEM uint8_t *memory = malloc(FOREIGN_MEMORY_BYTES);
	const struct foreign_lines *lines = (struct foreign_lines *)memory;
	OWNED_FD int fd = memfd_create("map", MFD_CLOEXEC);
	uint32_t bytes;

	assert_int_equal(write_full(fd, text, size), 0);
	for (uint64_t at = 0; at < size; at = lines->next) {
		assert_int_equal(
			perf_lines_read(fd, at, size, memory, FOREIGN_MEMORY_BYTES, &bytes), 0);
		assert_true(foreign_lines_are_sound(lines, bytes, at, size));
		assert_int_equal(perf_map_add(map, lines), 0);
		assert_true(lines->next > at);
	}
}

static struct perf_map *map_of(const char *text)
{
	struct perf_map *map = NULL;

	assert_int_equal(perf_map_new(&map), 0);
	add_text(map, text, strlen(text));
	return map;
}

static void assert_name(const struct perf_map *map, uint64_t address, const char *want)
{
	const char *name = NULL;
	uint64_t start;
	int err = perf_map_find(map, address, &name, &start);

	assert_int_equal(err, want ? 0 : -ENOENT);
	if (want)
		assert_string_equal(name, want);
}

static void perf_map__finds_by_range_in_any_order(void **state)
{
	OWNED(perf_map) struct perf_map *map = map_of("2000 10 second one\n"
						      "0x1000 0x20 first\n"
						      "7f0000000000 5 last\n");

	(void)state;
	assert_name(map, 0xfff, NULL);
	assert_name(map, 0x1000, "first");
	assert_name(map, 0x101f, "first");
	assert_name(map, 0x1020, NULL);
	assert_name(map, 0x200f, "second one");
	assert_name(map, 0x7f0000000004, "last");
}

static void perf_map__later_entry_wins_where_memory_was_reused(void **state)
{
	OWNED(perf_map) struct perf_map *map = map_of("1000 100 old\n"
						      "1000 40 new\n"
						      "1080 10 newer\n");

	(void)state;
	assert_name(map, 0x1000, "new");
	assert_name(map, 0x1085, "newer");
	assert_name(map, 0x1095, "old");
}

static void perf_map__lines_that_do_not_parse_are_skipped(void **state)
{
	OWNED(perf_map) struct perf_map *map = map_of("\n"
						      "zz 10 a\n"
						      "1000\n"
						      "1000 10\n"
						      "1000 10 \n"
						      "1000 0 empty\n"
						      "11112222333344445 10 wide\n"
						      "ffffffffffffffff 10 wraps\n"
						      "1000 100000000 huge\n"
						      "-1000 10 negative\n"
						      "3000 10 g\x01od\r\n");

	(void)state;
	assert_name(map, 0x3000, "g?od");
}

static void perf_map__python_trampolines_are_left_out(void **state)
{
	OWNED(perf_map) struct perf_map *map = map_of("1000 b py::spam:/srv/spam.py\n"
						      "2000 b node::spam\n");

	(void)state;
	assert_name(map, 0x1000, NULL);
	assert_name(map, 0x2000, "node::spam");
}

static void perf_map__long_names_are_cut_and_memory_is_bounded(void **state)
{
	OWNED(perf_map) struct perf_map *map = NULL;
	char line[700];
	const char *name;
	uint64_t start;

	(void)state;
	assert_int_equal(perf_map_new(&map), 0);
	for (unsigned int i = 0; i < 4; i++) {
		/* 10 MiB a piece */
		const size_t pieces = 16384;
		OWNED_MEM char *text = malloc(pieces * sizeof(line));
		size_t size = 0;

		assert_non_null(text);
		for (size_t k = 0; k < pieces; k++)
			size += (size_t)snprintf(text + size, sizeof(line), "%zx 10 %0640d\n",
						 (i * pieces + k) * 16 + 4096, 1);
		add_text(map, text, size);
	}
	assert_int_equal(perf_map_find(map, 4096, &name, &start), 0);
	assert_int_equal(strlen(name), FOREIGN_LINE_NAME_BYTES);
	/* Arrays grow by doubling. */
	assert_true(perf_map_bytes(map) <= 3U * PERF_MAP_MAX_BYTES);
}

/* ---- the file ---- */

struct fixture {
	char root[64], path[128];
	struct foreign *foreign;
	pid_t pid; /* of a process with that root */
};

static pid_t live_in(const char *root)
{
	char told = 0;
	int pair[2];
	pid_t pid;

	assert_int_equal(pipe(pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (!chroot(root) || (!unshare(CLONE_NEWUSER) && !chroot(root)))
			(void)!write(pair[1], "y", 1);
		close(pair[1]);
		pause();
		_exit(0);
	}
	close(pair[1]);
	(void)!read(pair[0], &told, 1);
	close(pair[0]);
	if (told != 'y') {
		print_message("skipped: it may have no other root\n");
		skip();
	}
	return pid;
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	char directory[80];

	strcpy(fixture->root, "/tmp/test_perf_map.XXXXXX");
	assert_non_null(mkdtemp(fixture->root));
	snprintf(directory, sizeof(directory), "%s/tmp", fixture->root);
	assert_int_equal(mkdir(directory, 0755), 0);
	snprintf(fixture->path, sizeof(fixture->path), "%s/perf-7.map", directory);
	fixture->pid = live_in(fixture->root);
	assert_int_equal(foreign_new("", &fixture->foreign), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", fixture->root);
	assert_int_equal(system(command), 0);
	kill(fixture->pid, SIGKILL);
	assert_int_equal(waitpid(fixture->pid, NULL, 0), fixture->pid);
	foreign_free(fixture->foreign);
	free(fixture);
	return 0;
}

static void write_map(const struct fixture *fixture, const char *mode, const char *text)
{
	FILE *file = fopen(fixture->path, mode);

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(fixture->path, 0644), 0);
}

static int refresh(const struct fixture *fixture, struct perf_map *map, uint32_t uid,
		   int64_t started_s)
{
	const struct perf_map_source source = {.tid = fixture->pid,
					       .inner_pid = INNER_PID,
					       .uid = uid,
					       .started_s = started_s,
					       .max_bytes = 64U << 20,
					       .foreign = fixture->foreign,
					       .number = 1};
	size_t used;
	int result = perf_map_refresh(map, &source, &used);

	assert_int_equal(result == -EPERM, perf_map_refusal(map) != NULL);
	return result;
}

static void perf_map_refresh__reads_what_was_appended(void **state)
{
	const struct fixture *fixture = *state;
	OWNED(perf_map) struct perf_map *map = NULL;
	const uint32_t uid = getuid();

	assert_int_equal(perf_map_new(&map), 0);
	assert_int_equal(refresh(fixture, map, uid, 0), -ENOENT);
	write_map(fixture, "w", "1000 10 one\n2000 10 tw");
	assert_int_equal(refresh(fixture, map, uid, 0), 1);
	assert_int_equal(refresh(fixture, map, uid, 0), 0);
	assert_name(map, 0x1000, "one");
	assert_name(map, 0x2000, NULL);
	write_map(fixture, "a", "o\n");
	assert_int_equal(refresh(fixture, map, uid, 0), 1);
	assert_name(map, 0x1000, "one");
	assert_name(map, 0x2000, "two");
}

static void perf_map_refresh__shorter_file_is_read_anew(void **state)
{
	const struct fixture *fixture = *state;
	OWNED(perf_map) struct perf_map *map = NULL;

	assert_int_equal(perf_map_new(&map), 0);
	write_map(fixture, "w", "1000 10 one\n2000 10 two\n");
	assert_int_equal(refresh(fixture, map, getuid(), 0), 1);
	write_map(fixture, "w", "3000 10 three\n");
	assert_int_equal(refresh(fixture, map, getuid(), 0), 1);
	assert_name(map, 0x1000, NULL);
	assert_name(map, 0x3000, "three");
}

static void perf_map_refresh__file_of_another_is_eperm(void **state)
{
	const struct fixture *fixture = *state;
	OWNED(perf_map) struct perf_map *map = NULL;

	assert_int_equal(perf_map_new(&map), 0);
	write_map(fixture, "w", "1000 10 one\n");
	assert_int_equal(chmod(fixture->path, 0666), 0);
	assert_int_equal(refresh(fixture, map, getuid(), 0), -EPERM);
	assert_int_equal(chmod(fixture->path, 0644), 0);
	if (getuid() != 0)
		assert_int_equal(refresh(fixture, map, getuid() + 1, 0), -EPERM);
	else if (!chown(fixture->path, 12345, 12345))
		assert_int_equal(refresh(fixture, map, 54321, 0), -EPERM);
}

static void perf_map_refresh__file_from_before_the_process_is_enoent(void **state)
{
	const struct fixture *fixture = *state;
	const struct utimbuf old = {.actime = 1000, .modtime = 1000};
	OWNED(perf_map) struct perf_map *map = NULL;

	assert_int_equal(perf_map_new(&map), 0);
	write_map(fixture, "w", "1000 10 one\n");
	assert_int_equal(utime(fixture->path, &old), 0);
	assert_int_equal(refresh(fixture, map, getuid(), 1001), -ENOENT);
	assert_int_equal(refresh(fixture, map, getuid(), 1000), 1);
}

static void perf_map_refresh__line_longer_than_a_read_is_passed_over(void **state)
{
	const struct fixture *fixture = *state;
	OWNED(perf_map) struct perf_map *map = NULL;
	OWNED_MEM char *line = malloc(200001);

	assert_non_null(line);
	memset(line, 'x', 200000);
	line[200000] = '\0';
	assert_int_equal(perf_map_new(&map), 0);
	write_map(fixture, "w", "1000 10 one\n");
	write_map(fixture, "a", line);
	write_map(fixture, "a", "\n2000 10 two\n");
	assert_int_equal(refresh(fixture, map, getuid(), 0), 1);
	assert_name(map, 0x1000, "one");
	assert_name(map, 0x2000, "two");
}

static void perf_map_refresh__only_the_process_own_plain_file(void **state)
{
	const struct fixture *fixture = *state;
	OWNED(perf_map) struct perf_map *map = NULL;
	char other[160], moved[160];

	assert_int_equal(perf_map_new(&map), 0);
	snprintf(other, sizeof(other), "%s/other", fixture->root);
	snprintf(moved, sizeof(moved), "%s/moved", fixture->root);
	write_map(fixture, "w", "1000 10 one\n");
	/* Links: to the file, of the file, and on the way. */
	assert_int_equal(rename(fixture->path, other), 0);
	assert_int_equal(symlink("../other", fixture->path), 0);
	assert_int_equal(refresh(fixture, map, getuid(), 0), -EPERM);
	assert_int_equal(unlink(fixture->path), 0);
	assert_int_equal(link(other, fixture->path), 0);
	assert_int_equal(refresh(fixture, map, getuid(), 0), -EPERM);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(refresh(fixture, map, getuid(), 0), 1);
	snprintf(other, sizeof(other), "%s/tmp", fixture->root);
	assert_int_equal(rename(other, moved), 0);
	assert_int_equal(symlink("moved", other), 0);
	assert_int_equal(refresh(fixture, map, getuid(), 0), -EPERM);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(rename(moved, other), 0);
	/* Root's, where the process is not root. */
	assert_int_equal(refresh(fixture, map, getuid() + 1, 0), -EPERM);
	/* What would wait. */
	assert_int_equal(unlink(fixture->path), 0);
	assert_int_equal(mkfifo(fixture->path, 0644), 0);
	assert_int_equal(refresh(fixture, map, getuid(), 0), -EPERM);
}

static void perf_map_refresh__reads_so_much_at_a_time(void **state)
{
	const struct fixture *fixture = *state;
	OWNED(perf_map) struct perf_map *map = NULL;
	struct perf_map_source source = {.tid = fixture->pid,
					 .inner_pid = INNER_PID,
					 .uid = getuid(),
					 .max_bytes = 1U << 17,
					 .foreign = fixture->foreign,
					 .number = 1};
	size_t used, all = 0;
	unsigned int calls = 0;
	char line[64];

	assert_int_equal(perf_map_new(&map), 0);
	write_map(fixture, "w", "");
	/* Backwards: every piece goes before what was read. */
	for (unsigned int i = 0; i < 20; i++) {
		OWNED_MEM char *text = malloc(1U << 16);
		size_t size = 0;

		assert_non_null(text);
		for (unsigned int k = 0; k < 1000; k++)
			size += (size_t)snprintf(text + size, (1U << 16) - size, "%x 8 f%u\n",
						 0x10000000 - (i * 1000 + k) * 16, i * 1000 + k);
		write_map(fixture, "a", text);
	}
	while (perf_map_refresh(map, &source, &used) == 1) {
		assert_true(used <= source.max_bytes);
		all += used;
		calls++;
	}
	assert_true(calls > 2 && all >= 20U * 10000);
	for (unsigned int i = 0; i < 20000; i += 7) {
		snprintf(line, sizeof(line), "f%u", i);
		assert_name(map, 0x10000000 - i * 16 + 7, line);
	}
	source.max_bytes = 0;
	assert_int_equal(perf_map_refresh(map, &source, &used), 0);
}

/* An answer has 2 MiB, and these lines take 3. */
static void perf_map_refresh__answer_that_is_full_is_gone_on_from(void **state)
{
	const struct fixture *fixture = *state;
	OWNED(perf_map) struct perf_map *map = NULL;
	OWNED_MEM char *text = malloc(1U << 20);
	struct foreign_stats stats;
	size_t size = 0, lines = 0;

	assert_non_null(text);
	for (; size < (1U << 20) - 32; lines++)
		size += (size_t)sprintf(text + size, "1 1 a\n");
	write_map(fixture, "w", text);
	assert_int_equal(perf_map_new(&map), 0);
	assert_int_equal(refresh(fixture, map, getuid(), 0), 1);
	foreign_get_stats(fixture->foreign, &stats);
	assert_int_equal(stats.count[FOREIGN_LINES], 2);
	assert_int_equal(refresh(fixture, map, getuid(), 0), 0);
	foreign_get_stats(fixture->foreign, &stats);
	assert_int_equal(stats.count[FOREIGN_LINES], 2); /* nothing is new */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perf_map__finds_by_range_in_any_order),
		cmocka_unit_test(perf_map__later_entry_wins_where_memory_was_reused),
		cmocka_unit_test(perf_map__lines_that_do_not_parse_are_skipped),
		cmocka_unit_test(perf_map__python_trampolines_are_left_out),
		cmocka_unit_test(perf_map__long_names_are_cut_and_memory_is_bounded),
		cmocka_unit_test_setup_teardown(perf_map_refresh__reads_what_was_appended, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(perf_map_refresh__shorter_file_is_read_anew, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(perf_map_refresh__file_of_another_is_eperm, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			perf_map_refresh__file_from_before_the_process_is_enoent, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			perf_map_refresh__line_longer_than_a_read_is_passed_over, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(perf_map_refresh__only_the_process_own_plain_file,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(perf_map_refresh__reads_so_much_at_a_time, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			perf_map_refresh__answer_that_is_full_is_gone_on_from, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("symbolize/perf_map", tests, NULL, NULL);
}
