/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_plan.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "files/opener.h"
#include "files/opening.h"
#include "options/options.h"
#include "probes/cuda_functions.h"

#define CUDA_ROWS_MAX 20U
_Static_assert(OPTIONS_MAX_PROBES + 8 + CUDA_ROWS_MAX < PP_PROBES_MAX, "each probe has a number");

/* Python's own probes: X(what captures them, label, name of the beginning, what it does, name of
 * the end, what that does).  Include/pydtrace.d of CPython 3.6 to 3.15. */
#define PYTHON_PROBES(X)                                                                           \
	X(GC, "gc", "gc__start", GC_BEGIN, "gc__done", GC_END)                                     \
	X(IMPORT, "import", "import__find__load__start", IMPORT_BEGIN, "import__find__load__done", \
	  IMPORT_END)

static const struct {
	uint32_t capture;
	const char *label, *begin, *end;
	uint32_t does_begin, does_end;
} python_probes[] = {
#define PYTHON_PROBE(capture, label, begin, does_begin, end, does_end)                             \
	{PP_CAPTURE_##capture, label, begin, end, PP_SITE_##does_begin, PP_SITE_##does_end},
	PYTHON_PROBES(PYTHON_PROBE)};

/* Functions of allocators: X(row, name, the two parameters whose product is the size, that with a
 * block which is given back, that which says where the new block's address is stored, enum
 * pp_mapping).  malloc(3), posix_memalign(3), mmap(2), mremap(2). */
#define ALLOC_FUNCTIONS(X)                                                                         \
	X(COMMON, "malloc", 1, 0, 0, 0, 0)                                                         \
	X(COMMON, "calloc", 1, 2, 0, 0, 0)                                                         \
	X(COMMON, "realloc", 2, 0, 1, 0, 0)                                                        \
	X(FREE, "free", 0, 0, 1, 0, 0)                                                             \
	X(RARE, "reallocarray", 2, 3, 1, 0, 0)                                                     \
	X(RARE, "aligned_alloc", 2, 0, 0, 0, 0)                                                    \
	X(RARE, "posix_memalign", 3, 0, 0, 1, 0)                                                   \
	X(RARE, "memalign", 2, 0, 0, 0, 0)                                                         \
	X(RARE, "valloc", 1, 0, 0, 0, 0)                                                           \
	X(RARE, "mmap", 2, 0, 0, 0, 1)                                                             \
	X(RARE, "mremap", 3, 0, 1, 0, 2)                                                           \
	X(RARE, "munmap", 0, 0, 1, 0, 2)

static const struct alloc_function {
	enum probe_alloc_row row;
	const char *name;
	struct pp_alloc_site site;
} alloc_functions[] = {
#define ALLOC_FUNCTION(row, name, size, count, frees, result, mapping)                             \
	{PROBE_ALLOC_##row, name, {{size, count}, frees, result, 0, mapping, {}}},
	ALLOC_FUNCTIONS(ALLOC_FUNCTION)};

static struct probe_leg usdt_leg(const char *provider, const char *name, uint32_t does)
{
	struct probe_leg leg = {.wanted.kind = PROBE_WANTED_USDT, .does = does};

	snprintf(leg.wanted.provider, sizeof(leg.wanted.provider), "%s", provider);
	snprintf(leg.wanted.name, sizeof(leg.wanted.name), "%s", name);
	return leg;
}

static struct probe_leg function_leg(const struct probe_spec *spec, uint32_t does, bool is_return)
{
	struct probe_leg leg = {.wanted = {.kind = PROBE_WANTED_FUNCTION, .wants_nearest = 1},
				.does = does,
				.is_return = is_return};

	snprintf(leg.wanted.name, sizeof(leg.wanted.name), "%s", spec->name);
	return leg;
}

static void add_python(struct probe_plan *plan, uint32_t events)
{
	for (size_t i = 0; i < ARRAY_SIZE(python_probes); i++) {
		struct probe_row *row = &plan->row[plan->count];

		if (!(events & python_probes[i].capture))
			continue;
		row->name = python_probes[i].label;
		row->place = PROBE_IN_PYTHON;
		row->leg[0] =
			usdt_leg("python", python_probes[i].begin, python_probes[i].does_begin);
		row->leg[1] = usdt_leg("python", python_probes[i].end, python_probes[i].does_end);
		row->leg_count = 2;
		plan->count++;
	}
}

static const struct alloc_function *alloc_find(enum probe_alloc_row row, size_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(alloc_functions); i++)
		if (alloc_functions[i].row == row && !number--)
			return &alloc_functions[i];
	return NULL;
}

static void add_alloc_row(struct probe_plan *plan, enum probe_alloc_row number, const char *label)
{
	struct probe_row *row = &plan->row[plan->count++];
	struct probe_leg leg = {.wanted.kind = PROBE_WANTED_ANY_OF,
				.does = number == PROBE_ALLOC_FREE ? PP_SITE_FREE
								   : PP_SITE_ALLOC_BEGIN};
	const struct alloc_function *function;
	size_t used = 0;

	for (size_t i = 0; (function = alloc_find(number, i)); i++) {
		char *name = leg.wanted.name + used;
		const size_t room = sizeof(leg.wanted.name) - used;

		used += (size_t)snprintf(name, room, "%s%s", i ? " " : "", function->name);
		assert(used < sizeof(leg.wanted.name));
	}
	leg.wanted.skips_null = number == PROBE_ALLOC_FREE;
	row->name = label;
	row->place = PROBE_IN_ANY;
	row->leg[0] = leg;
	row->leg_count = 1;
	if (number == PROBE_ALLOC_FREE)
		return;
	leg.does = PP_SITE_ALLOC_END;
	leg.is_return = true;
	row->leg[row->leg_count++] = leg;
}

static void add_alloc(struct probe_plan *plan, uint32_t events)
{
	plan->alloc_row = PP_PROBES_MAX;
	if (!(events & PP_CAPTURE_ALLOC))
		return;
	plan->alloc_row = (uint32_t)plan->count;
	add_alloc_row(plan, PROBE_ALLOC_COMMON, "malloc");
	add_alloc_row(plan, PROBE_ALLOC_FREE, "free");
	add_alloc_row(plan, PROBE_ALLOC_RARE, "mmap");
}

const struct pp_alloc_site *probe_plan_alloc(const struct probe_plan *plan, uint32_t row,
					     uint8_t alternative)
{
	const struct alloc_function *function;

	if (row < plan->alloc_row || row >= plan->alloc_row + PROBE_ALLOC_ROWS)
		return NULL;
	function = alloc_find((enum probe_alloc_row)(row - plan->alloc_row), alternative);
	return function ? &function->site : NULL;
}

/* ---- CUDA ---- */

/* Adds a function's name to a leg's.  Returns false where it has no room. */
static bool add_name(struct probe_leg *leg, const char *name)
{
	const size_t used = strlen(leg->wanted.name);

	if (used + 1 + strlen(name) >= sizeof(leg->wanted.name))
		return false;
	snprintf(leg->wanted.name + used, sizeof(leg->wanted.name) - used, "%s%s", used ? " " : "",
		 name);
	return true;
}

static bool are_alike(const struct cuda_function *a, const struct cuda_function *b)
{
	return a->library == b->library && a->site.has_end == b->site.has_end &&
	       a->is_first == b->is_first;
}

/* Steps over functions that are not probed. */
static size_t skip_others(size_t at)
{
	const struct cuda_function *function;

	while ((function = cuda_function_get(at)) && !function->is_first)
		at++;
	return at;
}

/* Makes a row of functions from `first` on.  Returns the first one that is not in it. */
static size_t add_cuda_row(struct probe_plan *plan, size_t first, bool takes_twins)
{
	const struct cuda_function *function = cuda_function_get(first), *next = function;
	struct probe_row *row = &plan->row[plan->count++];
	struct probe_leg leg = {.wanted.kind = PROBE_WANTED_ANY_OF,
				.wanted.takes_twins = takes_twins,
				.does = PP_SITE_CUDA};
	size_t at = first;

	while (next && are_alike(function, next) && add_name(&leg, next->name))
		next = cuda_function_get(++at);
	row->name = "cuda";
	row->place = PROBE_IN_DRIVER + (enum probe_place)function->library;
	row->cuda_first = first;
	row->leg[0] = leg;
	row->leg_count = 1;
	if (!function->site.has_end)
		return at;
	leg.is_return = true;
	row->leg[row->leg_count++] = leg;
	return at;
}

static void add_cuda(struct probe_plan *plan, uint32_t events, bool takes_all)
{
	static const char *const launches[PP_CUDA_LAUNCHES] = {[PP_CUDA_HIT_LAUNCH] = "cuda_launch",
							       [PP_CUDA_HIT_LAUNCH_DEAR] =
								       "cuda_launch_stepped"};
	const size_t count = cuda_function_count();

	plan->cuda_row = plan->cuda_launch_row = PP_PROBES_MAX;
	if (!(events & PP_CAPTURE_CUDA))
		return;
	plan->cuda_row = (uint32_t)plan->count;
	for (size_t at = takes_all ? 0 : skip_others(0); at < count;
	     at = takes_all ? at : skip_others(at))
		at = add_cuda_row(plan, at, takes_all);
	plan->cuda_launch_row = (uint32_t)plan->count;
	for (size_t i = 0; i < ARRAY_SIZE(launches); i++)
		plan->row[plan->count++] =
			(struct probe_row){.name = launches[i], .place = PROBE_IN_DRIVER};
	assert(plan->count - plan->cuda_row <= CUDA_ROWS_MAX);
}

bool probe_row_is_of_cuda(const struct probe_row *row)
{
	return row->place >= PROBE_IN_DRIVER;
}

const struct cuda_function *probe_plan_cuda(const struct probe_plan *plan, uint32_t row,
					    uint8_t alternative)
{
	if (!probe_row_is_of_cuda(&plan->row[row]))
		return NULL;
	return cuda_function_get(plan->row[row].cuda_first + alternative);
}

static void add_spec(struct probe_plan *plan, const struct probe_spec *spec)
{
	struct probe_row *row = &plan->row[plan->count++];

	row->name = spec->text;
	row->spec = spec;
	row->place = spec->kind == PROBE_SPEC_TRACEPOINT ? PROBE_IN_KERNEL : PROBE_IN_BINARY;
	row->leg_count = 1;
	if (row->place == PROBE_IN_KERNEL) {
		row->leg[0].does = PP_SITE_COUNT;
		return;
	}
	if (spec->kind == PROBE_SPEC_USDT) {
		row->leg[0] = usdt_leg(spec->group, spec->name, PP_SITE_COUNT);
		row->leg[0].wanted.wants_nearest = 1;
	} else if (spec->is_return) {
		row->leg[0] = function_leg(spec, PP_SITE_CALL_BEGIN, false);
		row->leg[1] = function_leg(spec, PP_SITE_CALL_END, true);
		row->leg_count = 2;
	} else {
		row->leg[0] = function_leg(spec, PP_SITE_COUNT, false);
	}
}

void probe_plan_find_binaries(struct probe_plan *plan, struct opener *opener)
{
	for (uint32_t i = 0; i < plan->count; i++) {
		struct probe_row *row = &plan->row[i];
		struct opened_file found;
		struct opener_file file;
		int err;

		if (row->place != PROBE_IN_BINARY || !opener_await(opener))
			continue;
		err = opener_open_path(opener, row->spec->binary, &found, &file);
		/* One that is there and cannot be read is told of when it is looked into. */
		if (err != -ENOENT)
			snprintf(row->real_path, sizeof(row->real_path), "%s",
				 err ? row->spec->binary : found.path);
		if (!err)
			opener_close(opener, &file);
	}
}

int probe_plan_make(const struct options *options, bool takes_all, struct probe_plan *ret_plan)
{
	const size_t room =
		ARRAY_SIZE(python_probes) + PROBE_ALLOC_ROWS + CUDA_ROWS_MAX + options->probe_count;
	struct probe_plan plan = {.row = calloc(room, sizeof(*plan.row)),
				  .name = calloc(room, sizeof(*plan.name))};

	if (!plan.row || !plan.name) {
		probe_plan_release(&plan);
		return -ENOMEM;
	}
	add_python(&plan, options->events);
	add_alloc(&plan, options->events);
	add_cuda(&plan, options->events, takes_all);
	for (size_t i = 0; i < options->probe_count; i++)
		add_spec(&plan, &options->probe[i]);
	for (size_t i = 0; i < plan.count; i++)
		plan.name[i] = plan.row[i].name;
	*ret_plan = plan;
	return 0;
}

void probe_plan_release(struct probe_plan *plan)
{
	free(plan->row);
	free(plan->name);
	*plan = (struct probe_plan){};
}

bool probe_row_is_of_python(const struct probe_row *row)
{
	return row->place != PROBE_IN_KERNEL && !strcmp(row->leg[0].wanted.provider, "python");
}

bool probe_row_needs_line(const struct probe_row *row)
{
	for (size_t i = 0; i < row->leg_count; i++)
		if (!strcmp(row->leg[i].wanted.provider, "python") &&
		    !strncmp(row->leg[i].wanted.name, "function__", strlen("function__")))
			return true;
	return false;
}

/* A name without a slash is that of the file, or that of a library without its last numbers, by
 * which programs know it: the file of libsqlite3.so.0 is libsqlite3.so.0.8.6. */
static bool is_name_of(const char *name, const char *file)
{
	const size_t size = strlen(name);

	if (strncmp(file, name, size) != 0)
		return false;
	return !file[size] || (file[size] == '.' && strstr(name, ".so"));
}

bool probe_row_is_in(const struct probe_row *row, const char *path, bool is_python)
{
	const char *last;

	if (row->place == PROBE_IN_ANY)
		return true;
	if (probe_row_is_of_cuda(row))
		return PROBE_IN_DRIVER + (enum probe_place)cuda_library_of(path) == row->place;
	if (row->place != PROBE_IN_BINARY)
		return row->place == PROBE_IN_PYTHON && is_python;
	if (!path)
		return false;
	if (!strcmp(path, row->spec->binary) ||
	    (row->real_path[0] && !strcmp(path, row->real_path)))
		return true;
	last = strrchr(path, '/');
	return !strchr(row->spec->binary, '/') && last && is_name_of(row->spec->binary, last + 1);
}
