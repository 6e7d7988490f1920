/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Moves the sums of threads to the counters, in functions of their own for the verifier. */
#include "lib/threads.bpf.h"
#include "lib/chance.bpf.h"
#include "lib/identify.bpf.h"

/* How many waits may reuse a cached stack before we unwind again: at a new wait site, and at most
 * where unwinds agree. */
#define SITE_LIMIT_NEW 4U
#define SITE_LIMIT_AGREED 64U
#define SITE_LIMIT_MAX 65536U
/* ... or more, where that would be oftener than this on average: an unwind costs as much as 200
 * switches.  Unwinds that differed determine shares, so they are made more often. */
#define SITE_AGREED_NS 50000000ULL
#define SITE_MIXED_NS 20000000ULL
/* A wait site asks again at least this often on average when the budget refuses. */
#define SITE_REFUSED_NS 100000000ULL
#define SITE_AGREES 16U /* walks that must agree until a site is no longer mixed */

static __always_inline struct counting *counting_get(__u32 counting_at)
{
	return bpf_map_lookup_elem(&countings, &counting_at);
}

/* Adds the row to the counters. */
__noinline int counting_add(__u32 counting_at, __u32 number)
{
	struct counting *row = counting_get(counting_at);

	if (!row)
		return 1;
	count_add_more(&row->key, &row->count, number);
	return 0;
}

/* Moves a sum to the counters of a window. */
__noinline int sum_count(__u32 tid, __u32 at, __u32 window, __u32 counting_at, __u32 number)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct counting *row = counting_get(counting_at);
	struct pp_wait_site_sum *sum;
	struct pp_wait_site *site;

	if (!t || !row)
		return 1;
	site = wait_site_at(t, at);
	sum = &site->sum[window & 1];
	row->key = pp_wait_key(t, site);
	row->count = (struct pp_count){sum->events, sum->ns, {}};
	if (site->is_mixed[window & 1])
		pp_wait_key_to_site(&row->key, site);
	if (sum->ns || sum->events)
		counting_add(counting_at, number);
	if (sum->queue_ns) {
		row->count = (struct pp_count){.weight = sum->queue_ns};
		pp_wait_key_to_queue(&row->key);
		counting_add(counting_at, number);
	}
	if (wait_site_reason(site) == PP_WAIT_GIL && sum->ns) {
		row->count = (struct pp_count){sum->events, sum->ns, {}};
		pp_wait_key_to_blame(&row->key, site);
		counting_add(counting_at, number);
	}
	sum->events = 0;
	sum->ns = sum->queue_ns = 0;
	return 0;
}

/* Moves the site's sums to the counters.  Sums of the last window that the agent has not read go to
 * that window's counters, which stay open until all slots are read.  A slot that it could not read
 * is counted after that, so its sums go to this window. */
__noinline int wait_site_count(__u32 tid, __u32 at, __u32 counting_at)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct pp_wait_site *site;
	__u32 window;

	if (!t)
		return 0;
	site = wait_site_at(t, at);
	window = cfg->window;
	if (site->sum[~window & 1].window == window - 1 && t->read_window != window - 1)
		sum_count(tid, at, window - 1, counting_at,
			  cfg->table[(window ^ (cfg->slots_read != window - 1)) & 1]);
	if (site->sum[window & 1].window == window)
		sum_count(tid, at, window, counting_at, cfg->table[window & 1]);
	return 0;
}

/* ---- threads that come and go ---- */

__noinline int thread_find_way(__u32 tid)
{
	struct pp_config *cfg = config_get();

	for (__u32 way = 1; cfg && way < PP_THREAD_WAYS; way++) {
		struct pp_thread *t = thread_at(tid, way, cfg);

		if (t && t->tid == tid)
			return (int)way;
	}
	return 0;
}

__noinline int thread_new(__u32 tid, __u32 tgid, __u32 user, __u64 now_ns)
{
	struct pp_config *cfg = config_get();

	return !cfg || !thread_claim(tid, tgid, user, now_ns, cfg);
}

/* Returns a new row of the ledger for the process of a thread; NULL: there is none, or none for its
 * user. */
static __always_inline struct pp_ledger_sum *ledger_new(const struct pp_thread *t,
							const struct pp_ledger_sum *none,
							struct pp_config *cfg)
{
	struct pp_ledger_sum *sum;

	if (ledger_share_take(t->user, cfg))
		return NULL;
	bpf_map_update_elem(&ledgers, &t->id, none, BPF_NOEXIST);
	sum = bpf_map_lookup_elem(&ledgers, &t->id);
	if (sum)
		sum->user = t->user;
	return sum;
}

/* Returns where the times of a thread go whose process has no row; NULL: the agent may have read
 * the thread's slot in an earlier window, and would count its life a second time. */
