/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One CPython interpreter file as the kernel side needs it.  userspace/python fills it from the
 * table of offsets (<= 3.12) or from _Py_DebugOffsets (>= 3.13); see docs/python.md. */
#ifndef PYPROFD_PYTHON_H
#define PYPROFD_PYTHON_H

#include <linux/types.h>
#include <pyprofd/limits.h>

/* struct pthread's tid: glibc x86-64 since 2.4, musl 1.2. */
#define PP_GLIBC_TID_OFFSET 0x2d0U
#define PP_MUSL_TID_OFFSET 0x30U

#define PP_NO_OFFSET 0xffffU /* the field does not exist in this version */

/* How the frames are linked, and where the stack anchor of their eval activation is. */
enum pp_python_chain {
	PP_CHAIN_NONE = 0,
	/* 2.7, 3.6-3.9: tstate->frame, f_back; one frame per eval activation, which is found by the
	 * ranges of the eval function */
	PP_CHAIN_FRAME_OBJECT,
	PP_CHAIN_FRAME_CFRAME, /* 3.10: the same, with a CFrame on each activation's C stack */
	/* 3.11: tstate->cframe->current_frame; is_entry ends a segment, whose anchor is the
	 * _PyCFrame */
	PP_CHAIN_CFRAME_ENTRY,
	PP_CHAIN_CFRAME_SHIM, /* 3.12: the same, but a shim frame on the C stack ends a segment */
	PP_CHAIN_SHIM,	      /* 3.13+: tstate->current_frame; a shim frame ends a segment */
};

/* How to find out whether the thread holds the GIL. */
enum pp_gil_mode {
	PP_GIL_NONE = 0,    /* free-threaded, or unknown */
	PP_GIL_RUNTIME,	    /* <= 3.11: last_holder and locked at runtime + offset */
	PP_GIL_INTERPRETER, /* 3.12+: *(interp + gil_offset) points to last_holder and locked */
	PP_GIL_TSTATE_BIT,  /* 3.13: bit 5 of the status word at gil_offset of the thread state */
	PP_GIL_TSTATE_INT,  /* 3.14+: an int at gil_offset of the thread state */
	PP_GIL_CURRENT,	    /* 2.7, 3.6: the global _PyThreadState_Current is this thread's state */
};

enum pp_gc_mode {
	PP_GC_NONE = 0,
	PP_GC_RUNTIME,	   /* 3.7, 3.8: int at runtime + gc_offset */
	PP_GC_INTERPRETER, /* 3.9+: int at interp + gc_offset */
	PP_GC_GLOBAL,	   /* 2.7, 3.6: static `collecting`, when its symbol is there */
};

enum pp_python_flag {
	PP_PYTHON_FREE_THREADED = 1,
	PP_PYTHON_BYTES_NAMES = 2, /* 2.7: names are PyString: length and bytes, no state word */
	PP_PYTHON_LASTI = 4,	   /* <= 3.10: `frame_instr` is an int and not a pointer */
};

struct pp_eval_range {
	__u64 low, high; /* addresses in the file, high is exclusive */
};

struct pp_python {
	__u8 major, minor;
	__u8 chain;	 /* enum pp_python_chain */
	__u8 flags;	 /* enum pp_python_flag */
	__u8 gil_mode;	 /* enum pp_gil_mode */
	__u8 gc_mode;	 /* enum pp_gc_mode */
	__u8 shim_owner; /* frames with owner >= this are shims */
	__u8 eval_range_count;

	__u32 file;	 /* file id: native frames of this file belong to the interpreter */
	__u16 ts_cframe; /* PyThreadState.cframe, PP_CHAIN_FRAME_CFRAME (3.10) only */
	__u16 pad;
	__u64 runtime;	 /* address in the file of _PyRuntime; 0 <= 3.6 */
	__u64 code_type; /* address in the file of PyCode_Type */

	/* PyThreadState; all below PP_TSTATE_READ_BYTES */
	__u16 ts_frame; /* frame, cframe or current_frame */
	__u16 ts_interp;
	__u16 ts_thread_id;    /* pthread_self() == fs base */
	__u16 ts_native_id;    /* tid as the thread itself sees it; PP_NO_OFFSET <= 3.10 */
	__u16 cframe_current;  /* _PyCFrame.current_frame */
	__u16 cframe_previous; /* _PyCFrame.previous */

