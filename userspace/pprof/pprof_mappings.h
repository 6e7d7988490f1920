/* SPDX-License-Identifier: BSD-2-Clause */
/* Orders a profile's modules as pprof mappings.  Every location gets a mapping that says
 * "symbolized". For a location without one, Pyroscope makes up an unsymbolized mapping, and then
 * looks for symbols itself (grafana/pyroscope, pkg/pprof and pkg/symbolizer).  So frames without a
 * file have mappings too, with a name in brackets. */
#ifndef PPROF_PPROF_MAPPINGS_H
#define PPROF_PPROF_MAPPINGS_H

#include "profile/profile_data.h"

#define FRAME_KINDS (FRAME_MARKER + 1)

/* Release with pprof_mappings_release(), even when pprof_mappings_init() failed. */
struct pprof_mappings {
	const struct profile *profile; /* borrowed */
	uint32_t *entry; /* mapping id - 1 -> module of the interface, or ENTRY_OF_KIND + kind */
	uint32_t count;
	uint32_t *module_id;	       /* the reverse; 0: the module is in no stack */
	uint32_t kind_id[FRAME_KINDS]; /* of frames without a module; 0: there are none */
};

int pprof_mappings_init(struct pprof_mappings *mappings, const struct profile *profile);
void pprof_mappings_release(struct pprof_mappings *mappings);
/* Returns the mapping id of a frame of the profile, never 0. */
uint32_t pprof_mappings_id(const struct pprof_mappings *mappings, const struct frame *frame);
/* Returns the name of the mapping with id index + 1, where it is one of frames without a file; NULL
 * and its module for all others. */
const char *pprof_mappings_get(const struct pprof_mappings *mappings, uint32_t index,
			       const struct module **ret_module);

#endif
