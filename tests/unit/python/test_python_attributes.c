/* SPDX-License-Identifier: BSD-2-Clause */
/* Where each version keeps the attributes of an instance, and how names are found in a dictionary,
 * on objects in this process's own memory.  The offsets are those of Include/cpython/object.h and
 * Include/internal/pycore_dict.h. */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "python/python_objects.h"
#include "python/python_offsets.h"

#define KEY 0x1110ULL /* never read */
#define VALUE 0x2220ULL

/* An instance and what its attributes need; the words before the object hold its managed ones. */
struct heap {
	uint64_t before[8], object[16], type[128], dict[8], keys[16], values[8];
};

static struct python_memory memory_of(unsigned int minor, bool is_free_threaded)
{
	return (struct python_memory){
		.pid = getpid(),
		.layout = &python_layout_find(3, minor, is_free_threaded)->info.bpf};
}

static uint64_t at(const void *address)
{
	return (uintptr_t)address;
}

/* A word of an object, `offset` bytes from its begin. */
static void put(uint64_t *object, size_t offset, uint64_t value)
{
	object[offset / 8] = value;
}

/* One entry, KEY: VALUE. */
static void put_keys(struct heap *heap, unsigned int minor, bool is_split)
{
	uint64_t *entry;

	if (minor <= 10) {
		put(heap->keys, 8, 8);	/* dk_size */
		put(heap->keys, 32, 1); /* dk_nentries */
		entry = heap->keys + 6; /* after 8 indices */
	} else {
		put(heap->keys, 8, 3 | 3 << 8 | (is_split ? 2 : 0) << 16);
		put(heap->keys, 24, 1); /* dk_nentries */
		entry = heap->keys + 5;
	}
	if (minor <= 10 || !is_split)
		*entry++ = 77; /* hash */
	entry[0] = KEY;
	entry[1] = is_split ? 0 : VALUE;
}

static void put_dict(struct heap *heap, const struct python_memory *memory, unsigned int minor)
{
	put_keys(heap, minor, false);
	heap->dict[python_header_bytes(memory->layout) / 8 + 2] = at(heap->keys);
}

static void expect_attribute(const struct python_memory *memory, const struct heap *heap,
			     int expected)
{
	OWNED_PYTHON_DICT struct python_dict dict = {0};

	assert_int_equal(python_attributes_read(memory, at(heap->object), &dict), expected);
	if (expected) {
		assert_null(dict.entry);
		return;
	}
	assert_int_equal(dict.count, 1);
	assert_int_equal(dict.entry[0].key, KEY);
	assert_int_equal(dict.entry[0].value, VALUE);
	assert_int_equal(*(const uint64_t *)(uintptr_t)dict.entry[0].value_address, VALUE);
}

/* type: ob_size at 16, tp_basicsize 32, tp_itemsize 40, tp_flags 168, tp_dictoffset 288 */
static void attributes_39__lie_at_the_types_dictoffset(void **state)
{
	struct python_memory memory = memory_of(9, false);
	static const struct {
		uint64_t dictoffset, basicsize, itemsize, size, at;
		int expected;
	} cases[] = {
		{24, 32, 0, 0, 24, 0},
		{24, 32, 0, 0, 32, -ENODATA}, /* the pointer is NULL */
		{0, 32, 0, 0, 24, -ENODATA},
		/* from the end of an object of variable size, a multiple of 8 */
		{-8ULL, 24, 4, 3, 32, 0},
		{-8ULL, 24, 4, -3ULL, 32, 0},
		{-8ULL, 24, 4, 2, 24, 0},
		{-16ULL, 24, 8, 3, 32, 0},
		{-8ULL, 24, 4, 4, 24, -ENODATA},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct heap heap = {0};

		put_dict(&heap, &memory, 9);
		put(heap.object, 8, at(heap.type));
		put(heap.object, 16, cases[i].size);
		put(heap.object, cases[i].at, at(heap.dict));
		put(heap.type, 32, cases[i].basicsize);
		put(heap.type, 40, cases[i].itemsize);
		put(heap.type, 168, 1 << 4 | 1 << 2); /* other flags then */
		put(heap.type, 288, cases[i].dictoffset);
		expect_attribute(&memory, &heap, cases[i].expected);
	}
}

