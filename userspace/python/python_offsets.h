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

/* Makes what another process has read of a file, any bytes, an info of our own.  Returns 0;
 * -EBADMSG: no file can be so; -ENOMEM. */
int python_told_check(const struct python_info *told, struct python_info **ret_info);

#endif
