/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/gpu_findings.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

#define NS 1e9

const char *gpu_finding_key(enum gpu_finding_id id)
{
#define FINDING_KEY(id, key, name) key,
	static const char *const keys[] = {GPU_FINDINGS(FINDING_KEY)};

	return keys[id];
}

const char *gpu_finding_name(enum gpu_finding_id id)
{
#define FINDING_NAME(id, key, name) name,
	static const char *const names[] = {GPU_FINDINGS(FINDING_NAME)};

	return names[id];
}

const char *gpu_part_name(unsigned int part)
{
#define PART_NAME(id, name, text) [PP_LEDGER_##id] = text,
	static const char *const names[PP_LEDGER_COUNT] = {PP_LEDGERS(PART_NAME)};

	if (part == PP_LEDGER_CPU)
		return "Python on the CPU";
	return part == GPU_PART_NATIVE ? "other code on the CPU" : names[part];
}

/* ---- figures ---- */

static double ratio(double part, double all)
{
	return all > 0 ? part / all : 0;
}

/* Notes a figure, and returns whether it is what the finding needs. */
static bool holds(struct gpu_finding *finding, const struct gpu_figure *figure, double value)
{
	if (finding->figure_count < GPU_FIGURES_MAX) {
		finding->figure[finding->figure_count] = *figure;
		finding->figure[finding->figure_count++].value = value;
	}
	switch (figure->limit_is) {
	case GPU_AT_LEAST:
		return value >= figure->limit;
	case GPU_ABOVE:
		return value > figure->limit;
	case GPU_AT_MOST:
		return value <= figure->limit;
	case GPU_BELOW:
		return value < figure->limit;
	default:
		return true;
	}
}

static void conclude(struct gpu_finding *finding, bool applies)
{
	finding->verdict = applies ? GPU_FOUND : GPU_NOT_FOUND;
}

static void refuse(struct gpu_finding *finding, const char *missing)
{
	finding->verdict = GPU_NOT_KNOWN;
	finding->missing = missing;
}

/* Returns the kernels that the process had run: a graph's count one by one. */
static double launched(const struct gpu_sums *sums)
{
	return sums->launches + sums->nodes;
}

/* Returns the calls that launch. */
static double launch_calls(const struct gpu_sums *sums)
{
	return sums->launches + sums->graph_launches;
}

static uint32_t doubt_of_launches(const struct gpu_sums *sums)
{
	return sums->is_scaled ? GPU_DOUBT_SCALED : 0;
}

/* ---- rules ---- */

/* What rules look at; some say only what else is so. */
#define SHARE_AT_LEAST(limit) GPU_UNIT_SHARE, GPU_AT_LEAST, limit
static const struct gpu_figure
	sync_share = {"sync_wait_share", "of the launching thread's time in synchronisations", 0,
		      SHARE_AT_LEAST(GPU_SYNC_SHARE)},
	sync_launches = {"launches_per_sync",
			 "launches for each of them",
			 0,
			 GPU_UNIT_NUMBER,
			 GPU_AT_MOST,
			 GPU_SYNC_LAUNCHES},
	sync_count = {"syncs", "synchronisations", 0, GPU_UNIT_NUMBER, GPU_NO_LIMIT, NAN},
	labelled = {"labelled_share", "of the launching thread's time with a label gpu", 0,
		    SHARE_AT_LEAST(GPU_LABELLED_SHARE)},
	drained = {"drained_share", "of the launching thread's time with nothing queued", 0,
		   SHARE_AT_LEAST(GPU_STARVED_SHARE)},
	launch_rate = {"launches_per_s", "launches a second", 0,
		       GPU_UNIT_RATE,	 GPU_AT_LEAST,	      GPU_LAUNCH_RATE},
	on_cpu = {"cpu_share", "of the launching thread's time on the CPU or ready to run", 0,
		  SHARE_AT_LEAST(GPU_LAUNCH_CPU_SHARE)},
	median_sync = {"median_sync_ns",
		       "in the median synchronisation",
		       0,
		       GPU_UNIT_NS,
		       GPU_AT_MOST,
		       GPU_LAUNCH_WAIT_NS},
	launch_cpu = {"launch_cpu_share",
		      "of it in calls that launch",
		      0,
		      GPU_UNIT_SHARE,
		      GPU_NO_LIMIT,
		      NAN},
	copy_share = {"sync_copy_share", "of the launching thread's time in synchronous copies", 0,
		      SHARE_AT_LEAST(GPU_COPY_SHARE)},
	copy_rate = {"copies_per_s", "copies a second", 0,
		     GPU_UNIT_RATE,  GPU_AT_LEAST,	GPU_TINY_RATE},
	median_copy = {"median_bytes", "in the median copy", 0, GPU_UNIT_BYTES,
		       GPU_BELOW,      GPU_TINY_BYTES},
	alloc_rate = {"allocations_per_s",
		      "allocations and frees a second",
		      0,
		      GPU_UNIT_RATE,
		      GPU_ABOVE,
		      GPU_ALLOC_RATE},
	graph_count = {"graph_launches", "launches of graphs", 0, GPU_UNIT_NUMBER, GPU_AT_MOST, 0},
	graph_size = {"launches_per_sync",
		      "launches for each synchronisation",
		      0,
		      GPU_UNIT_NUMBER,
		      GPU_AT_LEAST,
		      GPU_GRAPH_LAUNCHES},
	graph_spread = {"spread",
			"times as many in the window with most of them as in that with least",
			0,
			GPU_UNIT_NUMBER,
			GPU_AT_MOST,
			GPU_GRAPH_SPREAD},
	utilization_share = {"utilization", "of the time some kernel ran", 0,
			     SHARE_AT_LEAST(GPU_SMS_UTILIZATION)},
	sms_share = {"sm_active",  "of the multiprocessors busy", 0, GPU_UNIT_SHARE, GPU_AT_MOST,
		     GPU_SMS_SHARE},
	warps_share = {
		"sm_occupancy", "of the warps they have room for", 0, GPU_UNIT_SHARE, GPU_AT_MOST,
		GPU_SMS_SHARE};

