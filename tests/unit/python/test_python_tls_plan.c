/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans from files written by hand: each bound from both sides, machine code as the Intel manual
 * encodes it. */
#include <cmocka.h>
#include <errno.h>

#include "../elf/made_elf.h"
#include "python/python_tls.h"

#define CODE (MADE_BASE + MADE_FREE)
#define SLOT (MADE_BASE + 0x3800)
#define RUNTIME (MADE_BASE + 0x4000)
#define MOST_BYTES (1 << 26)

static struct made_elf elf;
static struct python_info info;

/* Tells `layout` what the version's table would. */
static void plan(unsigned int minor, const struct python_layout *layout)
{
	OWNED(elf_image) struct elf_image *image = made_open(&elf);

	info.bpf.major = 3;
	info.bpf.minor = (uint8_t)minor;
	python_tls_plan(image, layout, &info);
}

static void begin(uint16_t machine)
{
	made_begin(&elf, machine);
	info = (struct python_info){.symbols.runtime = RUNTIME};
}

static void assert_source(size_t index, uint32_t mode, int64_t offset, uint64_t address)
{
	assert_int_equal(info.tls.source[index].mode, mode);
	assert_int_equal(info.tls.source[index].offset, offset);
	assert_int_equal(info.tls.source[index].address, address);
}

static const struct python_layout no_key;

/* ---- variables of threads ---- */

/* mov %fs:offset, %rax; ret */
static void put_fs(const char *name, int32_t offset)
{
	made_symbol(&elf, name, CODE, 16, STT_FUNC);
	made_put(&elf, MADE_PUT(&elf, CODE, "\x64\x48\x8b\x04\x25"), &offset, 4);
	MADE_PUT(&elf, CODE + 9, "\xc3");
}

