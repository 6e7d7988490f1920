/* SPDX-License-Identifier: BSD-2-Clause */
/* What the child that parses files is asked, and what that costs: each has a counter, which is a
 * fact of each window. */
#ifndef FILES_QUESTIONS_H
#define FILES_QUESTIONS_H

/* X(id, name of the fact, text) */
#define FOREIGN_QUESTIONS(X)                                                                       \
	X(EXAMINE, "asked_layout", "what a file is: segments, build-id, interpreter")              \
	X(ROWS, "asked_rows", "how to unwind some of its code")                                    \
	X(NAMES, "asked_names", "the functions at some addresses")                                 \
	X(LINES, "asked_perf_maps", "the lines of a JIT's perf map that are new")                  \
	X(CODES, "asked_code_objects", "the names and lines of Python code objects")               \
	X(PROBES, "asked_probes", "where in a file probes are attached")                           \
	X(KERNELS, "asked_kernels", "the GPU kernels that functions at some addresses launch")     \
	X(TEXTS, "asked_texts", "what mangled names mean")                                         \
	X(CLOSE, "asked_close", "to forget a file")
#define FOREIGN_COSTS(X)                                                                           \
	X(FILES, "child_files", "files that were handed over, debug files included")               \
	X(BYTES, "child_bytes", "of answers")                                                      \
	X(CPU_NS, "child_cpu_ns", "CPU time of the children, part of own_cpu_ns")

#define FOREIGN_ENUM_QUESTION(id, name, text) FOREIGN_##id,
#define FOREIGN_ENUM_COST(id, name, text) FOREIGN_COST_##id,
enum foreign_kind { FOREIGN_QUESTIONS(FOREIGN_ENUM_QUESTION) FOREIGN_KINDS };
/* Counters; those of questions have the numbers of enum foreign_kind. */
enum foreign_cost {
	FOREIGN_COST_BEFORE = FOREIGN_KINDS - 1,
	FOREIGN_COSTS(FOREIGN_ENUM_COST) FOREIGN_COUNTERS
};

#endif
