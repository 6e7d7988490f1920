/* SPDX-License-Identifier: BSD-2-Clause */
/* The scan makes several passes of the task iterator.  The first pass walks every thread that
 * matches the filter.  A thread whose record is the same in the next pass slept in between, so its
 * stack is consistent.  A thread whose record changed is walked again. */
#include "finish/scan.h"

#include <errno.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "drain/thread_slots.h"
#include "finish/scan_walk.h"
#include "finish/user_unwind.h"

#define SCAN_WALKS 3U		   /* at most, of one thread; also the passes that walk */
#define SCAN_MAX_BYTES (16U << 20) /* of all stacks kept for the dictionary */
#define SCAN_MAX_NS (5 * NS_PER_SEC)

/* A stack, kept while a scanned thread that has it remains blocked. */
struct kept {
	uint64_t hash;
	uint32_t references;
	uint32_t bytes; /* of the record below */
	bool is_kernel;
	UT_hash_handle hh;
	union {
		struct pp_stack_record stack;
		struct pp_kernel_record kernel;
	} record[]; /* one element, with its frames */
};

struct entry {
	struct scanned scanned;
	uint64_t started_ns; /* of the record that was walked */
	bool is_settled;     /* needs no further pass */
	bool is_forgotten;
};

struct scan {
	const struct finisher *finisher;
	struct scan_scope scope;
	struct scan_walker *walker; /* NULL: done */
	struct scan_reader *reader; /* NULL between passes */
	struct entry *entry;	    /* owned; sorted by tid after the first pass */
	size_t count, capacity;
	size_t pending; /* entries that are not settled yet */
	const struct pp_thread *slot;
	uint32_t slot_count, slot_seed;
	struct kept *kept;
	size_t bytes;
	struct scan_stats stats;
};

/* ---- stacks ---- */

static int describe(struct scan *scan, const struct kept *kept)
{
	const struct decoded_kernel kernel = {
		.record = &kept->record->kernel,
		.count = (kept->bytes - sizeof(struct pp_kernel_record)) / sizeof(uint64_t),
	};

	return kept->is_kernel
		       ? dictionary_add_kernel(scan->finisher->dictionary, &kernel)
		       : user_unwind_describe(scan->finisher->dictionary, &kept->record->stack);
}

static struct kept *find_kept(const struct scan *scan, uint64_t hash)
{
	struct kept *kept;

	HASH_FIND(hh, scan->kept, &hash, sizeof(hash), kept);
	return kept;
}

/* Returns NULL when there is no room. */
static struct kept *copy_record(struct scan *scan, uint64_t hash, const void *record, size_t bytes,
				bool is_kernel)
{
	struct kept *kept = NULL;

	if (scan->bytes + bytes <= SCAN_MAX_BYTES)
		kept = malloc(sizeof(*kept) + bytes);
	if (!kept)
		return NULL;
	*kept = (struct kept){
		.hash = hash, .references = 1, .bytes = (uint32_t)bytes, .is_kernel = is_kernel};
	memcpy(kept->record, record, bytes);
	HASH_ADD(hh, scan->kept, hash, sizeof(hash), kept);
	if (!kept->hh.tbl) { /* no memory for the table */
		free(kept);
		return NULL;
	}
	return kept;
}

/* Keeps a copy of the record and adds it to the dictionary.  Returns its hash; 0: no room. */
static uint64_t keep(struct scan *scan, uint64_t hash, const void *record, size_t bytes,
		     bool is_kernel)
{
	struct kept *kept = find_kept(scan, hash);

	if (kept) {
		kept->references++;
		return hash;
	}
	kept = copy_record(scan, hash, record, bytes, is_kernel);
	if (!kept) {
		scan->stats.refused++;
		return 0;
	}
	scan->bytes += bytes;
	(void)describe(scan, kept); /* refused and counted there; scan_refresh() tries again */
	return hash;
}

