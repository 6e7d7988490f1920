/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/thread_slots.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* A write lasts as long as the walk inside it: 2 ms in all is more than one walk may take. */
#define MOVES_FACTOR 0x9e3779b97f4a7c15ULL /* odd: a change of one slot changes the sum */
#define READ_TRIES 40
#define WRITER_NS 50000

void thread_slots_open(volatile struct pp_config *config, uint32_t window, uint64_t started_ns)
{
	config->window_start_ns[0] = config->window_start_ns[1] = started_ns;
	config->slots_read = window - 1;
}

bool thread_slot_take(struct pp_thread *slot, uint32_t window, struct pp_thread *ret_copy,
		      uint64_t *ret_torn)
{
	const _Atomic uint32_t *sequence = (const _Atomic uint32_t *)&slot->sequence;
	_Atomic uint32_t *read_window = (_Atomic uint32_t *)&slot->read_window;
	const uint32_t last_read = atomic_load_explicit(read_window, memory_order_relaxed);
	const struct timespec pause = {.tv_nsec = WRITER_NS};

	/* Mark the slot before the last check: a switch after the mark leaves the window to us, and
	 * one between copy and mark makes us copy again. */
	for (int i = 0; i < READ_TRIES; i++) {
		uint32_t before = atomic_load_explicit(sequence, memory_order_acquire);

		if (before & 1) {
			nanosleep(&pause, NULL);
			continue;
		}
		memcpy(ret_copy, slot, sizeof(*ret_copy));
		atomic_store_explicit(read_window, window, memory_order_seq_cst);
		atomic_thread_fence(memory_order_seq_cst);
		if (atomic_load_explicit(sequence, memory_order_relaxed) == before) {
			ret_copy->read_window = last_read;
			return ret_copy->tid;
		}
	}
	/* It was not read: its sums count in the next window. */
	atomic_store_explicit(read_window, last_read, memory_order_seq_cst);
	++*ret_torn;
	return false;
}

void thread_slot_stray(struct pp_thread *copy)
{
	copy->flags |= PP_THREAD_WAITING | PP_THREAD_SKIPPED; /* without a wait site */
	copy->wait = PP_WAIT_OTHER;
}

bool thread_slot_free(struct pp_thread *slot, const struct pp_thread *copy)
{
	const _Atomic uint32_t *sequence = (const _Atomic uint32_t *)&slot->sequence;

	if (atomic_load_explicit(sequence, memory_order_acquire) != copy->sequence)
		return false;
	slot->was_tid = copy->tid;
	atomic_store_explicit((_Atomic uint32_t *)&slot->tid, 0, memory_order_release);
	return true;
}

/* Reads a slot without waiting.  During a walk the sequence is odd for long, but the owner stays
 * the same. */
static bool glance(const struct pp_thread *slot, uint32_t tid, struct thread_glance *ret_glance)
{
	const volatile struct pp_thread *live = slot;
	const _Atomic uint32_t *sequence = (const _Atomic uint32_t *)&slot->sequence;
	uint32_t owner = 0, was_tid = 0;

	for (int i = 0; i < READ_TRIES; i++) {
		uint32_t before = atomic_load_explicit(sequence, memory_order_acquire);

		owner = live->tid;
		was_tid = live->was_tid;
		*ret_glance = (struct thread_glance){
			.first_ns = live->first_ns,
			.created_ns = live->created_ns,
			.since_ns = live->since_ns,
			.flags = live->flags,
			.has_exited = !owner,
		};
		atomic_thread_fence(memory_order_acquire);
		if (!(before & 1) && atomic_load_explicit(sequence, memory_order_relaxed) == before)
			break;
	}
	return (owner == tid || (!owner && was_tid == tid)) && ret_glance->first_ns;
}

bool thread_slots_glance(const struct pp_thread *slots, uint32_t count, uint32_t seed, uint32_t tid,
			 struct thread_glance *ret_glance)
{
	struct thread_glance found;

	for (uint32_t way = 0; way < PP_THREAD_WAYS && count; way++) {
		if (!glance(&slots[pp_thread_index(tid, way, count - 1, seed)], tid, &found))
			continue;
		*ret_glance = found;
		return true;
	}
	return false;
}

uint64_t thread_slots_moves(const struct pp_thread *slots, uint32_t count, uint32_t seed,
			    uint32_t tid)
{
	uint64_t moves = 0;

	for (uint32_t way = 0; way < PP_THREAD_WAYS && count; way++) {
		const struct pp_thread *slot = &slots[pp_thread_index(tid, way, count - 1, seed)];

		moves = moves * MOVES_FACTOR +
			atomic_load_explicit((const _Atomic uint32_t *)&slot->sequence,
					     memory_order_acquire);
	}
	return moves;
}

enum pp_ledger wait_ledger(enum pp_wait wait)
{
	static const uint8_t ledger[PP_WAIT_COUNT] = PP_WAIT_LEDGERS;

	return wait < PP_WAIT_COUNT ? (enum pp_ledger)ledger[wait] : PP_LEDGER_UNKNOWN;
}

