/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes of the task iterator.  The first walks every wanted thread.  A thread whose record is the same
 * in the next pass slept meanwhile: its stack is of one moment.  Another one is walked again. */
#include "finish/sweep.h"

#include <errno.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <uthash.h>

#include "base/array.h"
#include "base/clock.h"
#include "drain/thread_slots.h"
#include "finish/finisher.h"
#include "finish/miss_walk.h"
#include "finish/sweep_reader.h"
#include "finish/sweep_walk.h"

#define SWEEP_WALKS 3U /* of one thread, and passes that walk */
#define SWEEP_MAX_BYTES (16U << 20) /* of stacks kept for the dictionary */
#define SWEEP_MAX_NS (5 * NS_PER_SEC)

/* A stack that threads of the sweep have, for as long as one of them sleeps. */
struct described {
	uint64_t hash;
	uint32_t references;
	uint32_t bytes; /* of the record */
	bool is_kernel;
	UT_hash_handle hh;
	union {
		struct pp_stack_record stack;
		struct pp_kernel_record kernel;
	} record[]; /* one, with its frames */
};

struct entry {
	struct swept swept;
	uint64_t started_ns; /* of the record that was walked */
	bool is_settled;     /* nothing is to be done any more */
	bool is_forgotten;
};

struct sweep {
	const struct finisher *finisher;
	struct sweep_scope scope;
	struct sweep_walker *walker; /* NULL: done */
	struct sweep_reader *reader; /* NULL between passes */
	struct entry *entry;	     /* owned; sorted by tid after the first pass */
	size_t count, capacity;
	size_t pending; /* entries that are not settled yet */
	const struct pp_thread *slot;
	uint32_t slot_count;
	struct described *described;
	size_t bytes;
	struct sweep_stats stats;
};

/* ---- stacks ---- */

static int describe(struct sweep *sweep, const struct described *described)
{
	const struct decoded_kernel kernel = {
		.record = &described->record->kernel,
		.count = (described->bytes - sizeof(struct pp_kernel_record)) / sizeof(uint64_t),
	};

	return described->is_kernel ? dictionary_add_kernel(sweep->finisher->dictionary, &kernel)
				    : miss_describe(sweep->finisher->dictionary,
						    &described->record->stack);
}

static struct described *find_described(const struct sweep *sweep, uint64_t hash)
{
	struct described *described;

	HASH_FIND(hh, sweep->described, &hash, sizeof(hash), described);
	return described;
}

/* Keeps a copy of the record and puts it into the dictionary.  Returns the hash; 0: no room. */
static uint64_t keep(struct sweep *sweep, uint64_t hash, const void *record, size_t bytes,
		     bool is_kernel)
{
	struct described *described = find_described(sweep, hash);

	if (described) {
		described->references++;
		return hash;
	}
	if (sweep->bytes + bytes <= SWEEP_MAX_BYTES)
		described = malloc(sizeof(*described) + bytes);
	if (!described) {
		sweep->stats.refused++;
		return 0;
	}
	*described = (struct described){
		.hash = hash, .references = 1, .bytes = (uint32_t)bytes, .is_kernel = is_kernel};
	memcpy(described->record, record, bytes);
	HASH_ADD(hh, sweep->described, hash, sizeof(hash), described);
	if (!find_described(sweep, hash)) {
		free(described);
		sweep->stats.refused++;
		return 0;
	}
	sweep->bytes += bytes;
	(void)describe(sweep,
		       described); /* refused and counted there; sweep_refresh() tries again */
	return hash;
}

static void drop(struct sweep *sweep, uint64_t hash)
{
	struct described *described = hash ? find_described(sweep, hash) : NULL;

	if (!described || --described->references)
		return;
	sweep->bytes -= described->bytes;
	HASH_DEL(sweep->described, described);
	free(described);
}

