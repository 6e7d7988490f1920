/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/cpu_events.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>

#include <pyprofd/config.h>

#include "base/clock.h"
#include "base/random.h"
#include "discover/cpus.h"

/* The time from one cpu_events_vary() to the next. */
#define VARY_MIN_NS (100 * NS_PER_MS)
#define VARY_MAX_NS (300 * NS_PER_MS)
/* The rate until the next one: so much below or above the wanted one at most. */
#define SPREAD_PPM 300000
#define PPM 1000000

struct cpu_events {
	struct cpu_events_options options;
	int *fd;   /* by CPU, -1: not open */
	int timer; /* owned; when to vary */
	uint32_t cpu_count;
	uint32_t next; /* the CPU whose turn it is to be varied */
	/* owned; by CPU, in parts of a million: what its rate is above the wanted one; 0: it is
	 * drawn next */
	int32_t *above;
};

static void close_all(const int *fd, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

void cpu_events_free(struct cpu_events *events)
{
	if (!events)
		return;
	close_all(events->fd, events->cpu_count);
	close_owned_fd(&events->timer);
	free(events->above);
	free(events->fd);
	free(events);
}

/* ---- when a timer fires ---- */

/* Returns a number from low on, below high. */
static uint64_t random_in(uint64_t low, uint64_t high)
{
	return low + random_number() % (high - low);
}

static void set_timer(const struct cpu_events *events)
{
	const uint64_t wait_ns = random_in(VARY_MIN_NS, VARY_MAX_NS);
	const struct itimerspec in = {.it_value.tv_nsec = (long)wait_ns};

	if (!events->options.use_cycles)
		(void)timerfd_settime(events->timer, 0, &in, NULL);
}

int cpu_events_fd(const struct cpu_events *events)
{
	return events->timer;
}

/* Tells the program that a CPU's timer starts now. */
static void note_timer(const struct cpu_events *events, uint32_t cpu, uint64_t period_ns)
{
	events->options.timers[cpu] = (struct pp_sample_timer){
		.started_ns = mono_ns(),
		.period_ns = events->options.use_cycles ? 0 : (uint32_t)period_ns};
}

/* Draws a rate as far above the wanted one as the next will be below, or the other way round: the
 * mean of two is the wanted one, and so is the number of samples. */
static void vary(const struct cpu_events *events, uint32_t cpu)
{
	const struct pp_sample_timer before = events->options.timers[cpu];
	int32_t *above = &events->above[cpu];
	const int32_t now = *above ? -*above : (int32_t)random_in(1, 2 * SPREAD_PPM) - SPREAD_PPM;
	uint64_t period_ns = NS_PER_SEC * PPM / (events->options.hz * (uint64_t)(PPM + now));

	*above = *above ? 0 : now;
	note_timer(events, cpu, period_ns);
	/* One that fails goes on with the period that it had. */
	if (ioctl(events->fd[cpu], PERF_EVENT_IOC_PERIOD, &period_ns))
		events->options.timers[cpu] = before;
}

void cpu_events_vary(struct cpu_events *events)
{
	uint32_t varied = 0, cpu = events->next;
	uint64_t expirations;

	(void)!read(events->timer, &expirations, sizeof(expirations));
	for (uint32_t i = 0; i < events->cpu_count && varied < CPU_EVENTS_VARIED; i++) {
		if (events->fd[cpu] >= 0) {
			vary(events, cpu);
			varied++;
		}
		cpu = (cpu + 1) % events->cpu_count;
	}
	events->next = cpu;
	set_timer(events);
}

/* ---- the events ---- */

int cpu_events_new(const struct cpu_events_options *options, struct cpu_events **ret_events)
{
	OWNED(cpu_events) struct cpu_events *events = calloc(1, sizeof(*events));
	int err;

	if (!events)
		return -ENOMEM;
	events->options = *options;
	events->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (events->timer < 0)
		return -errno;
	err = cpus_possible_count(&events->cpu_count);
	if (err)
		return err;
	events->above = calloc(events->cpu_count, sizeof(*events->above));
	events->fd = malloc(events->cpu_count * sizeof(*events->fd));
	if (!events->above || !events->fd) {
		events->cpu_count = 0;
		return -ENOMEM;
	}
	for (uint32_t cpu = 0; cpu < events->cpu_count; cpu++)
		events->fd[cpu] = -1;
	err = cpu_events_follow(events);
	if (err)
		return err;
	set_timer(events);
	*ret_events = TAKE(events);
	return 0;
}

static int open_event(const struct cpu_events *events, uint32_t cpu, int *ret_fd)
{
	const struct perf_event_request request = {
		.kind = events->options.use_cycles ? PERF_EVENT_CYCLES : PERF_EVENT_CPU_CLOCK,
		.cpu = cpu,
		.hz = events->options.hz};
	OWNED_FD int fd = -1;
	int err = perf_opener_open(events->options.opener, &request, &fd);

	if (err)
		return err;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, events->options.program))
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int start_event(const struct cpu_events *events, uint32_t cpu, int *ret_fd)
{
	OWNED_FD int fd = -1;
	int err = open_event(events, cpu, &fd);

	if (err)
		return err;
	note_timer(events, cpu, NS_PER_SEC / events->options.hz);
	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int cpu_events_follow(struct cpu_events *events)
{
	CLEANUP(cpu_list_release) struct cpu_list online = {};
	int err = cpus_online(&online), first = 0;

	if (err)
		return err;
	for (uint32_t cpu = 0; cpu < events->cpu_count; cpu++) {
		bool wanted = cpu_list_has(&online, cpu);

		if (!wanted && events->fd[cpu] >= 0) {
			close(events->fd[cpu]);
			events->fd[cpu] = -1;
		} else if (wanted && events->fd[cpu] < 0) {
			err = start_event(events, cpu, &events->fd[cpu]);
			/* -ENODEV: the CPU went offline after the list was read. */
			if (err && err != -ENODEV && !first)
				first = err;
		}
	}
	return first;
}

/* Opens an event, still off, on each CPU that has one; of a CPU that has gone meanwhile ret_fd
 * stays -1.  Returns 0, or -errno and leaves what was opened to the caller. */
static int open_again(const struct cpu_events *events, int *ret_fd)
{
	for (uint32_t cpu = 0; cpu < events->cpu_count; cpu++) {
		int err = events->fd[cpu] < 0 ? 0 : open_event(events, cpu, &ret_fd[cpu]);

		if (err && err != -ENODEV)
			return err;
	}
	return 0;
}

int cpu_events_set_hz(struct cpu_events *events, uint32_t hz)
{
	const uint32_t before = events->options.hz;
	OWNED_MEM int *fd = malloc(events->cpu_count * sizeof(*fd));
	int err;

	if (!fd)
		return -ENOMEM;
	for (uint32_t cpu = 0; cpu < events->cpu_count; cpu++)
		fd[cpu] = -1;
	events->options.hz = hz;
	err = open_again(events, fd);
	if (err) {
		/* All CPUs stay at one rate. */
		events->options.hz = before;
		close_all(fd, events->cpu_count);
		return err;
	}
	for (uint32_t cpu = 0; cpu < events->cpu_count; cpu++) {
		if (fd[cpu] < 0)
			continue;
		note_timer(events, cpu, NS_PER_SEC / hz);
		/* One that fails here is opened by the next cpu_events_follow(). */
		if (ioctl(fd[cpu], PERF_EVENT_IOC_ENABLE, 0))
			close_owned_fd(&fd[cpu]);
		close(events->fd[cpu]);
		events->fd[cpu] = fd[cpu];
	}
	return 0;
}

uint32_t cpu_events_count(const struct cpu_events *events)
{
	uint32_t count = 0;

	for (uint32_t cpu = 0; cpu < events->cpu_count; cpu++)
		count += events->fd[cpu] >= 0;
	return count;
}
