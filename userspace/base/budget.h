/* SPDX-License-Identifier: BSD-2-Clause */
/* One accounting of what sources (probes, exact calls and lines) take of the time of programs, by
 * source, process and user, and one rule of who is thinned: what all sources of a process would
 * take if they stayed on is held against a bound of its time.  Sources that need little leave the
 * rest to the others, and those of a lower rank go first.  One link is there for all: a source is
 * on for what the process that allows least leaves it, but where several users need it, without
 * the one who allows least: his processes have hits left out instead, each alone, and pay
 * themselves for entering the kernel.  Where nothing can be thinned cost_ppm tells that it takes
 * too much.  One thread at a time.  Reads no clock. */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

#define BUDGET_SOURCES_MAX 64U
#define BUDGET_FULL 1000000U /* ppm of the time: a source stays on */
#define BUDGET_LEAST 10000U  /* an on and an off take as long as what they bring */

struct budget;

/* A source; all zeros but for the leader: one that is not there. */
struct budget_source {
	bool is_used;
	bool stays_on;	    /* its cost is told, and leaves less to the others */
	bool is_everybodys; /* all users hit it all the time: the one who allows least decides */
	uint32_t leader;    /* the source whose share it has; itself: it has one of its own */
	uint32_t rank;	    /* those of a higher one get what those of lower ones leave */
	uint32_t hit_ns;    /* what a hit costs, beyond the ns that are noted */
};

/* Whose time is taken. */
struct budget_payer {
	uint32_t tgid; /* 0: all programs, where nobody knows whose hits they are */
	uint32_t uid;
};

/* What a source took of a payer, since any moment before the first note. */
struct budget_use {
	uint32_t hits; /* wraps around */
	uint64_t ns;
};

/* As of the last tick. */
struct budget_now {
	uint64_t hits[BUDGET_SOURCES_MAX];	/* of all payers, since the start */
	uint32_t share_ppm[BUDGET_SOURCES_MAX]; /* of the time, in which a source is to be on */
	uint32_t least_ppm;			/* the smallest of these */
	uint32_t cost_ppm;			/* of a payer's own time, at most */
	struct budget_payer payer; /* the one that allows least, where not all stay on; or zeros */
	uint32_t need_ppm;	   /* what all sources would take of a CPU there */
};

/* bound_ppm: of a payer's own time.  Returns 0 or -ENOMEM. */
int budget_new(uint32_t bound_ppm, struct budget **ret_budget);
void budget_free(struct budget *budget);
DEFINE_OWNED(struct budget, budget)
/* What payers do not use of their bound is saved for so long: nothing is given up as long as some
 * of it is left.  Without it, who takes more than the bound in one tick is thinned. */
void budget_save(struct budget *budget, uint64_t save_ns);

/* Sets how a source is dealt with; it is on until a tick says otherwise. */
void budget_set(struct budget *budget, uint32_t source, const struct budget_source *how);

/* Adds to what a source took of a payer as of this tick; a payer's several threads add up.  The
 * first tick of a payer tells where its sums begin.  Returns 0 or -ENOMEM. */
int budget_note(struct budget *budget, const struct budget_payer *payer, uint32_t source,
		const struct budget_use *use);
/* Says how much time a payer had in this tick, with what the sources took of it, and the least that
 * counts as its own: a program that sleeps is not much later for what is a large part of next to
 * nothing.  Without it, that is the tick's time on one CPU.  Returns 0 or -ENOMEM. */
int budget_set_time(struct budget *budget, const struct budget_payer *payer, uint64_t time_ns,
		    uint64_t least_ns);
/* Returns the time of its own that a process has in a tick, at least: what it waited for a CPU is
 * no time of it, but a tenth is, however late it is. */
uint64_t budget_own_ns(uint64_t elapsed_ns, uint64_t late_ns);

/* Ends a tick: payers that nobody has noted in it are forgotten.  on_ns: for how long each source
 * has been on, since any moment before the first tick.  Returns whether a share has changed. */
bool budget_tick(struct budget *budget, uint64_t elapsed_ns,
		 const uint64_t on_ns[BUDGET_SOURCES_MAX]);
/* The same in two steps.  Returns whether a payer needs more than it allows. */
bool budget_see(struct budget *budget, uint64_t elapsed_ns,
		const uint64_t on_ns[BUDGET_SOURCES_MAX]);
/* Between them: a user's programs may hit a source at any time, so that it is to be on for him,
 * unless his own payers take too much.  Returns 0 or -ENOMEM. */
int budget_expect(struct budget *budget, uint32_t uid, uint32_t source);
bool budget_share(struct budget *budget);
/* Tells the payers of whose hits another part is to be taken than was told before; BUDGET_FULL: all
 * of them. */
typedef void budget_on_gate(void *context, const struct budget_payer *payer, uint32_t source,
			    uint32_t gate_ppm);
void budget_each_gate(struct budget *budget, budget_on_gate *on_gate, void *context);
const struct budget_now *budget_now(const struct budget *budget);

#endif
