/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/doctor_pythons.h"

#include <errno.h>
#include <string.h>

#include "attach/file_facts.h"
#include "attach/file_table.h"
#include "base/array.h"
#include "base/utf8.h"
#include "discover/file_open.h"
#include "discover/mapping_set.h"
#include "discover/proc_maps.h"
#include "discover/proc_scan.h"
#include "doctor/doctor_probes.h"
#include "files/client.h"
#include "peek/client.h"
#include "python/python_process.h"

#define NAME "python"
/* More are not looked at, and that is said. */
#define PROCESSES_MAX 4096U
#define FILES_MAX 4096U
#define SELF_TESTS 3U

/* A file that some process maps. */
struct mapped_file {
	struct file_key key;
	struct file file; /* what the child says of it */
	int fd;		  /* while the child looks at it */
	uint32_t processes;
	bool is_tested;			  /* the self-test of one process has ended */
	const char *wrong;		  /* what it says; NULL: nothing */
	struct doctor_file_probes probes; /* of an interpreter */
};

struct search {
	struct foreign *foreign;
	struct mapped_file *file; /* owned */
	size_t count, capacity;
	uint32_t processes, unreadable;
	bool is_cut;   /* there are more than are looked at */
	uint32_t tgid; /* of the process that is being read */
};

static int descriptor(void *context, int *ret_fd)
{
	const struct mapped_file *mapped = context;

	*ret_fd = mapped->fd;
	return 0;
}

static struct mapped_file *find(struct search *search, const struct mapping *mapping)
{
	for (size_t i = 0; i < search->count; i++) {
		if (file_key_equal(&search->file[i].key, &mapping->key))
			return &search->file[i];
	}
	return NULL;
}

/* Asks the child what a file is that was not seen before. */
static struct mapped_file *examine(struct search *search, const struct mapping *mapping)
{
	struct mapped_file *mapped;
	struct foreign_file asked = {.descriptor = descriptor};

	if (search->count == FILES_MAX) {
		search->is_cut = true;
		return NULL;
	}
	if (ARRAY_RESERVE(search->file, search->count, search->capacity))
		return NULL;
	mapped = &search->file[search->count];
	*mapped = (struct mapped_file){.key = mapping->key, .fd = -1};
	if (file_open(search->tgid, mapping, &mapped->fd))
		return NULL;
	search->count++;
	mapped->file.path = strdup(mapping->path);
	asked.number = (uint32_t)search->count;
	asked.context = mapped;
	file_facts_ask(search->foreign, &asked, &mapped->file);
	if (mapped->file.python)
		doctor_probes_ask(search->foreign, &asked, &mapped->probes);
	foreign_done(search->foreign, asked.number);
	close_owned_fd(&mapped->fd);
	mapped->fd = -1;
	return mapped;
}

static void test(struct search *search, struct mapped_file *mapped, const struct mapping *mapping)
{
	const uint64_t bias = file_bias(&mapped->file, mapping);
	const char *reason = NULL;
	int err = -EAGAIN;

	for (unsigned int i = 0; i < SELF_TESTS && err; i++)
		err = python_process_self_test(mapped->file.python, (pid_t)search->tgid, bias,
					       &reason);
	if (err && err != -EBADMSG)
		return;
	mapped->is_tested = true;
	mapped->wrong = err ? (reason ?: "the self-test failed") : NULL;
}

static int take_mapping(void *context, const struct mapping *mapping)
{
	struct search *search = context;
	struct mapped_file *mapped;

	if (!mapping->key.inode)
		return 0;
	mapped = find(search, mapping);
	if (!mapped)
		mapped = examine(search, mapping);
	if (!mapped || (!mapped->file.python && !mapped->file.python_reason))
		return 0;
	mapped->processes++;
	if (mapped->file.python && !mapped->is_tested)
		test(search, mapped, mapping);
	return 0;
}

