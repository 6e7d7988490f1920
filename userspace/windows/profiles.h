/* SPDX-License-Identifier: BSD-2-Clause */
/* Holds the profiles of one window, one a kind; include/pyprofd/kinds.h says which counters go into
 * which. */
#ifndef WINDOWS_PROFILES_H
#define WINDOWS_PROFILES_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/sample.h>

#include "base/intern.h"
#include "base/kinds.h"
#include "options/options.h"
#include "profile/profile.h"
#include "profile/record.h"
#include "store/output.h"

struct profiles {
	struct profile *profile[PP_PROFILE_COUNT]; /* owned; NULL: not asked for, or closed */
	bool is_open;
	struct intern *strings; /* borrowed; of all of them */
};

/* Returns which kinds the options ask for: bits 1 << enum pp_profile. */
uint32_t profiles_kinds(const struct options *options);
/* Returns what a profile of that kind has under these options, without times. */
struct profile_options profiles_options(const struct options *options, enum pp_profile kind);
/* Opens an empty profile of each kind that the options ask for.  For a store there is no wall
 * beside cpu: it is cpu and offcpu row for row, would take more than both, and the reader makes it
 * of them.  Returns 0 or -ENOMEM. */
int profiles_open(struct profiles *profiles, const struct options *options, struct intern *strings,
		  uint64_t start_wall_ns);
/* Opens only those that are also in `wanted`: bits as of profiles_kinds(). */
int profiles_open_some(struct profiles *profiles, const struct options *options, uint32_t wanted,
		       struct intern *strings, uint64_t start_wall_ns);
void profiles_close(struct profiles *profiles); /* safe on a zeroed one */

/* Returns one of the profiles, which all have the same modules; NULL: none is open. */
const struct profile *profiles_any(const struct profiles *profiles);
/* Adds a module to each profile, under the same index. */
int profiles_add_module(struct profiles *profiles, const struct module *module,
			uint32_t *ret_index);
/* Adds one counter to the profiles that its kind feeds.  sample has frames and labels; its values
 * are set here.  Returns 0 or -ENOMEM. */
int profiles_add(struct profiles *profiles, const struct pp_count_key *key,
		 const struct pp_count *count, struct profile_sample *sample);
/* Adds a row of a kind of records to the profiles that have its values. */
int profiles_add_record(struct profiles *profiles, const struct record *record);
int profiles_add_comment(struct profiles *profiles, const char *comment);
/* Hands the profiles over to be written.  window has their strings and times; it becomes empty, as
 * the profiles do.  Returns what output_write() does. */
int profiles_write(struct profiles *profiles, struct output *output, struct writer_window *window);

#endif