static void drop(struct scan *scan, uint64_t hash)
{
	struct kept *kept = hash ? find_kept(scan, hash) : NULL;

	if (!kept || --kept->references)
		return;
	scan->bytes -= kept->bytes;
	HASH_DROP(scan->kept, kept);
}

static uint64_t keep_kernel(struct scan *scan, const struct pp_scan_record *thread)
{
	struct {
		struct pp_kernel_record record;
		uint64_t address[PP_MAX_KERNEL_FRAMES];
	} kernel = {.record = {.record = {.type = PP_RECORD_KERNEL}}};
	size_t bytes = thread->kernel_count * sizeof(uint64_t);

	if (!bytes || scan->finisher->no_kernel)
		return 0;
	memcpy(kernel.address, thread->kernel, bytes);
	kernel.record.hash =
		XXH3_64bits_withSeed(kernel.address, bytes, scan->finisher->secret) | 1;
	bytes += sizeof(kernel.record);
	kernel.record.record.size = (uint32_t)bytes;
	return keep(scan, kernel.record.hash, &kernel, bytes, true);
}

static uint64_t keep_user(struct scan *scan, const struct pp_stack_record *record)
{
	size_t frames = (size_t)record->python_stored + record->native_stored;

	if (record->python_stored)
		scan->finisher->want_names(scan->finisher->context, record->id);
	return keep(scan, record->hash, record, sizeof(*record) + frames * sizeof(struct pp_frame),
		    false);
}

/* ---- threads ---- */

static int compare_tids(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	return ORDER(left->scanned.tid, right->scanned.tid);
}

static void sort_entries(struct scan *scan)
{
	if (scan->count)
		qsort(scan->entry, scan->count, sizeof(*scan->entry), compare_tids);
}

static struct entry *find_entry(const struct scan *scan, uint32_t tid)
{
	const struct entry key = {.scanned = {.tid = tid}};

	return scan->count ? bsearch(&key, scan->entry, scan->count, sizeof(key), compare_tids)
			   : NULL;
}

/* Finds the thread's process.  Returns false when it does not match the filter. */
static bool identify(struct scan *scan, uint32_t tgid, struct process **ret_process,
		     struct pp_process_id *ret_id)
{
	const struct finisher *finisher = scan->finisher;
	struct process *process = process_table_find_tgid(finisher->processes, tgid);
	struct pp_process_id id = {.tgid = tgid};

	if (process && process->exit_ns)
		process = NULL;
	if (!process && !kernel_side_get_generation(finisher->kernel, tgid, &id.generation))
		process = finisher->find_process(finisher->context, id);
	*ret_process = process;
	*ret_id = process ? process->id : id;
	return !finisher->is_filtered ||
	       (process && context_table_flags(process) & PP_CONTEXT_MATCHES);
}

static uint64_t moves_now(const struct scan *scan, uint32_t tid)
{
	return thread_slots_moves(scan->slot, scan->slot_count, scan->slot_seed, tid);
}

/* While counting is paused the kernel side gives no thread a slot. */
static bool is_paused(const struct scan *scan)
{
	return kernel_side_config(scan->finisher->kernel)->flags & PP_CONFIG_PAUSED;
}

/* Returns whether the thread was seen at a switch, so that the scan skips it. */
static bool is_seen(const struct scan *scan, uint32_t tid)
{
	struct thread_glance glance;

	return !scan->scope.wants &&
	       thread_slots_glance(scan->slot, scan->slot_count, scan->slot_seed, tid, &glance) &&
	       (glance.has_exited || glance.flags & PP_THREAD_MATCHES);
}

static bool is_asked_for(const struct scan *scan, const struct pp_scan_record *thread)
{
	if (scan->scope.wants)
		return scan->scope.wants(scan->scope.context, thread->tgid);
	return !is_seen(scan, thread->tid) &&
	       !(scan->scope.is_known && scan->scope.is_known(scan->scope.context, thread->tid));
}

