/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/output.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/safe_file.h"
#include "pprof/pprof.h"
#include "profile/profile.h"
#include "store/file_output.h"
#include "store/keeper.h"
#include "store/merger.h"
#include "store/store.h"

/* How many profiles are kept while the disk is full, of all kinds together.  A window writes one to
 * four kinds, so these are whole windows, 6 at least: no window loses one kind and keeps
 * another. */
#define WAITING_MAX 24U
#define WARN_AGAIN_NS (600 * NS_PER_SEC)
/* How long the end of the run waits for a writer that sleeps on the disk; BACKGROUND_LIMITS_MAX
 * times as long for one that lacks the CPU: see TimeoutStopSec= in
 * deploy/systemd/pyprofd.service. */
#define DRAIN_NS (30 * NS_PER_SEC)

struct waiting {
	const char *kind; /* of the profile: a literal */
	void *bytes;
	size_t size;
	uint64_t start_wall_ns, duration_ns;
};

struct output {
	/* Of its own: a writer that hangs may outlive the options. */
	char *path; /* owned; as given */
	enum options_output_kind kind;
	struct store *store;   /* NULL: one file */
	struct keeper *keeper; /* NULL: there is no store */
	int lock_fd;	       /* of one file with a name; else -1 */
	uid_t uid;
	gid_t gid;
	/* Writes the files, and has all that follows from then on.  NULL: nothing was written yet,
	 * or the loop writes to a descriptor, whose reader may take all the time that it wants. */
	struct writer *writer;
	struct waiting waiting[WAITING_MAX];
	size_t waiting_count;
	uint64_t dropped, dropped_before; /* dropped_before: when the disk was found full */
	uint64_t warned_ns;		  /* when a full disk was told last; 0: never */
	uint64_t dropped_ns;		  /* when that profiles were dropped was */
	bool has_warned;		  /* that it is full now */
	/* The loop's. */
	struct store_limits limits; /* they go to the store with each window */
	struct merger *merger;	    /* NULL: nothing is merged */
	uint64_t queue_dropped;	    /* profiles that the writer could not take in time */
	uint64_t queue_told;	    /* ... when that was told last */
	bool is_stuck;		    /* the disk did not answer at the end of the run */
};

/* Waits for the writer.  Returns 0; -errno of the last window; -ETIMEDOUT, after a line about
 * it. */
static int drain(struct output *output)
{
	int err = writer_wait(output->writer, DRAIN_NS);

	output->is_stuck = err == -ETIMEDOUT;
	if (output->is_stuck && output->store)
		log_error("'%s' does not answer: %zu windows are not written", output->path,
			  writer_waiting(output->writer));
	else if (output->is_stuck)
		log_error("'%s' does not answer: the profile is not written", output->path);
	return err;
}

static void say_store(const struct output *output)
{
	struct store_stats stats;

	if (!output->store)
		return;
	store_get_stats(output->store, &stats);
	log_debug("'%s' has %lu files of %lu bytes; %lu were deleted for its limits", output->path,
		  (unsigned long)stats.files, (unsigned long)stats.bytes,
		  (unsigned long)stats.deleted_files);
}

void output_free(struct output *output)
{
	if (!output)
		return;
	merger_free(output->merger);
	output->merger = NULL;
	if (output->writer && !output->is_stuck)
		(void)drain(output);
	if (!writer_free(output->writer, output->is_stuck ? 0 : DRAIN_NS))
		return; /* it still uses what it borrowed, until the process ends */
	if (output->waiting_count)
		log_error("'%s' is still full: %zu profiles that waited for room are lost",
			  output->path, output->waiting_count);
	for (size_t i = 0; i < output->waiting_count; i++)
		free(output->waiting[i].bytes);
	keeper_free(output->keeper);
	say_store(output);
	store_free(output->store);
	if (output->lock_fd >= 0)
		file_output_unlock(output->path, output->lock_fd);
	free(output->path);
	free(output);
}

void output_count(const struct output *output, uint64_t loss[PP_LOSS_COUNT])
{
	struct merger_stats merges = {0};

	if (output->merger)
		merger_get_stats(output->merger, &merges);
	/* Those of a full disk are counted by the writer's thread. */
	loss[PP_LOSS_PROFILES_DROPPED] =
		__atomic_load_n(&output->dropped, __ATOMIC_RELAXED) + output->queue_dropped;
	loss[PP_LOSS_MERGES_REFUSED] = merges.refused;
}

