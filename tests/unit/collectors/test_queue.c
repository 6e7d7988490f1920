/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/queue.h"

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Files directly in the directory, which is a store, too. */
#define START_MS 1795200000000ULL
#define WINDOW_MS 10000U

static char directory[] = "/tmp/test_queue.XXXXXX";
static int dir_fd;

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return 1;
	dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0;
}

static int remove_directory(void **state)
{
	(void)state;
	close(dir_fd);
	return rmdir(directory);
}

static uint64_t at_ms(unsigned int window)
{
	return START_MS + (uint64_t)window * WINDOW_MS;
}

static struct store_file file_of(unsigned int window, unsigned int windows, const char *kind)
{
	struct store_file file = {.start_ms = at_ms(window),
				  .duration_ms = windows * WINDOW_MS,
				  .is_merged = windows > 1};

	snprintf(file.kind, sizeof(file.kind), "%s", kind);
	return file;
}

static void put(unsigned int window, unsigned int windows, const char *kind)
{
	struct store_file file = file_of(window, windows, kind);
	char name[STORE_FILE_CHARS];
	int fd;

	store_file_name(&file, name);
	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void drop(unsigned int window, unsigned int windows, const char *kind)
{
	struct store_file file = file_of(window, windows, kind);
	char name[STORE_FILE_CHARS];

	store_file_name(&file, name);
	assert_int_equal(unlinkat(dir_fd, name, 0), 0);
}

static struct push_queue queue_of(void)
{
	return (struct push_queue){.directory = directory,
				   .kind_bits = 1U << PP_PROFILE_CPU | 1U << PP_PROFILE_OFFCPU};
}

static uint64_t list_late(struct push_queue *queue, const struct push_cursor *cursor,
			  uint64_t *ret_gone)
{
	uint64_t late = 99;

	assert_int_equal(push_queue_list(queue, cursor, ret_gone, &late), 0);
	return late;
}

static uint64_t list(struct push_queue *queue, const struct push_cursor *cursor)
{
	uint64_t gone = 99;

	assert_int_equal(list_late(queue, cursor, &gone), 0);
	return gone;
}

/* Takes the first file, which must be this one. */
static void take(struct push_queue *queue, const struct push_cursor *cursor, unsigned int window,
		 enum pp_profile kind)
{
	enum pp_profile found;
	const struct store_entry *entry = push_queue_first(queue, cursor, &found);

	assert_non_null(entry);
	assert_int_equal(entry->file.start_ms, at_ms(window));
	assert_int_equal(found, kind);
	push_queue_pass(queue);
}

static void push_queue__files_behind_the_cursor_of_their_kind_oldest_first(void **state)
{
	struct push_queue queue = queue_of();
	struct push_cursor cursor = {0};
	enum pp_profile kind;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		put(i, 1, "cpu");
		put(i, 1, "offcpu");
		put(i, 1, "wall"); /* not one of the sink's */
	}
	cursor.sent_ms[PP_PROFILE_CPU] = at_ms(1);
	cursor.sent_ms[PP_PROFILE_OFFCPU] = at_ms(0);
	assert_int_equal(list(&queue, &cursor), 0);
	take(&queue, &cursor, 1, PP_PROFILE_OFFCPU);
	take(&queue, &cursor, 2, PP_PROFILE_CPU);
	take(&queue, &cursor, 2, PP_PROFILE_OFFCPU);
	assert_null(push_queue_first(&queue, &cursor, &kind));
	push_queue_release(&queue);
	for (unsigned int i = 0; i < 3; i++) {
		drop(i, 1, "cpu");
		drop(i, 1, "offcpu");
		drop(i, 1, "wall");
	}
}

static void push_queue__a_merged_file_is_read_once_when_the_cursor_is_inside(void **state)
{
	struct push_queue queue = queue_of();
	struct push_cursor cursor = {0};
	enum pp_profile kind;

	(void)state;
	put(0, 30, "cpu");
	cursor.sent_ms[PP_PROFILE_CPU] = at_ms(7);
	list(&queue, &cursor);
	take(&queue, &cursor, 0, PP_PROFILE_CPU);
	/* The cursor may not move: all that was left had no samples. */
	list(&queue, &cursor);
	assert_null(push_queue_first(&queue, &cursor, &kind));
	cursor.sent_ms[PP_PROFILE_CPU] = at_ms(30);
	push_queue_release(&queue);
	queue = queue_of();
	list(&queue, &cursor);
	assert_null(push_queue_first(&queue, &cursor, &kind));
	push_queue_release(&queue);
	drop(0, 30, "cpu");
}

