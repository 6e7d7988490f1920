/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc/PID/cgroup -> which cgroup, which container.  Source: cgroups(7); the runtimes' naming. */
#ifndef DISCOVER_CONTAINER_H
#define DISCOVER_CONTAINER_H

#include <stddef.h>

#define CGROUP_PATH_MAX_BYTES 4096U /* NUL included */
#define CONTAINER_ID_BYTES 65U	    /* 64 hex digits and a NUL */

struct container {
	char cgroup[CGROUP_PATH_MAX_BYTES]; /* "/…"; "" when no line could be read */
	char id[CONTAINER_ID_BYTES]; /* "" outside of containers, and for lxc, which has names */
};

/* The line is, of those with a container id if any has one: the one of cgroup v2 ("0::"), else v1's
 * name=systemd, else pids, else the first.  A path of "/" yields to any other: on hybrid hosts
 * the processes may all lie in v2's root. */
void container_parse(const char *text, size_t size, struct container *ret_container);

/* The id in a cgroup path, of the innermost component that has one: 64 hex digits alone or behind a
 * runtime's prefix (docker-, cri-containerd-, crio-, libpod-, …; also PODSLICE:RUNTIME:ID), with or
 * without ".scope".  A monitor beside a container (crio-conmon-…) is not in it.
 * Returns 0; -ENOENT. */
int container_id_find(const char *cgroup, char ret_id[CONTAINER_ID_BYTES]);

#endif
