/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attach/file_rows.h"
#include "attach/file_table.h"
#include "attach/probe_links.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "discover/mapping_set.h"
#include "discover/proc_maps.h"
#include "discover/proc_scan.h"
#include "files/client.h"
#include "files/opener.h"
#include "files/opening.h"
#include "peek/client.h"
#include "python/python_process.h"

#define PROBES_NAME "probes"
#define LEGS 2U /* what begins something, and what ends it */
#define TEXT_BYTES 512U
/* What counting takes beside the trap, at each of the two hits of an exact call. */
#define COUNTING_NS 280U
/* 3.15 has probes of functions again, and does not hit them at specialized calls. */
#define EXACT_TO_MINOR 11U

static const struct {
	const char *name, *probe[LEGS];
} known[] = {
#define DOCTOR_PROBE_ROW(id, name, begin, end) {name, {begin, end}},
	DOCTOR_PROBES(DOCTOR_PROBE_ROW)};
_Static_assert(DOCTOR_PROBE_KINDS *LEGS <= PROBE_WANTED_MAX, "one question asks for all");

static double microseconds(uint64_t ns)
{
	return (double)ns / 1000;
}

/* ---- the kernel's probes ---- */

static const char *kernel_text(void)
{
	if (probe_links_can_share())
		return "uprobe_multi and cookies are there";
	if (probe_links_have_cookies())
		return "cookies are there; no uprobe_multi (Linux 6.6): taking off a probe takes "
		       "up to 0.1 s";
	return "no cookies (Linux 5.15): each place has a program of its own; no uprobe_multi "
	       "(Linux 6.6): taking off a probe takes up to 0.1 s";
}

static void tell_prices(struct findings *findings, const struct probe_prices *prices)
{
	const uint64_t *hit_ns = prices->hit_ns;

	findings_add(findings, FINDING_OK, PROBES_NAME,
		     "a hit takes %.1f us at push or nop, %.1f us at a nop of five bytes, %.1f us "
		     "where the kernel steps the instruction, and a return %.1f us more; %s",
		     microseconds(hit_ns[PROBE_COST_EMULATED]),
		     microseconds(hit_ns[PROBE_COST_LONG_NOP]),
		     microseconds(hit_ns[PROBE_COST_SINGLE_STEP]), microseconds(prices->return_ns),
		     kernel_text());
}

/* docs/security.md: a FUSE that does not answer keeps the lock of a process's mappings. */
static void tell_users(struct findings *findings)
{
	struct stat status;

	if (!stat("/dev/fuse", &status) && status.st_mode & S_IWOTH)
		findings_add(findings, FINDING_OK, PROBES_NAME,
			     "any user can mount a FUSE, and with it, at the moment when probes "
			     "come or go, hold up every fork of the machine: give --probes=no "
			     "where users are not trusted");
}

struct probe_prices doctor_probes_kernel(struct findings *findings, bool may_look)
{
	const struct probe_calibration calibration = {.program = -1, .locks = -1};
	struct probe_prices prices = probe_prices_typical();
	int err;

	if (!may_look)
		return prices; /* the line about BPF says what to do */
	err = probe_calibrate(&calibration, &prices);
	if (err)
		findings_add(findings, FINDING_WARN, PROBES_NAME,
			     "the kernel attaches no probe to a function of pyprofd itself: %s; "
			     "expect no kinds gc, import and cuda, no exact calls and no --probe",
			     strerror(-err));
	else
		tell_prices(findings, &prices);
	tell_users(findings);
	return prices;
}

/* ---- the probes of a file ---- */

static size_t list_wanted(struct probe_wanted *ret_wanted)
{
	size_t count = 0;

	for (size_t kind = 0; kind < DOCTOR_PROBE_KINDS; kind++)
		for (size_t leg = 0; leg < LEGS; leg++) {
			struct probe_wanted *wanted = &ret_wanted[count++];

			*wanted = (struct probe_wanted){.kind = PROBE_WANTED_USDT,
							.provider = "python"};
			snprintf(wanted->name, sizeof(wanted->name), "%s", known[kind].probe[leg]);
		}
	return count;
}

void doctor_probes_take(const struct probe_sites *sites, struct doctor_file_probes *ret_probes)
{
	struct doctor_file_probes probes = {0};

	for (size_t kind = 0; kind < DOCTOR_PROBE_KINDS; kind++)
		probes.of[kind].is_there =
			sites->found[kind * LEGS].sites && sites->found[kind * LEGS + 1].sites;
	for (size_t i = 0; i < sites->site_count; i++) {
		const struct probe_site *site = &sites->site[i];
		const size_t kind = site->wanted / LEGS;
		uint8_t *cost;

		if (kind >= DOCTOR_PROBE_KINDS)
			continue;
		cost = site->wanted % LEGS ? &probes.of[kind].end_cost
					   : &probes.of[kind].begin_cost;
		if (site->cost < PROBE_COSTS && site->cost > *cost)
			*cost = site->cost;
	}
	*ret_probes = probes;
}

