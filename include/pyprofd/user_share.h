/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What one user has taken of the ring `stacks`, of the tokens for incomplete stacks, of the slots
 * of threads, of the rows of the ledger and of the room for processes.  A user may take as much as
 * is still free: one who wants all gets half, and N greedy ones leave 1/(N + 1); of slots a third
 * and 2/(N + 2).  Root is bounded by the whole alone.  docs/design/shares.md,
 * 0031-shares-of-the-ring.md, 0033-shares-of-thread-slots.md. */
#ifndef PYPROFD_USER_SHARE_H
#define PYPROFD_USER_SHARE_H

#include <linux/types.h>
#include <pyprofd/wait.h>

/* Users whose ids are equal modulo this share one share. */
#define PP_USER_SHARES 1024U

struct pp_user_share {
	__u32 turn, bytes;   /* bytes sent since the agent began to empty the ring: ring_turn */
	__u32 round, tokens; /* tokens taken since the agent gave new ones: token_round */
	/* The same of events besides samples and waits: pp_config.tokens_kept. */
	__u32 modest_round, modest_tokens;
	/* What hits of probes have brought that is new: PP_PROBE_NEWS_MAX, token_round. */
	__u32 news_round, news;
	__s32 calls;		    /* open ones of probes: PP_PROBE_CALLS_USER */
	__u32 slots;		    /* of threads[] that the user's threads have */
	__u32 gpu_processes;	    /* the kernel side adds, the agent removes */
	__u32 gpu_waits;	    /* in `gpu_waits` */
	__u32 gpu_blocks;	    /* in cuda_blocks[]; the agent removes, too */
	__u32 cuda_rows;	    /* in `cuda_totals`: the kernel side adds, the agent removes */
	/* New rows of `cuda_processes`: PP_CUDA_PROCESSES_NEW, token_round. */
	__u32 cuda_round, cuda_processes;
	__u32 processes;	    /* in `processes`: the agent counts, the kernel side adds */
	__u32 ledger_turn, ledgers; /* rows of ledgers[] since it was read last: ledger_turn */
	__u64 cuda_walks_until_ns, gpu_blocks_until_ns; /* as in struct cuda_process */
	/* Of ended threads that found no row in ledgers[], until the agent takes it.  Its `user` is
	 * not set. */
	struct pp_ledger_sum rest;
};

/* What the hashes that name a user's stacks and code objects are mixed with.  A program chooses its
 * own frames and code, and the mixing can be undone: without what nobody knows it could give its
 * own code the name of another user's, and so its own function's name to that user's frames.
 * secret: pp_config.name_secret. */
static inline __u64 pp_user_key(__u32 user, __u64 secret)
{
	return ((__u64)user + 1) * secret;
}

#endif
