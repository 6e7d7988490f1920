/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof-fetch is a script in the directory of this program. */
#include "query/remote.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "child/spawn.h"

static char program[CHILD_PROGRAM_BYTES];
static struct watcher_progress last;
static char noted[256];

static void on_progress(void *context, const struct watcher_progress *progress)
{
	(void)context;
	last = *progress;
}

static void on_note(void *context, const char *line)
{
	(void)context;
	snprintf(noted, sizeof(noted), "%s", line);
}

static const struct watcher watcher = {.progress = on_progress, .note = on_note, .stop_fd = -1};

/* Lets pyprof-fetch be this script. */
static void be(const char *script)
{
	OWNED_FILE FILE *file = fopen(program, "we");

	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", script);
	assert_int_equal(fchmod(fileno(file), 0700), 0);
}

static int fetch(char why[WHY_BYTES], struct remote **remote)
{
	static const char *const set[] = {"user=u", "header=A: b"};
	const struct remote_ask ask = {.url = "http://h",
				       .set = set,
				       .set_count = 2,
				       .kind = "offcpu",
				       .since_ms = 12,
				       .watcher = &watcher};

	why[0] = '\0';
	return remote_fetch(&ask, why, remote);
}

static int find_place(void **state)
{
	ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 32);

	(void)state;
	if (size <= 0)
		return -1;
	program[size] = '\0';
	memcpy(strrchr(program, '/'), "/pyprof-fetch", sizeof("/pyprof-fetch"));
	return 0;
}

static int leave_place(void **state)
{
	(void)state;
	return unlink(program);
}

static void fetch__hands_settings_over_and_waits_for_the_path(void **state)
{
	OWNED(remote) struct remote *remote = NULL;
	char why[WHY_BYTES];

	(void)state;
	be("[ \"$(cat <&3 | tr '\\n' ' ')\" = 'url=http://h kind=offcpu since-ms=12 set=user=u "
	   "set=header=A: b ' ] || echo error settings\n"
	   "[ $# = 0 ] || echo error words\n"
	   "echo progress 3 7; echo note something is missing; echo directory /x y\n"
	   "cat > /dev/null");
	assert_int_equal(fetch(why, &remote), 0);
	assert_string_equal(remote_path(remote), "/x y");
	assert_int_equal(last.done, 3);
	assert_int_equal(last.wanted, 7);
	assert_true(last.fetches);
	assert_string_equal(noted, "something is missing");
}

static void fetch__tells_none_from_an_error(void **state)
{
	struct remote *remote = NULL;
	char why[WHY_BYTES];

	(void)state;
	be("echo none nothing is there");
	assert_int_equal(fetch(why, &remote), -ENOENT);
	assert_string_equal(why, "nothing is there");
	be("echo error no way");
	assert_int_equal(fetch(why, &remote), -EINVAL);
	assert_string_equal(why, "no way");
	be("exit 3");
	assert_int_equal(fetch(why, &remote), -EINVAL);
	assert_non_null(strstr(why, "has ended without an answer"));
	assert_null(remote);
}

static void free__ends_the_input_and_waits(void **state)
{
	struct remote *remote = NULL;
	char why[WHY_BYTES], path[] = "/tmp/test_remote-XXXXXX", script[256];

	(void)state;
	close(mkstemp(path));
	snprintf(script, sizeof(script), "echo file %s; cat > /dev/null; rm %s", path, path);
	be(script);
	assert_int_equal(fetch(why, &remote), 0);
	assert_int_equal(access(path, F_OK), 0);
	remote_free(remote);
	assert_int_equal(access(path, F_OK), -1);
}

static void name__hides_what_may_be_secret(void **state)
{
	static const char *const pairs[][2] = {
		{"http://h:4041", "http://h:4041"},
		{"http://h/p?token=x", "http://h/p?***"},
		{"https://u:p@h/p?token=x@y", "https://***@h/p?***"},
		{"http://u:p@h", "http://***@h"},
		{"pyroscope+http://h/?service_name=a", "pyroscope+http://h/?service_name=a"},
		{"parca+http://u@h/?node=a@b", "parca+http://***@h/?node=a@b"}};
	char name[REMOTE_NAME_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		remote_name(pairs[i][0], name);
		assert_string_equal(name, pairs[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fetch__hands_settings_over_and_waits_for_the_path),
		cmocka_unit_test(fetch__tells_none_from_an_error),
		cmocka_unit_test(free__ends_the_input_and_waits),
		cmocka_unit_test(name__hides_what_may_be_secret),
	};

	return cmocka_run_group_tests(tests, find_place, leave_place);
}