	/* PyFrameObject or _PyInterpreterFrame; all below PP_FRAME_READ_BYTES */
	__u16 frame_code;
	__u16 frame_previous;
	__u16 frame_instr;
	__u16 frame_owner;
	__u16 frame_is_entry;
	__u16 frame_tlbc_index;

	/* PyCodeObject; all below PP_CODE_READ_BYTES except code_adaptive, which is only an
	 * address */
	__u16 ob_type;
	__u16 code_flags;
	__u16 code_first_line;
	__u16 code_filename;
	__u16 code_name;
	__u16 code_qualname; /* PP_NO_OFFSET <= 3.10 */
	__u16 code_line_table;
	__u16 code_adaptive;
	__u16 code_tlbc;

	/* str and bytes */
	__u16 str_length;
	__u16 str_state;
	__u16 str_ascii_data;	/* sizeof(PyASCIIObject) */
	__u16 str_compact_data; /* sizeof(PyCompactUnicodeObject) */
	__u16 bytes_size;
	__u16 bytes_data;
	__u8 str_kind_shift;
	__u8 str_ascii_shift;

	__u16 gil_holder; /* last_holder in the GIL's struct (PP_GIL_INTERPRETER) */
	__u16 gil_locked; /* follows at + 8: the kernel side reads both at once */
	/* see enum pp_gil_mode; PP_GIL_RUNTIME: of last_holder, locked follows at +8 */
	__u32 gil_offset;
	/* 3.6 has the GIL's futex words in its static data: addresses in the file. */
	__u64 gil_wait_low;
	__u32 gil_wait_bytes; /* 0: not known */
	__u16 interp_gil;     /* PyInterpreterState.ceval.gil, a pointer; PP_NO_OFFSET <= 3.11 */
	__u16 pad_gil;
	__u32 gc_offset; /* PP_GC_GLOBAL: low 32 bits of the file address */

	/* <= 3.11: the newest interpreter's address is at interp_head (address in the file; 0: not
	 * known, or not needed), PyInterpreterState.next at 0. */
	__u64 interp_head;
	__u16 interp_threads; /* PyInterpreterState.tstate_head */
	__u16 ts_next;
	__u32 pad_interp;

	struct pp_eval_range eval[PP_MAX_EVAL_RANGES]; /* PP_CHAIN_FRAME_OBJECT only */
};
_Static_assert(sizeof(struct pp_python) <= 256, "pp_python crosses the kernel boundary");

/* Learnt by the kernel side from complete walks; one per interpreter file.  CFA - anchor is the
 * same at every pc of one eval function (0x90 on 3.12.1), so a stuck walk can continue there. */
struct pp_resync {
	__s64 cfa_minus_anchor; /* bytes */
	__s64 fp_offset;	/* saved frame pointer relative to the CFA */
	__u32 agreed;		/* equal observations minus different ones; used from 3 on */
	__u32 asked;		/* stuck walks sent to the agent, which searches for the distance */
};
#define PP_RESYNC_AGREED 3U
#define PP_RESYNC_SURE 16U /* the count stops here, so that this many different ones unlearn it */
#define PP_RESYNC_MAX_ASKED 64U

/* Where a thread's PyThreadState pointer is.  Addresses are in the process's memory. */
enum pp_tls_mode {
	PP_TLS_NONE = 0,
	PP_TLS_THREAD_OFFSET, /* *(thread pointer + offset) */
	PP_TLS_DTV,	      /* glibc: *(DTV block of module *address, + offset) */
	PP_TLS_DTV_MUSL,
	/* glibc: pthread_getspecific(*(int *)address), Py_tss_t at address - 4 */
	PP_TLS_PTHREAD_KEY,
	PP_TLS_PTHREAD_KEY_MUSL,
	PP_TLS_GLOBAL, /* *address: 2.7 and 3.6's _PyThreadState_Current */
};

struct pp_tls {
	__u32 mode;   /* enum pp_tls_mode */
	__s32 offset; /* bytes */
	__u64 address;
};

#endif
