/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/probe_warnings.h"

#include <stdio.h>

#include "base/log.h"
#include "probes/probe_worker.h"

void probe_warn_full(struct probe_warnings *warnings, uint32_t max)
{
	if (!warnings->is_full_told)
		log_warn("probes are missing in some programs: more than %u processes have them",
			 max);
	warnings->is_full_told = true;
}

void probe_warn_shares(struct user_quota *quota)
{
	uint32_t uid;

	while (user_quota_tell(quota, &uid))
		log_warn("user %u: probes are missing in some programs, as their files have too "
			 "many places for them; others keep theirs (sites_refused)",
			 uid);
}

void probe_warn_refused(struct probe_warnings *warnings, const char *what, pid_t pid,
			const char *why)
{
	char whose[32] = "";

	if (pid)
		snprintf(whose, sizeof(whose), " for process %d", pid);
	warnings->refused++;
	if (!(warnings->refused & (warnings->refused - 1)))
		log_warn("probes in '%s' are not attached%s, so their events are missing: %s "
			 "(%llu such failures so far)",
			 what, whose, why, (unsigned long long)warnings->refused);
}

void probe_warn_late(struct probe_worker *worker)
{
	char what[PROBE_WORKER_WHAT_BYTES];
	uint32_t uid, tgid;

	if (probe_worker_tell_holder(worker, &tgid))
		log_warn("process %u keeps the lock of its mappings: probes come and go when it "
			 "lets go, for until then no process of the machine could fork; events of "
			 "new programs are missing",
			 tgid);
	while (probe_worker_tell_put_off(worker, &uid))
		log_warn("user %u: probes come late into his programs, as their files are mapped "
			 "so often that each breakpoint takes long; others have theirs before",
			 uid);
	if (probe_worker_is_late(worker, what))
		log_warn("the kernel has not put the probes into '%s' for ten seconds: until it "
			 "has, no other program gets any, and events of new ones are missing",
			 what);
}
