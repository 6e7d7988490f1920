/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/answers.h"

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NOW_MS 1795273360165ULL

struct fixture {
	char directory[64];
	char *name[8]; /* owned */
	unsigned int names;
	struct answer answer;
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){.directory = "/tmp/test_self.XXXXXX"};
	assert_non_null(mkdtemp(f->directory));
}

static void fixture_release(struct fixture *f)
{
	for (unsigned int i = 0; i < f->names; i++) {
		unlink(f->name[i]);
		free(f->name[i]);
	}
	rmdir(f->directory);
	answer_release(&f->answer);
}

/* Makes a file that nobody may read: its name is all that is asked. */
static void touch(struct fixture *f, const char *name)
{
	int fd;

	assert_true(asprintf(&f->name[f->names], "%s/%s", f->directory, name) > 0);
	fd = open(f->name[f->names], O_CREAT | O_WRONLY | O_CLOEXEC, 0);
	assert_true(fd >= 0);
	close(fd);
	f->names++;
}

static const char *asked(struct fixture *f, const struct answer_view *view)
{
	answer_release(&f->answer);
	self_answer(f->directory, view, NOW_MS, &f->answer);
	assert_int_equal(f->answer.status, 200);
	assert_string_equal(f->answer.type, "application/json");
	return f->answer.body;
}

static void self__tells_what_names_of_files_say(void **state)
{
	static const struct answer_view root = {.has_uid = true, .uid = 0};
	CLEANUP(fixture_release) struct fixture f;
	const char *body;

	(void)state;
	fixture_init(&f);
	touch(&f, "1000000-300000-cpu.merged.pb.gz");
	touch(&f, "2000000-5000-cpu.pb.gz");
	touch(&f, "2005000-5000-cpu.pb.gz");
	touch(&f, "2005000-5001-offcpu.pb.gz");
	touch(&f, "2010000-1234-cpu.pb.gz");
	touch(&f, "2010000-5001-another.pb.gz");
	body = asked(&f, &root);
	assert_non_null(strstr(body, "\"now_ms\":1795273360165,\"uid\":0,\"sees\":\"all\","));
	assert_non_null(strstr(body, "\"store\":{\"from_ms\":1000000,\"until_ms\":2015001},"
				     "\"interval_ms\":5000,\"kinds\":["
				     "{\"kind\":\"cpu\",\"title\":\"CPU time\","
				     "\"unit\":\"nanoseconds\"},{\"kind\":\"offcpu\","));
	assert_null(strstr(body, "\"gil\""));
	assert_null(strstr(body, "another"));
}

static void users__get_no_store_and_what_runs_now(void **state)
{
	static const struct answer_view user = {.is_of_user = true, .has_uid = true, .uid = 1000};
	CLEANUP(fixture_release) struct fixture f;
	const char *body;

	(void)state;
	fixture_init(&f);
	touch(&f, "2000000-5000-cpu.pb.gz");
	body = asked(&f, &user);
	assert_non_null(strstr(body, "\"uid\":1000,\"sees\":\"own\",\"store\":null,"
				     "\"interval_ms\":10000,"));
	assert_non_null(strstr(body, "\"cpu\""));
	assert_non_null(strstr(body, "\"gil\""));
	/* Nobody gets it live. */
	assert_null(strstr(body, "\"waker\""));
}

static void token__has_no_uid_and_an_empty_store_is_none(void **state)
{
	static const struct answer_view token = {.has_uid = false, .uid = 1000};
	CLEANUP(fixture_release) struct fixture f;

	(void)state;
	fixture_init(&f);
	assert_non_null(strstr(asked(&f, &token), "\"uid\":null,\"sees\":\"all\",\"store\":null,"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(self__tells_what_names_of_files_say),
		cmocka_unit_test(users__get_no_store_and_what_runs_now),
		cmocka_unit_test(token__has_no_uid_and_an_empty_store_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
