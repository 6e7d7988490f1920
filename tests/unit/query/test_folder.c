/* SPDX-License-Identifier: BSD-2-Clause */
/* Files without content in a directory: what they hold is what the fakes say, and somebody merges
 * them between two calls. */
#include "query/folder.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define TEXT_BYTES 512U
#define CALLS_MAX 16U

/* The windows of merged files, by their start: 10 at 1000, 1010, 1020; those of others are their
 * names. */
struct fixture {
	char directory[64];
	struct folder folder;
	char text[TEXT_BYTES]; /* what was read: "1000 1010 " */
	void (*before_call)(struct fixture *f, unsigned int call);
	unsigned int calls;
};

static void path_of(const struct fixture *f, const char *name, char path[128])
{
	snprintf(path, 128, "%s/%s", f->directory, name);
}

static void touch(const struct fixture *f, const char *name)
{
	char path[128];
	int fd;

	path_of(f, name, path);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void forget(const struct fixture *f, const char *name)
{
	char path[128];

	path_of(f, name, path);
	assert_int_equal(unlink(path), 0);
}

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){0};
	snprintf(f->directory, sizeof(f->directory), "/tmp/test_folder.XXXXXX");
	assert_non_null(mkdtemp(f->directory));
}

static void fixture_release(struct fixture *f)
{
	char command[128];

	folder_release(&f->folder);
	snprintf(command, sizeof(command), "rm -rf %s", f->directory);
	assert_int_equal(system(command), 0);
}

static void note(struct fixture *f, const char *before, uint64_t start_ms, const char *behind)
{
	const size_t size = strlen(f->text);

	snprintf(f->text + size, sizeof(f->text) - size, "%s%lu%s ", before,
		 (unsigned long)start_ms, behind);
}

/* A merged file of 30 ms has three windows. */
static void list_marks(uint64_t start_ms,
		       void (*on_window)(void *context, const struct window_mark *mark),
		       void *context)
{
	for (uint64_t i = 0; i < 3; i++) {
		const struct window_mark mark = {.start_ms = start_ms + 10 * i, .duration_ms = 10};

		on_window(context, &mark);
	}
}

int profile_windows_list(int fd, void (*on_window)(void *context, const struct window_mark *mark),
			 void *context)
{
	char link[64], path[256] = "";
	struct store_file file = {0};

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	assert_true(readlink(link, path, sizeof(path) - 1) > 0);
	assert_true(store_file_parse(strrchr(path, '/') + 1, &file));
	list_marks(file.start_ms, on_window, context);
	return 0;
}

static void read_mark(void *context, const struct window_mark *mark)
{
	struct fixture *f = context;

	if (folder_wants(&f->folder, mark))
		note(f, "", mark->start_ms, "");
}

static int read_file(void *context, const char *path, const char *kind)
{
	struct fixture *f = context;
	struct store_file file = {0};

	assert_true(f->calls < CALLS_MAX);
	if (f->before_call)
		f->before_call(f, f->calls);
	f->calls++;
	if (access(path, F_OK))
		return -ENOENT;
	assert_true(store_file_parse(strrchr(path, '/') + 1, &file));
	assert_string_equal(file.kind, kind);
	if (file.is_merged)
		list_marks(file.start_ms, read_mark, f);
	else
		note(f, "", file.start_ms, "");
	return 0;
}

static int read_wall(void *context, const char *cpu_path, const char *offcpu_path)
{
	struct fixture *f = context;
	struct store_file file = {0};

	assert_true(store_file_parse(strrchr(cpu_path, '/') + 1, &file));
	note(f, "", file.start_ms, offcpu_path ? "=both" : "=cpu");
	return 0;
}

static int add_empty(void *context, const struct window_mark *mark)
{
	note(context, "(", mark->start_ms, ")");
	return 0;
}

static void read_kind(struct fixture *f, const char *kind, const struct store_range *range)
{
	const struct folder_calls calls = {
		.read = read_file, .read_wall = read_wall, .add_empty = add_empty, .context = f};

	assert_int_equal(folder_list(&f->folder, f->directory, range), 0);
	assert_int_equal(folder_read(&f->folder, f->directory, kind, &calls), 0);
}

static const struct store_range all = {.until_ms = UINT64_MAX};

static void folder_read__windows_of_a_range_once_each(void **state)
{
	const struct store_range range = {.since_ms = 1015, .until_ms = 1100};
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f);
	touch(&f, "1000-30-cpu.merged.pb.gz");
	touch(&f, "1030-10-cpu.pb.gz");
	touch(&f, "1030-10-gil.pb.gz");
	read_kind(&f, "cpu", &range);
	assert_string_equal(f.text, "1010 1020 1030 ");
}

