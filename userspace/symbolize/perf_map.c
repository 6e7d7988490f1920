/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/perf_map.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/array.h"
#include "base/safe_file.h"
#include "files/client.h"
#include "files/protocol.h"

#define ASK_BYTES (1U << 20) /* of the file at once */
/* A JIT that reuses memory leaves old entries below new ones. */
#define FIND_MAX_STEPS 16U

struct entry {
	uint64_t start;
	uint32_t size; /* bytes of code */
	uint32_t name; /* offset in names; larger for later lines */
};

struct perf_map {
	struct entry *entry; /* owned; by start, then in the order of writing */
	size_t count, capacity;
	char *names; /* owned */
	size_t names_size, names_capacity;
	/* How far the file was read: the start of its first incomplete line. */
	dev_t device;
	ino_t inode;
	off_t offset;
	struct timespec changed;
	off_t size;
	bool is_behind; /* there are more complete lines to read */
	const char *refusal;
};

int perf_map_new(struct perf_map **ret_map)
{
	struct perf_map *map = calloc(1, sizeof(*map));

	if (!map)
		return -ENOMEM;
	*ret_map = map;
	return 0;
}

void perf_map_free(struct perf_map *map)
{
	if (!map)
		return;
	free(map->entry);
	free(map->names);
	free(map);
}

static void forget(struct perf_map *map)
{
	free(map->entry);
	free(map->names);
	*map = (struct perf_map){.refusal = map->refusal};
}

/* ---- lines ---- */

static int reserve(struct perf_map *map, size_t name_bytes)
{
	const size_t needed = map->names_size + name_bytes;
	size_t capacity = map->names_capacity ? map->names_capacity * 2 : 64;
	char *names;

	if (ARRAY_RESERVE(map->entry, map->count, map->capacity))
		return -ENOMEM;
	if (needed <= map->names_capacity)
		return 0;
	capacity = capacity < needed ? needed : capacity;
	names = realloc(map->names, capacity);
	if (!names)
		return -ENOMEM;
	map->names = names;
	map->names_capacity = capacity;
	return 0;
}

static bool is_full(const struct perf_map *map)
{
	return map->count >= PERF_MAP_MAX_ENTRIES ||
	       map->count * sizeof(*map->entry) + map->names_size >= PERF_MAP_MAX_BYTES;
}

static int add_line(struct perf_map *map, const struct foreign_line *line, const void *name)
{
	int err;

	if (is_full(map))
		return 0;
	err = reserve(map, line->name_bytes + 1);
	if (err)
		return err;
	map->entry[map->count++] = (struct entry){
		.start = line->start, .size = line->code_bytes, .name = (uint32_t)map->names_size};
	memcpy(map->names + map->names_size, name, line->name_bytes);
	map->names_size += line->name_bytes;
	map->names[map->names_size++] = '\0';
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return ORDER(x->start, y->start) ?: ORDER(x->name, y->name);
}

/* Sorts the entries from `sorted` on into the ones before, so that a growing file costs only what
 * is new. */
static int sort_new(struct perf_map *map, size_t sorted)
{
	const size_t added = map->count - sorted;
	OWNED_MEM struct entry *tail = NULL;
	struct entry *to;

	if (!added)
		return 0;
	qsort(map->entry + sorted, added, sizeof(*map->entry), compare_entries);
	if (!sorted || compare_entries(&map->entry[sorted - 1], &map->entry[sorted]) < 0)
		return 0;
	tail = malloc(added * sizeof(*tail));
	if (!tail)
		return -ENOMEM;
	memcpy(tail, map->entry + sorted, added * sizeof(*tail));
	to = map->entry + map->count;
	for (size_t left = added; left;) {
		const bool is_old =
			sorted && compare_entries(&map->entry[sorted - 1], &tail[left - 1]) > 0;

		*--to = is_old ? map->entry[--sorted] : tail[--left];
	}
	return 0;
}

int perf_map_add(struct perf_map *map, const struct foreign_lines *lines)
{
	const size_t sorted = map->count;
	const uint8_t *at = lines->line;
	int err = 0;

	for (uint32_t i = 0; i < lines->count && !err; i++) {
		struct foreign_line line;

		memcpy(&line, at, sizeof(line));
		err = add_line(map, &line, at + sizeof(line));
		at += sizeof(line) + line.name_bytes;
	}
	return sort_new(map, sorted) ?: err;
}

/* ---- the file ---- */

/* Returns whether reading files of this type can have side effects, block, or show what is nobody's
 * file. */
static bool is_special(long type)
{
	static const long special[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC,	      TRACEFS_MAGIC,	   DEBUGFS_MAGIC,
		BPF_FS_MAGIC,	  CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, SECURITYFS_MAGIC,
		SELINUX_MAGIC,	  PSTOREFS_MAGIC,     EFIVARFS_MAGIC,	   FUSE_SUPER_MAGIC,
	};

	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		if (type == special[i])
			return true;
	return false;
}

/* Returns why the file must not be read; NULL: it may be. */
static const char *find_refusal(int path_fd, const struct stat *status, uint32_t uid)
{
	struct statfs system;

	if (status->st_uid != uid)
		return "it is another user's";
	if (status->st_mode & S_IWOTH)
		return "anybody may write it";
	if (status->st_nlink != 1)
		return "the file has other names";
	if (fstatfs(path_fd, &system) || is_special((long)system.f_type))
		return "it lies in a pseudo file system";
	return NULL;
}

