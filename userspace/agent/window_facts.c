/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/window_facts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/naming.h"
#include "agent/progress.h"
#include "agent/stack_intake.h"
#include "agent/tables.h"
#include "attach/context_table.h"
#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/log.h"
#include "base/task.h"
#include "base/user_quota.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/dictionary.h"
#include "drain/incomplete_queue.h"
#include "drain/ring.h"
#include "drain/text_table.h"
#include "files/client.h"
#include "options/options.h"
#include "peek/client.h"
#include "probes/probes.h"
#include "processes/identities.h"
#include "processes/process_watch.h"
#include "profile/comments.h"
#include "store/keeper.h"
#include "store/output.h"
#include "unwind/row_store.h"
#include "windows/source.h"

/* ---- what the host did ---- */

/* Its line of interrupts holds a number for each of thousands. */
#define HOST_STAT_BYTES (1U << 20)

/* proc_stat(5).  Steal: a hypervisor took it. */
enum host_time {
	HOST_USER,
	HOST_NICE,
	HOST_KERNEL,
	HOST_IDLE,
	HOST_WAIT,
	HOST_IRQ,
	HOST_SOFTIRQ,
	HOST_STEAL,
	HOST_TIMES
};

/* Reads what all CPUs did since boot.  Returns how many times there are: others are 0. */
static int read_host(uint64_t ret_ns[HOST_TIMES])
{
	const uint64_t tick_ns = NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	unsigned long long ticks[HOST_TIMES] = {0};
	OWNED_MEM char *text = NULL;
	int count;

	if (read_file("/proc/stat", HOST_STAT_BYTES, &text, NULL))
		return 0;
	count = sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[HOST_USER],
		       &ticks[HOST_NICE], &ticks[HOST_KERNEL], &ticks[HOST_IDLE], &ticks[HOST_WAIT],
		       &ticks[HOST_IRQ], &ticks[HOST_SOFTIRQ], &ticks[HOST_STEAL]);
	for (unsigned int i = 0; i < HOST_TIMES; i++)
		ret_ns[i] = ticks[i] * tick_ns;
	return count;
}

/* ---- the scheduler's CPU time ---- */

#define PROCESSES_MAX 4096U

struct seen {
	uint32_t tgid;
	uint64_t start_ns, cpu_ns;
	uint32_t pass; /* number of the last reading that found it */
	UT_hash_handle hh;
};

struct coverage {
	const struct process_table *processes; /* NULL: the whole machine */
	uint64_t began_ns;		       /* CLOCK_MONOTONIC */
	uint64_t host_ns;
	struct seen *seen;
	uint32_t pass;
};

/* Of a process that is older than this measurement, only the CPU time from now on counts. */
static uint64_t take_process(struct coverage *coverage, uint32_t tgid)
{
	struct proc_stat stat;
	struct seen *seen;
	uint64_t before_ns = 0;

	if (proc_stat_read(tgid, &stat))
		return 0;
	HASH_FIND(hh, coverage->seen, &tgid, sizeof(tgid), seen);
	if (seen && seen->start_ns == stat.start_ns)
		before_ns = seen->cpu_ns;
	else if (stat.start_ns < coverage->began_ns)
		before_ns = stat.cpu_ns;
	if (!seen && HASH_COUNT(coverage->seen) < PROCESSES_MAX)
		seen = HASH_GET(coverage->seen, tgid, tgid);
	if (!seen)
		return 0;
	seen->start_ns = stat.start_ns;
	seen->cpu_ns = stat.cpu_ns;
	seen->pass = coverage->pass;
	return stat.cpu_ns > before_ns ? stat.cpu_ns - before_ns : 0;
}

static uint64_t take_processes(struct coverage *coverage)
{
	const struct process *process = NULL;
	struct seen *seen, *next;
	uint64_t cpu_ns = 0;

	coverage->pass++;
	while ((process = process_table_next(coverage->processes, process)))
		if (!process->exit_ns && context_table_flags(process) & PP_CONTEXT_MATCHES)
			cpu_ns += take_process(coverage, process->id.tgid);
	HASH_ITER (hh, coverage->seen, seen, next)
		if (seen->pass != coverage->pass)
			HASH_DROP(coverage->seen, seen);
	return cpu_ns;
}

int coverage_new(const struct process_table *processes, struct coverage **ret_coverage)
{
	struct coverage *coverage = calloc(1, sizeof(*coverage));

	if (!coverage)
		return -ENOMEM;
	coverage->processes = processes;
	coverage->began_ns = mono_ns();
	(void)coverage_take(coverage);
	*ret_coverage = coverage;
	return 0;
}

void coverage_free(struct coverage *coverage)
{
	if (!coverage)
		return;
	HASH_DROP_ALL(coverage->seen);
	free(coverage);
}

