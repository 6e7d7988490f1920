/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells which devices of mappings belong to btrfs.  All subvolumes of a btrfs show one device, and
 * each subvolume numbers its files by itself, so that two files may be mapped under the same
 * numbers (fs/btrfs/super.c: one anonymous device a file system; btrfs_find_free_objectid()). One
 * thread. */
#ifndef ATTACH_BTRFS_DEVICES_H
#define ATTACH_BTRFS_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BTRFS_DEVICES_KEPT 16U

struct btrfs_devices {
	struct {
		uint32_t minor;
		bool is_btrfs;
	} known[BTRFS_DEVICES_KEPT]; /* the last ones that were asked for */
	size_t count, next;
};

/* Returns whether the device is that of a btrfs which is mounted where pyprofd runs.  Reads
 * /proc/self/mountinfo once for each device. */
bool btrfs_devices_have(struct btrfs_devices *devices, uint32_t major, uint32_t minor);
/* Forgets what was read: a number is given to another file system after an unmount. */
void btrfs_devices_forget(struct btrfs_devices *devices);

/* Returns whether a text like /proc/self/mountinfo (proc(5)) names the device as a btrfs. */
bool mountinfo_is_btrfs(const char *text, uint32_t major, uint32_t minor);

#endif