static void judge_sync(const struct gpu_sums *sums, struct gpu_finding *finding)
{
	const bool is_long = holds(finding, &sync_share, ratio(sums->sync_wait_ns, sums->wall_ns));
	const bool is_often = holds(finding, &sync_launches, ratio(launched(sums), sums->syncs));

	(void)holds(finding, &sync_count, sums->syncs);
	finding->lost_ns = sums->sync_wait_ns;
	finding->doubts |= doubt_of_launches(sums);
	conclude(finding, sums->syncs > 0 && is_long && is_often);
}

static void judge_starved(const struct gpu_sums *sums, struct gpu_finding *finding)
{
	double drained_ns = 0;
	bool is_long;

	for (unsigned int i = 0; i < GPU_PARTS; i++)
		drained_ns += sums->drained_ns[i];
	finding->lost_ns = drained_ns;
	if (!sums->has_cpu) {
		refuse(finding, "no samples of kind cpu are beside it");
		return;
	}
	if (sums->seen_ns <= 0) {
		refuse(finding, "the launching thread has no samples");
		return;
	}
	if (!holds(finding, &labelled, ratio(sums->labelled_ns, sums->seen_ns))) {
		refuse(finding, "most of the launching thread's time has no label gpu");
		return;
	}
	is_long = holds(finding, &drained, ratio(drained_ns, sums->seen_ns));
	for (unsigned int i = 0; i < GPU_PARTS; i++)
		if (sums->drained_ns[i] > 0)
			(void)holds(finding,
				    &(struct gpu_figure){"meanwhile", gpu_part_name(i), 0,
							 GPU_UNIT_SHARE, GPU_NO_LIMIT, NAN},
				    ratio(sums->drained_ns[i], drained_ns));
	finding->doubts |= sums->has_waits ? 0 : GPU_DOUBT_NO_WAITS;
	conclude(finding, is_long);
}

static void judge_launch(const struct gpu_sums *sums, struct gpu_finding *finding)
{
	const double lived_ns = sums->has_waits ? sums->seen_ns : sums->wall_ns;
	bool is_on_cpu, is_short;

	finding->doubts |= doubt_of_launches(sums);
	finding->lost_ns = sums->has_cpu ? sums->cpu_ns + sums->ready_ns : NAN;
	if (!holds(finding, &launch_rate, NS * ratio(launch_calls(sums), sums->wall_ns))) {
		conclude(finding, false);
		return;
	}
	if (!sums->has_cpu) {
		refuse(finding, "no samples of kind cpu are beside it");
		return;
	}
	is_on_cpu = holds(finding, &on_cpu, ratio(sums->cpu_ns + sums->ready_ns, lived_ns));
	if (is_on_cpu && (sums->syncs <= 0 || isnan(sums->median_wait_ns))) {
		refuse(finding, "without synchronisations nothing tells how much was queued");
		return;
	}
	is_short = sums->syncs > 0 && holds(finding, &median_sync, sums->median_wait_ns);
	(void)holds(finding, &launch_cpu, ratio(sums->launch_cpu_ns, lived_ns));
	conclude(finding, is_on_cpu && is_short);
}

static void judge_copy(const struct gpu_sums *sums, struct gpu_finding *finding)
{
	finding->lost_ns = sums->copy_wait_ns;
	conclude(finding, holds(finding, &copy_share, ratio(sums->copy_wait_ns, sums->wall_ns)));
}

