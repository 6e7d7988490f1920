/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side, totals, names, processes and modules are stand-ins. */
#include "gpu/cuda.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/cuda_side.h"
#include "base/intern.h"
#include "discover/process_table.h"
#include "drain/cuda_names.h"
#include "drain/cuda_totals.h"
#include "gpu/gauges.h"
#include "gpu/kernel_names.h"
#include "probes/cuda_functions.h"
#include "probes/probes.h"
#include "profile/profile.h"
#include "windows/modules.h"
#include "windows/source.h"
#include "windows/summary.h"

static struct pp_cuda_what what;
static bool is_known, is_loaded;
static struct process process;
static struct {
	unsigned int collected, handles_tidied, names_tidied, handles_read, resolved;
	uint64_t rows, held;
	bool alive;
	unsigned int noted; /* names of rows */
	int note_error;
} seen;

static const struct cuda_side side = {.totals = 11, .removed = 13, .names = 12};

const struct cuda_side *probes_cuda(struct probes *probes)
{
	(void)probes;
	return is_loaded ? &side : NULL;
}

int cuda_side_set_count(const struct cuda_side *of, uint64_t rows)
{
	assert_ptr_equal(of, &side);
	seen.rows = rows;
	return 0;
}

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table;
	return id.tgid == 70 ? &process : NULL;
}

/* ---- names ---- */

int cuda_names_new(cuda_names_user_of *user_of, void *context, struct cuda_names **ret_names)
{
	process.uid = 1000;
	assert_int_equal(user_of(context, (struct pp_process_id){.tgid = 70}), 1000);
	assert_int_equal(user_of(context, (struct pp_process_id){.tgid = 71}), UINT32_MAX);
	*ret_names = malloc(1);
	return 0;
}

void cuda_names_free(struct cuda_names *names)
{
	free(names);
}

void cuda_names_tidy(struct cuda_names *names,
		     bool (*alive)(void *context, struct pp_process_id id), void *context)
{
	(void)names, (void)alive, (void)context;
	seen.handles_tidied++;
}

int cuda_names_collect(struct cuda_names *names, int map_fd, const struct text_table *texts)
{
	(void)names, (void)texts;
	assert_int_equal(map_fd, 12);
	/* Processes that have ended are forgotten first: their handles are given out again. */
	assert_int_equal(seen.names_tidied, ++seen.handles_read);
	return 0;
}

int cuda_names_note_text(struct cuda_names *names, const struct pp_cuda_handle *handle,
			 uint64_t text, const struct text_table *texts)
{
	(void)names, (void)texts;
	assert_int_equal(handle->id.tgid, 70);
	assert_int_equal(handle->handle, 0x7000);
	assert_int_equal(text, 6);
	seen.noted++;
	return seen.note_error;
}

int kernel_names_new(const struct services *services, const struct cuda_names *handles,
		     const struct cuda_totals *totals, struct kernel_names **ret_names)
{
	assert_non_null(services);
	assert_non_null(handles);
	assert_non_null(totals);
	*ret_names = malloc(1);
	return 0;
}

void kernel_names_free(struct kernel_names *names)
{
	free(names);
}

void kernel_names_tidy(struct kernel_names *names,
		       bool (*alive)(void *context, struct pp_process_id id), void *context)
{
	(void)names, (void)alive, (void)context;
	seen.names_tidied++;
}

int kernel_names_resolve(struct kernel_names *names, const struct counts *counts,
			 const struct slice *slice)
{
	assert_non_null(names);
	(void)counts, (void)slice;
	return (int)seen.resolved++ ? 0 : 1;
}

const char *kernel_names_get(struct kernel_names *names, const struct pp_cuda_what *launched)
{
	assert_non_null(names);
	return launched->ident == 0x7000 ? "axpy" : "kernel@0x5000";
}

uint64_t kernel_names_unnamed(const struct kernel_names *names)
{
	assert_non_null(names);
	return 3;
}

int cuda_totals_new(struct cuda_totals **ret_totals)
{
	*ret_totals = malloc(1);
	return 0;
}

void cuda_totals_free(struct cuda_totals *totals)
{
	free(totals);
}

