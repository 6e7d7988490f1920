/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads' sums on their way to the counters; a function of its own for the verifier. */
#include "lib/threads.bpf.h"

/* Moves a sum to the counters of a window. */
static __noinline int sum_count(const struct pp_thread *t, const struct pp_place *place,
				struct pp_place_sum *sum, __u32 number)
{
	struct pp_count_key key = pp_wait_key(t, place);

	if (sum->ns || sum->events)
		count_add(&key, sum->events, sum->ns, number);
	if (sum->queue_ns) {
		pp_wait_key_to_queue(&key);
		count_add(&key, 0, sum->queue_ns, number);
	}
	if (place_wait(place) == PP_WAIT_GIL && sum->ns) {
		pp_wait_key_to_blame(&key, place);
		count_add(&key, sum->events, sum->ns, number);
	}
	sum->events = 0;
	sum->ns = sum->queue_ns = 0;
	return 0;
}

/* What the agent did not read of the last window goes to that one's counters, which stay open until all
 * slots are read.  A slot that it could not read is later than that: then it is this window's. */
int place_count(__u32 tid, __u32 at)
{
	struct pp_config *cfg = config_get();
	struct pp_thread *t = cfg ? thread_find(tid, cfg) : NULL;
	struct pp_place_sum *open, *last;
	struct pp_place *place;
	__u32 window;

	if (!t)
		return 0;
	place = place_at(t, at);
	window = cfg->window;
	open = &place->sum[window & 1];
	last = &place->sum[~window & 1];
	if (open->window == window)
		sum_count(t, place, open, cfg->table[window & 1]);
	if (last->window == window - 1 && t->read_window != window - 1)
		sum_count(t, place, last,
			  cfg->table[(window ^ (cfg->slots_read != window - 1)) & 1]);
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
	if (!t)
		t = thread_claim(w->tid, w->id.tgid, now_ns, cfg);
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
