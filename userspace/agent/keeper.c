/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "discover/process_table.h"
#include "discover/process_user.h"
#include "store/keep_child.h"
#include "store/store_child.h"

/* What waits to be kept, in all and of one user. */
#define WISHES_MAX 64U
#define WISHES_OF_USER_MAX 16U
/* A process that is to end and does not (it waits for a disk) counts as ended after this time. */
#define VICTIM_MAX_NS (60 * NS_PER_SEC)
/* How long a child may take. */
#define CHILD_MAX_NS (60 * NS_PER_SEC)
/* The pause after a child, in times of what it took, and at most: who has programs ended again and
 * again does not keep a CPU at work. */
#define REST_FACTOR 4U
#define REST_MAX_NS (60 * NS_PER_SEC)
/* How long the end of the run waits. */
#define FINISH_NS (10 * NS_PER_SEC)
#define FINISH_STEP_MS 5
/* How often what is kept of processes is told. */
#define TELL_EVERY_NS (60 * NS_PER_SEC)

/* What is to be kept. */
struct wish {
	struct kept_name name; /* its time is set when it is due */
	struct pp_process_id id;
	uint32_t uid;
	uint64_t time_ns;  /* of the signal, or when the kernel chose the process */
	uint64_t begun_ns; /* when its program started; 0: everything is wanted */
	uint64_t ended_ns; /* 0: it has not ended yet */
};

struct keeper {
	struct store_child child;
	uint64_t started_ns, rest_until_ns;
	struct keep_request request;  /* what the child is at */
	struct wish wish[WISHES_MAX]; /* oldest first */
	size_t wish_count;
	uint64_t tidied_bytes; /* the bound to which kept/ keeps; 0: not looked at yet */
	struct keeper_stats stats;
	uint64_t told_failed, told_left_out; /* ... when that was told last */
	uint64_t told_ns;		     /* ... when one that is kept was; 0: never */
	uint64_t untold;		     /* kept since then */
};

int keeper_new(const char *program, const char *store, int store_fd, struct keeper **ret_keeper)
{
	OWNED(keeper) struct keeper *keeper = calloc(1, sizeof(*keeper));
	int err = keeper ? store_child_init(&keeper->child, program, store, store_fd) : -ENOMEM;

	if (err)
		return err;
	for (size_t size = strlen(store); size > 1 && store[size - 1] == '/'; size--)
		keeper->child.store[size - 1] = '\0';
	*ret_keeper = TAKE(keeper);
	return 0;
}

void keeper_free(struct keeper *keeper)
{
	if (!keeper)
		return;
	store_child_release(&keeper->child);
	free(keeper);
}

void keeper_get_stats(const struct keeper *keeper, struct keeper_stats *ret_stats)
{
	*ret_stats = keeper ? keeper->stats : (struct keeper_stats){0};
}

/* ---- messages ---- */

/* Returns whether to tell a count: for the first one, and for each doubling. */
static bool is_to_tell(uint64_t count, uint64_t *told)
{
	if (count < 2 * *told)
		return false;
	*told = count;
	return true;
}

static void tell_left_out(struct keeper *keeper)
{
	keeper->stats.left_out++;
	if (is_to_tell(keeper->stats.left_out, &keeper->told_left_out))
		log_warn("'%s': too many processes end for want of memory: %lu are not kept so far",
			 keeper->child.store, (unsigned long)keeper->stats.left_out);
}

static const char *explain(int err)
{
	switch (err) {
	case -ENODATA:
		return "the store has nothing of it";
	case -EFBIG:
		return "there is no room for it: --store-max is too small";
	case -ECHILD:
		return "the child that keeps has ended";
	default:
		return strerror(-err);
	}
}

static void tell_failed(struct keeper *keeper, int err)
{
	const struct kept_name *name = &keeper->request.name;

	keeper->stats.failed++;
	if (!is_to_tell(keeper->stats.failed, &keeper->told_failed))
		return;
	if (name->reason == KEPT_OOM)
		log_warn("process %u (%s) was ended for want of memory, and nothing of it is kept "
			 "in '%s/" KEPT_DIRECTORY "': %s (%lu so far)",
			 name->pid, name->comm, keeper->child.store, explain(err),
			 (unsigned long)keeper->stats.failed);
	else
		log_warn("SIGUSR1: nothing is kept in '%s/" KEPT_DIRECTORY "': %s (%lu so far)",
			 keeper->child.store, explain(err), (unsigned long)keeper->stats.failed);
}

