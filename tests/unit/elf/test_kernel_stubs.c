/* SPDX-License-Identifier: BSD-2-Clause */
/* Registrations written by hand, as nvcc's host compilers make them, and as a hostile file has. */
#include "elf/kernel_stubs.h"

#include <cmocka.h>
#include <stdlib.h>

#include "made_elf.h"

/* Functions are aligned to this: their bounds are the multiples. */
#define FUNCTION_BYTES 0x100ULL
#define CONSTRUCTOR (MADE_BASE + MADE_FREE)
#define CALLBACK (CONSTRUCTOR + FUNCTION_BYTES)
#define REGISTER (MADE_BASE + 0x4000)
#define STUBS (MADE_BASE + 0x5000)
#define NAMES (MADE_BASE + 0x6000)
#define CONSTRUCTORS (MADE_BASE + 0x7000)
#define SLOTS (MADE_BASE + 0x8000)

static struct made_elf elf;
static uint64_t at; /* where code is added */

static bool find_bounds(void *context, uint64_t vaddr, uint64_t *ret_low, uint64_t *ret_high)
{
	(void)context;
	if (vaddr < MADE_BASE || vaddr >= MADE_END)
		return false;
	*ret_low = vaddr & ~(FUNCTION_BYTES - 1);
	*ret_high = *ret_low + FUNCTION_BYTES;
	return true;
}

/* A section; its header follows those that are there. */
static void add_section(const char *name, uint32_t type, uint64_t offset, uint64_t size)
{
	Elf64_Shdr *section = &elf.section[elf.header.e_shnum++];

	*section = (Elf64_Shdr){.sh_name = made_string(&elf, name),
				.sh_type = type,
				.sh_addr = MADE_BASE + offset,
				.sh_offset = offset,
				.sh_size = size,
				.sh_link = 1};
}

static void begin(void)
{
	const uint64_t constructor = CONSTRUCTOR;

	made_begin(&elf, EM_X86_64);
	add_section(".nvFatBinSegment", SHT_PROGBITS, 0x9000, 24);
	add_section(".init_array", SHT_INIT_ARRAY, CONSTRUCTORS - MADE_BASE, 8);
	made_put(&elf, CONSTRUCTORS, &constructor, 8);
	at = CALLBACK;
}

/* The constructor passes the callback on. */
static void end(void)
{
	uint64_t code = MADE_RELATIVE(&elf, CONSTRUCTOR, "\x48\x8d\x05", CALLBACK);

	MADE_PUT(&elf, code, "\xff\xd0\xc3");
}

static uint64_t name_at(unsigned int i, const char *name)
{
	made_put(&elf, NAMES + 0x40 * i, name, strlen(name) + 1);
	return NAMES + 0x40 * i;
}

/* The instructions of a call; how the stub is loaded, from where. */
static void add_call(const char *load, uint64_t stub, uint64_t name)
{
	at = MADE_PUT(&elf, at, "\x6a\x00\x45\x31\xc9\x41\xb8\xff\xff\xff\xff");
	at = MADE_RELATIVE(&elf, at, "\x48\x8d\x15", name);
	at = MADE_PUT(&elf, at, "\x48\x89\xd1");
	at = made_relative(&elf, at, load, 3, stub);
	at = MADE_RELATIVE(&elf, at, "\x48\x89\xdf\xe8", REGISTER);
}
#define LEA_RSI "\x48\x8d\x35"
#define MOV_RSI "\x48\x8b\x35"

static struct kernel_stubs *read_stubs(const struct elf_image *image)
{
	const struct function_bounds bounds = {.find = find_bounds};
	struct kernel_stubs *stubs = NULL;

	assert_int_equal(kernel_stubs_read(image, &bounds, &stubs), 0);
	assert_non_null(stubs);
	return stubs;
}

/* Asserts that a stub has a name; NULL: that it is none. */
static void assert_named(uint64_t vaddr, const char *name)
{
	OWNED(elf_image) struct elf_image *image = made_open(&elf);
	OWNED(kernel_stubs) struct kernel_stubs *stubs = read_stubs(image);
	const struct kernel_stub *stub = kernel_stubs_find(stubs, vaddr);

	if (!name) {
		assert_null(stub);
		return;
	}
	assert_non_null(stub);
	assert_int_equal(stub->name_size, strlen(name));
	assert_memory_equal(stub->name, name, stub->name_size);
}

static size_t count_stubs(void)
{
	OWNED(elf_image) struct elf_image *image = made_open(&elf);
	OWNED(kernel_stubs) struct kernel_stubs *stubs = read_stubs(image);

	size_t count = 0;

	for (uint64_t vaddr = MADE_BASE; vaddr < MADE_END; vaddr++)
		count += !!kernel_stubs_find(stubs, vaddr);
	return count;
}

