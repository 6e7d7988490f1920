/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent beside a child that is this program, and does what LD_LIBRARY_PATH says: all that the
 * child gets of the environment.  The agent's clock is the test's own. */
#include "gpu/gauges.h"

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "child/children.h"
#include "gpu/gauge_records.h"
#include "probes/probes.h"
#include "windows/record_sink.h"
#include "windows/source.h"
#include "windows/top.h"

extern const struct source gauges_source;

#define TURN_NS (250 * NS_PER_MS)
#define LIMIT_NS (20 * NS_PER_SEC) /* of real time */

extern char **environ;

/* ---- the child ---- */

static void put(const void *bytes, size_t size)
{
	if (write(CHILD_GAUGES_FD, bytes, size) != (ssize_t)size)
		_exit(0);
}

static struct gauges_record gpu_of(uint32_t round)
{
	struct gauges_record record = {.kind = GAUGES_DEVICE, .round = round, .device = 1};

	snprintf(record.gpu.uuid, sizeof(record.gpu.uuid), "GPU-1");
	record.gpu.has = 1ULL << GPU_POWER;
	record.gpu.value[GPU_POWER] = 10ULL * round;
	return record;
}

static void put_round(uint32_t round)
{
	const struct gauges_record gpu = gpu_of(round);
	const struct gauges_record process = {.kind = GAUGES_PROCESSES,
					      .round = round,
					      .device = 1,
					      .count = 1,
					      .process = {{77, 500, 4096}}};
	const struct gauges_record end = {.kind = GAUGES_END, .round = round};

	put(&gpu, sizeof(gpu));
	put(&process, sizeof(process));
	put(&end, sizeof(end));
}

static _Noreturn void rest(void)
{
	for (;;)
		pause();
}

static bool is_clean(void)
{
	struct stat stat;

	for (int fd = 0; fd < CHILD_GAUGES_FD; fd++)
		if (fstat(fd, &stat) || !S_ISCHR(stat.st_mode))
			return false;
	/* Where libraries are, and that it is a child. */
	return environ[0] && environ[1] && !environ[2];
}

static _Noreturn void be_child(const char *mode)
{
	if (!strcmp(mode, "works")) {
		for (uint32_t round = 1; round <= 3 && is_clean(); round++)
			put_round(round);
		rest();
	}
	if (!strcmp(mode, "fails")) {
		const struct gauges_record failed = {
			.kind = GAUGES_FAILED, .count = GAUGES_NO_DRIVER, .code = 9};

		put(&failed, sizeof(failed));
		_exit(0);
	}
	if (!strcmp(mode, "nonsense")) {
		put_round(1);
		put_round(1);
	}
	if (!strcmp(mode, "half")) {
		const struct gauges_record gpu = gpu_of(1);

		put(&gpu, 100);
		rest();
	}
	if (!strcmp(mode, "dies"))
		put_round(1);
	for (uint32_t round = 1; !strcmp(mode, "flood"); round++)
		put_round(round);
	if (!strcmp(mode, "bytes"))
		for (;;)
			put("", 1);
	if (!strcmp(mode, "silent"))
		rest();
	_exit(1);
}

/* ---- for the source ---- */

const struct cuda_side *probes_cuda(struct probes *probes)
{
	return (const struct cuda_side *)probes; /* NULL: nobody wants gauges */
}

bool top_wants(const struct top *top, uint32_t kinds)
{
	(void)top, (void)kinds;
	return true;
}

struct record_sink record_sink_profiles(const struct services *services, struct profiles *profiles)
{
	(void)services, (void)profiles;
	return (struct record_sink){0};
}

struct record_sink record_sink_clients(const struct services *services)
{
	(void)services;
	return (struct record_sink){0};
}

static const struct gauge_sums *put_last;

int gauge_records_put(const struct gauge_sums *sums, const struct record_sink *sink)
{
	(void)sink;
	put_last = sums;
	return 0;
}

/* ---- the agent ---- */

static struct gauges *gauges;
static struct gauges_stats stats;
static uint64_t now_ns;
static struct sources sources;
static struct services services = {.sources = &sources};

