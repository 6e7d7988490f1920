/* SPDX-License-Identifier: BSD-2-Clause */
/* Files in a temporary directory, "mapped" by this process: they are opened again by their
 * paths. */
#include "attach/file_table.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../files/here.h"
#include "files/client.h"
#include "files/opener.h"

#define FILES 12U

static size_t closed; /* in the child that parses, too */
static struct opener *opener;

struct opener *foreign_opener(const struct foreign *foreign)
{
	(void)foreign;
	return opener;
}

void foreign_close(struct foreign *foreign, uint32_t number)
{
	(void)foreign, (void)number;
	closed++;
}

struct fixture {
	char directory[64];
	struct file_descriptors descriptors;
	struct file file[FILES];
	char path[FILES][80];
};

static struct mapping mapping_of(const struct file *file)
{
	return (struct mapping){.start = 0x1000,
				.end = 0x2000,
				.key = {.major = file->identity.key.major,
					.minor = file->identity.key.minor,
					.inode = file->identity.key.inode},
				.path = file->path};
}

static const struct process *self(void)
{
	static struct process process;

	process.id.tgid = (uint32_t)getpid();
	return &process;
}

static int write_file(const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "text", 4), 4);
	return fd;
}

/* The table's way of taking in a file that a process maps. */
static void take(struct fixture *fixture, size_t i)
{
	struct file *file = &fixture->file[i];
	struct opener_file opened = {.child = opener_child(opener)};
	struct mapping mapping;

	*file = (struct file){.id = PP_FILE_FIRST + (uint32_t)i, .opened.fd = -1, .references = 1};
	file->path = fixture->path[i];
	opened.fd = write_file(file->path);
	assert_int_equal(file_identity_read(opened.fd, &file->identity), 0);
	file_descriptors_put(&fixture->descriptors, file, &opened);
	mapping = mapping_of(file);
	file_descriptors_note(file, self(), &mapping);
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/test_descriptors.XXXXXX");
	assert_non_null(mkdtemp(fixture->directory));
	fixture->descriptors.max = 8;
	for (size_t i = 0; i < FILES; i++)
		snprintf(fixture->path[i], sizeof(fixture->path[i]), "%s/%zu", fixture->directory,
			 i);
	closed = 0;
	assert_int_equal(opener_new("", &opener), 0);
	file_descriptors_update(&fixture->descriptors);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	for (size_t i = 0; i < FILES; i++) {
		if (fixture->file[i].path)
			file_descriptors_close(&fixture->descriptors, &fixture->file[i]);
		unlink(fixture->path[i]);
	}
	assert_int_equal(fixture->descriptors.open, 0);
	assert_null(fixture->descriptors.least_used);
	assert_int_equal(rmdir(fixture->directory), 0);
	opener_free(opener);
	free(fixture);
	return 0;
}

