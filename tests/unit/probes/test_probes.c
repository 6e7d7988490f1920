/* SPDX-License-Identifier: BSD-2-Clause */
/* Files, the child that finds places, and the thread that attaches are stand-ins that write down
 * what they are asked for. */
#include "probes/probes.h"

#include <cmocka.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <pyprofd/config.h>
#include <pyprofd/kinds.h>
#include <pyprofd/sample.h>

#include "attach/cuda_side.h"
#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "attach/tracepoints.h"
#include "base/array.h"
#include "base/budget.h"
#include "base/intern.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/text_table.h"
#include "files/client.h"
#include "files/opening.h"
#include "options/options.h"
#include "probes/probe_bounds.h"
#include "probes/probe_worker.h"
#include "profile/profile.h"
#include "windows/source.h"
#include "windows/summary.h"

#define FILES 4U

extern const struct source probes_source;

struct process *process_table_find_tgid(const struct process_table *table, uint32_t tgid)
{
	(void)table, (void)tgid;
	return NULL;
}

static bool can_share = true;
static bool worker_is_left;
bool probe_links_can_share(void)
{
	return can_share;
}

static struct pp_user_share shares[PP_USER_SHARE_ROWS];
struct kernel_side_parts kernel_side_parts(const struct kernel_side *side)
{
	(void)side;
	return (struct kernel_side_parts){.user_shares.row = shares};
}

static char calls[16384];
static struct file files[FILES];
static int error_of_child, error_of_tracepoint;
static uint32_t sites_in_file; /* of each wanted probe */
static uint32_t refusals;
static bool is_entry;
static struct probe_result result; /* the next one */
static bool has_result;
static struct process known;
static struct probes *probes;
static struct options options;
static struct probe_spec specs[4];

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	size_t used = strlen(calls);
	va_list list;

	va_start(list, format);
	vsnprintf(calls + used, sizeof(calls) - used, format, list);
	va_end(list);
}

/* ---- stand-ins ---- */

int probe_worker_new(const struct kernel_side *kernel, uint32_t blocks_max,
		     struct probe_worker **ret_worker)
{
	(void)kernel, (void)blocks_max;
	*ret_worker = (struct probe_worker *)calls;
	return 0;
}

static bool is_loaded; /* CUDA's object */
static struct cuda_side cuda;

const struct cuda_side *probe_worker_cuda(struct probe_worker *worker)
{
	(void)worker;
	return is_loaded ? &cuda : NULL;
}

int cuda_side_add_whole(const struct cuda_side *side, struct pp_process_id id)
{
	(void)side;
	note("whole %u; ", id.tgid);
	return 0;
}

/* What probes cost is none of this test's business. */
int probe_bounds_init(struct probe_bounds *bounds, const struct options *of,
		      const struct probe_plan *plan, struct probe_worker *worker,
		      const struct probe_bounds_users *users)
{
	(void)bounds, (void)of, (void)plan, (void)worker, (void)users;
	return 0;
}

void probe_bounds_release(struct probe_bounds *bounds)
{
	(void)bounds;
}

uint32_t probe_bounds_leader(const struct probe_bounds *bounds, uint32_t probe)
{
	(void)bounds;
	return probe;
}

void probe_bounds_see_site(struct probe_bounds *bounds, uint32_t probe, enum probe_cost cost)
{
	(void)bounds, (void)probe, (void)cost;
}

void probe_bounds_add_process(struct probe_bounds *bounds, pid_t pid)
{
	(void)bounds, (void)pid;
}

void probe_bounds_drop_process(struct probe_bounds *bounds, pid_t pid)
{
	(void)bounds, (void)pid;
}

void probe_bounds_look(struct probe_bounds *bounds, uint64_t now_ns)
{
	(void)bounds, (void)now_ns;
}

int probe_bounds_describe(struct probe_bounds *bounds, struct profiles *profiles, uint64_t now_ns)
{
	(void)bounds, (void)profiles, (void)now_ns;
	return -ENOMEM;
}

bool probe_worker_free(struct probe_worker *worker)
{
	(void)worker;
	return !worker_is_left;
}