static void settle(struct scan *scan, struct entry *entry)
{
	entry->is_settled = true;
	scan->pending--;
}

static void walk_entry(struct scan *scan, struct entry *entry, const struct pp_scan_record *thread,
		       struct process *process)
{
	OWNED_MEM struct pp_stack_record *record = NULL;
	struct scanned *scanned = &entry->scanned;

	if (scan->stats.spent_ns > SCAN_MAX_NS) {
		scan->stats.late++;
		process = NULL;
	}
	scan->stats.walks++;
	drop(scan, scanned->user_stack);
	drop(scan, scanned->kernel_stack);
	scanned->user_stack = 0;
	if (scan_walk(scan->walker, thread, process, scanned, &record))
		scan->stats.refused++;
	if (record)
		scanned->user_stack = keep_user(scan, record);
	scanned->kernel_stack = keep_kernel(scan, thread);
	entry->started_ns = thread->started_ns;
	scanned->switches = thread->switches;
	/* A thread that ran meanwhile has a slot now; a thread with a slot is checked again. */
	scanned->is_torn = scan->scope.wants || is_paused(scan) ||
			   moves_now(scan, thread->tid) != scanned->moves;
}

static void add_entry(struct scan *scan, const struct pp_scan_record *thread,
		      struct process *process, struct pp_process_id id, uint64_t moves)
{
	struct entry *entry;

	/* Threads beyond the number of slots are not measured in any case. */
	if (scan->count >= scan->slot_count ||
	    ARRAY_RESERVE(scan->entry, scan->count, scan->capacity)) {
		scan->stats.refused++;
		return;
	}
	entry = &scan->entry[scan->count++];
	*entry = (struct entry){.scanned = {.tid = thread->tid, .id = id, .moves = moves}};
	scan->pending++;
	scan->stats.threads++;
	walk_entry(scan, entry, thread, process);
}

static void take_record(struct scan *scan, const struct pp_scan_record *thread)
{
	struct entry *entry;
	struct process *process;
	struct pp_process_id id;

	if (scan->stats.passes == 1) {
		uint64_t moves = moves_now(scan, thread->tid);

		if (is_asked_for(scan, thread) && identify(scan, thread->tgid, &process, &id))
			add_entry(scan, thread, process, id, moves);
		return;
	}
	/* It was running in the first pass, so its next switch will be seen. */
	entry = find_entry(scan, thread->tid);
	if (!entry || entry->is_settled)
		return;
	if (entry->started_ns == thread->started_ns &&
	    entry->scanned.switches == thread->switches) {
		entry->scanned.is_torn = false;
		settle(scan, entry);
	} else if (scan->stats.passes <= SCAN_WALKS && !is_seen(scan, thread->tid) &&
		   identify(scan, thread->tgid, &process, &id)) {
		entry->scanned.id = id;
		entry->scanned.moves = moves_now(scan, thread->tid);
		walk_entry(scan, entry, thread, process);
		entry->scanned.is_torn =
			true; /* it has no slot: only the next pass can tell whether it ran */
	}
}

/* ---- passes ---- */

static int begin_pass(struct scan *scan)
{
	int fd, err = kernel_side_open_scan(scan->finisher->kernel, &fd);

	if (!err)
		err = scan_reader_new(fd, &scan->reader);
	if (!err)
		scan->stats.passes++;
	return err;
}

static void finish(struct scan *scan)
{
	scan_walker_free(TAKE(scan->walker));
	scan_reader_free(TAKE(scan->reader));
	sort_entries(scan); /* a first pass that failed has not sorted them */
	for (size_t i = 0; i < scan->count; i++)
		scan->stats.torn += scan->entry[i].scanned.is_torn;
}

/* Drops the threads that have run since. */
static void settle_seen(struct scan *scan)
{
	for (size_t i = 0; i < scan->count; i++)
		if (!scan->entry[i].is_settled && is_seen(scan, scan->entry[i].scanned.tid))
			settle(scan, &scan->entry[i]);
}

