/* SPDX-License-Identifier: BSD-2-Clause */
/* The dictionary and the child are stand-ins. */
#include "symbolize/symbolizer.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "drain/raw_codes.h"
#include "files/client.h"

#define CODES 4096U
#define NOBODY 2000U /* from this user on there is no child now */

/* By index. */
static struct made_code {
	struct raw_code_link link;
	struct python_code code;
	struct python_code_raw raw;
	bool is_given_up;
} made[CODES];
static uint32_t late; /* index of the code object at which the child is late; 0: none */
static uint32_t fit;  /* so many go into a request */
static uint32_t none; /* the index of one for whose names there is no room; 0: none */
static struct raw_codes codes;
static unsigned int lookups;
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

struct raw_codes *dictionary_raw_codes(struct dictionary *dictionary)
{
	(void)dictionary;
	return &codes;
}

const struct python_code *dictionary_code(const struct dictionary *dictionary, uint32_t index)
{
	(void)dictionary;
	lookups++;
	return &made[index].code;
}

static void take_off(uint32_t index)
{
	assert_non_null(made[index].code.raw);
	made[index].code.raw = NULL;
	raw_codes_remove(&codes, &made[index].link);
}

int dictionary_decode_code(struct dictionary *dictionary, uint32_t index,
			   struct python_code_text *text)
{
	(void)dictionary;
	take_off(index);
	made[index].code.name = index == none ? NULL : text->name;
	return index == none ? -ENOSPC : 0;
}

void dictionary_give_up_code(struct dictionary *dictionary, uint32_t index)
{
	(void)dictionary;
	take_off(index);
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
	if (file->user >= NOBODY)
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
	made[index].link = (struct raw_code_link){.index = index, .user = user};
	made[index].raw.first_line = index;
	made[index].raw.size = 64;
	made[index].code.raw = &made[index].raw;
	made[index].code.name = NULL;
	made[index].is_given_up = false;
	assert_int_equal(raw_codes_add(&codes, &made[index].link), 0);
}

static int setup(void **state)
{
	(void)state;
	memset(made, 0, sizeof(made));
	decoder = (struct code_decoder){.foreign = (struct foreign *)&made};
	calls[0] = '\0';
	fit = UINT32_MAX;
	late = none = 0;
	lookups = 0;
	now_ns = NS_PER_SEC;
	request_ns = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	raw_codes_release(&codes);
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
	assert_string_equal(calls, "500:1*3 0:4*1 500:1*1 500:2*1 500:3*1 ");
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

/* Nobody starves: neither who has few beside who has many, nor who has good ones beside one whose
 * code objects are asked about one by one. */
static void run__users_take_turns(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < 1100; i++)
		add(i, 500);
	add(1100, 501);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "500:1*512 501:1100*1 500:513*512 500:1025*75 ");
	calls[0] = '\0';
	late = 2;
	add(1, 500);
	add(2, 500);
	add(3, 500);
	add(4, 501);
	add(5, 501);
	fit = 1;
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "500:1*3 501:4*2 500:1*1 501:5*1 500:2*1 500:3*1 ");
}

static void run__asks_about_as_many_bytes_as_go_into_a_request(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < 5; i++)
		add(i, 0);
	made[2].raw.size = FOREIGN_CODES_BYTES - 64;
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "0:1*2 0:3*2 ");
	add(1, 0);
	add(2, 0);
	made[1].raw.size = FOREIGN_CODES_BYTES + 1;
	calls[0] = '\0';
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "0:1*1 0:2*1 ");
}

static void run__user_who_must_wait_holds_nobody_up(void **state)
{
	(void)state;
	add(1, NOBODY);
	add(2, 500);
	add(3, NOBODY);
	code_decoder_begin(&decoder);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "2000:1*2 500:2*1 ");
	assert_non_null(made[1].code.raw);
	assert_non_null(made[3].code.raw);
	assert_null(made[2].code.raw);
	assert_int_equal(decoder.given_up, 0);
	/* Once a naming, however many slices that has. */
	add(4, NOBODY);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "2000:1*2 500:2*1 ");
	code_decoder_begin(&decoder);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "2000:1*2 500:2*1 2000:1*3 ");
}

/* More users than there were room for in a list of them once. */
static void run__all_who_must_wait_are_asked_about_once(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < 101; i++)
		add(i, NOBODY + i % 50);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_int_equal(lookups, 100);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_int_equal(lookups, 100);
	assert_non_null(strstr(calls, "2049:49*2 2000:50*2 "));
}

