/* SPDX-License-Identifier: BSD-2-Clause */
/* CPUs, and the events that are opened on them, are stand-ins. */
#include "attach/cpu_events.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pyprofd/config.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "discover/cpus.h"

#define CPUS 4U
#define PROGRAM_FD 55

static struct {
	bool is_online[CPUS];
	int error[CPUS]; /* of opening its event */
	int fd[CPUS];	 /* the last that was opened there */
	bool has_program[CPUS], is_enabled[CPUS];
	unsigned int opened;
	unsigned long refused;		   /* the ioctl() that fails */
	uint64_t period_ns[CPUS];	   /* that was asked for; 0: none */
	struct perf_event_request request; /* the last one */
	int online_error;
} machine;
static struct pp_sample_timer timers[CPUS];
static struct perf_opener *const opener = (struct perf_opener *)&machine;

int cpus_possible_count(uint32_t *ret_count)
{
	*ret_count = CPUS;
	return 0;
}

void cpu_list_release(struct cpu_list *list)
{
	free(list->cpu);
	*list = (struct cpu_list){0};
}

int cpus_online(struct cpu_list *ret_list)
{
	if (machine.online_error)
		return machine.online_error;
	ret_list->cpu = calloc(CPUS, sizeof(*ret_list->cpu));
	assert_non_null(ret_list->cpu);
	for (uint32_t cpu = 0; cpu < CPUS; cpu++)
		if (machine.is_online[cpu])
			ret_list->cpu[ret_list->count++] = cpu;
	return 0;
}

int perf_opener_open(struct perf_opener *of, const struct perf_event_request *request, int *ret_fd)
{
	assert_ptr_equal(of, opener);
	assert_true(request->cpu < CPUS && machine.is_online[request->cpu]);
	machine.request = *request;
	if (machine.error[request->cpu])
		return machine.error[request->cpu];
	*ret_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(*ret_fd >= 0);
	machine.fd[request->cpu] = *ret_fd;
	machine.has_program[request->cpu] = machine.is_enabled[request->cpu] = false;
	machine.opened++;
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	uint32_t cpu = 0;
	va_list arguments;

	while (cpu < CPUS && machine.fd[cpu] != fd)
		cpu++;
	assert_true(cpu < CPUS);
	if (request == machine.refused) {
		errno = EPERM;
		return -1;
	}
	if (request == PERF_EVENT_IOC_SET_BPF) {
		va_start(arguments, request);
		assert_int_equal(va_arg(arguments, int), PROGRAM_FD);
		va_end(arguments);
		machine.has_program[cpu] = true;
		return 0;
	}
	if (request == PERF_EVENT_IOC_PERIOD) {
		va_start(arguments, request);
		machine.period_ns[cpu] = *va_arg(arguments, uint64_t *);
		va_end(arguments);
		return 0;
	}
	assert_int_equal(request, PERF_EVENT_IOC_ENABLE);
	/* Its first sample has the right weight. */
	assert_true(timers[cpu].started_ns);
	assert_true(machine.has_program[cpu]); /* else its first samples are lost */
	machine.is_enabled[cpu] = true;
	return 0;
}

static bool is_open(uint32_t cpu)
{
	return machine.fd[cpu] >= 0 && fcntl(machine.fd[cpu], F_GETFD) >= 0;
}

static int setup(void **state)
{
	(void)state;
	memset(&machine, 0, sizeof(machine));
	memset(timers, 0, sizeof(timers));
	for (uint32_t cpu = 0; cpu < CPUS; cpu++)
		machine.fd[cpu] = -1;
	machine.is_online[1] = machine.is_online[3] = true;
	return 0;
}

static struct cpu_events *new_events(bool use_cycles)
{
	const struct cpu_events_options options = {.program = PROGRAM_FD,
						   .hz = 99,
						   .use_cycles = use_cycles,
						   .opener = opener,
						   .timers = timers};
	struct cpu_events *events = NULL;

	assert_int_equal(cpu_events_new(&options, &events), 0);
	return events;
}

