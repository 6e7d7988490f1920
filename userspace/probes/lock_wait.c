/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/lock_wait.h"

#include <unistd.h>

#include "attach/mapping_locks.h"
#include "base/clock.h"
#include "base/log.h"

#define TOLD_NS NS_PER_SEC /* a lock that is kept for less is nothing to tell of */
#define BEGIN_NS (2 * NS_PER_SEC)
#define END_NS (10 * NS_PER_SEC)
#define LOOK_US 200000U

void lock_wait_note(struct lock_wait *wait, uint32_t holder, uint64_t now_ns)
{
	if (!wait->holder)
		wait->since_ns = now_ns;
	wait->holder = holder;
}

bool lock_wait_tell(struct lock_wait *wait, uint64_t now_ns, uint32_t *ret_holder)
{
	if (!wait->holder || wait->holder == wait->told || now_ns - wait->since_ns <= TOLD_NS)
		return false;
	wait->told = *ret_holder = wait->holder;
	return true;
}

/* Returns who keeps a lock even after that time; 0: nobody. */
static uint32_t await(int link, uint64_t limit_ns)
{
	const uint64_t until_ns = mono_ns() + limit_ns;
	uint32_t holder;

	while ((holder = mapping_locks_holder(link)) && mono_ns() < until_ns)
		usleep(LOOK_US);
	return holder;
}

uint32_t lock_wait_begin(int link)
{
	return await(link, BEGIN_NS);
}

void lock_wait_end(int link)
{
	const uint32_t holder = await(link, END_NS);

	if (holder)
		log_warn("process %u keeps the lock of its mappings: as probes are taken off now, "
			 "no process of the machine can fork until it lets go or is ended",
			 holder);
}