static int setup(void **state)
{
	void *opened = NULL;
	int err;

	(void)state;
	now_ns = 1000 * NS_PER_SEC;
	log_set_level(LOG_LEVEL_ERROR);
	sources.state[PP_SOURCE_PROBES] = &sources;
	services.child_program = "/proc/self/exe";
	err = source_new(&gauges_source, &services, &opened);
	gauges = opened;
	return err;
}

static int teardown(void **state)
{
	(void)state;
	assert_true(source_free(&gauges_source, gauges));
	return 0;
}

/* Ends a part of a window. */
static void cut(bool is_written)
{
	const struct source_window window = {.slots.end_ns = now_ns, .is_written = is_written};

	assert_int_equal(gauges_source.collect(gauges, &window), 0);
}

/* The sums of the last part, and of the last profile. */
static const struct gauge_sums *part(void)
{
	assert_int_equal(gauges_source.finish(gauges, NULL, NULL), 0);
	return put_last;
}

static const struct gauge_sums *closed(void)
{
	assert_int_equal(gauges_source.describe(gauges, NULL), 0);
	return put_last;
}

static void begin(const char *mode)
{
	assert_int_equal(setenv("LD_LIBRARY_PATH", mode, 1), 0);
}

/* Turns, which take TURN_NS by the agent's clock and little by ours. */
static void turn(void)
{
	now_ns += TURN_NS;
	assert_false(gauges_source.tick(gauges, now_ns));
	gauges_get_stats(gauges, &stats);
	(void)poll(NULL, 0, 2);
}

static void turn_until(const uint64_t *number, uint64_t wanted)
{
	const uint64_t end_ns = mono_ns() + LIMIT_NS;

	do
		turn();
	while (*number < wanted && mono_ns() < end_ns);
	assert_int_equal(*number, wanted);
}

/* Waits for a child's pipe without letting the agent's clock go on. */
static void turn_until_known(void)
{
	const uint64_t end_ns = mono_ns() + LIMIT_NS;

	while (!gauges_now(gauges) && mono_ns() < end_ns) {
		assert_false(gauges_source.tick(gauges, now_ns));
		(void)poll(NULL, 0, 2);
	}
	assert_non_null(gauges_now(gauges));
}

static void gauges__rounds_become_sums_of_windows(void **state)
{
	(void)state;
	begin("works");
	sources.state[PP_SOURCE_PROBES] = NULL;
	assert_false(gauges_source.tick(gauges, now_ns));
	sources.state[PP_SOURCE_PROBES] = &sources;
	gauges_get_stats(gauges, &stats);
	assert_int_equal(stats.starts, 0); /* nobody wants them */
	turn_until_known();
	for (unsigned int i = 0; i < 10; i++)
		turn();
	assert_int_equal(gauges_now(gauges)->device[0].gpu.value[GPU_POWER], 30);
	assert_int_equal(gauges_device_of(gauges, 77), 1);
	assert_int_equal(gauges_device_of(gauges, 78), -ENOENT);
	cut(false);
	assert_int_equal(part()->device[0].rounds, 3);
	assert_int_equal(closed()->device_count, 0);
	/* Who was on it in the part before is known still, but not for ever. */
	assert_int_equal(gauges_device_of(gauges, 77), 1);
	cut(true);
	assert_int_equal(part()->device_count, 0);
	assert_int_equal(closed()->device_count, 1);
	assert_int_equal(closed()->device[0].rounds, 3);
	assert_int_equal(closed()->device[0].gauge[GPU_POWER].max, 30);
	assert_int_equal(closed()->process_count, 1);
	assert_int_equal(gauges_device_of(gauges, 77), -ENOENT);
	assert_int_equal(gauges_total(gauges)->device[0].rounds, 3);
	assert_int_equal(stats.starts, 1);
	assert_int_equal(stats.lost, 0);
}

/* ... as long as SILENT_NS: a value of long ago is none. */
static void gauges__of_a_silent_child_are_forgotten_and_it_is_replaced(void **state)
{
	(void)state;
	begin("works");
	turn_until_known();
	turn_until(&stats.failures[GAUGES_SILENT], 1);
	assert_null(gauges_now(gauges));
	assert_int_equal(stats.lost, 1);
	turn_until(&stats.starts, 2);
}

