/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes profiles into a store, one file a window and kind, or into one file of the one kind that
 * the options then allow. */
#ifndef STORE_OUTPUT_H
#define STORE_OUTPUT_H

#include <stdbool.h>
#include <sys/types.h>

#include <pyprofd/stops.h>

#include "base/cleanup.h"
#include "options/options.h"
#include "store/writer.h"

struct output;
/* Opens the store, or checks the file, and takes its lock; prints one line when that fails.
 * Returns 0 or -errno. */
int output_open(const struct options *options, struct output **ret_output);
void output_free(struct output *output);
/* From the next window on, a child merges what is old in the store (store/merger.h); without a
 * store nothing happens.  program: what the child is.  Returns 0 or -ENOMEM. */
int output_merge_by(struct output *output, const char *program);
DEFINE_OWNED(struct output, output)
/* Returns who notes what the store shall keep, which the output owns; NULL: there is no store. */
struct keeper *output_keeper(const struct output *output);
/* Returns whom a file will belong to: under sudo the user who called it; -1: the user who runs
 * pyprofd. */
void output_owner(uid_t *ret_uid, gid_t *ret_gid);
/* Returns whether each window is a profile of its own: a file a kind, or nothing (--output no). */
bool output_is_store(const struct output *output);
/* Sets profiles_dropped and merges_refused. */
void output_count(const struct output *output, uint64_t loss[PP_LOSS_COUNT]);
/* Bounds the store from the next window on; without a store it does nothing. */
void output_set_limits(struct output *output, uint64_t max_bytes, uint64_t max_age_ns);
/* Encodes the profiles of a window and writes each under its kind; takes the window over.  A thread
 * does it (store/writer.h), and the call waits only for the last window, with a bound; for standard
 * output and other descriptors the loop does it, and waits for their reader.  In a store a full
 * disk is an error only for the last window; before, a bounded number of profiles is kept and tried
 * again, and a warning is printed once, and again for each doubling of the profiles that had to be
 * dropped.  Returns 0; -errno: one file, or the last window, is not written; -ETIMEDOUT: the disk
 * does not answer. */
int output_write(struct output *output, struct writer_window *window);

#endif
