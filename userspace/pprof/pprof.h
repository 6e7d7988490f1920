/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile as pprof has it. */
#ifndef PPROF_PPROF_H
#define PPROF_PPROF_H

#include <stddef.h>

struct profile;

/* gzip'd pprof bytes (profile.proto of google/pprof), heap. 0, -ENOMEM. */
int profile_encode_pprof(const struct profile *profile, void **ret_bytes, size_t *ret_size);

#endif
