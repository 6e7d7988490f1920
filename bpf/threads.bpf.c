/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads' sums on their way to the counters; a function of its own for the verifier. */
#include "lib/threads.bpf.h"

/* One use of a place in so many is walked: of a new one, of one at which walks agree, at most. */
#define PLACE_LIMIT_NEW 4U
#define PLACE_LIMIT_AGREED 64U
#define PLACE_LIMIT_MAX 65536U
/* ... and fewer where that is oftener than this, in the mean: a walk costs as much as 200 switches.  Walks that
 * differed tell of shares, and are to be many. */
#define PLACE_AGREED_NS 50000000ULL
#define PLACE_MIXED_NS 20000000ULL
#define PLACE_AGREES 16U /* walks that must agree until a place is no longer mixed */

static __always_inline struct counting *counting_get(__u32 counting_at)
{
	return bpf_map_lookup_elem(&countings, &counting_at);
}

/* The row goes to the counters. */
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
	struct pp_place_sum *sum;
	struct pp_place *place;

	if (!t || !row)
		return 1;
	place = place_at(t, at);
	sum = &place->sum[window & 1];
	row->key = pp_wait_key(t, place);
	row->count = (struct pp_count){sum->events, sum->ns, {}};
	if (place->is_mixed[window & 1])
		pp_wait_key_to_place(&row->key, place);
	if (sum->ns || sum->events)
		counting_add(counting_at, number);
	if (sum->queue_ns) {
		row->count = (struct pp_count){.weight = sum->queue_ns};
		pp_wait_key_to_queue(&row->key);
		counting_add(counting_at, number);
	}
	if (place_wait(place) == PP_WAIT_GIL && sum->ns) {
		row->count = (struct pp_count){sum->events, sum->ns, {}};
		pp_wait_key_to_blame(&row->key, place);
		counting_add(counting_at, number);
	}
	sum->events = 0;
	sum->ns = sum->queue_ns = 0;
	return 0;
}

/* What the agent did not read of the last window goes to that one's counters, which stay open until all
 * slots are read.  A slot that it could not read is later than that: then it is this window's. */
__noinline int place_count(__u32 tid, __u32 at, __u32 counting_at)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct pp_place *place;
	__u32 window;

	if (!t)
		return 0;
	place = place_at(t, at);
	window = cfg->window;
	if (place->sum[window & 1].window == window)
		sum_count(tid, at, window, counting_at, cfg->table[window & 1]);
	if (place->sum[~window & 1].window == window - 1 && t->read_window != window - 1)
		sum_count(tid, at, window - 1, counting_at,
			  cfg->table[(window ^ (cfg->slots_read != window - 1)) & 1]);
	return 0;
}

/* ---- threads that come and go ---- */

__noinline int thread_new(__u32 tid, __u32 tgid, __u64 now_ns)
{
	struct pp_config *cfg = config_get();

	return !cfg || !thread_claim(tid, tgid, now_ns, cfg);
}

/* The thread's last switch: its times go to its process's. */
static __always_inline void ledger_close(const struct pp_thread *t,
					 const struct pp_ledger_sum *none, __u64 now_ns)
{
	struct pp_ledger_sum *sum = bpf_map_lookup_elem(&ledgers, &t->id);

	if (!sum) {
		bpf_map_update_elem(&ledgers, &t->id, none, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&ledgers, &t->id);
		if (!sum) {
			count_loss(PP_LOSS_LEDGERS_FULL);
			return;
		}
	}
	for (__u32 i = 0; i < PP_LEDGER_COUNT; i++)
		__sync_fetch_and_add(&sum->total_ns[i], t->total_ns[i]);
	__sync_fetch_and_add(&sum->life_ns, now_ns - t->created_ns);
	__sync_fetch_and_add(&sum->threads, 1);
}

__noinline int thread_settle(__u32 tid, __u64 now_ns, __u32 counting_at)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	__u32 zero = 0;
	struct switch_state *state = bpf_map_lookup_elem(&switches, &zero);

	if (!t || !state)
		return 1;
	t->total_ns[PP_LEDGER_CPU] += now_ns - t->since_ns;
	t->since_ns = now_ns;
	for (__u32 i = 0; i < PP_THREAD_PLACES; i++)
		if (t->place[i].key)
			place_count(tid, i, counting_at);
	ledger_close(t, &state->ledger, now_ns);
	return 0;
}