static void attributes_311__managed_ones_lie_before_the_object(void **state)
{
	struct python_memory memory = memory_of(11, false);
	struct heap heap = {0};

	(void)state;
	put(heap.object, 8, at(heap.type));
	put(heap.type, 168, 1 << 4);
	expect_attribute(&memory, &heap, -ENODATA);
	/* the dictionary 24 bytes before */
	put_dict(&heap, &memory, 11);
	heap.before[5] = at(heap.dict);
	expect_attribute(&memory, &heap, 0);
	/* the values 32 bytes before, of the type's cached keys (at 872) */
	put_keys(&heap, 11, true);
	heap.before[4] = at(heap.values);
	put(heap.type, 872, at(heap.keys));
	heap.values[0] = VALUE;
	expect_attribute(&memory, &heap, 0);
	/* without the flag: tp_dictoffset */
	put(heap.type, 168, 1 << 2);
	expect_attribute(&memory, &heap, -ENODATA);
}

static void attributes_312__one_word_has_the_dictionary_or_the_values(void **state)
{
	struct python_memory memory = memory_of(12, false);
	struct heap heap = {0};

	(void)state;
	put(heap.object, 8, at(heap.type));
	put(heap.type, 168, 1 << 4 | 1 << 2); /* inline values: from 3.13 on */
	expect_attribute(&memory, &heap, -ENODATA);
	heap.before[4] = 0x5555; /* no word of it */
	put_dict(&heap, &memory, 12);
	heap.before[5] = at(heap.dict);
	expect_attribute(&memory, &heap, 0);
	put_keys(&heap, 12, true);
	heap.before[5] = at(heap.values) - 1;
	put(heap.type, 880, at(heap.keys));
	heap.values[0] = VALUE;
	expect_attribute(&memory, &heap, 0);
}

static void attributes_313__inline_values_follow_the_object_while_they_are_valid(void **state)
{
	static const struct {
		unsigned int minor;
		bool is_free_threaded;
		size_t keys; /* offset in the type */
	} cases[] = {{13, false, 880}, {14, false, 880}, {15, false, 888}, {13, true, 896}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct python_memory memory = memory_of(cases[i].minor, cases[i].is_free_threaded);
		const size_t header = cases[i].is_free_threaded ? 32 : 16;
		struct heap heap = {0};
		uint64_t *values = heap.object + 6;

		assert_int_equal(python_header_bytes(memory.layout), header);
		put(heap.object, header - 8, at(heap.type));
		put(heap.type, header + 16, 48); /* tp_basicsize */
		put(heap.type, header + 152, 1 << 4 | 1 << 2);
		put(heap.type, cases[i].keys, at(heap.keys));
		put_keys(&heap, cases[i].minor, true);
		values[0] = 1 | 1 << 24; /* capacity 1, valid */
		values[1] = VALUE;
		expect_attribute(&memory, &heap, 0);
		values[0] = 1; /* they have moved into a dictionary */
		expect_attribute(&memory, &heap, -ENODATA);
		put(heap.type, header + 152, 1 << 4);
		values[0] = 1 | 1 << 24;
		expect_attribute(&memory, &heap, -ENODATA);
		/* a dictionary comes first: 24 bytes before, in free-threaded builds 8 */
		put_dict(&heap, &memory, cases[i].minor);
		heap.before[cases[i].is_free_threaded ? 7 : 5] = at(heap.dict);
		expect_attribute(&memory, &heap, 0);
	}
}

static void attributes__of_memory_that_is_not_there_are_a_fault(void **state)
{
	struct python_memory memory = memory_of(12, false);
	OWNED_PYTHON_DICT struct python_dict dict = {0};
	struct heap heap = {0};

	(void)state;
	assert_int_equal(python_attributes_read(&memory, 8, &dict), -EFAULT);
	put(heap.object, 8, 16);
	assert_int_equal(python_attributes_read(&memory, at(heap.object), &dict), -EFAULT);
	put(heap.object, 8, at(heap.type));
	put(heap.type, 168, 1 << 4);
	heap.before[5] = 16;
	assert_int_equal(python_attributes_read(&memory, at(heap.object), &dict), -EFAULT);
	heap.before[5] = 17; /* values, of keys that are not there */
	assert_int_equal(python_attributes_read(&memory, at(heap.object), &dict), -EFAULT);
	assert_null(dict.entry);
}

/* ---- names in a dictionary ---- */

#define NAMES 70

