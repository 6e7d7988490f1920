/* SPDX-License-Identifier: BSD-2-Clause */
/* What the child answers about kernels: the file, its stubs and its symbols are fakes in this
 * file; functions are 0x100 bytes long. */
#include "files/kernel_names.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf_symbols.h"
#include "files/check.h"

#define MAX 8U

/* Of the function at 0x100 * index: what it is registered as, and its symbol. */
static struct {
	const char *registered[MAX], *symbol[MAX];
	unsigned int read, symbols_asked;
	int read_error, symbols_error;
} file;

static uint8_t memory[FOREIGN_MEMORY_BYTES];
static union {
	struct foreign_request request;
	uint8_t bytes[FOREIGN_REQUEST_MAX_BYTES];
} asked;
static struct kernel_stubs *kept;

int cfi_fde_find(struct cfi *cfi, uint64_t vaddr, struct cfi_range *ret_range)
{
	assert_non_null(cfi);
	*ret_range = (struct cfi_range){.low = vaddr & ~0xffULL, .high = (vaddr | 0xff) + 1};
	return vaddr < MAX * 0x100 ? 0 : -ENOENT;
}

int kernel_stubs_read(const struct elf_image *image, const struct function_bounds *bounds,
		      struct kernel_stubs **ret_stubs)
{
	uint64_t low, high;

	assert_null(image);
	assert_true(bounds->find(bounds->context, 0x123, &low, &high));
	assert_int_equal(low, 0x100);
	assert_false(bounds->find(bounds->context, MAX * 0x100, &low, &high));
	file.read++;
	if (file.read_error)
		return file.read_error;
	*ret_stubs = (struct kernel_stubs *)&file;
	return 0;
}

const struct kernel_stub *kernel_stubs_find(const struct kernel_stubs *stubs, uint64_t vaddr)
{
	static struct kernel_stub stub;
	const char *name = file.registered[vaddr / 0x100];

	assert_ptr_equal(stubs, &file);
	assert_int_equal(vaddr % 0x100, 0);
	if (!name)
		return NULL;
	stub = (struct kernel_stub){vaddr, name, (uint32_t)strlen(name)};
	return &stub;
}

bool kernel_stub_of_symbol(const char *symbol, size_t size, const char **ret_name, size_t *ret_size)
{
	if (strncmp(symbol, "stub:", 5) != 0)
		return false;
	*ret_name = symbol + 5;
	*ret_size = size - 5;
	return true;
}

int elf_symbols_find_many(const struct elf_image *image, const struct debug_files *files,
			  const uint64_t *vaddr, size_t count, elf_function_handler *found,
			  void *context)
{
	(void)image, (void)files;
	file.symbols_asked++;
	for (size_t i = 0; i < count && !file.symbols_error; i++) {
		const char *name = vaddr[i] < MAX * 0x100 ? file.symbol[vaddr[i] / 0x100] : NULL;
		const struct elf_function function = {.name = name,
						      .name_size = name ? strlen(name) : 0,
						      .start = vaddr[i] & ~0xffULL,
						      .low = 0,
						      .high = UINT64_MAX};

		found(context, i, &function);
	}
	return file.symbols_error;
}

/* Of files/check.c's other questions. */
uint32_t python_code_rows_max(const struct python_code_raw *raw)
{
	(void)raw;
	return 0;
}

/* ---- */

static int setup(void **state)
{
	(void)state;
	memset(&file, 0, sizeof(file));
	memset(&asked, 0, sizeof(asked));
	kept = NULL;
	return 0;
}

static const struct kernel_names_source *source(void)
{
	static struct kernel_names_source all;

	all = (struct kernel_names_source){.cfi = (struct cfi *)&file, .stubs = &kept};
	return &all;
}

static void ask(bool are_functions, const uint64_t *vaddr, uint32_t count)
{
	uint32_t size = 0;

	asked.request.low = are_functions;
	asked.request.vaddr_count = count;
	memcpy(asked.request.vaddr, vaddr, count * sizeof(*vaddr));
	assert_int_equal(kernel_names_of_code(source(), &asked.request, memory, &size), 0);
	assert_true(size <= sizeof(memory));
	assert_true(
		foreign_names_are_sound((const struct foreign_names *)memory, size, vaddr, count));
	assert_int_equal(((const struct foreign_names *)memory)->count, count);
}

static const char *text_of(uint32_t at, uint32_t bytes, uint32_t count)
{
	static char text[FOREIGN_NAME_MAX_BYTES + 1];

	memcpy(text, memory + foreign_text_at(count) + at, bytes);
	text[bytes] = '\0';
	return text;
}

