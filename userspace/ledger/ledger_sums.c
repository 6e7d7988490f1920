/* SPDX-License-Identifier: BSD-2-Clause */
#include "ledger/ledger_sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/user_quota.h"
#include "base/utf8.h"

#define PRINTED_PROCESSES 10U
/* A user_quota does not bound root; here builds as root leave others nothing otherwise. */
#define ROOT_AS_USER (LEDGER_USER_UNKNOWN - 1)

struct entry {
	struct ledger_sum sum;
	UT_hash_handle hh;
};

struct ledger_sums {
	struct entry *entry;	 /* by sum.line.id */
	struct user_quota quota; /* of LEDGER_SUMS_MAX sums, those with tgid 0 not counted */
};

int ledger_sums_new(struct ledger_sums **ret_sums)
{
	struct ledger_sums *sums = calloc(1, sizeof(*sums));

	if (!sums)
		return -ENOMEM;
	sums->quota.total = LEDGER_SUMS_MAX;
	*ret_sums = sums;
	return 0;
}

void ledger_sums_clear(struct ledger_sums *sums)
{
	HASH_DROP_ALL(sums->entry);
	user_quota_give_all(&sums->quota);
}

void ledger_sums_free(struct ledger_sums *sums)
{
	if (!sums)
		return;
	ledger_sums_clear(sums);
	user_quota_release(&sums->quota);
	free(sums);
}

static struct entry *entry_get(struct ledger_sums *sums, const struct ledger_line *line)
{
	struct pp_process_id id = line->id;
	struct entry *entry;

	HASH_FIND(hh, sums->entry, &id, sizeof(id), entry);
	if (!entry && id.tgid &&
	    user_quota_take(&sums->quota, line->user ? line->user : ROOT_AS_USER, 1)) {
		id = (struct pp_process_id){};
		HASH_FIND(hh, sums->entry, &id, sizeof(id), entry);
	}
	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->sum.line.id = id;
	entry->sum.line.user = id.tgid ? line->user : LEDGER_USER_UNKNOWN;
	HASH_ADD(hh, sums->entry, sum.line.id, sizeof(id), entry);
	return entry;
}

int ledger_sums_add(struct ledger_sums *sums, const struct ledger_line *line, const char *comm)
{
	struct entry *entry = entry_get(sums, line);
	struct ledger_line *sum;

	if (!entry)
		return -ENOMEM;
	sum = &entry->sum.line;
	ledger_add_times(sum, line);
	/* Some threads are in several windows, and nobody has counted which; so we keep the largest
	 * number. */
	if (line->threads > sum->threads)
		sum->threads = line->threads;
	if (!sum->id.tgid)
		sum->processes += line->processes ? line->processes : 1;
	else if (comm[0])
		snprintf(entry->sum.comm, sizeof(entry->sum.comm), "%s", comm);
	return 0;
}

static int by_cpu(const void *left, const void *right)
{
	const struct ledger_sum *a = left, *b = right;

	return ORDER(b->line.total_ns[PP_LEDGER_CPU], a->line.total_ns[PP_LEDGER_CPU])
		       ?: ORDER(a->line.id.tgid, b->line.id.tgid);
}

int ledger_sums_list(const struct ledger_sums *sums, struct ledger_sum **ret_list,
		     size_t *ret_count)
{
	struct ledger_sum *list = calloc(HASH_COUNT(sums->entry) + 1, sizeof(*list));
	size_t count = 0;

	if (!list)
		return -ENOMEM;
	for (const struct entry *entry = sums->entry; entry; entry = entry->hh.next)
		list[count++] = entry->sum;
	qsort(list, count, sizeof(*list), by_cpu);
	*ret_list = list;
	*ret_count = count;
	return 0;
}

/* ---- for people ---- */

static double percent(double part, double whole)
{
	return whole > 0 ? 100.0 * part / whole : 0.0;
}

/* Prints "Python 12.3 %, GIL wait 40.1 %, ...": shares of at least a thousandth. */
static void print_shares(const struct ledger_line *line, FILE *stream)
{
#define LEDGER_TEXT(id, name, text) text,
	static const char *const texts[LEDGER_STATE_COUNT] = {"Python", "native", "kernel",
							      PP_LEDGERS(LEDGER_TEXT)};
	const char *start = "";

	for (unsigned int i = 0; i < LEDGER_STATE_COUNT; i++) {
		const double share =
			percent((double)ledger_state_ns(line, i), (double)line->life_ns);

		if (share < 0.1)
			continue;
		fprintf(stream, "%s%s%s %.1f %%", start, texts[i],
			i == LEDGER_UNSAMPLED ? ", unsampled" : "", share);
		start = ", ";
	}
}

static double sum_of(const struct ledger_line *line)
{
	double sum = 0;

	for (unsigned int i = 0; i < PP_LEDGER_COUNT; i++)
		sum += (double)line->total_ns[i];
	return sum;
}

static void print_all(const struct ledger_sum *list, size_t count, FILE *stream)
{
	struct ledger_line all = {};

	for (size_t i = 0; i < count; i++)
		ledger_add_times(&all, &list[i].line);
	fprintf(stream, "pyprofd: ledger: %.1f thread-seconds, %.2f %% of threads x wall",
		sum_of(&all) / (double)NS_PER_SEC, percent(sum_of(&all), (double)all.life_ns));
	if (all.checked_ns)
		fprintf(stream, "; time on the CPU is %+.2f %% of it off the scheduler's own",
			percent((double)all.over_ns, (double)all.checked_ns));
	fprintf(stream, "\n");
}

/* A process may be named "\033[2J". */
static void print_name(const struct ledger_sum *sum, FILE *stream)
{
	char clean[sizeof(sum->comm) * UTF8_CLEAN_MAX_GROWTH];
	const size_t size = utf8_clean(sum->comm, strlen(sum->comm), clean);

	fprintf(stream, "pyprofd:   %u %.*s: ", sum->line.id.tgid, size ? (int)size : -1,
		size ? clean : "(name not known)");
}

void ledger_sums_print(const struct ledger_sums *sums, FILE *stream)
{
	OWNED_MEM struct ledger_sum *list = NULL;
	size_t count;

	if (ledger_sums_list(sums, &list, &count) || !count)
		return;
	print_all(list, count, stream);
	for (size_t i = 0; i < count && i < PRINTED_PROCESSES; i++) {
		if (!list[i].line.life_ns)
			continue;
		if (list[i].line.id.tgid)
			print_name(&list[i], stream);
		else
			fprintf(stream, "pyprofd:   processes without a line of their own: ");
		fprintf(stream,
			"%.1f thread-seconds: ", (double)list[i].line.life_ns / (double)NS_PER_SEC);
		print_shares(&list[i].line, stream);
		fprintf(stream, "\n");
	}
	if (count > PRINTED_PROCESSES)
		fprintf(stream, "pyprofd:   and %zu more, in the profiles\n",
			count - PRINTED_PROCESSES);
}
