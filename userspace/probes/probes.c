/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <pyprofd/config.h>
#include <pyprofd/sample.h>

#include "attach/cuda_side.h"
#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/user_quota.h"
#include "base/user_shares.h"
#include "discover/mapping_set.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/text_table.h"
#include "files/client.h"
#include "files/opening.h"
#include "options/options.h"
#include "probes/probe_bounds.h"
#include "probes/probe_names.h"
#include "probes/probe_warnings.h"
#include "probes/probe_worker.h"
#include "probes/probed_file.h"
#include "windows/label.h"
#include "windows/source.h"
#include "windows/summary.h"

#define FILES_MAX 4096U	   /* that are looked into; further ones get no probes */
#define ATTACHED_MAX 4096U /* processes and files with links of their own */
#define AGAIN_MAX 1024U	   /* processes with files that could not be looked into yet */
/* Sampled blocks that are held: 32 GiB on average. */
#define BLOCKS_MAX 65536U

/* The links of one process and file. */
struct attached {
	struct pp_process_id process;
	uint32_t file, job;
};

struct probes {
	const struct services *services;
	struct probe_plan plan;
	struct probe_worker *worker; /* owned */
	struct probed_file *file;    /* hash table by id */
	struct attached *attached;   /* owned */
	size_t attached_count, attached_capacity;
	struct pp_process_id again[AGAIN_MAX];
	size_t again_count;
	/* What the command will execute has its links before that; NULL: nothing has. */
	struct probed_file *prepared;	  /* owned */
	struct pp_process_id prepared_id; /* of its process before that */
	struct probe_bounds bounds;
	struct user_quota file_quota; /* entries of `file` */
	struct probe_known *known;    /* owned; of each row */
	struct site_numbers numbers;
	uint32_t next_job;
	struct probe_warnings warnings;
	uint64_t started_ns; /* since when hits count; 0: they do not */
	bool takes_all;
	bool is_cuda_told[2]; /* of driver and runtime: that not all functions are probed */
};

/* ---- files ---- */

/* Returns what is known of a file; NULL: it has not been looked into. */
static struct probed_file *file_of(const struct probes *probes, uint32_t id)
{
	struct probed_file *known;

	HASH_FIND(hh, probes->file, &id, (unsigned int)sizeof(id), known);
	return known;
}

static int take_answer(struct probes *probes, const struct probe_sites *sites,
		       struct probe_wants *list, struct probed_file *file)
{
	for (size_t i = 0; i < list->row_count; i++) {
		const uint32_t row = list->of[i].row;

		probe_known_note(&probes->known[row], &probes->plan.row[row], &sites->found[i],
				 file->path);
	}
	return probed_file_number_sites(file,
					&(struct probed_file_sources){.plan = &probes->plan,
								      .bounds = &probes->bounds,
								      .numbers = &probes->numbers},
					sites, list);
}

static int add_file(struct probes *probes, const struct file *file, uint32_t uid, const char *path,
		    struct probed_file **ret_file)
{
	struct probed_file *made;
	int err = user_quota_take(&probes->file_quota, uid, 1);

	if (err)
		return err;
	made = calloc(1, sizeof(*made));
	if (!made) {
		user_quota_give(&probes->file_quota, uid, 1);
		return -ENOMEM;
	}
	made->id = file->id;
	made->uid = uid;
	snprintf(made->path, sizeof(made->path), "%s", path ? path : "?");
	HASH_ADD(hh, probes->file, id, (unsigned int)sizeof(made->id), made);
	*ret_file = made;
	return 0;
}

static void drop_file(struct probes *probes, struct probed_file *file)
{
	probed_file_drop_sites(file, &probes->numbers);
	user_quota_give(&probes->file_quota, file->uid, 1);
	HASH_DEL(probes->file, file);
	probed_file_free(file);
}

static int add_answer(struct probes *probes, struct probed_file *made,
		      const struct probe_sites *sites, struct probe_wants *list)
{
	int err;

	if (made->is_refused)
		return 0;
	err = take_answer(probes, sites, list, made);
	if (!probes->takes_all)
		probed_file_tell_left_out(made, probes->is_cuda_told);
	if (err != -ENOSPC)
		return err;
	/* It is not asked about again, unless another user maps it. */
	probed_file_drop_sites(made, &probes->numbers);
	made->is_refused = true;
	return 0;
}

