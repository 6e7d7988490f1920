/* SPDX-License-Identifier: BSD-2-Clause */
/* The flame graph's data, as the page that shows it reads it:
 * {"version":1,"title":T,"unit":"nanoseconds","kind":"cpu","sampleTypes":[{"type","unit"}],
 *  "sampleType":"cpu","duration_ns":N,"period":N,"start_ns":N,
 *  "strings":[...],"frames":[[name,file,line,class,module]...],
 *  "groups":[{"label","pid","tid","comm","thread"}...],
 *  "stacks":{"frame":[...],"parent":[...]},
 *  "samples":{"node":[...],"group":[...],"value":[...]},"windows":N,"sampleCount":N}
 * With short paths also "shortFiles":[[index of the file in strings, what is shown for it]...].
 * Further keys, as "sources", are those of put_more.
 * With totals also "functions": docs/pyprof.md.  A differential tree has the values before in
 * "samples":{"base":[...]}, too.
 * Node 0 is the root, its frame and parent are 0; parent[i] < i.  "<" is written as \u003c, so that
 * the text can stand inside of a script element. */
#ifndef RENDER_FLAME_JSON_H
#define RENDER_FLAME_JSON_H

#include <stdio.h>

#include "base/json_writer.h"
#include "render/flame_tree.h"
#include "render/totals.h"

struct flame_json_facts {
	const char *title;
	uint64_t windows, sample_count; /* sample_count 0: unknown */
	uint64_t start_wall_ns, duration_ns;
	const struct totals *totals;	       /* NULL: no list of functions */
	const struct short_paths *short_paths; /* NULL: files are shown by their whole paths */
	/* May be NULL: writes further keys.  0 or -errno. */
	int (*put_more)(void *context, struct json_writer *json, const struct flame_tree *tree);
	void *context;
};

/* Writes the JSON.  Returns 0, -ENOMEM or the error of writing. */
int flame_json_write(const struct flame_tree *tree, const struct flame_json_facts *facts,
		     FILE *out);

#endif