static void tell_kept(struct keeper *keeper, const struct keep_result *result)
{
	const struct kept_name *name = &keeper->request.name;
	const double span_s = (double)result->span_ms / 1000, kib = (double)result->bytes / 1024;
	const uint64_t now_ns = mono_ns();

	keeper->stats.kept++;
	if (name->reason == KEPT_SIGNAL) {
		log_info("SIGUSR1: the last %.0f s of everything are kept in '%s/" KEPT_DIRECTORY
			 "/%s' (%u kinds, %.0f KiB)",
			 span_s, keeper->child.store, result->name, result->kinds, kib);
		return;
	}
	keeper->untold++;
	if (keeper->told_ns && now_ns - keeper->told_ns < TELL_EVERY_NS)
		return;
	log_info("process %u (%s) was ended for want of memory; its last %.0f s are kept in "
		 "'%s/" KEPT_DIRECTORY "/%s' (%u kinds, %.0f KiB)",
		 name->pid, name->comm, span_s, keeper->child.store, result->name, result->kinds,
		 kib);
	if (keeper->untold > 1)
		log_info("... and so were %lu other processes in the last %.0f s",
			 (unsigned long)keeper->untold - 1,
			 (double)(now_ns - keeper->told_ns) / (double)NS_PER_SEC);
	keeper->told_ns = now_ns;
	keeper->untold = 0;
}

/* ---- what is to be kept ---- */

static size_t count_of_user(const struct keeper *keeper, uint32_t uid)
{
	size_t count = 0;

	for (size_t i = 0; i < keeper->wish_count; i++)
		count += keeper->wish[i].name.reason == KEPT_OOM && keeper->wish[i].uid == uid;
	return count;
}

static bool is_noted(const struct keeper *keeper, struct pp_process_id id)
{
	for (size_t i = 0; i < keeper->wish_count; i++)
		if (keeper->wish[i].name.reason == KEPT_OOM && keeper->wish[i].id.tgid == id.tgid &&
		    keeper->wish[i].id.generation == id.generation)
			return true;
	return false;
}

void keeper_add_victim(struct keeper *keeper, struct process *process, uint64_t time_ns)
{
	struct wish wish = {.name = {.reason = KEPT_OOM, .pid = process->id.tgid},
			    .id = process->id,
			    .time_ns = time_ns,
			    .begun_ns = process->start_ns};

	/* The kernel tells it of each thread that is to free memory. */
	if (is_noted(keeper, process->id))
		return;
	wish.uid = process_user_kept(process);
	kept_comm(process->comm, wish.name.comm);
	if (keeper->wish_count == WISHES_MAX ||
	    count_of_user(keeper, wish.uid) == WISHES_OF_USER_MAX) {
		tell_left_out(keeper);
		return;
	}
	keeper->wish[keeper->wish_count++] = wish;
}

/* Signals that come before the child of the first has begun mean the same. */
void keeper_add_signal(struct keeper *keeper, uint64_t now_ns)
{
	const struct wish wish = {
		.name = {.reason = KEPT_SIGNAL}, .time_ns = now_ns, .ended_ns = now_ns};

	for (size_t i = 0; i < keeper->wish_count; i++) {
		if (keeper->wish[i].name.reason != KEPT_SIGNAL)
			continue;
		keeper->wish[i] = wish;
		return;
	}
	if (keeper->wish_count < WISHES_MAX)
		keeper->wish[keeper->wish_count++] = wish;
	else
		tell_left_out(keeper);
}

bool keeper_wants_cut(const struct keeper *keeper, uint64_t started_ns)
{
	for (size_t i = 0; keeper && i < keeper->wish_count; i++)
		if (keeper->wish[i].name.reason == KEPT_SIGNAL &&
		    keeper->wish[i].time_ns > started_ns)
			return true;
	return false;
}

static void find_ends(struct keeper *keeper, const struct keeper_view *view)
{
	for (size_t i = 0; i < keeper->wish_count; i++) {
		struct wish *wish = &keeper->wish[i];
		const struct process *process;

		if (wish->ended_ns)
			continue;
		process = process_table_find(view->processes, wish->id);
		if (process && process->exit_ns)
			wish->ended_ns = process->exit_ns;
		else if (!process || view->now_ns - wish->time_ns >= VICTIM_MAX_NS)
			wish->ended_ns = view->now_ns;
	}
}

/* Returns the index of the oldest wish that can be kept now; wish_count: there is none. */
static size_t find_due(const struct keeper *keeper, const struct keeper_view *view)
{
	size_t i = 0;

	while (i < keeper->wish_count &&
	       (!keeper->wish[i].ended_ns || keeper->wish[i].ended_ns > view->written.ended_ns))
		i++;
	return i;
}

/* ---- the child ---- */

/* Returns the clock's time of a moment, in milliseconds, as the names of windows have it. */
static uint64_t wall_ms(const struct keeper_view *view, uint64_t at_ns)
{
	const uint64_t wall_ns = view->written.wall_ns;
	const uint64_t ago_ns = view->written.ended_ns - at_ns;

	/* A moment before the first window of a clock that is near 1970. */
	return (ago_ns < wall_ns ? wall_ns - ago_ns : 0) / NS_PER_MS;
}

static struct keep_request ask_for(const struct wish *wish, const struct keeper_view *view)
{
	const uint64_t until_ms = wall_ms(view, wish->ended_ns);
	struct keep_request request = {.until_ms = until_ms,
				       .max_bytes = kept_max_bytes(view->store_max_bytes),
				       .name = wish->name,
				       .uid = wish->uid};

