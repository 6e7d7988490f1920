/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "attach/cuda_side.h"
#include "attach/kernel_side.h"
#include "attach/mapping_locks.h"
#include "attach/probe_side.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/task.h"
#include "base/user_quota.h"
#include "files/user_time.h"
#include "probes/lock_wait.h"
#include "probes/probe_groups.h"
#include "probes/probe_times.h"

/* A link that all sites of a file share takes 25 ms to be taken off, others 100 ms a site. */
#define PERIOD_NS NS_PER_SEC
#define PERIOD_LAUNCHES_NS (4 * NS_PER_SEC) /* they are many in any second */
#define PERIOD_UNSHARED_NS (10 * NS_PER_SEC)
/* The kernel may wait for a page of a file for as long as a file system wants. */
#define LATE_NS (10 * NS_PER_SEC)
#define END_LIMIT_NS (3 * NS_PER_SEC)
#define PUT_OFF_NS (NS_PER_SEC / 10) /* until it is looked whether a job's turn has come */
#define HOLDER_LOOK_US 200000U

/* A job, and its links once they are attached. */
struct task {
	struct probe_job job;
	struct probe_result result;
	struct probe_groups groups;
	struct probe_links tracepoint;
	struct probe_side *own; /* owned; a tracepoint's where the kernel has no cookies for them */
	uint64_t off;		/* probes that are taken off now */
	bool is_unwanted, is_put_off;
	uint64_t took_ns;
	struct task *next; /* in the order in which they came */
};

struct probe_worker {
	struct background background;
	/* Guarded by the background's mutex. */
	struct task *todo, *attached, *done; /* lists; `done` has results that nobody has taken */
	struct probe_objects objects;
	bool has_thread, is_busy;
	const struct task *running; /* in `todo`, which nobody else takes from meanwhile */
	uint64_t running_since_ns;
	bool is_late_told;
	struct lock_wait lock_wait; /* whom the thread waits for */
	struct user_times user_times;
	struct user_quota put_off; /* tells each user once */
	struct probe_times times;
	uint32_t hit_ns[PP_PROBES_MAX];
	uint32_t launch_probe; /* the first of CUDA's launches; PP_PROBES_MAX: there are none */
	size_t process_count;  /* when a pace was looked at last */
	/* The thread's alone. */
	bool is_shared;
};

static void task_free(struct task *task)
{
	if (!task)
		return;
	probe_groups_release(&task->groups);
	probe_links_release(&task->tracepoint);
	probe_side_free(task->own);
	if (task->job.file >= 0)
		close(task->job.file);
	free(task->job.site);
	free(task);
}

/* ---- the thread ---- */

/* Notes who keeps a lock.  Returns whether the thread is to go on waiting for him. */
static bool note_holder(struct probe_worker *worker, uint32_t holder)
{
	LOCKED(&worker->background.mutex);

	lock_wait_note(&worker->lock_wait, holder, mono_ns());
	return holder && !worker->background.is_ending;
}

/* Waits, without the mutex, until links can come and go without the machine's forks waiting for a
 * process that keeps the lock of its mappings.  Returns false when the end came first. */
static bool await_locks(struct probe_worker *worker)
{
	uint32_t holder = 0;

	while (worker->objects.side || worker->objects.cuda) {
		holder = mapping_locks_holder(kernel_side_parts(worker->objects.kernel).locks);
		if (!note_holder(worker, holder))
			break;
		usleep(HOLDER_LOOK_US);
	}
	return !holder;
}

static int attach_tracepoint(const struct probe_worker *worker, struct task *task)
{
	const struct probe_worker_site *site = task->job.site;
	const struct probe_side_options options = {.kernel = worker->objects.kernel,
						   .only_site = site->number};
	struct probe_links links = {.fd = calloc(1, sizeof(*links.fd)), .count = 1};
	int err;

	if (!links.fd)
		return -ENOMEM;
	err = probe_links_tracepoint(worker->objects.side->tracepoint_program, task->job.tracepoint,
				     site->number, links.fd);
	if (err == -ENOTSUP) {
		err = probe_side_open(&options, task->result.why, sizeof(task->result.why),
				      &task->own);
		if (!err)
			err = probe_side_set_site(task->own, site->number, &site->site);
		if (!err)
			err = probe_links_tracepoint(task->own->tracepoint_program,
						     task->job.tracepoint, 0, links.fd);
	}
	if (err) {
		free(links.fd);
		return err;
	}
	task->tracepoint = links;
	return 0;
}

