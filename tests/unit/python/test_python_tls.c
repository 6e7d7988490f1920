/* SPDX-License-Identifier: BSD-2-Clause */
/* Accessors as compilers write them: each test compiles a library with a thread-local variable in
 * one TLS model, loads it, and compares what the plan finds with what the accessor returns. */
#include "python/python_tls.h"

#include <cmocka.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include "live_target.h"

/* The names that python_tls_plan() looks for, in a library that is no Python. */
static const char library_source[] =
	"static _Thread_local void *first = (void *)1;\n"
	"_Thread_local void *_Py_tss_tstate VISIBILITY;\n"
	"_Thread_local void *_Py_tss_gilstate VISIBILITY;\n"
	"void *_PyThreadState_GetCurrent(void) { return _Py_tss_tstate; }\n"
	"void *PyGILState_GetThisThreadState(void) { return _Py_tss_gilstate; }\n"
	"void *set_first(void *x) { void *y = first; first = x; return y; }\n"
	"void set_both(void *a, void *b) { _Py_tss_tstate = a; _Py_tss_gilstate = b; }\n";

struct library {
	char directory[32];
	void *handle;
	struct elf_image *image;
	uint64_t bias;
};

static void library_release(struct library *library)
{
	char command[64];

	elf_image_free(library->image);
	if (library->handle)
		dlclose(library->handle);
	snprintf(command, sizeof(command), "rm -rf %s", library->directory);
	if (library->directory[0] && system(command))
		print_error("cannot remove %s\n", library->directory);
}

/* Returns 0; -ENOTSUP: no such compiler, or it does not know these flags. */
static int library_build(const char *compiler, const char *flags, struct library *library)
{
	char source[64], object[64], command[512];
	OWNED_FILE FILE *file = NULL;
	struct link_map *map;
	OWNED_FD int fd = -1;

	*library = (struct library){.directory = "/tmp/test_tls.XXXXXX"};
	assert_non_null(mkdtemp(library->directory));
	snprintf(source, sizeof(source), "%s/tls.c", library->directory);
	snprintf(object, sizeof(object), "%s/tls.so", library->directory);
	file = fopen(source, "w");
	assert_non_null(file);
	fputs(library_source, file);
	fflush(file);
	snprintf(command, sizeof(command), "%s %s -shared -fPIC -o %s %s >%s/log 2>&1", compiler,
		 flags, object, source, library->directory);
	if (system(command))
		return -ENOTSUP;
	library->handle = dlopen(object, RTLD_NOW);
	if (!library->handle)
		print_error("%s\n", dlerror());
	assert_non_null(library->handle);
	assert_int_equal(dlinfo(library->handle, RTLD_DI_LINKMAP, &map), 0);
	library->bias = map->l_addr;
	fd = open(object, O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_image_open(fd, &library->image), 0);
	return 0;
}

/* Sets this thread's values, reads them through the plan.  Returns NULL or what is wrong: cmocka's
 * asserts work in the first thread only. */
static void *check_thread(void *argument)
{
	static char no_plan[] = "no plan", not_mine[] = "not this thread's value";
	const struct library *library = argument;
	const struct python_layout *layout = python_layout_find(3, 15, false);
	struct python_info info = {.symbols.runtime = 1, .bpf = {.major = 3, .minor = 15}};
	const uint64_t mine = (uint64_t)(uintptr_t)&info;
	void (*set_both)(uint64_t, uint64_t) = NULL;
	struct pp_tls tls[2];

	*(void **)&set_both = dlsym(library->handle, "set_both");
	set_both(mine, mine + 8);
	python_tls_plan(library->image, layout, &info);
	if (python_process_tls_read(&info, getpid(), library->bias, false, tls))
		return no_plan;
	for (unsigned int i = 0; i < 2; i++) {
		if (tls[i].mode == PP_TLS_NONE)
			return no_plan;
		if (tls_value(getpid(), (uint64_t)pthread_self(), &tls[i]) != mine + 8 * i)
			return not_mine;
	}
	return NULL;
}

