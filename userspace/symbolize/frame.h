/* SPDX-License-Identifier: BSD-2-Clause */
/* A named frame, as profile/ and render/ see it.  Strings are ids in one intern table. */
#ifndef SYMBOLIZE_FRAME_H
#define SYMBOLIZE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"

enum frame_kind {
	FRAME_PYTHON,
	FRAME_NATIVE,
	FRAME_KERNEL,
	FRAME_JIT,    /* native code without a file */
	FRAME_MARKER, /* our own: [unwind gap], [frames omitted] */
};

struct frame {
	uint32_t kind;	      /* enum frame_kind */
	uint32_t name;	      /* what a person reads: qualname, demangled symbol, "[libfoo.so]" */
	uint32_t system_name; /* mangled name; "" for Python and where it equals name */
	uint32_t file;	      /* co_filename; native: "" */
	uint32_t line;	      /* 0: unknown */
	uint32_t start_line;  /* co_firstlineno */
	uint32_t module;      /* index in the window's modules; 0: none */
	uint64_t address;     /* native: ELF vaddr; kernel: address; Python: 0 */
};

/* One pprof Mapping.  Index 0 of a table of modules is "none". */
struct module {
	uint32_t path;	   /* "/usr/lib/libz.so.1", "[kernel.kallsyms]", "[vdso]", "[anon]" */
	uint32_t build_id; /* lower-case hex or "" */
	uint64_t start, limit, offset; /* of the executable segment, as addresses in the file */
};

#endif
