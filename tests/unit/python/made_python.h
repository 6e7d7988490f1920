/* SPDX-License-Identifier: BSD-2-Clause */
/* An interpreter's file written by hand: the symbols by which one is known, and PyCode_Type's size.
 * Include it once, first, in each program. */
#ifndef TESTS_UNIT_PYTHON_MADE_PYTHON_H
#define TESTS_UNIT_PYTHON_MADE_PYTHON_H

#include "python/python_info.h"

#include <cmocka.h>
#include <errno.h>

#include "../elf/made_elf.h"

#define CODE (MADE_BASE + MADE_FREE)
#define TEXT (MADE_BASE + 0x3800)
#define RUNTIME (MADE_BASE + 0x4000)
#define VERSION (MADE_BASE + 0x7000)
#define CODE_TYPE (MADE_BASE + 0x7100)
#define CURRENT (MADE_BASE + 0x7200)

static struct made_elf elf;

static inline void put_u64(uint64_t vaddr, uint64_t value)
{
	made_put(&elf, vaddr, &value, sizeof(value));
}

static inline void object(const char *name, uint64_t value)
{
	made_symbol(&elf, name, value, 8, STT_OBJECT);
}

static inline void begin(bool has_runtime, uint64_t code_bytes)
{
	made_begin(&elf, EM_X86_64);
	if (has_runtime)
		object("_PyRuntime", RUNTIME);
	else
		object("_PyThreadState_Current", CURRENT);
	object("PyCode_Type", CODE_TYPE);
	put_u64(CODE_TYPE + 32, code_bytes);
}

static inline struct python_info *read_info(int *ret_err, const char **ret_reason)
{
	OWNED(elf_image) struct elf_image *image = made_open(&elf);
	struct python_info *info = NULL;

	*ret_reason = "";
	*ret_err = python_info_read(image, &info, ret_reason);
	return info;
}

static inline void expect_refused(const char *expected)
{
	const char *reason;
	int err;

	assert_null(read_info(&err, &reason));
	assert_int_equal(err, -ENOTSUP);
	assert_string_equal(reason, expected);
}

#endif
