/* SPDX-License-Identifier: BSD-2-Clause */
#include "python/python_offsets.h"

#include <stddef.h>

#define NONE PP_NO_OFFSET

/* str, bytes */
#define STRINGS_36                                                                                 \
	.str_length = 16, .str_state = 32, .str_ascii_data = 48, .str_compact_data = 72,           \
	.bytes_size = 16, .bytes_data = 32, .str_kind_shift = 2, .str_ascii_shift = 6
#define STRINGS_312                                                                                \
	.str_length = 16, .str_state = 32, .str_ascii_data = 40, .str_compact_data = 56,           \
	.bytes_size = 16, .bytes_data = 32, .str_kind_shift = 2, .str_ascii_shift = 6
#define STRINGS_FREE_THREADED(kind, ascii)                                                         \
	.str_length = 32, .str_state = 48, .str_ascii_data = 56, .str_compact_data = 72,           \
	.bytes_size = 32, .bytes_data = 48, .str_kind_shift = kind, .str_ascii_shift = ascii

/* PyFrameObject is the frame: 2.7, 3.6-3.10 */
#define FRAME_OBJECT(lasti)                                                                        \
	.frame_code = 32, .frame_previous = 24, .frame_instr = lasti, .frame_owner = NONE,         \
	.frame_is_entry = NONE, .frame_tlbc_index = NONE, .shim_owner = 0xff
#define STATE_WITH_FRAME(frame, thread)                                                            \
	.ts_frame = frame, .ts_interp = 16, .ts_thread_id = thread, .ts_native_id = NONE
#define NO_CFRAME .ts_cframe = NONE, .cframe_current = NONE, .cframe_previous = NONE
/* _PyInterpreterFrame: 3.12 and later */
#define INTERPRETER_FRAME(owner, tlbc)                                                             \
	.frame_code = 0, .frame_previous = 8, .frame_instr = 56, .frame_owner = owner,             \
	.frame_is_entry = NONE, .frame_tlbc_index = tlbc, .shim_owner = 3
#define STATE_WITH_ENTRY(thread, native)                                                           \
	.ts_frame = 72, .ts_interp = 16, .ts_thread_id = thread, .ts_native_id = native, NO_CFRAME

#define CODE(flags, line, file, table, qualname)                                                   \
	.ob_type = 8, .code_flags = flags, .code_first_line = line, .code_filename = file,         \
	.code_name = (file) + 8, .code_line_table = table, .code_qualname = qualname,              \
	.code_tlbc = NONE
#define CODE_312(adaptive) CODE(48, 68, 112, 136, 128), .code_adaptive = adaptive
#define CODE_FREE_THREADED(adaptive, tlbc)                                                         \
	.ob_type = 24, .code_flags = 64, .code_first_line = 84, .code_filename = 128,              \
	.code_name = 136, .code_line_table = 152, .code_qualname = 144, .code_adaptive = adaptive, \
	.code_tlbc = tlbc

/* 3.7-3.11: in _PyRuntime; `locked` follows `last_holder`. */
#define GIL_RUNTIME(holder)                                                                        \
	.gil_mode = PP_GIL_RUNTIME, .gil_offset = holder, .gil_locked = 8, .interp_gil = NONE
/* 3.12 and later: a struct of its own; a free-threaded build's begins with `enabled`. */
#define GIL_STRUCT(pointer) .gil_holder = 8, .gil_locked = 16, .interp_gil = pointer
#define GIL_STRUCT_FREE_THREADED                                                                   \
	.gil_mode = PP_GIL_NONE, .gil_holder = 16, .gil_locked = 24, .interp_gil = 16
#define GC_INTERPRETER(offset) .gc_mode = PP_GC_INTERPRETER, .gc_offset = offset

#define LISTS(head, next, threads, modules)                                                        \
	.info.runtime_interpreters_head = head, .info.interp_next = next,                          \
	.info.interp_threads_head = threads, .info.interp_modules = modules, .info.ts_next = 8

