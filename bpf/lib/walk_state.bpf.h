/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of one walk, in a slot of the scratch map: global BPF functions pass only the slot. */
#ifndef BPF_LIB_WALK_STATE_H
#define BPF_LIB_WALK_STATE_H

#include <linux/types.h>

#include <pyprofd/limits.h>
#include <pyprofd/process.h>
#include <pyprofd/sample.h>
#include <pyprofd/unwind.h>

/* What emit() sends lies in one piece: a header (of either kind, ending where the frames begin),
 * the frames, and for an incomplete unwind the anchors, replaced return addresses and the copy of
 * the stack behind them. */
#define SEGMENT_COPY_BYTES (PP_SEGMENT_COPY * sizeof(struct pp_segment))
#define RETURNS_COPY_BYTES (PP_MAX_RETURNS * sizeof(struct pp_return))
/* Deep stacks have many anchors and a small copy of the stack, others few anchors. */
#define WALK_TAIL_BYTES (2 * SEGMENT_COPY_BYTES + RETURNS_COPY_BYTES + PP_STACK_COPY_BYTES)
#define WALK_BODY_BYTES (PP_MAX_FRAMES * sizeof(struct pp_frame) + WALK_TAIL_BYTES)

struct walk_output {
	union {
		struct pp_incomplete_record incomplete;
		struct {
			__u8 unused[sizeof(struct pp_incomplete_record) -
				    sizeof(struct pp_stack_record)];
			struct pp_stack_record stack;
		};
	};
	union {
		struct pp_frame frame[PP_MAX_FRAMES];
		__u8 body[WALK_BODY_BYTES];
	};
};
_Static_assert(sizeof(struct pp_incomplete_record) % 8 == 0, "frames follow at once");

#define CODE_BODY_BYTES 8192U /* a power of two above two names and a line table */
_Static_assert(2 * PP_MAX_NAME_BYTES + PP_MAX_LINE_TABLE_BYTES <= CODE_BODY_BYTES / 2, "room");

struct code_output {
	struct pp_code_record record;
	__u8 body[CODE_BODY_BYTES];
};

/* The result of looking up an address in a map set.  It outlives the walk, as the answer never
 * changes, and return addresses repeat from sample to sample and, in recursion, from level to
 * level. */
#define WALK_SITES 256U
struct walk_site {
	__u64 pc;
	__u64 address; /* in the file */
	__u32 map_version;
	__u32 file;
	struct pp_rule rule;
	__u32 is_plain; /* the rule asks for sp or fp and the stack alone */
} __attribute__((aligned(64))); /* one cache line: samples find the caches cold */

#define WALK_WINDOW_BYTES 512U
#define WALK_FRAMES_BYTES 1024U

/* Code objects seen lately, also by earlier walks.  Two of the object's own pointers, to its line
 * table and the field before it, guard against another object at the same address. */
#define WALK_CODES 64U
struct walk_code_memo {
	__u64 address;
	__u64 id;
	__u64 guard[2];
	__u64 walk; /* started_ns of the walk that checked the guard last */
	__u32 code_space;
	__u32 pad;
} __attribute__((aligned(64)));

/* The search for the thread's state among those of several interpreters. */
#define WALK_STATES 8U
struct walk_states {
	__u64 interp, next; /* the state to look at */
	__u64 found, anchor; /* what the C stack shows, and where */
	__u64 mine;	    /* that this thread made, and that runs something */
	__u64 lowest, highest;
	__u64 state[WALK_STATES]; /* <= 3.9: those that run something */
	__u32 count;
};

struct pp_walk {
	/* who */
	struct pp_process_id id;
	__u32 process_changes; /* of struct pp_config, when `id` and `context` were looked up */
	__u32 is_identified;   /* there they were: they hold while nothing changes */
	__u32 is_gpu;	       /* the process was in gpu_processes[] then */
	__u32 tid;
	__u32 count_flags;
	__u64 started_ns;
	__u64 deadline_ns; /* of all walks of the event */
	__u64 weight;
	__u64 detail; /* of the counter, as its kind */
	__u32 kind;   /* enum pp_count_kind */
	struct pp_process_context context;
	__u64 thread_pointer;
	__u64 zero; /* always 0, which the verifier cannot know */

	struct pp_range range; /* that was found last */

	/* native: the frame to go on with */
	__u64 pc, sp, fp;
	__u64 registers[PP_REG_COUNT];
	/* pp_user_key() of who answers for the process, and the credentials that say who that is */
	__u64 user_key, cred;
	__u32 user;
	__u64 hash;
	__u64 kernel_hash;
	__u64 callers; /* a hash of what lies above where an incomplete unwind stopped */
	__u32 is_leaf;
	__u32 has_user;
	/* of a map, below this walk: it updates no map that others update too */
	__u32 may_hold_lock;
	/* of an event besides samples and waits, which leave it half of the tokens */
	__u32 is_modest;
	__u32 is_exec;	    /* inside of execve(): its stack may be gone */
	__u32 is_in_kernel; /* the registers are those with which the thread entered the kernel */
	__u32 by_frame_pointer; /* the last step was one */
	__u32 is_resumable; /* stuck, and the agent may find where to go on */
	__u32 stop;
	__u32 native_stored, native_count, native_room;
	__u32 since_segment; /* native frames pushed since the last Python segment */
	__u32 foldable;	     /* all of them the interpreter's own, and there was a segment before */

	/* Python: the frame to go on with */
	__u64 thread_state;
	struct walk_states states;
	__u64 python_frame, cframe;
	__u32 py_stop;
	__u32 python_stored, python_count;
	__u32 segment_frames; /* of the open segment */
	__u32 segment_count, segment_next;
	__u32 steps;
	__u32 kernel_bytes;
	/* of the record that is being made: frames, anchors, the copy of the stack */
	__u32 body_bytes;
	__u32 is_urgent;  /* at a switch or wake-up: slow steps look at the clock */
	__u64 code_address, code_id;
	__u64 guard[2]; /* as struct walk_code_memo's, read for a comparison */

	union {
		__u8 state[PP_TSTATE_READ_BYTES];
		__u64 saved[34]; /* user registers, before Python's walk: aarch64 has most */
	};
	/* Python frames: a window of the data stack, then room for one frame that lies
	 * elsewhere. */
	__u64 frames_start, frames_bytes; /* of the window; 0 bytes: nothing is there */
	__u64 frame_elsewhere;		  /* address of the last one of these */
	__u8 bytes[WALK_FRAMES_BYTES + PP_FRAME_READ_BYTES];
	__u8 code[PP_CODE_READ_BYTES];
	__u8 string[64];

	struct {
		struct pp_kernel_record record;
		__u64 address[PP_MAX_KERNEL_FRAMES + 1];
	} kernel;
	__u64 window_start, window_bytes; /* address of window[], and what is there of it */
	__u8 window[WALK_WINDOW_BYTES]; /* of the user stack: one read for several frames */
	struct walk_site site[WALK_SITES];
	struct walk_code_memo memo[WALK_CODES];
	struct pp_segment segment[PP_MAX_SEGMENTS + PP_SEGMENT_COPY]; /* what is copied too much */
	struct code_output code_out;
	struct walk_output out;
};

#endif