int probe_worker_attach(struct probe_worker *worker, struct probe_job *job)
{
	(void)worker;
	note("attach %u pid %d", job->id, (int)job->pid);
	if (job->tracepoint[0])
		note(" %s", job->tracepoint);
	for (size_t i = 0; i < job->site_count; i++)
		note(" %u:%llx%s", job->site[i].number, (unsigned long long)job->site[i].offset,
		     job->site[i].is_return ? "r" : "");
	note("; ");
	if (job->file >= 0)
		close(job->file);
	free(job->site);
	return 0;
}

void probe_worker_detach(struct probe_worker *worker, uint32_t id)
{
	(void)worker;
	note("detach %u; ", id);
}

bool probe_worker_result(struct probe_worker *worker, struct probe_result *ret_result)
{
	const bool had = has_result;

	(void)worker;
	*ret_result = result;
	has_result = false;
	return had;
}

static const char *late; /* what the thread has worked at for too long */
bool probe_worker_is_late(struct probe_worker *worker, char ret_what[PROBE_WORKER_WHAT_BYTES])
{
	(void)worker;
	if (late)
		snprintf(ret_what, PROBE_WORKER_WHAT_BYTES, "%s", late);
	return late;
}

bool probe_worker_tell_holder(struct probe_worker *worker, uint32_t *ret_tgid)
{
	(void)worker, (void)ret_tgid;
	return false;
}

bool probe_worker_tell_put_off(struct probe_worker *worker, uint32_t *ret_uid)
{
	(void)worker, (void)ret_uid;
	return false;
}

bool probe_worker_is_idle(struct probe_worker *worker)
{
	(void)worker;
	return true;
}

static uint32_t uid_of_process;
uint32_t process_user(const struct process *process)
{
	(void)process;
	return uid_of_process;
}

struct file *file_table_find(const struct file_table *table, uint32_t id)
{
	(void)table;
	return id >= PP_FILE_FIRST && id < PP_FILE_FIRST + FILES && files[id - PP_FILE_FIRST].id
		       ? &files[id - PP_FILE_FIRST]
		       : NULL;
}

static int answer(const struct probe_wanted *wanted, size_t count, struct probe_sites *ret_sites)
{
	*ret_sites = (struct probe_sites){
		.site = calloc(count * sites_in_file + 1, sizeof(*ret_sites->site))};
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < sites_in_file; k++)
			ret_sites->site[ret_sites->site_count++] = (struct probe_site){
				.offset = 0x100 * (i + 1) + k, .wanted = i, .is_entry = is_entry};
		ret_sites->found[i].sites = sites_in_file;
		ret_sites->found[i].refusals = refusals;
		note("%s%s", i ? "," : "look ", wanted[i].name);
	}
	note("; ");
	return 0;
}

static int descriptor_error;

int file_table_probes(struct file_table *table, struct file *file,
		      const struct probe_wanted *wanted, size_t count,
		      struct probe_sites *ret_sites)
{
	(void)table, (void)file;
	if (error_of_child)
		return error_of_child;
	return answer(wanted, count, ret_sites);
}

int file_table_descriptor(struct file_table *table, struct file *file, int *ret_fd)
{
	(void)table;
	if (descriptor_error)
		return descriptor_error;
	*ret_fd = dup(file->opened.fd);
	return *ret_fd < 0 ? -ENOENT : 0;
}

struct opener *foreign_opener(const struct foreign *foreign)
{
	(void)foreign;
	return NULL;
}

bool opener_await(struct opener *opener)
{
	return !opener;
}

int opener_open_path(struct opener *opener, const char *wanted, struct opened_file *ret_opened,
		     struct opener_file *ret_file)
{
	(void)opener;
	if (access(wanted, R_OK))
		return -errno;
	memset(ret_opened, 0, sizeof(*ret_opened));
	snprintf(ret_opened->path, sizeof(ret_opened->path), "%s", wanted);
	ret_opened->is_executable = 1;
	*ret_file = (struct opener_file){.fd = 77};
	return 0;
}

int opener_give(struct opener *opener, const struct opener_file *file, pid_t tid, int *ret_fd)
{
	(void)opener, (void)file, (void)tid;
	*ret_fd = dup(STDERR_FILENO);
	return 0;
}