static __always_inline struct pp_ledger_sum *ledger_rest(const struct pp_thread *t,
							 const struct pp_config *cfg)
{
	struct pp_user_share *share = share_row(t->user);

	if (!share || t->created_ns < cfg->window_start_ns[cfg->window & 1])
		return NULL;
	count_loss(cfg->ledgers_taken < PP_LEDGER_ROWS ? PP_LOSS_LEDGERS_SHARE
						       : PP_LOSS_LEDGERS_FULL);
	return &share->rest;
}

/* Adds the times of a thread, at its last switch, to its process's.  Returns 0; 1: there is no
 * room. */
static __always_inline int ledger_close(const struct pp_thread *t, const struct pp_ledger_sum *none,
					__u64 now_ns, struct pp_config *cfg)
{
	struct pp_ledger_sum *sum = bpf_map_lookup_elem(&ledgers, &t->id);

	if (!sum)
		sum = ledger_new(t, none, cfg);
	if (!sum)
		sum = ledger_rest(t, cfg);
	if (!sum)
		return 1;
	for (__u32 i = 0; i < PP_LEDGER_COUNT; i++)
		__sync_fetch_and_add(&sum->total_ns[i], t->total_ns[i]);
	__sync_fetch_and_add(&sum->life_ns, now_ns - t->created_ns);
	__sync_fetch_and_add(&sum->threads, 1);
	if (t->tid == t->id.tgid)
		__sync_fetch_and_add(&sum->leaders, 1);
	return 0;
}

__noinline int thread_settle(__u32 tid, __u64 now_ns, __u32 counting_at)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	__u32 zero = 0;
	struct switch_state *state = bpf_map_lookup_elem(&switches, &zero);

	if (!t || !state)
		return 0;
	t->total_ns[PP_LEDGER_CPU] += now_ns - t->since_ns;
	t->since_ns = now_ns;
	for (__u32 i = 0; i < PP_THREAD_WAIT_SITES; i++)
		if (t->site[i].key)
			wait_site_count(tid, i, counting_at);
	return ledger_close(t, &state->ledger, now_ns, cfg);
}

/* Separates what the thread did before an exec or a change of the filters from what follows. */
static __always_inline void thread_turns(struct pp_thread *t, const struct pp_process_id *id,
					 bool matches, __u64 now_ns)
{
	bool did_match = t->flags & PP_THREAD_MATCHES;
	/* Generation 0: the process was not known yet. */
	bool is_other = t->id.generation && t->id.generation != id->generation;

	if (did_match && (!matches || is_other) && thread_settle(t->tid, now_ns, COUNTING_SWITCH))
		count_loss(PP_LOSS_LEDGERS_FULL);
	if (t->identified_ns && (!did_match || !matches || is_other))
		thread_restart(t, now_ns);
	t->id = *id;
	t->flags = matches ? t->flags | PP_THREAD_MATCHES : t->flags & ~PP_THREAD_MATCHES;
	t->identified_ns = now_ns;
}

__noinline int thread_identify(__u32 tid, __u32 tgid, __u64 now_ns)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct pp_process_id id = {.tgid = tgid};
	struct pp_process_context *context;
	__u32 *generation;
	bool matches = true;

	if (!t)
		return 1;
	generation = bpf_map_lookup_elem(&processes, &id.tgid);
	if (generation)
		id.generation = *generation;
	else if (t->id.generation)
		return 0; /* its process has just ended */
	if (cfg->flags & PP_CONFIG_FILTER) {
		context = bpf_map_lookup_elem(&contexts, &id);
		matches = context && context->flags & PP_CONTEXT_MATCHES;
	}
	thread_turns(t, &id, matches, now_ns);
	if (!t->gpu && gpu_is_used(&t->id.tgid, cfg))
		t->gpu = 1;
	return 0;
}

/* ---- waits with a weight ---- */

/* Counts the switch's row under the site's stack: as an unwind of a known site or, at a new one,
 * with the weight of the waits that were left out. */
__noinline int weighted_count(__u32 tid, __u32 at, __u64 queue_ns, __u32 window)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct counting *row = counting_get(COUNTING_SWITCH);
	struct pp_wait_site *site;
	bool is_new;
	__u32 number;

	if (!t || !row)
		return 1;
	site = wait_site_at(t, at);
	is_new = t->weight_shift;
	if (window != cfg->window && cfg->slots_read == window)
		window = cfg->window; /* the last one's counters are closed */
	number = cfg->table[window & 1];
	row->key = pp_wait_key(t, site);
	row->key.kind = is_new ? PP_KIND_WEIGHTED : PP_KIND_WALKED;
	row->key.detail = is_new ? 0 : site->key;
	counting_add(COUNTING_SWITCH, number);
	row->count.squares = 0;
	if (is_new && wait_site_reason(site) == PP_WAIT_GIL) {
		pp_wait_key_to_blame(&row->key, site);
		row->key.detail = PP_BLAME_WEIGHTED;
		counting_add(COUNTING_SWITCH, number);
		row->key = pp_wait_key(t, site);
		row->key.kind = PP_KIND_WEIGHTED;
	}
	if (queue_ns) {
		row->count.samples = 0;
		row->count.weight = queue_ns;
		pp_wait_key_to_queue(&row->key);
		counting_add(COUNTING_SWITCH, number);
	}
	return 0;
}

