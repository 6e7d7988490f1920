/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/answers.h"

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define FIRST "1795273360000-10000-cpu.pb.gz"	  /* 2026-11-21T15:02:40Z */
#define SECOND "1795273370000-10000-offcpu.pb.gz" /* 15:02:50 */
#define FOLDER "2026-11-21/15"

static char store[] = "/tmp/test_files-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256];
	OWNED_FILE FILE *file = NULL;

	snprintf(path, sizeof(path), "%s/%s", store, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
}

static int make_store(void **state)
{
	char path[256];

	(void)state;
	assert_non_null(mkdtemp(store));
	snprintf(path, sizeof(path), "%s/2026-11-21", store);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/" FOLDER, store);
	assert_int_equal(mkdir(path, 0700), 0);
	put(FOLDER "/" FIRST, "first");
	put(FOLDER "/" SECOND, "second");
	put(FOLDER "/." FIRST ".tmp", "temporary");
	put(FOLDER "/secret", "secret");
	put("1795273380000-10000-cpu.pb.gz", "flat");
	snprintf(path, sizeof(path), "%s/" FOLDER "/1795273390000-10000-cpu.pb.gz", store);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	snprintf(path, sizeof(path), "%s/" FOLDER "/1795273395000-10000-cpu.pb.gz", store);
	assert_int_equal(mkfifo(path, 0600), 0);
	return 0;
}

static int remove_store(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", store);
	return system(command); /* NOLINT: the name is ours */
}

static void ask(const char *path, const char *name, const char *value, struct answer *answer)
{
	char why[REQUEST_WHY_BYTES];
	struct request request;

	assert_int_equal(request_route(path, &request), 0);
	assert_true(request_needs_work(&request));
	if (name)
		assert_int_equal(request_take(&request, name, value, 1795273400000, why), 0);
	if (request.endpoint == REQUEST_FILES)
		files_list(store, &request, answer);
	else
		files_get(store, &request, answer);
}

static void list__has_the_names_of_a_kind_and_a_range(void **state)
{
	CLEANUP(answer_release) struct answer answer = {0};

	(void)state;
	ask("/api/v1/files", "kind", "offcpu", &answer);
	assert_int_equal(answer.status, 200);
	assert_string_equal(answer.body, SECOND "\n");
	assert_string_equal(answer.type, ANSWER_TEXT);
	answer_release(&answer);
	ask("/api/v1/files", "until", "1795273370", &answer);
	assert_string_equal(answer.body, FIRST "\n");
	answer_release(&answer);
	ask("/api/v1/files", NULL, NULL, &answer);
	assert_non_null(strstr(answer.body, FIRST "\n" SECOND "\n1795273380000-10000-cpu.pb.gz\n"));
	assert_null(strstr(answer.body, "tmp"));
	assert_null(strstr(answer.body, "secret"));
	answer_release(&answer);
	ask("/api/v1/files", "until", "2000-01-01", &answer);
	assert_int_equal(answer.status, 200);
	assert_int_equal(answer.size, 0);
}

static void get__gives_a_file_unchanged(void **state)
{
	CLEANUP(answer_release) struct answer answer = {0};

	(void)state;
	ask("/api/v1/files/" FIRST, NULL, NULL, &answer);
	assert_int_equal(answer.status, 200);
	assert_int_equal(answer.size, 5);
	assert_memory_equal(answer.body, "first", 5);
	assert_string_equal(answer.file_name, FIRST);
	answer_release(&answer);
	ask("/api/v1/files/1795273380000-10000-cpu.pb.gz", NULL, NULL, &answer);
	assert_memory_equal(answer.body, "flat", 4);
}

static void get__follows_no_link_and_waits_for_no_fifo(void **state)
{
	static const char *const paths[] = {"/api/v1/files/1795273390000-10000-cpu.pb.gz",
					    "/api/v1/files/1795273395000-10000-cpu.pb.gz",
					    "/api/v1/files/1795273399000-10000-cpu.pb.gz"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		CLEANUP(answer_release) struct answer answer = {0};

		ask(paths[i], NULL, NULL, &answer);
		assert_int_equal(answer.status, 404);
		assert_null(strstr(answer.body, "root"));
	}
}

static void get__a_file_that_is_too_large_is_refused(void **state)
{
	CLEANUP(answer_release) struct answer answer = {0};
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/" FOLDER "/1795273360001-10000-cpu.pb.gz", store);
	put(FOLDER "/1795273360001-10000-cpu.pb.gz", "");
	assert_int_equal(truncate(path, ANSWER_MAX_BYTES + 1), 0);
	ask("/api/v1/files/1795273360001-10000-cpu.pb.gz", NULL, NULL, &answer);
	assert_int_equal(answer.status, 503);
	assert_int_equal(unlink(path), 0);
}

static void route__takes_names_of_the_store_alone(void **state)
{
	static const char *const bad[] = {"/api/v1/files/",
					  "/api/v1/files/../../etc/passwd",
					  "/api/v1/files/2026-11-21/15/" FIRST,
					  "/api/v1/files/." FIRST ".tmp",
					  "/api/v1/files/secret",
					  "/api/v1/files/0" FIRST};
	struct request request;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_not_equal(request_route(bad[i], &request), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list__has_the_names_of_a_kind_and_a_range),
		cmocka_unit_test(get__gives_a_file_unchanged),
		cmocka_unit_test(get__follows_no_link_and_waits_for_no_fifo),
		cmocka_unit_test(get__a_file_that_is_too_large_is_refused),
		cmocka_unit_test(route__takes_names_of_the_store_alone),
	};

	return cmocka_run_group_tests(tests, make_store, remove_store);
}
