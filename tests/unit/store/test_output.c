/* SPDX-License-Identifier: BSD-2-Clause */
/* The store, the encoders and the writer, which has no thread here, are fakes in this file, so that
 * a test decides when the disk is full, or too slow. */
#include "store/keeper.h"
#include "store/merger.h"
#include "store/output.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "pprof/pprof.h"
#include "store/file_output.h"
#include "store/kept.h"
#include "store/store.h"

#define MAX_WRITES 64
#define WINDOW_NS 10000000000ULL
#define WAITING_MAX 24 /* as in output.c */

struct profile {
	const char *kind;
	size_t samples;
};

struct store {
	bool is_full;
};

struct write {
	const char *kind; /* NULL: one file */
	uint64_t start_wall_ns;
	char text[16];
};

/* Each test starts with none. */
static struct store disk;
static struct write writes[MAX_WRITES];
static size_t write_count;
static const char *refused; /* the kind that cannot be written */

static int write_one(const char *kind, uint64_t start_wall_ns, const void *bytes, size_t size)
{
	struct write *write = &writes[write_count % MAX_WRITES];

	if (disk.is_full)
		return -ENOSPC;
	if (refused && kind && !strcmp(refused, kind))
		return -EIO;
	write_count++;
	*write = (struct write){.kind = kind, .start_wall_ns = start_wall_ns};
	assert_in_range(size, 0, sizeof(write->text) - 1);
	memcpy(write->text, bytes, size);
	return 0;
}

int store_open(const char *directory, const struct store_limits *limits, struct store **ret_store)
{
	(void)directory;
	(void)limits;
	*ret_store = &disk;
	return 0;
}

static unsigned int limit_calls;

void store_set_limits(struct store *store, const struct store_limits *limits)
{
	assert_ptr_equal(store, &disk);
	assert_int_equal(limits->max_age_ms, 0);
	limit_calls++;
}

int store_directory_fd(const struct store *store)
{
	(void)store;
	return -1;
}

int merger_new(const char *program, const char *store, int store_fd, struct merger **ret_merger)
{
	(void)program;
	(void)store;
	(void)store_fd;
	(void)ret_merger;
	return -ENOMEM;
}

void store_get_stats(const struct store *of, struct store_stats *ret_stats)
{
	(void)of;
	*ret_stats = (struct store_stats){0};
}

void merger_get_stats(const struct merger *merger, struct merger_stats *ret_stats)
{
	(void)merger, (void)ret_stats;
}

void merger_free(struct merger *merger)
{
	assert_null(merger);
}

void merger_turn(struct merger *merger)
{
	assert_non_null(merger);
}

void store_free(struct store *store)
{
	(void)store;
}

int store_put(struct store *store, const char *kind, uint64_t start_wall_ns, uint64_t duration_ns,
	      const void *bytes, size_t size, char **ret_path)
{
	assert_ptr_equal(store, &disk);
	assert_int_equal(duration_ns, WINDOW_NS);
	*ret_path = NULL;
	return write_one(kind, start_wall_ns, bytes, size);
}

int file_output_lock(const char *path, int *ret_fd)
{
	*ret_fd = strncmp(path, "/dev/", 5) ? 7 : -1;
	return 0;
}

void file_output_unlock(const char *path, int fd)
{
	assert_int_equal(fd, strncmp(path, "/dev/", 5) ? 7 : -1);
}

int file_output_write(const char *path, const void *bytes, size_t size, uid_t uid, gid_t gid)
{
	(void)path;
	(void)uid;
	(void)gid;
	return write_one(NULL, 0, bytes, size);
}

size_t profile_sample_count(const struct profile *profile)
{
	return profile->samples;
}

const char *profile_kind(const struct profile *profile)
{
	return profile->kind;
}

int profile_encode_pprof(const struct profile *profile, void **ret_bytes, size_t *ret_size)
{
	*ret_size = strlen(profile->kind);
	*ret_bytes = strdup(profile->kind);
	return *ret_bytes ? 0 : -ENOMEM;
}

