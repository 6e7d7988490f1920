/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of the places at which probes are attached: sites[] of the kernel side has PP_SITES_MAX.
 * The numbers of a file that is gone are used again, the longest free first: its links are taken
 * off beside the loop, and a late hit must not count for another file.  No global state. */
#ifndef PROBES_SITE_NUMBERS_H
#define PROBES_SITE_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include <pyprofd/probe.h>

#include "base/user_quota.h"

struct site_numbers {
	struct user_quota quota;    /* numbers in use, by whose files have them */
	uint32_t used;		    /* 1 .. used have been given out at least once */
	uint32_t first, free_count; /* of `free`, a ring */
	uint32_t free[PP_SITES_MAX];
};

/* A zeroed one is none. */
void site_numbers_init(struct site_numbers *numbers);
void site_numbers_release(struct site_numbers *numbers);

/* Returns a number from 1 to PP_SITES_MAX - 1; 0: all are in use, or the user has as many as are
 * left for all others, which is counted. */
uint32_t site_numbers_take(struct site_numbers *numbers, uint32_t uid);
/* Gives back one that was taken for the user. */
void site_numbers_give(struct site_numbers *numbers, uint32_t uid, uint32_t number);

#endif
