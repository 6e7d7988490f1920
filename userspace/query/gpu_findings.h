/* SPDX-License-Identifier: BSD-2-Clause */
/* Judges by sums of what one process did whether the host is why its GPU is slow, and how.  Pure:
 * from figures to findings; what they are of and how they are shown is the caller's. */
#ifndef QUERY_GPU_FINDINGS_H
#define QUERY_GPU_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/wait.h>

/* Where a finding begins.  Source, where nothing else is said: docs/gpu.md, "Why is it slow". */
#define GPU_SYNC_SHARE 0.20	  /* of the recorded time */
#define GPU_SYNC_LAUNCHES 50.0	  /* at most so many for one synchronisation */
#define GPU_STARVED_SHARE 0.15	  /* of the launching thread's time */
#define GPU_LABELLED_SHARE 0.50	  /* of that, with a label: below it the label tells nothing */
#define GPU_LAUNCH_RATE 5000.0	  /* a second */
#define GPU_LAUNCH_CPU_SHARE 0.90 /* of the launching thread's time, running or ready */
/* The median synchronisation: with a launch each 200 us or less, nothing was queued to speak of. */
#define GPU_LAUNCH_WAIT_NS 50000.0
#define GPU_COPY_SHARE 0.05			/* of the recorded time, in synchronous copies */
#define GPU_TINY_RATE 100.0			/* a second */
#define GPU_TINY_BYTES 4096.0			/* the median copy is smaller */
#define GPU_ALLOC_RATE 10.0			/* more a second; a caching allocator is quiet */
#define GPU_ALLOC_AFTER_NS (60 * 1000000000ULL) /* before that it fills its cache */
#define GPU_GRAPH_LAUNCHES 500.0		/* from one synchronisation to the next */
#define GPU_GRAPH_SPREAD 1.2 /* the most of it in a window over the least: it repeats */

#define GPU_SMS_UTILIZATION 0.90 /* some kernel ran for so much of the time ... */
#define GPU_SMS_SHARE 0.30	 /* ... on so few multiprocessors, or with so few warps */

/* X(id, name in JSON, name for people) */
#define GPU_FINDINGS(X)                                                                            \
	X(SYNC, "sync_bound", "sync-bound")                                                        \
	X(STARVED, "starved", "starved")                                                           \
	X(LAUNCH, "launch_bound", "launch-bound")                                                  \
	X(COPY, "copy_bound", "copy-bound")                                                        \
	X(TINY, "tiny_copies", "tiny copies")                                                      \
	X(ALLOC, "allocation_churn", "allocation churn")                                           \
	X(GRAPH, "graph_candidate", "graph candidate")                                             \
	X(SMS, "idle_multiprocessors", "idle multiprocessors")
#define GPU_ENUM_FINDING(id, ...) GPU_FINDING_##id,
enum gpu_finding_id {
	GPU_FINDINGS(GPU_ENUM_FINDING) GPU_FINDING_COUNT,
	GPU_PROCESS_FINDINGS = GPU_FINDING_SMS, /* the others are of a GPU */
};

/* What a thread did meanwhile: the ledger's groups (pyprofd/wait.h), of which PP_LEDGER_CPU is
 * Python on the CPU, and code that is not Python. */
#define GPU_PART_NATIVE PP_LEDGER_COUNT
#define GPU_PARTS (PP_LEDGER_COUNT + 1)

/* Of one process.  Of the launching thread are: launches, graph launches, synchronisations, waits,
 * and all that samples tell. */
struct gpu_sums {
	double wall_ns; /* recorded, from its first call to its last one */
	double launches, graph_launches;
	double captured; /* launches that a graph recorded: none of the others */
	double nodes;	 /* kernels of the graphs that were launched */
	double syncs, sync_wait_ns;
	double median_wait_ns; /* of a synchronisation; NAN: not known */
	double copy_wait_ns;
	double copies, copy_median_bytes;		     /* NAN: there are none */
	double allocs, alloc_host_ns, alloc_wall_ns;	     /* frees, too; the time they are of */
	double launches_per_sync_min, launches_per_sync_max; /* of windows with some of both */
	uint32_t windows_with_syncs;
	bool has_cpu, has_waits; /* samples on the CPU; waits off it */
	double cpu_ns;
	double ready_ns;		   /* off the CPU, and ready to run */
	double launch_cpu_ns, copy_cpu_ns; /* of it, in calls that launch; that copy */
	double seen_ns;			   /* cpu_ns and all waits */
	double labelled_ns;		   /* of it, with a label `gpu` */
	double drained_ns[GPU_PARTS];	   /* of it, with gpu=drained */
	bool is_scaled; /* launches were probed for a part of the time (docs/design/gpu.md) */
};

enum gpu_unit { GPU_UNIT_SHARE, GPU_UNIT_NUMBER, GPU_UNIT_RATE, GPU_UNIT_NS, GPU_UNIT_BYTES };
enum gpu_limit { GPU_NO_LIMIT, GPU_AT_LEAST, GPU_ABOVE, GPU_AT_MOST, GPU_BELOW };

/* One number that a finding rests on. */
struct gpu_figure {
	const char *key, *text; /* literals: in JSON; for people */
	double value;		/* a share is from 0 to 1 */
	enum gpu_unit unit;
	enum gpu_limit limit_is; /* what the value has to be for the finding */
	double limit;
};
#define GPU_FIGURES_MAX (4U + GPU_PARTS)

enum gpu_verdict { GPU_NOT_FOUND, GPU_FOUND, GPU_NOT_KNOWN };

/* What is less certain than the rule's own words say; bits. */
enum gpu_doubt {
	GPU_DOUBT_SCALED = 1,	  /* numbers of launches are estimates */
	GPU_DOUBT_ONE_WINDOW = 2, /* whether something repeats is not known */
	GPU_DOUBT_NO_WAITS = 4,	  /* what the thread did off the CPU is not recorded */
	GPU_DOUBT_FIRST_MINUTE = 8,
};

struct gpu_finding {
	enum gpu_finding_id id;
	enum gpu_verdict verdict;
	const char *missing; /* of GPU_NOT_KNOWN: a literal, what is not there; else NULL */
	double lost_ns;	     /* of the thread's time, at most; NAN: not known */
	uint32_t doubts;
	struct gpu_figure figure[GPU_FIGURES_MAX];
	unsigned int figure_count;
};

const char *gpu_finding_key(enum gpu_finding_id id);
const char *gpu_finding_name(enum gpu_finding_id id);
/* Returns what the thread did, in words: "Python on the CPU", "GIL wait". */
const char *gpu_part_name(unsigned int part);
/* Judges all rules of a process: those that apply come first, the most time lost before less, and
 * those of which it is not known last; then those that do not apply, and those that cannot be
 * judged. */
void gpu_findings_judge(const struct gpu_sums *sums,
			struct gpu_finding finding[GPU_PROCESS_FINDINGS]);
/* Judges one GPU by its gauges: shares from 0 to 1; NAN: not known. */
void gpu_findings_judge_sms(double utilization, double active, double occupancy,
			    struct gpu_finding *ret_finding);

#endif
