/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that loads the programs of probes and attaches them: the kernel verifies them for a
 * second, and takes up to 100 ms for each breakpoint that it takes out.  The loop hands over jobs
 * and collects what became of them.  A breakpoint is written to each mapping of its file, which may
 * have a million of them: who had jobs for two seconds gets a tenth of the thread's time from then
 * on (files/user_time.h). */
#ifndef PROBES_PROBE_WORKER_H
#define PROBES_PROBE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pyprofd/probe.h>

#include "attach/probe_links.h"
#include "base/cleanup.h"
#include "probes/probe_calibration.h"

#define PROBE_WORKER_WHY_BYTES 256U
#define PROBE_WORKER_NAME_BYTES 128U
#define PROBE_WORKER_WHAT_BYTES 256U

struct cuda_side;
struct kernel_side;
struct probe_side;
struct probe_worker;

/* A site's number, and what a hit of it does. */
struct probe_worker_site {
	uint32_t number;
	struct pp_site site;
	uint64_t offset, semaphore; /* struct probe_link_site */
	bool is_return;
	uint32_t group; /* of probe_groups.h */
};

/* What is attached together: all sites of a file, in all processes or in one. */
struct probe_job {
	uint32_t id;  /* not 0 */
	int file;     /* owned; -1: a tracepoint */
	pid_t pid;    /* 0: all processes */
	uint32_t uid; /* whose time it takes: who mapped the file; 0: nobody's, of root's files */
	char what[PROBE_WORKER_WHAT_BYTES];	  /* the file or tracepoint, for messages */
	char tracepoint[PROBE_WORKER_NAME_BYTES]; /* "": none */
	struct probe_worker_site *site;		  /* owned */
	size_t site_count;
	uint32_t allocator; /* the file's number in frames, when it has one; else 0 */
};

/* What hits cost beside our program. */
struct probe_worker_prices {
	struct probe_prices of;
	/* Of each allocation's end where the kernel has no sessions; else 0: it is no hit. */
	uint64_t alloc_end_ns;
};

struct probe_result {
	uint32_t id;
	int err; /* 0: it is attached */
	size_t site_count;
	uint64_t took_ns; /* attaching them, without loading programs */
	pid_t pid;	  /* of the job, as `what` */
	char what[PROBE_WORKER_WHAT_BYTES];
	char why[PROBE_WORKER_WHY_BYTES];
};

/* kernel is borrowed; blocks_max: struct probe_side_options.  Returns 0 or -ENOMEM; the thread
 * begins with the first job. */
int probe_worker_new(const struct kernel_side *kernel, uint32_t blocks_max,
		     struct probe_worker **ret_worker);
/* Takes all links off and ends the thread; NULL is ok.  Waits for it as background_wait() does;
 * returns false when the kernel holds it up for longer: it goes on to use what it owns and the
 * kernel side, which are then left to the end of the process. */
bool probe_worker_free(struct probe_worker *worker);
DEFINE_OWNED(struct probe_worker, probe_worker)

/* Takes the job over, also on failure.  Returns 0; -ENOMEM; -EAGAIN: no thread can be started. */
int probe_worker_attach(struct probe_worker *worker, struct probe_job *job);
/* Takes off what a job has attached, or will have. */
void probe_worker_detach(struct probe_worker *worker, uint32_t id);
/* Takes the next result.  Returns whether there was one. */
bool probe_worker_result(struct probe_worker *worker, struct probe_result *ret_result);
/* Returns whether all that was handed over is done. */
bool probe_worker_is_idle(struct probe_worker *worker);
/* Returns true, once a job, when one has been worked at for ten seconds: all others wait for it. */
bool probe_worker_is_late(struct probe_worker *worker, char ret_what[PROBE_WORKER_WHAT_BYTES]);
/* Returns true, once a process, with one that keeps the lock of its mappings: links come and go
 * when it lets go, for until then the kernel would let no process of the machine fork. */
bool probe_worker_tell_holder(struct probe_worker *worker, uint32_t *ret_tgid);
/* Returns true, once a user, with one whose jobs wait because the last ones took too long. */
bool probe_worker_tell_put_off(struct probe_worker *worker, uint32_t *ret_uid);
/* Makes a probe one that can be on for a part of the time; before its first job. */
void probe_worker_bound(struct probe_worker *worker, uint32_t probe, uint32_t leader);
/* The same for the launches of CUDA, whose kinds (enum pp_cuda_hit) are these probes. */
void probe_worker_bound_launches(struct probe_worker *worker, uint32_t first_probe);
/* Sets for how much of the time it is on, and what a hit takes beside our program. */
void probe_worker_set_share(struct probe_worker *worker, uint32_t probe, uint32_t share_ppm,
			    uint32_t hit_ns);
struct probe_costs {
	struct pp_hits hits[PP_PROBES_MAX];
	uint64_t on_ns[PP_PROBES_MAX]; /* time in which the probe was on */
};
/* Reads what the probes have cost.  Returns 0; -EAGAIN: nothing is loaded yet; -errno. */
int probe_worker_get_costs(struct probe_worker *worker, struct probe_costs *ret_costs);
/* Returns for how long a probe has been on by now whose hits have a bound. */
uint64_t probe_worker_on_ns(struct probe_worker *worker, uint32_t probe, uint64_t now_ns);
/* Returns what a hit costs: on this machine, once the programs of a run with bounded probes are
 * loaded, else typical prices. */
struct probe_worker_prices probe_worker_get_prices(struct probe_worker *worker);
/* Return the object of probes, and that of CUDA's functions, which the worker owns until its end;
 * NULL: nothing that needs it was found yet. */
const struct probe_side *probe_worker_side(struct probe_worker *worker);
const struct cuda_side *probe_worker_cuda(struct probe_worker *worker);

#endif
