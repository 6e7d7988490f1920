/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "attach/tracepoint_names.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "options/probe_spec.h"
#include "probes/probe_wants.h"

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
	OWNED_FD int fd = open(probe->real_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct probe_sites sites = {};
	int err;

	if (!wants)
		return -ENOMEM;
	if (fd < 0)
		return -errno;
	probe_wants_row(plan, row, wants);
	err = probe_wants_ask(foreign, fd, wants, &sites);
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
