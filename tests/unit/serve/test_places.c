/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/places.h"

#include <cmocka.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/http.h"

#define COUNT 4U

static struct counts counts;
static int pair[COUNT][2];
static struct places *places;

static int setup(void **state)
{
	(void)state;
	counts = (struct counts){0};
	for (unsigned int i = 0; i < COUNT; i++)
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]), 0);
	return places_new(COUNT, &counts, &places);
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < COUNT; i++) {
		close(pair[i][0]);
		close(pair[i][1]);
	}
	places_free(places);
	return 0;
}

static bool is_shut(unsigned int index)
{
	char byte;

	return recv(pair[index][1], &byte, 1, MSG_DONTWAIT) == 0;
}

static void places__are_bounded(void **state)
{
	struct place *place[COUNT];

	(void)state;
	for (unsigned int i = 0; i < COUNT; i++) {
		place[i] = places_take(places, pair[i][0], 0, 0);
		assert_non_null(place[i]);
	}
	assert_null(places_take(places, pair[0][0], 0, 0));
	assert_int_equal(counts.connections, COUNT);
	places_leave(places, place[1]);
	assert_int_equal(counts.connections, COUNT - 1);
	assert_ptr_equal(places_take(places, pair[1][0], 0, 0), place[1]);
}

/* A user has as many as are free, so half; a second one a third, and a quarter is root's. */
static void users__have_shares(void **state)
{
	static const uid_t users[] = {1000, 1001, PLACES_NOBODY};
	static const unsigned int shares[] = {50, 25, 0};
	const unsigned int count = 100;
	struct counts own = {0};
	OWNED(places) struct places *many = NULL;
	struct place *one = NULL;
	unsigned long long refused = 0;

	(void)state;
	assert_int_equal(places_new(count, &own, &many), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(users); i++) {
		unsigned int taken = 0;

		for (struct place *got; (got = places_take(many, pair[0][0], users[i], 0));
		     one = got)
			taken++;
		assert_int_equal(taken, shares[i]);
		assert_int_equal(own.refused[COUNTS_REFUSED_SHARE], ++refused);
	}
	/* What is given back is free to be taken again. */
	places_leave(many, one);
	assert_non_null(places_take(many, pair[0][0], 1001, 0));
	assert_null(places_take(many, pair[0][0], 1001, 0));
	for (unsigned int i = 75; i < count; i++)
		assert_non_null(places_take(many, pair[0][0], 0, 0));
	assert_null(places_take(many, pair[0][0], 0, 0));
}

/* As much as was taken, and of the one who has left. */
static void share__is_given_back(void **state)
{
	struct counts own = {0};
	OWNED(places) struct places *many = NULL;
	struct place *one = NULL;

	(void)state;
	assert_int_equal(places_new(8, &own, &many), 0);
	assert_non_null(places_take(many, pair[0][0], 1001, 0));
	for (struct place *got; (got = places_take(many, pair[0][0], 1000, 0)); one = got)
		;
	for (unsigned int i = 0; i < 3; i++) {
		places_leave(many, one);
		one = places_take(many, pair[0][0], 1000, 0);
		assert_non_null(one);
		assert_null(places_take(many, pair[0][0], 1000, 0));
	}
	assert_int_equal(own.connections, 4);
}

/* One user's crowd hurries nobody else. */
static void crowd__of_one_user_has_less_time(void **state)
{
	const unsigned int count = 16;
	struct counts own = {0};
	OWNED(places) struct places *many = NULL;

	(void)state;
	assert_int_equal(places_new(count, &own, &many), 0);
	assert_non_null(places_take(many, pair[0][0], 0, 0));
	assert_non_null(places_take(many, pair[1][0], 1001, 0));
	for (unsigned int i = 0; i < count * 3 / 8 - 1; i++)
		assert_non_null(places_take(many, pair[2][0], 1000, 0));
	places_sweep(many, HTTP_REQUEST_NS / 10 + 1);
	assert_int_equal(own.refused[COUNTS_REFUSED_LATE_REQUEST], 0);
	assert_non_null(places_take(many, pair[2][0], 1000, 0));
	places_sweep(many, HTTP_REQUEST_NS / 10 + 1);
	assert_int_equal(own.refused[COUNTS_REFUSED_LATE_REQUEST], count * 3 / 8);
	assert_true(is_shut(2));
	assert_false(is_shut(0) || is_shut(1));
}

static void requests__that_are_late_end(void **state)
{
	struct place *place = places_take(places, pair[0][0], 0, 1000);

	(void)state;
	places_sweep(places, 1000 + HTTP_REQUEST_NS);
	assert_false(is_shut(0));
	/* While it waits for its answer, time does not count. */
	places_set(places, place, PLACE_WAITS, 1000 + HTTP_REQUEST_NS);
	places_sweep(places, 100 * HTTP_READER_NS);
	assert_false(is_shut(0));
	places_set(places, place, PLACE_ASKS, 2000);
	places_sweep(places, 2001 + HTTP_REQUEST_NS);
	assert_true(is_shut(0));
	assert_int_equal(counts.refused[COUNTS_REFUSED_LATE_REQUEST], 1);
	places_sweep(places, 2002 + HTTP_REQUEST_NS);
	assert_int_equal(counts.refused[COUNTS_REFUSED_LATE_REQUEST], 1);
}

static void readers__that_are_late_end(void **state)
{
	struct place *place = places_take(places, pair[0][0], 0, 0);

	(void)state;
	places_set(places, place, PLACE_READS, 1000);
	places_sweep(places, 1000 + HTTP_READER_NS);
	assert_false(is_shut(0));
	places_sweep(places, 1001 + HTTP_READER_NS);
	assert_true(is_shut(0));
	assert_int_equal(counts.refused[COUNTS_REFUSED_LATE_READER], 1);
}

/* When three of four places are taken, a tenth of the time has to do. */
static void crowds__have_less_time(void **state)
{
	(void)state;
	places_take(places, pair[0][0], 0, 0);
	places_take(places, pair[1][0], 0, 0);
	places_sweep(places, HTTP_REQUEST_NS / 10 + 1);
	assert_false(is_shut(0));
	places_take(places, pair[2][0], 0, HTTP_REQUEST_NS / 10);
	places_sweep(places, HTTP_REQUEST_NS / 10 + 1);
	assert_true(is_shut(0));
	assert_true(is_shut(1));
	assert_false(is_shut(2));
}

static void close__ends_all(void **state)
{
	(void)state;
	places_take(places, pair[0][0], 0, 0);
	places_set(places, places_take(places, pair[1][0], 0, 0), PLACE_WAITS, 0);
	places_close(places);
	assert_true(is_shut(0) && is_shut(1));
	assert_false(is_shut(2));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(places__are_bounded),	   TEST(users__have_shares),
		TEST(share__is_given_back),	   TEST(crowd__of_one_user_has_less_time),
		TEST(requests__that_are_late_end), TEST(readers__that_are_late_end),
		TEST(crowds__have_less_time),	   TEST(close__ends_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
