/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/budget.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"

#define PPM 1000000.0
/* From one tick to the next a share grows by no more than this, and what was needed counts for
 * less: hits come in bursts. */
#define GROWTH 2U
#define FADES 0.8
/* What sources that stay on leave to the others at least, of the bound. */
#define LEFT 0.1
#define LATE_PART 10U
#define RANKS 2U
#define NEED_LEAST 1e-9 /* of a CPU: a payer that needs less has not hit the source for long */
/* Who has used up what was saved is held to the bound until so much is saved again. */
#define SAVED_AGAIN 0.5

struct row {
	struct budget_use now, before;
	uint32_t gate_ppm, told_ppm; /* of the hits, 0: all; as was told last */
	double allowed;		     /* what the bound allows of the source in this tick */
	/* ns since the source was on last: a link is taken off later than its hits count. */
	double pending_ns;
	double need; /* of a CPU, if it stayed on: the largest of the last ticks */
};

struct payer {
	uint32_t tgid; /* key */
	uint32_t uid;
	bool is_seen, is_old;	/* in this tick; in an earlier one */
	bool has_time, is_over; /* nothing is saved */
	uint64_t time_ns, least_ns;
	double saved_ns;
	struct row row[BUDGET_SOURCES_MAX];
	UT_hash_handle hh;
};

/* What those of a user's payers that need a source allow of it. */
struct user {
	uint32_t uid; /* key */
	bool needs[BUDGET_SOURCES_MAX];
	double share[BUDGET_SOURCES_MAX]; /* the least of these */
	UT_hash_handle hh;
};

/* One tick. */
struct tick {
	uint64_t elapsed_ns;
	uint64_t on_ns[BUDGET_SOURCES_MAX];	 /* in which a source was on */
	double share[BUDGET_SOURCES_MAX], least; /* what the payers so far leave */
	bool is_anothers[BUDGET_SOURCES_MAX];	 /* a user needs it whose payers take little */
};

struct budget {
	uint32_t bound_ppm;
	struct tick tick;
	uint64_t save_ns;
	uint32_t count; /* 1 + the last source */
	struct budget_source source[BUDGET_SOURCES_MAX];
	uint64_t on_ns[BUDGET_SOURCES_MAX]; /* as of the last tick */
	struct payer *payer;		    /* owned */
	struct user *user;		    /* owned; of this tick */
	struct budget_now now;
};

static uint32_t ppm_of(double part)
{
	return part * PPM < UINT32_MAX ? (uint32_t)(part * PPM) : UINT32_MAX;
}

int budget_new(uint32_t bound_ppm, struct budget **ret_budget)
{
	struct budget *budget = calloc(1, sizeof(*budget));

	if (!budget)
		return -ENOMEM;
	budget->bound_ppm = bound_ppm;
	budget->now.least_ppm = BUDGET_FULL;
	for (uint32_t i = 0; i < BUDGET_SOURCES_MAX; i++)
		budget->now.share_ppm[i] = BUDGET_FULL;
	*ret_budget = budget;
	return 0;
}

void budget_free(struct budget *budget)
{
	if (!budget)
		return;
	HASH_DROP_ALL(budget->payer);
	HASH_DROP_ALL(budget->user);
	free(budget);
}

void budget_save(struct budget *budget, uint64_t save_ns)
{
	budget->save_ns = save_ns;
}

void budget_set(struct budget *budget, uint32_t source, const struct budget_source *how)
{
	budget->source[source] = *how;
	if (source >= budget->count)
		budget->count = source + 1;
}

static struct payer *payer_of(struct budget *budget, const struct budget_payer *of)
{
	struct payer *payer = HASH_GET(budget->payer, tgid, of->tgid);

	if (!payer)
		return NULL;
	payer->uid = of->uid;
	payer->is_seen = true;
	return payer;
}

int budget_note(struct budget *budget, const struct budget_payer *of, uint32_t source,
		const struct budget_use *use)
{
	struct payer *payer = payer_of(budget, of);

	if (!payer)
		return -ENOMEM;
	payer->row[source].now.hits += use->hits;
	payer->row[source].now.ns += use->ns;
	return 0;
}

