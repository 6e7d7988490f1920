/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/doctor_probes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attach/probe_links.h"
#include "base/cleanup.h"
#include "files/client.h"

#define NAME "probes"
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

/* ---- the kernel ---- */

static const char *kernel_text(void)
{
	if (probe_links_can_share())
		return "uprobe_multi and cookies are there";
	if (probe_trial_has_cookies())
		return "cookies are there; no uprobe_multi (Linux 6.6): taking off a probe takes "
		       "up to 0.1 s";
	return "no cookies (Linux 5.15): each place has a program of its own; no uprobe_multi "
	       "(Linux 6.6): taking off a probe takes up to 0.1 s";
}

static void tell_prices(struct findings *findings, const struct probe_prices *prices)
{
	const uint64_t *hit_ns = prices->hit_ns;

	findings_add(findings, FINDING_OK, NAME,
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
		findings_add(findings, FINDING_OK, NAME,
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
		findings_add(findings, FINDING_WARN, NAME,
			     "the kernel attaches no probe to a function of pyprofd itself: %s; "
			     "expect no kinds gc, import and cuda, no exact calls and no --probe",
			     strerror(-err));
	else
		tell_prices(findings, &prices);
	tell_users(findings);
	return prices;
}

/* ---- a file ---- */

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
		findings_add(findings, FINDING_WARN, NAME, "'%s': its probes cannot be read: %s",
			     path, strerror(-probes->err));
		return;
	}
	list_probes(probes, prices, list, sizeof(list));
	judge_calls(probes, minor, prices, calls, sizeof(calls));
	if (list[0])
		findings_add(findings, FINDING_OK, NAME, "'%s': %s a hit%s; %s", path, list,
			     prices->is_measured ? "" : " (not measured here)", calls);
	else
		findings_add(findings, FINDING_OK, NAME, "'%s': none; %s", path, calls);
}
