/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "elf/root_file.h"

#define READ_CHUNK_BYTES 65536U
/* A JIT that reuses memory leaves old entries under new ones. */
#define FIND_MAX_STEPS 16U

struct entry {
	uint64_t start;
	uint32_t size; /* bytes of code */
	uint32_t name; /* offset in names; grows with the time of writing */
};

struct perf_map {
	struct entry *entry; /* owned; by start, then by time of writing */
	size_t count, capacity;
	char *names; /* owned */
	size_t names_size, names_capacity;
	/* How far the file was read: the start of its first line that is not complete. */
	dev_t device;
	ino_t inode;
	off_t offset;
	struct timespec changed;
	off_t size;
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
	*map = (struct perf_map){0};
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

/* Reads a number and the spaces behind it.  False: none, or over 64 bits. */
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

/* Adds the complete lines.  *ret_used: bytes up to the first that is not. */
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

int perf_map_add_text(struct perf_map *map, const char *text, size_t size)
{
	size_t used;
	int err = add_lines(map, text, size, &used);

	if (!err && used < size)
		err = add_line(map, text + used, size - used);
	if (map->count)
		qsort(map->entry, map->count, sizeof(*map->entry), compare_entries);
	return err;
}

/* ---- the file ---- */

static bool is_trusted(const struct stat *status, uint32_t uid)
{
	return (status->st_uid == uid || status->st_uid == 0) && !(status->st_mode & S_IWOTH);
}

static bool is_same_file(const struct perf_map *map, const struct stat *status)
{
	return map->device == status->st_dev && map->inode == status->st_ino &&
	       status->st_size >= map->size;
}

static bool is_unchanged(const struct perf_map *map, const struct stat *status)
{
	return is_same_file(map, status) && map->size == status->st_size &&
	       map->changed.tv_sec == status->st_mtim.tv_sec &&
	       map->changed.tv_nsec == status->st_mtim.tv_nsec;
}

/* Reads complete lines from map->offset on; a line longer than the chunk is skipped in pieces. */
static int read_new_lines(struct perf_map *map, int fd)
{
	OWNED_MEM char *chunk = malloc(READ_CHUNK_BYTES);

	if (!chunk)
		return -ENOMEM;
	while (map->offset < (off_t)PERF_MAP_MAX_FILE_BYTES && !is_full(map)) {
		const ssize_t got = pread(fd, chunk, READ_CHUNK_BYTES, map->offset);
		size_t used;
		int err;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
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

int perf_map_refresh(struct perf_map *map, const char *root, uint32_t inner_pid, uint32_t uid,
		     int64_t started_s)
{
	OWNED_FD int fd = -1;
	struct stat status;
	char path[64];
	size_t count = map->count;
	bool is_new = false;
	int err;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", inner_pid);
	err = root_file_open(root, path, &fd);
	if (err)
		return err == -EINVAL || err == -ELOOP ? -EPERM : err;
	if (fstat(fd, &status))
		return -errno;
	if (!is_trusted(&status, uid))
		return -EPERM;
	if (status.st_mtim.tv_sec < started_s)
		return -ENOENT;
	if (is_unchanged(map, &status))
		return 0;
	if (!is_same_file(map, &status)) {
		is_new = count > 0;
		forget(map);
		count = 0;
	}
	err = read_new_lines(map, fd);
	if (map->count)
		qsort(map->entry, map->count, sizeof(*map->entry), compare_entries);
	if (err)
		return err;
	map->device = status.st_dev;
	map->inode = status.st_ino;
	map->changed = status.st_mtim;
	map->size = status.st_size;
	return is_new || count != map->count;
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