int profile_encode_folded(const struct profile *profile, char **ret_text, size_t *ret_size)
{
	int size = asprintf(ret_text, "%s 1\n", profile->kind);

	if (size < 0)
		return -ENOMEM;
	*ret_size = (size_t)size;
	return 0;
}

/* ---- the writer ---- */

struct writer {
	writer_write write;
	void *context;
	int last_err;
};

static struct writer writer;
static int writer_err;	   /* of writer_new() */
static size_t too_slow;	   /* profiles that the next writer_put() drops */
static bool is_stuck;	   /* the disk does not answer */
static unsigned int waits; /* for the disk */

int writer_new(writer_write write, void *context, struct writer **ret_writer)
{
	writer = (struct writer){.write = write, .context = context};
	if (!writer_err)
		*ret_writer = &writer;
	return writer_err;
}

void writer_window_release(struct writer_window *window)
{
	*window = (struct writer_window){};
}

size_t writer_put(struct writer *to, struct writer_window *window)
{
	if (!is_stuck)
		to->last_err = to->write(to->context, window);
	writer_window_release(window);
	return too_slow;
}

int writer_wait(struct writer *of, uint64_t limit_ns)
{
	assert_int_equal(limit_ns, 30 * NS_PER_SEC);
	waits++;
	return is_stuck ? -ETIMEDOUT : of->last_err;
}

/* What was written when the keeper was told of a window; the keeper has no other memory. */
static size_t kept_after;
#define KEEPER ((struct keeper *)&kept_after)

int keeper_new(const char *store, struct keeper **ret_keeper)
{
	assert_string_equal(store, "profiles/");
	*ret_keeper = KEEPER;
	return 0;
}

void keeper_free(struct keeper *of)
{
	assert_true(!of || of == KEEPER);
}

void keeper_keep(struct keeper *of, struct store *store, const struct writer_window *window)
{
	(void)window;
	assert_ptr_equal(of, KEEPER);
	assert_ptr_equal(store, &disk);
	kept_after = write_count;
}

size_t writer_waiting(struct writer *of)
{
	(void)of;
	return is_stuck ? 3 : 0;
}

bool writer_free(struct writer *of, uint64_t limit_ns)
{
	(void)of, (void)limit_ns;
	return !is_stuck;
}

static const struct options directory = {.output = "profiles/",
					 .output_kind = OPTIONS_OUTPUT_DIRECTORY};

static int start(void **state)
{
	(void)state;
	write_count = 0;
	disk.is_full = is_stuck = false;
	writer_err = 0;
	too_slow = waits = 0;
	log_set_level(LOG_LEVEL_ERROR); /* the warnings of a full disk are expected */
	return 0;
}

static int put(struct output *output, const char *kind, uint64_t start_wall_ns, bool is_last)
{
	struct profile profile = {.kind = kind};
	struct writer_window window = {.profile[PP_PROFILE_WALL] = &profile,
				       .start_wall_ns = start_wall_ns,
				       .duration_ns = WINDOW_NS,
				       .is_last = is_last};
	int err = output_write(output, &window);

	assert_null(window.profile[PP_PROFILE_WALL]); /* it was taken over */
	return err;
}

static void assert_write(size_t index, const char *kind, uint64_t start_wall_ns)
{
	assert_in_range(index, 0, write_count - 1);
	assert_string_equal(writes[index].kind, kind);
	assert_int_equal(writes[index].start_wall_ns, start_wall_ns);
	assert_string_equal(writes[index].text, kind);
}

static void output_write__store_has_the_limits_of_each_window(void **state)
{
	struct output *output = NULL;

	(void)state;
	assert_int_equal(output_open(&directory, &output), 0);
	limit_calls = 0;
	for (unsigned int i = 1; i <= 2; i++) {
		assert_int_equal(put(output, "cpu", i, false), 0);
		assert_int_equal(limit_calls, i);
	}
	output_free(output);
}

