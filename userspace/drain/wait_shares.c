/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/wait_shares.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "drain/thread_slots.h"

/* Rows that are divided together: those of one thread's wait site, with its run-queue part apart;
 * or of a process's waits of one kind. */
struct stratum {
	struct pp_process_id id;
	uint32_t tid;	 /* 0: for the whole process */
	uint32_t where;	 /* is_queue, or enum pp_ledger */
	uint64_t detail; /* key of the wait site; 0: for the whole process */
	double exact_ns, exact_events;
	double walked_ns, walked_events; /* weighted */
	double passed_ns, passed_events; /* part of these in rows that have their share already */
	bool is_exact;			 /* exact_ns is known */
};

struct strata {
	struct stratum *stratum; /* owned; sorted */
	size_t count;
};

static void strata_release(struct strata *strata)
{
	free(strata->stratum);
}

static bool is_queue(const struct pp_count_key *key)
{
	return pp_count_wait(key->flags) == PP_WAIT_RUN_QUEUE;
}

static enum pp_ledger where_of(const struct pp_count_key *key)
{
	return wait_ledger((enum pp_wait)pp_count_wait(key->flags));
}

static struct stratum of_site(const struct pp_count_key *key)
{
	return (struct stratum){
		.id = key->id, .tid = key->tid, .where = is_queue(key), .detail = key->detail};
}

