/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/probe_worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "attach/probe_side.h"
#include "base/background.h"

/* A job, and its links once they are attached. */
struct task {
	struct probe_job job;
	struct probe_result result;
	struct probe_links entries, returns;
	struct probe_side *own; /* owned; a tracepoint's where the kernel has no cookies for them */
	bool is_unwanted;
	struct task *next; /* in the order in which they came */
};

struct probe_worker {
	struct background background;
	const struct kernel_side *kernel;
	/* Guarded by the background's mutex. */
	struct task *todo, *attached, *done; /* lists; `done` has results that nobody has taken */
	struct probe_side *side;	     /* owned; NULL: not loaded yet */
	bool has_thread, is_busy, is_ending;
	/* The thread's alone. */
	bool is_shared;
	int load_err;
	char load_why[PROBE_WORKER_WHY_BYTES];
};

static void task_free(struct task *task)
{
	if (!task)
		return;
	probe_links_release(&task->entries);
	probe_links_release(&task->returns);
	probe_side_free(task->own);
	if (task->job.file >= 0)
		close(task->job.file);
	free(task->job.site);
	free(task);
}

/* ---- the thread ---- */

static int attach_sites(const struct probe_worker *worker, const struct probe_job *job,
			bool is_return, struct probe_links *ret_links)
{
	OWNED_MEM struct probe_link_site *site = calloc(job->site_count, sizeof(*site));
	struct probe_links_options options = {.program = probe_side_probe_program(worker->side),
					      .site_now = probe_side_site_now(worker->side),
					      .programs = probe_side_programs(worker->side),
					      .file = job->file,
					      .pid = job->pid,
					      .is_return = is_return,
					      .is_shared = worker->is_shared,
					      .site = site};

	if (!site)
		return -ENOMEM;
	for (size_t i = 0; i < job->site_count; i++)
		if (job->site[i].is_return == is_return)
			site[options.count++] =
				(struct probe_link_site){.offset = job->site[i].offset,
							 .semaphore = job->site[i].semaphore,
							 .cookie = job->site[i].number};
	return options.count ? probe_links_attach(&options, ret_links) : 0;
}

static int attach_tracepoint(const struct probe_worker *worker, struct task *task)
{
	const struct probe_worker_site *site = task->job.site;
	struct probe_links links = {.fd = calloc(1, sizeof(*links.fd)), .count = 1};
	int err;

	if (!links.fd)
		return -ENOMEM;
	err = probe_links_tracepoint(probe_side_tracepoint_program(worker->side),
				     task->job.tracepoint, site->number, links.fd);
	if (err == -ENOTSUP) {
		err = probe_side_open(worker->kernel, site->number, task->result.why,
				      sizeof(task->result.why), &task->own);
		if (!err)
			err = probe_side_set_site(task->own, site->number, &site->site);
		if (!err)
			err = probe_links_tracepoint(probe_side_tracepoint_program(task->own),
						     task->job.tracepoint, 0, links.fd);
	}
	if (err) {
		free(links.fd);
		return err;
	}
	task->entries = links;
	return 0;
}

static int attach(const struct probe_worker *worker, struct task *task)
{
	const struct probe_job *job = &task->job;
	int err = 0;

	for (size_t i = 0; i < job->site_count && !err; i++)
		err = probe_side_set_site(worker->side, job->site[i].number, &job->site[i].site);
	if (!err && job->tracepoint[0])
		return attach_tracepoint(worker, task);
	/* What ends a call first: no beginning is seen without its end. */
	if (!err)
		err = attach_sites(worker, job, true, &task->returns);
	if (!err)
		err = attach_sites(worker, job, false, &task->entries);
	return err;
}

static int load(struct probe_worker *worker)
{
	struct probe_side *side;

	if (worker->side || worker->load_err)
		return worker->load_err;
	worker->is_shared = probe_links_can_share();
	worker->load_err = probe_side_open(worker->kernel, 0, worker->load_why,
					   sizeof(worker->load_why), &side);
	if (worker->load_err)
		return worker->load_err;
	pthread_mutex_lock(&worker->background.mutex);
	worker->side = side;
	pthread_mutex_unlock(&worker->background.mutex);
	return 0;
}

