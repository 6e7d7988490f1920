/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs had the GPU do, exactly, as rows of kind cuda_calls: of a window's profile, and of
 * the processes that clients may see.  A source (windows/source.h); the loop's thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/index_table.h"
#include "discover/proc_scan.h"
#include "drain/cuda_totals.h"
#include "gpu/cuda.h"
#include "processes/who.h"
#include "profile/cuda_sums.h"
#include "windows/process_record.h"
#include "windows/record_sink.h"
#include "windows/source.h"
#include "windows/top.h"

/* The most rows of functions and kernels in a profile, and in what a client gets of a window.  Each
 * process has a sum of its own for what is beyond. */
#define ROWS_MAX 512U
/* Of these, such that stay as they are; further kernels are summed up as CUDA_OTHER_KERNELS of
 * their process, function, device and direction, as long as there is room for that. */
#define ROWS_WHOLE 384U
/* The most that are told apart in memory. */
#define ROWS_KEPT_MAX 65536U
#define CALL_NS 1000U /* as which a call counts in the order */
#define USER_UNKNOWN UINT32_MAX

/* What a row is about; compared and hashed as bytes.  Without strings it sums up what a process has
 * beyond other rows. */
struct about {
	struct pp_process_id id;
	uint32_t device, api, direction, kernel; /* strings */
};

struct entry {
	struct about about;
	uint32_t comm, user;
	uint32_t process, place; /* in the order in which rows are put */
	struct cuda_sums sums;
};

struct rows {
	struct intern *strings; /* borrowed */
	struct entry *entry;
	uint32_t count, capacity;
	uint32_t of_functions; /* entries */
	struct index_table index;
};

struct cuda_report {
	const struct services *services;
	struct intern *strings; /* owned; NULL: the open profile has no rows yet */
	struct rows rows;	/* of the open profile */
	struct rows part;	/* of the window, for clients */
};

static void rows_release(struct rows *rows)
{
	index_table_release(&rows->index);
	free(rows->entry);
	*rows = (struct rows){};
}

/* ---- adding ---- */

static bool entry_equal(const void *context, uint32_t index, const void *key)
{
	const struct rows *rows = context;

	return !memcmp(&rows->entry[index].about, key, sizeof(rows->entry[index].about));
}

/* Finds the entry about the same as `of`, or adds one without sums while there are fewer than
 * `max`.  *ret_at: rows->count where there is none. */
static int find_entry(struct rows *rows, const struct entry *of, uint32_t max, uint32_t *ret_at)
{
	const uint32_t hash = (uint32_t)XXH3_64bits(&of->about, sizeof(of->about));
	int err;

	if (index_table_find(&rows->index, hash, entry_equal, rows, &of->about, ret_at))
		return 0;
	*ret_at = rows->count;
	if (of->about.api && rows->of_functions >= max)
		return 0;
	err = ARRAY_RESERVE(rows->entry, rows->count, rows->capacity);
	if (!err)
		err = index_table_add(&rows->index, hash, rows->count);
	if (err)
		return err;
	rows->entry[rows->count] = *of;
	rows->entry[rows->count].place = rows->count;
	rows->entry[rows->count++].sums = (struct cuda_sums){};
	rows->of_functions += of->about.api != 0;
	return 0;
}

/* Adds sums, to those of the process where there is no room. */
static int add_entry(struct rows *rows, const struct entry *more, uint32_t max)
{
	struct entry whole = *more;
	uint32_t process, at;
	int err;

	whole.about = (struct about){.id = more->about.id};
	err = find_entry(rows, &whole, max, &process);
	if (!err)
		err = find_entry(rows, more, max, &at);
	if (err)
		return err;
	if (at == rows->count)
		at = process;
	rows->entry[at].process = rows->entry[process].process = process;
	cuda_sums_add(&rows->entry[at].sums, &more->sums);
	return 0;
}

static int set_texts(struct intern *strings, const struct cuda_call *call, const char *comm,
		     struct entry *entry)
{
	int err = intern_string(strings, comm, &entry->comm);

	if (!err)
		err = intern_string(strings, call->device, &entry->about.device);
	if (!err)
		err = intern_string(strings, call->api, &entry->about.api);
	if (!err)
		err = intern_string(strings, call->direction, &entry->about.direction);
	return err ? err : intern_string(strings, call->kernel, &entry->about.kernel);
}

