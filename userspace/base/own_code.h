/* SPDX-License-Identifier: BSD-2-Clause */
/* Where code of this program lies in the program's file. */
#ifndef BASE_OWN_CODE_H
#define BASE_OWN_CODE_H

#include <stdint.h>

/* Finds the file offset of an address in the code of this program (/proc/self/exe), not of its
 * libraries.  Returns 0; -ENOENT: the address lies in no segment of that file. */
int own_code_offset(const void *address, uint64_t *ret_offset);

#endif
