/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "attach/file_table.h"
#include "attach/tracepoints.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "files/client.h"
#include "files/opener.h"
#include "files/opening.h"
#include "options/values.h"
#include "probes/probe_plan.h"

/* Lists what is looked for in one file: the legs of a plan's rows, and what raises the semaphore of
 * the interpreter's probe `line` where they need it. */

#define FILE_NUMBER UINT32_MAX /* no file of the table has it */

static void want_line(struct probe_wants *wants)
{
	if (wants->count + 2 > PROBE_WANTED_MAX)
		return;
	wants->wanted[wants->count] = (struct probe_wanted){
		.kind = PROBE_WANTED_USDT, .provider = "python", .name = PROBE_LINE_NAME};
	wants->wanted[wants->count + 1] =
		(struct probe_wanted){.kind = PROBE_WANTED_FUNCTION, .name = PROBE_CARRIER_NAME};
	wants->count += 2;
}

static void add_row(const struct probe_plan *plan, uint32_t row, struct probe_wants *wants)
{
	const struct probe_row *probe = &plan->row[row];

	for (uint32_t leg = 0; leg < probe->leg_count && wants->count < PROBE_WANTED_MAX; leg++) {
		wants->wanted[wants->count] = probe->leg[leg].wanted;
		wants->of[wants->count].row = row;
		wants->of[wants->count++].leg = leg;
	}
}

/* Adds the legs of one row, and no others are to come. */
static void probe_wants_row(const struct probe_plan *plan, uint32_t row, struct probe_wants *wants)
{
	add_row(plan, row, wants);
	wants->row_count = wants->count;
}

/* Asked about each file of each process whose mappings change: the many rows of CUDA's functions,
 * which stand one after the other, are of the same files. */
static bool is_as_row_before(const struct probe_plan *plan, uint32_t row)
{
	return row && probe_row_is_of_cuda(&plan->row[row]) &&
	       plan->row[row].place == plan->row[row - 1].place;
}

bool probe_wants_any(const struct probe_plan *plan, const struct file *file)
{
	for (uint32_t row = 0; row < plan->count; row++)
		if (!is_as_row_before(plan, row) &&
		    probe_row_is_in(&plan->row[row], file->path, file->python != NULL))
			return true;
	return false;
}

void probe_wants_list(const struct probe_plan *plan, const struct file *file,
		      struct probe_wants *wants)
{
	const struct pp_python *python = file->python ? &file->python->bpf : NULL;
	bool needs_line = false;

	for (uint32_t row = 0; row < plan->count; row++) {
		const struct probe_row *probe = &plan->row[row];

		if (!probe_row_is_in(probe, file->path, python != NULL))
			continue;
		add_row(plan, row, wants);
		needs_line |= probe_row_needs_line(probe);
	}
	wants->row_count = wants->count;
	if (needs_line && python && python->major == 3 && python->minor == 11)
		want_line(wants);
}

void probe_wants_list_path(const struct probe_plan *plan, const char *path,
			   struct probe_wants *wants)
{
	for (uint32_t row = 0; row < plan->count; row++)
		if (plan->row[row].place != PROBE_IN_ANY &&
		    !probe_row_needs_line(&plan->row[row]) &&
		    probe_row_is_in(&plan->row[row], path, true))
			add_row(plan, row, wants);
	wants->row_count = wants->count;
}

static int find_source(void *context, struct foreign_source *ret_source)
{
	ret_source->opened = *(const struct opener_file *)context;
	return 0;
}

int probe_wants_ask(struct foreign *foreign, struct opener_file *opened,
		    const struct probe_wants *wants, struct probe_sites *ret_sites)
{
	const struct foreign_file file = {
		.number = opened->number, .find = find_source, .context = opened};
	int err = foreign_probes(foreign, &file, wants->wanted, wants->count, ret_sites);

	foreign_close(foreign, file.number);
	return err;
}

static void note_found(struct probe_known *known, const struct probe_found *answer,
		       const char *path)
{
	known->is_seen = true;
	known->sites += answer->sites;
	known->refusals |= answer->refusals;
	if (answer->sites || known->path[0])
		return;
	snprintf(known->path, sizeof(known->path), "%s", path);
	memcpy(known->nearest, answer->nearest, sizeof(known->nearest));
}