int wait_weigh(__u32 tid, __u32 window, __u64 ns, __u64 queue_ns)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct counting *row = counting_get(COUNTING_SWITCH);
	struct pp_wait_site_walked *walked;
	struct pp_wait_site *site;
	__u64 square;
	__u32 waits;

	if (!t || !row)
		return 0;
	site = wait_site_at(t, t->at);
	waits = t->flags & PP_THREAD_COUNTS ? t->walk_weight : 0;
	t->flags &= ~PP_THREAD_COUNTS;
	ns *= t->walk_weight;
	queue_ns *= t->walk_weight;
	square = pp_wait_square(ns + queue_ns);
	if (t->weight_shift || site->is_mixed[window & 1]) {
		row->count = (struct pp_count){waits, ns, {square}};
		return weighted_count(tid, t->at, queue_ns, window);
	}
	if (window != cfg->window)
		return 0; /* all walks of that window agreed */
	walked = &site->walked;
	if (walked->window != window)
		*walked = (struct pp_wait_site_walked){.window = window};
	walked->waits += waits;
	walked->ns += ns;
	walked->queue_ns += queue_ns;
	walked->squares += square;
	return 0;
}

/* The agent has already counted this part unless it has not reached this slot yet or the wait was
 * too short at that time. */
__u64 wait_add_before(__u32 tid, __u32 window, __u64 woken_ns, __u64 now_ns)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	__u64 begin_ns, start_ns, before_ns, end_ns;

	if (!t)
		return now_ns;
	begin_ns = t->since_ns;
	start_ns = cfg->window_start_ns[window & 1];
	before_ns = cfg->window_start_ns[(window & 1) ^ 1];
	if (before_ns < begin_ns)
		before_ns = begin_ns;
	/* A switch may have read the clock before the window's edge and the window's number after
	 * it. */
	end_ns = start_ns < now_ns ? start_ns : now_ns;
	if (before_ns < end_ns && t->read_window != window - 1)
		wait_add(t, wait_site_at(t, t->at), window - 1, before_ns, woken_ns, end_ns);
	if (t->read_window != window - 1 || start_ns - begin_ns >= cfg->wait_min_ns)
		return start_ns;
	return begin_ns;
}

static __always_inline void wait_site_swap(struct pp_wait_site *site, struct old_site *other)
{
	struct old_site was = {.user_stack = site->user_stack,
			       .kernel_stack = site->kernel_stack,
			       .flags = site->flags};

	site->user_stack = other->user_stack;
	site->kernel_stack = other->kernel_stack;
	site->flags = other->flags;
	*other = was;
}

int wait_site_differs(__u32 tid, __u32 at)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	__u32 zero = 0, window;
	struct switch_state *state = bpf_map_lookup_elem(&switches, &zero);
	struct counting *row = counting_get(COUNTING_SWITCH);
	struct pp_wait_site *site;

	if (!t || !state || !row)
		return 0;
	window = cfg->window;
	site = wait_site_at(t, at);
	wait_site_swap(site, &state->old);
	sum_open(site, window);
	site->is_mixed[window & 1] = 1;
	wait_site_count(tid, at, COUNTING_SWITCH);
	if (site->walked.window == window && !t->weight_shift) {
		row->count = (struct pp_count){
			site->walked.waits, site->walked.ns, {site->walked.squares}};
		weighted_count(tid, at, site->walked.queue_ns, window);
	}
	site->walked.window = window - 2;
	site->differs = SITE_AGREES;
	wait_site_swap(site, &state->old);
	return 0;
}

/* Draws from a geometric distribution: -ln(U) times the mean, corrected for rounding up to a whole
 * number of uses. */
int chance_gap(__u32 limit)
{
	__u64 mean;

	if (limit < 2)
		return 1;
	mean = ((__u64)limit << 12) - 2048 - 341 / limit;
	return 1 + (draw_exponential() * mean >> 28);
}

static __always_inline void wait_site_draw(struct pp_wait_site *site)
{
	site->left = chance_gap(site->limit);
	site->uses += site->left;
}

/* Estimates the time between unwinds at the present limit, from the uses since the last one. */
static __always_inline __u64 between_walks_ns(const struct pp_wait_site *site, __u64 now_ns)
{
	return site->uses ? (now_ns - site->walked_ns) * site->limit / site->uses : 0;
}

