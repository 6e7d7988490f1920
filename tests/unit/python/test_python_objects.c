/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "python/python_objects.h"
#include "python/python_offsets.h"

/* Objects as 3.12 and 3.9 lay them out, in this process's own memory. */
struct heap {
	uint64_t dict[6];
	uint64_t keys[4 + 1 + 3 * 8]; /* 3.11+: head, 8 one-byte indices, entries */
	uint64_t values[8];
	uint64_t text[12];
};

static struct python_memory memory_of(unsigned int minor)
{
	return (struct python_memory){.pid = getpid(),
				      .layout = &python_layout_find(3, minor, false)->info.bpf};
}

static struct heap general_dict_312(void)
{
	struct heap heap = {0};

	heap.keys[1] = 3 | 3 << 8; /* log2 of slots and of index bytes, general kind */
	heap.keys[3] = 3;
	for (uint64_t i = 0; i < 3; i++) {
		heap.keys[5 + 3 * i] = 100 + i;
		heap.keys[6 + 3 * i] = 200 + i;
		heap.keys[7 + 3 * i] = i == 1 ? 0 : 300 + i; /* the second was deleted */
	}
	return heap;
}

static void put_word(void *address, uint64_t word)
{
	memcpy(address, &word, sizeof(word));
}

static int read_dict(unsigned int minor, struct heap *heap, struct python_dict *dict)
{
	struct python_memory memory = memory_of(minor);

	heap->dict[4] = (uintptr_t)heap->keys;
	return python_dict_read(&memory, (uintptr_t)heap->dict, dict);
}

static void dict_312__deleted_entries_are_left_out(void **state)
{
	OWNED_PYTHON_DICT struct python_dict dict = {0};
	struct heap heap = general_dict_312();

	(void)state;
	assert_int_equal(read_dict(12, &heap, &dict), 0);
	assert_int_equal(dict.count, 2);
	assert_int_equal(dict.entry[1].hash, 102);
	assert_int_equal(dict.entry[1].key, 202);
	assert_int_equal(dict.entry[1].value, 302);
}

static void dict_312__split_values_come_from_their_own_array(void **state)
{
	OWNED_PYTHON_DICT struct python_dict dict = {0};
	struct heap heap = {0};

	(void)state;
	heap.keys[1] = 3 | 3 << 8 | 2 << 16; /* split: {key, value} */
	heap.keys[3] = 2;
	heap.keys[5] = 200;
	heap.keys[7] = 201;
	heap.values[0] = 300;
	heap.values[1] = 301;
	heap.dict[5] = (uintptr_t)heap.values;
	assert_int_equal(read_dict(12, &heap, &dict), 0);
	assert_int_equal(dict.count, 2);
	assert_int_equal(dict.entry[1].key, 201);
	assert_int_equal(dict.entry[1].value, 301);
}

static void dict_313__values_are_bounded_by_their_capacity(void **state)
{
	OWNED_PYTHON_DICT struct python_dict dict = {0};
	struct heap heap = {0};

	(void)state;
	heap.keys[1] = 3 | 3 << 8 | 2 << 16;
	heap.keys[3] = 2;
	heap.keys[5] = 200;
	heap.keys[7] = 201;
	heap.values[0] = 1 | 1ULL << 24; /* capacity 1, valid */
	heap.values[1] = 300;
	heap.values[2] = 301;
	heap.dict[5] = (uintptr_t)heap.values;
	assert_int_equal(read_dict(13, &heap, &dict), 0);
	assert_int_equal(dict.count, 1);
	assert_int_equal(dict.entry[0].value, 300);
}

