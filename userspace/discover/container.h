/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds a process's cgroup and container in /proc/PID/cgroup. Source: cgroups(7); the runtimes'
 * naming. */
#ifndef DISCOVER_CONTAINER_H
#define DISCOVER_CONTAINER_H

#include <stddef.h>

#define CGROUP_PATH_MAX_BYTES 4096U /* NUL included */
#define CONTAINER_ID_BYTES 65U	    /* 64 hex digits and a NUL */

struct container {
	char cgroup[CGROUP_PATH_MAX_BYTES]; /* "/…"; "" when no line could be read */
	/* "" outside of containers, and for lxc, which uses names instead of ids */
	char id[CONTAINER_ID_BYTES];
};

/* Picks one line of the file: if any line has a container id, only from those.  Of these it takes
 * that of cgroup v2 ("0::"), else v1's name=systemd, else pids, else the first.  A path of "/" is
 * taken only when there is no other, because on hybrid hosts all processes may be in v2's root. */
void container_parse(const char *text, size_t size, struct container *ret_container);

/* Finds the container id in a cgroup path, in the innermost component that has one: 64 hex digits,
 * alone or after a runtime's prefix (docker-, cri-containerd-, crio-, libpod-, …; also
 * PODSLICE:RUNTIME:ID), with or without ".scope". A monitor process beside a container
 * (crio-conmon-…) is not counted as inside it. Returns 0; -ENOENT. */
int container_id_find(const char *cgroup, char ret_id[CONTAINER_ID_BYTES]);

#endif
