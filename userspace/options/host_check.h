/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks, before anything is opened or written, whether this host can run what the options ask
 * for. */
#ifndef OPTIONS_HOST_CHECK_H
#define OPTIONS_HOST_CHECK_H

#include <stddef.h>

#include "base/cleanup.h"
#include "options/options.h"

#define HOST_WHY_BYTES 512U

/* Where the host's properties are read; tests use their own. */
struct host_paths {
	const char *proc;     /* "/proc" */
	const char *btf;      /* "/sys/kernel/btf/vmlinux" */
	const char *lockdown; /* "/sys/kernel/security/lockdown" */
	const char *cgroup;   /* "/sys/fs/cgroup" */
	const char *release;  /* NULL: ask uname(2) */
};
extern const struct host_paths host_paths_real;

/* Returns 0 or -errno with one line in `why` that names the problem and the fix:
 * -EPERM    a capability is missing (named), or the kernel is locked down
 * -ENOSYS    the kernel is older than 5.10
 * -ENOENT    no BTF, no such cgroup or command
 * -EMFILE, -ENOMEM  the limit of open files or of address space is too low
 * -ERANGE    --hz above kernel.perf_event_max_sample_rate
 * -ESRCH    no such process
 * -EACCES, -EROFS, -ENOTDIR, ...  the output cannot be written
 * With 0, `why` is "" or a warning about something that will work less well. */
int host_check(const struct host_paths *paths, const struct options *options, char *why,
	       size_t why_size);

/* Calls `tell` with what each check says, also after one that failed: its name, and err and `why`
 * as host_check() has them. */
void host_check_each(const struct host_paths *paths, const struct options *options,
		     void (*tell)(void *context, const char *name, int err, const char *why),
		     void *context);

/* Writes one line into `why` about a perf_event_open() that failed with `err`, with the fix if
 * known. */
void host_explain_perf(const struct host_paths *paths, int err, char *why, size_t why_size);

/* Finds the directory of the cgroup that --cgroup names: a path, or a path below the mount of
 * cgroup2 (as /proc/PID/cgroup prints it).  Heap.  Returns 0, -ENOENT, -ENOMEM. */
int host_find_cgroup(const struct host_paths *paths, const char *name, char **ret_path);

#endif