	request.name.time_ms = until_ms;
	request.from_ms = until_ms > KEEPER_KEPT_MS ? until_ms - KEEPER_KEPT_MS : 0;
	/* Before that, the pid was another program's. */
	if (wish->begun_ns && wall_ms(view, wish->begun_ns) > request.from_ms)
		request.from_ms = wall_ms(view, wish->begun_ns);
	/* A window that begins in the last millisecond is meant, too. */
	request.until_ms++;
	return request;
}

static void start(struct keeper *keeper, const struct keep_request *request)
{
	int err = store_child_start(&keeper->child, KEEP_ARGV0);

	keeper->request = *request;
	keeper->started_ns = mono_ns();
	if (!err && send(keeper->child.socket_fd, request, sizeof(*request),
			 MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		err = -errno;
	if (!err)
		return;
	if (keeper->child.pid)
		kill(keeper->child.pid, SIGKILL); /* its end is told when it is reaped */
	else if (!request->is_tidying)
		tell_failed(keeper, err);
}

/* Takes the child's answer.  Its bytes are checked: it has read files of others. */
static void take_answer(struct keeper *keeper)
{
	struct keep_result result = {.err = -ECHILD};
	struct kept_name name;
	const ssize_t size =
		recv(keeper->child.socket_fd, &result, sizeof(result), MSG_DONTWAIT | MSG_TRUNC);

	if (size != (ssize_t)sizeof(result))
		result.err = -ECHILD;
	result.name[sizeof(result.name) - 1] = '\0';
	if (keeper->request.is_tidying) {
		if (result.err)
			log_debug("'%s': cannot tidy up what is kept: %s", keeper->child.store,
				  explain(result.err));
		return;
	}
	if (!result.err && kept_name_parse(result.name, &name))
		tell_kept(keeper, &result);
	else
		tell_failed(keeper, result.err < 0 ? result.err : -ECHILD);
}

static void reap(struct keeper *keeper)
{
	const uint64_t now_ns = mono_ns(), took_ns = now_ns - keeper->started_ns;

	if (!keeper->child.pid)
		return;
	if (took_ns >= CHILD_MAX_NS)
		kill(keeper->child.pid, SIGKILL);
	if (!store_child_has_ended(&keeper->child))
		return;
	take_answer(keeper);
	store_child_forget(&keeper->child);
	keeper->rest_until_ns =
		now_ns +
		(took_ns < REST_MAX_NS / REST_FACTOR ? took_ns * REST_FACTOR : REST_MAX_NS);
}

/* Removes what an earlier run has left half, or what is above a bound that was lowered. */
static void tidy(struct keeper *keeper, const struct keeper_view *view)
{
	const struct keep_request request = {.max_bytes = kept_max_bytes(view->store_max_bytes),
					     .is_tidying = true};
	struct stat stat;

	if (keeper->tidied_bytes == request.max_bytes)
		return;
	keeper->tidied_bytes = request.max_bytes;
	if (!fstatat(keeper->child.store_fd, KEPT_DIRECTORY, &stat, AT_SYMLINK_NOFOLLOW))
		start(keeper, &request);
}

static void start_due(struct keeper *keeper, const struct keeper_view *view)
{
	const size_t due = find_due(keeper, view);
	struct keep_request request;

	if (due == keeper->wish_count) {
		tidy(keeper, view);
		return;
	}
	request = ask_for(&keeper->wish[due], view);
	memmove(keeper->wish + due, keeper->wish + due + 1,
		(--keeper->wish_count - due) * sizeof(keeper->wish[0]));
	start(keeper, &request);
}

void keeper_turn(struct keeper *keeper, const struct keeper_view *view)
{
	if (!keeper)
		return;
	reap(keeper);
	find_ends(keeper, view);
	if (!keeper->child.pid && view->now_ns >= keeper->rest_until_ns)
		start_due(keeper, view);
}

void keeper_finish(struct keeper *keeper, struct keeper_view *view)
{
	const uint64_t end_ns = mono_ns() + FINISH_NS;
	size_t left;

	if (!keeper)
		return;
	for (size_t i = 0; i < keeper->wish_count; i++)
		if (!keeper->wish[i].ended_ns || keeper->wish[i].ended_ns > view->written.ended_ns)
			keeper->wish[i].ended_ns = view->written.ended_ns;
	while (view->written.ended_ns && (keeper->child.pid || keeper->wish_count) &&
	       (view->now_ns = mono_ns()) < end_ns) {
		keeper->rest_until_ns = 0;
		keeper_turn(keeper, view);
		(void)poll(NULL, 0, FINISH_STEP_MS);
	}
	left = keeper->wish_count + (keeper->child.pid && !keeper->request.is_tidying);
	keeper->stats.failed += left;
	if (left)
		log_warn("'%s': %zu times nothing is kept: the run has ended", keeper->child.store,
			 left);
}