/* Another program (exec), or other filters: what the thread did before is not the new one's. */
static __always_inline void thread_turns(struct pp_thread *t, const struct pp_process_id *id,
					 bool wanted, __u64 now_ns)
{
	bool was_wanted = t->flags & PP_THREAD_WANTED;
	/* Generation 0: nobody had told of the process yet. */
	bool is_other = t->id.generation && t->id.generation != id->generation;

	if (was_wanted && (!wanted || is_other))
		thread_settle(t->tid, now_ns, COUNTING_SWITCH);
	if (t->identified_ns && (!was_wanted || !wanted || is_other))
		thread_restart(t, now_ns);
	t->id = *id;
	t->flags = wanted ? t->flags | PP_THREAD_WANTED : t->flags & ~PP_THREAD_WANTED;
	t->identified_ns = now_ns;
}

__noinline int thread_identify(__u32 tid, __u32 tgid, __u64 now_ns)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct pp_process_id id = {.tgid = tgid};
	struct pp_image *image;
	__u32 *generation;
	bool wanted = true;

	if (!t)
		return 1;
	generation = bpf_map_lookup_elem(&processes, &id.tgid);
	if (generation)
		id.generation = *generation;
	else if (t->id.generation)
		return 0; /* its process has just ended */
	if (cfg->flags & PP_CONFIG_FILTER) {
		image = bpf_map_lookup_elem(&images, &id);
		wanted = image && image->flags & PP_IMAGE_WANTED;
	}
	thread_turns(t, &id, wanted, now_ns);
	return 0;
}

/* ---- waits with a weight ---- */

/* What is in the switch's row, under the place's stack: of the place, or, at a new one, of what was left out. */
__noinline int weighted_count(__u32 tid, __u32 at, __u64 queue_ns, __u32 window)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct counting *row = counting_get(COUNTING_SWITCH);
	struct pp_place *place;
	bool is_new;
	__u32 number;

	if (!t || !row)
		return 1;
	place = place_at(t, at);
	is_new = t->weight_shift;
	if (window != cfg->window && cfg->slots_read == window)
		window = cfg->window; /* the last one's counters are closed */
	number = cfg->table[window & 1];
	row->key = pp_wait_key(t, place);
	row->key.kind = is_new ? PP_KIND_WEIGHTED : PP_KIND_WALKED;
	row->key.detail = is_new ? 0 : place->key;
	counting_add(COUNTING_SWITCH, number);
	row->count.squares = 0;
	if (is_new && place_wait(place) == PP_WAIT_GIL) {
		pp_wait_key_to_blame(&row->key, place);
		row->key.detail = PP_BLAME_WEIGHTED;
		counting_add(COUNTING_SWITCH, number);
		row->key = pp_wait_key(t, place);
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
	struct pp_place_walked *walked;
	struct pp_place *place;
	__u64 square;
	__u32 waits;

	if (!t || !row)
		return 0;
	place = place_at(t, t->at);
	waits = t->flags & PP_THREAD_COUNTS ? t->walk_weight : 0;
	t->flags &= ~PP_THREAD_COUNTS;
	ns *= t->walk_weight;
	queue_ns *= t->walk_weight;
	square = pp_wait_square(ns + queue_ns);
	if (t->weight_shift || place->is_mixed[window & 1]) {
		row->count = (struct pp_count){waits, ns, {square}};
		return weighted_count(tid, t->at, queue_ns, window);
	}
	if (window != cfg->window)
		return 0; /* all walks of that window agreed */
	walked = &place->walked;
	if (walked->window != window)
		*walked = (struct pp_place_walked){.window = window};
	walked->waits += waits;
	walked->ns += ns;
	walked->queue_ns += queue_ns;
	walked->squares += square;
	return 0;
}

/* The agent has counted it already, unless it did not come to this slot yet, or the wait was too short by
 * then. */
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
	/* A switch may have read the clock before the edge, and the window behind it. */
	end_ns = start_ns < now_ns ? start_ns : now_ns;
	if (before_ns < end_ns && t->read_window != window - 1)
		wait_add(t, place_at(t, t->at), window - 1, before_ns, woken_ns, end_ns);
	if (t->read_window != window - 1 || start_ns - begin_ns >= cfg->wait_min_ns)
		return start_ns;
	return begin_ns;
}

static __always_inline void place_swap(struct pp_place *place, struct old_place *other)
{
	struct old_place was = {.user_stack = place->user_stack,
				.kernel_stack = place->kernel_stack,
				.flags = place->flags};

	place->user_stack = other->user_stack;
	place->kernel_stack = other->kernel_stack;
	place->flags = other->flags;
	*other = was;
}

int place_differs(__u32 tid, __u32 at)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	__u32 zero = 0, window;
	struct switch_state *state = bpf_map_lookup_elem(&switches, &zero);
	struct counting *row = counting_get(COUNTING_SWITCH);
	struct pp_place *place;

	if (!t || !state || !row)
		return 0;
	window = cfg->window;
	place = place_at(t, at);
	place_swap(place, &state->old);
	sum_open(place, window);
	place->is_mixed[window & 1] = 1;
	place_count(tid, at, COUNTING_SWITCH);
	if (place->walked.window == window && !t->weight_shift) {
		row->count = (struct pp_count){
			place->walked.waits, place->walked.ns, {place->walked.squares}};
		weighted_count(tid, at, place->walked.queue_ns, window);
	}
	place->walked.window = window - 2;
	place->differs = PLACE_AGREES;
	place_swap(place, &state->old);
	return 0;
}

