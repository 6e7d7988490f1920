/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the resident memory of the profiled processes once a window, and adds it to the window's
 * profile of kind resident. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/context_table.h"
#include "base/clock.h"
#include "base/hash.h"
#include "discover/proc_scan.h"
#include "discover/process_figures.h"
#include "discover/process_table.h"
#include "processes/process_list.h"
#include "windows/process_record.h"
#include "windows/profiles.h"
#include "windows/record_sink.h"
#include "windows/source.h"
#include "windows/summary.h"
#include "windows/top.h"

/* Reading one file takes some 20 us.  With more processes than this, they take turns, and each
 * window has the last known figures of those whose turn it is not.  Those that have not run since
 * they were read have what they had, but for what others have taken from them. */
#define READS_MAX 1024U
#define READS_AT_REST_MAX 128U
/* Processes whose figures are kept; those of further ones are not read. */
#define KEPT_MAX 16384U
/* After the reading of a part of a window, none is read for so many times as long. */
#define REST_FACTOR 20U

struct figures {
	uint64_t at_ns; /* when they were read; 0: never */
	struct resident_memory memory;
};

struct entry {
	struct pp_process_id id;
	uint32_t user;
	char comm[PP_COMM_BYTES + 1];
	bool has_none; /* a kernel thread: it is not read again */
	bool was_read; /* in this reading */
	/* The last ones, and those of the profile before, or the first ones. */
	struct figures last, written;
	struct figures sent; /* to clients */
	UT_hash_handle hh;
};

/* Processes that take turns: some in a row of the pending ones. */
struct turn {
	size_t first, count; /* in pending */
	size_t max;	     /* of a reading */
	size_t rotation;     /* how many had their turn, in all */
};

struct resident {
	const struct services *services;
	struct entry *entry; /* owned, by id */
	/* A reading that goes on. */
	bool is_reading;
	struct process_list pending; /* the processes of this reading */
	uint64_t beyond;	     /* how many found no room there */
	size_t done;		     /* how many were read */
	uint64_t spent_ns;	     /* CPU time */
	/* From one reading to the next. */
	struct turn ran, at_rest;
	uint64_t unread;	     /* profiled processes of the last reading without figures */
	struct resident_memory gone; /* sums up ended ones that left their room to others */
	uint64_t gone_count;
	uint64_t rests_until_ns;
};

static uint64_t all_bytes(const struct resident_memory *memory)
{
	return memory->anonymous_bytes + memory->file_bytes + memory->shared_bytes;
}

static void add_memory(struct resident_memory *sum, const struct resident_memory *memory)
{
	sum->anonymous_bytes += memory->anonymous_bytes;
	sum->file_bytes += memory->file_bytes;
	sum->shared_bytes += memory->shared_bytes;
}

/* ---- a reading ---- */

static bool is_profiled(const struct resident *resident, const struct process *process)
{
	return !process->exit_ns && (!resident->services->is_filtered ||
				     context_table_flags(process) & PP_CONTEXT_MATCHES);
}

static bool has_ended(const struct resident *resident, struct pp_process_id id)
{
	const struct process *process = process_table_find(resident->services->processes, id);

	return !process || process->exit_ns;
}

/* One file of a long run has the processes of hours. */
static void make_room(struct resident *resident)
{
	struct entry *entry, *next;

	if (HASH_COUNT(resident->entry) < KEPT_MAX)
		return;
	HASH_ITER (hh, resident->entry, entry, next) {
		if (!has_ended(resident, entry->id))
			continue;
		if (entry->last.at_ns) {
			add_memory(&resident->gone, &entry->last.memory);
			resident->gone_count++;
		}
		HASH_DROP(resident->entry, entry);
	}
}

static int list_processes(struct resident *resident, bool at_rest, struct turn *turn)
{
	const struct process *process = NULL;
	int err = 0;

	turn->first = resident->pending.count;
	while (err != -ENOMEM &&
	       (process = process_table_next(resident->services->processes, process)))
		if (process->is_at_rest == at_rest && is_profiled(resident, process)) {
			err = process_list_add(&resident->pending, process->id);
			resident->beyond += err == -ENOSPC;
		}
	turn->count = resident->pending.count - turn->first;
	return err == -ENOMEM ? err : 0;
}

