/* SPDX-License-Identifier: BSD-2-Clause */
/* Where in an ELF file probes are attached that somebody wants.
 * elf_image, usdt_notes, elf_symbol_table -> [probe_sites].  No state. */
#ifndef ELF_PROBE_SITES_H
#define ELF_PROBE_SITES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pyprofd/probe.h>

#include "elf/elf_image.h"

#define PROBE_WANTED_MAX 64U
#define PROBE_NAME_MAX_BYTES 128U  /* with its NUL */
#define PROBE_NAMES_MAX_BYTES 368U /* of PROBE_WANTED_ANY_OF; the same */

enum probe_wanted_kind {
	PROBE_WANTED_USDT,     /* provider and name */
	PROBE_WANTED_FUNCTION, /* name: a symbol */
	PROBE_WANTED_ANY_OF,   /* name: symbols, a space between two of them; all that there are */
	PROBE_WANTED_KINDS
};

/* A probe that is looked for in a file, as the agent tells the child that parses files. */
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

#define PROBE_SITES_PER_FILE 1024U /* more are counted */
#define PROBE_NEAREST_MAX 3U
#define PROBE_NEAREST_BYTES 136U /* with its NUL; base/nearest.h compares no longer names */

/* What a hit costs, by the instruction at the site: measured figures are those of a VM. */
enum probe_cost {
	/* The kernel does what the instruction does: half a microsecond. */
	PROBE_COST_EMULATED,
	/* A NOP of several bytes: emulated or replaced by a call since Linux 6.18, 0.2 us for one
	 * of five; stepped before. */
	PROBE_COST_LONG_NOP,
	/* The thread executes it elsewhere, between two traps: up to 16 us. */
	PROBE_COST_SINGLE_STEP,
	PROBE_COSTS
};

/* X(id, text): why something that is named as wanted has no site. */
#define PROBE_REFUSALS(X)                                                                          \
	X(CUT_NOTE, "the note of a probe is cut")                                                  \
	X(LONG_NAME, "a name in the note of a probe is too long")                                  \
	X(NO_CODE, "it does not lie in the file's code")                                           \
	X(SEMAPHORE, "its semaphore does not lie in the file's writable data")                     \
	X(INDIRECT, "it is an indirect function (IFUNC): which code is called is chosen at run "   \
		    "time")                                                                        \
	X(FULL, "the file has more sites than are kept")
#define PROBE_REFUSAL_ENUM(id, text) PROBE_REFUSED_##id,
enum probe_refusal { PROBE_REFUSALS(PROBE_REFUSAL_ENUM) PROBE_REFUSAL_KINDS };
/* Returns a static text. */
const char *probe_refusal_text(enum probe_refusal refusal);

struct probe_site {
	uint64_t offset; /* in the file, of the instruction */
	uint64_t vaddr;
	uint64_t semaphore_offset; /* in the file; 0: there is none */
	uint32_t wanted;	   /* index */
	uint8_t cost;		   /* enum probe_cost */
	uint8_t alternative;	   /* which name of the wanted one it is, from 0 on */
	/* 1: nothing has been pushed yet, so that a return address can be taken from here. */
	uint8_t is_entry;
	uint8_t arg_count;
	uint8_t is_twin; /* 1: under all its names it is one (struct probe_wanted) */
	struct pp_probe_arg arg[PP_PROBE_ARGS]; /* of a USDT probe */
};

/* What became of one wanted probe. */
struct probe_found {
	uint32_t sites;
	uint32_t refusals; /* bits, 1 << enum probe_refusal, of what has its name */
	/* When there is neither: known names that are near, the nearest first; "" behind them. */
	char nearest[PROBE_NEAREST_MAX][PROBE_NEAREST_BYTES];
};

struct probe_sites {
	struct probe_site *site; /* owned */
	uint32_t site_count, wanted_count;
	/* By enum probe_refusal; notes that are cut or too long may be anybody's, the others count
	 * for wanted probes. */
	uint64_t refused[PROBE_REFUSAL_KINDS];
	uint64_t unread_args; /* of sites: PP_ARG_NONE, though the note names something */
	struct probe_found found[PROBE_WANTED_MAX];
};

/* Finds the sites of `count` sound wanted probes.  Of a function that begins with endbr64 the site
 * lies behind it: registers and stack are the same there, and that instruction would be stepped.
 * Returns 0, also when there are none; -E2BIG: the file takes more work than its budget; -ENOMEM.
 * *ret_sites is released by probe_sites_release(). */
int probe_sites_find(const struct elf_image *image, const struct probe_wanted *wanted, size_t count,
		     struct probe_sites *ret_sites);
static inline void probe_sites_release(struct probe_sites *sites)
{
	free(sites->site);
	*sites = (struct probe_sites){.site = NULL};
}

/* Finds the names in the file that are nearest to one that is not there: "provider:name", or a
 * function's.  As far as the file's budget goes: a name may be missing. */
void probe_sites_nearest(const struct elf_image *image, const struct probe_wanted *wanted,
			 char ret_nearest[PROBE_NEAREST_MAX][PROBE_NEAREST_BYTES]);

/* What a hit costs at an instruction, of which `size` bytes can be read. */
enum probe_cost probe_instruction_cost(uint16_t machine, const uint8_t *code, uint64_t size);

#endif