bool output_is_store(const struct output *output)
{
	return output->store || output->kind == OPTIONS_OUTPUT_NONE;
}

void output_owner(uid_t *ret_uid, gid_t *ret_gid)
{
	*ret_uid = (uid_t)-1;
	*ret_gid = (gid_t)-1;
	(void)sudo_user_ids(ret_uid, ret_gid);
}

static int explain_open(const char *path, int err)
{
	if (err == -EBUSY)
		log_error("another pyprofd writes to '%s': give this one its own --output", path);
	else if (err == -EOWNERDEAD)
		log_error(
			"a pyprofd that was killed still has '%s', as a file system does not "
			"answer "
			"it: `ps -eo pid,stat,wchan:30,args` shows it in state D; end what answers "
			"for that file system, or give this one another --output",
			path);
	else
		log_error_errno(err, "cannot write to '%s'", path);
	return err;
}

int output_open(const struct options *options, struct output **ret_output)
{
	const struct store_limits limits = {.max_bytes = options->store_max_bytes,
					    .max_age_ms = options->store_max_age_ns / NS_PER_MS};
	OWNED(output) struct output *output = calloc(1, sizeof(*output));
	int err;

	if (!output)
		return -ENOMEM;
	output->lock_fd = -1;
	output->limits = limits;
	output->kind = options->output_kind;
	output->path = strdup(options->output);
	if (!output->path)
		return -ENOMEM;
	output_owner(&output->uid, &output->gid);
	if (options->output_kind == OPTIONS_OUTPUT_DIRECTORY)
		err = store_open(options->output, &limits, &output->store);
	else if (strcmp(options->output, "-") && options->output_kind != OPTIONS_OUTPUT_NONE)
		err = file_output_lock(options->output, &output->lock_fd);
	else
		err = 0;
	if (err)
		return explain_open(options->output, err);
	err = output->store ? keeper_new(options->output, &output->keeper) : 0;
	if (err)
		return err;
	*ret_output = TAKE(output);
	return 0;
}

int output_merge_by(struct output *output, const char *program)
{
	if (!output->store)
		return 0;
	return merger_new(program, output->path, store_directory_fd(output->store),
			  &output->merger);
}

static int write_once(struct output *output, const struct waiting *profile)
{
	OWNED_MEM char *path = NULL;
	int err;

	if (!output->store)
		return file_output_write(output->path, profile->bytes, profile->size, output->uid,
					 output->gid);
	err = store_put(output->store, profile->kind, profile->start_wall_ns, profile->duration_ns,
			profile->bytes, profile->size, &path);
	if (!err)
		log_debug("wrote '%s' (%zu bytes)", path, profile->size);
	return err;
}

static void drop_oldest(struct output *output)
{
	free(output->waiting[0].bytes);
	memmove(output->waiting, output->waiting + 1,
		--output->waiting_count * sizeof(output->waiting[0]));
}

/* What stays full fills no log. */
static void tell_dropped(struct output *output)
{
	const uint64_t now_ns = mono_ns();

	if (output->dropped_ns && now_ns - output->dropped_ns < WARN_AGAIN_NS)
		return;
	log_warn("'%s' is still full: the oldest profiles that were kept are dropped (%lu so far)",
		 output->path, (unsigned long)output->dropped);
	output->dropped_ns = now_ns;
}

static void keep(struct output *output, const struct waiting *profile)
{
	if (output->waiting_count == WAITING_MAX) {
		__atomic_fetch_add(&output->dropped, 1, __ATOMIC_RELAXED);
		tell_dropped(output);
		drop_oldest(output);
	}
	output->waiting[output->waiting_count++] = *profile;
}

static void tell_full(struct output *output, int err)
{
	const uint64_t now_ns = mono_ns();

	if (output->waiting_count)
		return;
	output->dropped_before = output->dropped;
	/* A disk that is full every other window is told now and then. */
	if (output->warned_ns && now_ns - output->warned_ns < WARN_AGAIN_NS)
		return;
	log_warn_errno(err, "cannot write to '%s': profiles are kept in memory and written later",
		       output->path);
	output->warned_ns = now_ns;
	output->has_warned = true;
}