static void output_write__store_gets_each_profile_under_its_kind(void **state)
{
	OWNED(output) struct output *output = NULL;

	(void)state;
	assert_int_equal(output_open(&directory, &output), 0);
	assert_true(output_is_store(output));
	assert_int_equal(put(output, "cpu", 1, false), 0);
	assert_int_equal(put(output, "offcpu", 1, false), 0);
	assert_int_equal(put(output, "gil_wait", 1, true), 0);
	assert_int_equal(write_count, 3);
	assert_write(0, "cpu", 1);
	assert_write(1, "offcpu", 1);
	assert_write(2, "gil_wait", 1);
}

static void output_write__kind_without_samples_has_no_file_beside_cpu(void **state)
{
	struct profile profile[] = {
		{.kind = "cpu"}, {.kind = "offcpu", .samples = 1}, {.kind = "gil_wait"}};
	OWNED(output) struct output *output = NULL;

	(void)state;
	assert_int_equal(output_open(&directory, &output), 0);
	for (uint64_t has_cpu = 0; has_cpu < 2; has_cpu++) {
		struct writer_window window = {
			.profile =
				{[PP_PROFILE_OFFCPU] = &profile[1], [PP_PROFILE_GIL] = &profile[2]},
			.start_wall_ns = has_cpu,
			.duration_ns = WINDOW_NS,
			.is_last = has_cpu};

		if (has_cpu)
			window.profile[PP_PROFILE_CPU] = &profile[0];
		assert_int_equal(output_write(output, &window), 0);
	}
	assert_int_equal(write_count, 4);
	/* Without cpu each kind tells that somebody recorded. */
	assert_write(0, "offcpu", 0);
	assert_write(1, "gil_wait", 0);
	assert_write(2, "cpu", 1);
	assert_write(3, "offcpu", 1);
}

