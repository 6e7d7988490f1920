/* SPDX-License-Identifier: BSD-2-Clause */
/* Encodes a profile as pprof. */
#ifndef PPROF_PPROF_H
#define PPROF_PPROF_H

#include <stddef.h>

struct profile;

/* Encodes a profile as gzip'd pprof (profile.proto of google/pprof), on the heap.  Returns 0 or
 * -ENOMEM. */
int profile_encode_pprof(const struct profile *profile, void **ret_bytes, size_t *ret_size);
/* Takes some four times the time for a smaller file. */
int profile_encode_pprof_small(const struct profile *profile, void **ret_bytes, size_t *ret_size);

#endif