/* Returns the limit that gives an unwind each `wanted_ns`, when they came each between_ns; at least
 * `least`. */
static __always_inline __u32 limit_for(__u32 limit, __u64 between_ns, __u64 wanted_ns, __u32 least)
{
	if (between_ns < wanted_ns)
		return limit < SITE_LIMIT_MAX ? limit * 2 : limit;
	if (between_ns > 2 * wanted_ns && limit > least) {
		limit = limit * wanted_ns / between_ns;
		return limit > least ? limit : least;
	}
	return limit;
}

int wait_site_plan(__u32 tid, __u32 at, __u64 now_ns)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct pp_wait_site *site;
	__u64 between_ns;

	if (!t)
		return 0;
	site = wait_site_at(t, at);
	between_ns = between_walks_ns(site, now_ns);
	if (!site->limit)
		site->limit = SITE_LIMIT_NEW;
	else if (site->differs)
		site->limit = limit_for(site->limit, between_ns, SITE_MIXED_NS, 1);
	else if (site->limit < SITE_LIMIT_AGREED)
		site->limit *= 2;
	else
		site->limit = limit_for(site->limit, between_ns, SITE_AGREED_NS, SITE_LIMIT_AGREED);
	site->walked_ns = now_ns;
	site->uses = 0;
	site->owed = 0;
	wait_site_draw(site);
	return 0;
}

int wait_site_put_off(__u32 tid, __u32 at)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct pp_wait_site *site;

	if (!t)
		return 0;
	site = wait_site_at(t, at);
	if (site->limit < SITE_LIMIT_MAX &&
	    between_walks_ns(site, bpf_ktime_get_ns()) < SITE_REFUSED_NS)
		site->limit *= 2;
	wait_site_draw(site);
	return 0;
}

int wait_site_stack(__u32 tid, __u64 stack, __u32 flags, __u32 gpu, __u64 key)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct pp_wait_site *site;

	if (!t)
		return 0;
	site = &t->site[PP_WAIT_SITE_PREEMPTED];
	flags = (flags & ~(PP_COUNT_WAIT_BITS | PP_COUNT_GIL_HELD | PP_COUNT_GPU_BITS)) |
		PP_COUNT_EARLIER | PP_WAIT_RUN_QUEUE << PP_COUNT_WAIT_SHIFT |
		gpu << PP_COUNT_GPU_SHIFT;
	if (site->user_stack != stack || site->flags != flags || site->key != key) {
		wait_site_count(tid, PP_WAIT_SITE_PREEMPTED, COUNTING_SWITCH);
		wait_site_clear(site, cfg);
		site->user_stack = stack;
		site->flags = flags;
		site->key = key;
		take_comm(site->comm);
	}
	site->left = ~0U; /* no walk is due */
	return 0;
}

/* ---- samples ---- */

/* Keeps the stack that a sample found, for when the thread is preempted. */
int thread_sampled(__u32 slot)
{
	struct pp_config *cfg = config_get();
	struct pp_walk *w = walk_get(slot);
	struct pp_thread *t = cfg && w ? thread_find(w->tid, cfg) : NULL;

	if (!t || !w->has_user)
		return 0;
	t->seen_stack = w->hash;
	t->seen_epoch = cfg->epoch;
	t->seen_flags = (w->count_flags & PP_COUNT_PYTHON) | w->stop << PP_COUNT_STOP_SHIFT |
			w->py_stop << PP_COUNT_PY_STOP_SHIFT;
	return 0;
}

/* Makes a slot for a thread that runs for long without a switch, or matches the filter only
 * since its last one.  The sample, which is in `slot` and matched the filter, tells whose it is.
 * Switches and samples of one thread exclude each other: a timer's interrupt cannot hit a
 * switch. */
int thread_see(__u32 slot)
{
	struct pp_config *cfg = config_get();
	struct pp_walk *w = walk_get(slot);
	__u64 now_ns = bpf_ktime_get_ns();
	struct pp_thread *t;

	if (!cfg || !w)
		return 0;
	t = thread_find(w->tid, cfg);
	if (t && t->flags & (PP_THREAD_MATCHES | PP_THREAD_WAITING))
		return 0; /* it waits: a switch was not seen, which the next one finds */
	if (!t) {
		thread_new(w->tid, w->id.tgid, user_of_current(), now_ns);
		t = thread_find(w->tid, cfg);
	}
	if (!t)
		return 0;
	thread_begin(t);
	if (t->identified_ns)
		thread_restart(t, now_ns); /* the filters did not want it until now */
	t->id = w->id;
	t->flags = PP_THREAD_MATCHES;
	t->euid = w->euid;
	t->identified_ns = now_ns;
	thread_end(t);
	return 0;
}
