/* SPDX-License-Identifier: BSD-2-Clause */
/* The map of claims is a table here. */
#include "base/user_shares.h"

#include <bpf/bpf.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#define CLAIMS 33

static struct pp_user_share row[PP_USER_SHARE_ROWS];
static const struct user_shares shares = {
	.row = row, .secret = 0x9e3779b97f4a7c15ULL, .claims = CLAIMS};
static uint32_t claim[PP_USER_SHARES]; /* 0: none */
static uint32_t other;		       /* whom the kernel side claims the next row for; 0: nobody */

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	const uint32_t index = *(const uint32_t *)key;

	assert_int_equal(fd, CLAIMS);
	assert_int_equal(flags, BPF_NOEXIST);
	if (other)
		claim[index] = row[index].who = other;
	other = 0;
	if (claim[index])
		return -EEXIST;
	claim[index] = *(const uint32_t *)value;
	return 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	(void)fd;
	*(uint32_t *)value = claim[*(const uint32_t *)key];
	return *(uint32_t *)value ? 0 : -ENOENT;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	assert_int_equal(fd, CLAIMS);
	claim[*(const uint32_t *)key] = 0;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	memset(row, 0, sizeof(row));
	memset(claim, 0, sizeof(claim));
	other = 0;
	return 0;
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
		assert_ptr_equal(user_shares_find(&shares, user), found);
		assert_int_equal(claim[found - row], user);
	}
}

static void find__of_who_has_none_is_what_all_such_have(void **state)
{
	(void)state;
	assert_ptr_equal(user_shares_find(&shares, 1000), &row[PP_USER_SHARE_COMMON]);
	assert_ptr_equal(user_shares_find(&shares, 0), &row[PP_USER_SHARE_COMMON]);
	assert_ptr_equal(user_shares_claim(&shares, 0), &row[PP_USER_SHARE_COMMON]);
	for (uint32_t i = 0; i < PP_USER_SHARES; i++)
		row[i].who = 5000;
	assert_ptr_equal(user_shares_claim(&shares, 1000), &row[PP_USER_SHARE_COMMON]);
}

static void claim__of_the_kernel_side_stays(void **state)
{
	struct pp_user_share *found;

	(void)state;
	other = 1001;
	found = user_shares_claim(&shares, 1000);
	assert_int_equal(found->who, 1000);
	assert_int_not_equal(found - row, user_shares_find(&shares, 1001) - row);
	/* It may have claimed this user's own and not have written so. */
	setup(NULL);
	claim[pp_user_share_at(1000, 0, shares.secret)] = 1000;
	found = user_shares_claim(&shares, 1000);
	assert_int_equal(found - row, pp_user_share_at(1000, 0, shares.secret));
	assert_int_equal(found->who, 1000);
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
	assert_int_equal(claim[idle - row], 0);
	assert_int_equal(held->who, 1000);
	assert_int_equal(claim[held - row], 1000);
	assert_ptr_equal(user_shares_claim(&shares, 1001), idle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(claim__is_of_one_user, setup),
		cmocka_unit_test_setup(find__of_who_has_none_is_what_all_such_have, setup),
		cmocka_unit_test_setup(claim__of_the_kernel_side_stays, setup),
		cmocka_unit_test_setup(give__is_not_below_zero_and_not_to_root, setup),
		cmocka_unit_test_setup(expire__frees_what_nobody_holds_for_a_while, setup),
	};

	return cmocka_run_group_tests_name("base/user_shares", tests, NULL, NULL);
}
