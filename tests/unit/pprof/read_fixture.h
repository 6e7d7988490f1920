/* SPDX-License-Identifier: BSD-2-Clause */
/* Hands pprof files to the decoder. */
#ifndef TESTS_PROFILE_READ_FIXTURE_H
#define TESTS_PROFILE_READ_FIXTURE_H

#include "../profile/fixture.h"

#include <sys/mman.h>

#include "pprof/profile_read.h"
#include "profile/profile_data.h"

static inline int fd_of(const void *bytes, size_t size)
{
	int fd = memfd_create("pprof", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static inline int read_bytes(struct profile_reader *reader, const void *bytes, size_t size)
{
	OWNED_FD int fd = fd_of(bytes, size);

	return profile_reader_add(reader, fd, NULL);
}

static inline struct profile_reader *new_reader(const struct profile_read_options *options)
{
	static const struct profile_read_options none;
	struct profile_reader *reader;

	assert_int_equal(profile_reader_new(options ? options : &none, &reader), 0);
	return reader;
}

/* The i-th frame of a row, leaf first. */
static inline const struct frame *row_frame(const struct profile *profile, uint32_t row, uint32_t i)
{
	const struct stack *stack = &profile->stacks.stack[profile->row[row].stack];

	assert_true(i < stack->count);
	return &profile->stacks.location[stack->location[i]];
}

static inline const char *name_of(const struct profile *profile, uint32_t row, uint32_t i)
{
	return intern_get(profile->strings, row_frame(profile, row, i)->name, NULL);
}

#endif
