/* SPDX-License-Identifier: BSD-2-Clause */
/* What the agent knows of a CPython interpreter file, and of a process that runs it. */
#ifndef PYTHON_PYTHON_INFO_H
#define PYTHON_PYTHON_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/python.h>

#include "base/cleanup.h"
#include "elf/elf_image.h"

/* Finds the parts by the unwind table and by jumps, so that it works in stripped files too.  A part
 * is an FDE with at least two jumps between it and a known part, whose first row shows that the
 * frame is set up already, unlike that of a function just called.  Returns the number of ranges in
 * ret_range, the one with the symbol first; 0: no such function. */
size_t python_eval_ranges(const struct elf_image *image, const char *name,
			  struct pp_eval_range ret_range[PP_MAX_EVAL_RANGES]);

/* sizeof(_PyInterpreterFrame) of 3.14 and 3.15: no more is read of a frame, because the memory
 * after it may not be readable.  PyFrameObject is longer than what is read. */
#define PYTHON_FRAME_BYTES 88U

/* Addresses in the file of symbols that later steps need; 0: no such symbol. */
struct python_symbols {
	uint64_t runtime;	       /* _PyRuntime, 3.7+ */
	uint64_t thread_state_current; /* _PyThreadState_Current, 2.7 and 3.6 */
	uint64_t interp_head;	       /* 2.7, 3.6: static, .symtab only */
	uint64_t auto_tls_key;	       /* 3.6: static `autoTLSkey`, .symtab only */
	uint64_t code_type;	       /* PyCode_Type */
	uint64_t none;		       /* _Py_NoneStruct */
	uint64_t gil_locked, gil_last_holder, gc_collecting; /* 3.6: static, .symtab only */
};

/* How to find the thread state, as far as the interpreter file alone says: before a process's load
 * bias and TLS layout are known.  vaddr and offset as in struct pp_tls, addresses in the file. */
struct python_tls_plan {
	struct pp_tls source[2]; /* [0] attached state (_Py_tss_tstate), [1] GILState slot */
};

struct python_info {
	struct pp_python bpf; /* for the kernel side; attach sets bpf.file */
	struct python_symbols symbols;
	struct python_tls_plan tls;
	/* PY_VERSION_HEX where the file has it; else major << 24 | minor << 16 */
	uint32_t version_hex;
	/* 0 or 1; no bool, as any bytes may come from the process that reads the file. */
	uint32_t offsets_from_file; /* from _Py_DebugOffsets, not from our table */
	uint32_t is_static_exe; /* the interpreter is in the executable itself (ET_EXEC or PIE) */
	/* Only user space needs these (thread list, names of threads). */
	uint32_t runtime_interpreters_head; /* offset in _PyRuntime */
	uint32_t interp_next, interp_threads_head, interp_modules;
	uint16_t ts_next;
};

/* Finds out whether a file is a CPython interpreter, and which one, never by its name.
 * Returns 0; -ENOENT: not an interpreter; -ENOTSUP: a version or build that we cannot read
 * (*ret_reason then says why, in words for the user, a static string); -EBADMSG; -ENOMEM. */
int python_info_read(const struct elf_image *image, struct python_info **ret_info,
		     const char **ret_reason);
void python_info_free(struct python_info *info);
DEFINE_OWNED(struct python_info, python_info)

#endif
