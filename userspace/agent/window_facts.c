/* SPDX-License-Identifier: BSD-2-Clause */
/* What a reader of a profile should know of how it was taken, as one of its comments:
 * "facts elapsed_ns=10000000000 samples=1978 complete=1931 no_info=47 lost=0 own_cpu_ns=98000000 ..." */
#include "agent/window_facts.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/naming.h"
#include "agent/sweeps.h"
#include "base/clock.h"
#include "base/io.h"
#include "profile/facts.h"

/* Its interrupts take a number each, of which there are thousands. */
#define HOST_STAT_BYTES (1U << 20)
#define STOP_NAME(id, name, text) name,
#define PROGRAM_NAME(id, name) name,

/* Time that any task, interrupt or other guest of the machine took on all CPUs, since boot; the last of
 * them is what a hypervisor took (proc_stat(5): steal).  Untouched when it cannot be read. */
static void read_host(uint64_t *ret_busy_ns, uint64_t *ret_steal_ns)
{
	OWNED_MEM char *text = NULL;
	unsigned long long user, nice, kernel, idle, wait, irq, softirq, steal = 0;
	uint64_t tick_ns = NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);

	if (read_file("/proc/stat", HOST_STAT_BYTES, &text, NULL) ||
	    sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &kernel,
		   &idle, &wait, &irq, &softirq, &steal) < 7)
		return;
	*ret_busy_ns = (user + nice + kernel + irq + softirq + steal) * tick_ns;
	*ret_steal_ns = steal * tick_ns;
}

void window_facts_start(struct agent *agent)
{
	struct summary *summary = &agent->summary;

	summary->is_cycles = agent->options->clock == OPTIONS_CLOCK_CYCLES;
	read_host(&summary->host_busy_ns, &summary->host_steal_ns);
	agent->facts_told.host_busy_ns = summary->host_busy_ns;
	agent->facts_told.host_steal_ns = summary->host_steal_ns;
	summary->host_steal_start_ns = summary->host_steal_ns;
}

void window_facts_update(struct agent *agent)
{
	struct summary *summary = &agent->summary;
	struct dictionary_stats stats;
	struct rusage usage;
	char *text = NULL;

	dictionary_get_stats(agent->dictionary, &stats);
	summary->elapsed_ns = mono_ns() - agent->started_ns;
	getrusage(RUSAGE_SELF, &usage);
	summary->own_cpu_ns =
		(uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_SEC +
		(uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
	(void)kernel_side_get_losses(agent->kernel, summary->loss);
	summary->loss[PP_LOSS_THREADS_TORN] = agent->torn_threads;
	summary->loss[PP_LOSS_SWITCHES_UNSEEN] += agent->stray_threads;
	summary->loss[PP_LOSS_ROWS_BOUNDED] = agent->bounded;
	summary->loss[PP_LOSS_SWEPT_LOST] = sweeps_lost(agent->sweeps);
	summary->loss[PP_LOSS_DICTIONARY_FULL] = stats.refused;
	summary->loss[PP_LOSS_PERF_MAPS_REFUSED] = naming_refused_jits(agent->naming);
	if (!read_file("/proc/self/statm", 256, &text, NULL)) {
		char *resident = strchr(text, ' ');

		summary->own_rss_bytes =
			resident ? strtoull(resident, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE)
				 : 0;
		free(text);
	}
}

static bool is_complete(unsigned int stop)
{
	return stop == PP_STOP_ROOT || stop == PP_STOP_FINISHED || stop == PP_STOP_NO_USER;
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

	facts_begin(out);
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
	put(out, "", "early_swaps", now->early_swaps, before->early_swaps);
	put(out, "", "coarse_cpu_ns", now->coarse_cpu_ns, before->coarse_cpu_ns);
	put(out, "", "coarse_wait_ns", now->coarse_wait_ns, before->coarse_wait_ns);
	for (unsigned int i = 0; i < PP_STOP_COUNT; i++)
		if (!is_complete(i))
			put(out, "cut_", stops[i], now->stop[i], before->stop[i]);
	for (unsigned int i = 0; i < PP_LOSS_COUNT; i++)
		put(out, "lost_", losses[i], now->loss[i], before->loss[i]);
}

/* Each bucket by the time at which it ends: on_switch_45056=3. */
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

int window_facts_tell(struct agent *agent, struct summary *told, char **ret_text)
{
	OWNED_MEM char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	window_facts_update(agent);
	read_host(&agent->summary.host_busy_ns, &agent->summary.host_steal_ns);
	(void)kernel_side_get_times(agent->kernel, agent->summary.times);
	put_facts(out, &agent->summary, told);
	put_times(out, &agent->summary, told);
	if (fclose(out))
		return -ENOMEM;
	*told = agent->summary;
	*ret_text = TAKE(text);
	return 0;
}

int window_facts_add(struct agent *agent)
{
	OWNED_MEM char *text = NULL;
	int err = window_facts_tell(agent, &agent->facts_told, &text);

	return err ? err : profiles_add_comment(&agent->profiles, text);
}