/* Where somebody keeps a lock the groups stay to be set. */
static int set_groups(struct task *task, uint64_t off)
{
	const int err = probe_groups_set(&task->groups, off);

	if (err != -EAGAIN)
		task->off = off;
	return err;
}

static int attach(const struct probe_worker *worker, struct task *task, uint64_t off)
{
	const struct probe_job *job = &task->job;
	const struct probe_groups_place place = {
		.side = worker->objects.side,
		.cuda = worker->objects.cuda,
		.job = job,
		.locks = kernel_side_parts(worker->objects.kernel).locks,
		.is_shared = worker->is_shared};
	int err = 0;

	for (size_t i = 0; i < job->site_count && !err; i++)
		err = probe_groups_set_site(&place, job->site[i].number, &job->site[i].site);
	if (!err && job->tracepoint[0])
		return attach_tracepoint(worker, task);
	if (!err && job->allocator)
		err = probe_side_add_allocator(worker->objects.side, job->allocator);
	if (!err)
		err = probe_groups_make(&place, &task->groups);
	return err ? err : set_groups(task, off);
}

/* Loads what the sites of a job need. */
static int load(struct probe_worker *worker, struct task *task)
{
	const char *why = "";
	bool is_bounded;
	int err;

	worker->is_shared = probe_links_can_share();
	pthread_mutex_lock(&worker->background.mutex);
	for (uint32_t i = 0; i < PP_PROBES_MAX && !worker->is_shared; i++)
		probe_times_set_period(&worker->times, i, PERIOD_UNSHARED_NS);
	is_bounded = probe_times_are_used(&worker->times);
	pthread_mutex_unlock(&worker->background.mutex);
	err = probe_objects_load(&worker->objects, &task->job, is_bounded, &why);
	if (err)
		snprintf(task->result.why, sizeof(task->result.why), "%s", why);
	return err;
}

/* Without the mutex. */
static void run_task(struct probe_worker *worker, struct task *task, uint64_t off)
{
	uint64_t began_ns;

	task->result.id = task->job.id;
	task->result.pid = task->job.pid;
	memcpy(task->result.what, task->job.what, sizeof(task->result.what));
	task->result.err = load(worker, task);
	if (task->result.err)
		return;
	do {
		probe_groups_release(&task->groups);
		if (!await_locks(worker)) {
			task->result.err = -ESRCH;
			return;
		}
		began_ns = mono_ns();
		task->result.err = attach(worker, task, off);
		task->took_ns = mono_ns() - began_ns;
	} while (task->result.err == -EAGAIN);
	task->result.site_count = task->job.site_count;
	task->result.took_ns = task->took_ns;
	if (!task->result.err)
		return;
	probe_groups_release(&task->groups);
	if (task->result.err == -EACCES && !worker->is_shared && !task->job.tracepoint[0])
		snprintf(task->result.why, sizeof(task->result.why),
			 "before Linux 6.6 they take CAP_SYS_ADMIN, which pyprofd does not have");
	if (!task->result.why[0])
		snprintf(task->result.why, sizeof(task->result.why), "%s",
			 strerror(-task->result.err));
}

/* Takes one that nobody wants any more off a list; NULL: there is none. */
static struct task *take_unwanted(struct task **list)
{
	struct task *task;

	LL_FOREACH(*list, task)
	if (task->is_unwanted)
		break;
	if (task)
		LL_DELETE(*list, task);
	return task;
}

/* With the mutex, but not while it works. */
static void drop(struct probe_worker *worker, struct task *task)
{
	const uint32_t uid = task->job.uid;
	uint64_t began_ns;
	bool may_drop;

	pthread_mutex_unlock(&worker->background.mutex);
	may_drop = await_locks(worker);
	began_ns = mono_ns();
	if (may_drop)
		task_free(task);
	pthread_mutex_lock(&worker->background.mutex);
	if (!may_drop)
		LL_PREPEND(worker->attached, task);
	user_times_add(&worker->user_times, uid, mono_ns() - began_ns, mono_ns());
}

/* Returns the first task whose user may have one now; NULL: there is none. */
static struct task *find_task(struct probe_worker *worker)
{
	struct task *task;

	LL_FOREACH(worker->todo, task)
	{
		if (user_times_allow(&worker->user_times, task->job.uid, mono_ns()))
			return task;
		if (!task->is_put_off)
			user_quota_refuse(&worker->put_off, task->job.uid);
		task->is_put_off = true;
	}
	return NULL;
}