int cuda_totals_collect(struct cuda_totals *totals, const struct cuda_tables *tables,
			struct counts *counts, uint64_t *ret_rows)
{
	(void)totals, (void)counts;
	assert_int_equal(tables->totals, 11);
	assert_int_equal(tables->removed, 13);
	seen.alive = tables->is_alive(tables->context, (struct pp_process_id){.tgid = 70});
	assert_false(tables->is_alive(tables->context, (struct pp_process_id){.tgid = 71}));
	seen.collected++;
	*ret_rows = 42;
	return 0;
}

void cuda_totals_hold(struct cuda_totals *totals, uint64_t id)
{
	assert_non_null(totals);
	seen.held = id;
}

const struct pp_cuda_what *cuda_totals_what(const struct cuda_totals *totals, uint64_t id)
{
	(void)totals, (void)id;
	return is_known ? &what : NULL;
}

static uint64_t row_name;
int cuda_totals_fresh(const struct cuda_totals *totals, cuda_on_fresh *on_fresh, void *context)
{
	(void)totals;
	return on_fresh(context, &(struct cuda_fresh){.what = what, .name = row_name, .calls = 3});
}

uint32_t modules_get_gpu(struct modules *modules)
{
	(void)modules;
	return 9;
}

/* ---- */

/* For the source. */
static int device = -ENOENT;

int gauges_device_of(const struct gauges *gauges, uint32_t pid)
{
	assert_ptr_equal(gauges, &device);
	assert_int_equal(pid, 70);
	return device;
}

extern const struct source cuda_source;

static void cuda_free(struct cuda *cuda)
{
	if (cuda)
		source_free(&cuda_source, cuda);
}
DEFINE_OWNED(struct cuda, cuda)

static struct cuda *open_cuda(const struct services *services)
{
	void *opened = NULL;

	assert_int_equal(source_new(&cuda_source, services, &opened), 0);
	return opened;
}

static int collect(struct cuda *cuda)
{
	const struct source_window window = {};

	return cuda_source.collect(cuda, &window);
}

static struct cuda *make(void)
{
	static const struct sources sources;
	static const struct services services = {.sources = &sources};
	struct cuda *cuda;

	memset(&seen, 0, sizeof(seen));
	process = (struct process){};
	row_name = 0;
	is_known = is_loaded = true;
	cuda = open_cuda(&services);
	assert_non_null(cuda);
	return cuda;
}

static uint16_t api_of(const char *name)
{
	for (size_t i = 0; i < cuda_function_count(); i++)
		if (!strcmp(cuda_function_get(i)->name, name))
			return (uint16_t)i;
	fail();
	return 0;
}

static void kernel__is_nothing_where_it_is_not_captured(void **state)
{
	(void)state;
	assert_int_equal(cuda_add_kernel(NULL, 1, NULL, NULL, NULL), 0);
}

static void collect__does_nothing_before_a_library_was_found(void **state)
{
	OWNED(cuda) struct cuda *cuda = make();

	(void)state;
	is_loaded = false;
	assert_int_equal(collect(cuda), 0);
	assert_int_equal(seen.collected, 0);
	is_loaded = true;
	assert_int_equal(collect(cuda), 0);
	assert_int_equal(seen.collected, 1);
	assert_int_equal(seen.rows, 42);
	assert_true(seen.alive);
	process.exit_ns = 5;
	assert_int_equal(collect(cuda), 0);
	assert_false(seen.alive);
}

static void call__has_its_names(void **state)
{
	OWNED(cuda) struct cuda *cuda = make();
	struct cuda_call call;

	(void)state;
	what = (struct pp_cuda_what){
		.id = {.tgid = 70}, .ident = 0x7000, .api = api_of("cuLaunchKernel"), .device = 1};
	assert_int_equal(cuda_find(cuda, 1, &call), 0);
	cuda_hold(cuda, 9);
	assert_int_equal(seen.held, 9);
	assert_string_equal(call.api, "cuLaunchKernel");
	assert_string_equal(call.kernel, "axpy");
	assert_string_equal(call.device, "0");
	assert_string_equal(call.direction, "");
	what.ident = PP_CUDA_IDENT_OTHERS;
	assert_int_equal(cuda_find(cuda, 1, &call), 0);
	assert_string_equal(call.kernel, "[other kernels]");
	what = (struct pp_cuda_what){
		.id = {.tgid = 70}, .api = api_of("cuMemcpyHtoD_v2"), .direction = PP_CUDA_HTOD};
	assert_int_equal(cuda_find(cuda, 1, &call), 0);
	assert_string_equal(call.api, "cuMemcpyHtoD");
	assert_string_equal(call.kernel, "");
	assert_string_equal(call.direction, "HtoD");
	assert_string_equal(call.device, "unknown");
	is_known = false;
	assert_int_equal(cuda_find(cuda, 1, &call), -ENOENT);
}