static void stubs__are_those_of_the_callback_of_a_constructor(void **state)
{
	(void)state;
	begin();
	add_call(LEA_RSI, STUBS, name_at(0, "_Z4axpyfPfS_"));
	add_call(LEA_RSI, STUBS + 0x100, name_at(1, "gemm"));
	end();
	assert_named(STUBS, "_Z4axpyfPfS_");
	assert_named(STUBS + 0x100, "gemm");
	assert_named(STUBS + 0x10, NULL);
	assert_named(STUBS + 0x200, NULL);
	assert_int_equal(count_stubs(), 2);
}

static void stubs__are_those_of_a_constructor_itself(void **state)
{
	(void)state;
	begin();
	at = CONSTRUCTOR;
	add_call(LEA_RSI, STUBS, name_at(0, "axpy"));
	assert_named(STUBS, "axpy");
}

/* What is no constructor, nor passed on by one, is not read. */
static void stubs__of_other_functions_are_not_looked_for(void **state)
{
	(void)state;
	begin();
	at = CALLBACK + FUNCTION_BYTES;
	add_call(LEA_RSI, STUBS, name_at(0, "axpy"));
	end();
	assert_named(STUBS, NULL);
}

static void stubs__may_be_loaded_from_slots(void **state)
{
	const uint64_t plain = STUBS + 0x200;

	(void)state;
	begin();
	add_section(".rela.dyn", SHT_RELA, MADE_RELOCATIONS, 0);
	made_relocation(&elf, SLOTS + 8, R_X86_64_RELATIVE, STUBS);
	made_relocation(&elf, SLOTS, R_X86_64_RELATIVE, STUBS + 0x100);
	/* Another file's, which is found when the program is started. */
	made_relocation(&elf, SLOTS + 24, R_X86_64_GLOB_DAT, 0);
	elf.section[elf.header.e_shnum - 1].sh_size = 3 * sizeof(Elf64_Rela);
	made_put(&elf, SLOTS + 16, &plain, 8);
	made_put(&elf, SLOTS + 24, &plain, 8);
	add_call(MOV_RSI, SLOTS, name_at(0, "second"));
	add_call(MOV_RSI, SLOTS + 8, name_at(1, "first"));
	add_call(MOV_RSI, SLOTS + 16, name_at(2, "third"));
	add_call(MOV_RSI, SLOTS + 24, name_at(3, "foreign"));
	end();
	assert_named(STUBS, "first");
	assert_named(STUBS + 0x100, "second");
	assert_named(STUBS + 0x200, "third");
	assert_int_equal(count_stubs(), 3);
}

static void stub__with_two_names_has_none(void **state)
{
	(void)state;
	begin();
	add_call(LEA_RSI, STUBS, name_at(0, "one"));
	add_call(LEA_RSI, STUBS, name_at(1, "other"));
	add_call(LEA_RSI, STUBS + 0x100, name_at(2, "same"));
	add_call(LEA_RSI, STUBS + 0x100, name_at(2, "same"));
	end();
	assert_named(STUBS, NULL);
	assert_named(STUBS + 0x100, "same");
}

/* Other calls look alike, but for one argument. */
static void calls__of_other_functions_are_no_registrations(void **state)
{
	const uint64_t name = name_at(0, "axpy");

	(void)state;
	begin();
	/* __cudaRegisterVar: the variable is data, and the number is none of threads */
	at = MADE_PUT(&elf, at, "\x41\xb8\x00\x00\x00\x00");
	at = MADE_RELATIVE(&elf, at, "\x48\x8d\x15", name);
	at = MADE_PUT(&elf, at, "\x48\x89\xd1");
	at = MADE_RELATIVE(&elf, at, LEA_RSI, STUBS);
	at = MADE_RELATIVE(&elf, at, "\xe8", REGISTER);
	/* two different texts */
	at = MADE_PUT(&elf, at, "\x41\xb8\xff\xff\xff\xff");
	at = MADE_RELATIVE(&elf, at, "\x48\x8d\x15", name);
	at = MADE_RELATIVE(&elf, at, "\x48\x8d\x0d", name + 1);
	at = MADE_RELATIVE(&elf, at, LEA_RSI, STUBS);
	at = MADE_RELATIVE(&elf, at, "\xe8", REGISTER);
	/* none of it is known any more behind a call */
	at = MADE_RELATIVE(&elf, at, "\xe8", REGISTER);
	end();
	name_at(0, "axpy");
	assert_int_equal(count_stubs(), 0);
}

static void names__are_those_that_kernels_can_have(void **state)
{
	static char longest[KERNEL_STUB_NAME_MAX_BYTES + 2];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		static const char *const bad[] = {"", "a b", "\xc3\xa9", "a(int)"};

		begin();
		add_call(LEA_RSI, STUBS, name_at(0, bad[i]));
		end();
		assert_int_equal(count_stubs(), 0);
	}
	begin();
	memset(longest, 'a', sizeof(longest) - 2);
	add_call(LEA_RSI, STUBS, name_at(0, longest));
	end();
	assert_named(STUBS, longest);
	longest[sizeof(longest) - 2] = 'b';
	name_at(0, longest);
	assert_int_equal(count_stubs(), 0);
	/* One that goes on to the end of the file. */
	begin();
	add_call(LEA_RSI, STUBS, MADE_END - 4);
	made_put(&elf, MADE_END - 4, "aaaa", 4);
	end();
	assert_int_equal(count_stubs(), 0);
	/* One that is outside of it, and a stub that is. */
	begin();
	add_call(LEA_RSI, STUBS, MADE_END + 4);
	add_call(LEA_RSI, MADE_END, name_at(0, "axpy"));
	end();
	assert_int_equal(count_stubs(), 0);
}

