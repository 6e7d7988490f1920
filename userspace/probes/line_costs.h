/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures what hits of the probes of exact lines cost, on a site of our own (own_sites.h). */
#ifndef PROBES_LINE_COSTS_H
#define PROBES_LINE_COSTS_H

#include <pyprofd/lines.h>

struct calls_side;

/* Takes some milliseconds.  Uses site 0, which is unused again after it, and leaves no row.
 * Returns 0; -errno: the kernel refused the link. */
int line_costs_measure(struct calls_side *side, struct pp_line_costs *ret_costs);

#endif