static struct stratum of_process(const struct pp_count_key *key)
{
	return (struct stratum){.id = key->id, .where = where_of(key)};
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare(const void *left, const void *right)
{
	const struct stratum *a = left, *b = right;
	int order = compare_numbers(a->detail, b->detail);

	if (!order)
		order = compare_numbers(a->id.tgid, b->id.tgid);
	if (!order)
		order = compare_numbers(a->id.generation, b->id.generation);
	if (!order)
		order = compare_numbers(a->tid, b->tid);
	return order ? order : compare_numbers(a->where, b->where);
}

static struct stratum *find(const struct strata *strata, struct stratum wanted)
{
	return strata->count
		       ? bsearch(&wanted, strata->stratum, strata->count, sizeof(wanted), compare)
		       : NULL;
}

static int collect_strata(const struct counts *counts, struct strata *ret_strata)
{
	size_t room = 0, count = 0;

	for (size_t i = 0; i < counts->count; i++)
		room += counts->entry[i].key.kind == PP_KIND_WALKED ||
			counts->entry[i].key.kind == PP_KIND_WEIGHTED;
	ret_strata->stratum = calloc(room + 1, sizeof(*ret_strata->stratum));
	if (!ret_strata->stratum)
		return -ENOMEM;
	for (size_t i = 0; i < counts->count; i++) {
		const struct pp_count_key *key = &counts->entry[i].key;

		if (key->kind == PP_KIND_WALKED && key->detail)
			ret_strata->stratum[count++] = of_site(key);
		else if (key->kind == PP_KIND_WEIGHTED)
			ret_strata->stratum[count++] = of_process(key);
	}
	qsort(ret_strata->stratum, count, sizeof(*ret_strata->stratum), compare);
	for (size_t i = 0; i < count; i++)
		if (!i || compare(&ret_strata->stratum[i], &ret_strata->stratum[i - 1]))
			ret_strata->stratum[ret_strata->count++] = ret_strata->stratum[i];
	return 0;
}

static void add_row(const struct strata *strata, const struct counted *counted)
{
	const struct pp_count_key *key = &counted->key;
	struct stratum *site = NULL, *process = NULL;

	if ((key->kind == PP_KIND_WAIT_SITE || key->kind == PP_KIND_WALKED) && key->detail)
		site = find(strata, of_site(key));
	if (key->kind == PP_KIND_WAIT_SITE || key->kind == PP_KIND_WAIT ||
	    key->kind == PP_KIND_WEIGHTED)
		process = find(strata, of_process(key));
	if (key->kind == PP_KIND_WALKED && site) {
		site->walked_ns += (double)counted->count.weight;
		site->walked_events += (double)counted->count.samples;
	} else if (key->kind == PP_KIND_WEIGHTED && process) {
		process->walked_ns += (double)counted->count.weight;
	} else if (process) {
		process->exact_ns += (double)counted->count.weight;
	}
	if (key->kind == PP_KIND_WAIT_SITE && site) {
		site->exact_ns += (double)counted->count.weight;
		site->exact_events += (double)counted->count.samples;
		site->is_exact = true;
	}
}

/* Sets a process's exact time: what the ledger has in addition to all exact rows belongs to the
 * weighted ones. */
static void ask_ledger(const struct wait_shares *shares, struct stratum *process)
{
	uint64_t all_ns;
	double rest_ns;

	process->is_exact = shares->exact_ns(shares->context, process->id,
					     (enum pp_ledger)process->where, &all_ns);
	if (!process->is_exact)
		return;
	rest_ns = (double)all_ns - process->exact_ns;
	if (rest_ns < 0)
		rest_ns = 0;
	if (shares->leaves_short_out && rest_ns > process->walked_ns)
		rest_ns = process->walked_ns;
	process->exact_ns = rest_ns;
}

static uint64_t rounded(double value)
{
	return value > 0 ? (uint64_t)(value + 0.5) : 0;
}

/* Returns (sum w)^2 / sum w^2: that many waits of equal weight have the same spread. */
static uint64_t effective_of(const struct pp_count *count)
{
	double units = (double)count->weight / (double)(1U << PP_WAIT_SQUARE_SHIFT);
	uint64_t effective = count->squares ? rounded(units * units / (double)count->squares) : 0;

	if (!count->samples && !count->squares)
		return 0;
	return effective < 1 ? 1 : effective;
}

/* Returns the next row's share of `exact`; the shares of all rows add up to exactly that. */
static uint64_t share(double exact, double walked, double *passed, uint64_t part)
{
	uint64_t before = rounded(exact * *passed / walked);

	*passed += (double)part;
	return rounded(exact * *passed / walked) - before;
}

static void divide_site(struct stratum *site, struct counted *row)
{
	const struct pp_count walked = row->count;
	bool has_ns = site->walked_ns > 0, has_events = site->walked_events > 0;

	row->key.kind = PP_KIND_WAIT;
	row->key.detail = 0;
	/* The wait site's own row was lost, so its exact sum is unknown. */
	if (!site->is_exact || !(has_ns || has_events)) {
		row->count = (struct pp_count){};
		return;
	}
	row->count.effective = effective_of(&walked);
	/* A wait that has not ended is no event yet, and a wait that ends at once has no time. */
	row->count.weight =
		has_ns ? share(site->exact_ns, site->walked_ns, &site->passed_ns, walked.weight)
		       : share(site->exact_ns, site->walked_events, &site->passed_ns,
			       walked.samples);
	row->count.samples = has_events ? share(site->exact_events, site->walked_events,
						&site->passed_events, walked.samples)
					: share(site->exact_events, site->walked_ns,
						&site->passed_events, walked.weight);
}

static double factor_of(const struct stratum *process)
{
	return process && process->is_exact && process->walked_ns > 0
		       ? process->exact_ns / process->walked_ns
		       : 1;
}

static void make_wait(const struct strata *strata, struct counted *row)
{
	struct pp_count_key *key = &row->key;
	struct stratum *stratum;
	uint64_t effective;

	switch (key->kind) {
	case PP_KIND_WALKED:
		stratum = key->detail ? find(strata, of_site(key)) : NULL;
		if (stratum)
			divide_site(stratum, row);
		else
			/* a row without a stack of its own belongs to no wait site */
			row->count = (struct pp_count){};
		return;
	case PP_KIND_WAIT_SITE:
		stratum = key->detail ? find(strata, of_site(key)) : NULL;
		key->kind = PP_KIND_WAIT;
		key->detail = 0;
		/* Without a walk in this window the stack of the last walk is used. */
		row->count = stratum && stratum->walked_ns + stratum->walked_events > 0
				     ? (struct pp_count){}
				     : row->count;
		row->count.effective = row->count.samples;
		return;
	case PP_KIND_WEIGHTED:
		stratum = find(strata, of_process(key));
		effective = effective_of(&row->count);
		row->count.weight = rounded((double)row->count.weight * factor_of(stratum));
		row->count.effective = effective;
		key->kind = PP_KIND_WAIT;
		return;
	case PP_KIND_BLAME:
		if (key->detail == PP_BLAME_WEIGHTED)
			row->count.weight = rounded((double)row->count.weight *
						    factor_of(find(strata, of_process(key))));
		key->detail = 0;
		return;
	case PP_KIND_WAIT:
		row->count.effective = row->count.samples;
		return;
	default:
		return;
	}
}

int wait_shares_divide(const struct wait_shares *shares, struct counts *counts)
{
	CLEANUP(strata_release) struct strata strata = {};
	CLEANUP(counts_release) struct counts divided = {.bounded = counts->bounded};
	int err = collect_strata(counts, &strata);

	if (err)
		return err;
	for (size_t i = 0; i < counts->count; i++)
		add_row(&strata, &counts->entry[i]);
	for (size_t i = 0; i < strata.count; i++)
		if (!strata.stratum[i].detail)
			ask_ledger(shares, &strata.stratum[i]);
	for (size_t i = 0; i < counts->count && !err; i++) {
		struct counted row = counts->entry[i];

		make_wait(&strata, &row);
		if (row.count.weight || row.count.samples)
			err = counts_add(&divided, &row.key, &row.count);
	}
	if (err)
		return err;
	counts_release(counts);
	*counts = divided;
	divided = (struct counts){};
	return 0;
}