/* Asserts what the answer for an address is; NULL: none. */
static void assert_answer(uint32_t index, const char *name, const char *system_name)
{
	const struct foreign_names *names = (const struct foreign_names *)memory;
	const struct foreign_name *answer = &names->name[index];

	assert_string_equal(text_of(answer->name_at, answer->name_bytes, names->count),
			    name ? name : "");
	assert_string_equal(text_of(answer->system_at, answer->system_bytes, names->count),
			    system_name ? system_name : "");
}

static void kernel__of_code_is_what_its_function_is_registered_as(void **state)
{
	static const uint64_t vaddr[] = {0x120, 0x1ff, 0x200, 0x2000};

	(void)state;
	file.registered[1] = "_ZN4fake6matmulIfLi16EEEvPKT_S3_PS1_i";
	file.registered[2] = "plain";
	ask(false, vaddr, 4);
	assert_answer(0, "fake::matmul<float, 16>", file.registered[1]);
	assert_answer(1, "fake::matmul<float, 16>", file.registered[1]);
	assert_answer(2, "plain", NULL);
	assert_answer(3, NULL, NULL);
	ask(false, vaddr, 4);
	assert_int_equal(file.read, 1);
}

/* The symbol of any other function is no kernel's name. */
static void kernel__of_code_that_is_not_registered_has_a_stubs_symbol(void **state)
{
	static const uint64_t vaddr[] = {0x120, 0x220};

	(void)state;
	file.symbol[1] = "stub:_Z4axpyfPf";
	file.symbol[2] = "launch_all";
	ask(false, vaddr, 2);
	assert_answer(0, "axpy", "_Z4axpyfPf");
	assert_answer(1, NULL, NULL);
	file.registered[1] = "_Z4gemmv";
	file.registered[2] = "_Z4gemvv";
	file.symbols_asked = 0;
	ask(false, vaddr, 2);
	assert_answer(0, "gemm", "_Z4gemmv");
	assert_int_equal(file.symbols_asked, 0);
}

static void kernel__that_is_launched_by_its_function_is_called_as_that(void **state)
{
	static const uint64_t vaddr[] = {0x100, 0x200, 0x210, 0x300};

	(void)state;
	file.registered[1] = "_Z4axpyfPf";
	file.registered[2] = "never"; /* nothing begins at 0x210 */
	file.symbol[1] = "otherwise";
	file.symbol[2] = "gemm";
	file.symbol[3] = "_Z4gemvv";
	ask(true, vaddr, 4);
	assert_answer(0, "axpy", "_Z4axpyfPf");
	assert_answer(1, "never", NULL);
	assert_answer(2, NULL, NULL);
	assert_answer(3, "gemv", "_Z4gemvv");
}

static void errors__of_the_file_are_told_where_nothing_else_is_known(void **state)
{
	const uint64_t vaddr = 0x100;
	struct kernel_names_source bare = *source();
	uint32_t size = 0;

	(void)state;
	asked.request.vaddr_count = 1;
	asked.request.vaddr[0] = vaddr;
	file.symbols_error = -E2BIG;
	assert_int_equal(kernel_names_of_code(source(), &asked.request, memory, &size), -E2BIG);
	file.registered[1] = "axpy";
	assert_int_equal(kernel_names_of_code(source(), &asked.request, memory, &size), 0);
	/* Symbols that overlap as in no honest file say nothing. */
	file.registered[1] = NULL;
	file.symbols_error = -EBADMSG;
	assert_int_equal(kernel_names_of_code(source(), &asked.request, memory, &size), 0);
	assert_answer(0, NULL, NULL);
	kept = NULL;
	file.read_error = -ENOMEM;
	assert_int_equal(kernel_names_of_code(source(), &asked.request, memory, &size), -ENOMEM);
	/* Without unwind information there are symbols. */
	bare.cfi = NULL;
	file.symbols_error = 0;
	file.symbol[1] = "stub:axpy";
	assert_int_equal(kernel_names_of_code(&bare, &asked.request, memory, &size), 0);
	assert_answer(0, "axpy", NULL);
}

static void names__as_long_as_they_may_be_fit(void **state)
{
	static char name[KERNEL_STUB_NAME_MAX_BYTES + 100];
	uint64_t vaddr[FOREIGN_MAX_KERNELS];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	for (uint32_t i = 0; i < FOREIGN_MAX_KERNELS; i++)
		vaddr[i] = 0x100;
	file.registered[1] = name;
	ask(false, vaddr, FOREIGN_MAX_KERNELS);
	name[KERNEL_STUB_NAME_MAX_BYTES] = '\0';
	assert_answer(FOREIGN_MAX_KERNELS - 1, name, NULL);
}

