/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines of pyprofd --doctor, and who adds them; for this directory alone. */
#ifndef DOCTOR_FINDINGS_H
#define DOCTOR_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "config/config.h"
#include "elf/probe_sites.h"
#include "probes/probe_calibration.h"

struct foreign;
struct foreign_file;

enum finding { FINDING_OK, FINDING_WARN, FINDING_FAIL };

struct findings {
	FILE *out;	  /* borrowed */
	bool has_colours; /* the states are coloured */
	unsigned int count[FINDING_FAIL + 1];
};

/* Prints "fail  NAME  TEXT", and counts it.  "" as the text: the name says all. */
__attribute__((format(printf, 4, 5))) void findings_add(struct findings *findings,
							enum finding finding, const char *name,
							const char *format, ...);

/* ---- doctor_sinks.c: whether what [http] and [push NAME] name is there ---- */

/* Adds a line for each file with secrets or certificates, and one for each collector: its name is
 * looked up and a connection is made, within some seconds; nothing is sent.  What needs TLS (dates
 * and names in certificates) pyprofd-serve finds out. */
void doctor_sinks(struct findings *findings, const struct config *config);

/* ---- doctor_pythons.c: interpreters that run on this host, and probes ---- */

/* Adds two lines for each interpreter file that a process maps: its version, its processes and what
 * the self-test says of one of them; its probes and what a hit of each costs.  Other processes'
 * memory is read, and files are parsed, by children (child_program: as for doctor_run()). */
void doctor_pythons(struct findings *findings, const char *child_program,
		    const struct probe_prices *prices);

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