const char *wait_label(enum pp_wait wait)
{
#define LABEL_OF(id, label, group) [PP_WAIT_##id] = label,
	static const char *const text[PP_WAIT_COUNT] = {PP_WAITS(LABEL_OF)};

	return wait < PP_WAIT_COUNT ? text[wait] : "other";
}

enum pp_wait thread_slot_wait(const struct pp_thread *thread)
{
	return thread->flags & PP_THREAD_WAITING ? (enum pp_wait)thread->wait : PP_WAIT_NONE;
}

static int count_sum(const struct pp_thread *thread, const struct pp_wait_site *site,
		     const struct pp_wait_site_sum *sum, bool is_mixed, struct counts *counts)
{
	struct pp_count_key key = pp_wait_key(thread, site);
	struct pp_count count = {.samples = sum->events, .weight = sum->ns};
	int err = 0;

	if (is_mixed)
		pp_wait_key_to_site(&key, site);
	if (sum->ns || sum->events)
		err = counts_add(counts, &key, &count);
	if (!err && sum->queue_ns) {
		struct pp_count queue = {.weight = sum->queue_ns};

		pp_wait_key_to_queue(&key);
		err = counts_add(counts, &key, &queue);
	}
	if (!err && sum->ns && pp_count_wait(site->flags) == PP_WAIT_GIL) {
		pp_wait_key_to_blame(&key, site);
		err = counts_add(counts, &key, &count);
	}
	return err;
}

/* Returns the length so far of a wait that has not ended.  At the last edge it was left out if it
 * was too short. */
static uint64_t open_ns(const struct pp_thread *thread, const struct slots_window *window)
{
	uint64_t begin = thread->since_ns;

	if (!(thread->flags & PP_THREAD_WAITING) || thread->flags & PP_THREAD_SKIPPED ||
	    begin >= window->end_ns || window->end_ns - begin < window->wait_min_ns)
		return 0;
	if (begin < window->start_ns && window->start_ns - begin >= window->wait_min_ns)
		begin = window->start_ns;
	return window->end_ns - begin;
}

/* Counts a wait with a weight: as wait_weigh() in bpf/threads.bpf.c. */
static int count_weighted(const struct pp_thread *thread, const struct pp_wait_site *site,
			  uint64_t ns, struct counts *counts)
{
	struct pp_count_key key = pp_wait_key(thread, site);
	struct pp_count count = {.weight = ns * thread->walk_weight,
				 .squares = pp_wait_square(ns * thread->walk_weight)};
	int err;

	key.kind = thread->weight_shift ? PP_KIND_WEIGHTED : PP_KIND_WALKED;
	key.detail = thread->weight_shift ? 0 : site->key;
	if (thread->wait == PP_WAIT_RUN_QUEUE)
		pp_wait_key_to_queue(&key);
	err = counts_add(counts, &key, &count);
	if (err || !thread->weight_shift || thread->wait != PP_WAIT_GIL)
		return err;
	pp_wait_key_to_blame(&key, site);
	key.detail = PP_BLAME_WEIGHTED;
	count.squares = 0;
	return counts_add(counts, &key, &count);
}

static int count_site(const struct pp_thread *thread, uint32_t at,
		      const struct slots_window *window, struct counts *counts)
{
	const struct pp_wait_site *site = &thread->site[at];
	const struct pp_wait_site_sum *last = &site->sum[(window->number & 1) ^ 1];
	struct pp_wait_site_sum sum = site->sum[window->number & 1];
	uint64_t goes_on_ns = at == thread->at ? open_ns(thread, window) : 0;
	bool is_mixed = site->is_mixed[window->number & 1];
	int err = 0;

	if (!site->key)
		return 0;
	if (sum.window != window->number) {
		sum = (struct pp_wait_site_sum){};
		is_mixed = site->differs;
	}
	if (last->window == window->number - 1 && thread->read_window != last->window) {
		sum.events += last->events; /* its slot was torn then */
		sum.ns += last->ns;
		sum.queue_ns += last->queue_ns;
	}
	if (goes_on_ns && thread->walk_weight && (is_mixed || thread->weight_shift))
		err = count_weighted(thread, site, goes_on_ns, counts);
	if (thread->weight_shift)
		goes_on_ns = 0;
	if (thread->wait == PP_WAIT_RUN_QUEUE)
		sum.queue_ns += goes_on_ns;
	else
		sum.ns += goes_on_ns;
	return err ? err : count_sum(thread, site, &sum, is_mixed, counts);
}

int thread_slot_count(const struct pp_thread *thread, const struct slots_window *window,
		      struct counts *counts)
{
	int err = 0;

	for (uint32_t at = 0; at < PP_THREAD_WAIT_SITES && !err; at++)
		if (thread->flags & PP_THREAD_MATCHES)
			err = count_site(thread, at, window, counts);
	return err;
}

void thread_slot_totals(const struct pp_thread *thread, uint64_t end_ns,
			uint64_t ret_total_ns[PP_LEDGER_COUNT])
{
	enum pp_ledger now = wait_ledger(thread_slot_wait(thread));

	memcpy(ret_total_ns, thread->total_ns, sizeof(thread->total_ns));
	if (thread->since_ns < end_ns)
		ret_total_ns[now] += end_ns - thread->since_ns;
}
