/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/cuda_names.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "drain/table.h"
#include "drain/text_table.h"

static struct cuda_names *names;
static struct text_table *texts;

/* Instead of drain/table.c: the kernel's table is an array here. */
static struct {
	struct pp_cuda_handle handle[4];
	struct pp_cuda_name name[4];
	size_t count;
	uint32_t dead; /* tgid */
	int err;
} kernel;

int table_read(int map_fd, size_t key_bytes, size_t value_bytes, table_on_entry *on_entry,
	       void *context)
{
	int err = kernel.err;

	assert_int_equal(map_fd, 6);
	assert_int_equal(key_bytes, sizeof(struct pp_cuda_handle));
	assert_int_equal(value_bytes, sizeof(struct pp_cuda_name));
	for (size_t i = 0; i < kernel.count && !err; i++)
		err = on_entry(context, &kernel.handle[i], &kernel.name[i]);
	return err;
}

static bool is_alive(void *context, struct pp_process_id id)
{
	(void)context;
	return id.tgid != kernel.dead;
}

/* Processes from 1000 on are of that user. */
static uint32_t user_of(void *context, struct pp_process_id id)
{
	(void)context;
	return id.tgid < 1000 ? 0 : id.tgid;
}

static int setup(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	return cuda_names_new(user_of, NULL, &names) || text_table_new(&texts);
}

static int teardown(void **state)
{
	(void)state;
	cuda_names_free(names);
	text_table_free(texts);
	return 0;
}

static struct pp_cuda_handle handle_of(uint32_t tgid, uint64_t handle)
{
	return (struct pp_cuda_handle){.id = {.tgid = tgid, .generation = 2}, .handle = handle};
}

static const char *name_of(uint32_t tgid, uint64_t handle)
{
	const struct pp_cuda_handle wanted = handle_of(tgid, handle);
	uint64_t text = 0;
	const char *name = cuda_names_find(names, &wanted, 0, &text);

	assert_int_equal(!name, !text);
	return name;
}

static void send(uint64_t id, const char *text)
{
	assert_int_equal(text_table_add(texts, id, 0, text, strlen(text)), 0);
}

static void collect(void)
{
	assert_int_equal(cuda_names_collect(names, 6, texts), 0);
}

static void handle__has_the_name_that_was_sent(void **state)
{
	(void)state;
	kernel.handle[0] = handle_of(70, 0x7000);
	kernel.name[0].text = 5;
	kernel.count = 1;
	collect(); /* the text has not come yet */
	assert_null(name_of(70, 0x7000));
	send(5, "axpy");
	collect();
	assert_string_equal(name_of(70, 0x7000), "axpy");
	assert_null(name_of(71, 0x7000));
	assert_null(name_of(70, 0x7010));
}

static void handle__keeps_its_name_when_the_text_is_forgotten(void **state)
{
	(void)state;
	kernel.handle[0] = handle_of(70, 0x7000);
	kernel.name[0].text = 5;
	kernel.count = 1;
	send(5, "axpy");
	collect();
	text_table_end_epoch(texts);
	text_table_end_epoch(texts);
	collect();
	assert_string_equal(name_of(70, 0x7000), "axpy");
	kernel.count = 0;
	collect();
	assert_string_equal(name_of(70, 0x7000), "axpy");
}

static void handle__that_is_used_again_has_its_last_name(void **state)
{
	(void)state;
	kernel.handle[0] = handle_of(70, 0x7000);
	kernel.name[0].text = 5;
	kernel.count = 1;
	send(5, "first");
	send(6, "second");
	collect();
	kernel.name[0].text = 6;
	collect();
	assert_string_equal(name_of(70, 0x7000), "second");
}

/* A module was unloaded before the row, or before the name, was there. */
static void name__of_another_life_is_not_the_handles(void **state)
{
	const struct pp_cuda_handle handle = handle_of(70, 0x7000);
	const struct pp_cuda_handle function = handle_of(70, 0x7100);
	uint64_t text;

	(void)state;
	kernel.handle[0] = handle;
	kernel.name[0] = (struct pp_cuda_name){.text = 5, .life = 3};
	kernel.handle[1] = function;
	kernel.name[1] = (struct pp_cuda_name){.of = 0x7000, .life = 3};
	kernel.count = 2;
	send(5, "axpy");
	collect();
	assert_null(cuda_names_find(names, &handle, 2, &text));
	assert_null(cuda_names_find(names, &handle, 4, &text));
	assert_string_equal(cuda_names_find(names, &handle, 3, &text), "axpy");
	assert_string_equal(cuda_names_find(names, &function, 3, &text), "axpy");
	assert_int_equal(cuda_names_origin(names, &function, 3).handle, 0x7000);
	assert_int_equal(cuda_names_origin(names, &function, 4).handle, 0x7100);
	/* It was told once more. */
	kernel.name[0].life = 4;
	collect();
	assert_string_equal(cuda_names_find(names, &handle, 4, &text), "axpy");
	assert_null(cuda_names_find(names, &handle, 3, &text));
}