/* Returns 1: another pass is needed; 0: done; -errno. */
static int end_pass(struct scan *scan)
{
	scan_reader_free(TAKE(scan->reader));
	scan_walker_forget(scan->walker);
	if (scan->stats.passes == 1)
		sort_entries(scan);
	settle_seen(scan);
	/* The last pass only compares and walks nothing. */
	if (!scan->pending || scan->stats.passes > SCAN_WALKS)
		return 0;
	return begin_pass(scan) ?: 1;
}

static int read_threads(struct scan *scan, uint64_t until_ns)
{
	const struct pp_scan_record *thread;
	int more;

	do {
		more = scan_reader_next(scan->reader, &thread);
		if (more > 0)
			take_record(scan, thread);
		else if (!more)
			more = end_pass(scan);
	} while (more > 0 && mono_ns() < until_ns);
	return more;
}

int scan_step(struct scan *scan, uint64_t budget_ns)
{
	uint64_t now_ns = mono_ns();
	int more;

	if (!scan->walker)
		return 0;
	/* Take in the mappings of new processes first. */
	more = scan->finisher->follow_processes(scan->finisher->context);
	if (!more)
		more = read_threads(scan, budget_ns > UINT64_MAX - now_ns ? UINT64_MAX
									  : now_ns + budget_ns);
	scan->stats.spent_ns += mono_ns() - now_ns;
	if (more <= 0)
		finish(scan);
	return more;
}

int scan_new(const struct finisher *finisher, const struct scan_scope *scope,
	     struct scan **ret_scan)
{
	OWNED(scan) struct scan *scan = calloc(1, sizeof(*scan));
	int err;

	if (!scan)
		return -ENOMEM;
	scan->finisher = finisher;
	scan->scope = *scope;
	scan->slot = kernel_side_threads(finisher->kernel, &scan->slot_count);
	scan->slot_seed = kernel_side_config(finisher->kernel)->thread_seed;
	err = scan_walker_new(finisher, &scan->walker);
	if (!err)
		err = begin_pass(scan);
	if (err)
		return err;
	*ret_scan = TAKE(scan);
	return 0;
}

void scan_free(struct scan *scan)
{
	if (!scan)
		return;
	HASH_DROP_ALL(scan->kept);
	scan_walker_free(scan->walker);
	scan_reader_free(scan->reader);
	free(scan->entry);
	free(scan);
}

/* ---- results ---- */

const struct scanned *scan_find(const struct scan *scan, uint32_t tid)
{
	const struct entry *entry = scan->walker ? NULL : find_entry(scan, tid);

	return entry && !entry->is_forgotten ? &entry->scanned : NULL;
}

struct scanned *scan_next(struct scan *scan, const struct scanned *scanned)
{
	/* `scanned` is the first field of struct entry. */
	struct entry *entry = scanned ? (struct entry *)scanned + 1 : scan->entry;

	for (; entry && entry < scan->entry + scan->count; entry++)
		if (!entry->is_forgotten)
			return &entry->scanned;
	return NULL;
}

void scan_forget(struct scan *scan, struct scanned *scanned)
{
	struct entry *entry = (struct entry *)scanned;

	if (entry->is_forgotten)
		return;
	entry->is_forgotten = true;
	if (!entry->is_settled)
		settle(scan, entry);
	drop(scan, scanned->user_stack);
	drop(scan, scanned->kernel_stack);
}

int scan_refresh(struct scan *scan)
{
	struct kept *kept, *next;
	int result = 0;

	HASH_ITER (hh, scan->kept, kept, next) {
		int err = describe(scan, kept);

		if (err)
			result = err;
	}
	return result;
}

void scan_get_stats(const struct scan *scan, struct scan_stats *ret_stats)
{
	*ret_stats = scan->stats;
}
