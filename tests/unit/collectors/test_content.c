/* SPDX-License-Identifier: BSD-2-Clause */
/* A merged file and its windows. */
#include "collectors/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "pprof/pprof.h"
#include "profile/comments.h"
#include "push_fixture.h"

#define WINDOWS 3U
#define WINDOW_MS 10000U

static char path[] = "/tmp/test_content_XXXXXX";

/* Writes a file whose window n has a row of value n + 1, later ones first. */
static void write_merged(void)
{
	OWNED_MEM void *bytes = NULL;
	struct fixture f;
	size_t size;
	int fd;

	fixture_init(&f);
	for (unsigned int n = WINDOWS; n--;) {
		const struct window_mark mark = {.offset_ms = n * WINDOW_MS,
						 .start_ms = START_MS + n * WINDOW_MS,
						 .duration_ms = WINDOW_MS,
						 .start_wall_ns = START_NS + n * DURATION_NS,
						 .duration_ns = DURATION_NS};
		char text[WINDOW_MARK_CHARS], label[64], pid[64];

		window_mark_format(&mark, text);
		assert_int_equal(profile_add_comment(f.profile, text), 0);
		snprintf(label, sizeof(label), WINDOW_LABEL "#%u", n * WINDOW_MS);
		snprintf(pid, sizeof(pid), "app=shop%u", n);
		add(&f, "work", n + 1, (const char *const[]){label, pid, NULL});
	}
	assert_int_equal(profile_encode_pprof(f.profile, &bytes, &size), 0);
	fixture_release(&f);
	snprintf(path, sizeof(path), "/tmp/test_content_XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), (ssize_t)size);
	close(fd);
}

static int open_merged(struct push_content **ret_content)
{
	static const struct push_label_choice choice = {.count = 0};
	const struct store_entry entry = {.path = path,
					  .file = {.start_ms = START_MS,
						   .duration_ms = WINDOWS * WINDOW_MS,
						   .kind = "offcpu",
						   .is_merged = true}};
	char why[PUSH_WHY_BYTES] = "";
	int err = push_content_read(&entry, &choice, why, ret_content);

	assert_int_equal(!err, !why[0]);
	return err;
}

static void expect_window(struct push_content *content, unsigned int n)
{
	char why[PUSH_WHY_BYTES] = "";
	const struct profile *profile;

	assert_int_equal(push_content_load(content, n, why), 0);
	profile = push_content_profile(content);
	assert_int_equal(profile_sample_count(profile), 1);
	assert_int_equal(profile_row_values(profile, 0)[0], n + 1);
	assert_int_equal(content->mark[n].start_ms, START_MS + n * WINDOW_MS);
	assert_int_equal(profile->options.start_wall_ns, START_NS + n * DURATION_NS);
}

/* One read gives all: what becomes of the file then does not matter. */
static void merged_file__is_unpacked_once(void **state)
{
	OWNED(push_content) struct push_content *content = NULL;

	(void)state;
	write_merged();
	assert_int_equal(open_merged(&content), 0);
	assert_int_equal(content->count, WINDOWS);
	assert_null(push_content_profile(content));
	assert_int_equal(truncate(path, 0), 0);
	for (unsigned int n = 0; n < WINDOWS; n++)
		expect_window(content, n);
	expect_window(content, 0);
	expect_window(content, 0);
	unlink(path);
}

static void file__that_is_cut_off_is_told(void **state)
{
	OWNED(push_content) struct push_content *content = NULL;

	(void)state;
	write_merged();
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(open_merged(&content), -EBADMSG);
	assert_null(content);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merged_file__is_unpacked_once),
		cmocka_unit_test(file__that_is_cut_off_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