static void text__stays_when_the_handle_has_another_name(void **state)
{
	const struct pp_cuda_handle handle = handle_of(70, 0x7000);
	const struct pp_cuda_handle function = handle_of(70, 0x7100);

	(void)state;
	assert_int_equal(cuda_names_note_text(names, &handle, 5, texts), 0);
	assert_null(cuda_names_find_text(names, handle.id, 5));
	send(5, "first");
	assert_int_equal(cuda_names_note_text(names, &handle, 5, texts), 0);
	kernel.handle[0] = handle;
	kernel.name[0].text = 6;
	kernel.handle[1] = function;
	kernel.name[1].of = 0x7000;
	kernel.count = 2;
	send(6, "second");
	collect();
	assert_string_equal(cuda_names_find_text(names, handle.id, 5), "first");
	assert_null(cuda_names_find_text(names, handle_of(71, 0).id, 5));
	/* One that was sent in an earlier epoch is still the handle's. */
	text_table_end_epoch(texts);
	text_table_end_epoch(texts);
	assert_int_equal(cuda_names_note_text(names, &function, 6, texts), 0);
	assert_string_equal(cuda_names_find_text(names, handle.id, 6), "second");
	assert_int_equal(cuda_names_note_text(names, &handle, 7, texts), 0);
	assert_null(cuda_names_find_text(names, handle.id, 7));
	assert_string_equal(cuda_names_find_text(names, handle.id, 5), "first");
}

/* CUfunction and CUkernel of one kernel. */
static void handle__that_stands_for_another_is_called_as_that(void **state)
{
	const struct pp_cuda_handle function = handle_of(70, 0x7100),
				    kernel_handle = handle_of(70, 0x7000);

	(void)state;
	kernel.handle[0] = function;
	kernel.name[0].of = 0x7000;
	kernel.count = 1;
	collect();
	assert_null(name_of(70, 0x7100));
	assert_int_equal(cuda_names_origin(names, &function, 0).handle, 0x7000);
	assert_int_equal(cuda_names_origin(names, &kernel_handle, 0).handle, 0x7000);
	kernel.handle[1] = kernel_handle;
	kernel.name[1].text = 5;
	kernel.count = 2;
	send(5, "axpy");
	collect();
	assert_string_equal(name_of(70, 0x7100), "axpy");
	/* One that is given out again has a name of its own. */
	kernel.name[0] = (struct pp_cuda_name){.text = 6};
	send(6, "gemm");
	collect();
	assert_string_equal(name_of(70, 0x7100), "gemm");
	assert_int_equal(cuda_names_origin(names, &function, 0).handle, 0x7100);
	/* Some stand for each other, as no driver's do. */
	kernel.name[0] = (struct pp_cuda_name){.of = 0x7000};
	kernel.name[1] = (struct pp_cuda_name){.of = 0x7100};
	collect();
	assert_null(name_of(70, 0x7000));
}

static void add_text(uint32_t tgid, uint64_t handle, uint64_t text)
{
	kernel.handle[0] = handle_of(tgid, handle);
	kernel.name[0] = (struct pp_cuda_name){.text = text};
	kernel.count = 1;
	collect();
}

static void tidy__forgets_ended_processes(void **state)
{
	(void)state;
	send(5, "one");
	send(6, "other");
	add_text(70, 1, 5);
	add_text(80, 1, 6);
	cuda_names_tidy(names, is_alive, NULL);
	assert_string_equal(name_of(70, 1), "one");
	kernel.dead = 70;
	cuda_names_tidy(names, is_alive, NULL);
	assert_null(name_of(70, 1));
	assert_string_equal(name_of(80, 1), "other");
}

static void names__are_bounded(void **state)
{
	uint64_t handle = 0;

	(void)state;
	send(5, "n");
	do
		add_text(70, ++handle, 5);
	while (name_of(70, handle) && handle < 1000000);
	assert_in_range(handle, 16 * PP_CUDA_NAMES_MAX, 22 * PP_CUDA_NAMES_MAX);
	assert_string_equal(name_of(70, handle - 1), "n");
	assert_null(name_of(70, handle));
}

static void names__are_bounded_in_bytes(void **state)
{
	static char longest[4096];
	uint64_t handle = 0;

	(void)state;
	memset(longest, 'n', sizeof(longest) - 1);
	send(5, longest);
	do
		add_text(70, ++handle, 5);
	while (name_of(70, handle) && handle < 1000000);
	assert_in_range(handle, 5000, 5120);
	/* What has ended makes room. */
	kernel.dead = 70;
	cuda_names_tidy(names, is_alive, NULL);
	add_text(80, 1, 5);
	assert_string_equal(name_of(80, 1), longest);
}

static void names__of_one_user_leave_room_to_others(void **state)
{
	static char longest[4096];
	uint64_t handle = 0, other = 0;

	(void)state;
	memset(longest, 'n', sizeof(longest) - 1);
	send(5, longest);
	do
		add_text(1000, ++handle, 5);
	while (name_of(1000, handle) && handle < 1000000);
	do
		add_text(1001, ++other, 5);
	while (name_of(1001, other) && other < 1000000);
	assert_in_range(handle, 2500, 2600);
	assert_in_range(other, handle / 2 - 10, handle / 2 + 10);
	add_text(70, 1, 5);
	assert_string_equal(name_of(70, 1), longest);
}

static void collect__passes_errors_on(void **state)
{
	(void)state;
	kernel.err = -EPERM;
	assert_int_equal(cuda_names_collect(names, 6, texts), -EPERM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(handle__has_the_name_that_was_sent),
		TEST(handle__keeps_its_name_when_the_text_is_forgotten),
		TEST(handle__that_is_used_again_has_its_last_name),
		TEST(tidy__forgets_ended_processes),
		TEST(handle__that_stands_for_another_is_called_as_that),
		TEST(name__of_another_life_is_not_the_handles),
		TEST(text__stays_when_the_handle_has_another_name),
		TEST(names__are_bounded),
		TEST(names__are_bounded_in_bytes),
		TEST(names__of_one_user_leave_room_to_others),
		TEST(collect__passes_errors_on),
	};

	return cmocka_run_group_tests_name("drain/cuda_names", tests, NULL, NULL);
}
