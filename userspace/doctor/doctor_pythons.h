/* SPDX-License-Identifier: BSD-2-Clause */
/* Which interpreters run on this host, and whether their frames can be read. */
#ifndef DOCTOR_DOCTOR_PYTHONS_H
#define DOCTOR_DOCTOR_PYTHONS_H

#include "doctor/findings.h"

struct probe_prices;

/* Adds two lines for each interpreter file that a process maps: its version, its processes and what
 * the self-test says of one of them; its probes and what a hit of each costs.  Other processes'
 * memory is read, and files are parsed, by children (child_program: as for agent_run()). */
void doctor_pythons(struct findings *findings, const char *child_program,
		    const struct probe_prices *prices);

#endif
