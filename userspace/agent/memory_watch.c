/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/memory_watch.h"

#include <errno.h>
#include <string.h>

#include "attach/memory_side.h"
#include "base/background.h"
#include "base/log.h"

#define WHY_BYTES 512U

struct memory_watch {
	struct background background;
	const struct kernel_side *kernel;
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
	int err = memory_side_open(watch->kernel, watch->why, sizeof(watch->why), ret_side);

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

int memory_watch_new(const struct kernel_side *kernel, bool is_beside,
		     struct memory_watch **ret_watch)
{
	struct memory_watch *watch = calloc(1, sizeof(*watch));
	int err;

	if (!watch)
		return -ENOMEM;
	watch->kernel = kernel;
	background_init(&watch->background);
	watch->has_thread = is_beside && !background_start(&watch->background, run, watch);
	if (watch->has_thread) {
		*ret_watch = watch;
		return 0;
	}
	err = open_side(watch, &watch->side);
	if (err && !is_beside) {
		log_error("%s", watch->why);
		memory_watch_free(watch);
		return err;
	}
	watch->err = err;
	watch->has_ended = true;
	*ret_watch = watch;
	return 0;
}

void memory_watch_free(struct memory_watch *watch)
{
	if (!watch)
		return;
	if (watch->has_thread)
		pthread_join(watch->background.thread, NULL);
	memory_side_free(watch->side);
	background_destroy(&watch->background);
	free(watch);
}

void memory_watch_tick(struct memory_watch *watch)
{
	bool has_failed;

	if (!watch || watch->is_told)
		return;
	pthread_mutex_lock(&watch->background.mutex);
	has_failed = watch->has_ended && watch->err;
	pthread_mutex_unlock(&watch->background.mutex);
	if (has_failed)
		log_warn("memory that programs touch is not counted: %s; leave mem out of --events",
			 watch->why);
	watch->is_told = has_failed;
}