static void folder_read__what_a_merging_file_lists_is_not_read_again(void **state)
{
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f);
	touch(&f, "1000-30-cpu.merging.pb.gz");
	touch(&f, "1010-10-cpu.pb.gz");
	touch(&f, "1020-11-cpu.pb.gz"); /* another one: the clock was set back */
	read_kind(&f, "cpu", &all);
	assert_string_equal(f.text, "1000 1010 1020 1020 ");
	/* When it is done, what begins at the same time is of another time. */
	f.text[0] = '\0';
	folder_release(&f.folder);
	forget(&f, "1000-30-cpu.merging.pb.gz");
	touch(&f, "1000-30-cpu.merged.pb.gz");
	read_kind(&f, "cpu", &all);
	assert_string_equal(f.text, "1000 1010 1020 1010 1020 ");
}

/* The first file was read when all are merged. */
static void merge_at_second_call(struct fixture *f, unsigned int call)
{
	if (call != 1)
		return;
	touch(f, "1000-30-cpu.merged.pb.gz");
	forget(f, "1000-10-cpu.pb.gz");
	forget(f, "1010-10-cpu.pb.gz");
	forget(f, "1020-10-cpu.pb.gz");
}

static void folder_read__files_that_are_merged_meanwhile_are_found_again(void **state)
{
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f);
	touch(&f, "1000-10-cpu.pb.gz");
	touch(&f, "1010-10-cpu.pb.gz");
	touch(&f, "1020-10-cpu.pb.gz");
	f.before_call = merge_at_second_call;
	read_kind(&f, "cpu", &all);
	assert_string_equal(f.text, "1000 1010 1020 ");
}

static void finish_at_first_call(struct fixture *f, unsigned int call)
{
	if (call)
		return;
	touch(f, "1000-30-cpu.merged.pb.gz");
	forget(f, "1000-30-cpu.merging.pb.gz");
	forget(f, "1020-10-cpu.pb.gz");
}

static void folder_read__merging_file_that_is_done_meanwhile_is_read(void **state)
{
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f);
	touch(&f, "1000-30-cpu.merging.pb.gz");
	touch(&f, "1020-10-cpu.pb.gz");
	f.before_call = finish_at_first_call;
	read_kind(&f, "cpu", &all);
	assert_string_equal(f.text, "1000 1010 1020 ");
}

static void forget_at_first_call(struct fixture *f, unsigned int call)
{
	if (!call)
		forget(f, "1000-10-cpu.pb.gz");
}

static void folder_read__files_that_are_deleted_are_no_error(void **state)
{
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f);
	touch(&f, "1000-10-cpu.pb.gz");
	touch(&f, "1010-10-cpu.pb.gz");
	f.before_call = forget_at_first_call;
	read_kind(&f, "cpu", &all);
	assert_string_equal(f.text, "1010 ");
}

static void folder_read__windows_that_only_cpu_has_are_empty(void **state)
{
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f);
	touch(&f, "1000-30-cpu.merged.pb.gz");
	touch(&f, "1010-10-gil.pb.gz");
	touch(&f, "1030-10-cpu.pb.gz");
	touch(&f, "1040-10-cpu.pb.gz");
	touch(&f, "1040-10-gil.pb.gz");
	read_kind(&f, "gil", &all);
	assert_string_equal(f.text, "1010 (1000) (1020) (1030) 1040 ");
}

static void folder_read__merged_files_of_the_same_times_have_the_same_windows(void **state)
{
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f);
	touch(&f, "1000-30-cpu.merged.pb.gz");
	touch(&f, "1000-30-gil.merged.pb.gz");
	read_kind(&f, "gil", &all);
	assert_string_equal(f.text, "1000 1010 1020 ");
}

static void folder_read__wall_is_made_where_it_has_no_file(void **state)
{
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f);
	touch(&f, "1000-10-cpu.pb.gz");
	touch(&f, "1000-10-offcpu.pb.gz");
	touch(&f, "1000-10-wall.pb.gz");
	touch(&f, "1010-10-cpu.pb.gz");
	touch(&f, "1010-10-offcpu.pb.gz");
	touch(&f, "1020-10-cpu.pb.gz");
	touch(&f, "1030-30-cpu.merged.pb.gz");
	touch(&f, "1030-30-offcpu.merged.pb.gz");
	read_kind(&f, "wall", &all);
	assert_string_equal(f.text, "1000 1010=both 1020=cpu 1030=both ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folder_read__windows_of_a_range_once_each),
		cmocka_unit_test(folder_read__what_a_merging_file_lists_is_not_read_again),
		cmocka_unit_test(folder_read__files_that_are_merged_meanwhile_are_found_again),
		cmocka_unit_test(folder_read__merging_file_that_is_done_meanwhile_is_read),
		cmocka_unit_test(folder_read__files_that_are_deleted_are_no_error),
		cmocka_unit_test(folder_read__windows_that_only_cpu_has_are_empty),
		cmocka_unit_test(folder_read__merged_files_of_the_same_times_have_the_same_windows),
		cmocka_unit_test(folder_read__wall_is_made_where_it_has_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
