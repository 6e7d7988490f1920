/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_plan.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../files/here.h"
#include "base/cleanup.h"
#include "files/opener.h"
#include "options/options.h"
#include "probes/cuda_functions.h"

#define SPECS_MAX 3U

/* What a run has: `events`, and --probe with each text up to NULL. */
struct run {
	struct probe_spec spec[SPECS_MAX];
	struct probe_plan plan;
};

static void run_release(struct run *run)
{
	probe_plan_release(&run->plan);
	for (size_t i = 0; i < SPECS_MAX; i++)
		probe_spec_release(&run->spec[i]);
}

static void plan_for(struct run *run, uint32_t events, const char *const *text)
{
	struct options options = {.events = events, .probe = run->spec};
	char why[PROBE_SPEC_WHY_BYTES];

	for (; text && text[options.probe_count]; options.probe_count++)
		assert_int_equal(probe_spec_parse(text[options.probe_count],
						  &run->spec[options.probe_count], why),
				 0);
	assert_int_equal(probe_plan_make(&options, true, &run->plan), 0);
}

static void make__without_probes_is_empty(void **state)
{
	CLEANUP(run_release) struct run run = {};

	(void)state;
	plan_for(&run, PP_CAPTURE_CPU, NULL);
	assert_int_equal(run.plan.count, 0);
}

static void make__gc_and_import_have_a_beginning_and_an_end(void **state)
{
	CLEANUP(run_release) struct run run = {};

	(void)state;
	plan_for(&run, PP_CAPTURE_GC | PP_CAPTURE_IMPORT, NULL);
	assert_int_equal(run.plan.count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(run.plan.row[i].place, PROBE_IN_PYTHON);
		assert_int_equal(run.plan.row[i].leg_count, 2);
		assert_true(probe_row_is_of_python(&run.plan.row[i]));
		assert_true(probe_row_is_in(&run.plan.row[i], "/any", true));
		assert_false(probe_row_is_in(&run.plan.row[i], "/any", false));
	}
	assert_string_equal(run.plan.name[0], "gc");
	assert_string_equal(run.plan.row[0].leg[0].wanted.name, "gc__start");
	assert_int_equal(run.plan.row[0].leg[0].does, PP_SITE_GC_BEGIN);
	assert_string_equal(run.plan.row[1].leg[1].wanted.name, "import__find__load__done");
	assert_int_equal(run.plan.row[1].leg[1].does, PP_SITE_IMPORT_END);
}

static void make__function_with_return_begins_and_ends_a_call(void **state)
{
	CLEANUP(run_release) struct run run = {};
	const struct probe_row *row;

	(void)state;
	plan_for(&run, 0, (const char *const[]){"uprobe:/no/such:f+ret", NULL});
	row = &run.plan.row[0];
	assert_int_equal(row->leg_count, 2);
	assert_int_equal(row->leg[0].does, PP_SITE_CALL_BEGIN);
	assert_false(row->leg[0].is_return);
	assert_int_equal(row->leg[1].does, PP_SITE_CALL_END);
	assert_true(row->leg[1].is_return);
	assert_string_equal(row->real_path, "");
}

static void find_binaries__links_lead_to_the_file(void **state)
{
	CLEANUP(run_release) struct run run = {};
	OWNED(opener) struct opener *opener = NULL;
	char path[4096] = "";

	(void)state;
	assert_int_equal(opener_new("", &opener), 0);
	plan_for(&run, 0,
		 (const char *const[]){"uprobe:/proc/self/exe:f", "uprobe:/no/such:f",
				       "uprobe:/dev/null:f", NULL});
	probe_plan_find_binaries(&run.plan, opener);
	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	assert_string_equal(run.plan.row[0].real_path, path);
	assert_string_equal(run.plan.row[1].real_path, "");
	/* It is there, and why it cannot be read is told later. */
	assert_string_equal(run.plan.row[2].real_path, "/dev/null");
}

/* Every function of the table is in one row of its library, at the place that tells which it
 * is. */
static void make__cuda_has_every_function_once(void **state)
{
	CLEANUP(run_release) struct run run = {};
	const struct probe_row *last;
	size_t functions = 0;

	(void)state;
	plan_for(&run, PP_CAPTURE_CUDA, (const char *const[]){NULL});
	assert_int_equal(run.plan.cuda_row, 0);
	for (uint32_t i = 0; i < run.plan.cuda_launch_row; i++) {
		const struct probe_row *row = &run.plan.row[i];
		char names[PROBE_NAMES_MAX_BYTES], *name, *rest = names;
		uint8_t alternative = 0;

		assert_true(probe_row_is_of_cuda(row));
		assert_int_equal(row->cuda_first, functions);
		assert_int_equal(row->leg[0].does, PP_SITE_CUDA);
		assert_int_equal(row->leg[0].wanted.takes_twins, 1);
		strcpy(names, row->leg[0].wanted.name);
		while ((name = strsep(&rest, " "))) {
			const struct cuda_function *function =
				probe_plan_cuda(&run.plan, i, alternative++);

			assert_string_equal(function->name, name);
			assert_int_equal(row->place - PROBE_IN_DRIVER, function->library);
			assert_int_equal(row->leg_count, 1U + function->site.has_end);
			functions++;
		}
	}
	assert_int_equal(functions, cuda_function_count());
	assert_int_equal(run.plan.count, run.plan.cuda_launch_row + PP_CUDA_LAUNCHES);
	for (uint32_t i = run.plan.cuda_launch_row; i < run.plan.count; i++)
		assert_int_equal(run.plan.row[i].leg_count, 0);
	assert_true(probe_row_is_in(&run.plan.row[0], "/usr/lib/libcuda.so.1", false));
	assert_false(probe_row_is_in(&run.plan.row[0], "/usr/lib/libcudart.so.12", true));
	last = &run.plan.row[run.plan.cuda_launch_row - 1];
	assert_true(probe_row_is_in(last, "libnccl.so.2", false));
	assert_false(probe_row_is_in(last, "libcudart.so.12", false));
	assert_false(probe_row_is_in(last, NULL, false));
	assert_true(probe_row_is_in(last - 1, "libcudart.so.12", false));
}

