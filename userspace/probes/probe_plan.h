/* SPDX-License-Identifier: BSD-2-Clause */
/* Which probes a run has: those of Python that its events need, and those that --probe names.
 * A probe has a number, which is the detail of its counters, and one or two places where it is
 * hit: what begins a call and what ends it. */
#ifndef PROBES_PROBE_PLAN_H
#define PROBES_PROBE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/probe.h>

#include "elf/probe_sites.h"

struct cuda_function;
struct options;
struct probe_spec;

/* In which files a probe is looked for. */
enum probe_place {
	PROBE_IN_PYTHON,  /* interpreters */
	PROBE_IN_BINARY,  /* files that spec->binary names */
	PROBE_IN_KERNEL,  /* tracepoints */
	PROBE_IN_ANY,	  /* every file */
	PROBE_IN_DRIVER,  /* libcuda; from here on as enum cuda_library */
	PROBE_IN_RUNTIME, /* libcudart */
	PROBE_IN_NCCL,	  /* libnccl */
};

struct probe_leg {
	struct probe_wanted wanted;
	uint32_t does;	/* enum pp_site_does; 0: nothing, its semaphore is wanted (probe_raiser) */
	bool is_return; /* the site is hit when the function returns */
};
#define PROBE_LEGS 2U

struct probe_row {
	const char *name; /* borrowed; as labels and messages show it */
	enum probe_place place;
	const struct probe_spec *spec; /* borrowed; NULL: not from --probe */
	struct probe_leg leg[PROBE_LEGS];
	size_t leg_count;
	size_t cuda_first;    /* of CUDA's functions: the first of those that its legs name */
	char real_path[4096]; /* of the binary on the host; "": there is none */
};

/* The rows of allocators, in this order. */
enum probe_alloc_row {
	PROBE_ALLOC_COMMON, /* malloc and its like */
	PROBE_ALLOC_FREE,
	PROBE_ALLOC_RARE, /* what is called seldom, whatever a hit costs */
	PROBE_ALLOC_ROWS
};

struct probe_plan {
	struct probe_row *row; /* owned */
	const char **name;     /* owned; of each row */
	size_t count;
	uint32_t alloc_row; /* the first of PROBE_ALLOC_ROWS; at least `count`: there are none */
	uint32_t cuda_row;  /* the first of CUDA's; the same */
	/* PP_CUDA_LAUNCHES rows without places: launches of a kind go on and off together. */
	uint32_t cuda_launch_row;
};

/* Returns whether the probe is one of the interpreter's own. */
bool probe_row_is_of_python(const struct probe_row *row);
/* CPython 3.11 fires its probes of functions only while the semaphore of its probe `line` is raised
 * as well, whose own site costs a trap for each line.  So that semaphore is raised by a probe at a
 * function that hardly ever runs: the kernel lowers it again when the probe is taken off. */
#define PROBE_LINE_NAME "line"
#define PROBE_CARRIER_NAME "Py_FatalError"
/* Returns whether the row's probes need that. */
bool probe_row_needs_line(const struct probe_row *row);

struct opener;
/* takes_all: false where each place of code has a link of its own: of CUDA's functions only the
 * first ones are probed, without their twins.  Returns 0 or -ENOMEM. */
int probe_plan_make(const struct options *options, bool takes_all, struct probe_plan *ret_plan);
/* Finds the rows' binaries on the host. */
void probe_plan_find_binaries(struct probe_plan *plan, struct opener *opener);
void probe_plan_release(struct probe_plan *plan);
/* Returns what a function of a row of allocators does, by its place among the leg's names; NULL: of
 * another row. */
const struct pp_alloc_site *probe_plan_alloc(const struct probe_plan *plan, uint32_t row,
					     uint8_t alternative);
/* The same for rows of CUDA's functions. */
const struct cuda_function *probe_plan_cuda(const struct probe_plan *plan, uint32_t row,
					    uint8_t alternative);
/* Returns whether a row is of CUDA's functions. */
bool probe_row_is_of_cuda(const struct probe_row *row);
/* Returns whether a probe is looked for in a file of this path, as its processes see it. */
bool probe_row_is_in(const struct probe_row *row, const char *path, bool is_python);

#endif
