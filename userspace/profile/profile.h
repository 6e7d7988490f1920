/* SPDX-License-Identifier: BSD-2-Clause */
/* The counted, named stacks of one kind in one window.  The agent's loop builds it; whoever
 * encodes and drops it has it alone, with its strings. */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "symbolize/frame.h"

#define PROFILE_MAX_VALUES 32U /* a kind's own, and those of all records behind them */
#define PROFILE_MAX_LABELS 32U

struct profile_value_type {
	const char *type; /* "samples", "cpu": never with '-' (collectors.md section 4) */
	const char *unit; /* "count", "nanoseconds" */
};

struct profile_label {
	const char *key; /* static string */
	uint32_t string; /* intern id, used when is_number is 0 */
	int64_t number;
	uint8_t is_number;
	const char *unit; /* static string, of a number; NULL: none */
};

struct profile_sample {
	const struct frame *frame; /* leaf first, borrowed for the call */
	size_t frame_count;
	int64_t value[PROFILE_MAX_VALUES];
	struct profile_label label[PROFILE_MAX_LABELS];
	size_t label_count;
};

/* The label of what `go tool pprof -diff_base` has taken away. */
#define PROFILE_BASE_LABEL "pprof::base"

/* Magnitudes of the values that are shown, as samples had them, where they have both signs. */
struct profile_signs {
	int64_t all, base; /* base: of what is negative and has the label */
	bool has_negative;
};

struct profile;

struct profile_options {
	/* a literal, [a-z0-9_]{1,32}, such as "cpu": the last part of the file name */
	const char *kind;
	struct profile_value_type value_type[PROFILE_MAX_VALUES];
	size_t value_count;
	const char *default_value_type;
	struct profile_value_type period_type;
	int64_t period;
	uint64_t start_wall_ns, duration_ns;
};

/* Creates a profile.  strings: the table that all frames and labels refer to; borrowed, must
 * outlive the profile. */
int profile_new(const struct profile_options *options, struct intern *strings,
		struct profile **ret_profile);
void profile_free(struct profile *profile);
/* Returns how many bytes of memory the profile takes, without its strings. */
size_t profile_bytes(const struct profile *profile);
DEFINE_OWNED(struct profile, profile)
void profile_set_duration(struct profile *profile, uint64_t duration_ns);
/* Returns the literal of profile_options.kind, which outlives the profile. */
const char *profile_kind(const struct profile *profile);

/* Adds a module and returns its index, >= 1, for frames to refer to; equal modules get the same
 * index. */
int profile_add_module(struct profile *profile, const struct module *module, uint32_t *ret_index);
/* Returns NULL when no module has that index. */
const struct module *profile_module(const struct profile *profile, uint32_t index);
/* Adds values to the row with the same frames and labels.  Returns 0 or -ENOMEM. */
int profile_add(struct profile *profile, const struct profile_sample *sample);
/* Gives all samples, those that are there and those to come, further values behind the others, of
 * 0.  Returns 0; -ENOMEM; -E2BIG: above PROFILE_MAX_VALUES. */
int profile_add_values(struct profile *profile, const struct profile_value_type *type,
		       size_t count);
/* Adds a line to pprof's comments. */
int profile_add_comment(struct profile *profile, const char *comment);
size_t profile_sample_count(const struct profile *profile);

/* profile_add() in steps, for a decoder that reads each frame, stack and label set of a file once.
 * Ids count from 0.  All return 0 or -ENOMEM; for a stack also -E2BIG, see stack_table.h. */
int profile_add_location(struct profile *profile, const struct frame *frame, uint32_t *ret_id);
int profile_add_stack(struct profile *profile, const uint32_t *location, size_t count,
		      uint32_t *ret_id);
int profile_add_label_set(struct profile *profile, const struct profile_label *label, size_t count,
			  uint32_t *ret_id);
/* Adds options.value_count values to a row.  Does not update the modules' weights. */
int profile_add_row(struct profile *profile, uint32_t stack, uint32_t label_set,
		    const int64_t *value, uint32_t *ret_row);
/* Computes the modules' weights again from all rows.  profile_encode_pprof() leaves out modules
 * without a frame. */
void profile_weigh_modules(struct profile *profile);
/* Orders the rows of a complete profile, so that what is alike lies together in its file: by stack,
 * then by their labels other than the numbers with the key `last`, and then by these.  No row can
 * be added afterwards.  Returns 0 or -ENOMEM. */
int profile_order_rows(struct profile *profile, const char *last);

#endif