static void judge_tiny(const struct gpu_sums *sums, struct gpu_finding *finding)
{
	const bool is_often = holds(finding, &copy_rate, NS * ratio(sums->copies, sums->wall_ns));
	const double lost_ns = fmax(sums->copy_wait_ns, sums->copy_cpu_ns);

	finding->lost_ns = lost_ns > 0 || sums->has_cpu ? lost_ns : NAN;
	conclude(finding, sums->copies > 0 &&
				  holds(finding, &median_copy, sums->copy_median_bytes) &&
				  is_often);
}

static void judge_alloc(const struct gpu_sums *sums, struct gpu_finding *finding)
{
	finding->lost_ns = sums->alloc_host_ns;
	if (sums->alloc_wall_ns >= sums->wall_ns)
		finding->doubts |= GPU_DOUBT_FIRST_MINUTE;
	conclude(finding,
		 holds(finding, &alloc_rate, NS * ratio(sums->allocs, sums->alloc_wall_ns)));
}

static void judge_graph(const struct gpu_sums *sums, struct gpu_finding *finding)
{
	const bool has_graphs = sums->captured > 0 || sums->graph_launches > 0 || sums->nodes > 0;
	bool is_long, repeats = true;

	finding->doubts |= doubt_of_launches(sums);
	finding->lost_ns = sums->has_cpu ? sums->launch_cpu_ns : NAN;
	if (has_graphs) {
		(void)holds(finding, &graph_count, sums->graph_launches);
		conclude(finding, false);
		return;
	}
	if (sums->syncs <= 0 && launched(sums) >= GPU_GRAPH_LAUNCHES) {
		refuse(finding, "without synchronisations nothing tells what repeats");
		return;
	}
	is_long = holds(finding, &graph_size, ratio(launched(sums), sums->syncs));
	if (sums->windows_with_syncs > 1)
		repeats = holds(finding, &graph_spread,
				ratio(sums->launches_per_sync_max, sums->launches_per_sync_min));
	else
		finding->doubts |= GPU_DOUBT_ONE_WINDOW;
	conclude(finding, sums->syncs > 0 && is_long && repeats);
}

/* ---- all of them ---- */

static double most_lost(const struct gpu_finding *finding)
{
	return finding->verdict != GPU_FOUND ? 0 : isnan(finding->lost_ns) ? -1 : finding->lost_ns;
}

static int compare_findings(const void *left, const void *right)
{
	static const int rank[] = {[GPU_FOUND] = 0, [GPU_NOT_FOUND] = 1, [GPU_NOT_KNOWN] = 2};
	const struct gpu_finding *a = left, *b = right;

	return ORDER(rank[a->verdict], rank[b->verdict])
		       ?: ORDER(most_lost(b), most_lost(a)) ?: ORDER(a->id, b->id);
}

void gpu_findings_judge(const struct gpu_sums *sums,
			struct gpu_finding finding[GPU_PROCESS_FINDINGS])
{
	static void (*const judge[])(const struct gpu_sums *, struct gpu_finding *) = {
		[GPU_FINDING_SYNC] = judge_sync,     [GPU_FINDING_STARVED] = judge_starved,
		[GPU_FINDING_LAUNCH] = judge_launch, [GPU_FINDING_COPY] = judge_copy,
		[GPU_FINDING_TINY] = judge_tiny,     [GPU_FINDING_ALLOC] = judge_alloc,
		[GPU_FINDING_GRAPH] = judge_graph,
	};

	for (unsigned int i = 0; i < GPU_PROCESS_FINDINGS; i++) {
		finding[i] = (struct gpu_finding){.id = i, .lost_ns = NAN};
		judge[i](sums, &finding[i]);
	}
	qsort(finding, GPU_PROCESS_FINDINGS, sizeof(finding[0]), compare_findings);
}

void gpu_findings_judge_sms(double utilization, double active, double occupancy,
			    struct gpu_finding *ret_finding)
{
	struct gpu_finding finding = {.id = GPU_FINDING_SMS, .lost_ns = NAN};
	bool is_busy = false, is_narrow = false;

	if (!isnan(utilization))
		is_busy = holds(&finding, &utilization_share, utilization);
	if (!isnan(active))
		is_narrow = holds(&finding, &sms_share, active);
	if (!isnan(occupancy))
		is_narrow |= holds(&finding, &warps_share, occupancy);
	if (isnan(utilization) || (isnan(active) && isnan(occupancy)))
		refuse(&finding, "the gauges are not in it, or the GPU does not have them");
	else
		conclude(&finding, is_busy && is_narrow);
	*ret_finding = finding;
}
