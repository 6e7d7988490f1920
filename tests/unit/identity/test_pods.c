/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/cgroup_names.h"

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define ID "4a7d1ed414474e4033ac29ccb8653d9b0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffffeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
#define UID "8f0b2c1e-1f2a-4c07-b1dd-3c3a0a5e1f11"
#define S 1000000000ULL

static void log_names__are_taken_apart(void **state)
{
	struct pod_names names;

	(void)state;
	assert_true(pods_container_log("web-7d9_shop_nginx-" ID ".log", ID, &names));
	assert_string_equal(names.pod, "web-7d9");
	assert_string_equal(names.name_space, "shop");
	assert_string_equal(names.container, "nginx");
	assert_true(pods_pod_log("shop_web-7d9_" UID, UID, &names));
	assert_string_equal(names.pod, "web-7d9");
	assert_string_equal(names.name_space, "shop");
	assert_string_equal(names.container, "");
}

static void log_names__of_others_are_none(void **state)
{
	struct pod_names names;

	(void)state;
	assert_false(pods_container_log("web-7d9_shop_nginx-" OTHER ".log", ID, &names));
	assert_false(pods_container_log("web-7d9_shop_nginx-" ID ".gz", ID, &names));
	assert_false(pods_container_log("web-7d9_shop_nginx-" ID, ID, &names));
	assert_false(pods_container_log("web-7d9_shop_-" ID ".log", ID, &names));
	assert_false(pods_container_log("web-7d9-shop-" ID ".log", ID, &names));
	assert_false(pods_container_log("_shop_nginx-" ID ".log", ID, &names));
	assert_false(pods_container_log("-" ID ".log", ID, &names));
	assert_false(pods_container_log("a_b_c-.log", "", &names));
	assert_false(pods_pod_log("shop_web-7d9_" UID "x", UID, &names));
	assert_false(pods_pod_log("shop_" UID, UID, &names));
	assert_false(pods_pod_log("..", UID, &names));
	assert_false(pods_pod_log("a_b_", "", &names));
}

/* ---- directories ---- */

/* Stands for /var/log/containers and /var/log/pods. */
struct logs {
	char directory[PROCESS_LOG_DIRECTORIES][64];
	unsigned int reads;
};

static int list(void *context, enum process_log_directory which, char **ret_entries,
		size_t *ret_size)
{
	struct logs *logs = context;
	OWNED_FD int fd = open(logs->directory[which], O_RDONLY | O_CLOEXEC);

	logs->reads++;
	if (fd < 0)
		return -errno;
	*ret_entries = malloc(PROCESS_LOGS_MAX_BYTES);
	assert_non_null(*ret_entries);
	return list_up_to(fd, *ret_entries, PROCESS_LOGS_MAX_BYTES, ret_size);
}

static const struct process_access access_logs = {.list_logs = list};

static void add(const struct logs *logs, enum process_log_directory which, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", logs->directory[which], name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void pods_find__looks_into_both_directories(void **state)
{
	struct logs logs = {.directory = {"/tmp/test_pods.XXXXXX", "/tmp/test_pods.XXXXXX"}};
	struct pods pods = {0};
	struct pod_names names;
	char command[160];

	(void)state;
	assert_non_null(mkdtemp(logs.directory[0]));
	assert_non_null(mkdtemp(logs.directory[1]));
	process_access_by(&access_logs, &logs);
	for (unsigned int i = 0; i < 300; i++) {
		char name[64];

		snprintf(name, sizeof(name), "a_b_%u", i);
		add(&logs, PROCESS_LOGS_PODS, name);
	}
	assert_int_equal(pods_find(&pods, UID, ID, S, &names), -ENOENT);
	assert_int_equal(logs.reads, 2);
	/* A pod that has just started: its log comes a moment later. */
	add(&logs, PROCESS_LOGS_PODS, "shop_web-7d9_" UID);
	assert_int_equal(pods_find(&pods, UID, ID, 2 * S, &names), -ENOENT);
	assert_int_equal(logs.reads, 2);
	assert_int_equal(pods_find(&pods, UID, ID, 7 * S, &names), 0);
	assert_string_equal(names.container, "");
	assert_string_equal(names.name_space, "shop");
	add(&logs, PROCESS_LOGS_CONTAINERS, "web-7d9_shop_nginx-" ID ".log");
	assert_int_equal(pods_find(&pods, "", ID, 20 * S, &names), 0);
	assert_string_equal(names.container, "nginx");
	assert_int_equal(pods_find(&pods, UID, "", 20 * S, &names), 0);
	assert_string_equal(names.pod, "web-7d9");
	assert_int_equal(logs.reads, 6);
	pods_release(&pods);
	assert_int_equal(pods.read_ns, 0);
	pods_release(&pods);
	process_access_by(NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s %s", logs.directory[0], logs.directory[1]);
	assert_int_equal(system(command), 0);
}

static void pods_find__without_directories_is_enoent(void **state)
{
	struct logs logs = {.directory = {"/nonexistent", "/nonexistent"}};
	struct pods pods = {0};
	struct pod_names names;

	(void)state;
	process_access_by(&access_logs, &logs);
	assert_int_equal(pods_find(&pods, UID, ID, S, &names), -ENOENT);
	process_access_by(NULL, NULL);
	pods_release(&pods);
}

static void pods_find__records_that_do_not_add_up_end_the_list(void **state)
{
	struct dirent64 record[2] = {0};
	struct pods pods = {.read_ns = S};
	struct log_entries *entries = &pods.entries[PROCESS_LOGS_PODS];
	struct pod_names names;

	(void)state;
	strcpy(record[0].d_name, "shop_web_" UID);
	entries->bytes = (char *)record;
	entries->size = sizeof(record[0]);
	record[0].d_reclen = 0;
	assert_int_equal(pods_find(&pods, UID, "", S, &names), -ENOENT);
	record[0].d_reclen = sizeof(record[0]) + 1;
	assert_int_equal(pods_find(&pods, UID, "", S, &names), -ENOENT);
	record[0].d_reclen = offsetof(struct dirent64, d_name) + 4; /* without a NUL */
	assert_int_equal(pods_find(&pods, UID, "", S, &names), -ENOENT);
	record[0].d_reclen = sizeof(record[0]);
	assert_int_equal(pods_find(&pods, UID, "", S, &names), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_names__are_taken_apart),
		cmocka_unit_test(log_names__of_others_are_none),
		cmocka_unit_test(pods_find__looks_into_both_directories),
		cmocka_unit_test(pods_find__without_directories_is_enoent),
		cmocka_unit_test(pods_find__records_that_do_not_add_up_end_the_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