/* With the mutex, but not while it works. */
static bool step(struct probe_worker *worker)
{
	struct task *task = take_unwanted(&worker->attached);
	struct background *background = &worker->background;
	uint64_t off;

	if (!task)
		task = take_unwanted(&worker->todo);
	if (task) {
		drop(worker, task);
		return true;
	}
	task = find_task(worker);
	if (!task)
		return false;
	off = worker->times.off;
	worker->running = task;
	worker->running_since_ns = mono_ns();
	worker->is_late_told = false;
	pthread_mutex_unlock(&background->mutex);
	run_task(worker, task, off);
	pthread_mutex_lock(&background->mutex);
	worker->running = NULL;
	user_times_add(&worker->user_times, task->job.uid, task->took_ns, mono_ns());
	LL_DELETE(worker->todo, task);
	LL_APPEND(worker->done, task);
	return true;
}

/* Returns a task whose links are not as they are to be; NULL: there is none. */
static struct task *find_stale(const struct probe_worker *worker)
{
	const uint64_t off = worker->times.off;
	struct task *task;

	LL_FOREACH(worker->attached, task)
	if (task->off != off && !task->job.tracepoint[0])
		return task;
	LL_FOREACH(worker->done, task)
	if (task->off != off && !task->job.tracepoint[0] && !task->result.err)
		return task;
	return NULL;
}

/* Sums up the CPU time of the processes that have links of their own. */
static uint64_t cpu_ns_of_processes(struct probe_worker *worker)
{
	const struct task *task, *earlier;
	uint64_t sum_ns = 0;
	size_t count = 0;

	LL_FOREACH(worker->attached, task)
	{
		LL_FOREACH(worker->attached, earlier)
		if (earlier == task || earlier->job.pid == task->job.pid)
			break;
		if (earlier != task || !task->job.pid)
			continue;
		sum_ns += process_cpu_ns(task->job.pid);
		count++;
	}
	if (count != worker->process_count)
		probe_times_restart_paces(&worker->times);
	worker->process_count = count;
	return sum_ns;
}

/* Returns the time, and how far the programs have come without the probes. */
static struct probe_pace_point pace_now(struct probe_worker *worker)
{
	struct probe_pace_point point = {.time_ns = mono_ns(),
					 .own_ns = cpu_ns_of_processes(worker)};
	struct pp_hits hits[PP_PROBES_MAX];
	uint64_t spent_ns = 0;

	if (!worker->objects.side || probe_side_get_hits(worker->objects.side, hits))
		return point;
	for (uint32_t i = 0; i < PP_PROBES_MAX; i++)
		spent_ns += hits[i].hits * worker->hit_ns[i] + hits[i].ns;
	point.own_ns = point.own_ns > spent_ns ? point.own_ns - spent_ns : 0;
	return point;
}

static bool is_loaded(const struct probe_worker *worker, uint32_t probe)
{
	if (probe - worker->launch_probe < PP_CUDA_LAUNCHES)
		return worker->objects.cuda;
	return worker->objects.side;
}

static void set_gate(struct probe_worker *worker, uint32_t probe, const struct pp_gate *gate)
{
	const uint32_t launch = probe - worker->launch_probe;

	if (launch < PP_CUDA_LAUNCHES)
		(void)cuda_side_set_gate(worker->objects.cuda, launch, gate);
	else
		(void)probe_side_set_gate(worker->objects.side, probe, gate);
}

/* Where launches are not probed, nobody knows what is queued.  before: their probes are still as
 * they were. */
static void set_sight(struct probe_worker *worker, uint64_t was_off, bool before)
{
	uint64_t launches, off;

	if (!worker->objects.cuda || worker->launch_probe > PP_PROBES_MAX - PP_CUDA_LAUNCHES)
		return;
	launches = ((1ULL << PP_CUDA_LAUNCHES) - 1) << worker->launch_probe;
	off = worker->times.off & launches;
	if (before && off & ~was_off)
		cuda_side_go_blind(worker->objects.cuda);
	else if (!before && !off && was_off & launches)
		cuda_side_see(worker->objects.cuda);
}

/* With the mutex, but not while it works: takes probes off and puts them on when it is time for
 * that. */
