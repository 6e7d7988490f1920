/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/probes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <uthash.h>

#include "agent/probe_groups.h"
#include "agent/probe_names.h"
#include "agent/probe_wants.h"
#include "agent/probe_worker.h"
#include "agent/site_numbers.h"
#include "attach/file_table.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "discover/process_table.h"
#include "foreign/client.h"
#include "options/options.h"

#define FILES_MAX 4096U	     /* that are looked into; further ones get no probes */
#define ATTACHED_MAX 4096U   /* processes and files with links of their own */
#define AGAIN_MAX 1024U	     /* processes with files that could not be looked into yet */
/* Sampled blocks that are held: 32 GiB on average. */
#define BLOCKS_MAX 65536U

/* A file that was looked into. */
struct probed_file {
	uint32_t id; /* of struct file */
	uint32_t job; /* of all processes; 0: none */
	struct probe_worker_site *site; /* owned; NULL: it has none of the probes */
	size_t site_count;
	bool has_allocator;
	/* What breakpoints are put into.  One inode may be several files (docs/design/0016): a
	 * process with another root shows another path. */
	uint64_t device, inode;
	bool is_layered; /* on overlayfs, where several inodes may be one that lies below */
	char path[256]; /* for messages */
	UT_hash_handle hh;
};

/* The links of one process and file. */
struct attached {
	struct pp_process_id process;
	uint32_t file, job;
};

struct probes {
	struct probes_sources sources;
	struct probe_plan plan;
	struct probe_worker *worker; /* owned */
	struct probed_file *file;    /* hash table by id */
	struct attached *attached;   /* owned */
	size_t attached_count, attached_capacity;
	struct pp_process_id again[AGAIN_MAX];
	size_t again_count;
	/* What the command will execute has its links before that; NULL: nothing has. */
	struct probed_file *prepared; /* owned */
	struct pp_process_id prepared_id; /* of its process before that */
	struct probe_bounds bounds;
	struct probe_known *known; /* owned; of each row */
	struct site_numbers numbers;
	uint32_t next_job;
	uint64_t refused; /* jobs that the kernel refused */
	bool is_full_told;
};

/* ---- sites of a file ---- */

static void note_raiser(struct probe_wants *list, const struct probe_site *site)
{
	if (site->wanted == list->row_count)
		list->line = site->semaphore_offset;
	else if (!list->carrier)
		list->carrier = site->offset;
}

/* Adds the site that raises the semaphore of `line`; there is room for it. */
static int raise_line(struct probes *probes, const struct probe_wants *list,
		      struct probed_file *file)
{
	const uint32_t number = site_numbers_take(&probes->numbers);

	if (!number)
		return -ENOSPC;
	file->site[file->site_count++] = (struct probe_worker_site){
		.number = number, .offset = list->carrier, .semaphore = list->line};
	return 0;
}

/* Only what Python's own probes cost is not governed: they are hit seldom. */
static uint32_t group_of(const struct probes *probes, uint32_t row)
{
	return probes->plan.row[row].place == PROBE_IN_PYTHON ?
		       PROBE_GROUP_STAYS :
		       1 + probe_bounds_leader(&probes->bounds, row);
}

static void set_alloc(struct probed_file *file, const struct pp_alloc_site *alloc,
		      uint8_t alternative, struct pp_site *site)
{
	site->alloc = *alloc;
	site->alloc.function = alternative + 1;
	/* Where memory is mapped by the C library, that is an allocator, too. */
	file->has_allocator = true;
}

/* Turns the answer into sites with numbers.  A function that cannot be entered by its return
 * address gets neither of its two legs: there would be no end. */
static int number_sites(struct probes *probes, const struct probe_sites *sites,
			struct probe_wants *list, struct probed_file *file)
{
	file->site = calloc(sites->site_count + 1, sizeof(*file->site));
	if (!file->site)
		return -ENOMEM;
	for (size_t i = 0; i < sites->site_count; i++) {
		const struct probe_site *site = &sites->site[i];
		const uint32_t row = list->of[site->wanted].row;
		const struct probe_row *probe = &probes->plan.row[row];
		const struct probe_leg *leg = &probe->leg[list->of[site->wanted].leg];
		struct probe_worker_site *made = &file->site[file->site_count];
		const struct pp_alloc_site *alloc;

		if (site->wanted >= list->row_count) {
			note_raiser(list, site);
			continue;
		}
		if (probe->leg[PROBE_LEGS - 1].is_return && !site->is_entry)
			continue;
		alloc = probe_plan_alloc(&probes->plan, row, site->alternative);
		made->number = site_numbers_take(&probes->numbers);
		if (!made->number)
			return -ENOSPC;
		probe_bounds_see_site(&probes->bounds, row, (enum probe_cost)site->cost);
		made->offset = site->offset;
		made->semaphore = site->semaphore_offset;
		made->is_return = leg->is_return;
		made->site = (struct pp_site){.does = leg->does, .probe = row};
		memcpy(made->site.arg, site->arg, sizeof(made->site.arg));
		made->group = group_of(probes, row);
		if (alloc)
			set_alloc(file, alloc, site->alternative, &made->site);
		file->site_count++;
	}
	if (!file->site_count || !list->line || !list->carrier)
		return 0;
	return raise_line(probes, list, file);
}

