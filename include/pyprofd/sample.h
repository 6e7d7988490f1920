/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel side sends: stacks and code objects once, through the ring `stacks`; counters in
 * the two count maps.  All records start with pp_record; sizes are exact, never padded further. */
#ifndef PYPROFD_SAMPLE_H
#define PYPROFD_SAMPLE_H

#include <linux/types.h>
#include <pyprofd/cuda.h>
#include <pyprofd/kinds.h>
#include <pyprofd/limits.h>
#include <pyprofd/process.h>
#include <pyprofd/stops.h>
#include <pyprofd/unwind.h>

enum pp_count_flag {
	PP_COUNT_GIL_HELD = 1,
	PP_COUNT_GC = 2,
	PP_COUNT_PYTHON = 4, /* the thread had a Python stack */
	PP_COUNT_SWEPT = 8,  /* asleep since before the start: include/pyprofd/wait.h */
	/* preempted: the stack is that of the thread's last sample or walk */
	PP_COUNT_EARLIER = 16,
	PP_COUNT_GPU_SHIFT = 5,	     /* bits 5..6: enum pp_gpu, when it began */
	PP_COUNT_STOP_SHIFT = 8,     /* bits 8..15: enum pp_stop of the native walk */
	PP_COUNT_PY_STOP_SHIFT = 16, /* bits 16..23: enum pp_py_stop */
	PP_COUNT_WAIT_SHIFT = 24,    /* bits 24..28: enum pp_wait */
};

#define PP_COUNT_WAIT_BITS (0x1fU << PP_COUNT_WAIT_SHIFT)
#define PP_COUNT_GPU_BITS (3U << PP_COUNT_GPU_SHIFT)

/* Returns the enum pp_wait of these flags. */
static __inline__ __u32 pp_count_wait(__u32 flags)
{
	return (flags & PP_COUNT_WAIT_BITS) >> PP_COUNT_WAIT_SHIFT;
}

/* A user stack that is no hash (hashes are odd): all stacks that found no row of their own. */
#define PP_STACK_OTHERS 2U

/* Key of counts[].  All of its bytes are hashed: it has no holes. */
struct pp_count_key {
	__u64 user_stack;   /* hash; 0: none */
	__u64 kernel_stack; /* hash; 0: none */
	/* tells counters of one stack apart; its meaning depends on the kind.  0: unused */
	__u64 detail;
	struct pp_process_id id;
	__u32 tid;   /* as the host sees it */
	__u32 flags; /* enum pp_count_flag */
	__u32 kind;  /* enum pp_count_kind */
	__u32 euid;  /* 1 + the thread's effective user id; 0: unknown */
	char comm[PP_COMM_BYTES]; /* what the thread was called; "": unknown */
};
_Static_assert(sizeof(struct pp_count_key) == 64, "pp_count_key has holes");

struct pp_count {
	__u64 samples; /* or waits */
	__u64 weight;  /* see PP_COUNT_KINDS */
	union {
		__u64 squares; /* in the kernel: sum of pp_wait_square() of waits with a weight */
		/* in the agent: how many waits of equal weight would give the same counting
		 * error */
		__u64 effective;
	};
};

enum pp_frame_kind {
	PP_FRAME_NATIVE = 0, /* where: address in the file (pc - 1 for callers); what: file id */
	PP_FRAME_PYTHON,     /* where: code id; what: (u32) instruction offset, see below */
	/* the same, but `where` is the address of a code object that could not be read */
	PP_FRAME_PYTHON_RAW,
	/* among native frames: the place of a segment; the next `where` Python frames run here */
	PP_FRAME_SEGMENT,
	PP_FRAME_GAP,	    /* the callers between here and the next frame are unknown */
	PP_FRAME_ANONYMOUS, /* where: address in executable memory without a file (JIT) */
	PP_FRAME_EVAL,	    /* an eval activation shown beside its segment; as NATIVE */
};

/* Python's `what`: <= 3.10 f_lasti unchanged (-1: not started); 3.11+ the instruction pointer minus
 * the code object's address (FT: as if in the main copy of the bytecode). */
struct pp_frame {
	__u64 where;
	__u32 what;
	__u16 kind; /* enum pp_frame_kind */
	__u16 pad;
};
_Static_assert(sizeof(struct pp_frame) == 16, "pp_frame crosses the kernel boundary");

