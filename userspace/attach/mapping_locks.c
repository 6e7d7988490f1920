/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/mapping_locks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include <pyprofd/scan.h>

#include "base/cleanup.h"

/* A process that maps and unmaps all the time may have the lock at all of these, and yet lets go of
 * it: writers come and go.  Who keeps it as a reader may have others of his threads take it as
 * readers, too, so it does not matter which of them have it. */
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

/* Returns whether a process has the lock as it had at another look. */
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