static void tell_room(struct output *output)
{
	const uint64_t count = output->dropped - output->dropped_before;

	if (count)
		log_warn("'%s' can be written again; %lu profiles were dropped meanwhile",
			 output->path, (unsigned long)count);
	else if (output->has_warned)
		log_info("'%s' can be written again", output->path);
	output->has_warned = false;
}

/* Tries to write the profiles that were kept. */
static void retry(struct output *output)
{
	const bool was_waiting = output->waiting_count;

	while (output->waiting_count) {
		if (write_once(output, &output->waiting[0]))
			return;
		drop_oldest(output);
	}
	if (was_waiting)
		tell_room(output);
}

static int encode(const struct output *output, const struct profile *profile, struct waiting *ret)
{
	char *text;
	int err;

	if (output->kind != OPTIONS_OUTPUT_FOLDED)
		return profile_encode_pprof(profile, &ret->bytes, &ret->size);
	err = profile_encode_folded(profile, &text, &ret->size);
	if (!err)
		ret->bytes = text;
	return err;
}

static int write_profile(struct output *output, const struct profile *profile,
			 const struct writer_window *window)
{
	struct waiting fresh = {.kind = profile_kind(profile),
				.start_wall_ns = window->start_wall_ns,
				.duration_ns = window->duration_ns};
	int err = encode(output, profile, &fresh);

	if (err)
		return err;
	retry(output);
	err = output->waiting_count ? -ENOSPC : write_once(output, &fresh);
	if (!err) {
		free(fresh.bytes);
		return 0;
	}
	if (!window->is_last && output->store) {
		tell_full(output, err);
		keep(output, &fresh);
		return 0;
	}
	free(fresh.bytes);
	return err;
}

/* In a store a kind without samples has no file.  `cpu` always has one: where it has none, nobody
 * recorded; without it, as --events says, each kind has to tell that itself. */
static bool is_left_out(const struct output *output, const struct writer_window *window,
			unsigned int kind)
{
	if (!output->store || !window->profile[PP_PROFILE_CPU] || kind == PP_PROFILE_CPU)
		return false;
	return !profile_sample_count(window->profile[kind]);
}

static int write_window(void *context, const struct writer_window *window)
{
	struct output *output = context;
	const char *first = NULL;
	unsigned int failed = 0;
	int first_err = 0;

	if (output->store)
		store_set_limits(output->store, &window->limits);
	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++) {
		int err = 0;

		if (window->profile[kind] && !is_left_out(output, window, kind))
			err = write_profile(output, window->profile[kind], window);
		if (err && !failed++) {
			first = profile_kind(window->profile[kind]);
			first_err = err;
		}
	}
	if (failed)
		log_error_errno(first_err, "cannot write %u profile%s (%s%s) to '%s'", failed,
				failed > 1 ? "s" : "", first, failed > 1 ? " ..." : "",
				output->path);
	if (output->store)
		keeper_keep(output->keeper, output->store, window);
	return first_err;
}

static void tell_late(struct output *output, size_t dropped)
{
	output->queue_dropped += dropped;
	if (log_is_due(output->queue_dropped, &output->queue_told))
		log_warn("'%s' is written too slowly: the oldest profiles that waited have been "
			 "dropped (%lu so far)",
			 output->path, (unsigned long)output->queue_dropped);
}

static int hand_over(struct output *output, struct writer_window *window)
{
	const bool is_last = window->is_last;
	size_t dropped;
	int err = output->writer ? 0 : writer_new(write_window, output, &output->writer);

	if (err) {
		log_debug("profiles are written by the loop: %s", strerror(-err));
		return write_window(output, window);
	}
	dropped = writer_put(output->writer, window);
	if (dropped)
		tell_late(output, dropped);
	return is_last ? drain(output) : 0;
}

struct keeper *output_keeper(const struct output *output)
{
	return output->keeper;
}

void output_set_limits(struct output *output, uint64_t max_bytes, uint64_t max_age_ns)
{
	output->limits =
		(struct store_limits){.max_bytes = max_bytes, .max_age_ms = max_age_ns / NS_PER_MS};
}

int output_write(struct output *output, struct writer_window *window)
{
	int err = 0;

	window->limits = output->limits;
	if (output->merger)
		merger_turn(output->merger);
	if (output->lock_fd >= 0 || output->store)
		err = hand_over(output, window);
	else if (output->kind != OPTIONS_OUTPUT_NONE)
		err = write_window(output, window);
	writer_window_release(window);
	return err;
}