enum pp_record_type {
	PP_RECORD_STACK = 1,  /* pp_stack_record */
	PP_RECORD_KERNEL,     /* pp_kernel_record */
	PP_RECORD_CODE,	      /* pp_code_record */
	PP_RECORD_INCOMPLETE, /* pp_incomplete_record */
	PP_RECORD_TEXT,	      /* pp_text_record */
};

struct pp_record {
	__u32 type; /* enum pp_record_type */
	__u32 size; /* bytes, with this header */
};

/* frame[]: python_stored Python frames from leaf to root, then native_stored native ones from leaf
 * to root, among which a SEGMENT frame stands for each segment of Python frames.  _count above
 * _stored means that the area was full: its last quarter is then a ring of the frames nearest the
 * root, the oldest at slot  leaf + (count - leaf) % (stored - leaf),  leaf = stored - stored /
 * PP_ROOT_SHARE. */
struct pp_stack_record {
	struct pp_record record;
	__u64 hash;
	struct pp_process_id id; /* of the process in which it was seen first */
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
	PP_CODE_TRUNCATED = 1, /* a name or the line table is longer than what is in the record */
};

/* A code object seen for the first time.  bytes[]: qualname (or name), filename, line table, as in
 * memory, one after the other.  A string's kind is its bytes per character (1, 2, 4); 1 is Latin-1
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

/* A text that counters refer to by its id, as the name of an imported module.  The id is a hash of
 * the bytes and of who answers for the process, never 0. */
struct pp_text_record {
	struct pp_record record;
	__u64 id;
	struct pp_process_id process;
	__u8 bytes[]; /* 1 .. PP_MAX_TEXT_BYTES, UTF-8 as the process had it, no NUL */
};

/* A segment of Python frames and its stack anchor: an address in its eval activation's native
 * frame. */
struct pp_segment {
	__u64 anchor; /* 0: found by eval range only (<= 3.9) */
	__u64 frames;
};

/* A call whose return address the kernel has replaced, because of a return probe. */
struct pp_return {
	__u64 stack;   /* sp at the function's first instruction */
	__u64 address; /* to which it really returns */
};

/* An incomplete stack: the walk met code without loaded rows, or reached its time limit.  The agent
 * finishes the walk from these registers and the copy of the stack, and counts the sample, which
 * the kernel side has not counted.  When the Python walk reached the limit (py_stop), the native
 * one has not begun, and the agent continues both; stop is ROOT when no native frames are wanted.
 * bytes[]: pp_frame[python_stored + native_stored] as in pp_stack_record (what was walked so far),
 * pp_segment[segment_count] (anchors not reached yet), pp_return[return_count] (innermost first),
 * stack_bytes bytes of the stack from stack_start. */
struct pp_incomplete_record {
	struct pp_record record;
	/* user_stack: 0, or the hash under which to store the stack without counting */
	struct pp_count_key key;
	__u64 weight;
	__u64 pc, sp, fp;		  /* of the frame at which to continue */
	__u64 registers[PP_REG_COUNT];	  /* at the leaf, by DWARF number */
	__u64 stack_start;		  /* address of the copied part */
	__u64 first_word, thread_pointer; /* where the stack may begin: pp_is_root() */
	/* of the Python frame at which to continue (py_stop MAX_TIME) */
	__u64 python_frame, cframe;
	__u8 frame_head[PP_FRAME_READ_BYTES]; /* the frame's bytes, which must be unchanged */
	__u32 segment_frames;		      /* frames of the segment that has no anchor yet */
	__u32 since_segment;		      /* native frames since the last segment ... */
	__u32 foldable; /* ... and whether all of them are the interpreter's own */
	__u32 user;	/* who answers for the thread: bpf/lib/user_share.bpf.h */
	__u32 stack_bytes;
	__u32 segment_count;
	__u32 return_count;
	__u32 is_unsure; /* a caller may be missing already */
	__u16 python_stored, native_stored;
	__u32 python_count, native_count;
	__u8 stop; /* why the walk stopped */
	__u8 py_stop;
	__u8 python;
	__u8 is_leaf; /* pc is exact, not a return address */
	__u8 bytes[];
};

#endif
