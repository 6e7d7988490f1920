/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes written by hand: sound ones, and what a hostile file says. */
#include "elf/usdt_notes.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "made_notes.h"

#define CODE (MADE_BASE + MADE_CODE)
#define NOTES_MANY 100000U

static struct made_elf elf;

static struct {
	struct usdt_note last;
	uint64_t count;
	struct usdt_refused refused;
} seen;

static bool on_note(void *context, const struct usdt_note *note)
{
	assert_ptr_equal(context, &seen);
	seen.last = *note;
	seen.count++;
	return true;
}

static int read_image(const struct elf_image *image)
{
	memset(&seen, 0, sizeof(seen));
	return usdt_notes_read(image, on_note, &seen, &seen.refused);
}

/* Returns how many probes were read. */
static uint64_t read_all(void)
{
	OWNED(elf_image) struct elf_image *image = made_open(&elf);

	assert_int_equal(read_image(image), 0);
	return seen.count;
}

static int setup(void **state)
{
	(void)state;
	made_notes_begin(&elf, EM_X86_64);
	return 0;
}

static void notes__are_read_one_after_the_other(void **state)
{
	(void)state;
	assert_int_equal(read_all(), 0);
	MADE_NOTE(&elf, CODE, 0, "p\0one\0");
	assert_int_equal(read_all(), 1);
	assert_int_equal(seen.last.vaddr, CODE);
	assert_int_equal(seen.last.semaphore, 0);
	assert_string_equal(seen.last.provider, "p");
	assert_string_equal(seen.last.name, "one");
	assert_string_equal(seen.last.args, "");
	MADE_NOTE(&elf, CODE + 8, MADE_BASE + MADE_DATA, "prov\0second\0008@%rdi -4@$1");
	assert_int_equal(read_all(), 2);
	assert_int_equal(seen.last.vaddr, CODE + 8);
	assert_int_equal(seen.last.semaphore, MADE_BASE + MADE_DATA);
	assert_string_equal(seen.last.args, "8@%rdi -4@$1");
	assert_int_equal(seen.refused.cut + seen.refused.long_names, 0);
}

static void notes__follow_the_base_where_it_was_moved(void **state)
{
	(void)state;
	MADE_NOTE(&elf, CODE, MADE_BASE + MADE_DATA, "p\0n\0");
	elf.section[4].sh_addr += 0x10000;
	assert_int_equal(read_all(), 1);
	assert_int_equal(seen.last.vaddr, CODE + 0x10000);
	assert_int_equal(seen.last.semaphore, MADE_BASE + MADE_DATA + 0x10000);
	elf.section[4].sh_addr -= 0x20000;
	read_all();
	assert_int_equal(seen.last.vaddr, CODE - 0x10000);
	/* No semaphore stays none; without the section nothing was moved. */
	elf.section[3].sh_size = 0;
	MADE_NOTE(&elf, CODE, 0, "p\0n\0");
	read_all();
	assert_int_equal(seen.last.semaphore, 0);
	elf.section[4].sh_name = 0;
	read_all();
	assert_int_equal(seen.last.vaddr, CODE);
}

static void notes__of_others_are_passed_over(void **state)
{
	uint8_t *note;

	(void)state;
	note = MADE_NOTE(&elf, CODE, 0, "p\0n\0");
	note[8] = 4; /* another type */
	note = MADE_NOTE(&elf, CODE, 0, "p\0n\0");
	note[12] = 'S'; /* another owner */
	note = MADE_NOTE(&elf, CODE, 0, "p\0n\0");
	note[0] = 7; /* the owner's name without its NUL */
	assert_int_equal(read_all(), 0);
	MADE_NOTE(&elf, CODE, 0, "p\0n\0");
	assert_int_equal(read_all(), 1);
	assert_int_equal(seen.refused.cut, 0);
	elf.section[3].sh_type = SHT_PROGBITS;
	assert_int_equal(read_all(), 0);
}

static void notes__are_found_by_segment_where_sections_are_stripped(void **state)
{
	(void)state;
	MADE_NOTE(&elf, CODE, 0, "p\0n\0");
	elf.program[1] = (Elf64_Phdr){
		.p_type = PT_NOTE, .p_offset = MADE_NOTES, .p_filesz = elf.section[3].sh_size};
	elf.header.e_shnum = 0;
	assert_int_equal(read_all(), 1);
	assert_int_equal(seen.last.vaddr, CODE);
	elf.program[1].p_filesz = MADE_BYTES;
	assert_int_equal(read_all(), 0);
	elf.program[1].p_type = PT_NULL;
	assert_int_equal(read_all(), 0);
}

static void notes__that_are_cut_are_refused(void **state)
{
	uint64_t full;

	(void)state;
	MADE_NOTE(&elf, CODE, 0, "p\0n\0aaa");
	full = elf.section[3].sh_size;
	for (uint64_t size = 0; size < full; size++) {
		elf.section[3].sh_size = size;
		assert_int_equal(read_all(), 0);
		assert_int_equal(seen.refused.cut, size >= sizeof(Elf64_Nhdr));
	}
	elf.section[3].sh_size = full;
	assert_int_equal(read_all(), 1);
}

