/* SPDX-License-Identifier: BSD-2-Clause */
/* The profiles of one window, one a kind: which counters go into which, with what values. */
#ifndef AGENT_PROFILES_H
#define AGENT_PROFILES_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/sample.h>

#include "agent/options.h"
#include "agent/output.h"
#include "base/intern.h"
#include "profile/profile.h"

enum profiles_kind {
	PROFILES_CPU,	 /* samples/count, cpu/nanoseconds */
	PROFILES_OFFCPU, /* off_cpu/nanoseconds, events/count */
	PROFILES_WALL,	 /* wall/nanoseconds: both of them */
	PROFILES_GIL,	 /* gil_wait, gil_blame, gil_held, all nanoseconds */
	PROFILES_WAKER,	 /* off_cpu/nanoseconds, events/count; the waker's stack above the waiter's */
	PROFILES_COUNT,
};

struct profiles {
	struct profile *profile[PROFILES_COUNT]; /* owned; NULL: not asked for, or closed */
	bool is_open;
};

/* Bits 1 << enum profiles_kind: which kinds the options ask for. */
uint32_t profiles_kinds(const struct options *options);
/* All kinds that the options ask for, empty. */
int profiles_open(struct profiles *profiles, const struct options *options,
		  struct intern *strings, uint64_t start_wall_ns);
/* ... and of these only: bits as of profiles_kinds(). */
int profiles_open_some(struct profiles *profiles, const struct options *options, uint32_t wanted,
		       struct intern *strings, uint64_t start_wall_ns);
void profiles_close(struct profiles *profiles); /* safe on a zeroed one */

/* One of them: they have the same modules.  NULL: none is open. */
const struct profile *profiles_any(const struct profiles *profiles);
/* The same index in each. */
int profiles_add_module(struct profiles *profiles, const struct module *module,
			uint32_t *ret_index);
/* Adds one counter to the profiles of its kind; sample has frames and labels, its values are set here. */
int profiles_add(struct profiles *profiles, const struct pp_count_key *key,
		 const struct pp_count *count, struct profile_sample *sample);
int profiles_add_wake(struct profiles *profiles, const struct pp_count *count,
		      struct profile_sample *sample);
int profiles_add_comment(struct profiles *profiles, const char *comment);
int profiles_write(struct profiles *profiles, struct output *output, uint64_t start_wall_ns,
		   uint64_t duration_ns, bool is_last);

#endif
