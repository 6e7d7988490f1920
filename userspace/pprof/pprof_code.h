/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a profile's mappings, locations and functions as pprof messages. */
#ifndef PPROF_PPROF_CODE_H
#define PPROF_PPROF_CODE_H

#include "base/index_table.h"
#include "pprof/gzip_sink.h"
#include "pprof/pprof_mappings.h"
#include "pprof/pprof_strings.h"
#include "profile/profile_data.h"

struct pprof_function {
	uint32_t name, system_name, file, start_line; /* texts: indices in the file */
};

/* Release with pprof_code_release(), even when pprof_code_init() failed.  Owns the mappings and the
 * functions. */
struct pprof_code {
	const struct profile *profile;
	struct pprof_strings *strings;
	struct gzip_sink *sink;
	struct pprof_mappings mappings;
	struct pprof_function *function; /* id - 1 */
	uint32_t function_count, function_capacity;
	struct index_table function_index;
};

int pprof_code_init(struct pprof_code *code, const struct profile *profile,
		    struct pprof_strings *strings, struct gzip_sink *sink);
void pprof_code_release(struct pprof_code *code);
/* Writes the three tables.  A location's id is its index in profile.stacks + 1.
 * Returns 0, -ENOMEM; -EINVAL: a frame or module refers to a string that is not in the table. */
int pprof_code_write(struct pprof_code *code);

#endif
