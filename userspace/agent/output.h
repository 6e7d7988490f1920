/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes profiles into a store, one file a window and kind, or into one file of the one kind that
 * the options then allow.  When the disk is full, a bounded number of profiles is kept and tried
 * again. */
#ifndef AGENT_OUTPUT_H
#define AGENT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "options/options.h"
#include "profile/profile.h"

struct output;
/* Opens the store, or checks the file, and takes its lock; prints one line when that fails.
 * Returns 0 or -errno. */
int output_open(const struct options *options, struct output **ret_output);
void output_free(struct output *output);
DEFINE_OWNED(struct output, output)
/* Returns whom a file will belong to: under sudo the user who called it; -1: the user who runs
 * pyprofd. */
void output_owner(uid_t *ret_uid, gid_t *ret_gid);
/* Returns whether each window is a profile of its own: a file a kind, or nothing (--output no). */
bool output_is_store(const struct output *output);
/* Encodes a profile and writes it under its kind; the profile is not needed afterwards.  A full
 * disk is an error only at the end (is_last); before, the bytes are kept and a warning is printed
 * once, and again for each doubling of the profiles that had to be dropped. Returns 0 or -errno. */
int output_write(struct output *output, const struct profile *profile, uint64_t start_wall_ns,
		 uint64_t duration_ns, bool is_last);
/* Tries to write the profiles that were kept. */
void output_retry(struct output *output);
/* Returns how many profiles were dropped because too many were waiting. */
uint64_t output_dropped(const struct output *output);

#endif