static void output_write__one_file_gets_whichever_profile_there_is(void **state)
{
	static const struct {
		enum options_output_kind output_kind;
		const char *kind, *text;
	} cases[] = {
		{OPTIONS_OUTPUT_PPROF, "offcpu", "offcpu"},
		{OPTIONS_OUTPUT_PPROF, "gil_wait", "gil_wait"},
		{OPTIONS_OUTPUT_FOLDED, "offcpu", "offcpu 1\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct options options = {.output = "x", .output_kind = cases[i].output_kind};
		OWNED(output) struct output *output = NULL;

		assert_int_equal(output_open(&options, &output), 0);
		assert_false(output_is_store(output));
		assert_int_equal(put(output, cases[i].kind, 1, true), 0);
		assert_int_equal(write_count, i + 1);
		assert_null(writes[i].kind);
		assert_string_equal(writes[i].text, cases[i].text);
	}
}

static void output_write__what_waited_for_room_keeps_its_kind_and_order(void **state)
{
	OWNED(output) struct output *output = NULL;

	(void)state;
	assert_int_equal(output_open(&directory, &output), 0);
	disk.is_full = true;
	assert_int_equal(put(output, "cpu", 1, false), 0);
	assert_int_equal(put(output, "offcpu", 1, false), 0);
	assert_int_equal(write_count, 0);
	disk.is_full = false;
	assert_int_equal(put(output, "cpu", 2, false), 0);
	assert_int_equal(write_count, 3);
	assert_write(0, "cpu", 1);
	assert_write(1, "offcpu", 1);
	assert_write(2, "cpu", 2);
}

static void output_write__too_many_waiting_give_up_the_oldest_windows_whole(void **state)
{
	static const char *const kinds[] = {"cpu", "offcpu", "gil_wait"};
	OWNED(output) struct output *output = NULL;
	uint64_t windows = WAITING_MAX / ARRAY_SIZE(kinds) + 2;

	(void)state;
	assert_int_equal(output_open(&directory, &output), 0);
	disk.is_full = true;
	for (uint64_t window = 1; window <= windows; window++)
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
			assert_int_equal(put(output, kinds[i], window, false), 0);
	disk.is_full = false;
	assert_int_equal(put(output, "cpu", windows + 1, false), 0);
	assert_int_equal(write_count, WAITING_MAX + 1);
	for (size_t i = 0; i < WAITING_MAX; i++)
		assert_write(i, kinds[i % ARRAY_SIZE(kinds)], 3 + i / ARRAY_SIZE(kinds));
}

/* stderr as a file whose lines are counted. */
struct capture {
	FILE *file;
	int before;
};

static struct capture begin_capture(void)
{
	struct capture capture = {.file = tmpfile(), .before = dup(STDERR_FILENO)};

	assert_non_null(capture.file);
	assert_int_equal(dup2(fileno(capture.file), STDERR_FILENO), STDERR_FILENO);
	log_set_level(LOG_LEVEL_INFO);
	return capture;
}

static size_t end_capture(const struct capture *capture, const char *has)
{
	char line[512];
	size_t count = 0;
	bool found = !has;

	dup2(capture->before, STDERR_FILENO);
	close(capture->before);
	rewind(capture->file);
	for (; fgets(line, sizeof(line), capture->file); count++)
		found |= has && strstr(line, has);
	fclose(capture->file);
	assert_true(found);
	return count;
}

static void output_write__store_that_stays_full_does_not_fill_the_log(void **state)
{
	struct output *output = NULL;
	struct capture capture = begin_capture();

	(void)state;
	assert_int_equal(output_open(&directory, &output), 0);
	disk.is_full = true;
	for (uint64_t window = 1; window <= WAITING_MAX + 1000; window++)
		assert_int_equal(put(output, "cpu", window, false), 0);
	/* That it is full, and that profiles are dropped. */
	assert_int_equal(end_capture(&capture, "are dropped (1 so far)"), 2);
	capture = begin_capture();
	disk.is_full = false;
	assert_int_equal(put(output, "cpu", WAITING_MAX + 1001, false), 0);
	assert_int_equal(end_capture(&capture, "again; 1000 profiles were dropped"), 1);
	/* The next time is told when it is over. */
	capture = begin_capture();
	disk.is_full = true;
	for (uint64_t window = 1; window <= WAITING_MAX + 2; window++)
		assert_int_equal(put(output, "cpu", WAITING_MAX + 1001 + window, false), 0);
	assert_int_equal(end_capture(&capture, NULL), 0);
	capture = begin_capture();
	disk.is_full = false;
	assert_int_equal(put(output, "cpu", 2 * WAITING_MAX + 1004, false), 0);
	assert_int_equal(end_capture(&capture, "again; 2 profiles were dropped"), 1);
	output_free(output);
}

static void output_write__store_that_is_full_now_and_then_is_told_once(void **state)
{
	struct output *output = NULL;
	struct capture capture = begin_capture();

	(void)state;
	assert_int_equal(output_open(&directory, &output), 0);
	for (uint64_t window = 1; window <= 100; window++) {
		disk.is_full = window & 1;
		assert_int_equal(put(output, "cpu", window, false), 0);
	}
	assert_int_equal(write_count % MAX_WRITES, 100 % MAX_WRITES);
	assert_int_equal(end_capture(&capture, "can be written again\n"), 2);
	output_free(output);
}

static void output_free__profiles_that_wait_are_told(void **state)
{
	struct output *output = NULL;
	struct capture capture;

	(void)state;
	assert_int_equal(output_open(&directory, &output), 0);
	disk.is_full = true;
	assert_int_equal(put(output, "cpu", 1, false), 0);
	assert_int_equal(put(output, "cpu", 2, false), 0);
	capture = begin_capture();
	output_free(output);
	assert_int_equal(end_capture(&capture, "2 profiles that waited for room are lost"), 1);
}

static void output_write__full_disk_at_the_end_is_enospc(void **state)
{
	OWNED(output) struct output *output = NULL;

	(void)state;
	assert_int_equal(output_open(&directory, &output), 0);
	disk.is_full = true;
	assert_int_equal(put(output, "cpu", 1, false), 0);
	assert_int_equal(put(output, "cpu", 2, true), -ENOSPC);
	assert_int_equal(put(output, "offcpu", 2, true), -ENOSPC);
	assert_int_equal(write_count, 0);
}

static void output_write__window_is_whole_also_when_one_kind_fails(void **state)
{
	struct profile profile[] = {{.kind = "cpu"}, {.kind = "offcpu", .samples = 1}};
	struct writer_window window = {.profile = {&profile[0], &profile[1]},
				       .start_wall_ns = 7,
				       .duration_ns = WINDOW_NS,
				       .is_last = true};
	OWNED(output) struct output *output = NULL;

	(void)state;
	assert_int_equal(output_open(&directory, &output), 0);
	assert_int_equal(output_write(output, &window), 0);
	assert_write(0, "cpu", 7);
	assert_write(1, "offcpu", 7);
	refused = "cpu";
	window = (struct writer_window){.profile = {&profile[0], &profile[1]},
					.start_wall_ns = 8,
					.duration_ns = WINDOW_NS,
					.is_last = true};
	assert_int_equal(output_write(output, &window), -EIO);
	refused = NULL;
	assert_int_equal(write_count, 3);
	assert_write(2, "offcpu", 8);
}

/* Only the end of the run waits for a store. */
static void output_write__last_window_waits_for_the_disk(void **state)
{
	struct output *output = NULL;

	(void)state;
	assert_int_equal(output_open(&directory, &output), 0);
	assert_int_equal(put(output, "cpu", 1, false), 0);
	assert_int_equal(waits, 0);
	assert_int_equal(put(output, "cpu", 2, true), 0);
	assert_int_equal(waits, 1);
	output_free(output);
	/* Without a last window, for example after an error, what was handed over is written,
	 * too. */
	assert_int_equal(output_open(&directory, &output), 0);
	assert_int_equal(put(output, "cpu", 1, false), 0);
	waits = 0;
	output_free(output);
	assert_int_equal(waits, 1);
}

static void output_write__disk_that_does_not_answer_is_told_once(void **state)
{
	static struct output *output; /* the writer keeps it */
	struct capture capture;

	(void)state;
	assert_int_equal(output_open(&directory, &output), 0);
	is_stuck = true;
	assert_int_equal(put(output, "cpu", 1, false), 0);
	capture = begin_capture();
	assert_int_equal(put(output, "cpu", 2, true), -ETIMEDOUT);
	output_free(output);
	assert_int_equal(end_capture(&capture, "does not answer: 3 windows are not written"), 1);
	assert_int_equal(waits, 1);
}

/* A pager may take its time; nobody waits for a file for ever. */
static void output_write__one_file_is_waited_for_unless_it_has_no_name(void **state)
{
	struct options options = {.output = "/dev/stdout", .output_kind = OPTIONS_OUTPUT_PPROF};
	static struct output *output[3]; /* the writers keep them */
	struct capture capture;

	(void)state;
	is_stuck = true;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(output_open(&options, &output[i]), 0);
		assert_int_equal(put(output[i], "cpu", 1, true), 0);
		assert_int_equal(write_count, i + 1);
		output_free(output[i]);
		options.output = "-";
	}
	options.output = "x";
	assert_int_equal(output_open(&options, &output[2]), 0);
	capture = begin_capture();
	assert_int_equal(put(output[2], "cpu", 1, true), -ETIMEDOUT);
	output_free(output[2]);
	assert_int_equal(end_capture(&capture, "'x' does not answer: the profile is not written"),
			 1);
	assert_int_equal(write_count, 2);
	assert_int_equal(waits, 1);
}