/* Refuses breakpoints in a file for which others than the kernel answer: it waits for the page of
 * one for as long as they want.  Returns 0; -ETIMEDOUT: nobody knows now. */
static int judge(struct probes *probes, struct file *file, struct probed_file *made)
{
	OWNED_FD int fd = -1;
	int err = file_table_descriptor(probes->services->files, file, &fd);

	made->is_refused = err == -EREMOTE;
	if (!made->is_refused)
		return err == -ETIMEDOUT ? err : 0;
	probe_warn_refused(&probes->warnings, made->path, 0,
			   "a program (FUSE) or a network answers for it, and may never do so");
	return 0;
}

/* Looks into a file.  Returns 0; -EAGAIN: the child was late or has no time for it now; -errno. */
static int look_into(struct probes *probes, struct file *file, uint32_t uid,
		     struct probed_file **ret_file)
{
	OWNED_MEM struct probe_wants *list = calloc(1, sizeof(*list));
	struct probe_sites sites = {};
	struct probed_file *made;
	int err = list ? add_file(probes, file, uid, file->path, &made) : -ENOMEM;

	if (err)
		return err;
	probe_wants_list(&probes->plan, file, list);
	err = file_table_probes(probes->services->files, file, list->wanted, list->count, &sites);
	if (!err) {
		probed_file_note_inode(made, &file->identity);
		if (sites.site_count)
			err = judge(probes, file, made);
		if (!err)
			err = add_answer(probes, made, &sites, list);
		probe_sites_release(&sites);
	}
	if (err) {
		drop_file(probes, made);
		return err == -ETIMEDOUT ? -EAGAIN : err;
	}
	*ret_file = made;
	return 0;
}

/* For struct probe_bounds_users. */
static uint64_t rows_of(const void *context, uint32_t id)
{
	const struct probes *probes = context;
	const struct probed_file *known = file_of(probes, id);

	return known ? probed_file_rows(known, probes->plan.cuda_launch_row) : 0;
}

/* ---- attaching ---- */

/* fd: owned by the job from now on, or closed.  *ret_job is untouched on failure. */
static int make_job(struct probes *probes, int fd, const struct probed_file *known, pid_t pid,
		    uint32_t *ret_job)
{
	struct probe_job job = {.file = fd, .pid = pid, .site_count = known->site_count};
	uint32_t id;
	int err;

	job.uid = known->is_roots ? 0 : known->uid;
	job.allocator = known->has_allocator ? known->id : 0;
	job.site = calloc(known->site_count, sizeof(*job.site));
	if (!job.site) {
		close(fd);
		return -ENOMEM;
	}
	memcpy(job.site, known->site, known->site_count * sizeof(*job.site));
	job.id = id = probes->next_job++;
	snprintf(job.what, sizeof(job.what), "%s", known->path);
	err = probe_worker_attach(probes->worker, &job);
	if (!err)
		*ret_job = id;
	return err;
}

/* As make_job(), and tells of an error. */
static int start_job(struct probes *probes, struct file *file, const struct probed_file *known,
		     pid_t pid, uint32_t *ret_job)
{
	int fd, err = file_table_descriptor(probes->services->files, file, &fd);

	if (!err)
		err = make_job(probes, fd, known, pid, ret_job);
	if (err)
		probe_warn_refused(&probes->warnings, known->path, pid, strerror(-err));
	return err;
}

static bool is_of_process(const struct probes *probes, const struct attached *one, const void *id)
{
	(void)probes;
	return !memcmp(&one->process, id, sizeof(one->process));
}

static bool is_of_file(const struct probes *probes, const struct attached *one, const void *id)
{
	(void)probes;
	return !memcmp(&one->file, id, sizeof(one->file));
}

/* Takes off what processes have of files, where `is_unwanted` says so of `of`. */
static void detach(struct probes *probes,
		   bool (*is_unwanted)(const struct probes *probes, const struct attached *one,
				       const void *of),
		   const void *of)
{
	size_t kept = 0;

	for (size_t i = 0; i < probes->attached_count; i++) {
		const struct attached *one = &probes->attached[i];

		if (is_unwanted(probes, one, of))
			probe_worker_detach(probes->worker, one->job);
		else
			probes->attached[kept++] = *one;
	}
	probes->attached_count = kept;
}