void opener_close(struct opener *opener, struct opener_file *file)
{
	(void)opener;
	file->fd = -1;
}

int foreign_probes(struct foreign *foreign, const struct foreign_file *file,
		   const struct probe_wanted *wanted, size_t count, struct probe_sites *ret_sites)
{
	struct foreign_source source;

	(void)foreign;
	assert_int_equal(file->find(file->context, &source), 0);
	return answer(wanted, count, ret_sites);
}

void foreign_close(struct foreign *foreign, uint32_t number)
{
	(void)foreign, (void)number;
}

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table;
	return id.tgid == known.id.tgid ? &known : NULL;
}

int tracepoint_check(const char *group, const char *name, char *near, size_t near_size, char *why,
		     size_t why_size)
{
	(void)group, (void)name, (void)near, (void)near_size, (void)why, (void)why_size;
	return error_of_tracepoint;
}

const char *probe_refusal_text(enum probe_refusal refusal)
{
	(void)refusal;
	return "it cannot be";
}

static bool has_texts;
const char *text_table_find(const struct text_table *table, uint64_t id)
{
	(void)table;
	return has_texts && id == 77 ? "os.path" : NULL;
}

const struct budget_now *budget_now(const struct budget *budget)
{
	static const struct budget_now now = {.cost_ppm = 3, .least_ppm = 4};

	assert_null(budget);
	return &now;
}

/* ---- */

static int open_source(const struct services *services)
{
	void *opened = NULL;
	const int err = source_new(&probes_source, services, &opened);

	probes = opened;
	return err;
}

static void open_probes(bool is_filtered, const char *const *names, size_t count)
{
	static struct services sources;
	sources = (struct services){.options = &options, .is_filtered = is_filtered};
	char why[PROBE_SPEC_WHY_BYTES];

	options =
		(struct options){.events = PP_CAPTURE_PROBE, .probe = specs, .probe_count = count};
	for (size_t i = 0; i < count; i++)
		assert_int_equal(probe_spec_parse(names[i], &specs[i], why), 0);
	assert_int_equal(open_source(&sources), 0);
}

static void open_one(bool is_filtered, const char *name)
{
	open_probes(is_filtered, &name, 1);
}

static int setup(void **state)
{
	static char path[] = "/lib/x.so";

	(void)state;
	calls[0] = '\0';
	error_of_child = error_of_tracepoint = 0;
	sites_in_file = 1;
	refusals = 0;
	is_entry = true;
	has_result = false;
	late = NULL;
	uid_of_process = descriptor_error = 0;
	can_share = true;
	for (uint32_t i = 0; i < FILES; i++)
		files[i] = (struct file){.id = PP_FILE_FIRST + i,
					 .path = path,
					 .identity.key.inode = 100 + i,
					 .opened.fd = memfd_create("x", MFD_CLOEXEC)};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (probes)
		source_free(&probes_source, probes);
	for (size_t i = 0; i < options.probe_count; i++)
		probe_spec_release(&specs[i]);
	for (uint32_t i = 0; i < FILES; i++)
		close(files[i].opened.fd);
	return 0;
}

static void see(uint32_t tgid, uint32_t file)
{
	static struct mapping mapping[2];

	mapping[0] = (struct mapping){.file = PP_FILE_ANONYMOUS};
	mapping[1] = (struct mapping){.file = PP_FILE_FIRST + file};
	known = (struct process){
		.id = {.tgid = tgid, .generation = 1}, .mapping = mapping, .mapping_count = 2};
	probes_source.see_process(probes, &known, false);
}

static const char *called(void)
{
	static char text[sizeof(calls)];

	memcpy(text, calls, sizeof(text));
	calls[0] = '\0';
	return text;
}

static void run_without_a_filter__has_one_link_a_file(void **state)
{
	(void)state;
	open_one(false, "uprobe:/lib/x.so:f");
	see(7, 0);
	assert_string_equal(called(), "look f; attach 1 pid 0 1:100; ");
	see(7, 0);
	see(8, 0);
	assert_string_equal(called(), "");
	probes_source.forget_process(probes, (struct pp_process_id){.tgid = 7, .generation = 1});
	assert_string_equal(called(), "");
}