/* clang-format off */
static const struct python_layout layouts[] = {
	/* PyString has no state word: ob_size characters, beginning at ob_sval. */
	{.code_bytes = 128,
	 .info.bpf = {.major = 2, .minor = 7, .chain = PP_CHAIN_FRAME_OBJECT,
		.flags = PP_PYTHON_BYTES_NAMES | PP_PYTHON_LASTI,
		.gil_mode = PP_GIL_CURRENT, .interp_gil = NONE, .gc_mode = PP_GC_GLOBAL,
		.ts_frame = 16, .ts_interp = 8, .ts_thread_id = 144, .ts_native_id = NONE,
		NO_CFRAME, FRAME_OBJECT(120), CODE(28, 96, 80, 104, NONE),
		.str_length = 16, .str_state = NONE, .str_ascii_data = 36,
		.str_compact_data = 36, .bytes_size = 16, .bytes_data = 36},
	 .info.interp_threads_head = 8, .info.interp_modules = 16},
	{.code_bytes = 144,
	 .info.bpf = {.major = 3, .minor = 6, .chain = PP_CHAIN_FRAME_OBJECT,
		.flags = PP_PYTHON_LASTI, .gil_mode = PP_GIL_CURRENT,
		.interp_gil = NONE, .gc_mode = PP_GC_GLOBAL,
		STATE_WITH_FRAME(24, 152), NO_CFRAME,
		FRAME_OBJECT(120), CODE(32, 36, 96, 112, NONE), STRINGS_36},
	 LISTS(0, 0, 8, 16)},
	{.code_bytes = 144, .tss_key = 1504, .state_current = 1480, .runtime_bytes = 1520,
	 .info.bpf = {.major = 3, .minor = 7, .chain = PP_CHAIN_FRAME_OBJECT,
		.flags = PP_PYTHON_LASTI, GIL_RUNTIME(1272), .gc_mode = PP_GC_RUNTIME,
		.gc_offset = 632, STATE_WITH_FRAME(24, 176), NO_CFRAME, FRAME_OBJECT(104),
		CODE(32, 36, 96, 112, NONE), STRINGS_36},
	 LISTS(24, 0, 8, 40)},
	{.code_bytes = 176, .tss_key = 1392, .state_current = 1368,
	 .info.bpf = {.major = 3, .minor = 8, .chain = PP_CHAIN_FRAME_OBJECT,
		.flags = PP_PYTHON_LASTI, GIL_RUNTIME(1160), .gc_mode = PP_GC_RUNTIME,
		.gc_offset = 544, STATE_WITH_FRAME(24, 176), NO_CFRAME, FRAME_OBJECT(104),
		CODE(36, 40, 104, 120, NONE), STRINGS_36},
	 LISTS(32, 0, 8, 56)},
	{.code_bytes = 176, .tss_key = 584, .state_current = 568,
	 .info.bpf = {.major = 3, .minor = 9, .chain = PP_CHAIN_FRAME_OBJECT,
		.flags = PP_PYTHON_LASTI, GIL_RUNTIME(360), GC_INTERPRETER(816),
		STATE_WITH_FRAME(24, 176), NO_CFRAME, FRAME_OBJECT(104),
		CODE(36, 40, 104, 120, NONE), STRINGS_36},
	 LISTS(32, 0, 8, 856)},
	{.code_bytes = 176, .tss_key = 584, .state_current = 568,
	 .info.bpf = {.major = 3, .minor = 10, .chain = PP_CHAIN_FRAME_CFRAME,
		.flags = PP_PYTHON_LASTI, GIL_RUNTIME(360), GC_INTERPRETER(816),
		STATE_WITH_FRAME(24, 176), .ts_cframe = 48, .cframe_current = NONE,
		.cframe_previous = 8, FRAME_OBJECT(96), CODE(36, 40, 104, 120, NONE),
		STRINGS_36},
	 LISTS(32, 0, 8, 856)},
	{.code_bytes = 184, .tss_key = 592, .state_current = 576,
	 .info.bpf = {.major = 3, .minor = 11, .chain = PP_CHAIN_CFRAME_ENTRY, GIL_RUNTIME(368),
		GC_INTERPRETER(848), .ts_frame = 56, .ts_interp = 16, .ts_thread_id = 152,
		.ts_native_id = 160, .ts_cframe = NONE, .cframe_current = 8,
		.cframe_previous = 16, .frame_code = 32, .frame_previous = 48,
		.frame_instr = 56, .frame_owner = 69, .frame_is_entry = 68,
		.frame_tlbc_index = NONE, .shim_owner = 0xff, CODE(48, 72, 112, 136, 128),
		.code_adaptive = 184, STRINGS_36},
	 LISTS(40, 0, 16, 888)},
	{.code_bytes = 192, .tss_key = 1544,
	 .info.bpf = {.major = 3, .minor = 12, .chain = PP_CHAIN_CFRAME_SHIM,
		.gil_mode = PP_GIL_INTERPRETER, .gil_offset = 384, GIL_STRUCT(384),
		GC_INTERPRETER(312), .ts_frame = 56, .ts_interp = 16, .ts_thread_id = 136,
		.ts_native_id = 144, .ts_cframe = NONE, .cframe_current = 0,
		.cframe_previous = 8, INTERPRETER_FRAME(70, NONE), CODE_312(192),
		STRINGS_312},
	 LISTS(40, 0, 72, 944)},
	{.code_bytes = 200, .tss_key = 2160,
	 .info.bpf = {.major = 3, .minor = 13, .chain = PP_CHAIN_SHIM,
		.gil_mode = PP_GIL_TSTATE_BIT, .gil_offset = 32, GIL_STRUCT(16),
		GC_INTERPRETER(7600), STATE_WITH_ENTRY(152, 160),
		INTERPRETER_FRAME(70, NONE), CODE_312(200), STRINGS_312},
	 LISTS(632, 7264, 7344, 7656)},
	{.code_bytes = 216, .tss_key = 2160,
	 .info.bpf = {.major = 3, .minor = 13, .chain = PP_CHAIN_SHIM,
		.flags = PP_PYTHON_FREE_THREADED, GIL_STRUCT_FREE_THREADED,
		GC_INTERPRETER(7600), STATE_WITH_ENTRY(152, 160),
		INTERPRETER_FRAME(70, NONE), CODE_FREE_THREADED(216, NONE),
		STRINGS_FREE_THREADED(2, 6)},
	 LISTS(632, 7264, 7344, 7664)},
	{.code_bytes = 208, .tss_key = 2336,
	 .info.bpf = {.major = 3, .minor = 14, .chain = PP_CHAIN_SHIM,
		.gil_mode = PP_GIL_TSTATE_INT, .gil_offset = 36, GIL_STRUCT(16),
		GC_INTERPRETER(7600), STATE_WITH_ENTRY(152, 160),
		INTERPRETER_FRAME(74, NONE), CODE_312(208), STRINGS_312},
	 LISTS(808, 7272, 7344, 7688)},
	{.code_bytes = 232, .tss_key = 2336,
	 .info.bpf = {.major = 3, .minor = 14, .chain = PP_CHAIN_SHIM,
		.flags = PP_PYTHON_FREE_THREADED, GIL_STRUCT_FREE_THREADED,
		GC_INTERPRETER(7600), STATE_WITH_ENTRY(152, 160),
		INTERPRETER_FRAME(78, 72), CODE_FREE_THREADED(232, 224),
		STRINGS_FREE_THREADED(8, 12)},
	 LISTS(808, 7272, 7344, 7712)},
	{.code_bytes = 208,
	 .info.bpf = {.major = 3, .minor = 15, .chain = PP_CHAIN_SHIM,
		.gil_mode = PP_GIL_TSTATE_INT, .gil_offset = 36, GIL_STRUCT(16),
		GC_INTERPRETER(7512), STATE_WITH_ENTRY(176, 184),
		INTERPRETER_FRAME(74, NONE), CODE_312(208), STRINGS_312},
	 LISTS(936, 7264, 7336, 7592)},
	{.code_bytes = 232,
	 .info.bpf = {.major = 3, .minor = 15, .chain = PP_CHAIN_SHIM,
		.flags = PP_PYTHON_FREE_THREADED, GIL_STRUCT_FREE_THREADED,
		GC_INTERPRETER(7512), STATE_WITH_ENTRY(176, 184),
		INTERPRETER_FRAME(78, 72), CODE_FREE_THREADED(232, 224),
		STRINGS_FREE_THREADED(8, 12)},
	 LISTS(936, 7264, 7336, 7592)},
};
/* clang-format on */

const struct python_layout *python_layout_find(unsigned int major, unsigned int minor,
					       bool is_free_threaded)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		const struct pp_python *bpf = &layouts[i].info.bpf;

		if (bpf->major == major && bpf->minor == minor &&
		    !!(bpf->flags & PP_PYTHON_FREE_THREADED) == is_free_threaded)
			return &layouts[i];
	}
	return NULL;
}
