/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What leaves the kernel: stacks and code objects once, through the ring `stacks`; counters in the
 * two count maps.  All records start with pp_record; sizes are exact, never padded further. */
#ifndef PYPROFD_SAMPLE_H
#define PYPROFD_SAMPLE_H

#include <linux/types.h>
#include <pyprofd/kinds.h>
#include <pyprofd/limits.h>
#include <pyprofd/process.h>
#include <pyprofd/stops.h>
#include <pyprofd/unwind.h>

enum pp_count_flag {
	PP_COUNT_GIL_HELD = 1,
	PP_COUNT_GC = 2,
	PP_COUNT_PYTHON = 4,	/* the thread had a Python stack */
	PP_COUNT_SWEPT = 8,	/* asleep since before the start: include/pyprofd/sweep.h */
	PP_COUNT_EARLIER = 16,	/* preempted: the stack is that of its last sample or walk */
	PP_COUNT_STOP_SHIFT = 8, /* bits 8..15: enum pp_stop of the native walk */
	PP_COUNT_PY_STOP_SHIFT = 16, /* bits 16..23: enum pp_py_stop */
	PP_COUNT_WAIT_SHIFT = 24,    /* bits 24..28: enum pp_wait */
};

#define PP_COUNT_WAIT_BITS (0x1fU << PP_COUNT_WAIT_SHIFT)

/* enum pp_wait of such flags. */
static __inline__ __u32 pp_count_wait(__u32 flags)
{
	return (flags & PP_COUNT_WAIT_BITS) >> PP_COUNT_WAIT_SHIFT;
}

/* A user stack's name that is no hash, which are odd: all those that found no row of their own. */
#define PP_STACK_OTHERS 2U

/* Key of counts[].  All of its bytes are hashed: there is no hole, and `pad` is 0. */
struct pp_count_key {
	__u64 user_stack;   /* hash; 0: none */
	__u64 kernel_stack; /* hash; 0: none */
	__u64 detail; /* tells counters of one stack apart; what it means, the kind says.  0: nothing */
	struct pp_process_id id;
	__u32 tid; /* as the host sees it */
	__u32 flags; /* enum pp_count_flag */
	__u32 kind; /* enum pp_count_kind */
	__u32 pad;
};
_Static_assert(sizeof(struct pp_count_key) == 48, "pp_count_key has holes");

struct pp_count {
	__u64 samples; /* or waits */
	__u64 weight;  /* see PP_COUNT_KINDS */
	union {
		__u64 squares; /* in the kernel, of waits chosen by chance: pp_wait_square() of each */
		__u64 effective; /* in the agent: that many waits of equal weight would tell as much */
	};
};

enum pp_frame_kind {
	PP_FRAME_NATIVE = 0,   /* where: address in the file (pc - 1 for callers); what: file id */
	PP_FRAME_PYTHON,       /* where: code id; what: (u32) instruction offset, see below */
	PP_FRAME_PYTHON_RAW,   /* the same, but `where` is the code object's address: not readable */
	PP_FRAME_PYTHON_RUN,   /* among native frames: `where` Python frames run here, next in line */
	PP_FRAME_GAP,	       /* callers between here and the next frame are not known */
	PP_FRAME_ANONYMOUS,    /* where: address in executable memory without a file (JIT) */
	PP_FRAME_EVAL,	       /* an eval activation kept beside its run (--raw); as NATIVE */
};

/* Python's `what`: <= 3.10 f_lasti as it stands (-1: not started); 3.11+ the instruction pointer
 * minus the code object's address (FT: as if in the main copy of the bytecode). */
struct pp_frame {
	__u64 where;
	__u32 what;
	__u16 kind; /* enum pp_frame_kind */
	__u16 pad;
};
_Static_assert(sizeof(struct pp_frame) == 16, "pp_frame crosses the kernel boundary");

enum pp_record_type {
	PP_RECORD_STACK = 1, /* pp_stack_record */
	PP_RECORD_KERNEL,    /* pp_kernel_record */
	PP_RECORD_CODE,	     /* pp_code_record */
	PP_RECORD_MISS,	     /* pp_miss_record */
};

