/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles, totals, stacks, files, processes and the child are stand-ins. */
#include "gpu/kernel_names.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pyprofd/limits.h>

#include "attach/file_table.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/counts.h"
#include "drain/cuda_names.h"
#include "drain/cuda_totals.h"
#include "gpu/launch_site.h"
#include "probes/cuda_functions.h"
#include "windows/source.h"

#define FILE_ID 30U
#define MAX 8U

static struct {
	/* Row i is the counter's detail i. */
	struct pp_cuda_what row[MAX];
	uint64_t row_name[MAX]; /* id of the text that row i is called by */
	uint64_t of[MAX];	/* handle that handle 0x7000 + i stands for; 0: none */
	const char *text[MAX];	/* that the driver was given for it */
	uint64_t text_id[MAX];
	bool has_stack;
	struct launch_site site;
	/* What the child says of the address 0x100 * i. */
	const char *kernel[MAX];
	int kernels_error, texts_error;
	unsigned int kernels_asked, texts_asked, addresses_asked;
	bool asked_functions;
	const char *demangled; /* NULL: it is not mangled */
	uint32_t texts_max;    /* answered at a time */
	uint32_t dead;
} fake;
static struct process process;
static struct mapping mapping = {
	.start = 0x500000, .end = 0x600000, .bias = 0x500000, .file = FILE_ID};
static char path[] = "/usr/lib/libblas.so";
static struct file file = {.id = FILE_ID, .path = path};

struct pp_cuda_handle cuda_names_origin(const struct cuda_names *handles,
					const struct pp_cuda_handle *handle, uint32_t life)
{
	struct pp_cuda_handle origin = *handle;

	assert_non_null(handles);
	if (life)
		return origin;
	if (handle->handle - 0x7000 < MAX && fake.of[handle->handle - 0x7000])
		origin.handle = fake.of[handle->handle - 0x7000];
	return origin;
}

/* All of these are of life 0. */
const char *cuda_names_find(const struct cuda_names *handles, const struct pp_cuda_handle *handle,
			    uint32_t life, uint64_t *ret_text)
{
	const uint64_t i = handle->handle - 0x7000;

	(void)handles;
	if (i >= MAX || !fake.text[i] || life)
		return NULL;
	*ret_text = fake.text_id[i];
	return fake.text[i];
}

const char *cuda_names_find_text(const struct cuda_names *handles, struct pp_process_id id,
				 uint64_t text)
{
	(void)handles;
	assert_int_equal(id.tgid, 70);
	return text == 500 ? "_Z5gemmv" : NULL;
}

uint64_t cuda_totals_name(const struct cuda_totals *totals, uint64_t id)
{
	(void)totals;
	return id < MAX ? fake.row_name[id] : 0;
}

const struct pp_cuda_what *cuda_totals_what(const struct cuda_totals *totals, uint64_t id)
{
	(void)totals;
	return id < MAX && fake.row[id].id.tgid ? &fake.row[id] : NULL;
}

const struct dict_stack *dictionary_find_stack(const struct dictionary *dictionary, uint64_t hash)
{
	static struct dict_stack stack;

	(void)dictionary;
	return hash && fake.has_stack ? &stack : NULL;
}

bool launch_site_find(const struct dict_stack *stack, launch_file_of *file_of, void *context,
		      struct launch_site *ret_site)
{
	assert_non_null(stack);
	assert_int_equal(file_of(context, FILE_ID), LAUNCH_FILE_OTHER);
	strcpy(path, "/x/libcuda.so.1");
	assert_int_equal(file_of(context, FILE_ID), LAUNCH_FILE_DRIVER);
	strcpy(path, "/libcudart.so.13");
	assert_int_equal(file_of(context, FILE_ID), LAUNCH_FILE_RUNTIME);
	strcpy(path, "/usr/lib/libblas.so");
	assert_int_equal(file_of(context, 99), LAUNCH_FILE_OTHER);
	*ret_site = fake.site;
	return fake.site.count;
}

struct file *file_table_in_slot(const struct file_table *table, uint32_t slot)
{
	(void)table;
	return slot == FILE_ID ? &file : NULL;
}

