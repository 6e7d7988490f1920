/* SPDX-License-Identifier: BSD-2-Clause */
/* A probe that is looked for in a file, as the agent tells the child that parses files. */
#ifndef ELF_PROBE_WANTED_H
#define ELF_PROBE_WANTED_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define PROBE_WANTED_MAX 64U
#define PROBE_NAME_MAX_BYTES 128U  /* with its NUL */
#define PROBE_NAMES_MAX_BYTES 368U /* of PROBE_WANTED_ANY_OF; the same */

enum probe_wanted_kind {
	PROBE_WANTED_USDT,     /* provider and name */
	PROBE_WANTED_FUNCTION, /* name: a symbol */
	PROBE_WANTED_ANY_OF,   /* name: symbols, a space between two of them; all that there are */
	PROBE_WANTED_KINDS
};

struct probe_wanted {
	uint32_t kind;
	uint32_t wants_nearest; /* 1: names that are near are told if it is not there */
	char provider[PROBE_NAME_MAX_BYTES]; /* "" for functions */
	char name[PROBE_NAMES_MAX_BYTES];
	/* 1: calls of the function with 0 as first argument need not hit the site.  Where the
	 * function tests for that first the site may lie behind, at an instruction that costs
	 * less. */
	uint32_t skips_null;
	/* 1: of each function also its twins NAME_ptsz and NAME_ptds, as CUDA's libraries have them
	 * for the default stream of each thread. */
	uint32_t takes_twins;
};
_Static_assert(sizeof(struct probe_wanted) % sizeof(uint64_t) == 0, "behind a request's words");

/* Returns whether the texts end in their room, and are there where the kind has them. */
static inline bool probe_wanted_is_sound(const struct probe_wanted *wanted)
{
	return wanted->kind < PROBE_WANTED_KINDS && wanted->wants_nearest <= 1 &&
	       wanted->skips_null <= 1 && wanted->takes_twins <= 1 &&
	       memchr(wanted->provider, 0, sizeof(wanted->provider)) &&
	       memchr(wanted->name, 0, sizeof(wanted->name)) && wanted->name[0] &&
	       !wanted->provider[0] == (wanted->kind != PROBE_WANTED_USDT);
}

#endif