static bool is_attached(const struct probes *probes, struct pp_process_id id,
			const struct probed_file *file)
{
	for (size_t i = 0; i < probes->attached_count; i++) {
		const struct attached *attached = &probes->attached[i];
		const struct probed_file *other;

		if (!is_of_process(probes, attached, &id))
			continue;
		other = file_of(probes, attached->file);
		if (attached->file == file->id || (other && probed_file_is_same_code(other, file)))
			return true;
	}
	return false;
}

/* Returns another file that has the same links, or NULL. */
static const struct probed_file *find_partner(const struct probes *probes,
					      const struct probed_file *file)
{
	const struct probed_file *other;

	for (other = probes->file; other; other = other->hh.next)
		if (other != file && other->job && probed_file_is_same_code(other, file))
			return other;
	return NULL;
}

/* Returns whether the process is the command, which has its links in this file already. */
static bool take_prepared(struct probes *probes, const struct process *process,
			  const struct probed_file *known, uint32_t *ret_job)
{
	struct probed_file *prepared = probes->prepared;

	if (!prepared || process->id.tgid != probes->prepared_id.tgid || !known->key.inode ||
	    !file_key_equal(&known->key, &prepared->key))
		return false;
	*ret_job = prepared->job;
	probes->prepared = NULL;
	/* Its sites' numbers stay taken: the links go on using them. */
	free(prepared->site);
	free(prepared);
	return true;
}

/* Returns whether this is the command as it was before it began: a mapping of the new program may
 * be told before its exec is, with which all that the process had ends. */
static bool is_about_to_begin(const struct probes *probes, struct pp_process_id id)
{
	return probes->prepared && id.tgid == probes->prepared_id.tgid &&
	       id.generation == probes->prepared_id.generation;
}

static void attach_process(struct probes *probes, const struct process *process, struct file *file,
			   const struct probed_file *known)
{
	struct attached *made;

	if (is_attached(probes, process->id, known) || is_about_to_begin(probes, process->id))
		return;
	if (probes->attached_count >= ATTACHED_MAX ||
	    ARRAY_RESERVE(probes->attached, probes->attached_count, probes->attached_capacity)) {
		probe_warn_full(&probes->warnings, ATTACHED_MAX);
		return;
	}
	made = &probes->attached[probes->attached_count];
	*made = (struct attached){.process = process->id, .file = known->id};
	if (take_prepared(probes, process, known, &made->job) ||
	    !start_job(probes, file, known, (pid_t)process->id.tgid, &made->job))
		probes->attached_count++;
	probe_bounds_add_process(&probes->bounds, (pid_t)process->id.tgid);
}

static void attach_everywhere(struct probes *probes, struct file *file, struct probed_file *known)
{
	const struct probed_file *partner = find_partner(probes, known);

	if (partner) {
		known->job = partner->job;
		known->attached_ns = partner->attached_ns;
	} else {
		(void)start_job(probes, file, known, 0, &known->job);
	}
}

/* Returns what is known of a file; NULL: it has not been looked into, or was refused to another
 * user. */
static struct probed_file *find_file(struct probes *probes, uint32_t id, uint32_t uid)
{
	struct probed_file *known = file_of(probes, id);

	if (!known || !known->is_refused || known->uid == uid)
		return known;
	drop_file(probes, known);
	return NULL;
}

/* ---- CUDA's libraries ---- */

/* Returns what is known of a file whose functions of CUDA's runtime are probed; NULL: of another
 * one. */
static const struct probed_file *find_runtime(const struct probes *probes, uint32_t id)
{
	const struct probed_file *known = file_of(probes, id);

	return known && known->has_runtime ? known : NULL;
}

static bool maps_driver(const struct probes *probes, const struct process *process)
{
	for (size_t i = 0; i < process->mapping_count; i++) {
		const struct probed_file *known = file_of(probes, process->mapping[i].file);

		if (known && known->has_driver)
			return true;
	}
	return false;
}

static bool is_of_runtime(const struct probes *probes, const struct attached *one, const void *id)
{
	return is_of_process(probes, one, id) && find_runtime(probes, one->file);
}

/* The runtime calls the driver, so where there is a driver its functions alone are probed.  That
 * depends on the process, so it has links of its own. */