int budget_set_time(struct budget *budget, const struct budget_payer *of, uint64_t time_ns,
		    uint64_t least_ns)
{
	struct payer *payer = payer_of(budget, of);

	if (!payer)
		return -ENOMEM;
	payer->has_time = true;
	payer->time_ns = time_ns;
	payer->least_ns = least_ns;
	return 0;
}

uint64_t budget_own_ns(uint64_t elapsed_ns, uint64_t late_ns)
{
	const uint64_t most_ns = elapsed_ns - elapsed_ns / LATE_PART;

	return elapsed_ns - (late_ns < most_ns ? late_ns : most_ns);
}

/* ---- a tick ---- */

/* Returns what a source took in this tick, and adds what it would have if no hit had been left out.
 * Threads end, and the kernel side forgets the oldest of very many: sums that went down say
 * nothing. */
static double take_spent(struct budget *budget, struct payer *payer, uint32_t source,
			 double *whole_ns)
{
	struct row *row = &payer->row[source];
	const int32_t hits = (int32_t)(row->now.hits - row->before.hits);
	const int64_t ns = (int64_t)(row->now.ns - row->before.ns);
	double spent = 0;

	if (payer->is_old && hits > 0) {
		budget->now.hits[source] += (uint32_t)hits;
		spent += (double)hits * budget->source[source].hit_ns;
	}
	*whole_ns += spent;
	if (payer->is_old && ns > 0) {
		*whole_ns += (double)ns * PPM / (row->gate_ppm ?: BUDGET_FULL);
		spent += (double)ns;
	}
	row->before = row->now;
	row->now = (struct budget_use){};
	return spent;
}

/* Adds what the sources of a payer would need of a CPU if they stayed on, by leader, and returns
 * what they took, in ns. */
static double take_needs(struct budget *budget, struct payer *payer, const struct tick *tick,
			 double need[BUDGET_SOURCES_MAX], double *fixed)
{
	double spent_ns = 0, fresh[BUDGET_SOURCES_MAX] = {};
	bool was_on[BUDGET_SOURCES_MAX] = {};

	for (uint32_t i = 0; i < budget->count; i++) {
		const struct budget_source *source = &budget->source[i];
		struct row *row = &payer->row[i];
		double whole_ns = 0;
		const double ns = take_spent(budget, payer, i, &whole_ns);

		if (!source->is_used)
			continue;
		spent_ns += ns;
		row->pending_ns += whole_ns;
		if (!tick->on_ns[i])
			continue;
		if (source->stays_on)
			*fixed += row->pending_ns / (double)tick->on_ns[i];
		else
			fresh[source->leader] += row->pending_ns / (double)tick->on_ns[i];
		was_on[source->leader] = true;
		row->pending_ns = 0;
	}
	for (uint32_t i = 0; i < budget->count; i++) {
		struct row *row = &payer->row[i];

		if (was_on[i])
			row->need *= FADES;
		if (fresh[i] > row->need)
			row->need = fresh[i];
		need[i] = row->need;
	}
	return spent_ns;
}

/* Shares the room out among the sources of a rank: what needs less than an equal part leaves the
 * rest to the others.  Returns the part of those that need more, and lessens the room. */
static double equal_part(const struct budget *budget, uint32_t rank,
			 const double need[BUDGET_SOURCES_MAX], double *room)
{
	bool is_served[BUDGET_SOURCES_MAX] = {}, has_changed = true;
	uint32_t left = 0;
	double part = *room;

	for (uint32_t i = 0; i < budget->count; i++)
		left += budget->source[i].rank == rank && need[i] > 0;
	while (left && has_changed) {
		has_changed = false;
		part = *room / left;
		for (uint32_t i = 0; i < budget->count; i++) {
			if (budget->source[i].rank != rank || is_served[i] || need[i] <= 0 ||
			    need[i] > part)
				continue;
			is_served[i] = has_changed = true;
			*room -= need[i];
			left--;
		}
	}
	if (left)
		*room = 0;
	return part;
}

static void lessen(struct user *user, uint32_t source, double allowed)
{
	if (!user->needs[source] || allowed < user->share[source])
		user->share[source] = allowed;
	user->needs[source] = true;
}