struct file *file_table_find(const struct file_table *table, uint32_t id)
{
	return file_table_in_slot(table, id);
}

int file_table_kernels(struct file_table *table, struct file *of, const uint64_t *vaddr,
		       size_t count, bool are_functions, foreign_function_handler *found,
		       void *context)
{
	(void)table;
	assert_ptr_equal(of, &file);
	fake.kernels_asked++;
	fake.asked_functions = are_functions;
	fake.addresses_asked += (unsigned int)count;
	for (size_t i = 0; i < count && !fake.kernels_error; i++) {
		const struct foreign_function function = {.name = fake.kernel[vaddr[i] / 0x100],
							  .system_name = ""};

		assert_true(!i || vaddr[i] >= vaddr[i - 1]);
		found(context, &function);
	}
	return fake.kernels_error;
}

int foreign_texts(struct foreign *foreign, const struct foreign_file *whose,
		  const char *const *text, size_t count, foreign_function_handler *found,
		  void *context)
{
	const struct foreign_function function = {.name = fake.demangled, .system_name = ""};

	assert_non_null(foreign);
	assert_null(whose->find);
	assert_int_equal(whose->user, 1000);
	assert_int_equal(whose->payer, 1000);
	assert_int_not_equal(whose->number, 0);
	fake.texts_asked++;
	if (fake.texts_error)
		return fake.texts_error;
	if (count > fake.texts_max)
		count = fake.texts_max;
	for (size_t i = 0; i < count; i++) {
		assert_true(strlen(text[i]) < PP_MAX_TEXT_BYTES - 1);
		found(context, &function);
	}
	return (int)count;
}

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table;
	return id.tgid == 70 ? &process : NULL;
}

uint32_t process_user(const struct process *of)
{
	assert_ptr_equal(of, &process);
	return 1000;
}

static bool is_alive(void *context, struct pp_process_id id)
{
	(void)context;
	return id.tgid != fake.dead;
}

/* ---- */

static struct kernel_names *names;
static struct counted counted[MAX];
static struct counts counts = {.entry = counted};

static uint16_t api_of(const char *name)
{
	for (size_t i = 0; i < cuda_function_count(); i++)
		if (!strcmp(cuda_function_get(i)->name, name))
			return (uint16_t)i;
	fail();
	return 0;
}

static int setup(void **state)
{
	static const struct services services = {.foreign = (struct foreign *)&fake};

	(void)state;
	memset(&fake, 0, sizeof(fake));
	memset(counted, 0, sizeof(counted));
	process = (struct process){.mapping = &mapping, .mapping_count = 1};
	counts.count = 0;
	fake.texts_max = UINT32_MAX;
	fake.has_stack = true;
	return kernel_names_new(&services, (const struct cuda_names *)&fake, NULL, &names);
}

static int teardown(void **state)
{
	(void)state;
	kernel_names_free(names);
	return 0;
}

/* Adds a counter of launches. */
static void add_of(const char *api, uint64_t ident)
{
	const size_t i = counts.count++;

	counted[i].key = (struct pp_count_key){.kind = PP_KIND_CUDA, .detail = i, .user_stack = 5};
	fake.row[i] = (struct pp_cuda_what){.id = {.tgid = 70}, .ident = ident, .api = api_of(api)};
}

static void add(uint64_t ident)
{
	add_of("cuLaunchKernel", ident);
}

static void set_site(uint32_t count, const uint64_t *vaddr)
{
	fake.site = (struct launch_site){.file = FILE_ID, .count = count};
	memcpy(fake.site.vaddr, vaddr, count * sizeof(*vaddr));
}

static void set_text(uint64_t handle, uint64_t id, const char *text)
{
	fake.text[handle - 0x7000] = text;
	fake.text_id[handle - 0x7000] = id;
}

static void resolve(void)
{
	assert_int_equal(kernel_names_resolve(names, &counts, NULL), 0);
}

static const char *name_of(uint64_t ident)
{
	const struct pp_cuda_what what = {.id = {.tgid = 70}, .ident = ident};

	return kernel_names_get(names, &what);
}

