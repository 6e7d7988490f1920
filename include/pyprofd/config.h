/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The one value of map `config`: the agent writes it through mmap, every sample reads it. */
#ifndef PYPROFD_CONFIG_H
#define PYPROFD_CONFIG_H

#include <linux/types.h>

enum pp_config_flag {
	PP_CONFIG_FILTER = 1,	    /* count only processes with PP_CONTEXT_MATCHES */
	PP_CONFIG_NO_KERNEL = 2,    /* no kernel stacks */
	PP_CONFIG_PAUSED = 8,	    /* --delay: nothing is counted yet */
	PP_CONFIG_BY_NAME = 16,	    /* after exec the old program's match does not count */
	PP_CONFIG_BLAME = 32,	    /* look at the GIL's holder when a wait for the GIL begins */
	PP_CONFIG_SEE_RUNNING = 64, /* samples also report threads that had no switch yet */
	PP_CONFIG_NMI = 128,	    /* samples may come while this CPU holds a map's lock */
};

struct pp_config {
	__u32 flags;	   /* enum pp_config_flag */
	__u32 window;	   /* counts up */
	__u32 epoch;	   /* a stack last sent in an older epoch is sent again */
	__u32 code_epoch;  /* code objects sent in an older one are sent again */
	/* incomplete stacks that may still be sent; the agent refills it */
	__s64 incomplete_tokens;
	__s64 tokens_kept; /* of these; for samples and waits alone */
	/* CLOCK_MONOTONIC, by bit 0 of the window: this window and the last */
	__u64 window_start_ns[2];
	__u64 wait_min_ns;	  /* shorter waits are in the ledger only */
	__u32 thread_mask;	  /* slots of threads[] - 1 */
	__u32 thread_seed;	  /* random: pp_thread_index() */
	__u32 sample_period_ns; /* from one sample to the next; 0: they are not spaced by time */
	/* what walks may cost in PP_BUDGET_PERIOD_NS */
	__u32 sample_budget_ns, switch_budget_ns, memory_budget_ns;
	__u32 memory_shift_min; /* one page in 1 << this at most is walked */
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
	__u32 slots_taken; /* of threads[] */
	/* The agent empties ledgers[], writes 0 and counts up; the kernel side counts rows. */
	__u32 ledgers_taken, ledger_turn;
	__u64 name_secret; /* random and odd: pp_user_key() */
	/* pyprofd/gpu.h: counts the times that all calls of CUDA began to be seen; 0: none are.
	 * gpu_is_blind: launches are not. */
	__u32 gpu_sight, gpu_is_blind;
};

#endif
