/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* User probes and tracepoints as both sides know them.  One program serves all sites: the site's
 * number comes as the attach cookie (Linux 5.15; before, from a stub: attach/probe_links.h), and
 * sites[number] says which probe it belongs to and where its arguments lie. */
#ifndef PYPROFD_PROBE_H
#define PYPROFD_PROBE_H

#include <linux/types.h>
#include <pyprofd/cuda.h>
#include <pyprofd/sample.h>

#define PP_PROBES_MAX 64U  /* that are asked for, our own included */
#define PP_SITES_MAX 4096U /* places of code at which they are attached */
#define PP_PROBE_ARGS 4U   /* further ones are not read */

/* Where an argument of a probe lies: System V ABI's <sys/sdt.h> notes, version 3 (systemtap's
 * stap-probe.h), or a calling convention.  Registers have their DWARF numbers, as PP_REG_SP. */
enum pp_arg_kind {
	PP_ARG_NONE,	 /* there is none, or it lies where we cannot read it */
	PP_ARG_CONSTANT, /* value */
	PP_ARG_REGISTER, /* base */
	PP_ARG_MEMORY,	 /* *(base + index * 2^scale + value) */
};
#define PP_ARG_NO_INDEX 0xffU
struct pp_probe_arg {
	__s64 value;
	__u8 kind;  /* enum pp_arg_kind */
	__u8 bytes; /* 1, 2, 4 or 8 */
	__u8 is_signed;
	__u8 base;  /* register */
	__u8 index; /* register, or PP_ARG_NO_INDEX */
	__u8 scale; /* 0 .. 3 */
	__u8 pad[2];
};
_Static_assert(sizeof(struct pp_probe_arg) == 16, "pp_probe_arg crosses the kernel boundary");

/* What a hit of a site does. */
enum pp_site_does {
	PP_SITE_COUNT = 1, /* takes the stack and counts */
	/* The two of a call whose time is measured: the stack is taken at its beginning. */
	PP_SITE_CALL_BEGIN,
	PP_SITE_CALL_END,
	PP_SITE_GC_BEGIN, /* argument 0: the generation */
	PP_SITE_GC_END,
	PP_SITE_IMPORT_BEGIN, /* argument 0: the module's name, a char * */
	PP_SITE_IMPORT_END,   /* the same */
	/* Of a function that `alloc` tells of: its beginning, its end; one that only frees. */
	PP_SITE_ALLOC_BEGIN,
	PP_SITE_ALLOC_END,
	PP_SITE_FREE,
	PP_SITE_CUDA, /* `cuda` says what; sites of that are in cuda_sites[] */
};

enum pp_mapping {
	PP_MAPPING_NONE,
	PP_MAPPING_BY_FLAGS, /* mmap(): parameter 4 says what is mapped */
	PP_MAPPING_OTHER,
};

/* A function that gives memory or takes it back.  Parameters count from 1 on; 0: there is none. */
struct pp_alloc_site {
	__u8 size[2];	/* parameters whose product is the block's size */
	__u8 frees;	/* parameter: address of a block that is given back */
	__u8 result_at; /* parameter: where the block's address is stored; 0: it is returned */
	__u8 function;	/* tells functions apart, as their beginnings and ends */
	__u8 mapping;	/* enum pp_mapping: allocators call it for themselves */
	__u8 pad[10];
};

/* sites[number] */
struct pp_site {
	__u16 does; /* enum pp_site_does; 0: a hit does nothing */
	/* Its probe is put on or taken off: ends may be hit, and beginnings not. */
	__u16 is_partial;
	__u32 probe; /* which of the probes; the detail of its counters (PP_KIND_PROBE) */
	union {
		struct pp_probe_arg arg[PP_PROBE_ARGS];
		struct pp_alloc_site alloc;
		struct pp_cuda_site cuda;
	};
};
_Static_assert(sizeof(struct pp_site) == 72, "pp_site crosses the kernel boundary");