/* -log2(x / 2^32) in parts of 65,536, to two of them in a thousand; its slope, on which a chance rests, to 2 %
 * within an octave and exactly over one. */
static __always_inline __u64 minus_log2(__u32 x)
{
	__u64 whole = 1, f;

	x |= 1;
	for (__u32 bits = 16; bits; bits /= 2) {
		if (x >> (32 - bits))
			continue;
		x <<= bits;
		whole += bits;
	}
	f = (x << 1) >> 16;
	return (whole << 16) - (f * (93382 - (f * (38489 - (f * 10643 >> 16)) >> 16)) >> 16);
}

/* Geometric: -ln(U) uses in the mean, less what a whole number of them makes more. */
int chance_gap(__u32 limit)
{
	__u64 mean, exponential;

	if (limit < 2)
		return 1;
	mean = ((__u64)limit << 12) - 2048 - 341 / limit;
	exponential = minus_log2(bpf_get_prandom_u32()) * 45426 >> 16; /* ln 2 */
	return 1 + (exponential * mean >> 28);
}

static __always_inline void place_draw(struct pp_place *place)
{
	place->left = chance_gap(place->limit);
	place->uses += place->left;
}

int place_plan(__u32 tid, __u32 at, __u64 now_ns)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct pp_place *place;
	__u64 between_ns = 0;

	if (!t)
		return 0;
	place = place_at(t, at);
	if (place->uses)
		between_ns = (now_ns - place->walked_ns) * place->limit / place->uses;
	if (!place->limit)
		place->limit = PLACE_LIMIT_NEW;
	else if (place->differs && between_ns > 2 * PLACE_MIXED_NS)
		place->limit -= place->limit / 2;
	else if (place->limit < PLACE_LIMIT_MAX &&
		 (place->differs ? between_ns < PLACE_MIXED_NS :
				   place->limit < PLACE_LIMIT_AGREED || between_ns < PLACE_AGREED_NS))
		place->limit *= 2;
	place->walked_ns = now_ns;
	place->uses = 0;
	place_draw(place);
	return 0;
}

int place_put_off(__u32 tid, __u32 at)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct pp_place *place;

	if (!t)
		return 0;
	place = place_at(t, at);
	if (place->limit < PLACE_LIMIT_MAX)
		place->limit *= 2;
	place_draw(place);
	return 0;
}

int place_stack(__u32 tid, __u64 stack, __u32 flags)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct pp_place *place;
	__u64 key;

	if (!t)
		return 0;
	place = &t->place[PP_PLACE_PREEMPTED];
	key = preempted_key(cfg);
	flags = (flags & ~(PP_COUNT_WAIT_BITS | PP_COUNT_GIL_HELD)) | PP_COUNT_EARLIER |
		PP_WAIT_RUN_QUEUE << PP_COUNT_WAIT_SHIFT;
	if (place->user_stack != stack || place->flags != flags || place->key != key) {
		place_count(tid, PP_PLACE_PREEMPTED, COUNTING_SWITCH);
		place_clear(place, cfg);
		place->user_stack = stack;
		place->flags = flags;
		place->key = key;
	}
	place->left = ~0U; /* no walk is due */
	return 0;
}

/* ---- samples ---- */

/* Where a sample saw the thread, for when it is preempted. */
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

/* One that runs for long passes no switch, or came by one and passes no other: a sample, which is in `slot`
 * and was wanted, tells whose it is.  Switches and samples of one thread exclude each other: a timer's
 * interrupt cannot hit a switch. */
int thread_see(__u32 slot)
{
	struct pp_config *cfg = config_get();
	struct pp_walk *w = walk_get(slot);
	__u64 now_ns = bpf_ktime_get_ns();
	struct pp_thread *t;

	if (!cfg || !w)
		return 0;
	t = thread_find(w->tid, cfg);
	if (t && t->flags & (PP_THREAD_WANTED | PP_THREAD_WAITING))
		return 0; /* it waits: a switch was not seen, which the next one finds */
	if (!t && !thread_new(w->tid, w->id.tgid, now_ns))
		t = thread_find(w->tid, cfg);
	if (!t)
		return 0;
	thread_begin(t);
	if (t->identified_ns)
		thread_restart(t, now_ns); /* the filters did not want it until now */
	t->id = w->id;
	t->flags = PP_THREAD_WANTED;
	t->identified_ns = now_ns;
	thread_end(t);
	return 0;
}
