/* SPDX-License-Identifier: BSD-2-Clause */
#include "windows/profile_shares.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/intern.h"
#include "discover/proc_scan.h"
#include "profile/profile.h"

/* Of all users but root together, on a CPU, in a second; one gets half of it at most.  Builds of
 * 700 processes on two CPUs took 14 to 19 KiB at 99 Hz. */
#define BYTES_MIN (48U << 10)
#define BYTES_PER_HZ 160U
/* Names that are in each window, however short it is. */
#define EXTRA_NS (2 * NS_PER_SEC)
/* Estimates, from profiles of ours: bytes of a row, a label, a step, and a new name beside its
 * text. */
#define ROW_BYTES 16U
#define LABEL_BYTES 2U
#define STEP_BYTES 3U
#define NAME_BYTES 8U
#define ROW_PROCESSES_MAX 1024U
#define STEP_BITS (1U << 21) /* more than any share has steps */
#define WORD_BITS 64U
/* Marks a number of `steps` in `added`; others are of `strings`. */
#define IS_STEP (1ULL << 63)

/* A process whose stacks are left out, and which has rows of its own. */
struct left_out {
	struct pp_process_id id;
	UT_hash_handle hh;
};

static void met_release(struct met *met)
{
	free(met->word);
	*met = (struct met){};
}

void profile_shares_reset(struct profile_shares *shares)
{
	HASH_DROP_ALL(shares->left_out);
	met_release(&shares->strings);
	met_release(&shares->steps);
	user_quota_give_all(&shares->quota);
}

void profile_shares_allow(struct profile_shares *shares, uint64_t duration_ns, uint32_t cpus,
			  uint32_t hz)
{
	const uint64_t bytes_per_second = (uint64_t)cpus * (BYTES_MIN + BYTES_PER_HZ * hz);

	shares->quota.total = (duration_ns + EXTRA_NS) / NS_PER_MS * bytes_per_second / 1000;
}

void profile_shares_release(struct profile_shares *shares)
{
	profile_shares_reset(shares);
	user_quota_release(&shares->quota);
	free(shares->added);
	*shares = (struct profile_shares){};
}

static uint32_t user_of(struct process *process)
{
	/* Another process may have the number of one that has ended. */
	if (!process || (process->exit_ns && !process->is_user_known))
		return PROFILE_SHARES_UNKNOWN;
	return process_user_kept(process);
}

bool profile_shares_has_row(struct profile_shares *shares, const struct process *process)
{
	struct left_out *known = NULL;

	if (!process)
		return false;
	HASH_FIND(hh, shares->left_out, &process->id, sizeof(process->id), known);
	return known || (HASH_COUNT(shares->left_out) < ROW_PROCESSES_MAX &&
			 HASH_GET(shares->left_out, id, process->id));
}

static struct met *met_of(struct profile_shares *shares, uint64_t added)
{
	return added & IS_STEP ? &shares->steps : &shares->strings;
}

/* Notes a number.  Returns 1: it is new; 0; -ENOMEM. */
static int meet(struct profile_shares *shares, uint64_t added)
{
	const uint64_t number = added & ~IS_STEP, bit = 1ULL << number % WORD_BITS;
	uint64_t *word = &met_of(shares, added)->word[number / WORD_BITS];

	if (*word & bit)
		return 0;
	if (ARRAY_RESERVE(shares->added, shares->added_count, shares->added_capacity))
		return -ENOMEM;
	shares->added[shares->added_count++] = added;
	*word |= bit;
	return 1;
}

static void take_back(struct profile_shares *shares)
{
	for (size_t i = 0; i < shares->added_count; i++) {
		const uint64_t number = shares->added[i] & ~IS_STEP;

		met_of(shares, shares->added[i])->word[number / WORD_BITS] &=
			~(1ULL << number % WORD_BITS);
	}
}

/* Two steps of MurmurHash3's finalizer: each bit of both moves all others. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash + value) * 0xff51afd7ed558ccdULL;
	hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53ULL;
	return hash ^ hash >> 33;
}

static uint64_t frame_hash(const struct frame *frame)
{
	uint64_t hash = mix(frame->kind, (uint64_t)frame->name << 32 | frame->file);

	return mix(mix(hash, frame->address), (uint64_t)frame->line << 32 | frame->module);
}

/* Adds what a string costs that is new. */
static int add_string(struct profile_shares *shares, const struct intern *strings, uint32_t id,
		      uint64_t *bytes)
{
	int is_new = meet(shares, id);
	size_t size = 0;

	if (is_new <= 0)
		return is_new;
	(void)intern_get(strings, id, &size);
	*bytes += size + NAME_BYTES;
	return 0;
}

static int add_frames(struct profile_shares *shares, const struct intern *strings,
		      const struct profile_sample *sample, uint64_t most, uint64_t *bytes)
{
	uint64_t caller = 0;

	for (size_t i = sample->frame_count; i-- > 0 && *bytes <= most;) {
		const struct frame *frame = &sample->frame[i];
		const uint64_t hash = frame_hash(frame), step = mix(hash, caller);
		int is_new = meet(shares, IS_STEP | (step >> 32) % STEP_BITS);
		int err = is_new < 0 ? is_new : 0;

		caller = hash;
		*bytes += is_new > 0 ? STEP_BYTES : 0;
		if (!err)
			err = add_string(shares, strings, frame->name, bytes);
		if (!err)
			err = add_string(shares, strings, frame->system_name, bytes);
		if (!err)
			err = add_string(shares, strings, frame->file, bytes);
		if (err)
			return err;
	}
	return 0;
}

static int add_labels(struct profile_shares *shares, const struct intern *strings,
		      const struct profile_sample *sample, uint64_t *bytes)
{
	int err = 0;

	for (size_t i = 0; i < sample->label_count && !err; i++) {
		*bytes += LABEL_BYTES;
		if (!sample->label[i].is_number)
			err = add_string(shares, strings, sample->label[i].string, bytes);
	}
	return err;
}

/* Makes room for all strings that there are. */
static int prepare(struct profile_shares *shares, const struct intern *strings)
{
	const size_t words = intern_count(strings) / WORD_BITS + 1;
	int err = 0;

	if (words > shares->strings.words)
		err = ARRAY_EXTEND(shares->strings.word, words + words / 2, shares->strings.words);
	if (!err)
		err = ARRAY_EXTEND(shares->steps.word, STEP_BITS / WORD_BITS, shares->steps.words);
	shares->added_count = 0;
	return err;
}

int profile_shares_take(struct profile_shares *shares, const struct intern *strings,
			struct process *process, const struct profile_sample *sample)
{
	const uint64_t most = shares->quota.total;
	const uint32_t uid = user_of(process);
	uint64_t bytes = ROW_BYTES;
	int err;

	if (!uid)
		return 0;
	err = prepare(shares, strings);
	if (!err)
		err = add_frames(shares, strings, sample, most, &bytes);
	if (!err)
		err = add_labels(shares, strings, sample, &bytes);
	if (!err)
		err = user_quota_take(&shares->quota, uid, bytes);
	if (err)
		take_back(shares);
	return err;
}
