/* SPDX-License-Identifier: BSD-2-Clause */
/* A question to the child that parses files takes up to a quarter of a second.  A turn of the loop
 * in which the child has computed for long makes no step of the window's end or of a dump, which
 * may ask another one; but not for too many turns in a row.  One thread. */
#ifndef AGENT_TURN_QUESTIONS_H
#define AGENT_TURN_QUESTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define TURN_QUESTIONS_LONG_NS (40 * NS_PER_MS)
#define TURN_QUESTIONS_PUT_OFF_MAX 8U /* turns in a row */

/* All zeros: before the first turn. */
struct turn_questions {
	uint64_t began_ns; /* CPU time of the child when the turn began */
	uint32_t put_off;  /* turns in a row before this one that put a step off */
	bool has_put_off;  /* this turn has */
};
/* Begins a turn; used_ns, here and below: CPU time of the child. */
void turn_questions_begin(struct turn_questions *questions, uint64_t used_ns);
/* Returns whether this turn has time for a step that may ask about a file. */
bool turn_questions_allow(struct turn_questions *questions, uint64_t used_ns);

#endif
