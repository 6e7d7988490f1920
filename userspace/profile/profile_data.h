/* SPDX-License-Identifier: BSD-2-Clause */
/* The fields of struct profile, for the encoders (pprof/, export/) and views that read all of
 * it. */
#ifndef PROFILE_PROFILE_DATA_H
#define PROFILE_PROFILE_DATA_H

#include "profile/profile.h"
#include "profile/stack_table.h"

struct profile_module {
	struct module module;
	int64_t weight;	   /* sum of the first values of the samples that contain it */
	uint64_t last_add; /* number of the profile_add() that counted it last */
	uint32_t kinds;	   /* of its frames: bits 1 << enum frame_kind */
};

struct stored_label {
	int64_t value; /* a number, or an id of profile.strings */
	uint32_t key;  /* index in profile.key */
	uint32_t is_number;
};

struct label_set {
	uint32_t first, count; /* in profile.label; sorted by key */
};

struct profile_row {
	uint32_t stack, label_set;
};

struct label_key {
	const char *name, *unit; /* borrowed; unit "": none */
};

struct profile {
	struct profile_options options; /* its strings are borrowed: literals */
	struct intern *strings;		/* borrowed */
	struct stack_table stacks;
	struct profile_module *module; /* module i of the interface is module[i - 1] */
	uint32_t module_count, module_capacity;
	struct index_table module_index;
	struct label_key *key; /* distinct */
	uint32_t key_count, key_capacity;
	struct stored_label *label;
	uint32_t label_count, label_capacity;
	struct label_set *label_set;
	uint32_t label_set_count, label_set_capacity;
	struct index_table label_set_index;
	struct profile_row *row;
	uint32_t row_count, row_capacity;
	int64_t *value;	       /* options.value_count a row */
	size_t value_capacity; /* rows */
	struct index_table row_index;
	uint32_t *comment; /* ids of strings */
	uint32_t comment_count, comment_capacity;
	uint64_t add_count;
	struct profile_signs signs; /* of a profile that was read */
};

static inline const int64_t *profile_row_values(const struct profile *profile, uint32_t row)
{
	return &profile->value[(size_t)row * profile->options.value_count];
}

/* Returns the label with that name in a set, or NULL. */
const struct stored_label *profile_find_label(const struct profile *profile, uint32_t label_set,
					      const char *name);
/* Return a label's number; the id of its text.  0: there is none, or it is of the other sort. */
int64_t profile_label_number(const struct profile *profile, uint32_t label_set, const char *name);
uint32_t profile_label_text(const struct profile *profile, uint32_t label_set, const char *name);
/* Makes any label a text: numbers become strings of the profile.  Returns 0 or -ENOMEM. */
int profile_label_as_text(struct profile *profile, uint32_t label_set, const char *name,
			  uint32_t *ret_string);
/* Returns which of the values has that type and unit (NULL: any), or -ENOENT: another program may
 * have written them in another order. */
int profile_find_value(const struct profile_options *options, const char *type, const char *unit);

/* Returns what shares are of: the base's total; where nothing is the base's, that of all without
 * their signs; 0: no value is negative. */
int64_t profile_signed_whole(const struct profile *profile);

/* Returns the module of a frame of this profile, or NULL. */
static inline const struct module *profile_frame_module(const struct profile *profile,
							const struct frame *frame)
{
	if (!frame->module || frame->module > profile->module_count)
		return NULL;
	return &profile->module[frame->module - 1].module;
}

#endif
