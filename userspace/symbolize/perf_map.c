/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/perf_map.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/root_file.h"

#define READ_CHUNK_BYTES 65536U
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

static size_t grown(size_t capacity, size_t needed)
{
	capacity = capacity ? capacity * 2 : 64;
	return capacity < needed ? needed : capacity;
}

static int reserve(struct perf_map *map, size_t name_bytes)
{
	if (map->count == map->capacity) {
		const size_t capacity = grown(map->capacity, map->count + 1);
		struct entry *entry = realloc(map->entry, capacity * sizeof(*entry));

		if (!entry)
			return -ENOMEM;
		map->entry = entry;
		map->capacity = capacity;
	}
	if (map->names_size + name_bytes > map->names_capacity) {
		const size_t capacity = grown(map->names_capacity, map->names_size + name_bytes);
		char *names = realloc(map->names, capacity);

		if (!names)
			return -ENOMEM;
		map->names = names;
		map->names_capacity = capacity;
	}
	return 0;
}

static bool is_full(const struct perf_map *map)
{
	return map->count >= PERF_MAP_MAX_ENTRIES ||
	       map->count * sizeof(*map->entry) + map->names_size >= PERF_MAP_MAX_BYTES;
}

static int add_entry(struct perf_map *map, struct entry entry, const char *name, size_t size)
{
	int err;

	if (is_full(map))
		return 0;
	err = reserve(map, size + 1);
	if (err)
		return err;
	entry.name = (uint32_t)map->names_size;
	for (size_t i = 0; i < size; i++)
		map->names[map->names_size++] = (unsigned char)name[i] < ' ' ? '?' : name[i];
	map->names[map->names_size++] = '\0';
	map->entry[map->count++] = entry;
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads a number and the spaces after it.  Returns false when there is none, or it exceeds 64
 * bits. */
static bool take_hex(const char **at, const char *end, uint64_t *ret_value)
{
	uint64_t value = 0;
	size_t digits = 0;

	if (end - *at > 2 && (*at)[0] == '0' && ((*at)[1] | 0x20) == 'x')
		*at += 2;
	for (; *at < end && hex_digit(**at) >= 0; ++*at, digits++) {
		if (value >> 60)
			return false;
		value = value << 4 | (uint64_t)hex_digit(**at);
	}
	if (!digits || *at == end || **at != ' ')
		return false;
	while (*at < end && **at == ' ')
		++*at;
	*ret_value = value;
	return true;
}

/* A line that does not parse is skipped. */
static int add_line(struct perf_map *map, const char *line, size_t size)
{
	const char *at = line, *end = line + size;
	uint64_t start, code_bytes;
	size_t name_size;

	if (!take_hex(&at, end, &start) || !take_hex(&at, end, &code_bytes) || at == end)
		return 0;
	if (!code_bytes || code_bytes > UINT32_MAX || start + code_bytes < start)
		return 0;
	name_size = (size_t)(end - at);
	if (at[name_size - 1] == '\r')
		name_size--;
	if (!name_size || (name_size >= 4 && !memcmp(at, "py::", 4)))
		return 0;
	if (name_size > PERF_MAP_MAX_NAME_BYTES)
		name_size = PERF_MAP_MAX_NAME_BYTES;
	return add_entry(map, (struct entry){.start = start, .size = (uint32_t)code_bytes}, at,
			 name_size);
}

/* Adds the complete lines.  *ret_used: bytes up to the first incomplete one. */
static int add_lines(struct perf_map *map, const char *text, size_t size, size_t *ret_used)
{
	size_t used = 0;

	for (;;) {
		const char *line = text + used;
		const char *newline = memchr(line, '\n', size - used);
		int err;

		if (!newline)
			break;
		err = add_line(map, line, (size_t)(newline - line));
		if (err)
			return err;
		used += (size_t)(newline - line) + 1;
	}
	*ret_used = used;
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
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

int perf_map_add_text(struct perf_map *map, const char *text, size_t size)
{
	const size_t sorted = map->count;
	size_t used;
	int err = add_lines(map, text, size, &used);

	if (!err && used < size)
		err = add_line(map, text + used, size - used);
	return sort_new(map, sorted) ?: err;
}

/* ---- the file ---- */

/* Returns whether reading files of this type can have side effects, block, or show what is nobody's
 * file. */
static bool is_special(long type)
{
	static const long special[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC,	     TRACEFS_MAGIC,	  DEBUGFS_MAGIC,
		BPF_FS_MAGIC,	  CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, SECURITYFS_MAGIC,
		SELINUX_MAGIC,	  PSTOREFS_MAGIC,     EFIVARFS_MAGIC,	  FUSE_SUPER_MAGIC,
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

/* Reads complete lines from map->offset on; a line longer than the chunk is skipped in pieces. */
static int read_new_lines(struct perf_map *map, int fd, size_t max_bytes, size_t *ret_bytes)
{
	OWNED_MEM char *chunk = malloc(READ_CHUNK_BYTES);

	if (!chunk)
		return -ENOMEM;
	map->is_behind = false;
	while (map->offset < (off_t)PERF_MAP_MAX_FILE_BYTES && !is_full(map)) {
		ssize_t got;
		size_t used;
		int err;

		if (*ret_bytes + READ_CHUNK_BYTES > max_bytes) {
			map->is_behind = true;
			return 0;
		}
		got = pread(fd, chunk, READ_CHUNK_BYTES, map->offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		*ret_bytes += (size_t)got;
		err = add_lines(map, chunk, (size_t)got, &used);
		if (err)
			return err;
		if (!used && got == READ_CHUNK_BYTES)
			used = (size_t)got;
		if (!used)
			return 0;
		map->offset += (off_t)used;
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
	err = read_new_lines(map, fd, source->max_bytes, ret_read_bytes);
	err = sort_new(map, count) ?: err;
	if (err)
		return err;
	map->device = status.st_dev;
	map->inode = status.st_ino;
	map->changed = status.st_mtim;
	map->size = status.st_size;
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
	size_t low = 0, high = map->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (map->entry[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t steps = 0; low && steps < FIND_MAX_STEPS; steps++) {
		const struct entry *entry = &map->entry[--low];

		if (address - entry->start < entry->size && (!best || entry->name > best->name))
			best = entry;
	}
	if (!best)
		return -ENOENT;
	*ret_name = map->names + best->name;
	*ret_start = best->start;
	return 0;
}

size_t perf_map_count(const struct perf_map *map)
{
	return map->count;
}

size_t perf_map_bytes(const struct perf_map *map)
{
	return sizeof(*map) + map->capacity * sizeof(*map->entry) + map->names_capacity;
}
