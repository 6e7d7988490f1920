/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "pprof/profile_read.h"

#define MIB (1ULL << 20)
#define INLINED 1000U /* functions at one location */
#define REPEATED 64U  /* times that a stack has this location */

static void put_varint(FILE *out, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		putc((int)(number & 0x7f) | 0x80, out);
	putc((int)number, out);
}

static void put_number(FILE *out, unsigned int field, uint64_t number)
{
	put_varint(out, field << 3);
	put_varint(out, number);
}

static void put_bytes(FILE *out, unsigned int field, const void *bytes, size_t size)
{
	put_varint(out, field << 3 | 2);
	put_varint(out, size);
	fwrite(bytes, 1, size, out);
}

/* A message that is written to `out` as a field when it is closed. */
struct message {
	char *bytes;
	size_t size;
	FILE *out;
};

static void begin(struct message *message)
{
	message->out = open_memstream(&message->bytes, &message->size);
	assert_non_null(message->out);
}

static void end(struct message *message, FILE *out, unsigned int field)
{
	fclose(message->out);
	put_bytes(out, field, message->bytes, message->size);
	free(message->bytes);
}

static void put_location(FILE *out, uint64_t id, unsigned int first_line, unsigned int lines)
{
	struct message location, line;

	begin(&location);
	put_number(location.out, 1, id);
	for (unsigned int i = 0; i < lines; i++) {
		begin(&line);
		put_number(line.out, 1, 1);
		put_number(line.out, 2, first_line + i);
		end(&line, location.out, 4);
	}
	end(&location, out, 4);
}

/* Each sample has the same location 64 times and another one: a hundred bytes that are 64,000
 * frames.  Returns the file. */
static int hostile(unsigned int samples, size_t padding)
{
	FILE *out = fdopen(memfd_create("hostile", MFD_CLOEXEC), "w+e");
	OWNED_MEM char *zeros = calloc(1, padding);
	struct message message, ids;
	int fd;

	assert_non_null(out);
	begin(&message);
	put_number(message.out, 1, 1);
	put_number(message.out, 2, 2);
	end(&message, out, 1);
	put_bytes(out, 6, "", 0);
	put_bytes(out, 6, "cpu", 3);
	put_bytes(out, 6, "nanoseconds", 11);
	begin(&message);
	put_number(message.out, 1, 1);
	put_number(message.out, 2, 1);
	end(&message, out, 5);
	put_location(out, samples + 1, 1, INLINED);
	for (unsigned int i = 1; i <= samples; i++) {
		put_location(out, i, INLINED + i, 1);
		begin(&message);
		begin(&ids);
		for (unsigned int k = 0; k < REPEATED; k++)
			put_varint(ids.out, samples + 1);
		put_varint(ids.out, i);
		end(&ids, message.out, 1);
		put_number(message.out, 2, 1);
		end(&message, out, 2);
	}
	put_bytes(out, 99, zeros, padding); /* a field that nobody knows */
	fflush(out);
	fd = dup(fileno(out));
	fclose(out);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void profile_read__frames_of_a_hostile_profile_are_bounded(void **state)
{
	static const struct profile_read_options options = {0};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	/* 125 MiB of stacks in a bit more than 1 MiB; the frames are below 32 a byte. */
	OWNED_FD int fd = hostile(512, 1 << 20);

	(void)state;
	assert_int_equal(profile_reader_new(&options, &reader), 0);
	assert_int_equal(profile_reader_add(reader, fd, NULL), -EFBIG);
	assert_non_null(strstr(profile_reader_error(reader), "needs more than 8"));
	assert_non_null(
		strstr(profile_reader_error(reader), " MiB of memory: 64 MiB and 16 times"));
	assert_in_range(profile_reader_bytes(reader), 80 * MIB, 82 * MIB);
}

/* Who serves others takes less. */
static void profile_read__bound_may_be_lower(void **state)
{
	static const struct profile_read_options options = {.memory_max = 16 * MIB};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	OWNED_FD int fd = hostile(256, 1 << 20);

	(void)state;
	assert_int_equal(profile_reader_new(&options, &reader), 0);
	assert_false(profile_reader_is_full(reader));
	assert_int_equal(profile_reader_add(reader, fd, NULL), -EFBIG);
	assert_true(profile_reader_is_full(reader));
	assert_non_null(strstr(profile_reader_error(reader), "never more than 16 MiB"));
	assert_in_range(profile_reader_bytes(reader), 8 * MIB, 18 * MIB);
}

static void profile_read__a_profile_with_fewer_is_read(void **state)
{
	static const struct profile_read_options options = {0};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	OWNED_FD int fd = hostile(256, 1 << 20);

	(void)state;
	assert_int_equal(profile_reader_new(&options, &reader), 0);
	assert_int_equal(profile_reader_add(reader, fd, NULL), 0);
	assert_int_equal(profile_sample_count(profile_reader_profile(reader)), 256);
	/* What is counted is what was allocated: stacks of four bytes a frame, and little else. */
	assert_in_range(profile_reader_bytes(reader), 256 * 64001 * 4, 66 * MIB);
}

/* Files of zeros, as small as gzip can make them. */
static int bomb(size_t mib)
{
	int fd = memfd_create("bomb", MFD_CLOEXEC);
	OWNED_MEM char *zeros = calloc(1, MIB);
	gzFile out = gzdopen(dup(fd), "wb6");

	assert_non_null(out);
	for (size_t i = 0; i < mib; i++)
		assert_int_equal(gzwrite(out, zeros, MIB), MIB);
	gzclose(out);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void profile_read__a_bomb_is_left_packed(void **state)
{
	static const struct profile_read_options options = {0};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	OWNED_FD int fd = bomb(200);

	(void)state;
	assert_int_equal(profile_reader_new(&options, &reader), 0);
	assert_int_equal(profile_reader_add(reader, fd, NULL), -EFBIG);
	assert_string_equal(profile_reader_error(reader),
			    "too big: unpacks to more than 256 times its size");
	assert_in_range(profile_reader_bytes(reader), 0, 65 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profile_read__frames_of_a_hostile_profile_are_bounded),
		cmocka_unit_test(profile_read__bound_may_be_lower),
		cmocka_unit_test(profile_read__a_profile_with_fewer_is_read),
		cmocka_unit_test(profile_read__a_bomb_is_left_packed),
	};

	return cmocka_run_group_tests_name("pprof/read_memory", tests, NULL, NULL);
}
