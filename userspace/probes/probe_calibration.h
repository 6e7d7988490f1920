/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures what hits of user probes cost on this machine: it attaches a program to functions of our
 * own process that do nothing, and calls them some thousand times.  The price depends on the
 * instruction at the site (elf/probe_sites.h: enum probe_cost), on the kernel, and most of all on
 * the machine: a stepped instruction costs 1 us on bare metal and 16 us in some VMs. */
#ifndef PROBES_PROBE_CALIBRATION_H
#define PROBES_PROBE_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/probe_sites.h"

struct probe_prices {
	/* Of a hit, by enum probe_cost of its instruction; 0: it is too short to be measured. */
	uint64_t hit_ns[PROBE_COSTS];
	uint64_t return_ns; /* what a hit at the function's return adds to one at its entry */
	bool is_measured;   /* false: figures of another machine */
};

struct probe_calibration {
	/* Descriptor, loaded as probe_links_attach() wants it on this kernel; -1: a program that
	 * does nothing, so that the prices are those of the kernel alone. */
	int program;
	uint64_t cookie; /* of all sites */
	int locks;	 /* struct probe_links_options */
};

/* Returns prices that were measured elsewhere: a VM with Linux 6.18. */
struct probe_prices probe_prices_typical(void);

/* Measures for some tens of milliseconds of CPU time; attaching and taking off take the kernel as
 * long, or 100 ms a site where it has no uprobe_multi.  Any thread that may attach probes, one at a
 * time.  Returns 0; -ENOENT: our own file has no such functions; -EPERM, -errno: the kernel refuses
 * the program or the links. */
int probe_calibrate(const struct probe_calibration *calibration, struct probe_prices *ret_prices);

#endif
