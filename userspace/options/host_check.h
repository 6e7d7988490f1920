/* SPDX-License-Identifier: BSD-2-Clause */
/* Can this host run what the options ask for?  Asked once, before anything is opened or written. */
#ifndef OPTIONS_HOST_CHECK_H
#define OPTIONS_HOST_CHECK_H

#include <stddef.h>

#include "base/cleanup.h"
#include "options/options.h"

#define HOST_WHY_BYTES 512U

/* Where the host says what it can do.  Tests give their own; everybody else gets the real ones. */
struct host_paths {
	const char *proc;     /* "/proc" */
	const char *btf;      /* "/sys/kernel/btf/vmlinux" */
	const char *lockdown; /* "/sys/kernel/security/lockdown" */
	const char *cgroup;   /* "/sys/fs/cgroup" */
	const char *release;  /* NULL: ask uname(2) */
};
extern const struct host_paths host_paths_real;

/* Returns 0 or -errno with one line in `why` that names the thing and the fix:
 *   -EPERM     a capability is missing (named), or the kernel is locked down
 *   -ENOSYS    the kernel is older than 5.10
 *   -ENOENT    no BTF, no such cgroup or command
 *   -ERANGE    --hz above kernel.perf_event_max_sample_rate
 *   -ESRCH     no such process
 *   -EACCES, -EROFS, -ENOTDIR, ...  the output cannot be written
 * `why` is "" when all is well, or a warning: the host does, but less well (returns 0). */
int host_check(const struct options *options, char *why, size_t why_size);
int host_check_at(const struct host_paths *paths, const struct options *options, char *why,
		  size_t why_size);

/* Why perf_event_open() fails with `err`: one line into `why`, with the fix where one is known. */
void host_explain_perf(const struct host_paths *paths, int err, char *why, size_t why_size);

/* The folder of the cgroup that --cgroup names: a path as it stands, or below the mount of cgroup2
 * (as /proc/PID/cgroup prints it).  Heap.  0, -ENOENT, -ENOMEM. */
int host_find_cgroup(const struct host_paths *paths, const char *name, char **ret_path);
/* The file that execvp() would run.  Heap.  0, -ENOENT, -EACCES, -ENOMEM. */
int host_find_command(const char *name, char **ret_path);

#endif
