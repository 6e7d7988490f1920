/* SPDX-License-Identifier: BSD-2-Clause */
/* Names Kubernetes' pods and their containers by the names of the logs that the kubelet keeps:
 * /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log, and for what is not there
 * /var/log/pods/NAMESPACE_POD_UID.  No API is asked.  One thread. */
#ifndef IDENTITY_PODS_H
#define IDENTITY_PODS_H

#include <stdint.h>

#include "base/io.h"
#include "identity/label_value.h"

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