/* ---- what the driver was given ---- */

static void name__that_the_driver_was_given_is_demangled_once(void **state)
{
	(void)state;
	add(0x7001);
	add(0x7001);
	add(0x7002);
	set_text(0x7001, 5, "_Z4axpyfPf");
	set_text(0x7002, 5, "_Z4axpyfPf");
	fake.demangled = "axpy";
	resolve();
	resolve();
	assert_string_equal(name_of(0x7001), "axpy");
	assert_string_equal(name_of(0x7002), "axpy");
	assert_int_equal(fake.texts_asked, 1);
	assert_int_equal(fake.kernels_asked, 0);
	assert_int_equal(kernel_names_unnamed(names), 0);
	/* The handle was given out again. */
	set_text(0x7001, 6, "plain");
	fake.demangled = NULL;
	resolve();
	assert_string_equal(name_of(0x7001), "plain");
	assert_string_equal(name_of(0x7002), "axpy");
}

/* The handle was given out again: rows of before have their own name, and those of a later life
 * none that the handle had. */
static void name__of_a_row_is_what_its_kernel_was_called_then(void **state)
{
	struct pp_cuda_what what = {.id = {.tgid = 70}, .ident = 0x7001};

	(void)state;
	add(0x7001);
	add(0x7001);
	add(0x7001);
	fake.row[1].life = 1;
	fake.row[2].life = 2;
	fake.row_name[1] = 500;
	fake.has_stack = false;
	set_text(0x7001, 5, "_Z4axpyfPf");
	resolve();
	assert_string_equal(name_of(0x7001), "_Z4axpyfPf");
	what.life = 1;
	assert_string_equal(kernel_names_get(names, &what), "_Z5gemmv");
	what.life = 2;
	assert_string_equal(kernel_names_get(names, &what), "kernel@0x7001");
}

static void name__that_cannot_be_demangled_stays_as_it_is(void **state)
{
	(void)state;
	add(0x7001);
	set_text(0x7001, 5, "_Z4axpyfPf");
	fake.demangled = "axpy";
	fake.texts_error = -EAGAIN;
	resolve();
	assert_string_equal(name_of(0x7001), "_Z4axpyfPf");
	assert_int_equal(kernel_names_unnamed(names), 1);
	/* It is asked about again, but not where the child was late. */
	fake.texts_error = 0;
	resolve();
	assert_string_equal(name_of(0x7001), "axpy");
	set_text(0x7001, 6, "_Zhostile");
	fake.texts_error = -ETIME;
	resolve();
	fake.texts_error = 0;
	resolve();
	assert_string_equal(name_of(0x7001), "_Zhostile");
	assert_int_equal(fake.texts_asked, 3);
	assert_int_equal(kernel_names_unnamed(names), 1);
}

static void name__that_is_cut_is_shown_so(void **state)
{
	static char longest[PP_MAX_TEXT_BYTES];
	const char *name;

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	add(0x7001);
	add(0x7002);
	set_text(0x7001, 5, longest);
	set_text(0x7002, 6, "_Z4axpyfPf");
	fake.demangled = "axpy";
	resolve();
	name = name_of(0x7001);
	assert_int_equal(strlen(name), PP_MAX_TEXT_BYTES + 2);
	assert_string_equal(name + strlen(name) - 4, "x...");
	assert_string_equal(name_of(0x7002), "axpy");
	assert_int_equal(fake.texts_asked, 1);
}

static void names__are_asked_about_as_many_as_fit(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 5; i++) {
		add(0x7000 + i);
		set_text(0x7000 + i, 5 + i, "_Z4axpyfPf");
	}
	fake.row[4].id.tgid = 71; /* another process, which is gone */
	fake.demangled = "axpy";
	fake.texts_max = 2;
	resolve();
	assert_int_equal(fake.texts_asked, 2);
	for (uint64_t i = 0; i < 4; i++)
		assert_string_equal(name_of(0x7000 + i), "axpy");
}

/* ---- one kernel has several handles ---- */