/* Compact ASCII str objects of 3.12: length at 16, state at 32, characters at 40. */
struct name {
	uint64_t word[10];
};

static void put_name(struct name *name, const char *text)
{
	name->word[2] = strlen(text);
	name->word[4] = 1 << 2 | 1 << 5 | 1 << 6; /* one byte a character, compact, ASCII */
	memcpy(&name->word[5], text, strlen(text));
}

static void dict_find__finds_a_name_in_any_batch(void **state)
{
	struct python_memory memory = memory_of(12, false);
	struct python_dict_entry entry[NAMES];
	static struct name name[NAMES];
	struct python_dict dict = {.entry = entry};

	(void)state;
	for (size_t i = 0; i < NAMES; i++) {
		char text[32];

		snprintf(text, sizeof(text), "name%02zu", i);
		put_name(&name[i], text);
		entry[i] = (struct python_dict_entry){.key = at(&name[i]), .value = i};
	}
	for (dict.count = 0; dict.count <= NAMES; dict.count++) {
		struct python_key last = {.name = NULL}, none = {.name = "name99"};
		char text[32];

		assert_null(python_dict_find(&memory, &dict, &none));
		assert_int_equal(none.address, 0);
		if (!dict.count)
			continue;
		snprintf(text, sizeof(text), "name%02zu", dict.count - 1);
		last.name = text;
		assert_ptr_equal(python_dict_find(&memory, &dict, &last), &entry[dict.count - 1]);
		assert_int_equal(last.address, entry[dict.count - 1].key);
		/* the second time by its address: nothing is read */
		last.name = "other";
		assert_ptr_equal(python_dict_find(&memory, &dict, &last), &entry[dict.count - 1]);
	}
}

/* A name is a whole ASCII str. */
static void dict_find__a_name_is_equal_or_not_found(void **state)
{
	struct python_memory memory = memory_of(12, false);
	static struct name name;
	struct python_dict_entry entry = {.key = at(&name), .value = 1};
	struct python_dict dict = {.entry = &entry, .count = 1};
	static const struct {
		const char *text, *wanted;
		uint64_t state; /* changed bits */
		bool is_found;
	} cases[] = {
		{"abc", "abc", 0, true},
		{"abcd", "abc", 0, false},
		{"abc", "abcd", 0, false},
		{"abd", "abc", 0, false},
		{"abc", "abc", 1 << 6, false}, /* Latin-1: the characters lie elsewhere */
		{"abc", "abc", 3 << 2, false}, /* two bytes a character */
		{"12345678901234567890123456789012", "12345678901234567890123456789012", 0, true},
		{"123456789012345678901234567890123", "123456789012345678901234567890123", 0,
		 false}, /* more than 32 bytes */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct python_key key = {.name = cases[i].wanted};

		memset(&name, 0, sizeof(name));
		put_name(&name, cases[i].text);
		name.word[4] ^= cases[i].state;
		if (!!python_dict_find(&memory, &dict, &key) != cases[i].is_found)
			fail_msg("%s in a dictionary of %s", cases[i].wanted, cases[i].text);
	}
}

/* At a mapping's end the str may be shorter than what is read at once. */
static void dict_find__short_names_at_the_end_of_a_mapping_are_found(void **state)
{
	struct python_memory memory = memory_of(12, false);
	uint8_t *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct name name = {0}, other = {0};
	struct python_dict_entry entry[2] = {{.key = at(page + 4096 - 43)}, {.key = at(&other)}};
	struct python_dict dict = {.entry = entry, .count = 2};
	struct python_key key = {.name = "a_longer_name"}, short_key = {.name = "abc"};

	(void)state;
	assert_true(page != MAP_FAILED);
	munmap(page + 4096, 4096);
	put_name(&name, "abc");
	put_name(&other, "a_longer_name");
	memcpy(page + 4096 - 43, &name, 43);
	assert_ptr_equal(python_dict_find(&memory, &dict, &key), &entry[1]);
	assert_ptr_equal(python_dict_find(&memory, &dict, &short_key), &entry[0]);
	munmap(page, 4096);
}

