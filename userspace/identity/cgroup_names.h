/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the systemd unit and the Kubernetes pod in a cgroup's path, and names pods and their
 * containers. */
#ifndef IDENTITY_CGROUP_NAMES_H
#define IDENTITY_CGROUP_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/io.h"

/* ---- values of labels, from what other programs have written: bounded, valid UTF-8, nothing that
 * a terminal obeys ---- */

#define LABEL_VALUE_MAX_BYTES 128U /* what is longer is cut at a character */
#define LABEL_VALUE_BYTES (LABEL_VALUE_MAX_BYTES + 1U)

/* Cleans bytes as utf8_clean() does, up to the first NUL, and without the spaces around them. */
void label_value(const char *bytes, size_t size, char ret_value[LABEL_VALUE_BYTES]);
/* Takes bytes that are a decimal number of at most ten digits.  Returns whether they are; else
 * *ret_value is "". */
bool label_value_number(const char *bytes, size_t size, char ret_value[LABEL_VALUE_BYTES]);

/* ---- cgroups ---- */

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

#define PODS_AGAIN_NS 5000000000ULL /* the directories are read again for a pod that is not there */

struct pod_names {
	char name_space[LABEL_VALUE_BYTES], pod[LABEL_VALUE_BYTES];
	char container[LABEL_VALUE_BYTES]; /* "": not known */
};

/* All zero has read nothing. */
struct pods {
	struct log_entries {
		char *bytes; /* owned; as getdents64(2) gives them */
		size_t size;
	} entries[PROCESS_LOG_DIRECTORIES];
	uint64_t read_ns; /* 0: never */
};
void pods_release(struct pods *pods);

/* Names a container by its id ("": not known) or the uid of its pod, and reads the directories
 * where they are not known.  Returns 0; -ENOENT: there is no such log. */
int pods_find(struct pods *pods, const char *pod_uid, const char *container_id, uint64_t now_ns,
	      struct pod_names *ret_names);

/* Take the name of an entry apart.  Return whether it is that of the container or the pod. */
bool pods_container_log(const char *entry, const char *container_id, struct pod_names *ret_names);
bool pods_pod_log(const char *entry, const char *pod_uid, struct pod_names *ret_names);

#endif