static void handles__of_one_kernel_have_one_name(void **state)
{
	static const uint64_t vaddr[] = {0x100};

	(void)state;
	add(0x7001);
	add(0x7002);
	fake.of[2] = 0x7001;
	set_site(1, vaddr);
	resolve();
	assert_string_equal(name_of(0x7001), "kernel@0x7001 (libblas.so)");
	assert_string_equal(name_of(0x7002), "kernel@0x7001 (libblas.so)");
	assert_int_equal(kernel_names_unnamed(names), 1);
	fake.kernel[1] = "gemm";
	resolve();
	assert_string_equal(name_of(0x7001), "gemm");
	assert_string_equal(name_of(0x7002), "gemm");
}

/* ---- the stub at the launch site ---- */

static void stub__is_the_innermost_frame_that_is_one(void **state)
{
	static const uint64_t vaddr[] = {0x300, 0x200, 0x100};

	(void)state;
	add(0x7001);
	set_site(3, vaddr);
	fake.kernel[1] = "outer";
	fake.kernel[2] = "gemm";
	resolve();
	resolve();
	assert_string_equal(name_of(0x7001), "gemm");
	assert_int_equal(fake.kernels_asked, 1);
	assert_false(fake.asked_functions);
	assert_int_equal(fake.addresses_asked, 3);
	assert_int_equal(kernel_names_unnamed(names), 0);
	/* What the driver is given later is more certain. */
	set_text(0x7001, 5, "_Z4axpyfPf");
	fake.demangled = "axpy";
	resolve();
	assert_string_equal(name_of(0x7001), "axpy");
}

/* A program that calls the driver itself has none: no frame's name is a kernel's. */
static void stub__that_is_not_there_is_looked_for_in_a_few_stacks(void **state)
{
	static const uint64_t vaddr[] = {0x100};

	(void)state;
	add(0x7001);
	set_site(1, vaddr);
	for (int i = 0; i < 10; i++)
		resolve();
	assert_int_equal(fake.kernels_asked, 4);
	assert_string_equal(name_of(0x7001), "kernel@0x7001 (libblas.so)");
	assert_int_equal(kernel_names_unnamed(names), 1);
}

static void stub__question_that_fails_leaves_the_handle(void **state)
{
	static const uint64_t vaddr[] = {0x100};

	(void)state;
	add(0x7001);
	set_site(1, vaddr);
	fake.kernel[1] = "gemm";
	fake.kernels_error = -EAGAIN;
	for (int i = 0; i < 10; i++)
		resolve();
	assert_string_equal(name_of(0x7001), "kernel@0x7001 (libblas.so)");
	/* It was only put off. */
	fake.kernels_error = 0;
	resolve();
	assert_string_equal(name_of(0x7001), "gemm");
	/* One that is refused is not asked about for ever. */
	fake.kernels_asked = 0;
	counts.count = 0;
	add(0x7002);
	fake.kernels_error = -E2BIG;
	for (int i = 0; i < 10; i++)
		resolve();
	assert_int_equal(fake.kernels_asked, 4);
}

static void launch__without_a_stack_has_its_handle(void **state)
{
	(void)state;
	add(0x7001);
	fake.has_stack = false;
	resolve();
	assert_string_equal(name_of(0x7001), "kernel@0x7001");
	assert_string_equal(name_of(0x7777), "kernel@0x7777");
	assert_int_equal(kernel_names_unnamed(names), 1);
}

/* ---- functions of the host ---- */

static void function__of_the_runtime_is_asked_about_once(void **state)
{
	static const uint64_t vaddr[] = {0x200};

	(void)state;
	add_of("cudaLaunchKernel", 0x500100);
	set_site(1, vaddr);
	fake.kernel[1] = "axpy";
	fake.kernel[2] = "other";
	resolve();
	assert_string_equal(name_of(0x500100), "axpy");
	assert_int_equal(fake.kernels_asked, 2);
	/* A handle of CUDA 13 lies in no file. */
	add_of("cudaLaunchKernel", 0x7001);
	resolve();
	assert_string_equal(name_of(0x7001), "other");
	/* One of the driver is not looked for there. */
	fake.kernels_asked = 0;
	fake.site.count = 0;
	add(0x500200);
	resolve();
	assert_int_equal(fake.kernels_asked, 0);
	assert_string_equal(name_of(0x500200), "kernel@0x500200");
}