static void output_write__windows_that_waited_too_long_are_told_now_and_then(void **state)
{
	struct output *output = NULL;
	struct capture capture = begin_capture();

	(void)state;
	assert_int_equal(output_open(&directory, &output), 0);
	too_slow = 4;
	for (uint64_t window = 1; window <= 100; window++)
		assert_int_equal(put(output, "cpu", window, false), 0);
	/* 4, 8, 16, ... 256 */
	assert_int_equal(end_capture(&capture, "too slowly"), 7);
	output_free(output);
}

static void output_write__without_a_thread_the_loop_writes(void **state)
{
	OWNED(output) struct output *output = NULL;

	(void)state;
	writer_err = -EAGAIN;
	assert_int_equal(output_open(&directory, &output), 0);
	assert_int_equal(put(output, "cpu", 1, false), 0);
	assert_write(0, "cpu", 1);
	disk.is_full = true;
	assert_int_equal(put(output, "cpu", 2, true), -ENOSPC);
}

static void output_write__what_is_to_be_kept_is_written_before(void **state)
{
	OWNED(output) struct output *output = NULL;

	(void)state;
	kept_after = 0;
	assert_int_equal(output_open(&directory, &output), 0);
	assert_int_equal(put(output, "cpu", 1, false), 0);
	assert_int_equal(kept_after, 1);
}