static const char *look_refusal(int err)
{
	switch (err) {
	case -ELOOP:
		return "a link leads to it";
	case -EINVAL:
		return "it is not a regular file";
	default:
		return NULL;
	}
}

static int refuse(struct perf_map *map, const char *why)
{
	map->refusal = why;
	return -EPERM;
}

/* Looks the file up, checks it, and opens that same file. */
static int open_judged(struct perf_map *map, const struct perf_map_source *source,
		       struct stat *status, int *ret_fd)
{
	OWNED_FD int path_fd = -1;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", source->inner_pid);
	map->refusal = NULL;
	err = root_file_look(source->root, path, ROOT_FILE_NO_LINKS, &path_fd);
	if (err)
		return look_refusal(err) ? refuse(map, look_refusal(err)) : err;
	if (fstat(path_fd, status))
		return -errno;
	map->refusal = find_refusal(path_fd, status, source->uid);
	if (map->refusal)
		return -EPERM;
	if (status->st_mtim.tv_sec < source->started_s)
		return -ENOENT;
	return root_file_open_seen(path_fd, ret_fd);
}

static bool is_same_file(const struct perf_map *map, const struct stat *status)
{
	return map->device == status->st_dev && map->inode == status->st_ino &&
	       status->st_size >= map->size;
}

static bool is_unchanged(const struct perf_map *map, const struct stat *status)
{
	return is_same_file(map, status) && map->size == status->st_size && !map->is_behind &&
	       map->changed.tv_sec == status->st_mtim.tv_sec &&
	       map->changed.tv_nsec == status->st_mtim.tv_nsec;
}

/* The file that the child is asked about. */
static int find_descriptor(void *context, int *ret_fd)
{
	*ret_fd = *(const int *)context;
	return 0;
}

/* Returns whether there is more of it, as it was when it was opened. */
static bool has_more(const struct perf_map *map)
{
	return map->offset < (off_t)PERF_MAP_MAX_FILE_BYTES && map->offset < map->size &&
	       !is_full(map);
}

/* Reads complete lines from map->offset on. */
static int read_new_lines(struct perf_map *map, const struct perf_map_source *source, int fd,
			  size_t *ret_bytes)
{
	const struct foreign_file file = {.number = source->number,
					  .user = source->uid,
					  .payer = source->uid,
					  .descriptor = find_descriptor,
					  .context = &fd};

	while (has_more(map)) {
		const uint64_t from = (uint64_t)map->offset;
		OWNED_MEM struct foreign_lines *lines = NULL;
		size_t left = source->max_bytes - *ret_bytes;
		int err;

		/* A line may take so much. */
		map->is_behind = left < FOREIGN_LINE_MAX_BYTES;
		if (map->is_behind)
			return 0;
		left = left < ASK_BYTES ? left : ASK_BYTES;
		err = foreign_lines(source->foreign, &file, from, from + left, &lines);
		if (!err)
			err = perf_map_add(map, lines);
		if (err)
			return err;
		if (lines->next == from)
			return 0;
		*ret_bytes += lines->next - from;
		map->offset = (off_t)lines->next;
	}
	return 0;
}

int perf_map_refresh(struct perf_map *map, const struct perf_map_source *source,
		     size_t *ret_read_bytes)
{
	OWNED_FD int fd = -1;
	struct stat status;
	size_t count = map->count;
	bool is_new = false;
	int err = open_judged(map, source, &status, &fd);

	*ret_read_bytes = 0;
	if (err)
		return err;
	if (is_unchanged(map, &status))
		return 0;
	if (!is_same_file(map, &status)) {
		is_new = count > 0;
		forget(map);
		count = 0;
	}
	map->device = status.st_dev;
	map->inode = status.st_ino;
	map->changed = status.st_mtim;
	map->size = status.st_size;
	map->is_behind = false;
	err = read_new_lines(map, source, fd, ret_read_bytes);
	/* What there is of it stays; the next refresh goes on. */
	map->is_behind |= err != 0;
	if (err == -ETIME)
		return refuse(map, "the process that parses it was late, or ended");
	if (err)
		return err;
	return is_new || count != map->count;
}

const char *perf_map_refusal(const struct perf_map *map)
{
	return map->refusal;
}

/* ---- looking up ---- */

int perf_map_find(const struct perf_map *map, uint64_t address, const char **ret_name,
		  uint64_t *ret_start)
{
	const struct entry *best = NULL;
	size_t begun = ARRAY_LEADING(map->count, at, map->entry[at].start <= address);

	for (size_t steps = 0; begun && steps < FIND_MAX_STEPS; steps++) {
		const struct entry *entry = &map->entry[--begun];

		if (address - entry->start < entry->size && (!best || entry->name > best->name))
			best = entry;
	}
	if (!best)
		return -ENOENT;
	*ret_name = map->names + best->name;
	*ret_start = best->start;
	return 0;
}

size_t perf_map_bytes(const struct perf_map *map)
{
	return sizeof(*map) + map->capacity * sizeof(*map->entry) + map->names_capacity;
}