uint64_t coverage_take(struct coverage *coverage)
{
	uint64_t before_ns, ns[HOST_TIMES];

	if (!coverage)
		return 0;
	if (coverage->processes)
		return take_processes(coverage);
	before_ns = coverage->host_ns;
	coverage->host_ns = 0;
	if (read_host(ns) > HOST_KERNEL)
		coverage->host_ns = ns[HOST_USER] + ns[HOST_NICE] + ns[HOST_KERNEL];
	return before_ns && coverage->host_ns > before_ns ? coverage->host_ns - before_ns : 0;
}

/* ---- users' shares of tables ---- */

static void count_quotas(const struct window_facts *facts, uint64_t loss[PP_LOSS_COUNT])
{
	const struct row_store_quotas rows = row_store_quotas(facts->rows);
	struct row_store_stats room;
	struct context_table_stats contexts;
	struct file_table_stats files;

	file_table_get_stats(facts->services->files, &files);
	loss[PP_LOSS_TEXT_REFUSED] = files.text_refused;
	loss[PP_LOSS_FILES_LOST] = files.lost;
	row_store_get_stats(facts->rows, &room);
	loss[PP_LOSS_ROWS_FULL] = files.no_space + room.rules_exhausted;
	context_table_get_stats(facts->services->contexts, &contexts);
	loss[PP_LOSS_PYTHONS_REFUSED] = contexts.pythons_refused;
	loss[PP_LOSS_PROFILE_REFUSED] = facts->profile_quota->refused;
	loss[PP_LOSS_MAP_SETS_REFUSED] = contexts.sets_refused;
	loss[PP_LOSS_ROWS_REFUSED] = rows.rows->refused + rows.rules->refused;
	loss[PP_LOSS_SITES_REFUSED] =
		probes_refused(facts->services->sources->state[PP_SOURCE_PROBES]);
	loss[PP_LOSS_STACKS_LEFT_OUT] = incomplete_queue_quota(facts->incomplete->queue)->refused +
					facts->incomplete->left_out;
}

static void tell(struct user_quota *quota, const char *what, const char *counter)
{
	uint32_t uid;

	while (user_quota_tell(quota, &uid))
		log_warn("user %u: %s; the user's share of that table is used up, and others keep "
			 "theirs (%s)",
			 uid, what, counter);
}

static void tell_unopened(struct file_table *files)
{
	struct file_unopened unopened;

	if (!file_table_tell_unopened(files, &unopened))
		return;
	log_warn("'%s', which process %u has mapped, cannot be opened: %s%s; its code has no names "
		 "and, if it is Python, no frames (told once for this error; files_unopened)",
		 unopened.path, unopened.tgid,
		 unopened.error == -ETIMEDOUT ? "its file system does not answer"
					      : strerror(-unopened.error),
		 unopened.error == -EACCES ? " to root (a user's own FUSE, NFS with root_squash)"
					   : "");
}

void window_facts_tell_quotas(const struct window_facts *facts)
{
	const struct row_store_quotas rows = row_store_quotas(facts->rows);

	tell_unopened(facts->services->files);

	tell(rows.pages, "more files are mapped and get no unwind rows", "text_refused");
	tell(rows.rows, "unwind rows are not loaded, or dropped", "rows_refused");
	tell(context_table_python_quota(facts->services->contexts),
	     "more interpreter files are mapped and get no Python frames", "pythons_refused");
	tell(incomplete_queue_quota(facts->incomplete->queue),
	     "more stacks are incomplete and stay so", "stacks_left_out");
	tell(facts->profile_quota, "stacks are left out of the profiles, and counted without them",
	     "profile_refused");
	tell(identities_quota(facts->services->identities), "labels of more processes are left out",
	     "labels_refused");
	tell(context_table_sets_quota(facts->services->contexts),
	     "the mappings of more processes find no room, and only the agent can unwind them",
	     "map_sets_refused");
	tell(process_table_mapping_quota(facts->services->processes),
	     "mappings of more processes are left out, and code in them has no names",
	     "mappings_refused");
	tell(rows.rules, "code with new unwind rules has none", "rows_refused");
}

/* ---- facts ---- */

#define STOP_NAME(id, name, text) name,
#define PROGRAM_NAME(id, name) name,

/* The results are untouched when /proc/stat cannot be read. */
static void read_busy_host(uint64_t *ret_busy_ns, uint64_t *ret_steal_ns)
{
	uint64_t ns[HOST_TIMES];

	if (read_host(ns) < HOST_STEAL)
		return;
	*ret_busy_ns = ns[HOST_USER] + ns[HOST_NICE] + ns[HOST_KERNEL] + ns[HOST_IRQ] +
		       ns[HOST_SOFTIRQ] + ns[HOST_STEAL];
	*ret_steal_ns = ns[HOST_STEAL];
}

