/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Native unwind tables as the kernel side reads them.  The agent writes them through mmap.
 *
 *   address -> map set (pp_map_set)  -> file id, page0, bias
 *           -> pages[page0 + (address - bias >> 16)] -> where the page's rows are
 *           -> rows, sorted by the low 16 bits       -> rule id
 *           -> rules[rule id]                        -> how to find the caller
 * Source of the rules: System V psABI x86-64 3.7 (stack unwinding), DWARF 5 section 6.4. */
#ifndef PYPROFD_UNWIND_H
#define PYPROFD_UNWIND_H

#include <linux/types.h>
#include <pyprofd/limits.h>

/* A row holds from its address to that of the next row.  The first row of a page has pc_low 0 (the
 * rule that holds there), so a search inside a page always finds a row. */
#define PP_ROW(pc_low, rule) ((__u32)(__u16)(pc_low) | (__u32)(rule) << 16)
#define PP_ROW_PC_LOW(row) ((__u16)(row))
#define PP_ROW_RULE(row) ((row) >> 16)

/* pages[]: one u64, written in one store.  0: not loaded.  All rows of a page are in one shard. */
#define PP_PAGE(row_start, row_count, flags)                                                       \
	((__u64)(row_start) | (__u64)(row_count) << 32 | (__u64)(flags) << 48)
#define PP_PAGE_ROW_START(page) ((__u32)(page))
#define PP_PAGE_ROW_COUNT(page) ((__u16)((page) >> 32))
#define PP_PAGE_FLAGS(page) ((__u16)((page) >> 48))
enum pp_page_flag {
	PP_PAGE_LOADED = 1,
	/* Added by the kernel side (5.10 has no atomic or), cleared by the agent: second-chance
	 * eviction.  When several CPUs add it at once the sum carries into the bits above, which
	 * mean the same. */
	PP_PAGE_USED = 2,
	PP_PAGE_USED_MASK = 0xfffe,
};

enum pp_rule_kind {
	PP_RULE_NO_INFO = 0, /* no FDE covers this address: a checked frame-pointer step */
	PP_RULE_STOP,	     /* the outermost frame: _start, clone */
	PP_RULE_CFA_SP,	     /* CFA = sp + cfa_offset */
	PP_RULE_CFA_FP,	     /* CFA = fp + cfa_offset */
	/* CFA = *(cfa_register + cfa_offset) + cfa_add; fp or sp, or leaf only */
	PP_RULE_CFA_DEREF,
	PP_RULE_CFA_REGISTER, /* CFA = cfa_register + cfa_offset, any register: at the leaf only */
	PP_RULE_PLT,	      /* CFA = sp + 8 + ((pc & 15) >= cfa_offset) * 8 */
	PP_RULE_SIGNAL,	      /* a signal frame: all registers are saved on the stack */
};

/* Where the caller's frame pointer is (x86-64 rbp, aarch64 x29). */
enum pp_fp_kind {
	PP_FP_SAME = 0,
	PP_FP_AT_CFA, /* *(CFA + fp_offset) */
	PP_FP_AT_FP,  /* *(fp + fp_offset): DRAP frames */
	PP_FP_UNDEFINED,
};

/* Where the return address is. */
enum pp_ra_kind {
	PP_RA_AT_CFA = 0, /* *(CFA + ra_offset); x86-64: always CFA - 8 */
	/* at the leaf only; aarch64: still in LR; x86-64: in register ra_offset */
	PP_RA_REGISTER,
	PP_RA_UNDEFINED, /* the outermost frame */
};

struct pp_rule {
	__u8 kind;	   /* enum pp_rule_kind */
	__u8 cfa_register; /* DWARF number */
	__u8 fp_kind;	   /* enum pp_fp_kind */
	__u8 ra_kind;	   /* enum pp_ra_kind */
	__s32 cfa_offset;  /* bytes */
	__s32 fp_offset;   /* bytes */
	__s16 ra_offset;   /* bytes; x86-64, PP_RA_REGISTER: DWARF number */
	__s16 cfa_add;	   /* bytes, PP_RULE_CFA_DEREF only */
};
_Static_assert(sizeof(struct pp_rule) == 16, "pp_rule crosses the kernel boundary");

/* DWARF register numbers: System V psABI x86-64 figure 3.36; AAPCS64 DWARF table 1. */
#if defined(__aarch64__) || defined(__TARGET_ARCH_arm64)
#define PP_REG_FP 29
#define PP_REG_SP 31
#define PP_REG_RA 30
#define PP_REG_COUNT 32
#else
#define PP_REG_FP 6
#define PP_REG_SP 7
#define PP_REG_RA 16
#define PP_REG_COUNT 16
#endif

/* Code at the beginning of a stack seldom has unwind information: the dynamic linker's _start, all
 * of musl.  So a walk is taken to be at the root when it is stuck this near to the first word that
 * the kernel put onto a process's stack or, in a caller, to the thread's block, which libraries put
 * at the end of its stack.  The linker's own code has its frame at that word; musl's needs 48 bytes
 * below it, in a thread 88. */