static int64_t clamped(uint64_t number)
{
	return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

static void set_sums(const struct cuda_fresh *fresh, struct cuda_sums *ret_sums)
{
	*ret_sums = (struct cuda_sums){.value = {[PP_EXACT_CALLS] = clamped(fresh->calls),
						 [PP_EXACT_HOST] = clamped(fresh->host_ns),
						 [PP_EXACT_WAIT] = clamped(fresh->wait_ns),
						 [PP_EXACT_BYTES] = clamped(fresh->bytes),
						 [PP_EXACT_CAPTURED] = clamped(fresh->captured),
						 [PP_EXACT_NODES] = clamped(fresh->nodes),
						 [PP_EXACT_SPREAD] = clamped(fresh->spread)}};
	for (size_t i = 0; i < PP_CUDA_HISTOGRAM; i++)
		ret_sums->histogram[i] = fresh->histogram[i];
}

static int on_fresh(void *context, const struct cuda_fresh *fresh)
{
	struct cuda_report *report = context;
	const struct services *services = report->services;
	struct entry entry = {.about.id = fresh->what.id, .user = USER_UNKNOWN};
	struct cuda_call call;
	struct who who;
	int err;

	if (cuda_find(services->sources->state[PP_SOURCE_CUDA], fresh->id, &call))
		return 0;
	who_find(services->processes, fresh->what.id, 0, &who);
	if (who.process)
		entry.user = process_user_kept(who.process);
	set_sums(fresh, &entry.sums);
	err = set_texts(report->strings, &call, who.comm, &entry);
	if (!err)
		err = add_entry(&report->rows, &entry, ROWS_KEPT_MAX);
	return err || !report->part.strings ? err : add_entry(&report->part, &entry, ROWS_KEPT_MAX);
}

/* ---- the order ---- */

static uint64_t weight_of(const struct cuda_sums *sums)
{
	uint64_t weight;

	if (__builtin_mul_overflow((uint64_t)sums->value[PP_EXACT_CALLS], CALL_NS, &weight) ||
	    __builtin_add_overflow(weight, (uint64_t)sums->value[PP_EXACT_HOST], &weight))
		return UINT64_MAX;
	return weight;
}

/* Makes what is put of the rows: those that take the most time on the host, each user's first one,
 * then each user's second.  chosen: empty, with the same strings. */
static int choose(const struct rows *rows, struct rows *chosen)
{
	const uint32_t whole = rows->of_functions > ROWS_MAX ? ROWS_WHOLE : ROWS_MAX;
	OWNED_MEM struct record_turn *turn = calloc((size_t)rows->count + 1, sizeof(*turn));
	uint32_t others;
	int err = turn ? intern_string(rows->strings, CUDA_OTHER_KERNELS, &others) : -ENOMEM;

	if (err)
		return err;
	for (uint32_t i = 0; i < rows->count; i++)
		turn[i] = (struct record_turn){.of = &rows->entry[i],
					       .size = weight_of(&rows->entry[i].sums),
					       .user = rows->entry[i].user,
					       .pid = rows->entry[i].about.id.tgid};
	record_take_turns(turn, rows->count);
	for (uint32_t i = 0; i < rows->count && !err; i++) {
		struct entry entry = *(const struct entry *)turn[i].of;

		if (chosen->of_functions >= whole && entry.about.kernel)
			entry.about.kernel = others;
		err = add_entry(chosen, &entry, ROWS_MAX);
	}
	return err;
}

static int by_process(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	return ORDER(a->process, b->process) ?: ORDER(a->place, b->place);
}

/* ---- putting ---- */

static int put_record(const void *context, struct record *record)
{
	return record_put(context, record);
}

static int put_entry(const struct record_sink *sink, const struct intern *strings,
		     const struct entry *entry, struct record *record)
{
	const struct about *about = &entry->about;
	int err;

	record_next(record);
	err = record_label(record, sink->strings, "device",
			   intern_get(strings, about->device, NULL));
	if (!err)
		err = record_label(record, sink->strings, "direction",
				   intern_get(strings, about->direction, NULL));
	if (!err && about->api)
		err = record_about(record, sink->strings, "api",
				   intern_get(strings, about->api, NULL));
	if (!err && about->kernel)
		err = record_about(record, sink->strings, "kernel",
				   intern_get(strings, about->kernel, NULL));
	return err ? err : cuda_sums_put(&entry->sums, record, put_record, sink);
}

/* Puts the rows of one process after the other.  Which ones are others' in what a client gets is
 * for windows/top.h: of all that it may see. */
static int put_rows(const struct rows *rows, struct record_sink sink)
{
	CLEANUP(rows_release) struct rows chosen = {.strings = rows->strings};
	struct record record;
	uint32_t processes = 0;
	int err = choose(rows, &chosen);

	if (!err && chosen.count)
		qsort(chosen.entry, chosen.count, sizeof(*chosen.entry), by_process);
	for (uint32_t i = 0; i < chosen.count && !err; i++) {
		const struct entry *entry = &chosen.entry[i];

		if (!i || entry->process != entry[-1].process) {
			sink.is_other = sink.profiles && processes++ >= RECORD_PROCESSES_MAX;
			err = process_record_begin(&sink, PP_PROFILE_CUDA_CALLS, entry->about.id,
						   intern_get(rows->strings, entry->comm, NULL),
						   &record);
		}
		if (!err)
			err = put_entry(&sink, rows->strings, entry, &record);
	}
	return err;
}

/* ---- as a source ---- */

static void begin_profile(struct cuda_report *report)
{
	rows_release(&report->rows);
	intern_free(TAKE(report->strings));
}

static bool source_close(void *state)
{
	begin_profile(state);
	return true;
}

/* Takes what the rows had in the window: kernels have their names. */
static int source_finish(void *state, const struct source_window *window, const struct slice *slice)
{
	struct cuda_report *report = state;
	const struct services *services = report->services;
	const struct record_sink sink = record_sink_clients(services);
	int err = report->strings ? 0 : intern_new(&report->strings);

	(void)window, (void)slice;
	if (err)
		return err;
	report->rows.strings = report->strings;
	if (sink.strings && top_wants(services->top, 1U << PP_PROFILE_CUDA_CALLS))
		report->part.strings = report->strings;
	err = cuda_fresh(services->sources->state[PP_SOURCE_CUDA], on_fresh, report);
	if (!err && report->part.count)
		err = put_rows(&report->part, sink);
	rows_release(&report->part);
	return err;
}

/* Puts what was taken since the last call: the next profile begins. */
static int source_describe(void *state, struct profiles *profiles)
{
	struct cuda_report *report = state;
	const int err =
		report->rows.count
			? put_rows(&report->rows, record_sink_profiles(report->services, profiles))
			: 0;

	begin_profile(report);
	return err;
}

const struct source cuda_report_source = {.name = "cuda_report",
					  .bytes = sizeof(struct cuda_report),
					  .close = source_close,
					  .finish = source_finish,
					  .describe = source_describe};