static uint64_t keep_kernel(struct sweep *sweep, const struct pp_sweep_record *thread)
{
	struct {
		struct pp_kernel_record record;
		uint64_t address[PP_MAX_KERNEL_FRAMES];
	} kernel = {.record = {.record = {.type = PP_RECORD_KERNEL}}};
	size_t bytes = thread->kernel_count * sizeof(uint64_t);

	if (!bytes || sweep->finisher->no_kernel)
		return 0;
	memcpy(kernel.address, thread->kernel, bytes);
	kernel.record.hash = XXH3_64bits(kernel.address, bytes) | 1;
	bytes += sizeof(kernel.record);
	kernel.record.record.size = (uint32_t)bytes;
	return keep(sweep, kernel.record.hash, &kernel, bytes, true);
}

static uint64_t keep_user(struct sweep *sweep, const struct pp_stack_record *record)
{
	size_t frames = (size_t)record->python_stored + record->native_stored;

	if (record->python_stored)
		sweep->finisher->want_names(sweep->finisher->context, record->id);
	return keep(sweep, record->hash, record, sizeof(*record) + frames * sizeof(struct pp_frame),
		    false);
}

/* ---- threads ---- */

static int compare_tids(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	return left->swept.tid < right->swept.tid ? -1 : left->swept.tid > right->swept.tid;
}

static void sort_entries(struct sweep *sweep)
{
	if (sweep->count)
		qsort(sweep->entry, sweep->count, sizeof(*sweep->entry), compare_tids);
}

static struct entry *find_entry(const struct sweep *sweep, uint32_t tid)
{
	const struct entry key = {.swept = {.tid = tid}};

	return sweep->count ? bsearch(&key, sweep->entry, sweep->count, sizeof(key), compare_tids)
			    : NULL;
}

/* Who is it?  False: nobody that is wanted. */
static bool identify(struct sweep *sweep, uint32_t tgid, struct process **ret_process,
		     struct pp_process_id *ret_id)
{
	const struct finisher *finisher = sweep->finisher;
	struct process *process = process_table_find_tgid(finisher->processes, tgid);
	struct pp_process_id id = {.tgid = tgid};

	if (process && process->exit_ns)
		process = NULL;
	if (!process && !kernel_side_get_generation(finisher->kernel, tgid, &id.generation))
		process = finisher->find_process(finisher->context, id);
	*ret_process = process;
	*ret_id = process ? process->id : id;
	return !finisher->is_filtered || (process && image_table_flags(process) & PP_IMAGE_WANTED);
}

static uint64_t moves_now(const struct sweep *sweep, uint32_t tid)
{
	return thread_slots_moves(sweep->slot, sweep->slot_count, tid);
}

/* Slots are given to nobody then. */
static bool is_paused(const struct sweep *sweep)
{
	return kernel_side_config(sweep->finisher->kernel)->flags & PP_CONFIG_PAUSED;
}

/* Switches tell of this thread, and so it is not looked at. */
static bool is_seen(const struct sweep *sweep, uint32_t tid)
{
	struct thread_glance glance;

	return !sweep->scope.wants &&
	       thread_slots_glance(sweep->slot, sweep->slot_count, tid, &glance) &&
	       (glance.has_exited || glance.flags & PP_THREAD_WANTED);
}

static bool is_asked_for(const struct sweep *sweep, const struct pp_sweep_record *thread)
{
	if (sweep->scope.wants)
		return sweep->scope.wants(sweep->scope.context, thread->tgid);
	return !is_seen(sweep, thread->tid) &&
	       !(sweep->scope.is_known && sweep->scope.is_known(sweep->scope.context, thread->tid));
}

static void settle(struct sweep *sweep, struct entry *entry)
{
	entry->is_settled = true;
	sweep->pending--;
}