struct pp_record {
	__u32 type; /* enum pp_record_type */
	__u32 size; /* bytes, with this header */
};

/* frame[]: python_stored Python frames from leaf to root, then native_stored native ones from leaf
 * to root, among which PYTHON_RUN frames say where the Python ones belong.  When _count exceeds
 * _stored the area was full: its last quarter is a ring that holds the frames nearest the root, the
 * oldest at slot  leaf + (count - leaf) % (stored - leaf),  leaf = stored - stored / PP_ROOT_SHARE. */
struct pp_stack_record {
	struct pp_record record;
	__u64 hash;
	struct pp_process_id id; /* of the first process seen with it */
	__u16 python_stored, native_stored;
	__u32 python_count, native_count;
	__u8 stop;    /* enum pp_stop */
	__u8 py_stop; /* enum pp_py_stop */
	__u8 python;  /* 1 + index in pythons[], 0: none */
	__u8 pad;
	struct pp_frame frame[];
};

struct pp_kernel_record {
	struct pp_record record;
	__u64 hash;
	__u64 address[]; /* leaf first */
};

enum pp_code_flag {
	PP_CODE_TRUNCATED = 1, /* a name or the line table is longer than what is here */
};

/* A code object seen for the first time.  bytes[]: qualname (or name), filename, line table, as they
 * lie in memory, one after another.  A string's kind: bytes a character (1, 2, 4); 1 is Latin-1
 * (<= 2.7: raw bytes).  The id is a hash of the first line, the flags and all bytes. */
struct pp_code_record {
	struct pp_record record;
	__u64 id;
	__u64 address;
	struct pp_process_id process;
	__u32 first_line;
	__u32 code_flags; /* co_flags */
	__u16 name_bytes, filename_bytes;
	__u32 line_table_bytes;
	__u8 name_kind, filename_kind;
	__u8 python; /* 1 + index in pythons[] */
	__u8 flags;  /* enum pp_code_flag */
	__u32 pad;
	__u8 bytes[];
};

/* A run of Python frames: the address on the C stack that marks its eval activation. */
struct pp_segment {
	__u64 mark; /* 0: known by eval range only (<= 3.9) */
	__u64 frames;
};

/* A stack whose walk met code without loaded rows, or reached its bound on time.  The agent finishes the
 * walk from these registers and the copy of the stack, and counts the sample, which was not counted in
 * the kernel.  When Python's walk reached the bound (py_stop), the native one has not begun, and the
 * agent goes on with both; stop is ROOT where no native frames are wanted.
 * bytes[]: pp_frame[python_stored + native_stored] as in pp_stack_record (what was walked so far),
 * pp_segment[segment_count] (marks not met yet), stack_bytes bytes of the stack from stack_start. */
struct pp_miss_record {
	struct pp_record record;
	struct pp_count_key key; /* user_stack: 0, or the hash to file it under and count nothing */
	__u64 weight;
	__u64 pc, sp, fp;	    /* of the frame to go on with */
	__u64 registers[PP_REG_COUNT]; /* at the leaf, by DWARF number */
	__u64 stack_start;	    /* address of the copy */
	__u64 first_word, thread_pointer; /* where the stack may begin: pp_is_root() */
	__u64 python_frame, cframe; /* of the Python frame to go on with (py_stop MAX_TIME) */
	__u8 frame_head[PP_FRAME_READ_BYTES]; /* what lay there: it must still be the same */
	__u32 segment_frames;		      /* frames of the run that has no mark yet */
	__u32 since_run;		      /* native frames since the last run ... */
	__u32 foldable; /* ... and whether all of them are the interpreter's own */
	__u32 pad;
	__u32 stack_bytes;
	__u32 segment_count;
	__u16 python_stored, native_stored;
	__u32 python_count, native_count;
	__u8 stop; /* why the walk stopped */
	__u8 py_stop;
	__u8 python;
	__u8 is_leaf; /* pc is exact, not a return address */
	__u8 bytes[];
};

#endif