static void init__leaves_half_of_the_limit_to_others(void **state)
{
	struct file_descriptors descriptors = {0};
	struct rlimit before, limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = 200;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	file_descriptors_init(&descriptors, NULL);
	assert_int_equal(descriptors.max, 100);
	limit.rlim_cur = 10;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	file_descriptors_init(&descriptors, NULL);
	assert_int_equal(descriptors.max, 8);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void put__beyond_the_bound_closes_what_was_used_least(void **state)
{
	struct fixture *fixture = *state;
	for (size_t i = 0; i < 8; i++)
		take(fixture, i);
	assert_int_equal(file_descriptors_get(&fixture->descriptors, &fixture->file[0]), 0);
	take(fixture, 8);
	assert_int_equal(fixture->descriptors.open, 8);
	assert_true(fixture->file[0].opened.fd >= 0);
	assert_int_equal(fixture->file[1].opened.fd, -1);
	assert_int_equal(closed, 1);
	take(fixture, 9);
	assert_int_equal(fixture->file[2].opened.fd, -1);
	assert_true(fixture->file[3].opened.fd >= 0);
}

static void get__opens_a_closed_file_again(void **state)
{
	struct fixture *fixture = *state;
	struct file *file = &fixture->file[0];
	struct stat status;

	take(fixture, 0);
	file_descriptors_close(&fixture->descriptors, file);
	assert_int_equal(file->opened.fd, -1);
	assert_int_equal(file_descriptors_get(&fixture->descriptors, file), 0);
	assert_int_equal(fstat(file->opened.fd, &status), 0);
	assert_int_equal(status.st_ino, file->identity.key.inode);
	assert_int_equal(fixture->descriptors.lost, 0);
}

static void get__of_a_file_that_was_never_opened_has_no_data(void **state)
{
	struct fixture *fixture = *state;
	struct file file = {.opened.fd = -1, .path = (char *)"/nothing"};

	assert_int_equal(file_descriptors_get(&fixture->descriptors, &file), -ENODATA);
	assert_int_equal(fixture->descriptors.lost, 0);
}

static void get__of_a_file_that_is_gone_is_lost(void **state)
{
	struct fixture *fixture = *state;
	struct file *file = &fixture->file[0];
	take(fixture, 0);
	file_descriptors_close(&fixture->descriptors, file);
	assert_int_equal(unlink(file->path), 0);
	assert_int_equal(file_descriptors_get(&fixture->descriptors, file), -ESTALE);
	assert_int_equal(fixture->descriptors.lost, 1);
	/* For a second nobody looks again. */
	close(write_file(file->path));
	assert_int_equal(file_descriptors_get(&fixture->descriptors, file), -ESTALE);
	assert_int_equal(fixture->descriptors.lost, 1);
	file->lost_ns -= 2000000000;
	assert_int_equal(file_descriptors_get(&fixture->descriptors, file), -ESTALE);
	assert_int_equal(fixture->descriptors.lost, 2);
}

static void get__does_not_take_another_file_of_that_name(void **state)
{
	struct fixture *fixture = *state;
	struct file *file = &fixture->file[0];
	take(fixture, 0);
	close(write_file(fixture->path[1]));
	file_descriptors_close(&fixture->descriptors, file);
	assert_int_equal(rename(fixture->path[1], fixture->path[0]), 0);
	assert_int_equal(file_descriptors_get(&fixture->descriptors, file), -ESTALE);
	assert_int_equal(file->opened.fd, -1);
	assert_int_equal(fixture->descriptors.lost, 1);
}

/* Its number may be another file's by now: without generations only the time of the change
 * tells. */
static void get__does_not_take_another_file_of_that_number(void **state)
{
	struct fixture *fixture = *state;
	struct file *file = &fixture->file[0];
	take(fixture, 0);
	file_descriptors_close(&fixture->descriptors, file);
	file->identity.changed_ns--;
	assert_int_equal(file_descriptors_get(&fixture->descriptors, file),
			 file->identity.key.inode_generation ? 0 : -ESTALE);
	file_descriptors_close(&fixture->descriptors, file);
	file->identity.changed_ns++;
	file->lost_ns = 0;
	assert_int_equal(file_descriptors_get(&fixture->descriptors, file), 0);
	file_descriptors_close(&fixture->descriptors, file);
	file->identity.key.inode_generation++;
	assert_int_equal(file_descriptors_get(&fixture->descriptors, file), -ESTALE);
}

/* The first process that mapped it has ended since, or the last one. */
static void get__tries_the_first_place_and_the_last(void **state)
{
	struct fixture *fixture = *state;
	struct file *file = &fixture->file[0];
	take(fixture, 0);
	for (unsigned int first_lives = 0; first_lives < 2; first_lives++) {
		file_descriptors_close(&fixture->descriptors, file);
		(first_lives ? &file->last_place : &file->first_place)->key.inode++;
		assert_int_equal(file_descriptors_get(&fixture->descriptors, file), 0);
		(first_lives ? &file->last_place : &file->first_place)->key.inode--;
	}
}

static void note__leaves_out_mappings_of_an_equal_file(void **state)
{
	struct fixture *fixture = *state;
	struct file *file = &fixture->file[0];
	struct mapping mapping;

	take(fixture, 0);
	mapping = mapping_of(file);
	mapping.start = 0x5000;
	mapping.key.inode++;
	file_descriptors_note(file, self(), &mapping);
	assert_int_equal(file->last_place.start, 0x1000);
	mapping.key.inode--;
	file_descriptors_note(file, self(), &mapping);
	assert_int_equal(file->last_place.start, 0x5000);
	assert_int_equal(file->first_place.start, 0x1000);
}

static void unused__files_are_found_and_closed(void **state)
{
	struct fixture *fixture = *state;
	uint64_t *slots = calloc(FILE_SLOTS / 64, sizeof(*slots));

	assert_non_null(slots);
	for (size_t i = 0; i < 4; i++)
		take(fixture, i);
	assert_false(file_descriptors_find_unused(&fixture->descriptors, 1000, slots));
	fixture->file[1].references = fixture->file[2].references = 0;
	fixture->file[3].references = 0;
	fixture->file[1].unused_since_ns = 999;
	fixture->file[2].unused_since_ns = 1000;
	fixture->file[3].unused_since_ns = 10;
	assert_true(file_descriptors_find_unused(&fixture->descriptors, 1000, slots));
	file_descriptors_close_all(&fixture->descriptors, slots);
	assert_true(fixture->file[0].opened.fd >= 0);
	assert_int_equal(fixture->file[1].opened.fd, -1);
	assert_true(fixture->file[2].opened.fd >= 0);
	assert_int_equal(fixture->file[3].opened.fd, -1);
	assert_int_equal(fixture->descriptors.open, 2);
	free(slots);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(init__leaves_half_of_the_limit_to_others),
		TEST(put__beyond_the_bound_closes_what_was_used_least),
		TEST(get__opens_a_closed_file_again),
		TEST(get__of_a_file_that_was_never_opened_has_no_data),
		TEST(get__of_a_file_that_is_gone_is_lost),
		TEST(get__does_not_take_another_file_of_that_name),
		TEST(get__does_not_take_another_file_of_that_number),
		TEST(get__tries_the_first_place_and_the_last),
		TEST(note__leaves_out_mappings_of_an_equal_file),
		TEST(unused__files_are_found_and_closed),
	};

	return cmocka_run_group_tests_name("attach/file_descriptors", tests, NULL, NULL);
}