static void walk_entry(struct sweep *sweep, struct entry *entry,
		       const struct pp_sweep_record *thread, struct process *process)
{
	OWNED_MEM struct pp_stack_record *record = NULL;
	struct swept *swept = &entry->swept;

	if (sweep->stats.spent_ns > SWEEP_MAX_NS) {
		sweep->stats.late++;
		process = NULL;
	}
	sweep->stats.walks++;
	drop(sweep, swept->user_stack);
	drop(sweep, swept->kernel_stack);
	swept->user_stack = 0;
	if (sweep_walk(sweep->walker, thread, process, swept, &record))
		sweep->stats.refused++;
	if (record)
		swept->user_stack = keep_user(sweep, record);
	swept->kernel_stack = keep_kernel(sweep, thread);
	entry->started_ns = thread->started_ns;
	swept->switches = thread->switches;
	/* Had it run meanwhile, it would have a slot now; one that has a slot is looked at again. */
	swept->is_torn = sweep->scope.wants || is_paused(sweep) || moves_now(sweep, thread->tid) != swept->moves;
}

static void add_entry(struct sweep *sweep, const struct pp_sweep_record *thread,
		      struct process *process, struct pp_process_id id, uint64_t moves)
{
	struct entry *entry;

	/* More than have slots are not measured anyhow. */
	if (sweep->count >= sweep->slot_count ||
	    ARRAY_RESERVE(sweep->entry, sweep->count, sweep->capacity)) {
		sweep->stats.refused++;
		return;
	}
	entry = &sweep->entry[sweep->count++];
	*entry = (struct entry){.swept = {.tid = thread->tid, .id = id, .moves = moves}};
	sweep->pending++;
	sweep->stats.threads++;
	walk_entry(sweep, entry, thread, process);
}

static void take_record(struct sweep *sweep, const struct pp_sweep_record *thread)
{
	struct entry *entry;
	struct process *process;
	struct pp_process_id id;

	if (sweep->stats.passes == 1) {
		uint64_t moves = moves_now(sweep, thread->tid);

		if (is_asked_for(sweep, thread) &&
		    identify(sweep, thread->tgid, &process, &id))
			add_entry(sweep, thread, process, id, moves);
		return;
	}
	/* Awake in the first pass: its switch is seen. */
	entry = find_entry(sweep, thread->tid);
	if (!entry || entry->is_settled)
		return;
	if (entry->started_ns == thread->started_ns &&
	    entry->swept.switches == thread->switches) {
		entry->swept.is_torn = false;
		settle(sweep, entry);
	} else if (is_seen(sweep, thread->tid)) {
		settle(sweep, entry);
	} else if (sweep->stats.passes <= SWEEP_WALKS &&
		   identify(sweep, thread->tgid, &process, &id)) {
		entry->swept.id = id;
		entry->swept.moves = moves_now(sweep, thread->tid);
		walk_entry(sweep, entry, thread, process);
		entry->swept.is_torn = true; /* it runs without a slot: only the next pass can tell */
	}
}

/* ---- passes ---- */

static int begin_pass(struct sweep *sweep)
{
	int fd, err = kernel_side_open_sweep(sweep->finisher->kernel, &fd);

	if (!err)
		err = sweep_reader_new(fd, &sweep->reader);
	if (!err)
		sweep->stats.passes++;
	return err;
}

static void finish(struct sweep *sweep)
{
	sweep_walker_free(TAKE(sweep->walker));
	sweep_reader_free(TAKE(sweep->reader));
	sort_entries(sweep); /* a first pass that broke off has not */
	for (size_t i = 0; i < sweep->count; i++)
		sweep->stats.torn += sweep->entry[i].swept.is_torn;
}

/* Who has moved since is not looked for any more. */
static void settle_seen(struct sweep *sweep)
{
	for (size_t i = 0; i < sweep->count; i++)
		if (!sweep->entry[i].is_settled && is_seen(sweep, sweep->entry[i].swept.tid))
			settle(sweep, &sweep->entry[i]);
}

/* Returns 1: another pass; 0: done; -errno. */
static int end_pass(struct sweep *sweep)
{
	sweep_reader_free(TAKE(sweep->reader));
	sweep_walker_forget(sweep->walker);
	if (sweep->stats.passes == 1)
		sort_entries(sweep);
	settle_seen(sweep);
	/* The last pass only looks again. */
	if (!sweep->pending || sweep->stats.passes > SWEEP_WALKS)
		return 0;
	return begin_pass(sweep) ?: 1;
}

