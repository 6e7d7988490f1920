/* SPDX-License-Identifier: BSD-2-Clause */
/* The states in which a process's threads spend their time: label `state` of kind ledger.  Time on
 * the CPU is divided where there are samples of it, else it is LEDGER_UNSAMPLED. */
#ifndef PROFILE_LEDGER_STATE_H
#define PROFILE_LEDGER_STATE_H

#include <pyprofd/wait.h>

enum ledger_part { LEDGER_PYTHON, LEDGER_NATIVE, LEDGER_KERNEL, LEDGER_PART_COUNT };

/* A state: enum ledger_part, or LEDGER_WAIT(enum pp_ledger). */
#define LEDGER_WAIT(where) ((unsigned int)LEDGER_PART_COUNT + (where))
#define LEDGER_UNSAMPLED LEDGER_WAIT(PP_LEDGER_CPU)
#define LEDGER_WAITS_BEGIN (LEDGER_UNSAMPLED + 1)
#define LEDGER_STATE_COUNT LEDGER_WAIT(PP_LEDGER_COUNT)

static inline const char *ledger_state_name(unsigned int state)
{
#define LEDGER_STATE_NAME(id, name, text) name,
	static const char *const names[LEDGER_STATE_COUNT] = {"python", "native", "kernel",
							      PP_LEDGERS(LEDGER_STATE_NAME)};

	return names[state];
}

#endif
