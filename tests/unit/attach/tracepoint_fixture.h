/* SPDX-License-Identifier: BSD-2-Clause */
/* A kernel's types in BTF that is built here, with one tracepoint. */
#ifndef TESTS_ATTACH_TRACEPOINT_FIXTURE_H
#define TESTS_ATTACH_TRACEPOINT_FIXTURE_H

#include <bpf/btf.h>
#include <cmocka.h>

struct kernel {
	struct btf *btf;
	int flag, number, word, wide, task, nothing; /* ids of types */
};

static inline int make_kernel(void **state)
{
	static struct kernel kernel;

	kernel.btf = btf__new_empty();
	assert_non_null(kernel.btf);
	kernel.flag = btf__add_int(kernel.btf, "_Bool", 1, BTF_INT_BOOL);
	kernel.number = btf__add_int(kernel.btf, "int", 4, BTF_INT_SIGNED);
	kernel.word = btf__add_int(kernel.btf, "unsigned int", 4, 0);
	kernel.wide = btf__add_int(kernel.btf, "unsigned long", 8, 0);
	kernel.task = btf__add_ptr(kernel.btf, btf__add_struct(kernel.btf, "task_struct", 64));
	kernel.nothing = btf__add_ptr(kernel.btf, 0);
	*state = &kernel;
	return 0;
}

static inline int free_kernel(void **state)
{
	btf__free(((struct kernel *)*state)->btf);
	return 0;
}

/* Declares the tracepoint of a typedef's name, whose arguments have these types. */
static inline void declare(struct kernel *kernel, const char *name, const int *type, int count)
{
	int function = btf__add_func_proto(kernel->btf, 0);

	assert_int_equal(btf__add_func_param(kernel->btf, NULL, kernel->nothing), 0);
	for (int i = 0; i < count; i++)
		assert_int_equal(btf__add_func_param(kernel->btf, NULL, type[i]), 0);
	assert_true(btf__add_typedef(kernel->btf, name, btf__add_ptr(kernel->btf, function)) > 0);
}

#define with_kernel(test) cmocka_unit_test_setup_teardown(test, make_kernel, free_kernel)

#endif
