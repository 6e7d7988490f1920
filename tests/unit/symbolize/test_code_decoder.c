/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: symbolize/code_decoder.c */
/* The dictionary and the child are stand-ins. */
#include "symbolize/code_decoder.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "foreign/client.h"

#define CODES 4096U
#define NOBODY 2000U /* the user for whom there is no child now */

/* By index; user UINT32_MAX: none is there. */
static struct made_code {
	uint32_t user;
	struct python_code code;
	struct python_code_raw raw;
	bool is_given_up;
} made[CODES];
static uint32_t late; /* index of the code object at which the child is late; 0: none */
static uint32_t fit;  /* so many go into a request */
static char calls[4096];
static struct code_decoder decoder;
static uint64_t now_ns, request_ns;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = (time_t)(now_ns / NS_PER_SEC),
				  .tv_nsec = (long)(now_ns % NS_PER_SEC)};
	return 0;
}

uint32_t dictionary_next_raw(const struct dictionary *dictionary, uint32_t from,
			     uint32_t *ret_user)
{
	(void)dictionary;
	assert_true(from > 0);
	for (uint32_t i = from; i < CODES; i++) {
		if (!made[i].code.raw)
			continue;
		*ret_user = made[i].user;
		return i;
	}
	return 0;
}

const struct python_code *dictionary_code(const struct dictionary *dictionary, uint32_t index)
{
	(void)dictionary;
	return &made[index].code;
}

void dictionary_decode_code(struct dictionary *dictionary, uint32_t index,
			    struct python_code_text *text)
{
	(void)dictionary;
	assert_non_null(made[index].code.raw);
	made[index].code.raw = NULL;
	made[index].code.name = text->name;
}

void dictionary_give_up_code(struct dictionary *dictionary, uint32_t index)
{
	(void)dictionary;
	assert_non_null(made[index].code.raw);
	made[index].code.raw = NULL;
	made[index].is_given_up = true;
}

/* Code objects are told apart by their first lines, which are their indices. */
int foreign_codes(struct foreign *foreign, const struct foreign_file *file,
		  const struct python_code_raw *const *raw, size_t count,
		  foreign_code_handler *decoded, void *context)
{
	const size_t used = strlen(calls);
	static char name[] = "f";

	assert_ptr_equal(foreign, &made);
	assert_int_equal(file->user, file->payer);
	assert_int_equal(file->number & 0x1fffffff, raw[0]->first_line);
	assert_int_equal(file->number >> 29, count > 1 ? 7 : 6);
	snprintf(calls + used, sizeof(calls) - used, "%u:%u*%zu ", file->user, raw[0]->first_line,
		 count);
	now_ns += request_ns;
	for (size_t i = 0; i < count; i++)
		if (raw[i]->first_line == late)
			return -ETIME;
	if (file->user == NOBODY)
		return -ETIMEDOUT;
	count = count < fit ? count : fit;
	for (size_t i = 0; i < count; i++) {
		struct python_code_text text = {.name = name};

		decoded(context, i, &text);
	}
	return (int)count;
}

static void add(uint32_t index, uint32_t user)
{
	made[index].user = user;
	made[index].raw.first_line = index;
	made[index].code.raw = &made[index].raw;
	made[index].code.name = NULL;
	made[index].is_given_up = false;
}

static int setup(void **state)
{
	(void)state;
	memset(made, 0, sizeof(made));
	decoder = (struct code_decoder){.foreign = (struct foreign *)&made};
	calls[0] = '\0';
	fit = UINT32_MAX;
	late = 0;
	now_ns = NS_PER_SEC;
	request_ns = 0;
	return 0;
}

static void run__asks_once_for_each_user(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < 9; i++)
		add(i, i % 2 ? 0 : 500);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "0:1*4 500:2*4 ");
	for (uint32_t i = 1; i < 9; i++)
		assert_string_equal(made[i].code.name, "f");
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "0:1*4 500:2*4 ");
	assert_int_equal(decoder.given_up, 0);
}

static void run__goes_on_where_an_answer_ended(void **state)
{
	(void)state;
	fit = 2;
	for (uint32_t i = 1; i < 6; i++)
		add(i, 0);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "0:1*5 0:3*3 0:5*1 ");
}

static void run__asks_about_512_at_most(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < 515; i++)
		add(i, 0);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "0:1*512 0:513*2 ");
}

static void run__ends_with_its_slice(void **state)
{
	struct slice slice;

	(void)state;
	request_ns = 10;
	fit = 1;
	for (uint32_t i = 1; i < 4; i++)
		add(i, 0);
	slice = slice_begin(15);
	assert_true(code_decoder_run(&decoder, &slice));
	assert_string_equal(calls, "0:1*3 0:2*2 ");
	slice = slice_begin(15);
	assert_false(code_decoder_run(&decoder, &slice) && made[3].code.raw);
	assert_null(made[3].code.raw);
}

/* Whose code object it was is found out by asking one by one. */
static void run__gives_up_the_one_at_which_the_child_is_late(void **state)
{
	(void)state;
	late = 2;
	for (uint32_t i = 1; i < 4; i++)
		add(i, 500);
	add(4, 0);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "500:1*3 500:1*1 500:2*1 500:3*1 0:4*1 ");
	assert_int_equal(decoder.given_up, 1);
	assert_true(made[2].is_given_up);
	assert_null(made[2].code.name);
	assert_string_equal(made[1].code.name, "f");
	assert_string_equal(made[3].code.name, "f");
	/* And the next ones go together again. */
	late = 0;
	add(5, 0);
	add(6, 0);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_non_null(strstr(calls, "0:5*2"));
}

static void run__user_who_must_wait_holds_nobody_up(void **state)
{
	(void)state;
	add(1, NOBODY);
	add(2, 500);
	add(3, NOBODY);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "2000:1*2 500:2*1 ");
	assert_non_null(made[1].code.raw);
	assert_non_null(made[3].code.raw);
	assert_null(made[2].code.raw);
	assert_int_equal(decoder.given_up, 0);
	/* The next time they are asked about again. */
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "2000:1*2 500:2*1 2000:1*2 ");
}

static void run__without_a_child_leaves_all_as_they_are(void **state)
{
	(void)state;
	add(1, 0);
	decoder.foreign = NULL;
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "");
	assert_non_null(made[1].code.raw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(run__asks_once_for_each_user, setup),
		cmocka_unit_test_setup(run__goes_on_where_an_answer_ended, setup),
		cmocka_unit_test_setup(run__asks_about_512_at_most, setup),
		cmocka_unit_test_setup(run__ends_with_its_slice, setup),
		cmocka_unit_test_setup(run__gives_up_the_one_at_which_the_child_is_late, setup),
		cmocka_unit_test_setup(run__user_who_must_wait_holds_nobody_up, setup),
		cmocka_unit_test_setup(run__without_a_child_leaves_all_as_they_are, setup),
	};

	return cmocka_run_group_tests_name("symbolize/code_decoder", tests, NULL, NULL);
}
