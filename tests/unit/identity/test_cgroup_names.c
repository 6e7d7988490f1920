/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/cgroup_names.h"

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define ID "4a7d1ed414474e4033ac29ccb8653d9b0123456789abcdef0123456789abcdef"
#define UID "8f0b2c1e-1f2a-4c07-b1dd-3c3a0a5e1f11"
#define UID_SYSTEMD "8f0b2c1e_1f2a_4c07_b1dd_3c3a0a5e1f11"
#define STATIC_UID "0123456789abcdef0123456789abcdef"

static void expect_unit(const char *path, const char *expected)
{
	char unit[LABEL_VALUE_BYTES];

	cgroup_unit(path, unit);
	assert_string_equal(unit, expected);
}

static void expect_pod(const char *path, const char *expected)
{
	char uid[POD_UID_BYTES];

	cgroup_pod(path, uid);
	assert_string_equal(uid, expected);
}

static void cgroup_unit__services_and_scopes(void **state)
{
	(void)state;
	expect_unit("/system.slice/nginx.service", "nginx.service");
	expect_unit("/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service");
	expect_unit("/system.slice/shop.service/workers/1", "shop.service");
	expect_unit("/user.slice/user-1000.slice/session-3.scope", "session-3.scope");
	expect_unit("/init.scope", "init.scope");
	expect_unit("/user.slice/user-1000.slice/user@1000.service/app.slice/train.service",
		    "user@1000.service/train.service");
	expect_unit("/user.slice/user-1000.slice/user@1000.service/user@0.service/nginx.service",
		    "user@1000.service/user@0.service");
	expect_unit("/user.slice/user-1000.slice/user@1000.service", "user@1000.service");
	expect_unit("/system.slice/slurmstepd.scope/job_17/step_0/user/task_0", "slurmstepd.scope");
}

static void cgroup_unit__none_in_containers_and_elsewhere(void **state)
{
	(void)state;
	expect_unit("/", "");
	expect_unit("", "");
	expect_unit("/user.slice", "");
	expect_unit("/.service", "");
	expect_unit("/system.slice/docker-" ID ".scope", "");
	expect_unit("/system.slice/docker-" ID ".scope/system.slice/cron.service", "");
	expect_unit("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope",
		    "user@1000.service/libpod-" ID ".scope");
	expect_unit("/system.slice/containerd.service/kubepods-burstable-pod" UID_SYSTEMD
		    ".slice:cri-containerd:" ID,
		    "");
}

static void cgroup_pod__both_drivers(void **state)
{
	(void)state;
	expect_pod("/kubepods/burstable/pod" UID "/" ID, UID);
	expect_pod("/kubepods/pod" UID "/" ID, UID);
	expect_pod("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_SYSTEMD
		   ".slice/cri-containerd-" ID ".scope",
		   UID);
	expect_pod("/kubepods.slice/kubepods-pod" UID_SYSTEMD ".slice/crio-" ID ".scope/container",
		   UID);
	expect_pod("/system.slice/containerd.service/kubepods-burstable-pod" UID_SYSTEMD
		   ".slice:cri-containerd:" ID,
		   UID);
	expect_pod("/system.slice/docker-" ID ".scope/kubelet.slice/kubelet-kubepods.slice/"
		   "kubelet-kubepods-pod" UID_SYSTEMD ".slice/cri-containerd-" ID ".scope",
		   UID);
	expect_pod("/../../kubepods-pod" UID_SYSTEMD ".slice/cri-containerd-" ID ".scope", UID);
	expect_pod("/kubepods/burstable/pod" STATIC_UID "/" ID, STATIC_UID);
	expect_pod("/kubepods/pod" UID, UID);
}

static void cgroup_pod__none(void **state)
{
	(void)state;
	expect_pod("", "");
	expect_pod("/", "");
	expect_pod("/kubepods.slice/kubepods-besteffort.slice", "");
	expect_pod("/kubepods/pod" UID "x/" ID, "");
	expect_pod("/tripod" UID, "");
	expect_pod("/kubepods/podman", "");
	expect_pod("/kubepods/pod8f0b2c1e-1f2a-4c07", "");
	expect_pod("/kubepods/pod8F0B2C1E-1f2a-4c07-b1dd-3c3a0a5e1f11", "");
	expect_pod("/machine.slice/libpod-" ID ".scope", "");
	expect_pod("/system.slice/shop.service/pod" UID, "");
	expect_pod("/kubepodsx/pod" UID, "");
	expect_pod("pod" UID, "");
	expect_pod("/user.slice/user-1000.slice/user@1000.service/app.slice/pod" UID "/" ID, "");
	expect_pod("/user.slice/user-1000.slice/user@1000.service/kubepods.slice/"
		   "kubepods-pod" UID_SYSTEMD ".slice/cri-containerd-" ID ".scope",
		   "");
	expect_pod("/user@1000.service/kubepods/pod" UID "/" ID, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cgroup_unit__services_and_scopes),
		cmocka_unit_test(cgroup_unit__none_in_containers_and_elsewhere),
		cmocka_unit_test(cgroup_pod__both_drivers),
		cmocka_unit_test(cgroup_pod__none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