static void see_runtimes(struct probes *probes, const struct process *process)
{
	if (probes->plan.cuda_row >= probes->plan.count)
		return;
	if (maps_driver(probes, process)) {
		detach(probes, is_of_runtime, &process->id);
		return;
	}
	for (size_t i = 0; i < process->mapping_count; i++) {
		const struct probed_file *known = find_runtime(probes, process->mapping[i].file);

		if (known)
			attach_process(probes, process,
				       file_table_find(probes->services->files, known->id), known);
	}
}

/* Hits count from now on: of a process that began before, not all calls are seen. */
static int source_begin(void *state, uint64_t started_ns)
{
	struct probes *probes = state;

	probes->started_ns = started_ns;
	return 0;
}

/* Of a process that began when the library had all its probes every call is seen. */
static void see_whole(const struct probes *probes, const struct process *process,
		      const struct probed_file *known)
{
	const struct cuda_side *side = probe_worker_cuda(probes->worker);

	if (known->has_driver && side && known->attached_ns &&
	    process->start_ns > known->attached_ns && probes->started_ns &&
	    process->start_ns > probes->started_ns && process->start_ns > side->seen_since_ns)
		(void)cuda_side_add_whole(side, process->id);
}

/* Returns -EAGAIN when the file could not be looked into yet. */
static int see_file(struct probes *probes, const struct process *process, uint32_t id)
{
	struct file *file = file_table_find(probes->services->files, id);
	const uint32_t uid = process_user(process);
	struct probed_file *known;
	int err;

	if (!file || !probe_wants_any(&probes->plan, file))
		return 0;
	known = find_file(probes, id, uid);
	if (!known) {
		err = look_into(probes, file, uid, &known);
		if (err)
			return err;
	}
	if (!known->site_count || known->has_runtime)
		return 0;
	if (probes->services->is_filtered || known->is_layered)
		attach_process(probes, process, file, known);
	else if (!known->job)
		attach_everywhere(probes, file, known);
	else
		see_whole(probes, process, known);
	return 0;
}

static void source_see_process(void *state, const struct process *process, bool is_new)
{
	struct probes *probes = state;
	uint32_t last = 0;
	bool is_late = false;

	(void)is_new;
	if (process->exit_ns)
		return;
	for (size_t i = 0; i < process->mapping_count; i++) {
		const uint32_t id = process->mapping[i].file;

		if (id < PP_FILE_FIRST || id == last)
			continue;
		last = id;
		is_late |= see_file(probes, process, id) == -EAGAIN;
	}
	see_runtimes(probes, process);
	if (is_late && probes->again_count < AGAIN_MAX)
		probes->again[probes->again_count++] = process->id;
}

static void source_forget_process(void *state, struct pp_process_id id)
{
	struct probes *probes = state;

	detach(probes, is_of_process, &id);
	probe_bounds_drop_process(&probes->bounds, (pid_t)id.tgid);
}

/* ---- a command, before it begins ---- */

static int prepare_file(struct probes *probes, struct opener_file *file,
			const struct opened_file *found, pid_t pid)
{
	const struct process *process =
		process_table_find_tgid(probes->services->processes, (uint32_t)pid);
	OWNED_MEM struct probe_wants *list = calloc(1, sizeof(*list));
	OWNED(probed_file) struct probed_file *made = calloc(1, sizeof(*made));
	struct probe_sites sites = {};
	int fd, err;

	if (!process || !list || !made)
		return process ? -ENOMEM : -ESRCH;
	snprintf(made->path, sizeof(made->path), "%.*s", (int)sizeof(made->path) - 1, found->path);
	made->key = found->identity.key;
	probe_wants_list_path(&probes->plan, found->path, list);
	if (!list->count)
		return -ENOENT;
	err = probe_wants_ask(probes->services->foreign, file, list, &sites);
	if (!err)
		err = take_answer(probes, &sites, list, made);
	probe_sites_release(&sites);
	if (err || !made->site_count)
		return err;
	err = opener_give(foreign_opener(probes->services->foreign), file, getpid(), &fd)
		      ?: make_job(probes, fd, made, pid, &made->job);
	if (err)
		return err;
	probes->prepared_id = process->id;
	probes->prepared = TAKE(made);
	return 0;
}

