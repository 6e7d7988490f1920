/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives symbolize/ the names of functions: from files, the kernel and JITs. */
#ifndef AGENT_NAMING_H
#define AGENT_NAMING_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/stops.h>

#include "base/slice.h"

struct intern;
struct modules;
struct naming;
struct services;
struct symbolizer;

/* services: its options, files, contexts, processes, dictionary and foreign. */
int naming_new(const struct services *services, struct naming **ret_naming);
void naming_free(struct naming *naming);
/* Reads the kernel's names until the slice is over, if they are not there.  All of it takes 60 to
 * 80 ms, which the end of a window is spared. */
void naming_prepare(struct naming *naming, const struct slice *slice);
/* Sets the losses of naming: perf_maps_refused, of which the log has each reason once;
 * files_refused and files_unopened, for their rows or for their names; symbols_refused; and
 * codes_refused, which are those that were given up, and for each naming_begin() those about which
 * the child could not be asked. */
void naming_count(const struct naming *naming, uint64_t loss[PP_LOSS_COUNT]);
/* Names the functions of these files (bits as in dictionary_note_files()) that stacks refer to, and
 * keeps the names: the files are about to be closed, and may be gone when the window ends.  Goes on
 * until the slice is over, with one file at least, and clears the bits of those that it has not
 * come to.  Returns whether there are such. */
bool naming_keep(struct naming *naming, uint64_t *files, const struct slice *slice);
struct naming_options {
	struct intern *strings; /* that names go into; borrowed */
	bool no_native;		/* as --frames without native; either is enough */
	/* Numbers the modules of frames; borrowed, and the same one in all calls.  NULL: a frame's
	 * module is the slot of its file. */
	struct modules *modules;
};
/* Makes a symbolizer for the stacks in the dictionary.  Names in the kernel and in JIT code are
 * those of now. Returns 0 or -ENOMEM. */
int naming_begin(struct naming *naming, const struct naming_options *options,
		 struct symbolizer **ret_symbolizer);

#endif