#define PP_ROOT_LEAF_BYTES 32U
#define PP_ROOT_BYTES 256U
#define PP_ROOT_THREAD_BYTES 1024U
static inline int pp_is_root(__u64 sp, int is_leaf, __u64 stack_start, __u64 thread_pointer)
{
	if (is_leaf)
		return stack_start - sp <= PP_ROOT_LEAF_BYTES;
	return stack_start - sp <= PP_ROOT_BYTES || thread_pointer - sp <= PP_ROOT_THREAD_BYTES;
}

/* A word of the stack is a return address only when a call is in front of it.  code: the 7 bytes in
 * front, lowest first.  Sources: Intel 64 SDM volume 2, CALL; Arm ARM, BL and BLR. */
#define PP_CALL_BYTES 7U
static inline int pp_is_call(__u64 code)
{
#if defined(__aarch64__) || defined(__TARGET_ARCH_arm64)
	const __u32 word = (__u32)(code >> 24);

	return (word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000;
#else
	/* e8 with a distance, or ff /2 with an operand of 1, 2, 3, 5 or 6 bytes. */
	return (code >> 16 & 0xff) == 0xe8 || (code >> 40 & 0xf8ff) == 0xd0ff ||
	       (code >> 40 & 0xf8ff) == 0x10ff || (code >> 32 & 0xf8ff) == 0x50ff ||
	       (code >> 32 & 0xffff) == 0x14ff || (code >> 24 & 0xffff) == 0x54ff ||
	       (code >> 8 & 0xffff) == 0x15ff || (code >> 8 & 0xf8ff) == 0x90ff ||
	       (code & 0xffff) == 0x94ff || (code & 0xffff) == 0x14ff;
#endif
}

/* Returns what the call in front of a return address calls; 0: that is not in the code. */
static inline __u64 pp_call_target(__u64 code, __u64 return_address)
{
#if !defined(__aarch64__) && !defined(__TARGET_ARCH_arm64)
	if ((code >> 16 & 0xff) == 0xe8)
		return return_address + (__u64)(__s64)(__s32)(code >> 24);
#else
	(void)code;
	(void)return_address;
#endif
	return 0;
}

/* A leaf without unwind information may have no frame yet, or none at all: then the frame pointer
 * is its caller's, and following it would skip the caller. */
enum pp_leaf {
	PP_LEAF_FRAMED, /* the frame pointer is its own, as far as one can see */
	PP_LEAF_BARE,	/* the return address is at sp */
	PP_LEAF_PUSHED, /* the caller's frame pointer is at sp, the return address above it */
	PP_LEAF_UNSURE, /* it may be BARE or FRAMED: a caller may be missing */
};
#define PP_LEAF_BYTES 4U
#define PP_LEAF_NEAR_BYTES 65536U /* a function begins within this in front of its code */

/* Returns what the instruction at the leaf says, whose first 4 bytes these are; FRAMED: nothing. */
static inline enum pp_leaf pp_leaf_by_code(__u32 code)
{
#if !defined(__aarch64__) && !defined(__TARGET_ARCH_arm64)
	/* ret, ret with a number, rep ret; push %rbp; endbr64, at which functions begin */
	if ((code & 0xff) == 0xc3 || (code & 0xff) == 0xc2 || (code & 0xffff) == 0xc3f3 ||
	    (code & 0xff) == 0x55 || code == 0xfa1e0ff3)
		return PP_LEAF_BARE;
	/* mov %rsp,%rbp, in both encodings */
	if ((code & 0xffffff) == 0xe58948 || (code & 0xffffff) == 0xec8b48)
		return PP_LEAF_PUSHED;
#else
	(void)code;
#endif
	return PP_LEAF_FRAMED;
}

/* Returns where a function begins, if the leaf at pc may be in it; else 0. */
static inline __u64 pp_leaf_begin(__u64 call_target, __u64 pc)
{
	return pc - call_target < PP_LEAF_NEAR_BYTES ? call_target : 0;
}

/* A walk that changes stacks (cgo, split stacks) more often than this goes in circles. */
#define PP_MAX_STACK_CHANGES 8U

/* File ids that name no file. */
enum pp_file_id {
	PP_FILE_NONE = 0,      /* a gap between mappings */
	PP_FILE_ANONYMOUS = 1, /* executable memory without a file: JIT code, trampolines */
	PP_FILE_FIRST = 16,
};

/* One executable range: [start, next range's start).  Gaps are ranges with PP_FILE_NONE. */
struct pp_range {
	__u32 file;  /* file id */
	__u32 page0; /* pages[] index of the file's address 0 (wraps modulo 2^32) */
	__u64 bias;  /* memory address - address in the file (ELF virtual address) */
};

/* A process's executable ranges, sorted by start, in consecutive chunks of map_sets[]: a plain
 * array that the agent writes through mmap (updating a map in a map would wait for an RCU grace
 * period, 10-30 ms).  A set is written once and replaced whole.  The first range starts at 0 and is
 * a gap; unused starts are ~0. */
struct pp_map_chunk {
	__u64 start[PP_MAP_CHUNK_RANGES];
	struct pp_range range[PP_MAP_CHUNK_RANGES];
};

#endif