/* Sizes of names and descriptions, up to the largest. */
static void notes__whose_sizes_cannot_be_are_refused(void **state)
{
	static const uint32_t sizes[] = {0x1000, INT32_MAX, UINT32_MAX - 3, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (size_t field = 0; field < 2; field++) {
			uint8_t *note;

			setup(NULL);
			note = MADE_NOTE(&elf, CODE, 0, "p\0n\0");
			memcpy(note + 4 * field, &sizes[i], sizeof(sizes[i]));
			assert_int_equal(read_all(), 0);
			assert_int_equal(seen.refused.cut, 1);
		}
}

static void notes__texts_without_an_end_are_refused(void **state)
{
	static const struct {
		const char *texts;
		size_t size;
	} cases[] = {{"", 0}, {"p", 1}, {"p\0", 2}, {"p\0n", 3}, {"p\0n\0", 4}, {"p\0n\0a", 5}};
	const uint64_t word[3] = {CODE, MADE_BASE + MADE_BASE_SECTION, 0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		setup(NULL);
		made_note_raw(&elf, word, cases[i].texts, cases[i].size);
		/* The next byte is no NUL of theirs. */
		elf.section[3].sh_size += 16;
		assert_int_equal(read_all(), 0);
		assert_int_equal(seen.refused.cut, 1);
	}
	setup(NULL);
	made_note_raw(&elf, word, "p\0n\0a", 6);
	assert_int_equal(read_all(), 1);
}

static void notes__without_their_words_are_refused(void **state)
{
	const uint32_t size = 23;
	uint8_t *note;

	(void)state;
	note = MADE_NOTE(&elf, CODE, 0, "p\0n\0");
	memcpy(note + 4, &size, sizeof(size));
	elf.section[3].sh_size = 44;
	assert_int_equal(read_all(), 0);
	assert_int_equal(seen.refused.cut, 1);
}

static void put_long(size_t name_bytes, size_t args_bytes)
{
	const uint64_t word[3] = {CODE, MADE_BASE + MADE_BASE_SECTION, 0};
	char texts[4096] = "p";

	setup(NULL);
	memset(texts + 2, 'n', name_bytes);
	memset(texts + 3 + name_bytes, 'a', args_bytes);
	made_note_raw(&elf, word, texts, 4 + name_bytes + args_bytes);
}

static void notes__long_names_are_refused_long_arguments_left_out(void **state)
{
	(void)state;
	put_long(USDT_NAME_MAX_BYTES - 1, USDT_ARGS_MAX_BYTES - 1);
	assert_int_equal(read_all(), 1);
	assert_int_equal(strlen(seen.last.name), USDT_NAME_MAX_BYTES - 1);
	assert_int_equal(strlen(seen.last.args), USDT_ARGS_MAX_BYTES - 1);
	put_long(USDT_NAME_MAX_BYTES, 0);
	assert_int_equal(read_all(), 0);
	assert_int_equal(seen.refused.long_names, 1);
	put_long(1, USDT_ARGS_MAX_BYTES);
	assert_int_equal(read_all(), 1);
	assert_string_equal(seen.last.args, "");
}

static void notes__overlapping_sections_are_read_each(void **state)
{
	(void)state;
	MADE_NOTE(&elf, CODE, 0, "p\0n\0");
	elf.section[4] = elf.section[3];
	assert_int_equal(read_all(), 2);
	assert_int_equal(seen.last.vaddr, CODE);
}

/* Behind the file's other parts. */
static void notes__a_hundred_thousand_end_in_time(void **state)
{
	const uint64_t word[3] = {CODE, MADE_BASE + MADE_BASE_SECTION, 0};
	const size_t size = MADE_BYTES + NOTES_MANY * 52;
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED_MEM uint8_t *data = calloc(1, size);

	(void)state;
	assert_non_null(data);
	made_note_raw(&elf, word, "p\0n\0", 5);
	elf.section[3].sh_offset = MADE_BYTES;
	assert_int_equal(elf.section[3].sh_size, 52);
	for (size_t i = 0; i < NOTES_MANY; i++)
		memcpy(data + MADE_BYTES + i * 52, elf.data + MADE_NOTES, 52);
	elf.section[3].sh_size = NOTES_MANY * 52;
	memcpy(data, elf.data, MADE_BYTES);
	assert_int_equal(elf_image_from_memory(data, size, &image), 0);
	assert_int_equal(read_image(image), 0);
	assert_int_equal(seen.count, NOTES_MANY);
	/* A file may not have more work done than it pays for. */
	image->work->limit = 100000;
	image->work->spent = 0;
	assert_int_equal(read_image(image), -E2BIG);
	assert_in_range(seen.count, 1, NOTES_MANY / 2);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(notes__are_read_one_after_the_other),
		TEST(notes__follow_the_base_where_it_was_moved),
		TEST(notes__of_others_are_passed_over),
		TEST(notes__are_found_by_segment_where_sections_are_stripped),
		TEST(notes__that_are_cut_are_refused),
		TEST(notes__whose_sizes_cannot_be_are_refused),
		TEST(notes__texts_without_an_end_are_refused),
		TEST(notes__without_their_words_are_refused),
		TEST(notes__long_names_are_refused_long_arguments_left_out),
		TEST(notes__overlapping_sections_are_read_each),
		TEST(notes__a_hundred_thousand_end_in_time),
	};

	return cmocka_run_group_tests_name("elf/usdt_notes", tests, NULL, NULL);
}