static int begin(struct resident *resident)
{
	int err;

	resident->pending.count = resident->done = 0;
	resident->beyond = resident->spent_ns = 0;
	resident->ran.max = READS_MAX;
	resident->at_rest.max = READS_AT_REST_MAX;
	make_room(resident);
	err = list_processes(resident, false, &resident->ran);
	if (!err)
		err = list_processes(resident, true, &resident->at_rest);
	if (err)
		return err;
	for (struct entry *entry = resident->entry; entry; entry = entry->hh.next)
		entry->was_read = false;
	resident->is_reading = true;
	return 0;
}

static int find_entry(struct resident *resident, struct pp_process_id id, struct entry **ret_entry)
{
	struct entry *entry;

	HASH_FIND(hh, resident->entry, &id, sizeof(id), entry);
	if (!entry && HASH_COUNT(resident->entry) < KEPT_MAX) {
		entry = HASH_GET(resident->entry, id, id);
		if (!entry)
			return -ENOMEM;
	}
	*ret_entry = entry;
	return 0;
}

/* The figures may be those of a program that had the pid before or after: nobody is told of a
 * process that has ended meanwhile (windows/top.c: wants()). */
static void take(struct entry *entry, struct process *process, const struct resident_memory *memory)
{
	memcpy(entry->comm, process->comm, PP_COMM_BYTES);
	entry->user = process_user_kept(process);
	entry->last = (struct figures){.at_ns = mono_ns(), .memory = *memory};
	entry->was_read = true;
	if (!entry->written.at_ns)
		entry->written = entry->last;
	if (!entry->sent.at_ns)
		entry->sent = entry->last;
}

static int read_one(struct resident *resident, struct pp_process_id id)
{
	struct process *process = process_table_find(resident->services->processes, id);
	struct resident_memory memory;
	struct entry *entry;
	int err = find_entry(resident, id, &entry);

	if (err || !entry)
		return err;
	if (!process || process->exit_ns || entry->has_none)
		return 0;
	process->is_at_rest = true;
	err = resident_memory_read(id.tgid, &memory);
	if (!err)
		take(entry, process, &memory);
	entry->has_none = err == -ENODATA && !entry->last.at_ns;
	return 0;
}

/* Returns how many of these a reading reads. */
static size_t wanted(const struct turn *turn)
{
	return turn->count < turn->max ? turn->count : turn->max;
}

/* Returns which of the pending ones is the n-th to be read. */
static size_t place_of(const struct turn *turn, size_t n)
{
	const size_t start = turn->count > turn->max ? turn->rotation : 0;

	return turn->first + (start + n) % turn->count;
}

static int read_some(struct resident *resident, const struct slice *slice)
{
	const size_t ran = wanted(&resident->ran), all = ran + wanted(&resident->at_rest);
	int err = 0;

	while (!err && resident->done < all) {
		const size_t n = resident->done++;
		const size_t at = n < ran ? place_of(&resident->ran, n)
					  : place_of(&resident->at_rest, n - ran);

		err = read_one(resident, resident->pending.id[at]);
		if (!err && resident->done < all && slice_is_over(slice))
			return 1;
	}
	return err;
}

/* ---- the order ---- */

/* Lists the processes with figures. */
static int take_turns(const struct resident *resident, struct record_turn **ret_turn,
		      size_t *ret_count)
{
	struct record_turn *turn = calloc(HASH_COUNT(resident->entry) + 1, sizeof(*turn));
	size_t count = 0;

	if (!turn)
		return -ENOMEM;
	for (struct entry *entry = resident->entry; entry; entry = entry->hh.next)
		if (entry->last.at_ns)
			turn[count++] = (struct record_turn){.of = entry,
							     .size = all_bytes(&entry->last.memory),
							     .user = entry->user,
							     .pid = entry->id.tgid};
	record_take_turns(turn, count);
	*ret_turn = turn;
	*ret_count = count;
	return 0;
}