/* Where each place of code has a link of its own: of each library those that are first, and no
 * twins. */
static void make__cuda_has_few_functions_where_few_can_be_probed(void **state)
{
	const struct options options = {.events = PP_CAPTURE_CUDA};
	CLEANUP(run_release) struct run run = {};
	size_t functions = 0;

	(void)state;
	assert_int_equal(probe_plan_make(&options, false, &run.plan), 0);
	for (uint32_t i = 0; i < run.plan.count; i++) {
		const char *name = run.plan.row[i].leg[0].wanted.name;

		assert_int_equal(run.plan.row[i].leg[0].wanted.takes_twins, 0);
		for (uint8_t at = 0; *name; at++) {
			const struct cuda_function *function = probe_plan_cuda(&run.plan, i, at);

			assert_true(function->is_first);
			assert_memory_equal(function->name, name, strlen(function->name));
			name += strcspn(name, " ");
			name += strspn(name, " ");
			functions++;
		}
	}
	assert_int_equal(functions, 16);
}

static void row_needs_line__only_functions_of_python(void **state)
{
	CLEANUP(run_release) struct run run = {};

	(void)state;
	plan_for(&run, 0,
		 (const char *const[]){"usdt:/p:python:function__entry",
				       "usdt:/p:ruby:function__entry", "usdt:/p:python:gc__start",
				       NULL});
	assert_true(probe_row_needs_line(&run.plan.row[0]));
	assert_false(probe_row_needs_line(&run.plan.row[1]));
	assert_false(probe_row_needs_line(&run.plan.row[2]));
}

/* Returns whether a probe of a binary is looked for in a file. */
static bool is_in(const char *binary, const char *path)
{
	CLEANUP(run_release) struct run run = {};
	OWNED(opener) struct opener *opener = NULL;
	char text[256];

	snprintf(text, sizeof(text), "uprobe:%s:f", binary);
	plan_for(&run, 0, (const char *const[]){text, NULL});
	assert_int_equal(opener_new("", &opener), 0);
	probe_plan_find_binaries(&run.plan, opener);
	return probe_row_is_in(&run.plan.row[0], path, false);
}

static void row_is_in__path_is_that_of_the_process_or_its_target_here(void **state)
{
	char target[4096];

	(void)state;
	assert_true(is_in("/no/such/a", "/no/such/a"));
	assert_false(is_in("/no/such/a", "/other/no/such/a"));
	assert_false(is_in("/no/such/a", NULL));
	assert_true(is_in("/proc/self/exe", realpath("/proc/self/exe", target)));
}

static void row_is_in__name_is_the_last_part(void **state)
{
	(void)state;
	assert_true(is_in("python3.11", "/usr/bin/python3.11"));
	assert_false(is_in("python3.1", "/usr/bin/python3.11"));
	assert_false(is_in("python3", "/usr/bin/python3.11"));
	assert_false(is_in("bin/python3.11", "/usr/bin/python3.11"));
}

static void row_is_in__library_goes_by_its_soname(void **state)
{
	(void)state;
	assert_true(is_in("libsqlite3.so.0", "/lib/libsqlite3.so.0.8.6"));
	assert_true(is_in("libsqlite3.so", "/lib/libsqlite3.so.0.8.6"));
	assert_true(is_in("libsqlite3.so.0.8.6", "/lib/libsqlite3.so.0.8.6"));
	assert_false(is_in("libsqlite3.so.0.8", "/lib/libsqlite3.so.0.80"));
	assert_false(is_in("libsqlite3", "/lib/libsqlite3.so.0.8.6"));
	assert_false(is_in("sqlite3.so.0", "/lib/libsqlite3.so.0.8.6"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(make__without_probes_is_empty),
		cmocka_unit_test(make__gc_and_import_have_a_beginning_and_an_end),
		cmocka_unit_test(make__function_with_return_begins_and_ends_a_call),
		cmocka_unit_test(find_binaries__links_lead_to_the_file),
		cmocka_unit_test(make__cuda_has_every_function_once),
		cmocka_unit_test(make__cuda_has_few_functions_where_few_can_be_probed),
		cmocka_unit_test(row_needs_line__only_functions_of_python),
		cmocka_unit_test(row_is_in__path_is_that_of_the_process_or_its_target_here),
		cmocka_unit_test(row_is_in__name_is_the_last_part),
		cmocka_unit_test(row_is_in__library_goes_by_its_soname),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
