/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/incomplete_queue.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STACK_BYTES 1000U
#define RECORD_BYTES                                                                               \
	(sizeof(struct pp_incomplete_record) + sizeof(struct pp_frame) +                           \
	 sizeof(struct pp_segment) + STACK_BYTES)
#define QUEUED_BYTES (sizeof(struct queued_incomplete) + RECORD_BYTES)
#define RECORDS 64U /* that find room */
#define NOW_NS 12345U

static struct incomplete_queue *queue;

static int setup(void **state)
{
	(void)state;
	return incomplete_queue_new(RECORDS * QUEUED_BYTES, &queue);
}

static int teardown(void **state)
{
	(void)state;
	incomplete_queue_free(queue);
	return 0;
}

/* One Python frame, one segment, and some bytes of the stack; the weight tells it from others.  The
 * ring's memory is gone when this returns. */
static int add(uint32_t uid, uint64_t weight)
{
	OWNED_MEM struct pp_incomplete_record *record = calloc(1, RECORD_BYTES);
	struct decoded_incomplete incomplete;
	struct pp_frame *frame;
	int err;

	assert_non_null(record);
	record->record = (struct pp_record){.type = PP_RECORD_INCOMPLETE, .size = RECORD_BYTES};
	record->user = uid;
	record->weight = weight;
	record->python_stored = record->python_count = 1;
	record->segment_count = 1;
	record->stack_bytes = STACK_BYTES;
	frame = (struct pp_frame *)record->bytes;
	*frame = (struct pp_frame){.where = 7, .kind = PP_FRAME_PYTHON};
	*(struct pp_segment *)(frame + 1) = (struct pp_segment){.anchor = 8, .frames = 1};
	memset(record->bytes + sizeof(struct pp_frame) + sizeof(struct pp_segment), 0x5a,
	       STACK_BYTES);
	decoded_incomplete_set(record, &incomplete);
	err = incomplete_queue_add(queue, &incomplete, NOW_NS);
	memset(record, 0xff, RECORD_BYTES);
	return err;
}

static unsigned int fill(uint32_t uid)
{
	unsigned int added = 0;

	while (!add(uid, added))
		added++;
	return added;
}

/* Returns uid * 1000 + weight; 0: the queue is empty. */
static uint64_t take(void)
{
	OWNED_MEM struct queued_incomplete *queued = incomplete_queue_take(queue);

	return queued ? queued->incomplete.record->user * 1000ULL +
				queued->incomplete.record->weight
		      : 0;
}

static void queue__has_a_copy_of_all_parts(void **state)
{
	OWNED_MEM struct queued_incomplete *queued = NULL;
	const struct decoded_incomplete *incomplete;

	(void)state;
	assert_true(incomplete_queue_is_empty(queue));
	assert_int_equal(add(1000, 500), 0);
	assert_false(incomplete_queue_is_empty(queue));
	queued = incomplete_queue_take(queue);
	assert_true(incomplete_queue_is_empty(queue));
	assert_null(incomplete_queue_take(queue));
	assert_int_equal(queued->queued_ns, NOW_NS);
	incomplete = &queued->incomplete;
	assert_int_equal(incomplete->record->weight, 500);
	assert_int_equal(incomplete->python[0].where, 7);
	assert_int_equal(incomplete->segment[0].anchor, 8);
	for (unsigned int i = 0; i < STACK_BYTES; i++)
		assert_int_equal(incomplete->stack[i], 0x5a);
	assert_ptr_equal(incomplete->stack + STACK_BYTES,
			 (const uint8_t *)queued->bytes + RECORD_BYTES);
}

static void queue__is_taken_oldest_first(void **state)
{
	(void)state;
	for (unsigned int i = 1; i <= 3; i++)
		assert_int_equal(add(1000, i), 0);
	assert_int_equal(take(), 1000001);
	assert_int_equal(add(1000, 4), 0);
	for (unsigned int i = 2; i <= 4; i++)
		assert_int_equal(take(), 1000000 + i);
	assert_int_equal(take(), 0);
}

/* Who has one stack waits for one of each other user, however many these have. */
static void queue__gives_users_turns(void **state)
{
	(void)state;
	for (unsigned int i = 1; i <= 4; i++)
		assert_int_equal(add(1000, i), 0);
	assert_int_equal(add(1001, 1), 0);
	assert_int_equal(add(1002, 1), 0);
	assert_int_equal(add(1002, 2), 0);
	assert_int_equal(take(), 1000001);
	assert_int_equal(take(), 1001001);
	assert_int_equal(take(), 1002001);
	assert_int_equal(take(), 1000002);
	/* Who comes back comes last. */
	assert_int_equal(add(1001, 2), 0);
	assert_int_equal(take(), 1002002);
	assert_int_equal(take(), 1000003);
	assert_int_equal(take(), 1001002);
	assert_int_equal(take(), 1000004);
	assert_int_equal(take(), 0);
}

static void queue__leaves_room_for_others(void **state)
{
	(void)state;
	assert_int_equal(fill(1000), RECORDS / 2);
	assert_int_equal(add(1000, 0), -EDQUOT);
	assert_int_equal(incomplete_queue_quota(queue)->refused, 2);
	assert_int_equal(fill(1001), RECORDS / 4);
	assert_int_equal(add(1002, 1), 0);
	/* What is taken out may come in again. */
	(void)take();
	assert_int_equal(incomplete_queue_quota(queue)->used,
			 (RECORDS / 2 + RECORDS / 4) * QUEUED_BYTES);
}

static void queue__never_grows_beyond_its_bytes(void **state)
{
	(void)state;
	for (uint32_t uid = 1000; uid < 1200; uid++)
		(void)fill(uid);
	(void)fill(0);
	assert_int_equal(add(0, 0), -ENOSPC);
	assert_true(incomplete_queue_quota(queue)->used <= RECORDS * QUEUED_BYTES);
	while (!incomplete_queue_is_empty(queue))
		free(incomplete_queue_take(queue));
	assert_int_equal(incomplete_queue_quota(queue)->used, 0);
	assert_int_equal(fill(1000), RECORDS / 2);
}

static void queue__tells_each_user_once(void **state)
{
	uint32_t uid = 0;

	(void)state;
	(void)fill(1000);
	(void)add(1000, 0);
	assert_true(user_quota_tell(incomplete_queue_quota(queue), &uid));
	assert_int_equal(uid, 1000);
	while (!incomplete_queue_is_empty(queue))
		free(incomplete_queue_take(queue));
	(void)fill(1000);
	assert_false(user_quota_tell(incomplete_queue_quota(queue), &uid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(queue__has_a_copy_of_all_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(queue__is_taken_oldest_first, setup, teardown),
		cmocka_unit_test_setup_teardown(queue__gives_users_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(queue__leaves_room_for_others, setup, teardown),
		cmocka_unit_test_setup_teardown(queue__never_grows_beyond_its_bytes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(queue__tells_each_user_once, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
