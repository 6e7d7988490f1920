/* SPDX-License-Identifier: BSD-2-Clause */
/* What the agent knows of one CPython interpreter file and of one process that runs it. */
#ifndef PYTHON_PYTHON_INFO_H
#define PYTHON_PYTHON_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/python.h>

#include "base/cleanup.h"
#include "elf/elf_image.h"

/* Addresses in the file of symbols that later steps need; 0: not there. */
struct python_symbols {
	uint64_t runtime;	       /* _PyRuntime, 3.7+ */
	uint64_t thread_state_current; /* _PyThreadState_Current, 2.7 and 3.6 */
	uint64_t interp_head;	       /* 2.7, 3.6: static, .symtab only */
	uint64_t auto_tls_key;	       /* 3.6: static `autoTLSkey`, .symtab only */
	uint64_t code_type;	       /* PyCode_Type */
	uint64_t none;		       /* _Py_NoneStruct */
	uint64_t gil_locked, gil_last_holder, gc_collecting; /* 3.6: static, .symtab only */
};

/* How the interpreter file says to find the thread state: before a process's load bias and TLS
 * layout are known.  vaddr/offset as struct pp_tls, addresses in the file. */
struct python_tls_plan {
	struct pp_tls source[2]; /* [0] attached state (_Py_tss_tstate), [1] GILState slot */
};

struct python_info {
	struct pp_python bpf; /* what the kernel side gets; bpf.file is set by attach */
	struct python_symbols symbols;
	struct python_tls_plan tls;
	uint32_t version_hex;	/* PY_VERSION_HEX where the file tells; else major << 24 | minor << 16 */
	bool offsets_from_file; /* _Py_DebugOffsets, not the table */
	bool is_static_exe;	/* the interpreter lies in the executable itself (ET_EXEC or PIE) */
	/* Only user space walks these (thread list, names of threads). */
	uint32_t runtime_interpreters_head; /* offset in _PyRuntime */
	uint32_t interp_next, interp_threads_head, interp_modules;
	uint16_t ts_next;
};

/* Is this file a CPython interpreter, and which?  Never by its name.
 * Returns 0; -ENOENT: no interpreter; -ENOTSUP: one, but a version or build we cannot read (then
 * *ret_reason says so in words for the user, static string); -EBADMSG; -ENOMEM. */
int python_info_read(const struct elf_image *image, struct python_info **ret_info,
		     const char **ret_reason);
void python_info_free(struct python_info *info);
DEFINE_OWNED(struct python_info, python_info)

#endif
