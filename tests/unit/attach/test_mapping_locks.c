/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's iterator is a stand-in that tells of a process, look by look. */
#include "attach/mapping_locks.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <pyprofd/wait.h>

#define LINK 5

static struct pp_lock_record record; /* tgid 0: nobody has a lock */
static struct pp_space_record spaces[3];
static void (*change)(unsigned int look);
static unsigned int looks;
static int error;

/* <bpf/bpf.h> */
int bpf_iter_create(int link);
int bpf_iter_create(int link)
{
	int pair[2];

	assert_int_equal(link, LINK);
	if (error) {
		errno = error;
		return -1;
	}
	if (change)
		change(looks);
	looks++;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	if (record.tgid)
		assert_int_equal(write(pair[1], &record, sizeof(record)), sizeof(record));
	if (spaces[0].tgid)
		assert_int_equal(write(pair[1], spaces, sizeof(spaces)), sizeof(spaces));
	close(pair[1]);
	return pair[0];
}

static int reset(void **state)
{
	(void)state;
	record = (struct pp_lock_record){.tgid = 4711, .mappings = 30, .writes = 8};
	spaces[0].tgid = 0;
	change = NULL;
	looks = 0;
	error = 0;
	return 0;
}

static void holder__is_who_has_the_lock_at_all_looks(void **state)
{
	(void)state;
	assert_int_equal(mapping_locks_holder(LINK), 4711);
	assert_int_equal(looks, 32);
}

static void holder__of_no_lock_is_nobody_at_once(void **state)
{
	(void)state;
	record.tgid = 0;
	assert_int_equal(mapping_locks_holder(LINK), 0);
	assert_int_equal(looks, 1);
}

static void holder__is_not_known_without_the_iterator(void **state)
{
	(void)state;
	assert_int_equal(mapping_locks_holder(-1), 0);
	error = EPERM;
	assert_int_equal(mapping_locks_holder(LINK), 0);
}

static void let_go(unsigned int look)
{
	record.tgid = look == 9 ? 0 : 4711;
}

static void holder__is_nobody_who_lets_go_once(void **state)
{
	(void)state;
	change = let_go;
	assert_int_equal(mapping_locks_holder(LINK), 0);
	assert_int_equal(looks, 10);
}

static void map_more(unsigned int look)
{
	record.mappings = 30 + (look == 9);
}

static void write_once_more(unsigned int look)
{
	record.writes = look < 9 ? 8 : 10;
}

static void take_turns(unsigned int look)
{
	record.writer = look < 9 ? 0xffff888000001000 : 0xffff888000002000;
}

static void end_writing(unsigned int look)
{
	record.writer = look < 9 ? 0xffff888000001000 : 0;
}

/* A program whose threads map and unmap all the time has it at all looks. */
static void holder__is_nobody_whose_writers_come_and_go(void **state)
{
	static void (*const changes[])(unsigned int) = {map_more, write_once_more, take_turns,
							end_writing};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		reset(state);
		change = changes[i];
		assert_int_equal(mapping_locks_holder(LINK), 0);
		assert_int_equal(looks, 10);
	}
}

static unsigned int told;

static void on_space(void *context, const struct pp_space_record *space)
{
	assert_ptr_equal(context, &told);
	assert_memory_equal(space, &spaces[told++], sizeof(*space));
}

static void spaces__are_told_one_by_one(void **state)
{
	(void)state;
	record.tgid = 0;
	for (uint32_t i = 0; i < 3; i++)
		spaces[i] = (struct pp_space_record){.tgid = 4711 + i, .writes = i};
	assert_int_equal(mapping_spaces_read(LINK, on_space, &told), 0);
	assert_int_equal(told, 3);
	error = EPERM;
	assert_int_equal(mapping_spaces_read(LINK, on_space, &told), -EPERM);
	assert_int_equal(told, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(holder__is_who_has_the_lock_at_all_looks, reset),
		cmocka_unit_test_setup(holder__of_no_lock_is_nobody_at_once, reset),
		cmocka_unit_test_setup(holder__is_not_known_without_the_iterator, reset),
		cmocka_unit_test_setup(holder__is_nobody_who_lets_go_once, reset),
		cmocka_unit_test_setup(holder__is_nobody_whose_writers_come_and_go, reset),
		cmocka_unit_test_setup(spaces__are_told_one_by_one, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