/* In this thread and in a new one. */
static void check_library(struct library *library, const char *compiler, const char *flags)
{
	void *wrong = check_thread(library), *wrong_there;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, check_thread, library), 0);
	pthread_join(thread, &wrong_there);
	if (wrong || wrong_there)
		print_error("%s %s: %s\n", compiler, flags,
			    (const char *)(wrong ? wrong : wrong_there));
	assert_null(wrong);
	assert_null(wrong_there);
}

static void python_tls_plan__reads_what_each_tls_model_compiles_to(void **state)
{
	static const char *const compilers[] = {"gcc", "clang-19"};
	static const char *const models[] = {
		"",
		"-ftls-model=local-dynamic",
		"-ftls-model=initial-exec",
		"-mtls-dialect=gnu2",
		"-mtls-dialect=gnu2 -ftls-model=local-dynamic",
	};
	static const char *const optimisations[] = {
		"-O0",
		"-O2",
		"-O2 -fno-omit-frame-pointer -fcf-protection",
		"-O2 -fno-plt",
		"-Os -fcf-protection=none",
	};
	static const char *const visibility[] = {
		"-DVISIBILITY=", "'-DVISIBILITY=__attribute__((visibility(\"hidden\")))'"};
	unsigned int built = 0;

	(void)state;
#ifndef __x86_64__
	skip();
#endif
	/* Each model with each compiler and both visibilities; the optimisations take turns (all
	 * 100 pairings take a minute, and were right). */
	for (unsigned int i = 0; i < 2 * 5 * 2; i++) {
		CLEANUP(library_release) struct library library;
		const char *compiler = compilers[i / 10];
		char flags[256];

		snprintf(flags, sizeof(flags), "%s %s %s", models[i / 2 % 5],
			 optimisations[(3 * i + i / 10) % 5], visibility[i % 2]);
		if (library_build(compiler, flags, &library))
			continue;
		built++;
		check_library(&library, compiler, flags);
	}
	print_message("  %u libraries\n", built);
	if (!built) {
		print_message("skipped: no compiler\n");
		skip();
	}
}

#ifdef __x86_64__
/* Hand-written accessors, in this program itself. */
__asm__(".pushsection .text\n"
	".globl accessor_fs_immediate, accessor_fs_register, accessor_self_pointer\n"
	".globl accessor_other_way, accessor_endless, accessor_unknown, accessor_tail\n"
	".globl accessor_static\n"
	"accessor_fs_immediate: endbr64; mov %fs:-0x28, %rax; ret\n"
	"accessor_fs_register: push %rbp; mov %rsp, %rbp; mov $-0x30, %rax; mov %fs:(%rax), %rax;"
	" pop %rbp; ret\n"
	"accessor_self_pointer: mov %fs:0, %rax; sub $0x10, %rax; mov -8(%rax), %rax; ret\n"
	"accessor_other_way: test %edi, %edi; jne 1f; xor %eax, %eax; ret;"
	" 1: mov %fs:-0x40, %rax; ret\n"
	"accessor_endless: nop; jmp accessor_endless\n"
	"accessor_unknown: cpuid; mov %fs:-0x28, %rax; ret\n"
	"accessor_tail: mov %fs:-0x28, %rax; jmp *(%rax)\n"
	"accessor_static: mov accessor_variable(%rip), %rax; ret\n"
	".popsection\n"
	".pushsection .data\n"
	".globl accessor_variable\n"
	"accessor_variable: .quad 5\n"
	".popsection\n");

static struct accessor accessor_of(const char *name)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED_FD int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct accessor accessor;

	assert_int_equal(elf_image_open(fd, &image), 0);
	assert_int_equal(python_accessor_read(image, name, &accessor), 0);
	assert_int_equal(python_accessor_read(image, "no_such_function", &accessor), -ENOENT);
	return accessor;
}

