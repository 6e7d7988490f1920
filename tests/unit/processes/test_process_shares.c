/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side, the processes and their users are fakes in this file. */
#include "processes/process_shares.h"

#include <cmocka.h>
#include <string.h>

#include <pyprofd/config.h>

#include "attach/kernel_side.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"

#define ROOM 100U

static struct pp_config config;
static struct pp_user_share shares[PP_USER_SHARE_ROWS];
static unsigned int expired;
static struct process known[ROOM];
static size_t known_count, live_count;
static struct process_shares counted;
static unsigned int asked;
static void (*tell_end)(void *context, struct process *process);

volatile struct pp_config *kernel_side_config(const struct kernel_side *side)
{
	(void)side;
	return &config;
}

struct kernel_side_parts kernel_side_parts(const struct kernel_side *side)
{
	(void)side;
	return (struct kernel_side_parts){.user_shares.row = shares, .process_room = ROOM};
}

struct pp_user_share *user_shares_claim(const struct user_shares *of, uint32_t user)
{
	return &of->row[user ? user % PP_USER_SHARES : PP_USER_SHARE_COMMON];
}

void user_shares_expire(const struct user_shares *of)
{
	(void)of;
	expired++;
}

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table;
	return &known[id.tgid];
}

void process_table_on_end(struct process_table *table,
			  void (*on_end)(void *context, struct process *process), void *context)
{
	(void)table, (void)context;
	tell_end = on_end;
}

size_t process_table_live_count(const struct process_table *table)
{
	(void)table;
	return live_count;
}

uint32_t process_user(const struct process *process)
{
	asked++;
	return process->id.tgid;
}

uint32_t process_user_kept(struct process *process)
{
	if (!process->is_user_known)
		process->user = 7;
	asked += !process->is_user_known;
	process->is_user_known = true;
	return process->user;
}

/* Adds processes of a user; 0: nobody has asked whose they are. */
static void add(uint32_t user, size_t count)
{
	for (; count--; known_count++, live_count++) {
		known[known_count] = (struct process){
			.id.tgid = (uint32_t)known_count, .user = user, .is_user_known = user};
		process_shares_add(&counted, &known[known_count]);
	}
}

static void tell(void)
{
	process_shares_tell(&counted);
}

static int setup(void **state)
{
	(void)state;
	known_count = live_count = asked = 0;
	process_shares_release(&counted);
	process_shares_init(&counted, NULL, NULL);
	memset(shares, 0, sizeof(shares));
	config = (struct pp_config){.processes_left = ROOM};
	return 0;
}

static void tell__counts_live_processes_by_user(void **state)
{
	(void)state;
	add(1000, 20);
	add(1001, 3);
	add(1000 + PP_USER_SHARES, 2);		 /* has the same row */
	process_shares_add(&counted, &known[3]); /* each once */
	tell_end(&counted, &known[0]);
	tell_end(&counted, &known[0]);
	live_count--;
	shares[5].processes = shares[0].processes = 55;
	expired = 0;
	tell();
	assert_int_equal(expired, 1);
	assert_int_equal(shares[0].processes, 0);
	assert_int_equal(shares[1000].processes, 21);
	assert_int_equal(shares[1001].processes, 3);
	assert_int_equal(shares[5].processes, 0);
	assert_int_equal(config.processes_left, ROOM - 24);
}

static void tell__first_place_is_that_of_some_users(void **state)
{
	(void)state;
	add(PP_USER_SHARES, 3);
	tell();
	assert_int_equal(shares[0].processes, 3);
}

static void add__what_has_ended_is_not_counted(void **state)
{
	struct process ended = {.user = 1000, .is_user_known = true, .exit_ns = 5};

	(void)state;
	process_shares_add(&counted, &ended);
	add(0, 2);
	known[1].exit_ns = 5; /* before anybody asked */
	tell();
	assert_int_equal(shares[1000].processes, 0);
	assert_int_equal(shares[7].processes, 1);
	assert_int_equal(asked, 1);
}

static void take__last_process_is_that_of_a_user_who_has_none(void **state)
{
	(void)state;
	config.processes_left = 1;
	assert_true(process_shares_take(NULL, 1000));
	assert_int_equal(config.processes_left, 0);
	assert_false(process_shares_take(NULL, 1001));
}

static void tell__asks_for_some_users_a_call(void **state)
{
	(void)state;
	add(0, 80);
	tell();
	assert_int_equal(asked, 32);
	assert_int_equal(shares[7].processes, 32);
	assert_int_equal(config.processes_left, ROOM - 80);
	tell();
	tell();
	assert_int_equal(asked, 80);
	assert_int_equal(shares[7].processes, 80);
	tell();
	assert_int_equal(asked, 80);
}

/* One user has all that he can get; another user's and root's processes are followed. */
static void take__users_excess_is_that_users_loss(void **state)
{
	unsigned int taken = 0;

	(void)state;
	/* Before anything was counted, as at the start. */
	config.processes_left = ROOM;
	while (process_shares_take(NULL, 1000))
		taken++;
	assert_int_equal(taken, ROOM / 2);
	assert_int_equal(shares[1000].processes, ROOM / 2);
	assert_int_equal(config.processes_left, ROOM / 2);
	assert_true(process_shares_take(NULL, 1001));
	assert_true(process_shares_take(NULL, 0));
	assert_int_equal(shares[PP_USER_SHARE_COMMON].processes, 0);
	config.processes_left = -1;
	assert_false(process_shares_take(NULL, 1001));
	assert_true(process_shares_take(NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(tell__counts_live_processes_by_user, setup),
		cmocka_unit_test_setup(tell__first_place_is_that_of_some_users, setup),
		cmocka_unit_test_setup(add__what_has_ended_is_not_counted, setup),
		cmocka_unit_test_setup(take__last_process_is_that_of_a_user_who_has_none, setup),
		cmocka_unit_test_setup(tell__asks_for_some_users_a_call, setup),
		cmocka_unit_test_setup(take__users_excess_is_that_users_loss, setup),
	};

	return cmocka_run_group_tests_name("agent/process_shares", tests, NULL, NULL);
}