static void python_tls_plan__offset_from_the_thread_pointer(void **state)
{
	static const struct {
		int32_t offset;
		bool is_taken;
	} cases[] = {{-0x28, true},
		     {MOST_BYTES, true},
		     {MOST_BYTES + 1, false},
		     {-MOST_BYTES, true},
		     {-MOST_BYTES - 1, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const bool is_taken = cases[i].is_taken;

		begin(EM_X86_64);
		put_fs("_PyThreadState_GetCurrent", cases[i].offset);
		plan(15, &no_key);
		assert_source(0, is_taken ? PP_TLS_THREAD_OFFSET : PP_TLS_NONE,
			      is_taken ? cases[i].offset : 0, 0);
		assert_source(1, PP_TLS_NONE, 0, 0);
	}
}

/* 3.12 has no _PyThreadState_GetCurrent(), 3.13 names it otherwise. */
static void python_tls_plan__any_accessor_of_the_attached_state(void **state)
{
	static const char *const names[] = {"_PyThreadState_GetCurrent",
					    "PyThreadState_GetUnchecked",
					    "_PyThreadState_UncheckedGet"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		begin(EM_X86_64);
		put_fs(names[i], -16);
		plan(15, &no_key);
		assert_source(0, PP_TLS_THREAD_OFFSET, -16, 0);
	}
	/* one that tells nothing before it */
	begin(EM_X86_64);
	made_symbol(&elf, "_PyThreadState_GetCurrent", CODE + 0x100, 16, STT_FUNC);
	MADE_PUT(&elf, CODE + 0x100, "\xc3");
	put_fs("PyThreadState_GetUnchecked", -16);
	plan(15, &no_key);
	assert_source(0, PP_TLS_THREAD_OFFSET, -16, 0);
	begin(EM_X86_64);
	put_fs("PyGILState_GetThisThreadState", -24);
	plan(15, &no_key);
	assert_source(0, PP_TLS_NONE, 0, 0);
	assert_source(1, PP_TLS_THREAD_OFFSET, -24, 0);
}

/* mov SLOT(%rip), %rax; mov %fs:(%rax), %rax; ret */
static void python_tls_plan__initial_exec_names_the_loader_s_slot(void **state)
{
	uint64_t at;

	(void)state;
	begin(EM_X86_64);
	made_symbol(&elf, "_PyThreadState_GetCurrent", CODE, 16, STT_FUNC);
	at = MADE_RELATIVE(&elf, CODE, "\x48\x8b\x05", SLOT);
	MADE_PUT(&elf, at, "\x64\x48\x8b\x00\xc3");
	plan(15, &no_key);
	assert_source(0, PP_TLS_THREAD_OFFSET, 0, SLOT);
}

/* lea pair(%rip), %rdi; call __tls_get_addr; mov 8(%rax), %rax; ret */
static void put_general_dynamic(uint64_t pair)
{
	uint64_t at;

	begin(EM_X86_64);
	made_symbol(&elf, "_PyThreadState_GetCurrent", CODE, 32, STT_FUNC);
	at = MADE_RELATIVE(&elf, CODE, "\x66\x48\x8d\x3d", pair);
	at = MADE_RELATIVE(&elf, at, "\x66\x66\x48\xe8", CODE + 0x100);
	MADE_PUT(&elf, at, "\x48\x8b\x40\x08\xc3");
	made_relocation(&elf, pair, R_X86_64_DTPMOD64, 0);
}

static void python_tls_plan__pair_has_the_offset_or_its_relocation(void **state)
{
	(void)state;
	put_general_dynamic(SLOT);
	MADE_PUT(&elf, SLOT + 8, "\x40\0\0\0\0\0\0\0");
	plan(15, &no_key);
	assert_source(0, PP_TLS_DTV, 0x48, SLOT);
	made_relocation(&elf, SLOT + 8, R_X86_64_DTPOFF64, 0x10);
	plan(15, &no_key);
	assert_source(0, PP_TLS_DTV, 0x18, SLOT);
	/* the last bytes of the file, and not all of them */
	put_general_dynamic(MADE_END - 16);
	MADE_PUT(&elf, MADE_END - 8, "\x20\0\0\0\0\0\0\0");
	plan(15, &no_key);
	assert_source(0, PP_TLS_DTV, 0x28, MADE_END - 16);
	put_general_dynamic(MADE_END - 8);
	plan(15, &no_key);
	assert_source(0, PP_TLS_NONE, 0, 0);
	/* then the symbol of an executable tells */
	info.is_static_exe = true;
	elf.program[2] = (Elf64_Phdr){.p_type = PT_TLS, .p_memsz = 0x20, .p_align = 16};
	made_symbol(&elf, "_Py_tss_tstate", 8, 8, STT_TLS);
	plan(15, &no_key);
	assert_source(0, PP_TLS_THREAD_OFFSET, 8 - 0x20, 0);
	info.is_static_exe = false;
	made_relocation(&elf, MADE_END, R_X86_64_DTPOFF64, 0x10);
	plan(15, &no_key);
	assert_source(0, PP_TLS_DTV, 0x18, MADE_END - 8);
}

struct static_case {
	uint64_t value, size, align;
	uint8_t type;
	int32_t offset; /* 0: not taken */
};

static void check_static(uint16_t machine, const struct static_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		begin(machine);
		elf.program[2] = (Elf64_Phdr){
			.p_type = PT_TLS, .p_memsz = cases[i].size, .p_align = cases[i].align};
		made_symbol(&elf, "_Py_tss_tstate", cases[i].value, 8, cases[i].type);
		plan(15, &no_key);
		assert_source(0, PP_TLS_NONE, 0, 0); /* a library's block may be anywhere */
		info.is_static_exe = true;
		plan(15, &no_key);
		assert_source(0, cases[i].offset ? PP_TLS_THREAD_OFFSET : PP_TLS_NONE,
			      cases[i].offset, 0);
		assert_source(1, PP_TLS_NONE, 0, 0);
	}
}

/* Variant II: the block ends at the thread pointer, its size rounded up to its alignment. */
static void python_tls_plan__executable_s_block_on_x86_64(void **state)
{
	static const struct static_case cases[] = {
		{8, 40, 16, STT_TLS, 8 - 48},
		{8, 39, 0, STT_TLS, 8 - 39},
		{8, 39, 1, STT_TLS, 8 - 39},
		{0, 48, 16, STT_TLS, -48},
		{39, 40, 8, STT_TLS, -1},
		{40, 40, 8, STT_TLS, 0},
		{8, 40, 4096, STT_TLS, 8 - 4096},
		{8, 40, 8192, STT_TLS, 0},
		{8, 40, 24, STT_TLS, 0},
		{8, 40, 16, STT_FUNC, 0},
		{8, 1 << 24, 16, STT_TLS, 8 - (1 << 24)},
		{8, (1 << 24) + 1, 16, STT_TLS, 0},
	};

	(void)state;
	check_static(EM_X86_64, cases, ARRAY_SIZE(cases));
}

/* Variant I: the block follows a thread control block of 16 bytes. */
static void python_tls_plan__executable_s_block_on_aarch64(void **state)
{
	static const struct static_case cases[] = {
		{8, 40, 8, STT_TLS, 8 + 16},
		{8, 40, 16, STT_TLS, 8 + 16},
		{8, 40, 64, STT_TLS, 8 + 64},
		{40, 40, 8, STT_TLS, 0},
	};

	(void)state;
	check_static(EM_AARCH64, cases, ARRAY_SIZE(cases));
}

/* ---- the key of the GILState slot ---- */

/* A version with the key at 600 and tstate_current 24 bytes before it. */
static const struct python_layout layout = {.tss_key = 600, .state_current = 576};

