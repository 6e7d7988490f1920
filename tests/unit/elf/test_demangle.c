/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/demangle.h"

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pair {
	const char *raw, *want; /* want NULL: not a mangled name */
};

static void check(const struct pair *pair, size_t count)
{
	char text[DEMANGLE_MAX_BYTES];

	for (size_t i = 0; i < count; i++) {
		const bool is_mangled = demangle(pair[i].raw, strlen(pair[i].raw), text);

		if (is_mangled != (pair[i].want != NULL))
			fail_msg("%s: %s", pair[i].raw, is_mangled ? text : "not demangled");
		if (is_mangled)
			assert_string_equal(text, pair[i].want);
	}
}

static void demangle__cplusplus_and_rust(void **state)
{
	static const struct pair pairs[] = {
		{"_ZN2at6native3addERKNS_6TensorES3_", "at::native::add"},
		{"_ZNSt6vectorIiSaIiEE9push_backERKi.cold",
		 "std::vector<int, std::allocator<int> >::push_back"},
		{"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"},
		{"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
		 "3bar17h"
		 "930b740aa94f1d3aE",
		 "<Test + 'static as foo::Bar<Test>>::bar"},
		{"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
		{"_RNvC6_123foo3bar", "123foo::bar"},
		{"_RNvC0_7fO3bar", NULL}, /* an empty identifier */
		{"_RandomInit", NULL},
		{"_ZZZZ", NULL},
		{"_Z", NULL},
		{"_PyEval_EvalFrameDefault", NULL},
		{"malloc", NULL},
		{"", NULL},
	};

	(void)state;
	check(pairs, sizeof(pairs) / sizeof(pairs[0]));
}

static void demangle__cython(void **state)
{
	static const struct pair pairs[] = {
		{"__pyx_pw_4spam_3Egg_5boil", "spam.Egg.boil"},
		{"__pyx_pf_4spam_3Egg_4boil", "spam.Egg.boil"},
		{"__pyx_pf_4spam_boil", "spam.boil"},
		{"__pyx_pw_4spam_1boil", "spam.boil"},
		/* The third function "get_item", not "item" in a scope "get". */
		{"__pyx_pw_4spam_3get_item", "spam.get_item"},
		{"__pyx_pw_4spam_3Egg_1__init__", "spam.Egg.__init__"},
		{"__pyx_pf_4spam_3Egg___init__", "spam.Egg.__init__"},
		{"__pyx_pw_5numpy_6random_6mtrand_11RandomState_13random_sample",
		 "numpy.random.mtrand.RandomState.random_sample"},
		{"__pyx_f_7cpython_5array_copy", "cpython.array.copy"},
		{"__pyx_f_4spam_3Egg_boil.isra.0", "spam.Egg.boil"},
		{"__pyx_fuse_0__pyx_f_4spam_boil", "spam.boil"},
		{"__pyx_pw_4spam_9__pyx_fuse_1boil", "spam.boil"},
		{"__pyx_pw_4spam_9__pyx_fuse_0_1boil", "spam.boil"}, /* two fused types */
		{"__pyx_pw_4spam_9__pyx_fuse_0_boil", "spam._boil"},
		{"__pyx_gb_4spam_2generator", "spam.generator"},
		{"__pyx_pymod_exec_mtrand", "mtrand.<module>"},
		{"__pyx_pw_boil", NULL},
		{"__pyx_pw_99spam_x", NULL},
		{"__pyx_pw_", NULL},
		{"__pyx_pw_4", NULL},
		{"__pyx_pymod_exec_", NULL},
		{"__libc_malloc", NULL},
	};

	(void)state;
	check(pairs, sizeof(pairs) / sizeof(pairs[0]));
}

static void demangle__name_with_a_nul_stays_as_it_is(void **state)
{
	char text[DEMANGLE_MAX_BYTES];

	(void)state;
	assert_false(demangle("__pyx_pw_4\0pam_1boil", 20, text));
	assert_false(demangle("_ZN3foo\0barEv", 13, text));
}

/* f<a, pair<a, a>, pair of that and that, ...>: each argument doubles the text, to some 40 GB. */
static void demangle__text_that_explodes_is_cut(void **state)
{
	static const char id[] = "23456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[1024] = "_Z1fI1aSt4pairIS0_S0_E", text[DEMANGLE_MAX_BYTES];
	size_t size = strlen(name);

	(void)state;
	for (const char *c = id; *c; c++)
		size += (size_t)snprintf(name + size, sizeof(name) - size, "S1_IS%c_S%c_E", *c, *c);
	size += (size_t)snprintf(name + size, sizeof(name) - size, "Evv");
	assert_true(demangle(name, size, text));
	assert_int_equal(strlen(text), DEMANGLE_MAX_BYTES - 1);
	assert_memory_equal(text, "f<a, std::pair<a, a>, std::pair<std::pair<a, a>, ", 49);
	assert_string_equal(text + DEMANGLE_MAX_BYTES - 4, "...");
}

/* 62^5 lifetimes, of which libiberty says nothing while it skips the type: minutes a name. */
static void demangle__rust_name_with_endless_lifetimes_is_refused(void **state)
{
	static const struct pair pairs[] = {
		{"_RNvYFGzzzzz_EuNtC1a1b1c", NULL},
		{"_RNvYDGaa_C1aEL_NtC1a1b1c", NULL},
		{"_RNvYFG0_EuNtC1a1b1c", "<for<'a, 'b> fn() as a::b>::c"},
		{"_RNvNtC1a6FGraph1c", "a::FGraph::c"},
	};

	(void)state;
	check(pairs, sizeof(pairs) / sizeof(pairs[0]));
}

static void *demangle_deep(void *context)
{
	static const char *const part[] = {"P", "FP", "N1a", "X", "1aI", "Dp", "cv", "A_"};
	static const char *const head[] = {"_Z1f", "_Z1fI", "_Z1fIX", "_ZN1a", "_RNvC1a", "_RI"};
	char name[DEMANGLE_MAX_INPUT_BYTES], text[DEMANGLE_MAX_BYTES];

	(void)context;
	for (size_t h = 0; h < sizeof(head) / sizeof(head[0]); h++)
		for (size_t p = 0; p < sizeof(part) / sizeof(part[0]); p++) {
			size_t size = strlen(head[h]);

			memcpy(name, head[h], size);
			for (; size + 8 < sizeof(name); size += strlen(part[p]))
				memcpy(name + size, part[p], strlen(part[p]));
			name[size++] = 'i';
			demangle(name, size, text);
		}
	return NULL;
}

/* The stack that the header promises, with the sanitizers' share. */
static void demangle__deepest_names_fit_in_the_stack(void **state)
{
	pthread_attr_t attributes;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_attr_init(&attributes), 0);
	assert_int_equal(pthread_attr_setstacksize(&attributes, 1280U << 10), 0);
	assert_int_equal(pthread_create(&thread, &attributes, demangle_deep, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attributes);
}

static void demangle__agrees_with_cxxfilt_on_libstdcxx(void **state)
{
	static const char list[] =
		"nm -D --defined-only --format=posix /usr/lib/x86_64-linux-gnu/libstdc++.so.6"
		" 2>/dev/null | cut -d' ' -f1 | sed 's/@.*//' | grep ^_Z";
	char command[1024], raw[8192], want[8192], text[DEMANGLE_MAX_BYTES];
	FILE *names, *wanted;
	size_t count = 0;

	(void)state;
	names = popen(list, "r");
	snprintf(command, sizeof(command), "%s | c++filt -i -p 2>/dev/null", list);
	wanted = popen(command, "r");
	assert_true(names && wanted);
	while (fgets(raw, sizeof(raw), names) && fgets(want, sizeof(want), wanted)) {
		raw[strcspn(raw, "\n")] = want[strcspn(want, "\n")] = '\0';
		assert_true(demangle(raw, strlen(raw), text));
		assert_string_equal(text, want);
		count++;
	}
	pclose(names);
	pclose(wanted);
	if (!count) {
		print_message("skipped: no libstdc++.so.6, nm or c++filt\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demangle__cplusplus_and_rust),
		cmocka_unit_test(demangle__cython),
		cmocka_unit_test(demangle__name_with_a_nul_stays_as_it_is),
		cmocka_unit_test(demangle__text_that_explodes_is_cut),
		cmocka_unit_test(demangle__rust_name_with_endless_lifetimes_is_refused),
		cmocka_unit_test(demangle__deepest_names_fit_in_the_stack),
		cmocka_unit_test(demangle__agrees_with_cxxfilt_on_libstdcxx),
	};

	return cmocka_run_group_tests_name("elf/demangle", tests, NULL, NULL);
}