/* What is decoded, and who waits, costs a slice nothing. */
static void run__looks_at_each_code_object_once(void **state)
{
	struct slice slice;

	(void)state;
	request_ns = 10;
	fit = 16;
	for (uint32_t i = 1; i < 2001; i++)
		add(i, i <= 1000 ? NOBODY : 500);
	for (uint32_t i = 0; i < 1000; i++) {
		slice = slice_begin(5);
		if (!code_decoder_run(&decoder, &slice))
			break;
	}
	assert_int_equal(codes.count, 1000);
	/* A batch is collected for 16 of its answers. */
	assert_true(lookups <= 512 + 1000 / 16 * 512 + 512);
	lookups = 0;
	for (uint32_t i = 0; i < 100; i++)
		assert_false(code_decoder_run(&decoder, &slice));
	assert_int_equal(lookups, 0);
}

static void run__one_by_one_goes_on_for_who_had_to_wait(void **state)
{
	(void)state;
	late = 1;
	add(1, NOBODY);
	add(2, NOBODY);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "2000:1*2 2000:1*1 2000:2*1 ");
	add(3, NOBODY);
	code_decoder_begin(&decoder);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "2000:1*2 2000:1*1 2000:2*1 2000:2*1 ");
}

static void run__those_that_come_meanwhile_are_asked_about_together(void **state)
{
	struct slice slice;

	(void)state;
	late = 2;
	for (uint32_t i = 1; i < 4; i++)
		add(i, 500);
	request_ns = 10;
	slice = slice_begin(5);
	assert_true(code_decoder_run(&decoder, &slice));
	for (uint32_t i = 4; i < 8; i++)
		add(i, 500);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "500:1*3 500:1*1 500:2*1 500:3*1 500:4*4 ");
}

static void run__counts_what_is_left_without_names_once_a_naming(void **state)
{
	struct slice slice;

	(void)state;
	add(1, NOBODY);
	add(2, NOBODY);
	add(3, 500);
	request_ns = 10;
	slice = slice_begin(5);
	code_decoder_begin(&decoder);
	assert_true(code_decoder_run(&decoder, &slice));
	assert_int_equal(decoder.without_names, 0);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_int_equal(decoder.without_names, 2);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_int_equal(decoder.without_names, 2);
	code_decoder_begin(&decoder);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_int_equal(decoder.without_names, 4);
	assert_int_equal(decoder.given_up, 0);
}

static void run__counts_one_for_whose_names_there_is_no_room(void **state)
{
	(void)state;
	none = 2;
	for (uint32_t i = 1; i < 4; i++)
		add(i, 500);
	assert_false(code_decoder_run(&decoder, NULL));
	assert_int_equal(decoder.given_up, 1);
	assert_int_equal(decoder.without_names, 0);
	assert_string_equal(made[3].code.name, "f");
}

static void run__without_a_child_leaves_all_as_they_are(void **state)
{
	(void)state;
	add(1, 0);
	decoder.foreign = NULL;
	assert_false(code_decoder_run(&decoder, NULL));
	assert_string_equal(calls, "");
	assert_non_null(made[1].code.raw);
	assert_int_equal(decoder.without_names, 1);
}

int main(void)
{
#define RUN(name) cmocka_unit_test_setup_teardown(run__##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		RUN(asks_once_for_each_user),
		RUN(goes_on_where_an_answer_ended),
		RUN(asks_about_512_at_most),
		RUN(asks_about_as_many_bytes_as_go_into_a_request),
		RUN(ends_with_its_slice),
		RUN(gives_up_the_one_at_which_the_child_is_late),
		RUN(users_take_turns),
		RUN(user_who_must_wait_holds_nobody_up),
		RUN(all_who_must_wait_are_asked_about_once),
		RUN(looks_at_each_code_object_once),
		RUN(one_by_one_goes_on_for_who_had_to_wait),
		RUN(those_that_come_meanwhile_are_asked_about_together),
		RUN(counts_what_is_left_without_names_once_a_naming),
		RUN(counts_one_for_whose_names_there_is_no_room),
		RUN(without_a_child_leaves_all_as_they_are),
	};

	return cmocka_run_group_tests_name("symbolize/code_decoder", tests, NULL, NULL);
}