static void assert_key(unsigned int minor, const struct python_layout *version, uint64_t key)
{
	plan(minor, version);
	assert_source(1, PP_TLS_PTHREAD_KEY, 0, RUNTIME + key + 4);
	if (minor < 12)
		assert_source(0, PP_TLS_GLOBAL, 0, RUNTIME + key - 24);
}

/* lea runtime+offset(%rip), %rdi for each; ret */
static void put_key_accessor(const uint64_t *offset, size_t count)
{
	uint64_t at = CODE;

	begin(EM_X86_64);
	made_symbol(&elf, "PyGILState_GetThisThreadState", CODE, 64, STT_FUNC);
	for (size_t i = 0; i < count; i++)
		at = MADE_RELATIVE(&elf, at, "\x48\x8d\x3d", RUNTIME + offset[i]);
	MADE_PUT(&elf, at, "\xc3");
}

static void python_tls_plan__key_is_the_last_that_the_accessor_touches(void **state)
{
	static const struct {
		uint64_t touched[2], key;
	} cases[] = {
		{{400, 800}, 800}, {{800, 400}, 800},  {{800, 0}, 800}, {{0, 800}, 800},
		{{804, 0}, 800},   {{64, 0}, 64},      {{56, 0}, 600},	{{8184, 0}, 8184},
		{{8192, 0}, 600},  {{8192, 400}, 400}, {{0, 0}, 600},	{{63, 63}, 600},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		put_key_accessor(cases[i].touched, 2);
		assert_key(9, &layout, cases[i].key);
		assert_key(11, &layout, cases[i].key);
		assert_key(12, &layout, cases[i].key);
		assert_source(0, PP_TLS_NONE, 0, 0);
	}
}

/* mov SLOT(%rip), %rax; lea 700(%rax), %rdi; ret: by the address in the global offset table. */
static void python_tls_plan__key_may_be_found_by_the_runtime_s_address(void **state)
{
	(void)state;
	for (int is_runtime = 0; is_runtime < 2; is_runtime++) {
		uint64_t at;

		begin(EM_X86_64);
		made_symbol(&elf, "PyGILState_GetThisThreadState", CODE, 64, STT_FUNC);
		at = MADE_RELATIVE(&elf, CODE, "\x48\x8b\x05", SLOT);
		MADE_PUT(&elf, at, "\x48\x8d\xb8\xc0\x02\x00\x00\xc3"); /* 704 */
		assert_key(9, &layout, 600);				/* not relocated */
		made_relocation(&elf, SLOT, R_X86_64_RELATIVE,
				(int64_t)(is_runtime ? RUNTIME : RUNTIME + 8));
		assert_key(9, &layout, is_runtime ? 704 : 600);
	}
}

/* 3.7.0 to 3.7.3 have 88 bytes less before the key. */
static void python_tls_plan__size_of_the_runtime_tells_early_3_7_apart(void **state)
{
	const struct python_layout sized = {
		.tss_key = 600, .state_current = 576, .runtime_bytes = 1520};
	static const struct {
		uint64_t size, key;
	} cases[] = {{1520, 600}, {1432, 512}, {1431, 600}, {1433, 600}, {0, 600}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(EM_X86_64);
		made_symbol(&elf, "_PyRuntime", RUNTIME, cases[i].size, STT_OBJECT);
		assert_key(7, &sized, cases[i].key);
		assert_key(7, &layout, 600);
	}
	begin(EM_X86_64);
	assert_key(7, &sized, 600);
	begin(EM_AARCH64);
	made_symbol(&elf, "_PyRuntime", RUNTIME, 1432, STT_OBJECT);
	assert_key(7, &sized, 616);
}

/* Two mutexes of 48 bytes instead of 40 come before it. */
static void python_tls_plan__key_on_aarch64_is_16_bytes_further_until_3_11(void **state)
{
	(void)state;
	begin(EM_AARCH64);
	assert_key(7, &layout, 616);
	assert_key(11, &layout, 616);
	assert_key(12, &layout, 600);
	begin(EM_X86_64);
	assert_key(11, &layout, 600);
	assert_key(12, &layout, 600);
}

/* ---- 2.7 and 3.6: variables of the file ---- */

#define CURRENT 0x4444ULL

/* mov variable(%rip), %edi; jmp PyThread_get_key_value */
static void put_key_36(uint64_t variable, bool has_offset)
{
	uint64_t at;

	begin(EM_X86_64);
	info.symbols = (struct python_symbols){.thread_state_current = CURRENT};
	made_symbol(&elf, "PyGILState_GetThisThreadState", CODE, 64, STT_FUNC);
	at = MADE_RELATIVE(&elf, CODE, "\x8b\x3d", variable);
	if (has_offset)
		at = MADE_PUT(&elf, at, "\x48\x83\xc7\x08");
	MADE_RELATIVE(&elf, at, "\xe9", CODE + 0x100);
	MADE_PUT(&elf, CODE + 0x100, "\xc3");
}

