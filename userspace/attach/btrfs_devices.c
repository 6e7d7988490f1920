/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/btrfs_devices.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "files/vouch.h"

/* Some 30,000 mounts.  Beyond it a device counts as btrfs, which costs time and no name. */
#define MOUNTINFO_MAX_BYTES (4U << 20)

bool mountinfo_is_btrfs(const char *text, uint32_t major, uint32_t minor)
{
	char type[16];

	return mountinfo_type(text, major, minor, type, sizeof(type)) && !strcmp(type, "btrfs");
}

static bool is_mounted_btrfs(uint32_t minor)
{
	OWNED_MEM char *text = NULL;

	if (read_file("/proc/self/mountinfo", MOUNTINFO_MAX_BYTES, &text, NULL))
		return true;
	return mountinfo_is_btrfs(text, 0, minor);
}

bool btrfs_devices_have(struct btrfs_devices *devices, uint32_t major, uint32_t minor)
{
	size_t at;

	/* btrfs has no block device of its own: its mappings show an anonymous one. */
	if (major)
		return false;
	for (size_t i = 0; i < devices->count; i++)
		if (devices->known[i].minor == minor)
			return devices->known[i].is_btrfs;
	at = devices->next++ % BTRFS_DEVICES_KEPT;
	if (devices->count < BTRFS_DEVICES_KEPT)
		devices->count++;
	devices->known[at].minor = minor;
	devices->known[at].is_btrfs = is_mounted_btrfs(minor);
	return devices->known[at].is_btrfs;
}

void btrfs_devices_forget(struct btrfs_devices *devices)
{
	devices->count = devices->next = 0;
}