void window_facts_start(const struct window_facts *facts, struct summary *told)
{
	struct summary *summary = facts->services->summary;

	summary->is_cycles = facts->services->options->clock == OPTIONS_CLOCK_CYCLES;
	read_busy_host(&summary->host_busy_ns, &summary->host_steal_ns);
	told->host_busy_ns = summary->host_busy_ns;
	told->host_steal_ns = summary->host_steal_ns;
	summary->host_steal_start_ns = summary->host_steal_ns;
}

static void count_labels(const struct window_facts *facts, struct summary *summary)
{
	struct identities_stats labels;

	identities_get_stats(facts->services->identities, &labels);
	summary->unlabelled = labels.ended;
	summary->loss[PP_LOSS_LABELS_REFUSED] = labels.refused;
	summary->loss[PP_LOSS_LABELS_UNREAD] = labels.unread;
}

static void count_kept(const struct window_facts *facts, struct summary *summary)
{
	struct keeper_stats stats;

	keeper_get_stats(facts->keeper, &stats);
	summary->kept = stats.kept;
	/* Beside events of which the kernel side could not tell. */
	summary->loss[PP_LOSS_KEEP_FAILED] += stats.failed;
	summary->loss[PP_LOSS_KEEP_SHARE] = stats.left_out;
}

/* Losses of user space beside those of the kernel side. */
static void add_own_losses(const struct window_facts *facts, const struct foreign_stats *parsing,
			   const struct peek_stats *reads, uint64_t loss[PP_LOSS_COUNT])
{
	struct dictionary_stats stats;

	dictionary_get_stats(facts->services->dictionary, &stats);
	loss[PP_LOSS_ROWS_BOUNDED] = facts->bounded;
	loss[PP_LOSS_DICTIONARY_FULL] = stats.refused - stats.users_refused;
	loss[PP_LOSS_DICTIONARY_SHARE] = stats.users_refused;
	loss[PP_LOSS_RECORDS_BAD] = ring_bad_count(facts->stacks_ring);
	process_watch_count(facts->watch, loss);
	naming_count(facts->services->naming, loss);
	output_count(facts->output, loss);
	count_quotas(facts, loss);
	loss[PP_LOSS_FILES_PUT_OFF] = parsing->put_off;
	loss[PP_LOSS_TEXTS_REFUSED] = text_table_refused(facts->services->texts);
	loss[PP_LOSS_MEMORY_LATE] = reads->late;
	loss[PP_LOSS_MEMORY_LEFT_ALONE] = reads->left_alone;
	loss[PP_LOSS_OPENS_LATE] = parsing->opener.late;
	loss[PP_LOSS_OPENS_LEFT_ALONE] = parsing->opener.left_alone;
	loss[PP_LOSS_CHILDREN_STUCK] = reads->stuck + parsing->stuck + parsing->opener.stuck;
}

void window_facts_update(const struct window_facts *facts)
{
	struct summary *summary = facts->services->summary;
	uint64_t rss_bytes = own_cost_rss_bytes();
	struct peek_stats reads = {0};
	struct foreign_stats parsing = {0};

	summary->elapsed_ns = mono_ns() - facts->started_ns;
	summary->own_cpu_ns = own_cost_cpu_ns();
	peek_get_stats(facts->peek, &reads);
	foreign_get_stats(facts->services->foreign, &parsing);
	memcpy(summary->asked, parsing.count, sizeof(summary->asked));
	summary->own_cpu_ns +=
		reads.cpu_ns + parsing.count[FOREIGN_COST_CPU_NS] + parsing.opener.cpu_ns;
	summary->early_swaps = facts->tables->early_swaps;
	(void)kernel_side_get_losses(facts->services->kernel, summary->loss);
	add_own_losses(facts, &parsing, &reads, summary->loss);
	count_labels(facts, summary);
	count_kept(facts, summary);
	sources_summarize(facts->services->sources, summary);
	if (rss_bytes)
		summary->own_rss_bytes = rss_bytes;
}

/* A run counts as the middle of its bucket, which is an eighth of an octave wide. */
static uint64_t walks_ns(const struct pp_times times[PP_PROGRAM_COUNT])
{
	uint64_t sum_ns = 0;

	for (unsigned int i = 0; i < PP_PROGRAM_COUNT; i++) {
		for (unsigned int bucket = 0; bucket < PP_TIME_BUCKETS; bucket++) {
			const uint64_t begin_ns = bucket ? pp_time_end_ns(bucket - 1) : 0;

			sum_ns += times[i].count[bucket] * (begin_ns + pp_time_end_ns(bucket)) / 2;
		}
	}
	return sum_ns;
}