/* The first calls and imports of a command are seen.  pid: its process, which will execute it. */
static void source_prepare(void *state, pid_t pid, const char *command)
{
	struct probes *probes = state;
	struct opener *opener = foreign_opener(probes->services->foreign);
	struct opened_file found;
	struct opener_file file;
	int err;

	if (command_file_open(opener, command, &found, &file))
		return;
	/* Where that fails, the process gets its links as others do. */
	err = prepare_file(probes, &file, &found, pid);
	opener_close(opener, &file);
	if (err)
		log_debug("probes of '%s' are not attached before it begins: %s", found.path,
			  strerror(-err));
}

static int attach_tracepoint(struct probes *probes, uint32_t row)
{
	const struct probe_row *probe = &probes->plan.row[row];
	struct probe_job job = {.file = -1, .site_count = 1, .site = calloc(1, sizeof(*job.site))};

	if (!job.site)
		return -ENOMEM;
	job.site->number = site_numbers_take(&probes->numbers, 0);
	if (!job.site->number) {
		free(job.site);
		return -ENOSPC;
	}
	job.site->site = (struct pp_site){.does = probe->leg[0].does, .probe = row};
	snprintf(job.tracepoint, sizeof(job.tracepoint), "%s", probe->spec->name);
	snprintf(job.what, sizeof(job.what), "%s", probe->name);
	job.id = probes->next_job++;
	return probe_worker_attach(probes->worker, &job);
}

static int check_tracepoint(struct probes *probes, uint32_t row)
{
	int err = probe_check_tracepoint(&probes->plan.row[row]);

	return err ? err : attach_tracepoint(probes, row);
}

/* Looks whether what --probe names is there: -ENXIO where it is not, or cannot be attached. */
static int source_check(void *state)
{
	struct probes *probes = state;
	int err = 0;

	for (uint32_t row = 0; row < probes->plan.count && !err; row++) {
		if (probes->plan.row[row].place == PROBE_IN_BINARY)
			err = probe_check_binary(&probes->plan, row, probes->services->foreign,
						 &probes->known[row]);
		else if (probes->plan.row[row].place == PROBE_IN_KERNEL)
			err = check_tracepoint(probes, row);
	}
	return err;
}

/* ---- results ---- */

static void on_result(struct probes *probes, const struct probe_result *result)
{
	struct probed_file *file;

	if (result->err && result->err != -ESRCH)
		probe_warn_refused(&probes->warnings, result->what, result->pid, result->why);
	else if (!result->err)
		log_debug("%s: %zu places have probes after %.1f ms", result->what,
			  result->site_count, (double)result->took_ns / 1e6);
	for (file = probes->file; file && !result->err; file = file->hh.next)
		if (file->job == result->id)
			file->attached_ns = mono_ns();
}

static int source_is_ready(void *state)
{
	const struct probes *probes = state;

	return !probes->again_count && probe_worker_is_idle(probes->worker);
}

static void see_again(struct probes *probes)
{
	const size_t count = probes->again_count;
	struct pp_process_id again[AGAIN_MAX];

	memcpy(again, probes->again, count * sizeof(*again));
	probes->again_count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct process *process =
			process_table_find(probes->services->processes, again[i]);

		if (process)
			source_see_process(probes, process, false);
	}
}

/* A link would keep the file's file system from being unmounted. */
static void drop_gone(struct probes *probes)
{
	struct probed_file *file, *next;

	HASH_ITER (hh, probes->file, file, next) {
		if (file_table_find(probes->services->files, file->id))
			continue;
		if (file->job && !find_partner(probes, file))
			probe_worker_detach(probes->worker, file->job);
		detach(probes, is_of_file, &file->id);
		drop_file(probes, file);
	}
}

/* Takes results, asks again where the parser's child was late, and takes probes off files that are
 * gone. */
static bool source_tick(void *state, uint64_t now_ns)
{
	struct probes *probes = state;
	struct probe_result result;
	const struct kernel_side_parts parts = kernel_side_parts(probes->services->kernel);

	(void)now_ns;
	probe_warn_late(probes->worker);
	while (probe_worker_result(probes->worker, &result))
		on_result(probes, &result);
	probe_warn_shares(&probes->numbers.quota);
	probe_warn_shares(&probes->file_quota);
	see_again(probes);
	drop_gone(probes);
	probe_bounds_look(&probes->bounds, mono_ns());
	user_shares_fade_calls(&parts.user_shares);
	return false;
}

/* ---- the whole ---- */