static void new__each_online_cpu_runs_the_program(void **state)
{
	OWNED(cpu_events) struct cpu_events *events = new_events(false);

	(void)state;
	assert_int_equal(cpu_events_count(events), 2);
	assert_int_equal(machine.opened, 2);
	assert_true(machine.is_enabled[1] && machine.is_enabled[3]);
	assert_int_equal(machine.request.kind, PERF_EVENT_CPU_CLOCK);
	assert_int_equal(machine.request.hz, 99);
	assert_int_equal(timers[1].period_ns, NS_PER_SEC / 99);
	assert_int_equal(timers[0].period_ns, 0);
}

static void new__cycles_have_no_period(void **state)
{
	OWNED(cpu_events) struct cpu_events *events = new_events(true);

	(void)state;
	assert_int_equal(machine.request.kind, PERF_EVENT_CYCLES);
	assert_int_equal(timers[1].period_ns, 0);
	assert_true(timers[1].started_ns);
}

static void free__closes_all(void **state)
{
	(void)state;
	cpu_events_free(new_events(false));
	assert_false(is_open(1) || is_open(3));
	cpu_events_free(NULL);
}

static void follow__opens_cpus_that_come_and_closes_those_that_go(void **state)
{
	OWNED(cpu_events) struct cpu_events *events = new_events(false);

	(void)state;
	machine.is_online[0] = true;
	assert_int_equal(cpu_events_follow(events), 0);
	assert_int_equal(machine.opened, 3); /* the others stay as they are */
	assert_int_equal(cpu_events_count(events), 3);
	assert_true(machine.is_enabled[0]);
	machine.is_online[1] = false;
	assert_int_equal(cpu_events_follow(events), 0);
	assert_int_equal(cpu_events_count(events), 2);
	assert_false(is_open(1));
	assert_true(is_open(0) && is_open(3));
	/* It comes back. */
	machine.is_online[1] = true;
	assert_int_equal(cpu_events_follow(events), 0);
	assert_int_equal(machine.opened, 4);
	assert_true(is_open(1) && machine.is_enabled[1]);
	machine.online_error = -EIO;
	assert_int_equal(cpu_events_follow(events), -EIO);
	assert_int_equal(cpu_events_count(events), 3);
}

static void set_hz__replaces_all_events_or_none(void **state)
{
	OWNED(cpu_events) struct cpu_events *events = new_events(false);
	const int old = machine.fd[1];

	(void)state;
	machine.error[3] = -EMFILE;
	assert_int_equal(cpu_events_set_hz(events, 49), -EMFILE);
	assert_int_equal(timers[1].period_ns, NS_PER_SEC / 99);
	assert_true(fcntl(old, F_GETFD) >= 0);
	assert_false(is_open(1)); /* the new one, at another rate */
	assert_false(machine.is_enabled[1]);
	machine.error[3] = 0;
	assert_int_equal(cpu_events_set_hz(events, 49), 0);
	assert_int_equal(machine.request.hz, 49);
	assert_int_equal(timers[1].period_ns, NS_PER_SEC / 49);
	assert_true(fcntl(old, F_GETFD) < 0);
	assert_true(is_open(1) && machine.is_enabled[1] && is_open(3) && machine.is_enabled[3]);
	assert_int_equal(cpu_events_count(events), 2);
}

static void vary__draws_the_rate_around_the_wanted_one(void **state)
{
	OWNED(cpu_events) struct cpu_events *events = new_events(false);
	double rates = 0, low = 1e9, high = 0;

	(void)state;
	for (unsigned int i = 0; i < 1000; i++) {
		double rate;

		cpu_events_vary(events);
		assert_int_equal(machine.period_ns[1], timers[1].period_ns);
		assert_true(timers[1].started_ns <= mono_ns());
		rate = 1e9 / timers[1].period_ns;
		rates += rate;
		low = rate < low ? rate : low;
		high = rate > high ? rate : high;
	}
	/* Of the mean of 1,000, five standard errors. */
	assert_true(rates / 1000 > 99 - 2.8 && rates / 1000 < 99 + 2.8);
	assert_true(low > 99 * 0.69 && low < 99 * 0.75 && high > 99 * 1.25 && high < 99 * 1.31);
	assert_false(machine.period_ns[0]);
	assert_int_not_equal(timers[1].period_ns, timers[3].period_ns);
}