static void run_with_a_filter__has_links_a_process(void **state)
{
	(void)state;
	open_one(true, "uprobe:/lib/x.so:f");
	see(7, 0);
	see(8, 0);
	see(8, 0);
	assert_string_equal(called(), "look f; attach 1 pid 7 1:100; attach 2 pid 8 1:100; ");
	probes_source.forget_process(probes, (struct pp_process_id){.tgid = 7, .generation = 1});
	assert_string_equal(called(), "detach 1; ");
}

static void returns__have_two_places(void **state)
{
	(void)state;
	open_one(false, "uprobe:/lib/x.so:f+ret");
	see(7, 0);
	assert_string_equal(called(), "look f,f; attach 1 pid 0 1:100 2:200r; ");
}

/* Where something was pushed already, no return can be taken: neither leg is attached. */
static void returns__of_what_cannot_be_entered_are_left_out(void **state)
{
	(void)state;
	is_entry = false;
	open_one(false, "uprobe:/lib/x.so:f+ret");
	see(7, 0);
	assert_string_equal(called(), "look f,f; ");
}

/* By another root one inode has another path, so it is another file; two links would count each hit
 * twice. */
/* A file for which a program answers, which may never do so, or which does not now. */
static void file_of_strangers__gets_no_link(void **state)
{
	(void)state;
	open_one(true, "uprobe:x.so:f");
	descriptor_error = -EREMOTE;
	see(7, 0);
	see(8, 0);
	assert_string_equal(called(), "look f; ");
	descriptor_error = -ETIMEDOUT;
	see(7, 1);
	descriptor_error = 0;
	see(7, 1);
	assert_string_equal(called(), "look f; look f; attach 1 pid 7 1:100; ");
}

static void files_of_one_inode__share_a_link(void **state)
{
	(void)state;
	files[1].identity = files[0].identity;
	open_one(false, "uprobe:x.so:f");
	see(7, 0);
	see(8, 1);
	assert_string_equal(called(), "look f; attach 1 pid 0 1:100; look f; ");
	/* The link stays as long as either has it. */
	files[0].id = 0;
	probes_source.tick(probes, 0);
	assert_string_equal(called(), "");
	files[1].id = 0;
	probes_source.tick(probes, 0);
	assert_string_equal(called(), "detach 1; ");
}

static void files_of_one_inode__are_attached_once_a_process(void **state)
{
	(void)state;
	files[1].identity = files[0].identity;
	open_one(true, "uprobe:x.so:f");
	see(7, 0);
	see(7, 1);
	see(8, 1);
	assert_string_equal(called(),
			    "look f; attach 1 pid 7 1:100; look f; attach 2 pid 8 2:100; ");
}

static void open_cuda(bool is_filtered)
{
	static struct services sources;
	sources = (struct services){.options = &options, .is_filtered = is_filtered};
	static char driver[] = "/lib/libcuda.so.1", runtime[] = "/lib/libcudart.so.12";

	options = (struct options){.events = PP_CAPTURE_CUDA};
	assert_int_equal(open_source(&sources), 0);
	files[1].path = driver;
	files[2].path = runtime;
	sites_in_file = 0;
}

/* Sees a process that maps two files. */
static void see_both(uint32_t tgid, uint32_t first, uint32_t second)
{
	static struct mapping mapping[2];

	mapping[0].file = PP_FILE_FIRST + first;
	mapping[1].file = PP_FILE_FIRST + second;
	known = (struct process){
		.id = {.tgid = tgid, .generation = 1}, .mapping = mapping, .mapping_count = 2};
	probes_source.see_process(probes, &known, false);
}

static bool was_called(const char *what)
{
	return strstr(calls, what);
}

/* A call of the runtime is one of the driver, too. */
static void runtime__is_probed_where_there_is_no_driver(void **state)
{
	(void)state;
	open_cuda(false);
	sites_in_file = 1;
	see(7, 0);
	assert_string_equal(called(), "");
	see(7, 2);
	assert_true(was_called("look cudaLaunchKernel"));
	assert_true(was_called("attach 1 pid 7"));
	called();
	see(8, 2);
	assert_true(was_called("attach 2 pid 8"));
	called();
	see_both(7, 2, 1);
	assert_true(was_called("look cuLaunchKernel"));
	assert_true(was_called("attach 3 pid 0"));
	assert_true(was_called("detach 1; "));
	called();
	see_both(9, 1, 2);
	see_both(7, 1, 2);
	assert_string_equal(called(), "");
}

