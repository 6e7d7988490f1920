/* SPDX-License-Identifier: BSD-2-Clause */
/* What pyprofd --doctor says of probes: what the kernel has for them, what a hit costs here, and
 * which of CPython's own probes an interpreter file has. */
#ifndef DOCTOR_DOCTOR_PROBES_H
#define DOCTOR_DOCTOR_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "doctor/findings.h"
#include "elf/probe_sites.h"
#include "probes/probe_calibration.h"

struct foreign;
struct foreign_file;

/* X(id, name, more than one has to be there: names of the probes).  Include/pydtrace.d of CPython
 * 3.6 to 3.15; from 3.12 on there are no probes of lines, and
 * 3.12 to 3.14 have none of functions. */
#define DOCTOR_PROBES(X)                                                                           \
	X(GC, "gc", "gc__start", "gc__done")                                                       \
	X(IMPORT, "import", "import__find__load__start", "import__find__load__done")               \
	X(FUNCTIONS, "function entry and return", "function__entry", "function__return")           \
	X(LINE, "line", "line", "line")
#define DOCTOR_PROBE_ENUM(id, ...) DOCTOR_PROBE_##id,
enum doctor_probe { DOCTOR_PROBES(DOCTOR_PROBE_ENUM) DOCTOR_PROBE_KINDS };

/* The probes of one interpreter file. */
struct doctor_file_probes {
	int err; /* of the question; not 0: nothing is known */
	struct {
		bool is_there;
		uint8_t begin_cost, end_cost; /* enum probe_cost, of the dearest site */
	} of[DOCTOR_PROBE_KINDS];
};

/* Adds a line about the kernel and the prices of hits, which it measures if it may.  Returns the
 * prices, else typical ones. */
struct probe_prices doctor_probes_kernel(struct findings *findings, bool may_look);

/* Asks the child that parses files. */
void doctor_probes_ask(struct foreign *foreign, const struct foreign_file *file,
		       struct doctor_file_probes *ret_probes);
/* Takes over what the child has found. */
void doctor_probes_take(const struct probe_sites *sites, struct doctor_file_probes *ret_probes);
/* Adds a line about the file of a CPython 3.`minor`; path is clean. */
void doctor_probes_tell(struct findings *findings, const char *path, uint32_t minor,
			const struct doctor_file_probes *probes, const struct probe_prices *prices);

#endif