/* ---- what a reading found ---- */

/* Keeps the largest ones, largest first. */
static void note_largest(uint64_t largest[SUMMARY_LARGEST], uint64_t bytes)
{
	for (unsigned int i = 0; i < SUMMARY_LARGEST; i++) {
		const uint64_t other = largest[i];

		if (other >= bytes)
			continue;
		largest[i] = bytes;
		bytes = other;
	}
}

static void sum_up(struct summary *summary, const struct record_turn *turn, size_t count)
{
	struct resident_memory sum = {0};

	memset(summary->memory_largest_bytes, 0, sizeof(summary->memory_largest_bytes));
	for (size_t i = 0; i < count; i++) {
		const struct entry *entry = turn[i].of;

		add_memory(&sum, &entry->last.memory);
		note_largest(summary->memory_largest_bytes, turn[i].size);
	}
	summary->memory_processes = count;
	summary->memory_anonymous_bytes = sum.anonymous_bytes;
	summary->memory_file_bytes = sum.file_bytes;
	summary->memory_shared_bytes = sum.shared_bytes;
}

/* Counts the processes of this reading whose figures are not known. */
static uint64_t count_unread(const struct resident *resident)
{
	uint64_t count = resident->beyond;

	for (size_t i = 0; i < resident->pending.count; i++) {
		const struct pp_process_id id = resident->pending.id[i];
		const struct entry *entry;

		HASH_FIND(hh, resident->entry, &id, sizeof(id), entry);
		if (entry ? !entry->last.at_ns && !entry->has_none : !has_ended(resident, id))
			count++;
	}
	return count;
}

/* ---- rows ---- */

static int put_part(const struct record_sink *sink, struct record *record, enum pp_memory memory,
		    uint64_t bytes)
{
	int err;

	if (!bytes)
		return 0;
	record_next(record);
	record->sample.value[PP_RESIDENT_BYTES] = (int64_t)bytes;
	err = record_about(record, sink->strings, "memory", kind_memory(memory));
	return err ? err : record_put(sink, record);
}

static int put_memory(const struct record_sink *sink, struct record *record,
		      const struct resident_memory *memory)
{
	int err = put_part(sink, record, PP_MEMORY_ANONYMOUS, memory->anonymous_bytes);

	if (!err)
		err = put_part(sink, record, PP_MEMORY_FILE, memory->file_bytes);
	return err ? err : put_part(sink, record, PP_MEMORY_SHARED, memory->shared_bytes);
}

/* A row that is of a process as a whole. */
static int put_process(const struct record_sink *sink, struct record *record,
		       const struct entry *entry)
{
	const struct figures *before = sink->profiles ? &entry->written : &entry->sent;
	int64_t *value = record->sample.value;

	value[PP_RESIDENT_PEAK] = (int64_t)entry->last.memory.peak_bytes;
	value[PP_RESIDENT_GROWTH] =
		(int64_t)(all_bytes(&entry->last.memory) - all_bytes(&before->memory));
	value[PP_RESIDENT_GROWTH_TIME] = (int64_t)(entry->last.at_ns - before->at_ns);
	value[PP_RESIDENT_PROCESSES] = 1;
	return record_put(sink, record);
}

static int put_entry(const struct record_sink *sink, const struct entry *entry)
{
	struct record record;
	int err = process_record_begin(sink, PP_PROFILE_RESIDENT, entry->id, entry->comm, &record);

	if (!err)
		err = put_process(sink, &record, entry);
	return err ? err : put_memory(sink, &record, &entry->last.memory);
}

/* Adds processes that have no rows: their number, and what they had. */
static int put_more(const struct record_sink *sink, const char *comm, uint64_t count,
		    const struct resident_memory *memory)
{
	struct record record;
	int err;

	if (!count)
		return 0;
	err = process_record_begin(sink, PP_PROFILE_RESIDENT, (struct pp_process_id){}, comm,
				   &record);
	record.sample.value[PP_RESIDENT_PROCESSES] = (int64_t)count;
	if (!err)
		err = record_put(sink, &record);
	return err ? err : put_memory(sink, &record, memory);
}