/* Tells once that some of a probe's places are left out; of all, probe_check_binary() tells. */
static void tell_left_out(struct probe_known *known, const struct probe_row *probe,
			  const struct probe_found *answer, const char *path)
{
	if (!answer->refusals || known->is_refusal_told ||
	    (!answer->sites && probe->place == PROBE_IN_BINARY))
		return;
	known->is_refusal_told = true;
	log_warn("events of '%s' are missing in '%s', where a probe cannot be used: %s",
		 probe->name, path,
		 probe_refusal_text((enum probe_refusal)__builtin_ctz(answer->refusals)));
}

void probe_known_note(struct probe_known *known, const struct probe_row *row,
		      const struct probe_found *answer, const char *path)
{
	note_found(known, answer, path);
	tell_left_out(known, row, answer, path);
}

/* Looks into the file on this machine that no process maps. */
static int look_on_host(const struct probe_plan *plan, uint32_t row, struct foreign *foreign,
			struct probe_known *known)
{
	const struct probe_row *probe = &plan->row[row];
	OWNED_MEM struct probe_wants *wants = calloc(1, sizeof(*wants));
	struct probe_sites sites = {};
	struct opener_file file;
	struct opened_file found;
	int err;

	if (!wants)
		return -ENOMEM;
	err = opener_open_path(foreign_opener(foreign), probe->real_path, &found, &file);
	if (err)
		return err;
	probe_wants_row(plan, row, wants);
	err = probe_wants_ask(foreign, &file, wants, &sites);
	opener_close(foreign_opener(foreign), &file);
	if (err)
		return err;
	for (size_t i = 0; i < wants->count; i++)
		note_found(known, &sites.found[i], probe->real_path);
	probe_sites_release(&sites);
	return 0;
}

static void join_nearest(const struct probe_known *known, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < PROBE_NEAREST_MAX && known->nearest[i][0]; i++)
		used += (size_t)snprintf(text + used, used < size ? size - used : 0, "%s%s",
					 i ? ", " : "; near: ", known->nearest[i]);
}

static void complain(const struct probe_row *probe, const struct probe_known *known)
{
	const bool is_usdt = probe->spec->kind == PROBE_SPEC_USDT;
	char near[PROBE_NEAREST_MAX * (PROBE_NEAREST_BYTES + 2) + 16];

	for (unsigned int i = 0; i < PROBE_REFUSAL_KINDS; i++)
		if (known->refusals & 1U << i) {
			log_error("--probe '%s' cannot be used in '%s': %s", probe->name,
				  known->path, probe_refusal_text((enum probe_refusal)i));
			return;
		}
	join_nearest(known, near, sizeof(near));
	log_error("--probe '%s': '%s' has no %s '%s%s%s'%s", probe->name, known->path,
		  is_usdt ? "probe" : "function", is_usdt ? probe->spec->group : "",
		  is_usdt ? ":" : "", probe->spec->name, near);
}

int probe_check_binary(const struct probe_plan *plan, uint32_t row, struct foreign *foreign,
		       struct probe_known *known)
{
	const struct probe_row *probe = &plan->row[row];
	int err = 0;

	if (!known->is_seen && probe->real_path[0])
		err = look_on_host(plan, row, foreign, known);
	if (err) {
		log_error("--probe '%s': cannot read '%s': %s", probe->name, probe->real_path,
			  err == -ENOEXEC ? "it is no ELF file for this machine" : strerror(-err));
		return -ENXIO;
	}
	if (!known->is_seen && strchr(probe->spec->binary, '/')) {
		log_error("--probe '%s': there is no file '%s', neither for a profiled process "
			  "nor on this machine",
			  probe->name, probe->spec->binary);
		return -ENXIO;
	}
	if (!known->is_seen)
		log_warn("--probe '%s': no profiled process has mapped a file '%s' yet",
			 probe->name, probe->spec->binary);
	else if (!known->sites) {
		complain(probe, known);
		return -ENXIO;
	}
	return 0;
}

int probe_check_tracepoint(const struct probe_row *probe)
{
	char near[256] = "", why[256] = "";
	int err = tracepoint_check(probe->spec->group, probe->spec->name, near, sizeof(near), why,
				   sizeof(why));

	if (err == -EPERM) {
		log_error("--probe '%s': %s", probe->name, why);
		return -ENXIO;
	}
	if (err == -ENOENT) {
		log_error("--probe '%s': this kernel has no tracepoint '%s:%s'%s%s", probe->name,
			  probe->spec->group, probe->spec->name, near[0] ? "; near: " : "", near);
		return -ENXIO;
	}
	return err;
}