static void file__without_code_for_a_gpu_has_none(void **state)
{
	(void)state;
	begin();
	add_call(LEA_RSI, STUBS, name_at(0, "axpy"));
	end();
	elf.section[3].sh_name = 0;
	assert_int_equal(count_stubs(), 0);
}

/* A list of constructors that is as long as the file: each is read once, within the budget. */
static void work__is_bounded(void **state)
{
	static struct made_elf code;
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED(kernel_stubs) struct kernel_stubs *stubs = NULL;
	uint64_t constructor;

	(void)state;
	begin();
	for (uint64_t i = 0; i < 0x8000 / 8; i++) {
		constructor = CONSTRUCTOR + i % 64 * FUNCTION_BYTES;
		made_put(&elf, CONSTRUCTORS + i * 8, &constructor, 8);
	}
	elf.section[4].sh_size = 0x8000;
	code = elf;
	/* calls to all of it */
	for (uint64_t call = CONSTRUCTOR; call < CONSTRUCTORS - 8; call += 5)
		MADE_RELATIVE(&code, call, "\xe8", call * 7 % 0x10000 + MADE_BASE);
	image = made_open(&code);
	stubs = read_stubs(image);
	assert_null(kernel_stubs_find(stubs, CONSTRUCTOR));
	assert_false(elf_work_is_over(image->work));
}

static void stubs__of_aarch64_are_found(void **state)
{
	static const uint32_t code[] = {
		0xf0000002, /* adrp x2, 0x406000: three pages on */
		0x91000042, /* add x2, x2, #0 */
		0xaa0203e3, /* mov x3, x2 */
		0xd0000001, /* adrp x1, 0x405000 */
		0x91000021, /* add x1, x1, #0 */
		0x12800004, /* mov w4, #-1 */
		0x94000400, /* bl */
	};

	(void)state;
	begin();
	elf.header.e_machine = EM_AARCH64;
	name_at(0, "axpy");
	made_put(&elf, CONSTRUCTOR, code, sizeof(code));
	assert_named(STUBS, "axpy");
}

/* Asserts which kernel a symbol says that it launches; NULL: none. */
static void assert_stub_of(const char *symbol, const char *kernel)
{
	const char *name = NULL;
	size_t size = 0;

	assert_int_equal(kernel_stub_of_symbol(symbol, strlen(symbol), &name, &size), !!kernel);
	if (!kernel)
		return;
	assert_int_equal(size, strlen(kernel));
	assert_memory_equal(name, kernel, size);
}

static void symbol__of_a_device_stub_has_the_kernels_name(void **state)
{
	(void)state;
	assert_stub_of("_Z35__device_stub__Z11reduce_rowsPKfPfiPKfPfi", "_Z11reduce_rowsPKfPfi");
	assert_stub_of("_ZL35__device_stub__Z11reduce_rowsPKfPfiPKfPfi.constprop.0",
		       "_Z11reduce_rowsPKfPfi");
	assert_stub_of("__device_stub__Z4axpyfPf", "_Z4axpyfPf");
	assert_stub_of("_Z11reduce_rowsPKfPfi", NULL);
	assert_stub_of("_ZL25__cudaLaunchKernel_helperPKv4dim3S1_PPvmP11CUstream_st", NULL);
	assert_stub_of("__device_stub_", NULL);
	assert_stub_of("_Z14__device_stub_a", NULL);
	assert_stub_of("_Z99__device_stub__Z4axpyfPf", NULL);
	assert_stub_of("_Z99999999999999999999999999__device_stub__Z4axpyfPf", NULL);
	assert_stub_of("_ZN1a24__device_stub__Z4axpyfPfE", NULL);
	assert_stub_of("_ZL", NULL);
	assert_stub_of("_Z", NULL);
	assert_stub_of("", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stubs__are_those_of_the_callback_of_a_constructor),
		cmocka_unit_test(stubs__are_those_of_a_constructor_itself),
		cmocka_unit_test(stubs__of_other_functions_are_not_looked_for),
		cmocka_unit_test(stubs__may_be_loaded_from_slots),
		cmocka_unit_test(stub__with_two_names_has_none),
		cmocka_unit_test(calls__of_other_functions_are_no_registrations),
		cmocka_unit_test(names__are_those_that_kernels_can_have),
		cmocka_unit_test(file__without_code_for_a_gpu_has_none),
		cmocka_unit_test(work__is_bounded),
		cmocka_unit_test(symbol__of_a_device_stub_has_the_kernels_name),
		cmocka_unit_test(stubs__of_aarch64_are_found),
	};

	return cmocka_run_group_tests_name("elf/kernel_stubs", tests, NULL, NULL);
}