/* A value that is not known is no label. */
static void label__says_what_the_call_does(void **state)
{
	OWNED(cuda) struct cuda *cuda = make();
	OWNED(intern) struct intern *strings = NULL;
	const struct pp_count_key key = {.kind = PP_KIND_CUDA, .detail = 1};
	static const char *const expected[][2] = {
		{"api", "cuMemcpyHtoD"}, {"direction", "HtoD"}, {"device", "0"}};
	struct profile_sample sample = {};

	(void)state;
	assert_int_equal(intern_new(&strings), 0);
	what = (struct pp_cuda_what){.id = {.tgid = 70},
				     .api = api_of("cuMemcpyHtoD_v2"),
				     .direction = PP_CUDA_HTOD,
				     .device = 1};
	assert_int_equal(cuda_source.label(cuda, &key, strings, &sample), 0);
	assert_in_range(sample.label_count, ARRAY_SIZE(expected), ARRAY_SIZE(expected) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_string_equal(sample.label[i].key, expected[i][0]);
		assert_string_equal(intern_get(strings, sample.label[i].string, NULL),
				    expected[i][1]);
	}
	assert_true(cuda_source.labelled_kinds & 1U << PP_KIND_CUDA_SEEN);
	is_known = false;
	sample = (struct profile_sample){};
	assert_int_equal(cuda_source.label(cuda, &key, strings, &sample), 0);
	assert_int_equal(sample.label_count, 0);
}

static void names__are_found_in_slices(void **state)
{
	OWNED(cuda) struct cuda *cuda = make();
	const struct source_window window = {};
	struct summary summary = {};

	(void)state;
	assert_int_equal(cuda_source.add(cuda, &window, NULL), 1);
	assert_int_equal(cuda_source.add(cuda, &window, NULL), 0);
	cuda_source.summarize(cuda, &summary);
	assert_int_equal(summary.loss[PP_LOSS_KERNELS_UNNAMED], 3);
}

static void call__has_its_stream_graph_and_communicator(void **state)
{
	static const struct {
		uint64_t stream;
		const char *label;
	} cases[] = {{0, ""},
		     {1, "default"},
		     {2, "per-thread"},
		     {3, "0x3"},
		     {0x55d0c0ffee00, "0x55d0c0ffee00"}};
	OWNED(cuda) struct cuda *cuda = make();
	struct cuda_call call;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		what = (struct pp_cuda_what){.id = {.tgid = 70},
					     .ident = 0x5000,
					     .stream = cases[i].stream,
					     .api = api_of("cuGraphLaunch")};
		assert_int_equal(cuda_find(cuda, 1, &call), 0);
		assert_string_equal(call.stream, cases[i].label);
		assert_string_equal(call.graph, "graph@0x5000");
	}
	assert_string_equal(call.communicator, "");
	what.api = api_of("cuLaunchKernel");
	assert_int_equal(cuda_find(cuda, 1, &call), 0);
	assert_string_equal(call.graph, "");
	what.api = api_of("ncclAllReduce");
	assert_int_equal(cuda_find(cuda, 1, &call), 0);
	assert_string_equal(call.communicator, "0x5000");
	assert_string_equal(call.kernel, "");
	what.ident = PP_CUDA_IDENT_OTHERS;
	assert_int_equal(cuda_find(cuda, 1, &call), 0);
	assert_string_equal(call.communicator, "");
}

/* The handle may have another one by the time the window ends. */
static void collect__keeps_the_names_of_rows(void **state)
{
	OWNED(cuda) struct cuda *cuda = make();

	(void)state;
	what = (struct pp_cuda_what){
		.id = {.tgid = 70}, .ident = 0x7000, .api = api_of("cuLaunchKernel")};
	assert_int_equal(collect(cuda), 0);
	assert_int_equal(seen.noted, 0);
	row_name = 6;
	assert_int_equal(collect(cuda), 0);
	assert_int_equal(seen.noted, 1);
	seen.note_error = -ENOMEM;
	assert_int_equal(collect(cuda), -ENOMEM);
}

