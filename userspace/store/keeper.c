/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/keeper.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/kept.h"
#include "store/store.h"
#include "store/writer.h"

/* What waits to be kept, in all and of one user. */
#define WISHES_MAX 64U
#define WISHES_OF_USER_MAX 16U
/* How many are kept when one window is written: each takes some milliseconds of the writer. */
#define KEPT_OF_WINDOW_MAX 4U
/* A process that is to end and does not (it waits for a disk) counts as ended after this time. */
#define VICTIM_MAX_NS (60 * NS_PER_SEC)
/* How often what is kept of processes is told. */
#define TELL_EVERY_NS (60 * NS_PER_SEC)

/* What is to be kept. */
struct wish {
	struct kept_name name; /* its time is set when it is due */
	uint32_t generation;
	uint64_t time_ns;  /* of the signal, or when the kernel chose the process */
	uint64_t begun_ns; /* when its program started; 0: everything is wanted */
	uint64_t ended_ns; /* 0: it has not ended yet */
};

struct keeper {
	char *store;		      /* owned; the directory's path */
	pthread_mutex_t mutex;	      /* guards what follows, up to the next comment */
	struct wish wish[WISHES_MAX]; /* oldest first */
	size_t wish_count;
	struct keeper_stats stats;
	uint64_t told_left_out; /* ... when that was told last; the loop's */
	/* The writer's. */
	uint64_t told_failed; /* ... when that was told last */
	uint64_t told_ns;     /* when one that is kept was; 0: never */
	uint64_t untold;      /* kept since then */
};

int keeper_new(const char *store, struct keeper **ret_keeper)
{
	OWNED(keeper) struct keeper *keeper = calloc(1, sizeof(*keeper));

	if (!keeper)
		return -ENOMEM;
	pthread_mutex_init(&keeper->mutex, NULL);
	keeper->store = strdup(store);
	if (!keeper->store)
		return -ENOMEM;
	for (size_t size = strlen(store); size > 1 && store[size - 1] == '/'; size--)
		keeper->store[size - 1] = '\0';
	*ret_keeper = TAKE(keeper);
	return 0;
}

void keeper_free(struct keeper *keeper)
{
	if (!keeper)
		return;
	pthread_mutex_destroy(&keeper->mutex);
	free(keeper->store);
	free(keeper);
}

void keeper_get_stats(struct keeper *keeper, struct keeper_stats *ret_stats)
{
	*ret_stats = (struct keeper_stats){0};
	if (!keeper)
		return;
	pthread_mutex_lock(&keeper->mutex);
	*ret_stats = keeper->stats;
	pthread_mutex_unlock(&keeper->mutex);
}

/* ---- the loop's side ---- */

static void tell_left_out(struct keeper *keeper)
{
	keeper->stats.left_out++;
	if (log_is_due(keeper->stats.left_out, &keeper->told_left_out))
		log_warn("'%s': too many processes end for want of memory: %lu are not kept so far",
			 keeper->store, (unsigned long)keeper->stats.left_out);
}

static size_t count_of_user(const struct keeper *keeper, uint32_t uid)
{
	size_t count = 0;

	for (size_t i = 0; i < keeper->wish_count; i++)
		count += keeper->wish[i].name.reason == KEPT_OOM && keeper->wish[i].name.uid == uid;
	return count;
}

static bool is_noted(const struct keeper *keeper, const struct keeper_victim *victim)
{
	for (size_t i = 0; i < keeper->wish_count; i++)
		if (keeper->wish[i].name.reason == KEPT_OOM &&
		    keeper->wish[i].name.pid == victim->pid &&
		    keeper->wish[i].generation == victim->generation)
			return true;
	return false;
}

