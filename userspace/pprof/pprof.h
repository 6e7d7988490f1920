/* SPDX-License-Identifier: BSD-2-Clause */
/* Encodes a profile as pprof, or as folded text. */
#ifndef PPROF_PPROF_H
#define PPROF_PPROF_H

#include <stddef.h>

struct profile;

/* Encodes a profile as gzip'd pprof (profile.proto of google/pprof), on the heap.  Returns 0 or
 * -ENOMEM. */
int profile_encode_pprof(const struct profile *profile, void **ret_bytes, size_t *ret_size);
/* Takes some four times the time for a smaller file. */
int profile_encode_pprof_small(const struct profile *profile, void **ret_bytes, size_t *ret_size);

/* ---- folded text ---- */

/* Encodes one line per stack, root first: `process PID: comm;thread TID: name;frame;... count`.
 * Python frames are `name (file.py:12)`, native `sym (module)`, kernel `sym_[k]`; ';' and newlines
 * in names become ':' and ' '.  The count is the first value. */
int profile_encode_folded(const struct profile *profile, char **ret_text, size_t *ret_size);
/* Encodes a profile with another value as the count. */
int profile_encode_folded_value(const struct profile *profile, unsigned int value_index,
				char **ret_text, size_t *ret_size);

#endif
