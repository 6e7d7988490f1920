/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The one value of map `config`, which the agent writes through mmap and every sample reads, and
 * what each user has taken. */
#ifndef PYPROFD_CONFIG_H
#define PYPROFD_CONFIG_H

#include <linux/types.h>
#include <pyprofd/wait.h>

enum pp_config_flag {
	PP_CONFIG_FILTER = 1,	    /* count only processes with PP_CONTEXT_MATCHES */
	PP_CONFIG_NO_KERNEL = 2,    /* no kernel stacks */
	PP_CONFIG_PAUSED = 8,	    /* --delay: nothing is counted yet */
	PP_CONFIG_BY_NAME = 16,	    /* after exec the old program's match does not count */
	PP_CONFIG_BLAME = 32,	    /* look at the GIL's holder when a wait for the GIL begins */
	PP_CONFIG_SEE_RUNNING = 64, /* samples also report threads that had no switch yet */
	PP_CONFIG_NMI = 128,	    /* samples may come while this CPU holds a map's lock */
};

/* The timer of samples on one CPU.  It is started anew at random times with a random period, so
 * that no program's own rhythm stays in step with it. */
struct pp_sample_timer {
	__u64 started_ns; /* CLOCK_MONOTONIC: events come each period from then on */
	__u32 period_ns;  /* 0: samples are not spaced by time */
	__u32 padding;
};

struct pp_config {
	__u32 flags;	  /* enum pp_config_flag */
	__u32 window;	  /* counts up */
	__u32 epoch;	  /* a stack last sent in an older epoch is sent again */
	__u32 code_epoch; /* code objects sent in an older one are sent again */
	/* incomplete stacks that may still be sent; the agent refills it */
	__s64 incomplete_tokens;
	__s64 tokens_kept; /* of these; for samples and waits alone */
	/* CLOCK_MONOTONIC, by bit 0 of the window: this window and the last */
	__u64 window_start_ns[2];
	__u64 wait_min_ns; /* shorter waits are in the ledger only */
	__u32 thread_mask; /* slots of threads[] - 1 */
	__u32 thread_seed; /* random: pp_thread_index() */
	/* what walks may cost in PP_BUDGET_PERIOD_NS */
	__u32 sample_budget_ns, switch_budget_ns, memory_budget_ns;
	__u32 memory_shift_min; /* one page in 1 << this at most is walked */
	__u32 cuda_walk_shift;	/* walks of CUDA's calls cost 1 << this of their budget */
	__u32 pad;
	/* By bit 0 of the window: the number of its open tables; its bit 0 says which of each
	 * two. */
	__u32 table[2];
	/* a row in a table from this number on tells that its stacks were sent */
	__u32 sent_from_table;
	/* counts changes of processes[], contexts[] and code_epoch, after each */
	__u32 process_changes;
	/* the last window of which the agent has read all slots; its counters close then */
	__u32 slots_read;
	/* struct pp_user_share: both count up, before the ring is emptied and after each refill */
	__u32 ring_turn, token_round;
	__s64 processes_left; /* room in `processes`, by the agent's last count */
	__u32 slots_taken;    /* of threads[] */
	/* The agent empties ledgers[], writes 0 and counts up; the kernel side counts rows. */
	__u32 ledgers_taken, ledger_turn;
	__u64 name_secret; /* random and odd: pp_user_key() */
	/* pyprofd/cuda.h: counts the times that all calls of CUDA began to be seen; 0: none are.
	 * gpu_is_blind: launches are not. */
	__u32 gpu_sight, gpu_is_blind;
	__u32 user_ranges; /* where the half of user_ranges[] begins that tells */
};

/* ---- shares ----
 * What one user has taken of the ring `stacks`, of the tokens for incomplete stacks, of the slots
 * of threads, of the rows of the ledger and of the room for processes.  A user may take as much as
 * is still free: one who wants all gets half, and N greedy ones leave 1/(N + 1); of slots a third
 * and 2/(N + 2).  Root is bounded by the whole alone.  docs/design/shares.md,
 * 0031-shares-of-the-ring.md, 0033-shares-of-thread-slots.md. */

/* Moves to other cgroups that a user makes and the agent follows, in one token_round. */
#define PP_MOVES_MAX 64U

/* A row is claimed by who first needs one, and is his alone until nothing is held in it.  All who
 * find no free row have the last one together. */
#define PP_USER_SHARES 1024U
#define PP_USER_SHARE_COMMON PP_USER_SHARES
#define PP_USER_SHARE_ROWS (PP_USER_SHARES + 1)

struct pp_user_share {
	__u32 who;	     /* 0: free */
	__u32 idle;	     /* the agent's: so many counts found nothing in it */
	__u32 turn, bytes;   /* bytes sent since the agent began to empty the ring: ring_turn */
	__u32 round, tokens; /* tokens taken since the agent gave new ones: token_round */
	/* The same of events besides samples and waits: pp_config.tokens_kept. */
	__u32 modest_round, modest_tokens;
	/* What hits of probes have brought that is new: PP_PROBE_NEWS_MAX, token_round. */
	__u32 news_round, news;
	__s32 calls;	     /* open ones of probes: PP_PROBE_CALLS_USER */
	__u32 slots;	     /* of threads[] that the user's threads have */
	__u32 gpu_processes; /* the kernel side adds, the agent removes */
	__u32 gpu_waits;     /* in `gpu_waits` */
	__u32 gpu_blocks;    /* in cuda_blocks[]; the agent removes, too */
	__u32 cuda_rows;     /* in `cuda_totals`: the kernel side adds, the agent removes */
	/* New rows of `cuda_processes`: PP_CUDA_PROCESSES_NEW, token_round. */
	__u32 cuda_round, cuda_processes;
	__u32 moves_round, moves;   /* of processes to other cgroups: PP_MOVES_MAX, token_round */
	__u32 processes;	    /* in `processes`: the agent counts, the kernel side adds */
	__u32 ledger_turn, ledgers; /* rows of ledgers[] since it was read last: ledger_turn */
	__u64 cuda_walks_until_ns, gpu_blocks_until_ns; /* as in struct cuda_process */
	/* Of ended threads that found no row in ledgers[], until the agent takes it.  Its `user` is
	 * not set. */
	struct pp_ledger_sum rest;
};

/* Ids that one user owns in /etc/subuid, both included: userspace/base/who_answers.h. */
#define PP_USER_RANGES 8192U
struct pp_user_range {
	__u32 first, last, owner;
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
