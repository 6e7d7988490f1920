/* SPDX-License-Identifier: BSD-2-Clause */
/* The two maps are tables here. */
#include "base/user_shares.h"

#include <bpf/bpf.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#define ROWS 33
#define FREE 34

static struct pp_user_share row[PP_USER_SHARE_ROWS];
static uint16_t known[PP_USER_SHARES];
static const struct user_shares shares = {.row = row, .known = known, .rows = ROWS, .free = FREE};
static uint32_t whose[PP_USER_SHARES]; /* by row, as share_rows has them; 0: nobody's */
static uint32_t queue[PP_USER_SHARES], free_count;
static uint32_t other; /* whom the kernel side claims a row for just before; 0: nobody */
static unsigned int lookups;

static void take(uint32_t user)
{
	const uint32_t index = queue[--free_count];

	whose[index] = row[index].who = user;
}

static uint32_t row_of(uint32_t user)
{
	uint32_t i = 0;

	while (i < PP_USER_SHARES && whose[i] != user)
		i++;
	return i;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	const uint32_t index = *(const uint32_t *)value;

	if (fd == FREE) {
		assert_null(key);
		assert_in_range(free_count, 0, PP_USER_SHARES - 1);
		queue[free_count++] = index;
		return 0;
	}
	assert_int_equal(fd, ROWS);
	assert_int_equal(flags, BPF_NOEXIST);
	if (other)
		take(other);
	other = 0;
	if (row_of(*(const uint32_t *)key) < PP_USER_SHARES)
		return -EEXIST;
	whose[index] = *(const uint32_t *)key;
	return 0;
}

int bpf_map_lookup_and_delete_elem(int fd, const void *key, void *value)
{
	assert_int_equal(fd, FREE);
	assert_null(key);
	if (!free_count)
		return -ENOENT;
	*(uint32_t *)value = queue[--free_count];
	return 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	const uint32_t index = row_of(*(const uint32_t *)key);

	assert_int_equal(fd, ROWS);
	lookups++;
	if (index == PP_USER_SHARES)
		return -ENOENT;
	*(uint32_t *)value = index;
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	assert_int_equal(fd, ROWS);
	whose[row_of(*(const uint32_t *)key)] = 0;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	memset(row, 0, sizeof(row));
	memset(known, 0, sizeof(known));
	memset(whose, 0, sizeof(whose));
	free_count = other = lookups = 0;
	return user_shares_begin(&shares);
}

static void claim__is_of_one_user(void **state)
{
	(void)state;
	/* However many of them are equal modulo the rows. */
	for (uint32_t i = 0; i < 500; i++) {
		const uint32_t user = 7 + i * PP_USER_SHARES;
		struct pp_user_share *found = user_shares_claim(&shares, user);

		assert_in_range(found - row, 0, PP_USER_SHARES - 1);
		assert_int_equal(found->who, user);
		assert_ptr_equal(user_shares_claim(&shares, user), found);
		assert_int_equal(row_of(user), found - row);
	}
	for (uint32_t i = 0; i < 500; i++)
		assert_int_equal(user_shares_find(&shares, 7 + i * PP_USER_SHARES)->who,
				 7 + i * PP_USER_SHARES);
}

static void find__asks_the_kernel_once_for_a_user(void **state)
{
	(void)state;
	take(1000);
	for (int i = 0; i < 10; i++)
		assert_int_equal(user_shares_find(&shares, 1000)->who, 1000);
	assert_int_equal(lookups, 1);
}

static void find__of_who_has_none_is_what_all_such_have(void **state)
{
	(void)state;
	assert_ptr_equal(user_shares_find(&shares, 1000), &row[PP_USER_SHARE_COMMON]);
	assert_ptr_equal(user_shares_find(&shares, 0), &row[PP_USER_SHARE_COMMON]);
	assert_ptr_equal(user_shares_claim(&shares, 0), &row[PP_USER_SHARE_COMMON]);
	for (uint32_t i = 0; i < PP_USER_SHARES; i++)
		assert_ptr_not_equal(user_shares_claim(&shares, 5000 + i),
				     &row[PP_USER_SHARE_COMMON]);
	assert_ptr_equal(user_shares_claim(&shares, 1000), &row[PP_USER_SHARE_COMMON]);
}

static void claim__of_the_kernel_side_stays(void **state)
{
	struct pp_user_share *found;

	(void)state;
	other = 1001;
	found = user_shares_claim(&shares, 1000);
	assert_int_equal(found->who, 1000);
	assert_ptr_not_equal(found, user_shares_find(&shares, 1001));
	/* Of one user it is one row. */
	other = 1002;
	found = user_shares_claim(&shares, 1002);
	assert_int_equal(found->who, 1002);
	assert_int_equal(free_count, PP_USER_SHARES - 3);
}

static void give__is_not_below_zero_and_not_to_root(void **state)
{
	struct pp_user_share *found = user_shares_claim(&shares, 1000);

	(void)state;
	found->slots = 1;
	row[PP_USER_SHARE_COMMON].slots = 5;
	for (int i = 0; i < 2; i++) {
		user_shares_give(&shares, 1000, offsetof(struct pp_user_share, slots));
		user_shares_give(&shares, 0, offsetof(struct pp_user_share, slots));
		assert_int_equal(found->slots, 0);
	}
	assert_int_equal(row[PP_USER_SHARE_COMMON].slots, 5);
}

static void expire__frees_what_nobody_holds_for_a_while(void **state)
{
	struct pp_user_share *held = user_shares_claim(&shares, 1000);
	struct pp_user_share *idle = user_shares_claim(&shares, 1001);

	(void)state;
	held->slots = 1;
	idle->calls = 3; /* that never ended */
	for (unsigned int i = 0; i < USER_SHARES_IDLE_MAX; i++)
		user_shares_expire(&shares);
	assert_int_equal(idle->who, 1001);
	idle->processes = 1;
	user_shares_expire(&shares);
	idle->processes = 0;
	for (unsigned int i = 0; i <= USER_SHARES_IDLE_MAX; i++)
		user_shares_expire(&shares);
	assert_int_equal(idle->who, 0);
	assert_int_equal(idle->calls, 0);
	assert_int_equal(row_of(1001), PP_USER_SHARES);
	assert_int_equal(held->who, 1000);
	assert_int_equal(row_of(1000), held - row);
	assert_int_equal(free_count, PP_USER_SHARES - 1);
	assert_ptr_equal(user_shares_claim(&shares, 1001), idle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(claim__is_of_one_user, setup),
		cmocka_unit_test_setup(find__asks_the_kernel_once_for_a_user, setup),
		cmocka_unit_test_setup(find__of_who_has_none_is_what_all_such_have, setup),
		cmocka_unit_test_setup(claim__of_the_kernel_side_stays, setup),
		cmocka_unit_test_setup(give__is_not_below_zero_and_not_to_root, setup),
		cmocka_unit_test_setup(expire__frees_what_nobody_holds_for_a_while, setup),
	};

	return cmocka_run_group_tests_name("base/user_shares", tests, NULL, NULL);
}