static void python_accessor_read__follows_plain_forms(void **state)
{
	static const struct {
		const char *name;
		int64_t offset;
	} cases[] = {
		{"accessor_fs_immediate", -0x28},
		{"accessor_fs_register", -0x30},
		{"accessor_self_pointer", -0x18},
		{"accessor_other_way", -0x40},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct accessor accessor = accessor_of(cases[i].name);

		assert_int_equal(accessor.result.kind, ACCESSOR_THREAD_VALUE);
		assert_int_equal(accessor.result.offset, cases[i].offset);
		assert_int_equal(accessor.result.address, 0);
	}
}

static void python_accessor_read__code_it_does_not_know_gives_no_result(void **state)
{
	(void)state;
	assert_int_equal(accessor_of("accessor_endless").result.kind, ACCESSOR_UNKNOWN);
	assert_int_equal(accessor_of("accessor_unknown").result.kind, ACCESSOR_UNKNOWN);
	assert_int_equal(accessor_of("accessor_tail").result.kind, ACCESSOR_UNKNOWN);
}

static void python_accessor_variable__is_the_address_of_the_variable(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED_FD int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_symbol symbol;

	(void)state;
	assert_int_equal(elf_image_open(fd, &image), 0);
	assert_int_equal(elf_image_symbol(image, "accessor_variable", &symbol), 0);
	assert_int_equal(python_accessor_variable(image, "accessor_static"), symbol.value);
	assert_int_equal(python_accessor_variable(image, "accessor_fs_immediate"), 0);
}
#endif

static void python_process_tls__adds_the_bias_and_names_musl(void **state)
{
	const struct python_info info = {
		.tls.source = {{.mode = PP_TLS_DTV, .offset = 24, .address = 0x1000},
			       {.mode = PP_TLS_PTHREAD_KEY, .address = 0x2004}}};
	struct pp_tls tls[2];

	(void)state;
	python_process_tls(&info, 0x7f0000000000, true, tls);
	assert_int_equal(tls[0].mode, PP_TLS_DTV_MUSL);
	assert_int_equal(tls[0].offset, 24);
	assert_int_equal(tls[0].address, 0x7f0000001000);
	assert_int_equal(tls[1].mode, PP_TLS_PTHREAD_KEY_MUSL);
	assert_int_equal(tls[1].address, 0x7f0000002004);
	python_process_tls(&info, 0, false, tls);
	assert_int_equal(tls[0].mode, PP_TLS_DTV);
	assert_int_equal(tls[1].mode, PP_TLS_PTHREAD_KEY);
}

static void python_process_tls__loader_s_offset_is_read_from_the_process(void **state)
{
	static int64_t slot = -0x50;
	const struct python_info info = {.tls.source = {{.mode = PP_TLS_THREAD_OFFSET,
							 .offset = 8,
							 .address = (uint64_t)(uintptr_t)&slot}}};
	struct pp_tls tls[2];

	(void)state;
	python_process_tls(&info, 0, false, tls);
	assert_int_equal(tls[0].mode, PP_TLS_NONE);
	assert_int_equal(python_process_tls_read(&info, getpid(), 0, false, tls), 0);
	assert_int_equal(tls[0].mode, PP_TLS_THREAD_OFFSET);
	assert_int_equal(tls[0].offset, -0x48);
	slot = 0;
	assert_int_equal(python_process_tls_read(&info, getpid(), 0, false, tls), -EAGAIN);
	slot = 0x7f0000001000;
	assert_int_equal(python_process_tls_read(&info, getpid(), 0, false, tls), 0);
	assert_int_equal(tls[0].mode, PP_TLS_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(python_tls_plan__reads_what_each_tls_model_compiles_to),
#ifdef __x86_64__
		cmocka_unit_test(python_accessor_read__follows_plain_forms),
		cmocka_unit_test(python_accessor_read__code_it_does_not_know_gives_no_result),
		cmocka_unit_test(python_accessor_variable__is_the_address_of_the_variable),
#endif
		cmocka_unit_test(python_process_tls__adds_the_bias_and_names_musl),
		cmocka_unit_test(python_process_tls__loader_s_offset_is_read_from_the_process),
	};

	return cmocka_run_group_tests_name("python/python_tls", tests, NULL, NULL);
}