/* 2.7: names are PyStringObject, ob_size at 16 and characters at 36. */
static void dict_find__names_of_27_are_bytes(void **state)
{
	const struct python_layout *layout = python_layout_find(2, 7, false);
	struct python_memory memory = {.pid = getpid(), .layout = &layout->info.bpf};
	uint64_t name[10] = {0};
	struct python_dict_entry entry = {.key = at(name), .value = 1};
	struct python_dict dict = {.entry = &entry, .count = 1};
	struct python_key same = {.name = "abc"}, longer = {.name = "abcd"},
			  other = {.name = "abd"};
	struct python_string string;
	OWNED_MEM char *text = NULL;

	(void)state;
	name[2] = 3;
	memcpy((uint8_t *)name + 36, "abcd", 4);
	assert_ptr_equal(python_dict_find(&memory, &dict, &same), &entry);
	assert_null(python_dict_find(&memory, &dict, &longer));
	assert_null(python_dict_find(&memory, &dict, &other));
	assert_int_equal(python_string_find(&memory, at(name), &string), 0);
	assert_int_equal(string.data, at(name) + 36);
	assert_int_equal(string.length, 3);
	assert_int_equal(string.kind, 1);
	assert_int_equal(python_string_read(&memory, at(name), 60, &text), 0);
	assert_string_equal(text, "abc");
}

/* Read by itself, too, a name may have 32 bytes. */
static void dict_find__longest_name_at_the_end_of_a_mapping_is_found(void **state)
{
	static const char longest[] = "12345678901234567890123456789012";
	struct python_memory memory = memory_of(12, false);
	uint8_t *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct name name = {0};
	struct python_dict_entry entry[2] = {{.key = at(page + 4096 - 8)},
					     {.key = at(page + 4096 - 72)}};
	struct python_dict dict = {.entry = entry, .count = 2};
	struct python_key key = {.name = longest};

	(void)state;
	assert_true(page != MAP_FAILED);
	munmap(page + 4096, 4096);
	put_name(&name, longest);
	memcpy(page + 4096 - 72, &name, 72);
	assert_ptr_equal(python_dict_find(&memory, &dict, &key), &entry[1]);
	munmap(page, 4096);
}

/* ---- what reading costs ---- */

/* Each read costs one, and one more for each whole KiB: a hostile process cannot make a look
 * endless. */
static void reads__are_bounded_by_what_is_left(void **state)
{
	struct python_memory memory = memory_of(12, false);
	static uint8_t source[4096], buffer[4096];
	static const struct {
		size_t size;
		uint32_t left, after;
		int expected;
	} cases[] = {
		{8, 1, 0, 0},	 {8, 2, 1, 0},	       {8, 0, 0, -ETIME},
		{1023, 1, 0, 0}, {1024, 1, 0, -ETIME}, {1024, 2, 0, 0},
		{2047, 2, 0, 0}, {2048, 3, 0, 0},      {2048, 2, 0, -ETIME},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t left = cases[i].left;
		struct process_piece piece = {
			.address = at(source), .buffer = buffer, .size = cases[i].size};

		memory.reads_left = &left;
		assert_int_equal(python_read_pieces(&memory, &piece, 1), cases[i].expected);
		assert_int_equal(left, cases[i].after);
	}
	for (uint32_t enough = 2; enough < 4; enough++) {
		uint32_t left = enough;
		struct process_piece piece[3] = {
			{.address = at(source), .buffer = buffer, .size = 8},
			{.address = at(source), .buffer = buffer, .size = 8},
			{.address = at(source), .buffer = buffer, .size = 8}};

		memory.reads_left = &left;
		assert_int_equal(python_read_pieces(&memory, piece, 3), enough < 3 ? -ETIME : 0);
		assert_int_equal(left, 0);
	}
}

/* Names of which the head lies before the characters are read together, one read each; of another
 * layout each is read by itself, head and characters: they are found all the same. */