static void push_queue__what_retention_deletes_is_counted_and_what_is_merged_is_not(void **state)
{
	struct push_queue queue = queue_of();
	struct push_cursor cursor = {0};

	(void)state;
	for (unsigned int i = 0; i < 5; i++)
		put(i, 1, "cpu");
	list(&queue, &cursor);
	take(&queue, &cursor, 0, PP_PROFILE_CPU); /* is being sent: it is not waiting any more */
	drop(0, 1, "cpu");
	drop(1, 1, "cpu");
	assert_int_equal(list(&queue, &cursor), 1);
	drop(2, 1, "cpu");
	drop(3, 1, "cpu");
	put(2, 2, "cpu");
	assert_int_equal(list(&queue, &cursor), 0);
	drop(2, 2, "cpu");
	assert_int_equal(list(&queue, &cursor), 1);
	drop(4, 1, "cpu");
	assert_int_equal(list(&queue, &cursor), 1);
	push_queue_release(&queue);
}

static void push_queue__what_comes_in_front_of_the_cursor_is_late_once(void **state)
{
	struct push_queue queue = queue_of();
	struct push_cursor cursor = {0};
	uint64_t gone;

	(void)state;
	for (unsigned int i = 1; i < 100; i += 2)
		put(i, 1, "cpu");
	cursor.sent_ms[PP_PROFILE_CPU] = cursor.sent_ms[PP_PROFILE_OFFCPU] = at_ms(97);
	list(&queue, &cursor);
	take(&queue, &cursor, 99, PP_PROFILE_CPU);
	cursor.sent_ms[PP_PROFILE_CPU] = at_ms(99);
	put(90, 1, "cpu");
	put(91, 1, "offcpu");
	put(92, 1, "wall");   /* not one of the sink's */
	put(98, 1, "offcpu"); /* behind the cursor of its kind */
	put(60, 5, "cpu");    /* others, merged */
	assert_int_equal(list_late(&queue, &cursor, &gone), 2);
	assert_int_equal(gone, 0);
	assert_int_equal(list_late(&queue, &cursor, &gone), 0);
	push_queue_release(&queue);
	for (unsigned int i = 1; i < 100; i += 2)
		drop(i, 1, "cpu");
	drop(90, 1, "cpu");
	drop(91, 1, "offcpu");
	drop(92, 1, "wall");
	drop(98, 1, "offcpu");
	drop(60, 5, "cpu");
}

static void push_queue_begin__is_behind_all_that_is_there(void **state)
{
	struct push_queue queue = queue_of();
	struct push_cursor cursor;
	enum pp_profile kind;

	(void)state;
	put(0, 3, "cpu");
	put(3, 1, "cpu");
	put(3, 1, "offcpu");
	assert_int_equal(push_queue_begin(&queue, &cursor), 0);
	list(&queue, &cursor);
	assert_null(push_queue_first(&queue, &cursor, &kind));
	put(4, 1, "cpu");
	put(4, 1, "offcpu");
	list(&queue, &cursor);
	take(&queue, &cursor, 4, PP_PROFILE_CPU);
	take(&queue, &cursor, 4, PP_PROFILE_OFFCPU);
	push_queue_release(&queue);
	drop(0, 3, "cpu");
	for (unsigned int i = 3; i < 5; i++) {
		drop(i, 1, "cpu");
		drop(i, 1, "offcpu");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push_queue__files_behind_the_cursor_of_their_kind_oldest_first),
		cmocka_unit_test(push_queue__a_merged_file_is_read_once_when_the_cursor_is_inside),
		cmocka_unit_test(
			push_queue__what_retention_deletes_is_counted_and_what_is_merged_is_not),
		cmocka_unit_test(push_queue__what_comes_in_front_of_the_cursor_is_late_once),
		cmocka_unit_test(push_queue_begin__is_behind_all_that_is_there),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