static int read_threads(struct sweep *sweep, uint64_t until_ns)
{
	const struct pp_sweep_record *thread;
	int more;

	do {
		more = sweep_reader_next(sweep->reader, &thread);
		if (more > 0)
			take_record(sweep, thread);
		else if (!more)
			more = end_pass(sweep);
	} while (more > 0 && mono_ns() < until_ns);
	return more;
}

int sweep_step(struct sweep *sweep, uint64_t budget_ns)
{
	uint64_t now_ns = mono_ns();
	int more;

	if (!sweep->walker)
		return 0;
	/* Mappings of new processes. */
	more = sweep->finisher->follow_processes(sweep->finisher->context);
	if (!more)
		more = read_threads(sweep, budget_ns > UINT64_MAX - now_ns ? UINT64_MAX
									   : now_ns + budget_ns);
	sweep->stats.spent_ns += mono_ns() - now_ns;
	if (more <= 0)
		finish(sweep);
	return more;
}

int sweep_new(const struct finisher *finisher, const struct sweep_scope *scope,
	      struct sweep **ret_sweep)
{
	OWNED(sweep) struct sweep *sweep = calloc(1, sizeof(*sweep));
	int err;

	if (!sweep)
		return -ENOMEM;
	sweep->finisher = finisher;
	sweep->scope = *scope;
	sweep->slot = kernel_side_threads(finisher->kernel, &sweep->slot_count);
	err = sweep_walker_new(finisher, &sweep->walker);
	if (!err)
		err = begin_pass(sweep);
	if (err)
		return err;
	*ret_sweep = TAKE(sweep);
	return 0;
}

void sweep_free(struct sweep *sweep)
{
	struct described *described, *next;

	if (!sweep)
		return;
	HASH_ITER (hh, sweep->described, described, next) {
		HASH_DEL(sweep->described, described);
		free(described);
	}
	sweep_walker_free(sweep->walker);
	sweep_reader_free(sweep->reader);
	free(sweep->entry);
	free(sweep);
}

int sweep_run(const struct finisher *finisher, struct sweep **ret_sweep)
{
	OWNED(sweep) struct sweep *sweep = NULL;
	int more = sweep_new(finisher, &(struct sweep_scope){}, &sweep);

	if (more)
		return more;
	do
		more = sweep_step(sweep, NS_PER_SEC);
	while (more > 0);
	if (more)
		return more;
	*ret_sweep = TAKE(sweep);
	return 0;
}

/* ---- what it has found ---- */

const struct swept *sweep_find(const struct sweep *sweep, uint32_t tid)
{
	const struct entry *entry = sweep->walker ? NULL : find_entry(sweep, tid);

	return entry && !entry->is_forgotten ? &entry->swept : NULL;
}

struct swept *sweep_next(struct sweep *sweep, const struct swept *swept)
{
	/* It is an entry's first field. */
	struct entry *entry = swept ? (struct entry *)swept + 1 : sweep->entry;

	for (; entry && entry < sweep->entry + sweep->count; entry++)
		if (!entry->is_forgotten)
			return &entry->swept;
	return NULL;
}

void sweep_forget(struct sweep *sweep, struct swept *swept)
{
	struct entry *entry = (struct entry *)swept;

	if (entry->is_forgotten)
		return;
	entry->is_forgotten = true;
	if (!entry->is_settled)
		settle(sweep, entry);
	drop(sweep, swept->user_stack);
	drop(sweep, swept->kernel_stack);
}

int sweep_refresh(struct sweep *sweep)
{
	struct described *described, *next;
	int result = 0;

	HASH_ITER (hh, sweep->described, described, next) {
		int err = describe(sweep, described);

		if (err)
			result = err;
	}
	return result;
}

void sweep_get_stats(const struct sweep *sweep, struct sweep_stats *ret_stats)
{
	*ret_stats = sweep->stats;
}
