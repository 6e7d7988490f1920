/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/process_user.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "discover/proc_scan.h"

#define NAMESPACES_MAX 33U /* user_namespaces(7): they nest 32 deep */

/* Returns the owner of the outermost user namespace that somebody else than root owns; 0: none. */
static uint32_t namespace_owner(uint32_t tgid)
{
	uint32_t owner = 0;
	char path[32];
	int inner;

	snprintf(path, sizeof(path), "/proc/%u/ns/user", tgid);
	inner = open(path, O_RDONLY | O_CLOEXEC);
	for (unsigned int i = 0; i < NAMESPACES_MAX && inner >= 0; i++) {
		OWNED_FD int fd = inner;
		uid_t uid;

		if (!ioctl(fd, NS_GET_OWNER_UID, &uid) && uid)
			owner = uid;
		inner = ioctl(fd, NS_GET_PARENT);
	}
	if (inner >= 0)
		close(inner);
	return owner;
}

uint32_t process_user(const struct process *process)
{
	struct proc_status status;
	uint32_t owner;

	if (process->is_user_known)
		return process->user;
	if (proc_status_read(process->id.tgid, &status) || status.tgid != process->id.tgid)
		return process->uid;
	owner = namespace_owner(process->id.tgid);
	if (owner)
		return owner;
	/* Anybody may start a set-user-ID program. */
	return status.uid ? status.uid : status.real_uid;
}

uint32_t process_user_kept(struct process *process)
{
	process->user = process_user(process);
	process->is_user_known = true;
	return process->user;
}