void doctor_probes_ask(struct foreign *foreign, const struct foreign_file *file,
		       struct doctor_file_probes *ret_probes)
{
	OWNED_MEM struct probe_wanted *wanted =
		calloc((size_t)DOCTOR_PROBE_KINDS * LEGS, sizeof(*wanted));
	struct probe_sites sites = {};
	int err = wanted ? 0 : -ENOMEM;

	if (!err)
		err = foreign_probes(foreign, file, wanted, list_wanted(wanted), &sites);
	if (err) {
		*ret_probes = (struct doctor_file_probes){.err = err};
		return;
	}
	doctor_probes_take(&sites, ret_probes);
	probe_sites_release(&sites);
}

/* Lists the probes that are there: "gc (0.5 us), import (0.5 us)". */
static void list_probes(const struct doctor_file_probes *probes, const struct probe_prices *prices,
			char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t kind = 0; kind < DOCTOR_PROBE_KINDS && used < size; kind++)
		if (probes->of[kind].is_there)
			used += (size_t)snprintf(
				text + used, size - used, "%s%s (%.1f us)", used ? ", " : "",
				known[kind].name,
				microseconds(prices->hit_ns[probes->of[kind].begin_cost]));
}

/* Says whether calls can be counted exactly. */
static void judge_calls(const struct doctor_file_probes *probes, uint32_t minor,
			const struct probe_prices *prices, char *text, size_t size)
{
	const uint64_t call_ns = prices->hit_ns[probes->of[DOCTOR_PROBE_FUNCTIONS].begin_cost] +
				 prices->hit_ns[probes->of[DOCTOR_PROBE_FUNCTIONS].end_cost] +
				 LEGS * COUNTING_NS;

	if (!probes->of[DOCTOR_PROBE_FUNCTIONS].is_there)
		snprintf(text, size, "no function probes: pyprof calls --live samples instead");
	else if (minor > EXACT_TO_MINOR)
		snprintf(text, size,
			 "exact calls: no, this version does not hit its function probes at "
			 "specialized calls: pyprof calls --live samples instead");
	else
		snprintf(text, size, "exact calls: yes, about %.1f us a call",
			 microseconds(call_ns));
}

void doctor_probes_tell(struct findings *findings, const char *path, uint32_t minor,
			const struct doctor_file_probes *probes, const struct probe_prices *prices)
{
	char list[TEXT_BYTES], calls[TEXT_BYTES];

	if (probes->err) {
		findings_add(findings, FINDING_WARN, PROBES_NAME,
			     "'%s': its probes cannot be read: %s", path, strerror(-probes->err));
		return;
	}
	list_probes(probes, prices, list, sizeof(list));
	judge_calls(probes, minor, prices, calls, sizeof(calls));
	if (list[0])
		findings_add(findings, FINDING_OK, PROBES_NAME, "'%s': %s a hit%s; %s", path, list,
			     prices->is_measured ? "" : " (not measured here)", calls);
	else
		findings_add(findings, FINDING_OK, PROBES_NAME, "'%s': none; %s", path, calls);
}

/* ---- files that processes map ---- */

#define NAME "python"
/* More are not looked at, and that is said. */
#define PROCESSES_MAX 4096U
#define FILES_MAX 4096U
#define SELF_TESTS 3U

/* A file that some process maps. */
struct mapped_file {
	struct file_key key;
	struct file file; /* what the child says of it */
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

static int find_source(void *context, struct foreign_source *ret_source)
{
	const struct mapped_file *mapped = context;

	ret_source->opened = mapped->file.opened;
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
	struct opener *opener = foreign_opener(search->foreign);
	struct foreign_file asked = {.find = find_source};
	struct opened_file found;

	if (search->count == FILES_MAX) {
		search->is_cut = true;
		return NULL;
	}
	if (ARRAY_RESERVE(search->file, search->count, search->capacity))
		return NULL;
	mapped = &search->file[search->count];
	*mapped = (struct mapped_file){.key = mapping->key};
	if (opener_open_mapped(opener, search->tgid, 0, mapping, &found))
		return NULL;
	mapped->file.opened = (struct opener_file){.child = opener_child(opener), .fd = found.fd};
	search->count++;
	mapped->file.path = strdup(mapping->path);
	asked.number = (uint32_t)search->count;
	asked.context = mapped;
	file_facts_ask(search->foreign, &asked, &mapped->file);
	if (mapped->file.python)
		doctor_probes_ask(search->foreign, &asked, &mapped->probes);
	foreign_done(search->foreign, asked.number);
	opener_close(opener, &mapped->file.opened);
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
