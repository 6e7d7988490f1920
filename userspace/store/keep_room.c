/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/keep_room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

#define USER_KEY "uid="

uint32_t keep_room_user(const char *about)
{
	const char *line = about;
	unsigned long long uid;
	char *end;

	while (line && strncmp(line, USER_KEY, strlen(USER_KEY))) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return KEEP_NO_USER;
	line += strlen(USER_KEY);
	if (*line < '0' || *line > '9')
		return KEEP_NO_USER;
	uid = strtoull(line, &end, 10);
	return *end == '\n' && uid < KEEP_NO_USER ? (uint32_t)uid : KEEP_NO_USER;
}

static uint32_t read_user(int kept_fd, const char *name)
{
	OWNED_FD int fd = openat(kept_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	OWNED_FD int about_fd = -1;
	OWNED_MEM char *text = NULL;
	size_t size = 0;

	if (fd < 0)
		return KEEP_NO_USER;
	about_fd =
		openat(fd, KEPT_ABOUT, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	text = calloc(1, KEPT_ABOUT_MAX_BYTES + 1);
	if (about_fd < 0 || !text || pread_up_to(about_fd, text, KEPT_ABOUT_MAX_BYTES, &size))
		return KEEP_NO_USER;
	return keep_room_user(text);
}

static bool is_same(const struct keep_room_entry *a, const struct keep_room_entry *b)
{
	return a->kept->is.reason == KEPT_OOM && b->kept->is.reason == KEPT_OOM &&
	       a->uid == b->uid && !strcmp(a->kept->is.comm, b->kept->is.comm);
}

static bool may_go(const struct keep_room_entry *entry, const char *newest)
{
	return !entry->must_go && (!newest || strcmp(entry->kept->name, newest));
}

/* Marks those of one program and user that KEEP_SAME_MAX newer ones follow. */
static size_t choose_same(struct keep_room_entry *entry, size_t count, const char *newest)
{
	size_t gone = 0;

	for (size_t i = 0; i < count; i++) {
		size_t same = 0;

		for (size_t j = i + 1; j < count && same < KEEP_SAME_MAX; j++)
			same += is_same(&entry[i], &entry[j]);
		if (same < KEEP_SAME_MAX || !may_go(&entry[i], newest))
			continue;
		entry[i].must_go = true;
		gone++;
	}
	return gone;
}

static uint64_t bytes_of(const struct keep_room_entry *entry, size_t count, uint32_t uid)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		if (!entry[i].must_go && entry[i].uid == uid)
			bytes += entry[i].kept->bytes;
	return bytes;
}

/* Returns the oldest of the user who takes most; NULL: none may go. */
static struct keep_room_entry *find_oldest(struct keep_room_entry *entry, size_t count,
					   const char *newest)
{
	struct keep_room_entry *oldest = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t bytes;

		if (!may_go(&entry[i], newest) || (oldest && entry[i].uid == oldest->uid))
			continue;
		bytes = bytes_of(entry, count, entry[i].uid);
		if (oldest && bytes <= most)
			continue;
		oldest = &entry[i];
		most = bytes;
	}
	return oldest;
}

size_t keep_room_choose(struct keep_room_entry *entry, size_t count, uint64_t max_bytes,
			const char *newest)
{
	size_t gone = choose_same(entry, count, newest);
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += entry[i].must_go ? 0 : entry[i].kept->bytes;
	while (bytes > max_bytes) {
		struct keep_room_entry *oldest = find_oldest(entry, count, newest);

		if (!oldest)
			break;
		oldest->must_go = true;
		bytes -= oldest->kept->bytes;
		gone++;
	}
	return gone;
}

int keep_room_make(int kept_fd, uint64_t max_bytes, const char *newest, uint32_t *ret_removed)
{
	CLEANUP(kept_list_release) struct kept_list list = {0};
	OWNED_MEM struct keep_room_entry *entry = NULL;
	int err = kept_list(kept_fd, &list);

	*ret_removed = 0;
	if (err || !list.count)
		return err;
	entry = calloc(list.count, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	for (size_t i = 0; i < list.count; i++)
		entry[i] = (struct keep_room_entry){.kept = &list.entry[i],
						    .uid = list.entry[i].is.reason == KEPT_OOM
								   ? read_user(kept_fd,
									       list.entry[i].name)
								   : KEEP_NO_USER};
	(void)keep_room_choose(entry, list.count, max_bytes, newest);
	for (size_t i = 0; !err && i < list.count; i++) {
		if (!entry[i].must_go)
			continue;
		err = kept_remove(kept_fd, entry[i].kept->name);
		*ret_removed += !err;
	}
	return err;
}