/* gates[]: which hits of a probe are counted, and how often.  All zeros: all of them, once. */
struct pp_gate {
	__u64 from_ns, until_ns; /* CLOCK_MONOTONIC; until_ns 0: always */
	__u64 scale;		 /* how many hits one stands for, in units of 1 / 65,536 */
};
#define PP_GATE_SCALE_SHIFT 16U

/* hits[]: what a probe has cost.  One value a CPU. */
struct pp_hits {
	__u64 hits; /* of all sites of the probe */
	__u64 ns;   /* that our program took for them; the trap's own time is not in it */
};

/* payers[]: what a probe's hits took of a process, and how many of them are taken. */
struct pp_payer_key {
	__u32 tgid, probe;
};
struct pp_payer {
	__u32 hits; /* wraps around */
	__u32 gate; /* the chance of each, in units of 1 / 65,536; 0: all are */
	__u64 ns;   /* as above */
};
#define PP_PAYERS_MAX 1024U

/* ---- sampled allocations ----
 * Bytes are chosen, not calls: each allocated byte has the same small chance, one in
 * PP_ALLOC_MEAN_BYTES, and a block is sampled when one of its bytes is.  So a block of `size` bytes
 * is sampled with the probability p = 1 - exp(-size / mean), and counts as 1 / p blocks. */

#define PP_ALLOC_MEAN_SHIFT 19U
#define PP_ALLOC_MEAN_BYTES (1U << PP_ALLOC_MEAN_SHIFT)
/* A larger size is no size: the call fails. */
#define PP_ALLOC_SIZE_MAX (1ULL << 46)
/* From 16 means on all blocks are sampled but one in nine million. */
#define PP_ALLOC_SURE_BYTES (16ULL << PP_ALLOC_MEAN_SHIFT)

/* blocks[]: where a sampled block lies. */
struct pp_block_key {
	__u64 address;
	__u32 tgid;
	__u32 pad;
};
/* A sampled block that was not freed. */
struct pp_block {
	struct pp_count_key key; /* under which it was counted */
	__u64 objects, bytes;	 /* how many it stands for */
	__u64 since_ns;		 /* CLOCK_MONOTONIC */
};

/* debts[]: where free's probe is on for a part of the time, blocks are freed unseen.  A block that
 * is freed at the age L, in a time of length d in which both are seen, was seen by the chance of
 * 1 - L / d: for each byte that was seen so, L / (d - L) bytes were freed unseen.  So many of the
 * blocks with the same stack are not held any more. */
struct pp_debt_key {
	__u64 user_stack;
	__u32 tgid;
	__u32 pad;
};
#define PP_DEBTS_MAX 8192U

#define PP_ALLOC_ONE (1ULL << 31)
/* Returns 1 - exp(-size / mean) in units of 1 / 2^31, for sizes below PP_ALLOC_SURE_BYTES: a series
 * for at most one mean, and  1 - exp(-2x) = q (2 - q)  for q = 1 - exp(-x). */
static __inline__ __u64 pp_alloc_chance(__u64 size)
{
	__u64 x = size << (31 - PP_ALLOC_MEAN_SHIFT), q = PP_ALLOC_ONE;
	__u32 doublings = 0;

	for (__u32 i = 0; i < 4; i++)
		if (x > PP_ALLOC_ONE) {
			x >>= 1;
			doublings++;
		}
	for (__u32 i = 8; i > 1; i--)
		q = PP_ALLOC_ONE - (x / i * q >> 31);
	q = x * q >> 31;
	for (__u32 i = 0; i < 4; i++)
		if (i < doublings)
			q = q * (2 * PP_ALLOC_ONE - q) >> 31;
	return q;
}

/* Returns how many blocks one that was sampled stands for, in units of 1 / 65,536. */
static __inline__ __u64 pp_alloc_weight(__u64 size)
{
	__u64 chance;

	if (size >= PP_ALLOC_SURE_BYTES)
		return 1 << 16;
	chance = pp_alloc_chance(size);
	return chance ? (PP_ALLOC_ONE << 16) / chance : 0;
}

#endif