static void dict__absurd_sizes_are_refused(void **state)
{
	OWNED_PYTHON_DICT struct python_dict dict = {0};
	struct heap heap = general_dict_312();

	(void)state;
	heap.keys[3] = 1ULL << 60;
	assert_int_equal(read_dict(12, &heap, &dict), -EBADMSG);
	heap.keys[1] = 63 | 3 << 8;
	assert_int_equal(read_dict(12, &heap, &dict), -EBADMSG);
	heap.keys[1] = 3 | 63 << 8;
	heap.keys[3] = 3;
	assert_int_equal(read_dict(12, &heap, &dict), -EBADMSG);
	/* A table as big as its head says is read in part, and that is not there. */
	heap.keys[1] = 40 | 3 << 8;
	heap.keys[3] = 1ULL << 39;
	assert_int_equal(read_dict(12, &heap, &dict), -EFAULT);
	/* <= 3.10: a size that is no power of two, more entries than slots. */
	heap.keys[1] = 12;
	assert_int_equal(read_dict(9, &heap, &dict), -EBADMSG);
	heap.keys[1] = 8;
	heap.keys[4] = 9;
	assert_int_equal(read_dict(9, &heap, &dict), -EBADMSG);
	heap.keys[4] = 3;
	heap.keys[1] = 1ULL << 41;
	assert_int_equal(read_dict(9, &heap, &dict), -EBADMSG);
	heap.keys[1] = 1ULL << 40;
	assert_int_equal(read_dict(9, &heap, &dict), -EFAULT);
	heap.keys[1] = 0;
	heap.keys[4] = 0;
	assert_int_equal(read_dict(9, &heap, &dict), -EBADMSG);
	assert_null(dict.entry);
}

/* Objects/dictobject.c, up to 3.10: what all empty dictionaries share has one slot. */
static void dict_39__empty_one_has_one_slot(void **state)
{
	OWNED_PYTHON_DICT struct python_dict dict = {0};
	struct heap heap = {.keys = {[1] = 1}};

	(void)state;
	assert_int_equal(read_dict(9, &heap, &dict), 0);
	assert_int_equal(dict.count, 0);
}

/* The header of free-threaded builds has 32 bytes; a file of 3.13 and later could tell anything. */
static void dict__header_has_32_bytes_at_most(void **state)
{
	struct pp_python layout = python_layout_find(3, 12, false)->info.bpf;
	struct python_memory memory = {.pid = getpid(), .layout = &layout};
	struct python_dict_head head;
	uint64_t object[10] = {0};

	(void)state;
	object[3] = 77;
	layout.ob_type = 24;
	assert_int_equal(python_dict_head_read(&memory, (uintptr_t)object, &head), 0);
	assert_int_equal(head.type, 77);
	layout.ob_type = 25;
	assert_int_equal(python_dict_head_read(&memory, (uintptr_t)object, &head), -EBADMSG);
}

/* Nothing behind its last entry is read: memory may end there. */
static void dict_39__full_table_may_end_where_memory_does(void **state)
{
	enum { BYTES = 40 + 8 + 8 * 24 };
	struct python_memory memory = memory_of(9);
	uint8_t *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *keys = page + 4096 - BYTES;
	uint64_t dict_object[6] = {[4] = (uintptr_t)keys};
	OWNED_PYTHON_DICT struct python_dict dict = {0};

	(void)state;
	assert_true(page != MAP_FAILED);
	munmap(page + 4096, 4096);
	put_word(keys + 8, 8);
	put_word(keys + 32, 8);
	for (uint64_t i = 0; i < 8; i++)
		for (uint64_t word = 0; word < 3; word++)
			put_word(keys + 48 + i * 24 + word * 8, 100 * (word + 1) + i);
	assert_int_equal(python_dict_read(&memory, (uintptr_t)dict_object, &dict), 0);
	assert_int_equal(dict.count, 8);
	assert_int_equal(dict.entry[7].hash, 107);
	assert_int_equal(dict.entry[7].key, 207);
	assert_int_equal(dict.entry[7].value, 307);
	munmap(page, 4096);
}

static void integer__of_both_layouts(void **state)
{
	uint64_t object[4] = {1, 2, 2 << 3, 5 | 7ULL << 32};
	struct python_memory memory = memory_of(12);
	uint64_t value = 0;

	(void)state;
	assert_int_equal(python_int_read(&memory, (uintptr_t)object, &value), 0);
	assert_int_equal(value, 5 + 7 * (1ULL << 30));
	object[2] = 1 << 3 | 2; /* negative */
	assert_int_equal(python_int_read(&memory, (uintptr_t)object, &value), -ERANGE);
	object[2] = 1; /* zero */
	assert_int_equal(python_int_read(&memory, (uintptr_t)object, &value), 0);
	assert_int_equal(value, 0);
	memory = memory_of(11);
	object[2] = 1;
	assert_int_equal(python_int_read(&memory, (uintptr_t)object, &value), 0);
	assert_int_equal(value, 5);
	object[2] = (uint64_t)-1;
	assert_int_equal(python_int_read(&memory, (uintptr_t)object, &value), -ERANGE);
}