static void dict_find__reads_names_together_where_the_layout_lets_it(void **state)
{
	static const struct {
		uint16_t length, state, data;
		uint32_t reads;
	} cases[] = {{16, 32, 40, 2}, {16, 36, 40, 2}, {32, 20, 40, 2}, {16, 37, 40, 3},
		     {16, 56, 40, 3}, {16, 32, 64, 2}, {16, 32, 65, 3}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pp_python layout = python_layout_find(3, 12, false)->info.bpf;
		uint32_t left = 100;
		struct python_memory memory = {
			.pid = getpid(), .layout = &layout, .reads_left = &left};
		const uint64_t length = 3;
		const uint32_t kind = 1 << 2 | 1 << 5 | 1 << 6;
		uint8_t name[2][128] = {0};
		struct python_dict_entry entry[2] = {{.key = at(name[0])}, {.key = at(name[1])}};
		struct python_dict dict = {.entry = entry, .count = 2};
		struct python_key key = {.name = "abc"};

		layout.str_length = cases[i].length;
		layout.str_state = cases[i].state;
		layout.str_ascii_data = cases[i].data;
		memcpy(name[1] + cases[i].length, &length, sizeof(length));
		memcpy(name[1] + cases[i].state, &kind, sizeof(kind));
		memcpy(name[1] + cases[i].data, "abc", 3);
		assert_ptr_equal(python_dict_find(&memory, &dict, &key), &entry[1]);
		if (100 - left != cases[i].reads)
			fail_msg("case %zu: %u reads", i, 100 - left);
	}
	/* The longest name is read with the others; there is none longer. */
	for (size_t bytes = 32; bytes <= 33; bytes++) {
		static const char text[] = "123456789012345678901234567890123";
		struct python_memory memory = memory_of(12, false);
		static struct name names[2];
		struct python_dict_entry entry[2] = {{.key = at(&names[0])},
						     {.key = at(&names[1])}};
		struct python_dict dict = {.entry = entry, .count = 2};
		struct python_key key = {.name = text + 33 - bytes};
		uint32_t left = 100;

		memory.reads_left = &left;
		put_name(&names[0], "x");
		put_name(&names[1], text + 33 - bytes);
		assert_int_equal(!!python_dict_find(&memory, &dict, &key), bytes == 32);
		assert_int_equal(100 - left, bytes == 32 ? 2 : 0);
	}
}

/* ---- limits of tables ---- */

static void dict_312__at_most_65536_slots_are_read(void **state)
{
	enum { SLOTS = 65537 };
	struct python_memory memory = memory_of(12, false);
	const size_t bytes = 32 + (1U << 18) + SLOTS * 16UL;
	uint8_t *keys = calloc(1, bytes);
	uint64_t dict_object[8] = {0};
	struct python_dict dict = {0};

	(void)state;
	assert_non_null(keys);
	keys[8] = 17;
	keys[9] = 18;
	keys[10] = 1; /* keys are str: no hashes */
	memcpy(keys + 24, &(uint64_t){SLOTS}, 8);
	for (size_t i = 0; i < SLOTS; i++)
		memcpy(keys + 32 + (1U << 18) + 16 * i, (uint64_t[]){i + 1, i + 2}, 16);
	dict_object[4] = at(keys);
	assert_int_equal(python_dict_read(&memory, at(dict_object), &dict), 0);
	assert_int_equal(dict.count, 65536);
	assert_int_equal(dict.entry[65535].key, 65536);
	assert_int_equal(dict.entry[65535].hash, 0);
	assert_int_equal(dict.slots.value, SLOTS);
	assert_int_equal(dict.slots.address, at(keys) + 24);
	python_dict_release(&dict);
	assert_null(dict.entry);
	assert_int_equal(dict.count, 0);
	free(keys);
}

/* Up to 3.10 the size says how wide an index is. */
static void dict_39__entries_follow_indices_of_their_width(void **state)
{
	static const struct {
		uint64_t size, index_bytes;
	} cases[] = {{8, 1}, {128, 1}, {256, 2}, {32768, 2}, {65536, 4}};
	struct python_memory memory = memory_of(9, false);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const size_t indices = cases[i].size * cases[i].index_bytes;
		uint64_t *keys = calloc(1, 40 + indices + 24), dict_object[8] = {0};
		OWNED_PYTHON_DICT struct python_dict dict = {0};

		assert_non_null(keys);
		keys[1] = cases[i].size;
		keys[4] = 1;
		memcpy((uint8_t *)keys + 40 + indices, (uint64_t[]){77, KEY, VALUE}, 24);
		dict_object[4] = at(keys);
		assert_int_equal(python_dict_read(&memory, at(dict_object), &dict), 0);
		assert_int_equal(dict.count, 1);
		assert_int_equal(dict.entry[0].hash, 77);
		assert_int_equal(dict.entry[0].key, KEY);
		free(keys);
	}
}

