/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens what counts memory that programs touch (attach/memory_side.h). */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/memory_side.h"
#include "base/background.h"
#include "base/kinds.h"
#include "base/log.h"
#include "options/options.h"
#include "windows/label.h"
#include "windows/source.h"

#define WHY_BYTES 512U

struct memory_watch {
	const struct services *services;
	struct background background;
	bool has_thread, is_told; /* the loop's alone */
	/* Guarded by the background's mutex. */
	struct memory_side *side; /* owned; NULL: not open */
	bool has_ended;
	int err;
	char why[WHY_BYTES];
};

/* Without the mutex: only who has not handed the object over yet, or its thread, calls this. */
static int open_side(struct memory_watch *watch, struct memory_side **ret_side)
{
	int err =
		memory_side_open(watch->services->kernel, watch->why, sizeof(watch->why), ret_side);

	if (err && !watch->why[0])
		strncpy(watch->why, strerror(-err), sizeof(watch->why) - 1);
	return err;
}

static void *run(void *context)
{
	struct memory_watch *watch = context;
	struct memory_side *side = NULL;
	int err;

	background_begin(&watch->background);
	pthread_mutex_unlock(&watch->background.mutex);
	err = open_side(watch, &side);
	pthread_mutex_lock(&watch->background.mutex);
	watch->side = side;
	watch->err = err;
	watch->has_ended = true;
	pthread_mutex_unlock(&watch->background.mutex);
	return NULL;
}

static bool source_close(void *state)
{
	struct memory_watch *watch = state;

	if (watch->has_thread)
		pthread_join(watch->background.thread, NULL);
	memory_side_free(watch->side);
	background_destroy(&watch->background);
	return true;
}

/* A run without an end does not begin later for half a second of verifying: a thread beside the
 * loop opens it, and a failure is only told.  A bounded one wants the memory of its first moment.
 * */
static int source_open(void *state)
{
	struct memory_watch *watch = state;
	const struct options *options = watch->services->options;
	const bool is_bounded = options->duration_ns || options->command || options->pid_count;
	int err;

	background_init(&watch->background);
	watch->has_thread = !is_bounded && !background_start(&watch->background, run, watch);
	if (watch->has_thread)
		return 0;
	err = open_side(watch, &watch->side);
	watch->err = err;
	watch->has_ended = true;
	if (!err || !is_bounded)
		return 0;
	log_error("%s", watch->why);
	return err;
}

static bool source_tick(void *state, uint64_t now_ns)
{
	struct memory_watch *watch = state;
	bool has_failed;

	(void)now_ns;
	if (watch->is_told)
		return false;
	pthread_mutex_lock(&watch->background.mutex);
	has_failed = watch->has_ended && watch->err;
	pthread_mutex_unlock(&watch->background.mutex);
	if (has_failed)
		log_warn("memory that programs touch is not counted: %s; leave mem out of --events",
			 watch->why);
	watch->is_told = has_failed;
	return false;
}

static int source_label(void *state, const struct pp_count_key *key, struct intern *strings,
			struct profile_sample *sample)
{
	(void)state;
	return key->detail < PP_MEMORY_COUNT
		       ? label_string(strings, sample, "memory",
				      kind_memory((enum pp_memory)key->detail))
		       : 0;
}

const struct source memory_source = {.name = "memory",
				     .bytes = sizeof(struct memory_watch),
				     .open = source_open,
				     .close = source_close,
				     .tick = source_tick,
				     .labelled_kinds = 1U << PP_KIND_TOUCH | 1U << PP_KIND_COPY,
				     .label = source_label};