static void string__is_cut_at_a_character(void **state)
{
	struct python_memory memory = memory_of(12);
	struct heap heap = {0};
	OWNED_MEM char *text = NULL;

	(void)state;
	heap.text[2] = ~0ULL >> 1;	/* length */
	heap.text[4] = 2 << 2 | 1 << 5; /* two bytes a character, compact */
	heap.text[7] = 0x4e2d006100620063ULL;
	assert_int_equal(python_string_read(&memory, (uintptr_t)heap.text, 9, &text), 0);
	assert_string_equal(text, "cba\xe4\xb8\xad");
	assert_int_equal(python_text_cut(text, 6), 6);
	assert_int_equal(python_text_cut(text, 5), 3);
	assert_int_equal(python_text_cut(text, 4), 3);
	assert_int_equal(python_text_cut(text, 60), 6);
	/* ASCII of two bytes a character is no str. */
	heap.text[4] |= 1 << 6;
	char *none = NULL;

	assert_int_equal(python_string_read(&memory, (uintptr_t)heap.text, 9, &none), -EBADMSG);
	assert_null(none);
}

static void string__has_one_two_or_four_bytes_a_character(void **state)
{
	struct python_memory memory = memory_of(12);

	(void)state;
	for (uint64_t kind = 0; kind < 8; kind++) {
		const bool is_good = kind == 1 || kind == 2 || kind == 4;
		struct python_string string = {0};
		struct heap heap = {0};

		heap.text[2] = 3;
		heap.text[4] = kind << 2 | 1 << 5;
		assert_int_equal(python_string_find(&memory, (uintptr_t)heap.text, &string),
				 is_good ? 0 : -EBADMSG);
		assert_int_equal(string.kind, is_good ? kind : 0);
		assert_int_equal(string.data, is_good ? (uintptr_t)heap.text + 56 : 0);
	}
}

/* Of a layout that a file tells, length and state may end the 64 bytes that are read. */
static void string__head_is_64_bytes_at_most(void **state)
{
	static const struct {
		uint16_t length, state;
		int expected;
	} cases[] = {{16, 32, 0},	 {52, 60, 0},	     {56, 60, 0},	{28, 32, 0},
		     {57, 60, -EBADMSG}, {29, 32, -EBADMSG}, {16, 61, -EBADMSG}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pp_python layout = python_layout_find(3, 12, false)->info.bpf;
		struct python_memory memory = {.pid = getpid(), .layout = &layout};
		const uint64_t length = 3;
		const uint32_t kind = 1 << 2 | 1 << 5 | 1 << 6;
		struct python_string string = {0};
		uint8_t bytes[80] = {0};

		layout.str_length = cases[i].length;
		layout.str_state = cases[i].state;
		memcpy(bytes + layout.str_length, &length, sizeof(length));
		memcpy(bytes + layout.str_state, &kind, sizeof(kind));
		assert_int_equal(python_string_find(&memory, (uintptr_t)bytes, &string),
				 cases[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dict_312__deleted_entries_are_left_out),
		cmocka_unit_test(dict_312__split_values_come_from_their_own_array),
		cmocka_unit_test(dict_313__values_are_bounded_by_their_capacity),
		cmocka_unit_test(dict__absurd_sizes_are_refused),
		cmocka_unit_test(integer__of_both_layouts),
		cmocka_unit_test(string__is_cut_at_a_character),
		cmocka_unit_test(dict_39__empty_one_has_one_slot),
		cmocka_unit_test(dict__header_has_32_bytes_at_most),
		cmocka_unit_test(dict_39__full_table_may_end_where_memory_does),
		cmocka_unit_test(string__has_one_two_or_four_bytes_a_character),
		cmocka_unit_test(string__head_is_64_bytes_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
