/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Every bound that both sides of the kernel boundary share.  A name ends in its unit. */
#ifndef PYPROFD_LIMITS_H
#define PYPROFD_LIMITS_H

/* One stack.  Of a deeper one we keep three quarters from the leaf and one quarter from the
 * root. */
#define PP_MAX_FRAMES 2048U	   /* stored user frames (Python + native) of one stack */
#define PP_MAX_PYTHON_FRAMES 1536U /* how many of these may be Python */
#define PP_ROOT_SHARE 4U	   /* 1/4 of a full area holds the frames nearest the root */
#define PP_MAX_SEGMENTS 2048U	   /* segments of Python frames, one per eval activation */
#define PP_MAX_STEPS 4096U	   /* walking steps, Python and native each */
#define PP_MAX_KERNEL_FRAMES 127U
/* The most time that the walks of one event may take, in elapsed time; the agent finishes what is
 * incomplete.  An interrupt is to end within 250 us, and a switch, which has its run queue locked,
 * within 100: some steps between two looks at the clock and the way out take the rest. */
#ifndef PP_SAMPLE_WALK_NS /* tests build with smaller ones */
#define PP_SAMPLE_WALK_NS 190000U
#endif
#ifndef PP_SWITCH_WALK_NS
#define PP_SWITCH_WALK_NS 40000U
#endif
/* Of that, what the user stack's walk has at a switch however long the kernel's own took. */
#define PP_SWITCH_USER_NS 25000U
#define PP_CLOCK_STEPS 32U     /* from one look at the clock to the next; a power of two */
#define PP_CLOCK_NEAR_NS 8000U /* so near to a switch's deadline each step looks */
/* For so long after the deadline a cut walk's stack may still be copied. */
#define PP_COPY_LATE_NS 15000U
#define PP_COPY_CLOCK_CHUNKS 4U /* from one look at the clock to the next */
/* Walks on a CPU have a budget a period, and save up this much at most. */
#define PP_BUDGET_PERIOD_NS 10000000U
#define PP_BUDGET_CREDIT_NS 2000000U
/* A walk that began earlier has ended after this time, with a margin. */
#define PP_SETTLE_NS 4000000U
#define PP_WALK_LEVELS 3U /* nested walks of one CPU: a task's, an interrupt's, an NMI's */

/* The interpreter's own call frames between two eval activations are folded when there are at most
 * this many (CPython <= 3.8 has 3 per level, 3.9 and 3.10 two). */
#define PP_MAX_FOLDED_FRAMES 3U

/* Stands for bpf_rdonly_cast() in the object: no helper has such a number.  The agent replaces the
 * call (attach/object_builds.h). */
#define PP_CALL_RDONLY_CAST 0x70000001

/* Mappings: sorted ranges (mappings and the gaps between them) in chunks. */
#define PP_MAP_CHUNK_RANGES 64U
#define PP_MAX_MAP_CHUNKS 64U /* of one process: 4,096 ranges */

/* Unwind rows. */
#define PP_PAGE_SHIFT 16U      /* a file's rows are found by 64 KiB pages of its addresses */
#define PP_ROW_SHARD_SHIFT 18U /* rows of one map value: 262,144, 1 MiB */
#define PP_ROW_SHARD_ROWS (1U << PP_ROW_SHARD_SHIFT)
#define PP_MAX_ROW_SHARDS 128U
#define PP_MAX_PAGES (1U << 17) /* 8 GiB of text on one host */
#define PP_MAX_RULES (1U << 15)

/* Python. */
#define PP_MAX_PYTHONS 256U	      /* distinct interpreter files on a host */
#define PP_MAX_EVAL_RANGES 4U	      /* parts of the eval function: hot, cold, ... */
#define PP_TSTATE_READ_BYTES 192U     /* the head of PyThreadState that one read covers */
#define PP_FRAME_READ_BYTES 128U      /* the head of a frame that one read covers */
#define PP_CODE_READ_BYTES 192U	      /* the head of PyCodeObject that one read covers */
#define PP_MAX_NAME_BYTES 512U	      /* co_qualname or co_name, and co_filename, each */
#define PP_MAX_TEXT_BYTES 4096U	      /* of pp_text_record; a power of two */
#define PP_MAX_LINE_TABLE_BYTES 2048U /* the agent reads the rest */

/* An incomplete stack: how much of the user stack is copied to the agent. */
#define PP_STACK_COPY_BYTES 16384U
#define PP_STACK_COPY_CHUNK_BYTES 1024U
/* Counters, texts and calls that stay open, which hits of probes may add for a user in one
 * pp_config.token_round: a program can hit its own probes a million times a second. */
#define PP_PROBE_NEWS_MAX 1024U
/* Calls that a user may have open, of which there is room for twice as many: the oldest of all go,
 * and one user's must not push out another's.  Calls may never end, by longjmp() for example, so
 * the agent forgives one in so many four times a second. */
#define PP_PROBE_CALLS_USER 4096
#define PP_PROBE_CALLS_MAX (2 * PP_PROBE_CALLS_USER)
#define PP_PROBE_CALLS_FADE 256
/* Return probes in one thread: kernel/events/uprobes.c, MAX_URETPROBE_DEPTH. */
#define PP_MAX_RETURNS 64U
#define PP_SEGMENT_COPY 128U /* stack anchors are copied too, this many at a time */

#define PP_COMM_BYTES 16U

#endif
