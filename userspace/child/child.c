/* SPDX-License-Identifier: BSD-2-Clause */
#include "child/child.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"

void child_init(struct child *child, enum child_kind kind)
{
	*child = (struct child){.kind = kind, .rest_ns = child_row(kind)->restart.first_ns};
}

bool child_is_due(const struct child *child, uint64_t now_ns)
{
	return !child->pid && now_ns >= child->start_after_ns;
}

int child_start(struct child *child, const struct child_start *start, uint64_t now_ns)
{
	int err = child_spawn(child->kind, start, &child->pid);

	child->started_ns = now_ns;
	if (err) {
		child->pid = 0;
		return err;
	}
	child->is_killed = false;
	(void)clock_getcpuclockid(child->pid, &child->clock);
	return 0;
}

void child_kill(struct child *child)
{
	if (!child->pid || child->is_killed)
		return;
	child->is_killed = true;
	kill(child->pid, SIGKILL);
}

bool child_has_ended(struct child *child, int *ret_status)
{
	if (!child->pid || !waitpid(child->pid, ret_status, WNOHANG))
		return false;
	child->pid = 0;
	return true;
}

void child_release(struct child *child)
{
	/* It may wait for a disk or a driver that does not answer: nobody waits for it. */
	child_kill(child);
	if (child->pid)
		(void)waitpid(child->pid, NULL, WNOHANG);
	child->pid = 0;
}

bool child_was_steady(const struct child *child, uint64_t now_ns)
{
	return child_row(child->kind)->restart.steady_ns &&
	       now_ns - child->started_ns >= child_row(child->kind)->restart.steady_ns;
}

void child_rest(struct child *child, uint64_t now_ns)
{
	const uint64_t most_ns = child_row(child->kind)->restart.most_ns;

	if (child_was_steady(child, now_ns))
		child->rest_ns = child_row(child->kind)->restart.first_ns;
	child->started_ns = now_ns;
	child->start_after_ns = now_ns + child->rest_ns;
	child->rest_ns = 2 * child->rest_ns < most_ns ? 2 * child->rest_ns : most_ns;
}

void child_rest_long(struct child *child, uint64_t now_ns)
{
	child->rest_ns = child_row(child->kind)->restart.most_ns;
	child->start_after_ns = now_ns + child->rest_ns;
}

void child_forgive(struct child *child)
{
	child->start_after_ns = 0;
	child->rest_ns = child_row(child->kind)->restart.first_ns;
}

uint64_t child_cpu_ns(const struct child *child)
{
	struct timespec used;

	if (!child->pid || child->is_killed || clock_gettime(child->clock, &used))
		return 0;
	return (uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec;
}
