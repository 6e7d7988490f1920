/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which samples of a profile a selection takes. */
#ifndef QUERY_MATCH_H
#define QUERY_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "query/select.h"

/* Release with match_release().  Begin with {.select = ...}, for one profile. */
struct match {
	const struct select *select; /* borrowed */
	uint8_t *focus, *ignore;     /* by string of the profile: whether it matches */
	size_t focus_count, ignore_count;
};

void match_release(struct match *match);
/* Return whether a selection looks at labels; at stacks. */
bool match_asks_labels(const struct select *select);
bool match_asks_stacks(const struct select *select);
/* Returns whether a sample's labels are selected.  context: the struct match; for
 * profile_read_options.wants_labels. */
bool match_labels(void *context, const struct intern *strings, const struct profile_label *label,
		  size_t label_count);
/* Returns whether a stack is selected; for profile_read_options.wants_stack.  Without memory to
 * remember by, it is not. */
bool match_stack(void *context, const struct profile *profile, uint32_t stack);

#endif