/* Before Linux 6.6 few functions are probed, and what is left out is told once. */
static void cudas_functions__that_are_left_out_are_told(void **state)
{
	FILE *file = tmpfile();
	const int before = dup(STDERR_FILENO);
	char text[8192] = "";
	size_t size;

	(void)state;
	can_share = false;
	open_cuda(false);
	sites_in_file = 1;
	assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
	see(7, 2);
	see(8, 2);
	see(9, 1);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(file);
	size = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	assert_non_null(strstr(text, "before Linux 6.6 only launches, copies"));
	/* A line for each library. */
	assert_int_equal(strrchr(text, '\n') - text + 1, size);
	*strchr(text, '\n') = ' ';
	assert_int_equal(strchr(text, '\n') - text + 1, size);
	assert_true(was_called("look cudaLaunchKernel cudaLaunchKernelExC cudaGraphLaunch "
			       "cudaMemcpyAsync"));
	assert_false(was_called("cudaMemset"));
	assert_false(was_called("cudaEventRecord"));
}

/* The driver's file may be there and have nothing. */
static void runtime__is_probed_where_the_driver_has_no_functions(void **state)
{
	(void)state;
	open_cuda(true);
	see(7, 1);
	called();
	sites_in_file = 1;
	see_both(7, 1, 2);
	assert_true(was_called("attach 1 pid 7"));
	called();
	probes_source.forget_process(probes, (struct pp_process_id){.tgid = 7, .generation = 1});
	assert_string_equal(called(), "detach 1; ");
}

/* All calls are seen of a process that began when the driver had its links. */
static void process__that_begins_behind_the_links_is_whole(void **state)
{
	static struct mapping mapping = {.file = PP_FILE_FIRST + 1};

	(void)state;
	open_cuda(false);
	sites_in_file = 1;
	see(7, 1);
	assert_true(was_called("attach 1 pid 0"));
	called();
	known = (struct process){.id = {.tgid = 8, .generation = 1},
				 .start_ns = UINT64_MAX,
				 .mapping = &mapping,
				 .mapping_count = 1};
	probes_source.see_process(probes, &known, false);
	assert_string_equal(called(), ""); /* they are not there yet */
	is_loaded = true;
	result = (struct probe_result){.id = 1};
	has_result = true;
	probes_source.tick(probes, 0);
	known.start_ns = 1;
	probes_source.see_process(probes, &known, false);
	assert_string_equal(called(), "");
	/* --delay: calls are not seen yet. */
	known.start_ns = UINT64_MAX;
	probes_source.see_process(probes, &known, false);
	assert_string_equal(called(), "");
	assert_int_equal(probes_source.begin(probes, UINT64_MAX - 1), 0);
	known.start_ns = UINT64_MAX - 1;
	probes_source.see_process(probes, &known, false);
	assert_string_equal(called(), "");
	known.start_ns = UINT64_MAX;
	probes_source.see_process(probes, &known, false);
	assert_string_equal(called(), "whole 8; ");
	/* Launches have not been probed all the time. */
	cuda.seen_since_ns = UINT64_MAX;
	probes_source.see_process(probes, &known, false);
	assert_string_equal(called(), "");
	cuda.seen_since_ns = 0;
	is_loaded = false;
}

static void child_that_is_late__is_asked_again(void **state)
{
	(void)state;
	open_one(false, "uprobe:/lib/x.so:f");
	error_of_child = -EAGAIN;
	see(7, 0);
	assert_false(probes_source.is_ready(probes));
	error_of_child = 0;
	probes_source.tick(probes, 0);
	assert_string_equal(called(), "look f; attach 1 pid 0 1:100; ");
	assert_true(probes_source.is_ready(probes));
}

static void other_files__are_not_looked_into(void **state)
{
	(void)state;
	open_one(false, "uprobe:/lib/y.so:f");
	see(7, 0);
	assert_string_equal(called(), "");
}