static void vary__that_fails_leaves_the_period(void **state)
{
	OWNED(cpu_events) struct cpu_events *events = new_events(false);
	struct pp_sample_timer before;

	(void)state;
	cpu_events_vary(events);
	before = timers[1];
	machine.refused = PERF_EVENT_IOC_PERIOD;
	cpu_events_vary(events);
	assert_memory_equal(&timers[1], &before, sizeof(before));
}

static void vary__comes_at_random_times(void **state)
{
	OWNED(cpu_events) struct cpu_events *events = new_events(false);
	struct itimerspec left;
	long low = LONG_MAX, high = 0;

	(void)state;
	for (unsigned int i = 0; i < 200; i++) {
		cpu_events_vary(events);
		assert_int_equal(timerfd_gettime(cpu_events_fd(events), &left), 0);
		assert_int_equal(left.it_value.tv_sec, 0);
		low = left.it_value.tv_nsec < low ? left.it_value.tv_nsec : low;
		high = left.it_value.tv_nsec > high ? left.it_value.tv_nsec : high;
	}
	assert_true(low < 120000000 && high > 280000000 && high <= 300000000);
}

static void vary__leaves_cycles_alone(void **state)
{
	OWNED(cpu_events) struct cpu_events *events = new_events(true);
	struct itimerspec left;

	(void)state;
	assert_int_equal(timerfd_gettime(cpu_events_fd(events), &left), 0);
	assert_int_equal(left.it_value.tv_sec + left.it_value.tv_nsec, 0);
}

/* What fails on one CPU does not cost the others theirs. */
static void follow__tells_the_first_error_and_opens_the_rest(void **state)
{
	OWNED(cpu_events) struct cpu_events *events = new_events(false);

	(void)state;
	machine.is_online[0] = machine.is_online[2] = true;
	machine.error[0] = -EMFILE;
	machine.error[2] = -EBUSY;
	machine.is_online[3] = false;
	assert_int_equal(cpu_events_follow(events), -EMFILE);
	assert_int_equal(cpu_events_count(events), 1);
	assert_false(is_open(3));
	machine.error[0] = -ENODEV; /* it went after the list was read */
	assert_int_equal(cpu_events_follow(events), -EBUSY);
	machine.error[2] = 0;
	assert_int_equal(cpu_events_follow(events), 0);
	assert_int_equal(cpu_events_count(events), 2);
}

static void new__event_without_its_program_is_an_error(void **state)
{
	static const unsigned long refused[] = {PERF_EVENT_IOC_SET_BPF, PERF_EVENT_IOC_ENABLE};
	const struct cpu_events_options options = {
		.program = PROGRAM_FD, .hz = 99, .opener = opener, .timers = timers};

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct cpu_events *events = NULL;

		setup(state);
		machine.refused = refused[i];
		assert_int_equal(cpu_events_new(&options, &events), -EPERM);
		assert_null(events);
		assert_false(is_open(1) || is_open(3));
	}
}

static void new__machine_that_does_not_say_its_cpus_is_an_error(void **state)
{
	const struct cpu_events_options options = {
		.program = PROGRAM_FD, .hz = 99, .opener = opener};
	struct cpu_events *events = NULL;

	(void)state;
	machine.online_error = -EIO;
	assert_int_equal(cpu_events_new(&options, &events), -EIO);
	assert_null(events);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(new__each_online_cpu_runs_the_program),
		TEST(new__cycles_have_no_period),
		TEST(new__event_without_its_program_is_an_error),
		TEST(new__machine_that_does_not_say_its_cpus_is_an_error),
		TEST(free__closes_all),
		TEST(follow__opens_cpus_that_come_and_closes_those_that_go),
		TEST(set_hz__replaces_all_events_or_none),
		TEST(vary__draws_the_rate_around_the_wanted_one),
		TEST(vary__that_fails_leaves_the_period),
		TEST(vary__comes_at_random_times),
		TEST(vary__leaves_cycles_alone),
		TEST(follow__tells_the_first_error_and_opens_the_rest),
	};

	return cmocka_run_group_tests_name("attach/cpu_events", tests, NULL, NULL);
}
