/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/mapping_locks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include <pyprofd/wait.h>

#include "base/cleanup.h"

/* A process that maps and unmaps all the time may hold the lock at each of these looks and still
 * release it in between: the writer, the count of writes and the number of mappings tell.  Readers
 * are not told apart, because threads of one process can take turns as readers. */
#define LOOKS 32U
#define APART_US 3000U
#define HELD_MAX 256U /* at one moment */

struct held {
	struct pp_lock_record record[HELD_MAX];
	size_t count;
};

static int read_all(int link, struct held *held)
{
	OWNED_FD int fd = bpf_iter_create(link);
	ssize_t got;

	held->count = 0;
	if (fd < 0)
		return -errno;
	while (held->count < HELD_MAX) {
		got = read(fd, &held->record[held->count],
			   (HELD_MAX - held->count) * sizeof(held->record[0]));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : 0;
		held->count += (size_t)got / sizeof(held->record[0]);
	}
	return 0;
}

/* Returns whether a process holds the lock unchanged since an earlier look. */
static bool is_kept(const struct pp_lock_record *before, const struct held *now)
{
	for (size_t i = 0; i < now->count; i++)
		if (now->record[i].tgid == before->tgid)
			return now->record[i].mappings == before->mappings &&
			       now->record[i].writer == before->writer &&
			       now->record[i].writes == before->writes;
	return false;
}

uint32_t mapping_locks_holder(int link)
{
	struct held held, now;

	if (link < 0 || read_all(link, &held))
		return 0;
	for (unsigned int look = 1; look < LOOKS && held.count; look++) {
		size_t kept = 0;

		usleep(APART_US);
		if (read_all(link, &now))
			return 0;
		for (size_t i = 0; i < held.count; i++)
			if (is_kept(&held.record[i], &now))
				held.record[kept++] = held.record[i];
		held.count = kept;
	}
	return held.count ? held.record[0].tgid : 0;
}

#define SPACES_A_READ 256U

int mapping_spaces_read(int link,
			void (*on_space)(void *context, const struct pp_space_record *space),
			void *context)
{
	OWNED_FD int fd = bpf_iter_create(link);
	struct pp_space_record space[SPACES_A_READ];
	ssize_t got;

	if (fd < 0)
		return -errno;
	/* The kernel gives whole records only. */
	while ((got = read(fd, space, sizeof(space))) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		for (size_t i = 0; i < (size_t)got / sizeof(space[0]); i++)
			on_space(context, &space[i]);
	}
	return 0;
}