static void probes_check__what_is_named_must_be_there(void **state)
{
	(void)state;
	open_one(false, "uprobe:/lib/x.so:f");
	/* Neither a process has it, nor this machine. */
	assert_int_equal(probes_source.check(probes), -ENXIO);
	see(7, 0);
	assert_int_equal(probes_source.check(probes), 0);
}

static void probes_check__refused_and_missing_names(void **state)
{
	(void)state;
	sites_in_file = 0;
	open_one(false, "uprobe:/lib/x.so:f");
	see(7, 0);
	assert_int_equal(probes_source.check(probes), -ENXIO);
	refusals = 1U << PROBE_REFUSED_INDIRECT;
	assert_int_equal(probes_source.check(probes), -ENXIO);
}

/* A file that only this machine has: it is looked into, nothing is attached. */
static void probes_check__looks_on_this_machine(void **state)
{
	(void)state;
	open_one(false, "uprobe:/proc/self/exe:f");
	assert_int_equal(probes_source.check(probes), 0);
	assert_string_equal(called(), "look f; ");
}

static void tracepoints__are_attached_by_the_check(void **state)
{
	(void)state;
	open_one(false, "tracepoint:sched:sched_switch");
	assert_int_equal(probes_source.check(probes), 0);
	assert_string_equal(called(), "attach 1 pid 0 sched_switch 1:0; ");
	error_of_tracepoint = -ENOENT;
	assert_int_equal(probes_source.check(probes), -ENXIO);
	error_of_tracepoint = -EPERM;
	assert_int_equal(probes_source.check(probes), -ENXIO);
}

static void run_without_probes__has_none(void **state)
{
	static struct services sources;
	sources = (struct services){.options = &options};

	(void)state;
	options = (struct options){.events = PP_CAPTURE_CPU};
	assert_int_equal(open_source(&sources), 0);
	assert_null(probes);
	assert_int_equal(probes_plan(probes).count, 0);
}

static unsigned int count_of(const char *text, char letter)
{
	unsigned int count = 0;

	for (; *text; text++)
		count += *text == letter;
	return count;
}

/* Each site of a file is a write to each of its mappings. */
static void interpreters__have_a_few_sites_of_a_probe(void **state)
{
	static struct services sources;
	sources = (struct services){.options = &options};
	static struct python_info info;

	(void)state;
	options = (struct options){.events = PP_CAPTURE_GC};
	assert_int_equal(open_source(&sources), 0);
	files[0].python = &info;
	sites_in_file = 100;
	see(7, 0);
	assert_int_equal(count_of(called(), ':'), 2 * 4);
	assert_int_equal(probes_refused(probes), 2);
}

static void sites__a_user_leaves_as_many_as_he_has(void **state)
{
	(void)state;
	open_one(false, "uprobe:/lib/x.so:f");
	sites_in_file = 1024;
	uid_of_process = 1000;
	see(7, 0);
	assert_non_null(strstr(called(), "attach 1"));
	see(7, 1);
	assert_string_equal(called(), "look f; ");
	assert_int_equal(probes_refused(probes), 1);
	see(8, 1);
	assert_string_equal(called(), "");
	uid_of_process = 1001;
	see(9, 1);
	assert_non_null(strstr(called(), "attach 2"));
	assert_int_equal(probes_refused(probes), 1);
}

/* Else a program whose probed calls end by longjmp() would have none any more one day. */
static void tick__forgives_some_of_the_calls_that_users_have_open(void **state)
{
	(void)state;
	shares[0].calls = PP_PROBE_CALLS_USER;
	shares[7].calls = PP_PROBE_CALLS_FADE - 1;
	shares[8].calls = -3; /* ends of calls that were forgiven */
	open_one(false, "uprobe:x.so:f");
	probes_source.tick(probes, 0);
	assert_int_equal(shares[0].calls, PP_PROBE_CALLS_USER - 16);
	assert_int_equal(shares[7].calls, PP_PROBE_CALLS_FADE - 1);
	assert_int_equal(shares[8].calls, -3);
}