void keeper_add_victim(struct keeper *keeper, const struct keeper_victim *victim)
{
	struct wish wish = {.name = {.reason = KEPT_OOM, .pid = victim->pid, .uid = victim->uid},
			    .generation = victim->generation,
			    .time_ns = victim->time_ns,
			    .begun_ns = victim->begun_ns};

	kept_comm(victim->comm, wish.name.comm);
	pthread_mutex_lock(&keeper->mutex);
	/* The kernel tells it of each thread that is to free memory. */
	if (!is_noted(keeper, victim)) {
		if (keeper->wish_count == WISHES_MAX ||
		    count_of_user(keeper, victim->uid) == WISHES_OF_USER_MAX)
			tell_left_out(keeper);
		else
			keeper->wish[keeper->wish_count++] = wish;
	}
	pthread_mutex_unlock(&keeper->mutex);
}

/* Signals that come before the window of the first is written mean the same. */
void keeper_add_signal(struct keeper *keeper, uint64_t now_ns)
{
	const struct wish wish = {
		.name = {.reason = KEPT_SIGNAL}, .time_ns = now_ns, .ended_ns = now_ns};
	size_t i = 0;

	pthread_mutex_lock(&keeper->mutex);
	while (i < keeper->wish_count && keeper->wish[i].name.reason != KEPT_SIGNAL)
		i++;
	if (i < WISHES_MAX)
		keeper->wish[i] = wish;
	else
		tell_left_out(keeper);
	keeper->wish_count += i == keeper->wish_count && i < WISHES_MAX;
	pthread_mutex_unlock(&keeper->mutex);
}

bool keeper_wants_cut(struct keeper *keeper, uint64_t started_ns)
{
	bool wants = false;

	if (!keeper)
		return false;
	pthread_mutex_lock(&keeper->mutex);
	for (size_t i = 0; i < keeper->wish_count; i++)
		wants |= keeper->wish[i].name.reason == KEPT_SIGNAL &&
			 keeper->wish[i].time_ns > started_ns;
	pthread_mutex_unlock(&keeper->mutex);
	return wants;
}

void keeper_find_ends(struct keeper *keeper, uint64_t now_ns, keeper_end end, const void *context)
{
	if (!keeper)
		return;
	pthread_mutex_lock(&keeper->mutex);
	for (size_t i = 0; i < keeper->wish_count; i++) {
		struct wish *wish = &keeper->wish[i];

		if (!wish->ended_ns)
			wish->ended_ns = end(context, wish->name.pid, wish->generation);
		if (wish->ended_ns == KEEPER_GONE ||
		    (!wish->ended_ns && now_ns - wish->time_ns >= VICTIM_MAX_NS))
			wish->ended_ns = now_ns;
	}
	pthread_mutex_unlock(&keeper->mutex);
}

void keeper_finish(struct keeper *keeper)
{
	size_t left;

	if (!keeper)
		return;
	pthread_mutex_lock(&keeper->mutex);
	left = keeper->wish_count;
	keeper->wish_count = 0;
	keeper->stats.failed += left;
	pthread_mutex_unlock(&keeper->mutex);
	if (left)
		log_warn("'%s': %zu times nothing is kept: the run has ended", keeper->store, left);
}

/* ---- the writer's side ---- */

static const char *explain(int err)
{
	switch (err) {
	case -ENODATA:
		return "the store has nothing of it";
	case -EFBIG:
		return "there is no room for it: --store-max is too small";
	case -EPERM:
	case -EOPNOTSUPP:
		return "its file system has no hard links, or refuses them";
	default:
		return strerror(-err);
	}
}

static void tell_failed(struct keeper *keeper, const struct kept_name *name, uint64_t count,
			int err)
{
	if (!log_is_due(count, &keeper->told_failed))
		return;
	if (name->reason == KEPT_OOM)
		log_warn("process %u (%s) was ended for want of memory, and nothing of it is kept "
			 "in '%s/" KEPT_DIRECTORY "': %s (%lu so far)",
			 name->pid, name->comm, keeper->store, explain(err), (unsigned long)count);
	else
		log_warn("SIGUSR1: nothing is kept in '%s/" KEPT_DIRECTORY "': %s (%lu so far)",
			 keeper->store, explain(err), (unsigned long)count);
}