static int take_answer(struct probes *probes, const struct probe_sites *sites,
		       struct probe_wants *list, struct probed_file *file)
{
	for (size_t i = 0; i < list->row_count; i++) {
		const uint32_t row = list->of[i].row;

		probe_known_note(&probes->known[row], &probes->plan.row[row], &sites->found[i],
				 file->path);
	}
	return number_sites(probes, sites, list, file);
}

static void tell_full(struct probes *probes)
{
	if (!probes->is_full_told)
		log_warn("probes are missing in some programs: more than %u files or %u places of "
			 "code have them",
			 FILES_MAX, PP_SITES_MAX);
	probes->is_full_told = true;
}

static void file_free(struct probed_file *file)
{
	if (!file)
		return;
	free(file->site);
	free(file);
}
DEFINE_OWNED(struct probed_file, file)

static int add_file(struct probes *probes, const struct file *file, const char *path,
		    struct probed_file **ret_file)
{
	struct probed_file *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->id = file->id;
	snprintf(made->path, sizeof(made->path), "%s", path ? path : "?");
	HASH_ADD(hh, probes->file, id, (unsigned int)sizeof(made->id), made);
	*ret_file = made;
	return 0;
}

static void drop_file(struct probes *probes, struct probed_file *file)
{
	for (size_t i = 0; i < file->site_count; i++)
		site_numbers_give(&probes->numbers, file->site[i].number);
	HASH_DEL(probes->file, file);
	file_free(file);
}

/* Notes into what the links of a file will go; unknown where it is not open. */
static void note_inode(struct probes *probes, struct file *file, struct probed_file *made)
{
	struct statfs system;
	struct stat stat;
	int fd;

	if (file_table_descriptor(probes->sources.files, file, &fd) || fstat(fd, &stat))
		return;
	made->device = stat.st_dev;
	made->inode = stat.st_ino;
	made->is_layered = !fstatfs(fd, &system) &&
			   (uint64_t)system.f_type == (uint64_t)OVERLAYFS_SUPER_MAGIC;
}

static int add_answer(struct probes *probes, struct file *file,
		      const struct probe_sites *sites, struct probe_wants *list,
		      struct probed_file **ret_file)
{
	struct probed_file *made;
	int err = add_file(probes, file, file->path, &made);

	if (err)
		return err;
	note_inode(probes, file, made);
	err = take_answer(probes, sites, list, made);
	if (err) {
		drop_file(probes, made);
		return err;
	}
	*ret_file = made;
	return 0;
}

/* Looks into a file.  Returns 0; -EAGAIN: the child was late or has no time for it now; -errno. */
static int look_into(struct probes *probes, struct file *file, struct probed_file **ret_file)
{
	OWNED_MEM struct probe_wants *list = calloc(1, sizeof(*list));
	struct probe_sites sites = {};
	int err;

	if (!list)
		return -ENOMEM;
	probe_wants_list(&probes->plan, file, list);
	if (HASH_COUNT(probes->file) >= FILES_MAX) {
		tell_full(probes);
		return -ENOSPC;
	}
	err = file_table_probes(probes->sources.files, file, list->wanted, list->count, &sites);
	if (err == -EAGAIN || err == -ETIMEDOUT)
		return -EAGAIN;
	if (err)
		return err;
	err = add_answer(probes, file, &sites, list, ret_file);
	if (err == -ENOSPC)
		tell_full(probes);
	probe_sites_release(&sites);
	return err;
}

/* ---- attaching ---- */