static void take_turns(struct probe_worker *worker)
{
	struct background *background = &worker->background;
	const uint64_t was_off = worker->times.off;
	struct probe_pace_point now;
	struct task *task;

	(void)probe_times_look(&worker->times, mono_ns(), (uint32_t)random_number());
	now = pace_now(worker);
	if (worker->times.off & ~was_off)
		probe_times_close(&worker->times, &now);
	set_sight(worker, was_off, true);
	while ((task = find_stale(worker))) {
		const uint64_t off = worker->times.off;

		pthread_mutex_unlock(&background->mutex);
		if (await_locks(worker))
			(void)set_groups(task, off);
		pthread_mutex_lock(&background->mutex);
		if (worker->background.is_ending)
			break;
	}
	if (worker->times.off != was_off)
		now = pace_now(worker);
	for (uint32_t i = 0; i < PP_PROBES_MAX; i++) {
		struct pp_gate gate;

		if (is_loaded(worker, i) && worker->times.probe[i].is_used &&
		    probe_times_apply(&worker->times, i, &now, &gate))
			set_gate(worker, i, &gate);
	}
	set_sight(worker, was_off, false);
}

static void wait_for_work(struct probe_worker *worker)
{
	struct background *background = &worker->background;
	const uint64_t soon_ns = worker->todo ? mono_ns() + PUT_OFF_NS : UINT64_MAX;
	const uint64_t turn_ns = probe_times_next_ns(&worker->times);
	const uint64_t next_ns = turn_ns < soon_ns ? turn_ns : soon_ns;
	const struct timespec until = {.tv_sec = (time_t)(next_ns / NS_PER_SEC),
				       .tv_nsec = (long)(next_ns % NS_PER_SEC)};

	if (next_ns == UINT64_MAX)
		pthread_cond_wait(&background->has_changed, &background->mutex);
	else
		pthread_cond_timedwait(&background->has_changed, &background->mutex, &until);
}

static void *run(void *context)
{
	struct probe_worker *worker = context;

	background_begin(&worker->background);
	while (!worker->background.is_ending) {
		worker->is_busy = step(worker);
		pthread_cond_broadcast(&worker->background.has_changed);
		take_turns(worker);
		if (!worker->is_busy && !worker->background.is_ending)
			wait_for_work(worker);
	}
	(void)background_end(&worker->background);
	return NULL;
}

/* ---- the loop's side ---- */

int probe_worker_new(const struct kernel_side *kernel, uint32_t blocks_max,
		     struct probe_worker **ret_worker)
{
	struct probe_worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return -ENOMEM;
	worker->objects.kernel = kernel;
	worker->objects.blocks_max = blocks_max;
	background_init(&worker->background);
	worker->objects.mutex = &worker->background.mutex;
	worker->objects.prices.of = probe_prices_typical();
	worker->launch_probe = PP_PROBES_MAX;
	probe_times_begin(&worker->times, PERIOD_NS);
	*ret_worker = worker;
	return 0;
}

static void free_list(struct task **list)
{
	while (*list) {
		struct task *task = *list;

		LL_DELETE(*list, task);
		task_free(task);
	}
}

/* Returns false when the thread is in the kernel for good: it ends with the process. */
static bool end_thread(struct probe_worker *worker)
{
	(void)background_finish(&worker->background, END_LIMIT_NS);
	if (background_join(&worker->background))
		return true;
	log_debug("the kernel holds up the thread of probes: it is left");
	return false;
}

static void free_lists(struct probe_worker *worker)
{
	const bool has_links = worker->attached || worker->done;
	uint64_t began_ns;

	if ((worker->objects.side || worker->objects.cuda) && has_links)
		lock_wait_end(kernel_side_parts(worker->objects.kernel).locks);
	began_ns = mono_ns();
	free_list(&worker->todo);
	free_list(&worker->attached);
	free_list(&worker->done);
	if (has_links)
		log_debug("all probes were taken off in %.1f ms",
			  (double)(mono_ns() - began_ns) / 1e6);
}

bool probe_worker_free(struct probe_worker *worker)
{
	if (!worker)
		return true;
	if (worker->has_thread && !end_thread(worker))
		return false;
	free_lists(worker);
	user_quota_release(&worker->put_off);
	probe_objects_release(&worker->objects);
	background_destroy(&worker->background);
	free(worker);
	return true;
}

int probe_worker_attach(struct probe_worker *worker, struct probe_job *job)
{
	struct task *task = calloc(1, sizeof(*task));
	int err = 0;

	if (!task) {
		if (job->file >= 0)
			close(job->file);
		free(job->site);
		return -ENOMEM;
	}
	task->job = *job;
	*job = (struct probe_job){.file = -1};
	if (!worker->has_thread)
		err = background_start(&worker->background, run, worker);
	if (err) {
		task_free(task);
		return err;
	}
	worker->has_thread = true;
	pthread_mutex_lock(&worker->background.mutex);
	LL_APPEND(worker->todo, task);
	pthread_cond_broadcast(&worker->background.has_changed);
	pthread_mutex_unlock(&worker->background.mutex);
	return 0;
}

