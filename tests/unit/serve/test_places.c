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

static void fill(struct places *many, uid_t uid, unsigned int count, uint64_t now_ns)
{
	for (unsigned int i = 0; i < count; i++)
		assert_non_null(places_take(many, pair[3][0], uid, now_ns));
}

/* A user has as many as are free, so half; a second one a third, and a quarter is root's. */
static void users__have_shares(void **state)
{
	struct counts own = {0};
	OWNED(places) struct places *many = NULL;

	(void)state;
	assert_int_equal(places_new(100, &own, &many), 0);
	fill(many, 1000, 50, 1);
	fill(many, 1001, 25, 1);
	assert_int_equal(own.refused[COUNTS_REFUSED_SHARE], 0);
	/* From now on who comes displaces somebody. */
	fill(many, 1002, 1, 1);
	assert_int_equal(own.refused[COUNTS_REFUSED_SHARE], 1);
	fill(many, 0, 25, 1);
	assert_int_equal(own.refused[COUNTS_REFUSED_SHARE], 1);
	assert_int_equal(own.connections, 101); /* until that connection has ended */
}

/* The oldest of the user who has most, that has not asked yet; and the own one, of who has. */
static void newcomer__displaces_who_has_most(void **state)
{
	struct counts own = {0};
	OWNED(places) struct places *many = NULL;
	struct place *first, *asks;

	(void)state;
	assert_int_equal(places_new(8, &own, &many), 0);
	first = places_take(many, pair[0][0], 1000, 1);
	asks = places_take(many, pair[1][0], 1000, 2);
	places_set(many, first, PLACE_WAITS, 0);
	fill(many, 1000, 2, 3);
	fill(many, 1001, 2, 1);
	assert_false(is_shut(1));
	fill(many, 1002, 1, 4);
	assert_true(is_shut(1));
	assert_false(is_shut(0) || is_shut(3));
	assert_int_equal(own.refused[COUNTS_REFUSED_SHARE], 1);
	places_leave(many, asks);
	/* He has most himself. */
	assert_non_null(places_take(many, pair[2][0], 1000, 5));
	assert_int_equal(own.refused[COUNTS_REFUSED_SHARE], 2);
	assert_true(is_shut(3));
	/* There is an end to it, until displaced connections have ended. */
	for (unsigned int i = 0; i < 100; i++)
		(void)places_take(many, pair[2][0], 1001, 6);
	assert_int_equal(own.connections, PLACES_ALL(8));
}

static void token__has_places_of_its_own(void **state)
{
	struct counts own = {0};
	OWNED(places) struct places *many = NULL;
	struct place *holder;

	(void)state;
	assert_int_equal(places_new(8, &own, &many), 0);
	holder = places_take(many, pair[0][0], PLACES_NOBODY, 1);
	places_trust(many, holder);
	places_trust(many, holder);
	fill(many, PLACES_NOBODY, 8, 2);
	assert_false(is_shut(0));
	/* While it is there, it is nobody's; its end gives nothing back. */
	places_leave(many, holder);
	fill(many, PLACES_NOBODY, 1, 3);
	assert_int_equal(own.refused[COUNTS_REFUSED_SHARE], 5);
}

/* As much as was taken, and of the one who has left. */
static void share__is_given_back(void **state)
{
	struct counts own = {0};
	OWNED(places) struct places *many = NULL;
	struct place *one = NULL;

	(void)state;
	assert_int_equal(places_new(8, &own, &many), 0);
	fill(many, 1001, 1, 0);
	fill(many, 1000, 2, 0);
	for (unsigned int i = 0; i < 3; i++) {
		if (one)
			places_leave(many, one);
		one = places_take(many, pair[0][0], 1000, 0);
		assert_non_null(one);
		assert_int_equal(own.refused[COUNTS_REFUSED_SHARE], 0);
	}
	assert_int_equal(own.connections, 4);
	fill(many, 1000, 1, 0);
	assert_int_equal(own.refused[COUNTS_REFUSED_SHARE], 1);
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
		TEST(places__are_bounded),
		TEST(users__have_shares),
		TEST(newcomer__displaces_who_has_most),
		TEST(token__has_places_of_its_own),
		TEST(share__is_given_back),
		TEST(crowd__of_one_user_has_less_time),
		TEST(requests__that_are_late_end),
		TEST(readers__that_are_late_end),
		TEST(crowds__have_less_time),
		TEST(close__ends_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