static void tell_kept(struct keeper *keeper, const struct kept_name *name,
		      const struct kept_result *result)
{
	const double span_s = (double)result->span_ms / 1000, kib = (double)result->bytes / 1024;
	const uint64_t now_ns = mono_ns();

	if (name->reason == KEPT_SIGNAL) {
		log_info("SIGUSR1: the last %.0f s of everything are kept in '%s/" KEPT_DIRECTORY
			 "/%s' (%u files, %.0f KiB)",
			 span_s, keeper->store, result->name, result->files, kib);
		return;
	}
	keeper->untold++;
	if (keeper->told_ns && now_ns - keeper->told_ns < TELL_EVERY_NS)
		return;
	log_info("process %u (%s) was ended for want of memory; its last %.0f s are kept in "
		 "'%s/" KEPT_DIRECTORY "/%s' (%u files, %.0f KiB)",
		 name->pid, name->comm, span_s, keeper->store, result->name, result->files, kib);
	if (keeper->untold > 1)
		log_info("... and so were %lu other processes in the last %.0f s",
			 (unsigned long)keeper->untold - 1,
			 (double)(now_ns - keeper->told_ns) / (double)NS_PER_SEC);
	keeper->told_ns = now_ns;
	keeper->untold = 0;
}

/* Takes the oldest that can be kept now.  Returns false when there is none. */
static bool take_due(struct keeper *keeper, const struct writer_window *window,
		     struct wish *ret_wish)
{
	bool is_due = false;
	size_t i = 0;

	pthread_mutex_lock(&keeper->mutex);
	while (i < keeper->wish_count && !window->is_last &&
	       (!keeper->wish[i].ended_ns || keeper->wish[i].ended_ns > window->ended_ns))
		i++;
	if (i < keeper->wish_count) {
		*ret_wish = keeper->wish[i];
		memmove(keeper->wish + i, keeper->wish + i + 1,
			(--keeper->wish_count - i) * sizeof(keeper->wish[0]));
		is_due = true;
	}
	pthread_mutex_unlock(&keeper->mutex);
	if (is_due && (!ret_wish->ended_ns || ret_wish->ended_ns > window->ended_ns))
		ret_wish->ended_ns = window->ended_ns;
	return is_due;
}

/* Returns the clock's time of a moment, in milliseconds, as the names of windows have it. */
static uint64_t wall_ms(const struct writer_window *window, uint64_t at_ns)
{
	const uint64_t wall_ns = window->start_wall_ns + window->duration_ns;
	const uint64_t ago_ns = window->ended_ns - at_ns;

	/* A moment before the first window of a clock that is near 1970. */
	return (ago_ns < wall_ns ? wall_ns - ago_ns : 0) / NS_PER_MS;
}

static struct kept_request ask_for(const struct wish *wish, const struct writer_window *window)
{
	const uint64_t until_ms = wall_ms(window, wish->ended_ns);
	/* A window that begins in the last millisecond is meant, too. */
	struct kept_request request = {.until_ms = until_ms + 1, .name = wish->name};

	request.name.time_ms = until_ms;
	request.from_ms = until_ms > KEEPER_KEPT_MS ? until_ms - KEEPER_KEPT_MS : 0;
	/* Before that, the pid was another program's. */
	if (wish->begun_ns && wall_ms(window, wish->begun_ns) > request.from_ms)
		request.from_ms = wall_ms(window, wish->begun_ns);
	return request;
}

static void keep(struct keeper *keeper, struct store *store, const struct kept_request *request)
{
	struct kept_result result;
	int err = store_keep(store, request, &result);
	uint64_t failed;

	pthread_mutex_lock(&keeper->mutex);
	keeper->stats.kept += !err;
	failed = keeper->stats.failed += !!err;
	pthread_mutex_unlock(&keeper->mutex);
	if (err)
		tell_failed(keeper, &request->name, failed, err);
	else
		tell_kept(keeper, &request->name, &result);
}

void keeper_keep(struct keeper *keeper, struct store *store, const struct writer_window *window)
{
	const size_t most = window->is_last ? WISHES_MAX : KEPT_OF_WINDOW_MAX;
	struct wish wish;

	for (size_t i = 0; i < most && take_due(keeper, window, &wish); i++) {
		const struct kept_request request = ask_for(&wish, window);

		keep(keeper, store, &request);
	}
}