/* ---- the rest ---- */

static void calls__without_a_kernel_are_not_looked_at(void **state)
{
	(void)state;
	add_of("cuMemcpyHtoD_v2", 0);
	add_of("cuGraphLaunch", 0x9000);
	add(PP_CUDA_IDENT_OTHERS);
	counted[counts.count++].key = (struct pp_count_key){.kind = PP_KIND_CPU, .detail = 0};
	counted[counts.count++].key = (struct pp_count_key){.kind = PP_KIND_CUDA, .detail = MAX};
	resolve();
	assert_int_equal(fake.kernels_asked + fake.texts_asked, 0);
	assert_int_equal(kernel_names_unnamed(names), 0);
}

static void round__goes_on_in_slices(void **state)
{
	const struct slice over = {0};
	static const uint64_t vaddr[] = {0x100};

	(void)state;
	add(0x7001);
	add(0x7002);
	add(0x7003);
	set_text(0x7001, 5, "_Z4axpyfPf");
	set_text(0x7002, 6, "_Z4axpyfPf");
	fake.demangled = "axpy";
	fake.texts_max = 1;
	set_site(1, vaddr);
	fake.kernel[1] = "gemm";
	assert_int_equal(kernel_names_resolve(names, &counts, &over), 1);
	assert_string_equal(name_of(0x7003), "gemm");
	assert_int_equal(kernel_names_resolve(names, &counts, &over), 0);
	assert_string_equal(name_of(0x7002), "axpy");
	assert_int_equal(fake.texts_asked, 2);
	assert_int_equal(fake.kernels_asked, 1);
}

static void tidy__forgets_ended_processes_and_a_round_that_was_given_up(void **state)
{
	const struct slice over = {0};

	(void)state;
	add(0x7001);
	add(0x7002);
	set_text(0x7001, 5, "_Z4axpyfPf");
	set_text(0x7002, 6, "_Z4axpyfPf");
	fake.demangled = "axpy";
	fake.texts_max = 1;
	assert_int_equal(kernel_names_resolve(names, &counts, &over), 1);
	kernel_names_tidy(names, is_alive, NULL);
	assert_string_equal(name_of(0x7001), "axpy");
	resolve();
	assert_string_equal(name_of(0x7002), "axpy");
	fake.dead = 70;
	kernel_names_tidy(names, is_alive, NULL);
	assert_string_equal(name_of(0x7001), "kernel@0x7001");
}

static void names__are_bounded(void **state)
{
	static char name[4000];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	add(0x7001);
	fake.demangled = name;
	for (uint64_t i = 0; i < 5000; i++) {
		fake.row[0].id.generation = (uint32_t)i;
		set_text(0x7001, 5, "_Z4axpyfPf");
		resolve();
	}
	assert_in_range(kernel_names_unnamed(names), 700, 900);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(name__that_the_driver_was_given_is_demangled_once),
		TEST(name__of_a_row_is_what_its_kernel_was_called_then),
		TEST(name__that_cannot_be_demangled_stays_as_it_is),
		TEST(name__that_is_cut_is_shown_so),
		TEST(names__are_asked_about_as_many_as_fit),
		TEST(handles__of_one_kernel_have_one_name),
		TEST(stub__is_the_innermost_frame_that_is_one),
		TEST(stub__that_is_not_there_is_looked_for_in_a_few_stacks),
		TEST(stub__question_that_fails_leaves_the_handle),
		TEST(launch__without_a_stack_has_its_handle),
		TEST(function__of_the_runtime_is_asked_about_once),
		TEST(calls__without_a_kernel_are_not_looked_at),
		TEST(round__goes_on_in_slices),
		TEST(tidy__forgets_ended_processes_and_a_round_that_was_given_up),
		TEST(names__are_bounded),
	};

	return cmocka_run_group_tests_name("agent/kernel_names", tests, NULL, NULL);
}
