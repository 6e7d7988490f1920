/* SPDX-License-Identifier: BSD-2-Clause */
/* Where profiles go: a store of windows, one file a window and kind, or one file for the one kind that
 * the options allow then.  Profiles that find no room are kept, bounded, and tried again. */
#ifndef AGENT_OUTPUT_H
#define AGENT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "options/options.h"
#include "profile/profile.h"

struct output;
/* Opens or checks the place and takes its lock; prints one line when it fails.  0 or -errno. */
int output_open(const struct options *options, struct output **ret_output);
void output_free(struct output *output);
DEFINE_OWNED(struct output, output)
/* Under sudo a file belongs to who asked for it; -1: to who runs this. */
void output_owner(uid_t *ret_uid, gid_t *ret_gid);
/* Whether each window is a profile of its own: a file for each kind, or nothing (--output no). */
bool output_is_store(const struct output *output);
/* Encodes, and writes under the profile's kind; the profile is not needed afterwards.  A full disk is no
 * error here while the bytes can be kept (a warning is printed once); at the end (is_last) it is.  0 or
 * -errno. */
int output_write(struct output *output, const struct profile *profile, uint64_t start_wall_ns,
		 uint64_t duration_ns, bool is_last);
/* Tries again what was kept. */
void output_retry(struct output *output);
/* Profiles given up because too many were waiting. */
uint64_t output_dropped(const struct output *output);

#endif