/* Without the mutex. */
static void run_task(struct probe_worker *worker, struct task *task)
{
	task->result.id = task->job.id;
	task->result.pid = task->job.pid;
	memcpy(task->result.what, task->job.what, sizeof(task->result.what));
	task->result.err = load(worker);
	if (task->result.err) {
		snprintf(task->result.why, sizeof(task->result.why), "%s", worker->load_why);
		return;
	}
	task->result.err = attach(worker, task);
	if (!task->result.err)
		return;
	probe_links_release(&task->returns);
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

	LL_FOREACH (*list, task)
		if (task->is_unwanted)
			break;
	if (task)
		LL_DELETE(*list, task);
	return task;
}

/* With the mutex, but not while it works. */
static bool step(struct probe_worker *worker)
{
	struct task *task = take_unwanted(&worker->attached);
	struct background *background = &worker->background;

	if (!task)
		task = take_unwanted(&worker->todo);
	if (task) {
		pthread_mutex_unlock(&background->mutex);
		task_free(task);
		pthread_mutex_lock(&background->mutex);
		return true;
	}
	task = worker->todo;
	if (!task)
		return false;
	pthread_mutex_unlock(&background->mutex);
	run_task(worker, task);
	pthread_mutex_lock(&background->mutex);
	LL_DELETE(worker->todo, task);
	LL_APPEND(worker->done, task);
	return true;
}

static void *run(void *context)
{
	struct probe_worker *worker = context;

	background_begin(&worker->background);
	while (!worker->is_ending) {
		worker->is_busy = step(worker);
		pthread_cond_broadcast(&worker->background.has_changed);
		if (!worker->is_busy && !worker->is_ending)
			pthread_cond_wait(&worker->background.has_changed,
					  &worker->background.mutex);
	}
	pthread_mutex_unlock(&worker->background.mutex);
	return NULL;
}

/* ---- the loop's side ---- */

int probe_worker_new(const struct kernel_side *kernel, struct probe_worker **ret_worker)
{
	struct probe_worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return -ENOMEM;
	worker->kernel = kernel;
	background_init(&worker->background);
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

void probe_worker_free(struct probe_worker *worker)
{
	if (!worker)
		return;
	if (worker->has_thread) {
		pthread_mutex_lock(&worker->background.mutex);
		worker->is_ending = true;
		pthread_cond_broadcast(&worker->background.has_changed);
		pthread_mutex_unlock(&worker->background.mutex);
		pthread_join(worker->background.thread, NULL);
	}
	free_list(&worker->todo);
	free_list(&worker->attached);
	free_list(&worker->done);
	probe_side_free(worker->side);
	background_destroy(&worker->background);
	free(worker);
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

	LL_FOREACH (list, task)
		if (task->job.id == id)
			task->is_unwanted = true;
}

void probe_worker_detach(struct probe_worker *worker, uint32_t id)
{
	pthread_mutex_lock(&worker->background.mutex);
	forget(worker->todo, id);
	forget(worker->attached, id);
	forget(worker->done, id);
	pthread_cond_broadcast(&worker->background.has_changed);
	pthread_mutex_unlock(&worker->background.mutex);
}

bool probe_worker_result(struct probe_worker *worker, struct probe_result *ret_result)
{
	struct task *task;
	bool is_there;

	pthread_mutex_lock(&worker->background.mutex);
	task = worker->done;
	is_there = task;
	if (task) {
		LL_DELETE(worker->done, task);
		*ret_result = task->result;
		if (task->result.err) {
			task_free(task);
		} else {
			LL_PREPEND(worker->attached, task);
			/* It may be unwanted by now, and only the thread takes links off. */
			pthread_cond_broadcast(&worker->background.has_changed);
		}
	}
	pthread_mutex_unlock(&worker->background.mutex);
	return is_there;
}

bool probe_worker_is_idle(struct probe_worker *worker)
{
	bool is_idle;

	pthread_mutex_lock(&worker->background.mutex);
	is_idle = !worker->todo;
	pthread_mutex_unlock(&worker->background.mutex);
	return is_idle;
}

int probe_worker_get_hits(struct probe_worker *worker, struct pp_hits ret_hits[PP_PROBES_MAX])
{
	struct probe_side *side;

	pthread_mutex_lock(&worker->background.mutex);
	side = worker->side;
	pthread_mutex_unlock(&worker->background.mutex);
	/* Once loaded it stays until the end. */
	return side ? probe_side_get_hits(side, ret_hits) : -EAGAIN;
}