/* Lessens what a payer's user has of each source.  Without memory for that he is all users. */
static void allow(struct budget *budget, const struct payer *payer,
		  const double need[BUDGET_SOURCES_MAX], struct tick *tick)
{
	struct user *user = HASH_GET(budget->user, uid, payer->uid);

	for (uint32_t i = 0; i < budget->count; i++) {
		const double allowed = payer->row[i].allowed;

		if (need[i] < NEED_LEAST)
			continue;
		if (user)
			lessen(user, i, allowed);
		else if (allowed < tick->share[i])
			tick->share[i] = allowed;
	}
}

int budget_expect(struct budget *budget, uint32_t uid, uint32_t source)
{
	struct user *user = HASH_GET(budget->user, uid, uid);

	if (user)
		lessen(user, source, 1);
	return user ? 0 : -ENOMEM;
}

static void bound_by(struct budget *budget, struct payer *payer,
		     const double need[BUDGET_SOURCES_MAX], double own, double fixed,
		     struct tick *tick)
{
	const double bound = payer->is_over ? own * budget->bound_ppm / PPM : HUGE_VAL;
	double room = bound - fixed > bound * LEFT ? bound - fixed : bound * LEFT, sum = fixed;
	bool is_worst = false;

	for (uint32_t rank = 0; rank < RANKS; rank++) {
		const double part = equal_part(budget, rank, need, &room);

		for (uint32_t i = 0; i < budget->count; i++) {
			if (budget->source[i].rank != rank)
				continue;
			sum += need[i];
			payer->row[i].allowed = need[i] <= part ? 1 : part / need[i];
			is_worst |= payer->row[i].allowed < tick->least;
			if (payer->row[i].allowed < tick->least)
				tick->least = payer->row[i].allowed;
		}
	}
	allow(budget, payer, need, tick);
	if (!is_worst)
		return;
	budget->now.payer = (struct budget_payer){.tgid = payer->tgid, .uid = payer->uid};
	budget->now.need_ppm = ppm_of(sum);
}

/* Notes what a payer has left of its bound. */
static void save(const struct budget *budget, struct payer *payer, double own_ns, double spent_ns)
{
	const double part = budget->bound_ppm / PPM, most_ns = (double)budget->save_ns * part;

	payer->saved_ns = payer->is_old ? payer->saved_ns + own_ns * part - spent_ns : most_ns;
	if (payer->saved_ns > most_ns)
		payer->saved_ns = most_ns;
	if (payer->saved_ns < 0)
		payer->saved_ns = 0;
	if (payer->saved_ns <= 0)
		payer->is_over = true;
	else if (payer->saved_ns > most_ns * SAVED_AGAIN)
		payer->is_over = false;
}

static void see_payer(struct budget *budget, struct payer *payer, struct tick *tick)
{
	const double elapsed_ns = (double)tick->elapsed_ns;
	double need[BUDGET_SOURCES_MAX], fixed = 0, own_ns = elapsed_ns, spent_ns;
	uint32_t cost_ppm;

	spent_ns = take_needs(budget, payer, tick, need, &fixed);
	if (payer->has_time) {
		own_ns = (double)payer->time_ns - spent_ns;
		if (own_ns < (double)payer->least_ns)
			own_ns = (double)payer->least_ns;
	}
	cost_ppm = spent_ns <= 0 ? 0 : own_ns > 0 ? ppm_of(spent_ns / own_ns) : UINT32_MAX;
	if (cost_ppm > budget->now.cost_ppm)
		budget->now.cost_ppm = cost_ppm;
	save(budget, payer, own_ns, spent_ns);
	bound_by(budget, payer, need, own_ns / elapsed_ns, fixed, tick);
	payer->is_old = true;
	payer->is_seen = payer->has_time = false;
}

static uint32_t next_share(uint32_t before, double share)
{
	uint32_t now = (uint32_t)(share * PPM);

	if (now > before * GROWTH)
		now = before * GROWTH;
	if (now < BUDGET_LEAST)
		now = BUDGET_LEAST;
	return now < BUDGET_FULL ? now : BUDGET_FULL;
}

/* Returns what the users allow of a source: the least, but of several of them without the one who
 * allows least.  No user: nothing is asked for. */
static double merge_users(const struct budget *budget, uint32_t source, uint32_t *ret_users)
{
	double least = 1, next = 1;

	*ret_users = 0;
	for (const struct user *user = budget->user; user; user = user->hh.next) {
		if (!user->needs[source])
			continue;
		++*ret_users;
		if (user->share[source] < least) {
			next = least;
			least = user->share[source];
		} else if (user->share[source] < next) {
			next = user->share[source];
		}
	}
	return *ret_users > 1 && !budget->source[source].is_everybodys ? next : least;
}