static void device__of_an_older_context_is_asked_for(void **state)
{
	const struct sources sources = {.state = {[PP_SOURCE_GAUGES] = &device}};
	const struct services services = {.sources = &sources};
	OWNED(cuda) struct cuda *cuda = NULL;
	struct cuda_call call;

	(void)state;
	memset(&seen, 0, sizeof(seen));
	row_name = 0;
	is_known = is_loaded = true;
	cuda = open_cuda(&services);
	what = (struct pp_cuda_what){.id = {.tgid = 70}, .api = api_of("cuCtxSynchronize")};
	device = -ENOENT;
	assert_int_equal(collect(cuda), 0);
	assert_int_equal(cuda_find(cuda, 1, &call), 0);
	assert_string_equal(call.device, "unknown");
	/* What comes in the middle of a window counts from the next one on. */
	device = 3;
	assert_int_equal(cuda_find(cuda, 1, &call), 0);
	assert_string_equal(call.device, "unknown");
	assert_int_equal(collect(cuda), 0);
	assert_int_equal(cuda_find(cuda, 1, &call), 0);
	assert_string_equal(call.device, "nvml:3");
	/* What the program's own calls told, in its own numbers, is not asked for. */
	what.device = 1;
	assert_int_equal(cuda_find(cuda, 1, &call), 0);
	assert_string_equal(call.device, "0");
}

static void kernel__is_the_leaf_of_a_launch(void **state)
{
	OWNED(cuda) struct cuda *cuda = make();
	struct frame frame[200] = {{.name = 3}, {.name = 4}};
	struct profile_sample sample = {.frame = frame, .frame_count = 2};
	struct intern *strings;

	(void)state;
	assert_int_equal(intern_new(&strings), 0);
	what = (struct pp_cuda_what){.api = api_of("cuGraphLaunch"), .ident = 0x5000};
	assert_int_equal(cuda_add_kernel(cuda, 1, strings, NULL, &sample), 0);
	assert_int_equal(sample.frame_count, 2);
	what.api = api_of("cudaLaunchKernel");
	assert_int_equal(cuda_add_kernel(cuda, 1, strings, NULL, &sample), 0);
	assert_int_equal(sample.frame_count, 3);
	assert_string_equal(intern_get(strings, sample.frame[0].name, NULL), "kernel@0x5000");
	assert_int_equal(sample.frame[0].module, 9);
	assert_int_equal(sample.frame[0].kind, FRAME_NATIVE);
	assert_int_equal(sample.frame[1].name, 3);
	assert_int_equal(sample.frame[2].name, 4);
	/* Deeper ones find room. */
	sample = (struct profile_sample){.frame = frame, .frame_count = 200};
	assert_int_equal(cuda_add_kernel(cuda, 1, strings, NULL, &sample), 0);
	assert_int_equal(sample.frame_count, 201);
	assert_int_equal(sample.frame[2].name, 4);
	intern_free(strings);
}

static int on_fresh(void *context, const struct cuda_fresh *one)
{
	*(uint64_t *)context += one->calls;
	return -ENOSPC;
}

static void fresh__passes_errors_on(void **state)
{
	OWNED(cuda) struct cuda *cuda = make();
	uint64_t calls = 0;

	(void)state;
	assert_int_equal(cuda_fresh(cuda, on_fresh, &calls), -ENOSPC);
	assert_int_equal(calls, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel__is_nothing_where_it_is_not_captured),
		cmocka_unit_test(collect__does_nothing_before_a_library_was_found),
		cmocka_unit_test(call__has_its_names),
		cmocka_unit_test(label__says_what_the_call_does),
		cmocka_unit_test(names__are_found_in_slices),
		cmocka_unit_test(call__has_its_stream_graph_and_communicator),
		cmocka_unit_test(collect__keeps_the_names_of_rows),
		cmocka_unit_test(device__of_an_older_context_is_asked_for),
		cmocka_unit_test(kernel__is_the_leaf_of_a_launch),
		cmocka_unit_test(fresh__passes_errors_on),
	};

	return cmocka_run_group_tests_name("agent/cuda", tests, NULL, NULL);
}