static void output_write__none_is_written_nowhere(void **state)
{
	const struct options none = {.output = "no", .output_kind = OPTIONS_OUTPUT_NONE};
	OWNED(output) struct output *output = NULL;

	(void)state;
	assert_int_equal(output_open(&none, &output), 0);
	assert_true(output_is_store(output));
	assert_int_equal(put(output, "cpu", 1, true), 0);
	assert_int_equal(write_count, 0);
	assert_int_equal(waits, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

/* Files are root's, or of who called sudo. */
static void output_owner__is_that_of_sudo_or_nobody(void **state)
{
	static const struct {
		const char *uid, *gid;
		uid_t owner;
		gid_t group;
	} row[] = {{NULL, NULL, (uid_t)-1, (gid_t)-1},
		   {"1000", "1001", 1000, 1001},
		   {"1000", NULL, (uid_t)-1, (gid_t)-1},
		   {"1000", "x", (uid_t)-1, (gid_t)-1}};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uid_t uid = 7;
		gid_t gid = 7;

		unsetenv("SUDO_UID");
		unsetenv("SUDO_GID");
		if (row[i].uid)
			setenv("SUDO_UID", row[i].uid, 1);
		if (row[i].gid)
			setenv("SUDO_GID", row[i].gid, 1);
		output_owner(&uid, &gid);
		assert_int_equal(uid, row[i].owner);
		assert_int_equal(gid, row[i].group);
	}
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(output_owner__is_that_of_sudo_or_nobody),
		TEST(output_write__store_has_the_limits_of_each_window),
		TEST(output_write__store_gets_each_profile_under_its_kind),
		TEST(output_write__kind_without_samples_has_no_file_beside_cpu),
		TEST(output_write__one_file_gets_whichever_profile_there_is),
		TEST(output_write__what_waited_for_room_keeps_its_kind_and_order),
		TEST(output_write__too_many_waiting_give_up_the_oldest_windows_whole),
		TEST(output_write__store_that_stays_full_does_not_fill_the_log),
		TEST(output_write__store_that_is_full_now_and_then_is_told_once),
		TEST(output_free__profiles_that_wait_are_told),
		TEST(output_write__full_disk_at_the_end_is_enospc),
		TEST(output_write__window_is_whole_also_when_one_kind_fails),
		TEST(output_write__last_window_waits_for_the_disk),
		TEST(output_write__disk_that_does_not_answer_is_told_once),
		TEST(output_write__one_file_is_waited_for_unless_it_has_no_name),
		TEST(output_write__windows_that_waited_too_long_are_told_now_and_then),
		TEST(output_write__what_is_to_be_kept_is_written_before),
		TEST(output_write__without_a_thread_the_loop_writes),
		TEST(output_write__none_is_written_nowhere),
	};

	return cmocka_run_group_tests_name("agent/output", tests, NULL, NULL);
}