static void free__tells_when_the_worker_is_left(void **state)
{
	(void)state;
	open_one(false, "uprobe:x.so:f");
	worker_is_left = true;
	assert_false(source_free(&probes_source, probes));
	probes = NULL;
	worker_is_left = false;
}

/* The label as "key=value"; "": there is none. */
static const char *label_of(enum pp_count_kind kind, uint64_t detail)
{
	static char text[128];
	OWNED(intern) struct intern *strings = NULL;
	const struct pp_count_key key = {.kind = kind, .detail = detail};
	struct profile_sample sample = {};
	const struct profile_label *label = sample.label;

	assert_true(probes_source.labelled_kinds & 1U << kind);
	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(probes_source.label(probes, &key, strings, &sample), 0);
	if (!sample.label_count)
		return "";
	assert_int_equal(sample.label_count, 1);
	if (label->is_number)
		snprintf(text, sizeof(text), "%s=%lld", label->key, (long long)label->number);
	else
		snprintf(text, sizeof(text), "%s=%s", label->key,
			 intern_get(strings, label->string, NULL));
	return text;
}

static void label__of_a_collection_is_its_generation(void **state)
{
	(void)state;
	open_one(false, "uprobe:/lib/x.so:f");
	assert_string_equal(label_of(PP_KIND_GC, 0), "generation=0");
	assert_string_equal(label_of(PP_KIND_GC, 2), "generation=2");
}

static void label__of_an_import_is_the_module(void **state)
{
	(void)state;
	open_one(false, "uprobe:/lib/x.so:f");
	has_texts = false;
	assert_string_equal(label_of(PP_KIND_IMPORT, 77), "module=[unknown]");
	has_texts = true;
	assert_string_equal(label_of(PP_KIND_IMPORT, 77), "module=os.path");
	assert_string_equal(label_of(PP_KIND_IMPORT, 78), "module=[unknown]");
}

static void label__of_a_probe_is_its_name(void **state)
{
	(void)state;
	open_probes(false, (const char *const[]){"uprobe:/lib/x.so:f", "uprobe:/lib/x.so:f+ret"},
		    2);
	assert_string_equal(label_of(PP_KIND_PROBE, 1), "probe=uprobe:/lib/x.so:f+ret");
	assert_string_equal(label_of(PP_KIND_PROBE, 2), "");
}

/* What the probes cost is in the profiles, and in the line at the end. */
static void costs__are_told(void **state)
{
	struct summary summary = {};

	(void)state;
	open_one(false, "uprobe:/lib/x.so:f");
	assert_int_equal(probes_source.describe(probes, NULL), -ENOMEM);
	probes_source.summarize(probes, &summary);
	assert_int_equal(summary.probes_cost_ppm, 3);
	assert_int_equal(summary.probes_on_ppm, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(run_without_a_filter__has_one_link_a_file),
		TEST(run_with_a_filter__has_links_a_process),
		TEST(returns__have_two_places),
		TEST(free__tells_when_the_worker_is_left),
		TEST(returns__of_what_cannot_be_entered_are_left_out),
		TEST(file_of_strangers__gets_no_link),
		TEST(files_of_one_inode__share_a_link),
		TEST(files_of_one_inode__are_attached_once_a_process),
		TEST(runtime__is_probed_where_there_is_no_driver),
		TEST(cudas_functions__that_are_left_out_are_told),
		TEST(runtime__is_probed_where_the_driver_has_no_functions),
		TEST(process__that_begins_behind_the_links_is_whole),
		TEST(child_that_is_late__is_asked_again),
		TEST(other_files__are_not_looked_into),
		TEST(probes_check__what_is_named_must_be_there),
		TEST(probes_check__refused_and_missing_names),
		TEST(probes_check__looks_on_this_machine),
		TEST(tracepoints__are_attached_by_the_check),
		TEST(run_without_probes__has_none),
		TEST(label__of_a_collection_is_its_generation),
		TEST(label__of_an_import_is_the_module),
		TEST(label__of_a_probe_is_its_name),
		TEST(costs__are_told),
		TEST(interpreters__have_a_few_sites_of_a_probe),
		TEST(sites__a_user_leaves_as_many_as_he_has),
		TEST(tick__forgives_some_of_the_calls_that_users_have_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