static int take_process(void *context, const struct proc_stat *stat)
{
	struct search *search = context;
	int err;

	/* Our own children let nobody look. */
	if (stat->is_kernel_thread || stat->is_zombie || stat->ppid == (uint32_t)getpid())
		return 0;
	if (search->processes == PROCESSES_MAX) {
		search->is_cut = true;
		return 1;
	}
	search->processes++;
	search->tgid = stat->pid;
	err = proc_maps_read(stat->pid, take_mapping, search, NULL);
	if (err == -EACCES || err == -EPERM)
		search->unreadable++;
	return 0;
}

static void tell_file(struct findings *findings, const struct mapped_file *mapped,
		      const struct probe_prices *prices)
{
	const uint32_t version = mapped->file.python ? mapped->file.python->version_hex : 0;
	const char *name = mapped->file.path ?: "";
	const size_t name_size = strlen(name);
	char path[256]; /* each byte becomes four at most */
	const size_t most = sizeof(path) / 4 - 1;

	path[utf8_clean(name, name_size < most ? name_size : most, path)] = '\0';
	if (!mapped->file.python)
		findings_add(findings, FINDING_WARN, NAME, "'%s': frames cannot be read: %s", path,
			     mapped->file.python_reason);
	else if (mapped->wrong)
		findings_add(findings, FINDING_WARN, NAME,
			     "%u.%u '%s': the self-test says: %s; its frames are left out",
			     version >> 24, version >> 16 & 0xff, path, mapped->wrong);
	else
		findings_add(findings, FINDING_OK, NAME, "%u.%u '%s', %u processes%s",
			     version >> 24, version >> 16 & 0xff, path, mapped->processes,
			     mapped->is_tested ? ", the self-test is fine"
					       : "; none has a frame to test");
	if (mapped->file.python)
		doctor_probes_tell(findings, path, version >> 16 & 0xff, &mapped->probes, prices);
}

static void tell_all(struct findings *findings, const struct search *search,
		     const struct probe_prices *prices)
{
	size_t told = 0;

	for (size_t i = 0; i < search->count; i++) {
		const struct mapped_file *mapped = &search->file[i];

		if (!mapped->processes)
			continue;
		tell_file(findings, mapped, prices);
		told++;
	}
	if (!told)
		findings_add(findings, FINDING_OK, NAME, "no process that can be read runs one");
	if (search->unreadable)
		findings_add(findings, FINDING_WARN, NAME,
			     "%u of %u processes could not be looked at%s", search->unreadable,
			     search->processes, geteuid() ? ": run it as root" : "");
	if (search->is_cut)
		findings_add(findings, FINDING_WARN, NAME,
			     "only %u processes and %u files were looked at", PROCESSES_MAX,
			     FILES_MAX);
}

static void release(struct search *search)
{
	for (size_t i = 0; i < search->count; i++) {
		python_info_free(search->file[i].file.python);
		free(search->file[i].file.debug);
		free(search->file[i].file.path);
	}
	free(search->file);
}

void doctor_pythons(struct findings *findings, const char *child_program,
		    const struct probe_prices *prices)
{
	OWNED(foreign) struct foreign *foreign = NULL;
	OWNED(peek) struct peek *peek = NULL;
	struct search search = {0};
	int err = peek_new(child_program, &peek);

	if (!err)
		err = foreign_new(child_program, &foreign);
	if (err || !foreign_await(foreign)) {
		findings_add(findings, FINDING_FAIL, NAME,
			     "cannot start the child that parses files");
		return;
	}
	peek_await(peek);
	process_access_by(&peek_access, peek);
	search.foreign = foreign;
	err = proc_scan(take_process, &search);
	if (err < 0)
		findings_add(findings, FINDING_FAIL, NAME, "cannot list processes: %s",
			     strerror(-err));
	else
		tell_all(findings, &search, prices);
	process_access_by(NULL, NULL);
	release(&search);
}