/* Who hits a source without pause takes it from no other user. */
static void merge(struct budget *budget, struct tick *tick)
{
	for (uint32_t i = 0; i < budget->count; i++) {
		uint32_t users;
		const double share = merge_users(budget, i, &users);

		if (share < tick->share[i])
			tick->share[i] = share;
		tick->is_anothers[i] = users > 1 && share >= 1;
	}
	HASH_DROP_ALL(budget->user);
}

/* A payer that allows less of a source than it is on has the rest of its hits left out. */
static void set_gates(struct budget *budget)
{
	for (struct payer *payer = budget->payer; payer; payer = payer->hh.next)
		for (uint32_t i = 0; i < budget->count; i++) {
			const struct budget_source *source = &budget->source[i];
			struct row *row = &payer->row[i];
			const double share = budget->now.share_ppm[i] / PPM;

			if (source->is_used && !source->stays_on)
				row->gate_ppm =
					next_share(row->gate_ppm ?: BUDGET_FULL,
						   payer->row[source->leader].allowed / share);
		}
}

static bool set_shares(struct budget *budget, const struct tick *tick)
{
	struct budget_now *now = &budget->now;
	bool has_changed = false;

	now->least_ppm = BUDGET_FULL;
	for (uint32_t i = 0; i < budget->count; i++) {
		const struct budget_source *source = &budget->source[i];
		const uint32_t before = now->share_ppm[i];

		if (!source->is_used || source->stays_on)
			continue;
		now->share_ppm[i] = tick->is_anothers[source->leader]
					    ? BUDGET_FULL
					    : next_share(before, tick->share[source->leader]);
		has_changed |= now->share_ppm[i] != before;
		if (now->share_ppm[i] < now->least_ppm)
			now->least_ppm = now->share_ppm[i];
	}
	return has_changed;
}

bool budget_see(struct budget *budget, uint64_t elapsed_ns,
		const uint64_t on_ns[BUDGET_SOURCES_MAX])
{
	struct tick *tick = &budget->tick;
	struct payer *payer, *next;

	*tick = (struct tick){.elapsed_ns = elapsed_ns ?: 1, .least = 1};
	for (uint32_t i = 0; i < budget->count; i++) {
		tick->share[i] = 1;
		tick->on_ns[i] = on_ns[i] - budget->on_ns[i];
		budget->on_ns[i] = on_ns[i];
	}
	budget->now.payer = (struct budget_payer){};
	budget->now.need_ppm = budget->now.cost_ppm = 0;
	HASH_ITER (hh, budget->payer, payer, next) {
		if (payer->is_seen)
			see_payer(budget, payer, tick);
		else
			HASH_DROP(budget->payer, payer);
	}
	return tick->least < 1;
}

bool budget_share(struct budget *budget)
{
	bool has_changed;

	merge(budget, &budget->tick);
	has_changed = set_shares(budget, &budget->tick);
	set_gates(budget);
	if (budget->now.least_ppm == BUDGET_FULL)
		budget->now.payer = (struct budget_payer){};
	return has_changed;
}

bool budget_tick(struct budget *budget, uint64_t elapsed_ns,
		 const uint64_t on_ns[BUDGET_SOURCES_MAX])
{
	(void)budget_see(budget, elapsed_ns, on_ns);
	return budget_share(budget);
}

void budget_each_gate(struct budget *budget, budget_on_gate *on_gate, void *context)
{
	for (struct payer *payer = budget->payer; payer; payer = payer->hh.next)
		for (uint32_t i = 0; i < budget->count; i++) {
			struct row *row = &payer->row[i];
			const struct budget_payer of = {.tgid = payer->tgid, .uid = payer->uid};

			if ((row->told_ppm ?: BUDGET_FULL) == (row->gate_ppm ?: BUDGET_FULL))
				continue;
			row->told_ppm = row->gate_ppm;
			on_gate(context, &of, i, row->gate_ppm);
		}
}

const struct budget_now *budget_now(const struct budget *budget)
{
	return &budget->now;
}
