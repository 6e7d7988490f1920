/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/proc_scan.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ID "4a7d1ed414474e4033ac29ccb8653d9b0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffffeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"

static void expect(const char *text, const char *cgroup, const char *id)
{
	struct container container;

	container_parse(text, strlen(text), &container);
	assert_string_equal(container.cgroup, cgroup);
	assert_string_equal(container.id, id);
}

static void container_parse__v2_paths_of_each_runtime(void **state)
{
	const char *const path[] = {
		"/system.slice/docker-" ID ".scope",
		"/docker/" ID,
		"/machine.slice/libpod-" ID ".scope/container",
		"/kubepods.slice/kubepods-besteffort.slice/"
		"kubepods-besteffort-pod8f0b.slice/cri-containerd-" ID ".scope",
		"/kubepods.slice/kubepods-pod8f0b.slice/crio-" ID ".scope",
		"/kubepods/burstable/pod8f0b2c1e-1f2a-4c07-b1dd-3c3a0a5e1f11/" ID,
		"/system.slice/containerd.service/"
		"kubepods-burstable-pod8f0b.slice:cri-containerd:" ID,
		"/default/" ID,
		"/system.slice/nerdctl-" ID ".scope",
		"/ecs/0123456789abcdef/" ID,
		"/docker/" ID "/system.slice/cron.service",
		"/docker/" OTHER "/docker/" ID,
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		snprintf(text, sizeof(text), "0::%s\n", path[i]);
		expect(text, path[i], ID);
	}
}

static void container_parse__no_container(void **state)
{
	(void)state;
	expect("0::/user.slice/user-1000.slice/session-2.scope\n",
	       "/user.slice/user-1000.slice/session-2.scope", "");
	expect("0::/system.slice/ssh.service\n", "/system.slice/ssh.service", "");
	expect("0::/\n", "/", "");
	expect("0::/lxc.payload.web/init.scope\n", "/lxc.payload.web/init.scope", "");
	expect("", "", "");
}

/* Users make cgroups of any name below theirs: root's container has this id, or nobody's. */
static void container_parse__a_user_names_no_container(void **state)
{
	const char *const path[] = {
		"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope",
		"/user.slice/user-1000.slice/user@1000.service/docker-" ID ".scope",
		"/user.slice/docker-" ID ".scope",
		"/user@1000.service/" ID,
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		snprintf(text, sizeof(text), "0::%s\n", path[i]);
		expect(text, path[i], "");
	}
	/* In a container they have what it has. */
	expect("0::/docker/" ID "/user.slice/user-1000.slice/docker-" OTHER ".scope\n",
	       "/docker/" ID "/user.slice/user-1000.slice/docker-" OTHER ".scope", ID);
	expect("0::/user.slice2/" ID "\n", "/user.slice2/" ID, ID);
}

static void container_parse__a_monitor_is_not_in_the_container(void **state)
{
	(void)state;
	expect("0::/machine.slice/libpod-conmon-" ID ".scope\n",
	       "/machine.slice/libpod-conmon-" ID ".scope", "");
	expect("0::/system.slice/crio-conmon-" ID ".scope\n",
	       "/system.slice/crio-conmon-" ID ".scope", "");
}

static void container_parse__near_misses_are_no_ids(void **state)
{
	(void)state;
	expect("0::/docker/4a7d1ed414474e4033ac29ccb8653d9b\n",
	       "/docker/4a7d1ed414474e4033ac29ccb8653d9b", "");
	expect("0::/docker/" ID "0\n", "/docker/" ID "0", "");
	expect("0::/docker/X" ID "\n", "/docker/X" ID, "");
	expect("0::/docker/4A7D1ED414474E4033AC29CCB8653D9B0123456789ABCDEF0123456789ABCDEF\n",
	       "/docker/4A7D1ED414474E4033AC29CCB8653D9B0123456789ABCDEF0123456789ABCDEF", "");
}

static void container_parse__v1_prefers_systemd_then_pids(void **state)
{
	(void)state;
	expect("12:pids:/p\n11:memory:/m\n1:name=systemd:/s\n", "/s", "");
	expect("12:memory:/m\n11:cpu,pids:/p\n", "/p", "");
	expect("12:memory:/m\n1:name=systemd:/\n", "/m", "");
	expect("12:memory:/\n1:name=systemd:/\n", "/", "");
}

static void container_parse__hybrid_host_takes_the_line_that_knows_the_container(void **state)
{
	(void)state;
	expect("12:memory:/docker/" ID "\n1:name=systemd:/docker/" ID "\n0::/\n", "/docker/" ID,
	       ID);
	expect("12:memory:/docker/" ID "\n1:name=systemd:/\n0::/system.slice/docker.service\n",
	       "/docker/" ID, ID);
	expect("1:name=systemd:/user.slice\n0::/\n", "/user.slice", "");
	expect("1:name=systemd:/user.slice\n0::/other\n", "/other", "");
}

static void container_parse__broken_lines_are_skipped(void **state)
{
	static char huge[8192];

	(void)state;
	expect("nonsense\n1:\n::\n0::/a", "/a", "");
	memset(huge, 'a', sizeof(huge) - 1);
	memcpy(huge, "0::/", 4);
	expect(huge, "", "");
}

static void container_id_find__none_is_enoent(void **state)
{
	char id[CONTAINER_ID_BYTES];

	(void)state;
	assert_int_equal(container_id_find("", id), -ENOENT);
	assert_int_equal(container_id_find("/", id), -ENOENT);
	assert_int_equal(container_id_find(ID, id), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(container_parse__v2_paths_of_each_runtime),
		cmocka_unit_test(container_parse__no_container),
		cmocka_unit_test(container_parse__a_user_names_no_container),
		cmocka_unit_test(container_parse__a_monitor_is_not_in_the_container),
		cmocka_unit_test(container_parse__near_misses_are_no_ids),
		cmocka_unit_test(container_parse__v1_prefers_systemd_then_pids),
		cmocka_unit_test(
			container_parse__hybrid_host_takes_the_line_that_knows_the_container),
		cmocka_unit_test(container_parse__broken_lines_are_skipped),
		cmocka_unit_test(container_id_find__none_is_enoent),
	};

	return cmocka_run_group_tests_name("discover/container", tests, NULL, NULL);
}
