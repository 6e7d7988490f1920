/* SPDX-License-Identifier: BSD-2-Clause */
/* A store of windows, and what a reader finds in it before, while and after it is merged.  System
 * calls that change the store can be told to be the last ones: the process is killed there. */
#include "store/merge_store.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "pprof/pprof.h"
#include "pprof/profile_read.h"
#include "profile/profile.h"
#include "store/store_query.h"
#include "store_fixture.h"

#define START_MS 1795273200000ULL /* five minutes begin */
#define NOW_MS (START_MS + MERGE_SLOT_MS + MERGE_AFTER_MS)
#define WINDOWS 30U
#define FOUND_CHARS 65536U

int unlinkat(int fd, const char *name, int flags)
{
	int (*next)(int, const char *, int) =
		(int (*)(int, const char *, int))dlsym(RTLD_NEXT, "unlinkat");

	return ends_here() ? -1 : next(fd, name, flags);
}

static const char *unreadable; /* the file that the disk does not give */

int openat(int fd, const char *name, int flags, ...)
{
	int (*next)(int, const char *, int, ...) =
		(int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat");
	va_list rest;
	int mode;

	va_start(rest, flags);
	mode = flags & O_CREAT ? va_arg(rest, int) : 0;
	va_end(rest);
	if (!unreadable || strcmp(name, unreadable) != 0)
		return next(fd, name, flags, mode);
	errno = EIO;
	return -1;
}

static struct store_file file_of(uint64_t start_ms, const char *kind)
{
	struct store_file file = {.start_ms = start_ms, .duration_ms = 10000};

	snprintf(file.kind, sizeof(file.kind), "%s", kind);
	return file;
}

static int64_t period = 7;

/* Writes a window with two samples, of which one is of this window alone, of so many types. */
static void put_window_of(const char *store, uint64_t start_ms, const char *kind, size_t types)
{
	const struct store_file file = file_of(start_ms, kind);
	const struct profile_value_type type =
		!strcmp(kind, "gil")	? (struct profile_value_type){"gil_wait", "nanoseconds"}
		: !strcmp(kind, "cuda") ? (struct profile_value_type){"calls", "count"}
					: (struct profile_value_type){"samples", "count"};
	const struct profile_options options = {.kind = kind,
						.value_type = {type, {"cpu", "nanoseconds"}},
						.value_count = types,
						.default_value_type = type.type,
						.period_type = {"cpu", "nanoseconds"},
						.period = period,
						.start_wall_ns = start_ms * 1000000 + 5,
						.duration_ns = 10000000003ULL};
	struct intern *strings;
	OWNED(profile) struct profile *profile = NULL;
	OWNED_MEM void *bytes = NULL;
	char text[96];
	size_t size;

	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(profile_new(&options, strings, &profile), 0);
	for (int i = 0; i < 2; i++) {
		struct frame frame = {.kind = FRAME_PYTHON, .line = 5};
		struct profile_sample sample = {.frame = &frame,
						.frame_count = 1,
						.value = {(int64_t)(start_ms % 1000000) + i},
						.label = {{.key = "pid",
							   .number = i ? (int64_t)start_ms : 4,
							   .is_number = 1}},
						.label_count = 1};

		assert_int_equal(intern_string(strings, i ? "own" : "shared", &frame.name), 0);
		assert_int_equal(profile_add(profile, &sample), 0);
	}
	snprintf(text, sizeof(text), "start=%lu", (unsigned long)start_ms);
	assert_int_equal(profile_add_comment(profile, text), 0);
	assert_int_equal(profile_add_comment(profile, "pyprofd of all"), 0);
	assert_int_equal(profile_encode_pprof(profile, &bytes, &size), 0);
	write_bytes(store, &file, bytes, size);
	profile_free(TAKE(profile));
	intern_free(strings);
}

static void put_window(const char *store, uint64_t start_ms, const char *kind)
{
	put_window_of(store, start_ms, kind, 1);
}

/* Thirty windows of cpu, of which each third has gil. */
static void fill(const char *store)
{
	for (uint64_t i = 0; i < WINDOWS; i++) {
		put_window(store, START_MS + i * 10000, "cpu");
		if (i % 3 == 0)
			put_window(store, START_MS + i * 10000, "gil");
	}
}

/* ---- what a reader finds ---- */

struct found {
	char text[FOUND_CHARS];
	size_t size;
	uint64_t done[4 * WINDOWS]; /* starts of windows of .merging files */
	size_t done_count;
	bool is_merging;
};

static void found_comment(void *context, const char *text)
{
	struct found *found = context;

	found->size += (size_t)sprintf(found->text + found->size, " %s", text);
}

static int found_window(void *context, struct profile *profile, const struct profile_window *window)
{
	struct found *found = context;

	(void)profile;
	found->size += (size_t)sprintf(found->text + found->size, " [%lu+%lu %ld %zu]",
				       window->start_wall_ns, window->duration_ns,
				       (long)window->total, window->delta_count);
	return 0;
}

static bool found_wants(void *context, const struct window_mark *mark)
{
	struct found *found = context;

	if (found->is_merging)
		found->done[found->done_count++] = mark->start_ms;
	return true;
}

static bool is_done(const struct found *found, uint64_t start_ms)
{
	for (size_t i = 0; i < found->done_count; i++)
		if (found->done[i] == start_ms)
			return true;
	return false;
}

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the words, as merged files tell them in another order. */
static void sort_words(struct found *found)
{
	static char *word[FOUND_CHARS / 2];
	OWNED_MEM char *copy = strdup(found->text);
	char *rest = copy;
	size_t count = 0;

	while ((word[count] = strsep(&rest, " ")))
		count++;
	qsort(word, count, sizeof(word[0]), compare_words);
	found->size = 0;
	for (size_t i = 0; i < count; i++)
		found->size += (size_t)sprintf(found->text + found->size, "%s ", word[i]);
}

/* Reads all windows of a kind as pyprof does. */
static void read_kind(const char *store, const char *kind, struct found *found)
{
	const struct store_range range = {.until_ms = UINT64_MAX, .kind = kind};
	const struct profile_read_options options = {.comment = found_comment,
						     .window_done = found_window,
						     .wants_window = found_wants,
						     .context = found};
	CLEANUP(store_listing_release) struct store_listing listing = {0};
	OWNED(profile_reader) struct profile_reader *reader = NULL;

	memset(found, 0, sizeof(*found));
	assert_int_equal(profile_reader_new(&options, &reader), 0);
	assert_int_equal(store_list(store, &range, &listing), 0);
	for (size_t i = 0; i < listing.count; i++) {
		const struct store_entry *entry = &listing.entry[i];
		OWNED_FD int fd = -1;

		found->is_merging = entry->file.is_merging;
		if (!entry->file.is_merged && is_done(found, entry->file.start_ms))
			continue;
		fd = open(entry->path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(profile_reader_add(reader, fd, kind), 0);
	}
	sort_words(found);
}

static size_t count_files(const char *store, bool merged)
{
	const struct store_range all = {.until_ms = UINT64_MAX};
	CLEANUP(store_listing_release) struct store_listing listing = {0};
	size_t count = 0;

	assert_int_equal(store_list(store, &all, &listing), 0);
	for (size_t i = 0; i < listing.count; i++)
		count += listing.entry[i].file.is_merged == merged;
	return count;
}

static struct found before, after;

static int merge_all(const char *store, uint64_t now_ms)
{
	struct merge_refused refused = {0};
	const struct merge_pass pass = {.refused = &refused};

	return merge_store(store, now_ms, &pass);
}

static void merge_store__windows_come_back_as_they_were(void **state)
{
	fill(*state);
	read_kind(*state, "cpu", &before);
	assert_int_equal(merge_all(*state, NOW_MS - 1), 0);
	assert_int_equal(count_files(*state, true), 0);
	assert_int_equal(merge_all(*state, NOW_MS), 0);
	assert_int_equal(count_files(*state, true), 2);
	assert_int_equal(count_files(*state, false), 0);
	read_kind(*state, "cpu", &after);
	assert_string_equal(after.text, before.text);
	/* There is nothing left to do. */
	assert_int_equal(merge_all(*state, NOW_MS), 0);
	assert_int_equal(count_files(*state, true), 2);
}

static void merge_store__windows_without_samples_are_known(void **state)
{
	char *at;
	size_t windows = 0;

	fill(*state);
	assert_int_equal(merge_all(*state, NOW_MS), 0);
	read_kind(*state, "gil", &after);
	for (at = after.text; (at = strchr(at, '[')); at++)
		windows++;
	assert_int_equal(windows, WINDOWS);
	/* The second one, by the time in the name of cpu's file. */
	assert_non_null(strstr(after.text, "[1795273210000000000+10000000000"));
	assert_non_null(strstr(after.text, "[1795273230000000005+10000000003"));
}

/* The process ends at its first call that changes the store, at its second, ... */
static void merge_store__killed_at_any_call_loses_and_doubles_nothing(void **state)
{
	unsigned int ends = 0;
	bool is_whole = false;

	fill(*state);
	read_kind(*state, "cpu", &before);
	while (!is_whole) {
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (!child) {
			/* Not always the first one, as what was begun is finished first. */
			calls_left = 1 + ends % 45;
			_exit(merge_all(*state, NOW_MS) ? 1 : 0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status) &&
			    (WEXITSTATUS(status) == 9 || !WEXITSTATUS(status)));
		is_whole = !WEXITSTATUS(status);
		ends += !is_whole;
		read_kind(*state, "cpu", &after);
		assert_string_equal(after.text, before.text);
	}
	assert_true(ends > 10);
	assert_int_equal(count_files(*state, true), 2);
	assert_int_equal(count_files(*state, false), 0);
}

static void merge_store__full_disk_ends_the_pass_and_leaves_the_windows(void **state)
{
	static const int of_disk[] = {ENOSPC, EDQUOT, EROFS, EIO};

	fill(*state);
	read_kind(*state, "cpu", &before);
	for (size_t i = 0; i < ARRAY_SIZE(of_disk); i++) {
		failing_err = of_disk[i];
		calls_left = 1;
		assert_int_equal(merge_all(*state, NOW_MS), -of_disk[i]);
		read_kind(*state, "cpu", &after);
		assert_string_equal(after.text, before.text);
		assert_int_equal(count_files(*state, true), 0);
	}
	failing_err = 0;
	assert_int_equal(merge_all(*state, NOW_MS), 0);
	assert_int_equal(count_files(*state, true), 2);
}

static void merge_store__broken_file_leaves_its_group_alone(void **state)
{
	const struct store_file broken = file_of(START_MS + 20000, "cpu");
	struct merge_refused refused = {0};
	const struct merge_pass pass = {.refused = &refused};

	fill(*state);
	write_bytes(*state, &broken, "no profile", 10);
	assert_int_equal(merge_store(*state, NOW_MS, &pass), 0);
	assert_int_equal(refused.count, 1);
	assert_int_equal(refused.group[0].start_ms, START_MS);
	assert_int_equal(count_files(*state, false), WINDOWS);
	assert_int_equal(count_files(*state, true), 1); /* of gil */
	/* It is not tried again. */
	assert_int_equal(merge_store(*state, NOW_MS, &pass), 0);
	assert_int_equal(refused.count, 1);
}

static void merge_store__file_that_the_disk_does_not_give_is_a_broken_one(void **state)
{
	struct merge_refused refused = {0};
	const struct merge_pass pass = {.refused = &refused};

	fill(*state);
	unreadable = "1795273220000-10000-cpu.pb.gz";
	assert_int_equal(merge_store(*state, NOW_MS, &pass), 0);
	unreadable = NULL;
	assert_int_equal(refused.count, 1);
	assert_string_equal(refused.group[0].kind, "cpu");
	assert_int_equal(count_files(*state, false), WINDOWS);
	assert_int_equal(count_files(*state, true), 1); /* of gil */
}

static char calls[256];

static void call(const char *what, const struct store_file *first, int err)
{
	const size_t used = strlen(calls);

	snprintf(calls + used, sizeof(calls) - used, "%s %s %lu+%lu %d, ", what, first->kind,
		 (unsigned long)(first->start_ms - START_MS), (unsigned long)first->duration_ms,
		 err);
}

static void begins(void *context, const struct store_file *first)
{
	assert_ptr_equal(context, calls);
	call("begins", first, 0);
}

static void done(void *context, const struct store_file *first, int err)
{
	assert_ptr_equal(context, calls);
	call("done", first, err);
}

/* cpu is the last one. */
static void merge_store__tells_each_kind_by_its_first_window(void **state)
{
	struct merge_refused refused = {0};
	const struct merge_pass pass = {
		.refused = &refused, .begins = begins, .done = done, .context = calls};

	fill(*state);
	put_window(*state, START_MS, "cuda");
	put_window(*state, START_MS + 10000, "cuda");
	calls[0] = '\0';
	assert_int_equal(merge_store(*state, NOW_MS, &pass), 0);
	if (strcmp(calls, "begins cuda 0+10000 0, done cuda 0+10000 0, "
			  "begins gil 0+10000 0, done gil 0+10000 0, "
			  "begins cpu 0+10000 0, done cpu 0+10000 0, ") != 0)
		fail_msg("%s", calls);
}

/* The list of windows has no such number. */
static void merge_store__window_of_a_negative_period_stays_as_it_is(void **state)
{
	put_window(*state, START_MS, "cpu");
	period = -7;
	put_window(*state, START_MS + 10000, "cpu");
	period = 7;
	assert_int_equal(merge_all(*state, NOW_MS), 0);
	assert_int_equal(count_files(*state, false), 2);
}

/* A thousand are tried. */
static void merge_store__name_that_is_taken_is_lengthened(void **state)
{
	struct store_file taken = file_of(START_MS, "cpu");

	taken.is_merged = true;
	taken.duration_ms = 20000;
	put_window(*state, START_MS, "cpu");
	put_window(*state, START_MS + 10000, "cpu");
	for (unsigned int i = 0; i < STORE_RENAMES_MAX; i++, taken.duration_ms++)
		if (i != 999)
			write_bytes(*state, &taken, "", 0);
	assert_int_equal(merge_all(*state, NOW_MS), 0);
	assert_int_equal(count_files(*state, false), 0);
	assert_int_equal(count_files(*state, true), 1000);
	put_window(*state, START_MS, "cpu");
	put_window(*state, START_MS + 10000, "cpu");
	assert_int_equal(merge_all(*state, NOW_MS), 0);
	assert_int_equal(count_files(*state, false), 2);
}

/* Of so many as are remembered the oldest is forgotten first. */
static void merge_store__what_was_refused_is_left_alone_for_long(void **state)
{
	struct merge_refused refused = {0};
	const struct merge_pass pass = {.refused = &refused};

	fill(*state);
	merge_refuse(&refused, "cpu", START_MS);
	for (uint64_t i = 1; i < MERGE_REFUSED_MAX; i++)
		merge_refuse(&refused, "cpu", i);
	assert_int_equal(merge_store(*state, NOW_MS, &pass), 0);
	assert_int_equal(count_files(*state, false), WINDOWS);
	assert_int_equal(count_files(*state, true), 1); /* of gil */
	merge_refuse(&refused, "gil", START_MS);
	assert_int_equal(merge_store(*state, NOW_MS, &pass), 0);
	assert_int_equal(count_files(*state, false), 0);
	assert_int_equal(count_files(*state, true), 2);
}

/* The clock was set back after the first windows had been merged. */
static void merge_store__second_merge_of_the_same_minutes_keeps_both(void **state)
{
	fill(*state);
	assert_int_equal(merge_all(*state, NOW_MS), 0);
	fill(*state);
	read_kind(*state, "cpu", &before);
	assert_int_equal(merge_all(*state, NOW_MS), 0);
	assert_int_equal(count_files(*state, true), 4);
	assert_int_equal(count_files(*state, false), 0);
	read_kind(*state, "cpu", &after);
	assert_string_equal(after.text, before.text);
}

static void merge_store__merging_file_that_is_broken_deletes_nothing(void **state)
{
	struct store_file merging = file_of(START_MS, "cpu");

	fill(*state);
	merging.is_merged = merging.is_merging = true;
	merging.duration_ms = 300000;
	write_bytes(*state, &merging, "no profile", 10);
	assert_int_equal(merge_all(*state, START_MS), 0);
	assert_int_equal(count_files(*state, false), WINDOWS + WINDOWS / 3);
}

/* Killed while the windows of cpu are deleted; the next process cannot finish that. */
static void merge_store__what_cannot_be_finished_is_not_merged_anew(void **state)
{
	pid_t child;
	int status;

	fill(*state);
	read_kind(*state, "cpu", &before);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		calls_left = 26; /* gil takes 16 */
		_exit(merge_all(*state, NOW_MS) ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
	assert_in_range(count_files(*state, false), 1, WINDOWS - 1);
	calls_left = 1;
	failing_err = ENOMEM;
	assert_int_equal(merge_all(*state, NOW_MS), 0);
	assert_in_range(count_files(*state, false), 1, WINDOWS - 1);
	read_kind(*state, "cpu", &after);
	assert_string_equal(after.text, before.text);
	assert_int_equal(merge_all(*state, NOW_MS), 0);
	assert_int_equal(count_files(*state, true), 2);
	assert_int_equal(count_files(*state, false), 0);
	read_kind(*state, "cpu", &after);
	assert_string_equal(after.text, before.text);
}

/* A newer version writes one more sample type. */
static void merge_store__windows_with_other_types_stay_as_they_are(void **state)
{
	put_window(*state, START_MS, "cpu");
	put_window_of(*state, START_MS + 10000, "cpu", 2);
	assert_int_equal(merge_all(*state, NOW_MS), 0);
	assert_int_equal(count_files(*state, false), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_store, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(merge_store__windows_come_back_as_they_were),
		TEST(merge_store__windows_without_samples_are_known),
		TEST(merge_store__killed_at_any_call_loses_and_doubles_nothing),
		TEST(merge_store__full_disk_ends_the_pass_and_leaves_the_windows),
		TEST(merge_store__broken_file_leaves_its_group_alone),
		TEST(merge_store__file_that_the_disk_does_not_give_is_a_broken_one),
		TEST(merge_store__tells_each_kind_by_its_first_window),
		TEST(merge_store__window_of_a_negative_period_stays_as_it_is),
		TEST(merge_store__name_that_is_taken_is_lengthened),
		TEST(merge_store__what_was_refused_is_left_alone_for_long),
		TEST(merge_store__second_merge_of_the_same_minutes_keeps_both),
		TEST(merge_store__merging_file_that_is_broken_deletes_nothing),
		TEST(merge_store__what_cannot_be_finished_is_not_merged_anew),
		TEST(merge_store__windows_with_other_types_stay_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
