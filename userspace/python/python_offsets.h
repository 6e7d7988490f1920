/* SPDX-License-Identifier: BSD-2-Clause */
/* The offsets of fields in CPython's structures, by version.  Private to python/.
 * Sources: for the table, compiled offsetof() of each version's own headers (x86-64); for 3.13 and
 * later struct _Py_DebugOffsets at the start of _PyRuntime (Include/internal/pycore_runtime.h,
 * pycore_debug_offsets.h). */
#ifndef PYTHON_PYTHON_OFFSETS_H
#define PYTHON_PYTHON_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

#include "python/python_info.h"

struct python_layout {
	uint16_t code_bytes;	 /* PyCode_Type.tp_basicsize; 3.11+: up to co_code_adaptive */
	uint32_t tss_key;	 /* autoTSSkey in _PyRuntime (x86-64); 0: none */
	uint32_t state_current;	 /* gilstate.tstate_current in _PyRuntime (x86-64); 0: none */
	uint32_t runtime_bytes;	 /* sizeof(_PyRuntime), 3.7 only: tells 3.7.0-3.7.3 apart */
	struct python_info info; /* layout fields only */
};

/* Returns NULL for a version that is not in the table. */
const struct python_layout *python_layout_find(unsigned int major, unsigned int minor,
					       bool is_free_threaded);

/* Overwrites in *info the offsets that _Py_DebugOffsets (at `runtime`, an address in the file)
 * contains; *info is a copy of the layout of the same version.  Returns 0; -EBADMSG: no cookie, or
 * an offset out of its bounds; then *info is untouched. */
int python_debug_offsets_read(const struct elf_image *image, uint64_t runtime,
			      struct python_info *info);
/* Reads only the head of _Py_DebugOffsets.  Returns 0; -ENOENT: no cookie there. */
int python_debug_offsets_version(const struct elf_image *image, uint64_t runtime,
				 uint32_t *ret_version_hex, bool *ret_is_free_threaded);

/* As in struct python_info, without types that have values of their own. */
struct python_told {
	struct pp_python bpf;
	struct python_symbols symbols;
	struct python_tls_plan tls;
	uint32_t version_hex;
	uint32_t has_offsets; /* not 0: offsets_from_file */
	uint32_t is_static_exe;
	uint32_t runtime_interpreters_head;
	uint32_t interp_next, interp_threads_head, interp_modules;
	uint32_t ts_next;
};

void python_told_from(const struct python_info *info, struct python_told *ret_told);
/* Returns 0; -EBADMSG: no file can be so; -ENOMEM. */
int python_told_check(const struct python_told *told, struct python_info **ret_info);

#endif
