/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile as folded text. */
#ifndef PPROF_FOLDED_H
#define PPROF_FOLDED_H

#include <stddef.h>

struct profile;

/* Folded text: one line a stack, root first: `process PID: comm;thread TID: name;frame;... count`.
 * Python frames `name (file.py:12)`, native `sym (module)`, kernel `sym_[k]`; ';' and newlines in
 * names are replaced by ':' and ' '.  Values: the first value type. */
int profile_encode_folded(const struct profile *profile, char **ret_text, size_t *ret_size);
/* ... or another one. */
int profile_encode_folded_value(const struct profile *profile, unsigned int value_index,
				char **ret_text, size_t *ret_size);

#endif
