/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines are of a Linux 6.18 with a btrfs of two subvolumes. */
#include "attach/btrfs_devices.h"

#include <cmocka.h>

static const char mounts[] =
	"22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw,discard\n"
	"64 22 0:45 /first /srv/a\\040-\\040btrfs rw shared:30 - tmpfs none rw\n"
	"65 22 0:46 /first /srv/first rw,relatime shared:31 master:2 - btrfs /dev/loop0 "
	"rw,subvol=/first\n"
	"66 22 0:47 / /srv/odd rw - fuse.btrfs - btrfs rw\n"
	"67 22 0:48 / /srv/last rw - btrfs /dev/loop1 rw";

static void mountinfo_is_btrfs__by_the_type_of_the_device(void **state)
{
	(void)state;
	assert_true(mountinfo_is_btrfs(mounts, 0, 46));
	assert_true(mountinfo_is_btrfs(mounts, 0, 48));
	assert_false(mountinfo_is_btrfs(mounts, 8, 1));
	assert_false(mountinfo_is_btrfs(mounts, 0, 45));
	assert_false(mountinfo_is_btrfs(mounts, 0, 4));
	assert_false(mountinfo_is_btrfs(mounts, 46, 0));
	assert_false(mountinfo_is_btrfs("", 0, 46));
	assert_false(mountinfo_is_btrfs("\n65 22 0:46", 0, 46));
}

static void btrfs_devices_have__only_anonymous_devices(void **state)
{
	struct btrfs_devices devices = {0};

	(void)state;
	assert_false(btrfs_devices_have(&devices, 8, 1));
	assert_int_equal(devices.count, 0);
}

static void btrfs_devices_have__remembers_the_last_ones(void **state)
{
	struct btrfs_devices devices = {
		.known = {{.minor = 7, .is_btrfs = true}}, .count = 1, .next = 1};

	(void)state;
	assert_true(btrfs_devices_have(&devices, 0, 7));
	for (uint32_t minor = 1000000; minor < 1000000 + BTRFS_DEVICES_KEPT; minor++)
		assert_false(btrfs_devices_have(&devices, 0, minor));
	assert_int_equal(devices.count, BTRFS_DEVICES_KEPT);
	/* Forgotten, and no such device is mounted here. */
	assert_false(btrfs_devices_have(&devices, 0, 7));
	btrfs_devices_forget(&devices);
	assert_int_equal(devices.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mountinfo_is_btrfs__by_the_type_of_the_device),
		cmocka_unit_test(btrfs_devices_have__only_anonymous_devices),
		cmocka_unit_test(btrfs_devices_have__remembers_the_last_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
