/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/verb.h"

#include <stddef.h>
#include <string.h>

/* In the order of `pyprof --help`. */
static const struct verb verbs[] = {
	{"report", "a table: self and total time of functions, lines, files, threads ...",
	 verb_report},
	{"flame", "a page with the flame graph, or a picture", verb_flame},
	{"tree", "the call tree, hottest first", verb_tree},
	{"lines", "the source with the time of each line", verb_lines},
	{"calls", "the call graph, for Graphviz, snakeviz and gprof2dot; exact calls", verb_calls},
	{"mem", "memory by line: touched, copied, allocated, still held; resident by process",
	 verb_mem},
	{"gpu", "GPU by kernel and line: launches, copies, time lost in synchronisations",
	 verb_gpu},
	{"why", "why a GPU is slow, as far as the host is to blame: findings with evidence",
	 verb_why},
	{"diff", "what changed between two profiles or directories, and is it more than chance",
	 verb_diff},
	{"export", "speedscope, folded, Perfetto, Chrome, callgrind, CSV, JSON, OTLP, pprof",
	 verb_export},
	{"dump", "the stacks of every thread now, what each waits for, who holds the GIL",
	 verb_dump},
	{"top", "live: processes, functions and lines; %CPU, %GIL, what is waited for", verb_top},
	{"info", "what is in a profile, how whole it is, what it cost", verb_info},
	{NULL, NULL, NULL},
};

const struct verb *verb_at(unsigned int index)
{
	return verbs[index].name ? &verbs[index] : NULL;
}

const struct verb *verb_find(const char *name)
{
	for (const struct verb *verb = verbs; verb->name; verb++)
		if (!strcmp(verb->name, name))
			return verb;
	return NULL;
}
