/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's side of a ring is an array here, and decoding is only noted. */
#include "drain/ring.h"

#include <bpf/libbpf.h>
#include <cmocka.h>
#include <errno.h>

#define FD 7

struct ring_buffer {
	ring_buffer_sample_fn on_record;
	void *context;
};

static struct ring_buffer buffer;
static unsigned int opened, freed, records, stacks, events, timelines;
static unsigned int taken; /* of the records */
static bool is_emptied;	   /* what was taken is gone; else the ring has it again */
static int consume_result, decode_result;
static char data[16];

struct ring_buffer *ring_buffer__new(int map_fd, ring_buffer_sample_fn on_record, void *context,
				     const struct ring_buffer_opts *opts)
{
	assert_int_equal(map_fd, FD);
	assert_null(opts);
	if (!opened) {
		errno = EPERM;
		return NULL;
	}
	buffer = (struct ring_buffer){on_record, context};
	return &buffer;
}

void ring_buffer__free(struct ring_buffer *freed_buffer)
{
	freed += freed_buffer == &buffer;
}

int ring_buffer__epoll_fd(const struct ring_buffer *asked)
{
	assert_ptr_equal(asked, &buffer);
	return 12;
}

/* As libbpf: the number of records, or the first error that the callback returns; that record is
 * consumed. */
int ring_buffer__consume(struct ring_buffer *asked)
{
	assert_ptr_equal(asked, &buffer);
	while (taken < records) {
		int err = asked->on_record(asked->context, data, sizeof(data) - taken++);

		if (err < 0)
			return err;
	}
	if (!is_emptied)
		taken = 0;
	return consume_result;
}

static int note(unsigned int *seen, const void *bytes, size_t size,
		const struct drain_handlers *handlers)
{
	assert_ptr_equal(bytes, data);
	assert_int_equal(size, sizeof(data) - *seen);
	assert_ptr_equal(handlers->context, data);
	++*seen;
	return decode_result;
}

int decode_record(const void *bytes, size_t size, const struct drain_handlers *handlers)
{
	return note(&stacks, bytes, size, handlers);
}
int decode_event(const void *bytes, size_t size, const struct drain_handlers *handlers)
{
	return note(&events, bytes, size, handlers);
}
int decode_timeline(const void *bytes, size_t size, const struct drain_handlers *handlers)
{
	return note(&timelines, bytes, size, handlers);
}

static int setup(void **state)
{
	(void)state;
	opened = 1;
	freed = stacks = events = timelines = 0;
	records = 3;
	consume_result = 3;
	decode_result = 0;
	taken = 0;
	is_emptied = false;
	return 0;
}

static struct ring *open_ring(enum ring_kind kind)
{
	/* It is copied: the caller's may go. */
	struct drain_handlers handlers = {.context = data};
	struct ring *ring = NULL;

	assert_int_equal(ring_new(FD, kind, &handlers, &ring), 0);
	handlers.context = NULL;
	return ring;
}

static void ring_consume__decodes_each_kind_as_its_own(void **state)
{
	unsigned int *const seen[] = {
		[RING_STACKS] = &stacks, [RING_EVENTS] = &events, [RING_TIMELINE] = &timelines};

	(void)state;
	for (unsigned int kind = RING_STACKS; kind <= RING_TIMELINE; kind++) {
		struct ring *ring;

		setup(NULL);
		ring = open_ring((enum ring_kind)kind);
		assert_int_equal(ring_fd(ring), 12);
		assert_int_equal(ring_consume(ring), 0);
		assert_int_equal(*seen[kind], 3);
		assert_int_equal(stacks + events + timelines, 3);
		assert_int_equal(ring_bad_count(ring), 0);
		ring_free(ring);
		assert_int_equal(freed, 1);
	}
}

/* The records behind a bad one are taken. */
static void ring_consume__bad_records_are_counted(void **state)
{
	struct ring *ring = open_ring(RING_STACKS);

	(void)state;
	decode_result = -EBADMSG;
	assert_int_equal(ring_consume(ring), 0);
	assert_int_equal(stacks, 3);
	assert_int_equal(ring_bad_count(ring), 3);
	decode_result = 0;
	stacks = 0;
	assert_int_equal(ring_consume(ring), 0);
	assert_int_equal(ring_bad_count(ring), 3);
	ring_free(ring);
}

static void ring_consume__of_an_unknown_kind_decodes_nothing(void **state)
{
	struct ring *ring = open_ring((enum ring_kind)(RING_TIMELINE + 1));

	(void)state;
	assert_int_equal(ring_consume(ring), 0);
	assert_int_equal(ring_bad_count(ring), 3);
	assert_int_equal(stacks + events + timelines, 0);
	ring_free(ring);
}

static void ring_consume__passes_libbpfs_error_on(void **state)
{
	struct ring *ring = open_ring(RING_STACKS);

	(void)state;
	consume_result = -EINTR;
	assert_int_equal(ring_consume(ring), -EINTR);
	records = 0;
	consume_result = 0;
	assert_int_equal(ring_consume(ring), 0);
	ring_free(ring);
}

/* Each call takes one record at least, and the next one goes on behind it. */
static void ring_consume_slice__leaves_the_rest_for_the_next_call(void **state)
{
	const struct slice over = {.ends_ns = 0};
	struct ring *ring = open_ring(RING_STACKS);

	(void)state;
	is_emptied = true;
	for (unsigned int call = 1; call <= 3; call++) {
		assert_int_equal(ring_consume_slice(ring, &over), 1);
		assert_int_equal(stacks, call);
	}
	consume_result = 0;
	assert_int_equal(ring_consume_slice(ring, &over), 0);
	assert_int_equal(stacks, 3);
	ring_free(ring);
}

static void ring_consume_slice__that_does_not_end_takes_all(void **state)
{
	const struct slice endless = {.ends_ns = UINT64_MAX}, over = {.ends_ns = 0};
	struct ring *ring = open_ring(RING_STACKS);

	(void)state;
	is_emptied = true;
	assert_int_equal(ring_consume_slice(ring, &endless), 0);
	assert_int_equal(stacks, 3);
	/* A slice is for one call. */
	setup(NULL);
	is_emptied = true;
	assert_int_equal(ring_consume_slice(ring, &over), 1);
	assert_int_equal(ring_consume(ring), 0);
	assert_int_equal(stacks, 3);
	consume_result = -EINTR;
	assert_int_equal(ring_consume_slice(ring, &endless), -EINTR);
	ring_free(ring);
}

static void ring_new__says_why_not(void **state)
{
	const struct drain_handlers handlers = {.context = data};
	struct ring *ring = NULL;

	(void)state;
	opened = 0;
	assert_int_equal(ring_new(FD, RING_STACKS, &handlers, &ring), -EPERM);
	assert_null(ring);
	assert_int_equal(freed, 0);
	ring_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(ring_consume__decodes_each_kind_as_its_own, setup),
		cmocka_unit_test_setup(ring_consume__bad_records_are_counted, setup),
		cmocka_unit_test_setup(ring_consume__of_an_unknown_kind_decodes_nothing, setup),
		cmocka_unit_test_setup(ring_consume__passes_libbpfs_error_on, setup),
		cmocka_unit_test_setup(ring_consume_slice__leaves_the_rest_for_the_next_call,
				       setup),
		cmocka_unit_test_setup(ring_consume_slice__that_does_not_end_takes_all, setup),
		cmocka_unit_test_setup(ring_new__says_why_not, setup),
	};

	return cmocka_run_group_tests_name("drain/ring", tests, NULL, NULL);
}
