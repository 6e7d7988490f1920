/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the systemd unit and the Kubernetes pod in a cgroup's path.  No state. */
#ifndef IDENTITY_CGROUP_NAMES_H
#define IDENTITY_CGROUP_NAMES_H

#include "identity/label_value.h"

#define POD_UID_BYTES 37U /* 36 characters and a NUL */

/* Finds the unit that systemd would name for the path (cgroups(7), systemd.unit(5)): the first
 * service or scope below slices; below a user's manager, whose units the user names at will,
 * "user@1000.service/" and the user's own.
 * *ret_unit is "" where there is none, and in a container, whose runtime made the scope. */
void cgroup_unit(const char *path, char ret_unit[LABEL_VALUE_BYTES]);
/* Finds the uid of a pod, with '-', as the kubelet's drivers write it: .../pod<uid>/... (cgroupfs)
 * and ...-pod<uid, with '_'>.slice (systemd); a static pod's uid has 32 hex digits.  *ret_uid is ""
 * where there is none, outside the kubelet's cgroups (kubepods...), and below a user's. */
void cgroup_pod(const char *path, char ret_uid[POD_UID_BYTES]);

#endif