static void tell_refused(struct probes *probes, const char *what, pid_t pid, const char *why)
{
	char whose[32] = "";

	if (pid)
		snprintf(whose, sizeof(whose), " for process %d", pid);
	probes->refused++;
	/* The first, the second, the fourth ... */
	if (!(probes->refused & (probes->refused - 1)))
		log_warn("probes in '%s' are not attached%s, so their events are missing: %s "
			 "(%llu such failures so far)",
			 what, whose, why, (unsigned long long)probes->refused);
}

/* *ret_job is untouched on failure. */
static int make_job_of(struct probes *probes, int fd, const struct probed_file *known, pid_t pid,
		       uint32_t *ret_job)
{
	struct probe_job job = {.file = -1, .pid = pid, .site_count = known->site_count};
	uint32_t id;
	int err;

	job.allocator = known->has_allocator ? known->id : 0;
	job.site = calloc(known->site_count, sizeof(*job.site));
	if (!job.site)
		return -ENOMEM;
	memcpy(job.site, known->site, known->site_count * sizeof(*job.site));
	job.file = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (job.file < 0) {
		err = -errno;
		free(job.site);
		return err;
	}
	job.id = id = probes->next_job++;
	snprintf(job.what, sizeof(job.what), "%s", known->path);
	err = probe_worker_attach(probes->worker, &job);
	if (!err)
		*ret_job = id;
	return err;
}

static int make_job(struct probes *probes, struct file *file, const struct probed_file *known,
		    pid_t pid, uint32_t *ret_job)
{
	int fd, err = file_table_descriptor(probes->sources.files, file, &fd);

	return err ? err : make_job_of(probes, fd, known, pid, ret_job);
}

/* As make_job(), and tells of an error. */
static int start_job(struct probes *probes, struct file *file, const struct probed_file *known,
		     pid_t pid, uint32_t *ret_job)
{
	int err = make_job(probes, file, known, pid, ret_job);

	if (err)
		tell_refused(probes, known->path, pid, strerror(-err));
	return err;
}

static bool sites_are_equal(const struct probed_file *a, const struct probed_file *b)
{
	if (a->site_count != b->site_count)
		return false;
	for (size_t i = 0; i < a->site_count; i++)
		if (a->site[i].offset != b->site[i].offset ||
		    a->site[i].is_return != b->site[i].is_return ||
		    a->site[i].site.probe != b->site[i].site.probe ||
		    a->site[i].site.does != b->site[i].site.does)
			return false;
	return true;
}

/* Returns whether links of one are hit where those of the other are: each hit would count twice. */
static bool is_same_code(const struct probed_file *a, const struct probed_file *b)
{
	return a->id == b->id || (a->inode && a->device == b->device && a->inode == b->inode &&
				  sites_are_equal(a, b));
}