/* Returns false when a thread goes on to use the kernel side: probe_worker_free(). */
static bool source_close(void *state)
{
	struct probes *probes = state;
	struct probed_file *file, *next;
	bool has_ended;

	probe_bounds_release(&probes->bounds);
	has_ended = probe_worker_free(probes->worker);
	probed_file_free(probes->prepared);
	HASH_ITER (hh, probes->file, file, next)
		drop_file(probes, file);
	site_numbers_release(&probes->numbers);
	user_quota_release(&probes->file_quota);
	probe_plan_release(&probes->plan);
	free(probes->attached);
	free(probes->known);
	return has_ended;
}

static int source_open(void *state)
{
	struct probes *probes = state;
	const struct services *services = probes->services;
	int err;

	probes->next_job = 1;
	probes->file_quota.total = FILES_MAX;
	site_numbers_init(&probes->numbers);
	probes->takes_all = probe_links_can_share();
	if (services->options->events_are_default && !probes->takes_all) {
		log_debug("gc, import and cuda are left out: on kernels before 6.6 they take "
			  "CAP_SYS_ADMIN, which pyprofd keeps only for who asks for them, as "
			  "--events cpu,gc,import,cuda");
		return 1;
	}
	err = probe_plan_make(services->options, probes->takes_all, &probes->plan);
	if (err || !probes->plan.count)
		return err ? err : 1;
	probe_plan_find_binaries(&probes->plan, foreign_opener(services->foreign));
	probes->known = calloc(probes->plan.count, sizeof(*probes->known));
	if (!probes->known)
		return -ENOMEM;
	err = probe_worker_new(services->kernel,
			       services->options->events & PP_CAPTURE_ALLOC ? BLOCKS_MAX : 0,
			       &probes->worker);
	if (err)
		return err;
	return probe_bounds_init(
		&probes->bounds, services->options, &probes->plan, probes->worker,
		&(struct probe_bounds_users){.processes = services->processes,
					     .rows_of = services->is_filtered ? NULL : rows_of,
					     .context = probes});
}

const struct probe_side *probes_allocs(struct probes *probes)
{
	if (!probes || probes->plan.alloc_row >= probes->plan.count)
		return NULL;
	return probe_worker_side(probes->worker);
}

const struct cuda_side *probes_cuda(struct probes *probes)
{
	return probes ? probe_worker_cuda(probes->worker) : NULL;
}

uint64_t probes_refused(const struct probes *probes)
{
	return probes ? probes->numbers.quota.refused + probes->file_quota.refused : 0;
}

struct probe_plan probes_plan(const struct probes *probes)
{
	return probes ? probes->plan : (struct probe_plan){};
}

/* ---- their counters, which are in the kernel's tables ---- */

/* CUDA's are totals, of which a source of its own knows what they do (gpu/cuda.h). */
static int source_label(void *state, const struct pp_count_key *key, struct intern *strings,
			struct profile_sample *sample)
{
	const struct probes *probes = state;
	const char *module;

	switch (key->kind) {
	case PP_KIND_GC:
		label_number(sample, "generation", (int64_t)key->detail);
		return 0;
	case PP_KIND_IMPORT:
		module = text_table_find(probes->services->texts, key->detail);
		return label_string(strings, sample, "module", module ? module : "[unknown]");
	default:
		return key->detail < probes->plan.count
			       ? label_string(strings, sample, "probe",
					      probes->plan.name[key->detail])
			       : 0;
	}
}

static int source_describe(void *state, struct profiles *profiles)
{
	struct probes *probes = state;

	return probe_bounds_describe(&probes->bounds, profiles, mono_ns());
}

static void source_summarize(void *state, struct summary *summary)
{
	const struct probes *probes = state;
	const struct budget_now *now = budget_now(probes->bounds.programs);

	summary->probes_cost_ppm = now->cost_ppm;
	summary->probes_on_ppm = now->least_ppm;
}

const struct source probes_source = {.name = "probes",
				     .bytes = sizeof(struct probes),
				     .open = source_open,
				     .close = source_close,
				     .prepare = source_prepare,
				     .check = source_check,
				     .is_ready = source_is_ready,
				     .begin = source_begin,
				     .see_process = source_see_process,
				     .forget_process = source_forget_process,
				     .tick = source_tick,
				     .labelled_kinds = 1U << PP_KIND_GC | 1U << PP_KIND_IMPORT |
						       1U << PP_KIND_PROBE,
				     .label = source_label,
				     .describe = source_describe,
				     .summarize = source_summarize};
