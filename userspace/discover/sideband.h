/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports executable mappings about 0.1 ms after they appear, from the kernel's perf side-band: one
 * dummy perf event per CPU with mmap2.  The process lifecycle, and the moment when execve replaces
 * the address space, come from BPF (bpf/watch_process.bpf.c).  No global state; one thread.  What
 * it needs: child/perf_opener.h.  Pids are those of the pid namespace of who opens the events,
 * which must be the host's. */
#ifndef DISCOVER_SIDEBAND_H
#define DISCOVER_SIDEBAND_H

#include <linux/perf_event.h>

#include "base/cleanup.h"
#include "child/perf_opener.h"
#include "discover/mapping_set.h"
#include "discover/process.h"

enum sideband_kind {
	/* not of interest: a mapping that is not executable */
	SIDEBAND_OTHER = 0,
	SIDEBAND_MAPPING,
	SIDEBAND_LOST,
};

struct sideband_record {
	enum sideband_kind kind;
	uint32_t tgid;
	uint64_t time_ns;	/* CLOCK_MONOTONIC; also in mapping.time_ns */
	uint64_t lost_count;	/* number of lost records, of SIDEBAND_LOST */
	struct mapping mapping; /* path points into this struct, so do not copy it */
	char path[MAPPING_PATH_MAX_BYTES];
};

/* Parses a record: `size` bytes that begin with its header, which states the same size. Returns 0;
 * -EBADMSG. */
int sideband_record_parse(const void *bytes, size_t size, struct sideband_record *ret_record);

/* Returns when the record was written, without parsing the rest; 0 when the record is too short. */
uint64_t sideband_record_time(const void *bytes, size_t size);

#define SIDEBAND_RING_BYTES 65536U /* per CPU; room for 500 mappings and more */

struct sideband_options {
	size_t ring_bytes;	    /* a power of two of at least a page; 0: SIDEBAND_RING_BYTES */
	struct perf_opener *opener; /* borrowed; NULL: the calling process opens the events */
};

struct sideband_handlers {
	void *context;
	/* The path is valid until the handler returns. */
	void (*mapping)(void *context, uint32_t tgid, const struct mapping *mapping);
	/* Records were lost, of processes that are not known: read /proc again. */
	void (*lost)(void *context, uint32_t cpu, uint64_t count);
};

struct sideband_stats {
	uint64_t records;
	uint64_t lost; /* dropped by the kernel, because the ring was full */
	uint64_t bad;  /* did not parse; a corrupt ring counts once and is emptied */
	uint32_t cpus;
};

struct sideband;
/* Opens the side-band of all online CPUs. options may be NULL. Returns 0; -EACCES, -EPERM: not
 * allowed; -errno. */
int sideband_open(const struct sideband_options *options, struct sideband **ret_sideband);
void sideband_free(struct sideband *sideband);
DEFINE_OWNED(struct sideband, sideband)

/* Returns a descriptor for epoll or poll that is readable when there are records; borrowed. */
int sideband_fd(const struct sideband *sideband);

/* The two halves of sideband_read(), for merging by time with another source: collect takes the
 * records from the rings, deliver calls back for records up to until_ns and keeps the rest. */
int sideband_collect(struct sideband *sideband);
void sideband_deliver(struct sideband *sideband, uint64_t until_ns,
		      const struct sideband_handlers *handlers);

/* CPU hotplug. An event does not survive when its CPU goes offline: remove the CPU then, and add it
 * when it is back. Records left in the ring of a removed CPU are collected first. Return 0; -EEXIST
 * or -ENOENT; -ENODEV: the CPU is offline; -errno. */
int sideband_add_cpu(struct sideband *sideband, uint32_t cpu);
int sideband_remove_cpu(struct sideband *sideband, uint32_t cpu);

void sideband_get_stats(const struct sideband *sideband, struct sideband_stats *ret_stats);

#endif