static bool is_attached(const struct probes *probes, struct pp_process_id id,
			const struct probed_file *file)
{
	for (size_t i = 0; i < probes->attached_count; i++) {
		const struct attached *attached = &probes->attached[i];
		struct probed_file *other;

		if (attached->process.tgid != id.tgid ||
		    attached->process.generation != id.generation)
			continue;
		HASH_FIND(hh, probes->file, &attached->file, (unsigned int)sizeof(file->id), other);
		if (attached->file == file->id || (other && is_same_code(other, file)))
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
		if (other != file && other->job && is_same_code(other, file))
			return other;
	return NULL;
}

/* Returns whether the process is the command, which has its links in this file already. */
static bool take_prepared(struct probes *probes, const struct process *process,
			  const struct probed_file *known, uint32_t *ret_job)
{
	struct probed_file *prepared = probes->prepared;

	if (!prepared || process->id.tgid != probes->prepared_id.tgid || !known->inode ||
	    known->device != prepared->device || known->inode != prepared->inode)
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
		tell_full(probes);
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

	if (partner)
		known->job = partner->job;
	else
		(void)start_job(probes, file, known, 0, &known->job);
}

static void see_later(struct probes *probes, struct pp_process_id id)
{
	if (probes->again_count < AGAIN_MAX)
		probes->again[probes->again_count++] = id;
}

/* Returns -EAGAIN when the file could not be looked into yet. */
static int see_file(struct probes *probes, const struct process *process, uint32_t id)
{
	struct file *file = file_table_find(probes->sources.files, id);
	struct probed_file *known = NULL;
	int err;

	if (!file)
		return 0;
	HASH_FIND(hh, probes->file, &id, (unsigned int)sizeof(id), known);
	if (!known) {
		if (!probe_wants_any(&probes->plan, file))
			return 0;
		err = look_into(probes, file, &known);
		if (err)
			return err;
	}
	if (!known->site_count)
		return 0;
	if (probes->sources.is_filtered || known->is_layered)
		attach_process(probes, process, file, known);
	else if (!known->job)
		attach_everywhere(probes, file, known);
	return 0;
}

void probes_see(struct probes *probes, const struct process *process)
{
	uint32_t last = 0;
	bool is_late = false;

	if (!probes || process->exit_ns)
		return;
	for (size_t i = 0; i < process->mapping_count; i++) {
		const uint32_t id = process->mapping[i].file;

		if (id < PP_FILE_FIRST || id == last)
			continue;
		last = id;
		is_late |= see_file(probes, process, id) == -EAGAIN;
	}
	if (is_late)
		see_later(probes, process->id);
}

void probes_forget(struct probes *probes, struct pp_process_id id)
{
	size_t kept = 0;

	if (!probes)
		return;
	for (size_t i = 0; i < probes->attached_count; i++) {
		const struct attached *one = &probes->attached[i];

		if (one->process.tgid == id.tgid && one->process.generation == id.generation)
			probe_worker_detach(probes->worker, one->job);
		else
			probes->attached[kept++] = *one;
	}
	probes->attached_count = kept;
	probe_bounds_drop_process(&probes->bounds, (pid_t)id.tgid);
}

/* ---- a command, before it begins ---- */

/* Finds the file that a command executes, as execvp(3) does.  Returns its descriptor; -ENOENT. */
static int open_command(const char *command, char *ret_path, size_t path_size)
{
	const char *const all = getenv("PATH");
	const char *from = all ? all : "/usr/bin:/bin";
	int fd = -1;

	if (strchr(command, '/')) {
		snprintf(ret_path, path_size, "%s", command);
		return open(command, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	while (fd < 0 && *from) {
		const size_t size = strcspn(from, ":");

		snprintf(ret_path, path_size, "%.*s/%s", (int)size, from, command);
		if (!access(ret_path, X_OK))
			fd = open(ret_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		from += size + (from[size] == ':');
	}
	return fd;
}

static int prepare_file(struct probes *probes, int fd, const char *path, pid_t pid)
{
	const struct process *process =
		process_table_find_tgid(probes->sources.processes, (uint32_t)pid);
	OWNED_MEM struct probe_wants *list = calloc(1, sizeof(*list));
	OWNED(file) struct probed_file *made = calloc(1, sizeof(*made));
	struct probe_sites sites = {};
	struct stat stat;
	int err;

	if (!list || !made)
		return -ENOMEM;
	if (!process)
		return -ESRCH;
	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode))
		return -ENOENT;
	snprintf(made->path, sizeof(made->path), "%.*s", (int)sizeof(made->path) - 1, path);
	made->device = stat.st_dev;
	made->inode = stat.st_ino;
	probe_wants_list_path(&probes->plan, path, list);
	if (!list->count)
		return -ENOENT;
	err = probe_wants_ask(probes->sources.foreign, fd, list, &sites);
	if (!err)
		err = take_answer(probes, &sites, list, made);
	probe_sites_release(&sites);
	if (!err && made->site_count)
		err = make_job_of(probes, fd, made, pid, &made->job);
	if (!err && made->site_count) {
		probes->prepared_id = process->id;
		probes->prepared = TAKE(made);
	}
	return err;
}

void probes_prepare(struct probes *probes, pid_t pid, const char *command)
{
	char link[4096], path[4096];
	OWNED_FD int fd = probes ? open_command(command, link, sizeof(link)) : -1;
	int err;

	if (fd < 0 || !realpath(link, path))
		return;
	/* Where that fails, the process gets its links as others do. */
	err = prepare_file(probes, fd, path, pid);
	if (err)
		log_debug("probes of '%s' are not attached before it begins: %s", path,
			  strerror(-err));
}

static int attach_tracepoint(struct probes *probes, uint32_t row)
{
	const struct probe_row *probe = &probes->plan.row[row];
	struct probe_job job = {.file = -1, .site_count = 1, .site = calloc(1, sizeof(*job.site))};

	if (!job.site)
		return -ENOMEM;
	job.site->number = site_numbers_take(&probes->numbers);
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

int probes_check(struct probes *probes)
{
	int err = 0;

	for (uint32_t row = 0; probes && row < probes->plan.count && !err; row++) {
		if (probes->plan.row[row].place == PROBE_IN_BINARY)
			err = probe_check_binary(&probes->plan, row, probes->sources.foreign,
						 &probes->known[row]);
		else if (probes->plan.row[row].place == PROBE_IN_KERNEL)
			err = check_tracepoint(probes, row);
	}
	return err;
}

/* ---- results ---- */

static void on_result(struct probes *probes, const struct probe_result *result)
{
	if (result->err && result->err != -ESRCH)
		tell_refused(probes, result->what, result->pid, result->why);
}

bool probes_are_ready(struct probes *probes)
{
	return !probes || (!probes->again_count && probe_worker_is_idle(probes->worker));
}

static void see_again(struct probes *probes)
{
	const size_t count = probes->again_count;
	struct pp_process_id again[AGAIN_MAX];

	memcpy(again, probes->again, count * sizeof(*again));
	probes->again_count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct process *process =
			process_table_find(probes->sources.processes, again[i]);

		if (process)
			probes_see(probes, process);
	}
}

/* Takes off what processes have of a file. */
static void detach_file(struct probes *probes, const struct probed_file *file)
{
	size_t kept = 0;

	if (file->job && !find_partner(probes, file))
		probe_worker_detach(probes->worker, file->job);
	for (size_t i = 0; i < probes->attached_count; i++) {
		const struct attached *one = &probes->attached[i];

		if (one->file == file->id)
			probe_worker_detach(probes->worker, one->job);
		else
			probes->attached[kept++] = *one;
	}
	probes->attached_count = kept;
}

/* A link would keep the file's file system from being unmounted. */
static void drop_gone(struct probes *probes)
{
	struct probed_file *file, *next;

	HASH_ITER (hh, probes->file, file, next) {
		if (file_table_find(probes->sources.files, file->id))
			continue;
		detach_file(probes, file);
		drop_file(probes, file);
	}
}

void probes_tick(struct probes *probes)
{
	struct probe_result result;

	if (!probes)
		return;
	while (probe_worker_result(probes->worker, &result))
		on_result(probes, &result);
	see_again(probes);
	drop_gone(probes);
	probe_bounds_look(&probes->bounds, mono_ns());
}

/* ---- the whole ---- */

int probes_new(const struct probes_sources *sources, struct probes **ret_probes)
{
	OWNED(probes) struct probes *probes = calloc(1, sizeof(*probes));
	int err;

	if (!probes)
		return -ENOMEM;
	probes->sources = *sources;
	probes->next_job = 1;
	if (sources->options->events_are_default && !probe_links_can_share()) {
		log_debug("gc and import are left out: on kernels before 6.6 they take "
			  "CAP_SYS_ADMIN, which pyprofd keeps only for who asks for them, as "
			  "--events cpu,gc,import");
		*ret_probes = NULL;
		return 0;
	}
	err = probe_plan_make(sources->options, &probes->plan);
	if (err || !probes->plan.count) {
		*ret_probes = err ? *ret_probes : NULL;
		return err;
	}
	probes->known = calloc(probes->plan.count, sizeof(*probes->known));
	if (!probes->known)
		return -ENOMEM;
	err = probe_worker_new(sources->kernel,
			       sources->options->events & PP_CAPTURE_ALLOC ? BLOCKS_MAX : 0,
			       &probes->worker);
	if (err)
		return err;
	probe_bounds_init(&probes->bounds, sources->options, &probes->plan, probes->worker);
	*ret_probes = TAKE(probes);
	return 0;
}

void probes_free(struct probes *probes)
{
	struct probed_file *file, *next;

	if (!probes)
		return;
	probe_worker_free(probes->worker);
	file_free(probes->prepared);
	HASH_ITER (hh, probes->file, file, next)
		drop_file(probes, file);
	probe_plan_release(&probes->plan);
	free(probes->attached);
	free(probes->known);
	free(probes);
}

int probes_blocks(struct probes *probes)
{
	if (!probes || probes->plan.alloc_row >= probes->plan.count)
		return -ENOENT;
	return probe_worker_blocks(probes->worker);
}

int probes_debts(struct probes *probes)
{
	if (!probes || probes->plan.alloc_row >= probes->plan.count)
		return -ENOENT;
	return probe_worker_debts(probes->worker);
}

int probes_describe(struct probes *probes, struct profiles *profiles)
{
	return probes ? probe_bounds_describe(&probes->bounds, profiles, mono_ns()) : 0;
}

void probes_get_now(const struct probes *probes, struct probe_bounds_now *ret_now)
{
	*ret_now = (struct probe_bounds_now){};
	if (probes)
		probe_bounds_get_now(&probes->bounds, ret_now);
}

struct probe_plan probes_plan(const struct probes *probes)
{
	return probes ? probes->plan : (struct probe_plan){};
}
