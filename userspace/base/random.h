/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers of the kernel, for what nobody may foresee and for what is to come by chance.
 * Where a failure matters (a session, the name of a file) getrandom() itself is asked. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>
#include <sys/random.h>

/* Returns a random number; 0 where the kernel gives none.  It waits until the kernel has random
 * bytes, which it has from its start on. */
static inline uint64_t random_number(void)
{
	uint64_t number = 0;

	(void)!getrandom(&number, sizeof(number), 0);
	return number;
}

#endif