static void texts__are_demangled(void **state)
{
	static const char texts[] = "_Z4axpyfPf\0plain\0_Zbroken\0_ZN4fake15nms_kernel_implEPKfi\0";
	static const uint64_t number[] = {0, 1, 2, 3};
	uint32_t size = 0;

	(void)state;
	asked.request = (struct foreign_request){
		.kind = FOREIGN_TEXTS, .number = 1, .low = 4, .vaddr_count = 8};
	memcpy(asked.request.vaddr, texts, sizeof(texts));
	assert_true(foreign_request_is_sound(&asked.request, sizeof(asked.request) + 64));
	kernel_names_of_texts(&asked.request, memory, &size);
	assert_true(foreign_names_are_sound((const struct foreign_names *)memory, size, number, 4));
	assert_answer(0, "axpy", NULL);
	assert_answer(1, NULL, NULL);
	assert_answer(2, NULL, NULL);
	assert_answer(3, "fake::nms_kernel_impl", NULL);
}

/* ---- requests ---- */

static bool texts_are_sound(const void *bytes, size_t size, uint64_t count)
{
	memset(&asked, 0, sizeof(asked));
	asked.request.kind = FOREIGN_TEXTS;
	asked.request.number = 1;
	asked.request.low = count;
	asked.request.vaddr_count = (uint32_t)(size + 7) / 8;
	memcpy(asked.request.vaddr, bytes, size);
	return foreign_request_is_sound(&asked.request,
					sizeof(asked.request) + 8 * asked.request.vaddr_count);
}

static void request__of_texts_has_as_many_as_it_says(void **state)
{
	static char longest[2 * FOREIGN_NAME_MAX_BYTES];

	(void)state;
	assert_true(texts_are_sound("a\0b\0", 4, 2));
	assert_false(texts_are_sound("a\0b\0", 4, 3));
	assert_false(texts_are_sound("a\0b\0", 4, 0));
	assert_false(texts_are_sound("a\0\0b", 4, 2));
	assert_false(texts_are_sound("abcdefgh", 8, 1));
	assert_false(texts_are_sound("a\0\0\0\0\0\0\0\0", 9, 1)); /* a word too much */
	assert_false(texts_are_sound("", 0, 1));
	memset(longest, 'a', FOREIGN_NAME_MAX_BYTES - 1);
	assert_true(texts_are_sound(longest, FOREIGN_NAME_MAX_BYTES, 1));
	longest[FOREIGN_NAME_MAX_BYTES - 1] = 'a';
	assert_false(texts_are_sound(longest, FOREIGN_NAME_MAX_BYTES + 1, 1));
	assert_true(texts_are_sound("a", 2, 1));
	asked.request.files = FOREIGN_FILE_BIT;
	assert_false(foreign_request_is_sound(&asked.request, sizeof(asked.request) + 8));
}

static void request__of_kernels_is_about_some_addresses(void **state)
{
	struct foreign_request *request = &asked.request;

	(void)state;
	*request = (struct foreign_request){.kind = FOREIGN_KERNELS, .number = 1};
	assert_false(foreign_request_is_sound(request, sizeof(*request)));
	request->vaddr_count = FOREIGN_MAX_KERNELS;
	assert_true(foreign_request_is_sound(request, sizeof(*request) + 8 * request->vaddr_count));
	request->low = 2;
	assert_false(
		foreign_request_is_sound(request, sizeof(*request) + 8 * request->vaddr_count));
	request->low = 1;
	request->vaddr_count++;
	assert_false(
		foreign_request_is_sound(request, sizeof(*request) + 8 * request->vaddr_count));
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kernel__of_code_is_what_its_function_is_registered_as),
		TEST(kernel__of_code_that_is_not_registered_has_a_stubs_symbol),
		TEST(kernel__that_is_launched_by_its_function_is_called_as_that),
		TEST(errors__of_the_file_are_told_where_nothing_else_is_known),
		TEST(names__as_long_as_they_may_be_fit),
		TEST(texts__are_demangled),
		TEST(request__of_texts_has_as_many_as_it_says),
		TEST(request__of_kernels_is_about_some_addresses),
	};

	return cmocka_run_group_tests_name("files/kernel_names", tests, NULL, NULL);
}