/* Adding a key changes one of the words at least. */
static void dict_stamp__has_the_heads_fields_and_the_used_slots(void **state)
{
	struct python_memory memory = memory_of(12, false);
	struct heap heap = {0};
	OWNED_PYTHON_DICT struct python_dict dict = {0};
	struct python_word stamp[PYTHON_DICT_STAMP_WORDS];
	struct python_dict_head head;

	(void)state;
	put_dict(&heap, &memory, 12);
	heap.dict[1] = 0x77; /* ob_type */
	heap.dict[2] = 1;
	heap.dict[3] = 2;
	assert_int_equal(python_dict_head_read(&memory, at(heap.dict), &head), 0);
	assert_int_equal(head.type, 0x77);
	assert_int_equal(python_dict_read_table(&memory, &head, &dict), 0);
	assert_int_equal(python_dict_stamp(&memory, &head, &dict, stamp), PYTHON_DICT_STAMP_WORDS);
	for (size_t i = 0; i < PYTHON_DICT_STAMP_WORDS; i++) {
		assert_int_equal(stamp[i].value, *(const uint64_t *)(uintptr_t)stamp[i].address);
		assert_int_equal(stamp[i].address,
				 i < 4 ? at(heap.dict + 2 + i) : at(heap.keys + 3));
	}
	assert_int_equal(python_dict_table_word(&memory, &head).address, at(heap.dict + 4));
	assert_int_equal(python_dict_table_word(&memory, &head).value, at(heap.keys));
	dict.slots = (struct python_word){0};
	assert_int_equal(python_dict_stamp(&memory, &head, &dict, stamp), PYTHON_DICT_FIELDS);
}

/* Include/object.h of 2.7: a table of {hash, key, value}, of which each may be empty. */
static void dict_27__slots_are_the_table(void **state)
{
	const struct python_layout *layout = python_layout_find(2, 7, false);
	struct python_memory memory = {.pid = getpid()};
	uint64_t dict_object[8] = {0}, table[12] = {1, 0, 0, 77, KEY, VALUE, 2, KEY, 0, 3, KEY, 5};
	OWNED_PYTHON_DICT struct python_dict dict = {0};
	struct python_dict_head head;

	(void)state;
	assert_non_null(layout);
	memory.layout = &layout->info.bpf;
	dict_object[4] = 3; /* mask */
	dict_object[5] = at(table);
	assert_int_equal(python_dict_head_read(&memory, at(dict_object), &head), 0);
	assert_int_equal(python_dict_read_table(&memory, &head, &dict), 0);
	assert_int_equal(dict.count, 2);
	assert_int_equal(dict.entry[0].hash, 77);
	assert_int_equal(dict.entry[0].value, VALUE);
	assert_int_equal(dict.entry[1].value, 5);
	assert_int_equal(dict.entry[1].value_address, at(table + 11));
	assert_int_equal(python_dict_table_word(&memory, &head).address, at(dict_object + 5));
	head.field[2] = 1ULL << 40;
	assert_int_equal(python_dict_read_table(&memory, &head, &dict), -EBADMSG);
	head.field[2] = (1ULL << 40) - 1;
	assert_int_equal(python_dict_read_table(&memory, &head, &dict), -EFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes_39__lie_at_the_types_dictoffset),
		cmocka_unit_test(attributes_311__managed_ones_lie_before_the_object),
		cmocka_unit_test(attributes_312__one_word_has_the_dictionary_or_the_values),
		cmocka_unit_test(
			attributes_313__inline_values_follow_the_object_while_they_are_valid),
		cmocka_unit_test(attributes__of_memory_that_is_not_there_are_a_fault),
		cmocka_unit_test(dict_find__finds_a_name_in_any_batch),
		cmocka_unit_test(dict_find__a_name_is_equal_or_not_found),
		cmocka_unit_test(dict_find__short_names_at_the_end_of_a_mapping_are_found),
		cmocka_unit_test(dict_find__names_of_27_are_bytes),
		cmocka_unit_test(dict_find__longest_name_at_the_end_of_a_mapping_is_found),
		cmocka_unit_test(reads__are_bounded_by_what_is_left),
		cmocka_unit_test(dict_find__reads_names_together_where_the_layout_lets_it),
		cmocka_unit_test(dict_312__at_most_65536_slots_are_read),
		cmocka_unit_test(dict_39__entries_follow_indices_of_their_width),
		cmocka_unit_test(dict_stamp__has_the_heads_fields_and_the_used_slots),
		cmocka_unit_test(dict_27__slots_are_the_table),
	};

	return cmocka_run_group_tests_name("python/python_attributes", tests, NULL, NULL);
}
