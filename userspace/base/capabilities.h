/* SPDX-License-Identifier: BSD-2-Clause */
/* The calling thread's capabilities: capabilities(7). */
#ifndef BASE_CAPABILITIES_H
#define BASE_CAPABILITIES_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

#define CAPABILITY_BIT(capability) (UINT64_C(1) << (capability))

/* Returns whether all capabilities of a mask are effective; false also when they cannot be read. */
bool capabilities_are_held(uint64_t mask);
/* Takes away the permitted, effective and ambient capabilities that are not in `kept`, and the
 * inheritable ones that are not in `inherited`: ambient ones are both.  Adds none.  The bounding
 * set stays, so a program that root starts may have them again.  Returns 0 or -errno. */
int capabilities_keep(uint64_t kept, uint64_t inherited);

#endif