static void read_times(const struct window_facts *facts)
{
	struct summary *summary = facts->services->summary;

	(void)kernel_side_get_times(facts->services->kernel, summary->times);
	summary->bpf_cpu_ns = walks_ns(summary->times);
}

uint64_t window_facts_cost_ns(const struct window_facts *facts)
{
	window_facts_update(facts);
	read_times(facts);
	return facts->services->summary->own_cpu_ns + facts->services->summary->bpf_cpu_ns;
}

static void put(FILE *out, const char *prefix, const char *name, uint64_t now, uint64_t before)
{
	if (now > before)
		facts_put(out, prefix, name, now - before);
}

static void put_facts(FILE *out, const struct summary *now, const struct summary *before)
{
	static const char *const stops[] = {PP_STOPS(STOP_NAME)};
	static const char *const losses[] = {PP_LOSSES(STOP_NAME)};
	static const char *const asked[] = {FOREIGN_QUESTIONS(STOP_NAME) FOREIGN_COSTS(STOP_NAME)};

	facts_put(out, "", "elapsed_ns", now->elapsed_ns - before->elapsed_ns);
	facts_put(out, "", "samples", now->samples - before->samples);
	facts_put(out, "", "complete", summary_complete(now) - summary_complete(before));
	facts_put(out, "", "lost", summary_lost(now) - summary_lost(before));
	facts_put(out, "", "own_cpu_ns", now->own_cpu_ns - before->own_cpu_ns);
	facts_put(out, "", "own_rss_bytes", now->own_rss_bytes);
	facts_put(out, "", "host_busy_ns", now->host_busy_ns - before->host_busy_ns);
	facts_put(out, "", "host_cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	put(out, "", "host_steal_ns", now->host_steal_ns, before->host_steal_ns);
	if (!now->is_cycles && now->scheduler_ns > before->scheduler_ns) {
		facts_put(out, "", "cpu_ns", now->cpu_ns - before->cpu_ns);
		facts_put(out, "", "scheduler_ns", now->scheduler_ns - before->scheduler_ns);
	}
	if (now->ledger_wait_ns > before->ledger_wait_ns) {
		facts_put(out, "", "wait_ns", now->wait_ns - before->wait_ns);
		facts_put(out, "", "ledger_wait_ns", now->ledger_wait_ns - before->ledger_wait_ns);
	}
	put(out, "", "unlabelled", now->unlabelled, before->unlabelled);
	put(out, "", "bpf_cpu_ns", now->bpf_cpu_ns, before->bpf_cpu_ns);
	put(out, "", "kept", now->kept, before->kept);
	put(out, "", "rate_steps", now->rate_steps, 0);
	put(out, "", "early_swaps", now->early_swaps, before->early_swaps);
	put(out, "", "coarse_cpu_ns", now->coarse_cpu_ns, before->coarse_cpu_ns);
	put(out, "", "coarse_wait_ns", now->coarse_wait_ns, before->coarse_wait_ns);
	put(out, "", "loop_stall_max_ns", now->loop_stall_max_ns, 0);
	for (unsigned int i = 0; i < PP_STOP_COUNT; i++)
		if (!summary_is_whole(i))
			put(out, "cut_", stops[i], now->stop[i], before->stop[i]);
	for (unsigned int i = 0; i < PP_LOSS_COUNT; i++)
		put(out, "lost_", losses[i], now->loss[i], before->loss[i]);
	for (unsigned int i = 0; i < FOREIGN_COUNTERS; i++)
		put(out, "", asked[i], now->asked[i], before->asked[i]);
}

/* Names each bucket by the time at which it ends: on_switch_45056=3. */
static void put_times(FILE *out, const struct summary *now, const struct summary *before)
{
	static const char *const programs[] = {PP_PROGRAMS(PROGRAM_NAME)};
	char name[48];

	for (unsigned int i = 0; i < PP_PROGRAM_COUNT; i++) {
		for (unsigned int bucket = 0; bucket < PP_TIME_BUCKETS; bucket++) {
			snprintf(name, sizeof(name), "%s_%llu", programs[i],
				 (unsigned long long)pp_time_end_ns(bucket));
			put(out, "", name, now->times[i].count[bucket],
			    before->times[i].count[bucket]);
		}
	}
}

int window_facts_tell(const struct window_facts *facts, struct summary *told, char **ret_text)
{
	struct summary *summary = facts->services->summary;
	OWNED_MEM char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	window_facts_update(facts);
	read_busy_host(&summary->host_busy_ns, &summary->host_steal_ns);
	read_times(facts);
	put_facts(out, summary, told);
	put_times(out, summary, told);
	if (close_memory_file(out, &text))
		return -ENOMEM;
	*told = *summary;
	*ret_text = TAKE(text);
	return 0;
}