static void python_tls_plan__key_of_3_6_is_what_the_accessor_passes_on(void **state)
{
	static const struct {
		uint64_t variable;
		bool is_taken;
	} cases[] = {{SLOT, true},
		     {MADE_BASE, true},
		     {MADE_BASE - 8, false},
		     {MADE_END - 8, true},
		     {MADE_END, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		put_key_36(cases[i].variable, false);
		plan(6, &no_key);
		assert_source(0, PP_TLS_GLOBAL, 0, CURRENT);
		assert_source(1, cases[i].is_taken ? PP_TLS_PTHREAD_KEY : PP_TLS_NONE, 0,
			      cases[i].is_taken ? cases[i].variable : 0);
	}
	put_key_36(SLOT, true);
	plan(6, &no_key);
	assert_source(1, PP_TLS_NONE, 0, 0);
	/* an address itself is no variable */
	put_key_36(SLOT, false);
	MADE_RELATIVE(&elf, CODE, "\x48\x8d\x3d", SLOT);
	MADE_PUT(&elf, CODE + 7, "\xc3");
	plan(6, &no_key);
	assert_source(1, PP_TLS_NONE, 0, 0);
}

static void python_tls_plan__symbol_of_the_key_of_3_6_counts_first(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;

	(void)state;
	put_key_36(SLOT, false);
	info.symbols.auto_tls_key = 0x5555;
	plan(6, &no_key);
	assert_source(0, PP_TLS_GLOBAL, 0, CURRENT);
	assert_source(1, PP_TLS_PTHREAD_KEY, 0, 0x5555);
	/* 2.7 has the variable and none of the slots. */
	put_key_36(SLOT, false);
	info.bpf.major = 2;
	info.bpf.minor = 7;
	image = made_open(&elf);
	python_tls_plan(image, &no_key, &info);
	assert_source(0, PP_TLS_GLOBAL, 0, CURRENT);
	assert_source(1, PP_TLS_NONE, 0, 0);
}

/* mov variable(%rip), %rax; ret */
static uint64_t variable_of(uint64_t variable, bool has_offset)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	uint64_t at;

	begin(EM_X86_64);
	made_symbol(&elf, "get", CODE, 64, STT_FUNC);
	at = MADE_RELATIVE(&elf, CODE, "\x48\x8b\x05", variable);
	if (has_offset)
		at = MADE_PUT(&elf, at, "\x48\x83\xc0\x08");
	MADE_PUT(&elf, at, "\xc3");
	image = made_open(&elf);
	assert_int_equal(python_accessor_variable(image, "put"), 0);
	return python_accessor_variable(image, "get");
}

static void python_accessor_variable__lies_in_the_file_s_own_data(void **state)
{
	(void)state;
	assert_int_equal(variable_of(SLOT, false), SLOT);
	assert_int_equal(variable_of(SLOT, true), 0);
	assert_int_equal(variable_of(MADE_BASE, false), MADE_BASE);
	assert_int_equal(variable_of(MADE_BASE - 8, false), 0);
	assert_int_equal(variable_of(MADE_END - 8, false), MADE_END - 8);
	assert_int_equal(variable_of(MADE_END, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(python_tls_plan__offset_from_the_thread_pointer),
		cmocka_unit_test(python_tls_plan__any_accessor_of_the_attached_state),
		cmocka_unit_test(python_tls_plan__initial_exec_names_the_loader_s_slot),
		cmocka_unit_test(python_tls_plan__pair_has_the_offset_or_its_relocation),
		cmocka_unit_test(python_tls_plan__executable_s_block_on_x86_64),
		cmocka_unit_test(python_tls_plan__executable_s_block_on_aarch64),
		cmocka_unit_test(python_tls_plan__key_is_the_last_that_the_accessor_touches),
		cmocka_unit_test(python_tls_plan__key_may_be_found_by_the_runtime_s_address),
		cmocka_unit_test(python_tls_plan__size_of_the_runtime_tells_early_3_7_apart),
		cmocka_unit_test(python_tls_plan__key_on_aarch64_is_16_bytes_further_until_3_11),
		cmocka_unit_test(python_tls_plan__key_of_3_6_is_what_the_accessor_passes_on),
		cmocka_unit_test(python_tls_plan__symbol_of_the_key_of_3_6_counts_first),
		cmocka_unit_test(python_accessor_variable__lies_in_the_file_s_own_data),
	};

	return cmocka_run_group_tests_name("python/python_tls_plan", tests, NULL, NULL);
}