static void forget(struct task *list, uint32_t id)
{
	struct task *task;

	LL_FOREACH(list, task)
	if (task->job.id == id)
		task->is_unwanted = true;
}

void probe_worker_detach(struct probe_worker *worker, uint32_t id)
{
	LOCKED(&worker->background.mutex);

	forget(worker->todo, id);
	forget(worker->attached, id);
	forget(worker->done, id);
	pthread_cond_broadcast(&worker->background.has_changed);
}

bool probe_worker_result(struct probe_worker *worker, struct probe_result *ret_result)
{
	LOCKED(&worker->background.mutex);
	struct task *task = worker->done;

	if (!task)
		return false;
	LL_DELETE(worker->done, task);
	*ret_result = task->result;
	if (task->result.err) {
		task_free(task);
	} else {
		LL_PREPEND(worker->attached, task);
		/* It may be unwanted by now, and only the thread takes links off. */
		pthread_cond_broadcast(&worker->background.has_changed);
	}
	return true;
}

bool probe_worker_is_idle(struct probe_worker *worker)
{
	LOCKED(&worker->background.mutex);

	return !worker->todo;
}

bool probe_worker_is_late(struct probe_worker *worker, char ret_what[PROBE_WORKER_WHAT_BYTES])
{
	LOCKED(&worker->background.mutex);

	if (!worker->running || worker->lock_wait.holder || worker->is_late_told ||
	    mono_ns() - worker->running_since_ns <= LATE_NS)
		return false;
	memcpy(ret_what, worker->running->job.what, PROBE_WORKER_WHAT_BYTES);
	worker->is_late_told = true;
	return true;
}

bool probe_worker_tell_holder(struct probe_worker *worker, uint32_t *ret_tgid)
{
	LOCKED(&worker->background.mutex);

	return lock_wait_tell(&worker->lock_wait, mono_ns(), ret_tgid);
}

bool probe_worker_tell_put_off(struct probe_worker *worker, uint32_t *ret_uid)
{
	LOCKED(&worker->background.mutex);

	return user_quota_tell(&worker->put_off, ret_uid);
}

const struct probe_side *probe_worker_side(struct probe_worker *worker)
{
	LOCKED(&worker->background.mutex);

	return worker->objects.side;
}

void probe_worker_bound(struct probe_worker *worker, uint32_t probe, uint32_t leader)
{
	LOCKED(&worker->background.mutex);

	probe_times_add(&worker->times, probe, leader, mono_ns());
}

void probe_worker_bound_launches(struct probe_worker *worker, uint32_t first_probe)
{
	worker->launch_probe = first_probe;
	for (uint32_t i = first_probe; i < first_probe + PP_CUDA_LAUNCHES; i++) {
		probe_worker_bound(worker, i, i);
		probe_times_leave_pace(&worker->times, i);
		probe_times_set_period(&worker->times, i, PERIOD_LAUNCHES_NS);
	}
}

void probe_worker_set_share(struct probe_worker *worker, uint32_t probe, uint32_t share_ppm,
			    uint32_t hit_ns)
{
	LOCKED(&worker->background.mutex);

	worker->hit_ns[probe] = hit_ns;
	probe_times_set_share(&worker->times, probe, share_ppm, mono_ns());
	pthread_cond_broadcast(&worker->background.has_changed);
}

int probe_worker_get_costs(struct probe_worker *worker, struct probe_costs *ret_costs)
{
	const struct probe_side *side = probe_worker_side(worker);
	const uint64_t now_ns = mono_ns();

	if (!side)
		return -EAGAIN;
	pthread_mutex_lock(&worker->background.mutex);
	for (uint32_t i = 0; i < PP_PROBES_MAX; i++)
		ret_costs->on_ns[i] = probe_times_on_ns(&worker->times, i, now_ns);
	pthread_mutex_unlock(&worker->background.mutex);
	return probe_side_get_hits(side, ret_costs->hits);
}

uint64_t probe_worker_on_ns(struct probe_worker *worker, uint32_t probe, uint64_t now_ns)
{
	LOCKED(&worker->background.mutex);

	return probe_times_on_ns(&worker->times, probe, now_ns);
}

struct probe_worker_prices probe_worker_get_prices(struct probe_worker *worker)
{
	LOCKED(&worker->background.mutex);

	return worker->objects.prices;
}

const struct cuda_side *probe_worker_cuda(struct probe_worker *worker)
{
	LOCKED(&worker->background.mutex);

	return worker->objects.cuda;
}