static void gauges__a_child_that_never_speaks_has_a_minute(void **state)
{
	const uint64_t begun_ns = now_ns;

	(void)state;
	begin("silent");
	turn_until(&stats.failures[GAUGES_SILENT], 1);
	assert_in_range(now_ns - begun_ns, 60 * NS_PER_SEC, 61 * NS_PER_SEC);
}

/* After SIGSTOP of both, nobody was silent. */
static void gauges__a_stall_of_the_agent_is_no_silence(void **state)
{
	(void)state;
	begin("works");
	turn_until_known();
	now_ns += 100 * NS_PER_SEC;
	turn();
	assert_int_equal(stats.failures[GAUGES_SILENT], 0);
	assert_non_null(gauges_now(gauges));
}

static void gauges__what_the_child_says_itself_is_not_tried_again_soon(void **state)
{
	(void)state;
	begin("fails");
	turn_until(&stats.failures[GAUGES_NO_DRIVER], 1);
	assert_int_equal(stats.lost, 0);
	now_ns += 599 * NS_PER_SEC;
	turn();
	assert_int_equal(stats.failures[GAUGES_ENDED], 0);
	assert_int_equal(stats.starts, 1);
	turn_until(&stats.starts, 2);
}

static void fails_as(const char *mode, enum gauges_failure failure)
{
	begin(mode);
	turn_until(&stats.failures[failure], 3);
	for (unsigned int i = 0; i < GAUGES_FAILURE_COUNT; i++)
		assert_int_equal(stats.failures[i], i == failure ? 3 : 0);
	assert_int_equal(stats.lost, 3);
	assert_null(gauges_now(gauges));
}

/* Each later than the one before. */
static void gauges__children_that_die_are_replaced_later_and_later(void **state)
{
	uint64_t begun_ns;

	(void)state;
	fails_as("dies", GAUGES_ENDED);
	begun_ns = now_ns;
	turn_until(&stats.starts, 4);
	assert_in_range(now_ns - begun_ns, 3 * NS_PER_SEC, 5 * NS_PER_SEC);
}

static void gauges__nonsense_is_not_believed(void **state)
{
	(void)state;
	fails_as("nonsense", GAUGES_NONSENSE);
}

static void gauges__half_a_record_is_silence(void **state)
{
	(void)state;
	fails_as("half", GAUGES_SILENT);
}

static void gauges__a_flood_of_rounds_is_stopped(void **state)
{
	(void)state;
	fails_as("flood", GAUGES_FLOOD);
}

static void gauges__a_flood_of_single_bytes_is_nonsense(void **state)
{
	(void)state;
	fails_as("bytes", GAUGES_NONSENSE);
}

static void gauges__a_program_that_is_missing_is_no_end(void **state)
{
	(void)state;
	services.child_program = "/nonexistent/pyprofd";
	turn_until(&stats.failures[GAUGES_NOT_STARTED], 2);
	assert_int_equal(stats.starts, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(gauges__rounds_become_sums_of_windows),
		TEST(gauges__of_a_silent_child_are_forgotten_and_it_is_replaced),
		TEST(gauges__a_child_that_never_speaks_has_a_minute),
		TEST(gauges__a_stall_of_the_agent_is_no_silence),
		TEST(gauges__what_the_child_says_itself_is_not_tried_again_soon),
		TEST(gauges__children_that_die_are_replaced_later_and_later),
		TEST(gauges__nonsense_is_not_believed),
		TEST(gauges__half_a_record_is_silence),
		TEST(gauges__a_flood_of_rounds_is_stopped),
		TEST(gauges__a_flood_of_single_bytes_is_nonsense),
		TEST(gauges__a_program_that_is_missing_is_no_end),
	};
	const char *mode = getenv("LD_LIBRARY_PATH");

	(void)argc;
	if (child_named(argv[0]) == CHILD_GAUGES)
		be_child(mode ? mode : "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