static bool is_watched(const struct resident *resident)
{
	return top_wants(resident->services->top, 1U << PP_PROFILE_RESIDENT);
}

static int end(struct resident *resident)
{
	const struct record_sink sink = record_sink_clients(resident->services);
	OWNED_MEM struct record_turn *turn = NULL;
	size_t count;
	int err = take_turns(resident, &turn, &count);

	resident->is_reading = false;
	if (err)
		return err;
	resident->ran.rotation += wanted(&resident->ran);
	resident->at_rest.rotation += wanted(&resident->at_rest);
	resident->unread = count_unread(resident);
	sum_up(resident->services->summary, turn, count);
	if (!sink.strings || !is_watched(resident))
		return 0;
	for (size_t i = 0; i < count && !err; i++) {
		struct entry *entry = (struct entry *)turn[i].of;

		if (!entry->was_read)
			continue;
		err = put_entry(&sink, entry);
		entry->sent = entry->last;
	}
	return err;
}

/* Goes on with a reading until the slice is over (NULL: all), and at the end sends its rows to
 * clients.  is_part: the window goes on and ends only for clients, so nothing is read when none of
 * these wants memory, or when the last reading took too long.  Returns 1: there is more; 0;
 * -ENOMEM. */
static int read_all(struct resident *resident, bool is_part, const struct slice *slice)
{
	const uint64_t begun_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int more = 0;

	if (!resident->is_reading) {
		if (is_part && (!is_watched(resident) || mono_ns() < resident->rests_until_ns))
			return 0;
		more = begin(resident);
	}
	if (more >= 0)
		more = read_some(resident, slice);
	if (!more)
		more = end(resident);
	if (more < 0)
		resident->is_reading = false;
	resident->spent_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns;
	resident->rests_until_ns = mono_ns() + REST_FACTOR * resident->spent_ns;
	return more;
}

/* ---- the window's profile ---- */

/* What has ended is in this profile for the last time. */
static void begin_profile(struct resident *resident)
{
	struct entry *entry, *next;

	HASH_ITER (hh, resident->entry, entry, next) {
		entry->written = entry->last;
		if (has_ended(resident, entry->id))
			HASH_DROP(resident->entry, entry);
	}
	resident->gone = (struct resident_memory){0};
	resident->gone_count = 0;
}

/* ---- as a source ---- */

static bool source_close(void *state)
{
	struct resident *resident = state;

	HASH_DROP_ALL(resident->entry);
	free(resident->pending.id);
	return true;
}

/* Takes the figures that growth is counted from, in one go of READS_MAX files. */
static int source_begin(void *state, uint64_t started_ns)
{
	(void)started_ns;
	return read_all(state, false, NULL);
}

static int source_finish(void *state, const struct source_window *window, const struct slice *slice)
{
	return read_all(state, window->is_part, slice);
}

/* Adds the last figures of each process, and how much they have grown since the profile before;
 * processes beyond RECORD_PROCESSES_MAX share their rows.  The largest of each user come first,
 * users in turn. */
static int source_describe(void *state, struct profiles *profiles)
{
	struct resident *resident = state;
	struct record_sink sink = record_sink_profiles(resident->services, profiles);
	OWNED_MEM struct record_turn *turn = NULL;
	size_t count;
	int err = take_turns(resident, &turn, &count);

	for (size_t i = 0; i < count && !err; i++) {
		sink.is_other = i >= RECORD_PROCESSES_MAX;
		err = put_entry(&sink, turn[i].of);
	}
	sink.is_other = false;
	if (!err)
		err = put_more(&sink, RECORD_OTHERS, resident->gone_count, &resident->gone);
	if (!err)
		err = put_more(&sink, RESIDENT_UNREAD, resident->unread,
			       &(struct resident_memory){0});
	begin_profile(resident);
	return err;
}

const struct source resident_source = {.name = "resident",
				       .bytes = sizeof(struct resident),
				       .close = source_close,
				       .begin = source_begin,
				       .finish = source_finish,
				       .describe = source_describe};
