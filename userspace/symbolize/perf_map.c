/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/perf_map.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/who_answers.h"
#include "discover/mapping_set.h"
#include "files/client.h"
#include "files/opening.h"
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
	uint64_t offset;
	struct opening_seen seen;
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

static const char *refusal_text(uint32_t refusal)
{
	static const char *const text[OPENING_REFUSALS] = {
		[OPENING_IS_LINK] = "a link leads to it",
		[OPENING_NOT_REGULAR] = "it is not a regular file",
		[OPENING_OF_ANOTHER] = "it is another user's",
		[OPENING_WRITABLE] = "anybody may write it",
		[OPENING_HAS_NAMES] = "the file has other names",
		[OPENING_PSEUDO] = "it lies in a pseudo file system",
	};

	return text[refusal];
}

static int refuse(struct perf_map *map, const char *why)
{
	map->refusal = why;
	return -EPERM;
}

/* The file that the child is asked about. */
static int find_source(void *context, struct foreign_source *ret_source)
{
	ret_source->opened = *(const struct opener_file *)context;
	return 0;
}

/* Returns whether there is more of it, as it was when it was opened. */
static bool has_more(const struct perf_map *map)
{
	return map->offset < PERF_MAP_MAX_FILE_BYTES && map->offset < map->seen.size &&
	       !is_full(map);
}

/* Reads complete lines from map->offset on. */
static int read_new_lines(struct perf_map *map, const struct perf_map_source *source,
			  struct opener_file *opened, size_t *ret_bytes)
{
	const struct foreign_file file = {.number = source->number,
					  .user = who_answers(source->uid),
					  .payer = who_answers(source->uid),
					  .place = opened->place,
					  .find = find_source,
					  .context = opened};

	while (has_more(map)) {
		const uint64_t from = map->offset;
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
		map->offset = lines->next;
	}
	return 0;
}

/* Opens the file, if it has changed: *opened has fd -1 where it has not. */
static int open_changed(struct perf_map *map, const struct perf_map_source *source,
			struct opened_file *found, struct opener_file *opened)
{
	static const struct opening_seen nothing;
	struct opener *opener = foreign_opener(source->foreign);
	const struct opener_perf_map wanted = {.tid = source->tid,
					       .inner_pid = source->inner_pid,
					       .user = source->uid,
					       .started_s = source->started_s};
	int err = opener_open_perf_map(opener, &wanted, map->is_behind ? &nothing : &map->seen,
				       found);

	map->refusal = err ? NULL : refusal_text(found->refusal);
	if (err || map->refusal)
		return err ?: -EPERM;
	*opened = (struct opener_file){.child = opener_child(opener),
				       .fd = found->fd,
				       .number = source->number,
				       .user = who_answers(source->uid),
				       .place = opener_place(&found->identity.key)};
	return 0;
}

/* Notes the file as it is now.  Returns whether it is another one than before. */
static bool take_identity(struct perf_map *map, const struct file_identity *identity)
{
	const bool is_same =
		file_key_equal(&map->seen.key, &identity->key) && identity->size >= map->seen.size;

	if (!is_same)
		forget(map);
	map->seen = (struct opening_seen){
		.key = identity->key, .size = identity->size, .modified_ns = identity->modified_ns};
	map->is_behind = false;
	return !is_same;
}

int perf_map_refresh(struct perf_map *map, const struct perf_map_source *source,
		     size_t *ret_read_bytes)
{
	struct opener_file opened = {.fd = -1};
	struct opened_file found;
	const size_t before = map->count;
	size_t count = before;
	int err = open_changed(map, source, &found, &opened);

	*ret_read_bytes = 0;
	if (err || opened.fd < 0)
		return err;
	if (take_identity(map, &found.identity))
		count = 0;
	err = read_new_lines(map, source, &opened, ret_read_bytes);
	opener_close(foreign_opener(source->foreign), &opened);
	/* What there is of it stays; the next refresh goes on. */
	map->is_behind |= err != 0;
	if (err == -ETIME)
		return refuse(map, "the process that parses it was late, or ended");
	if (err)
		return err;
	return count != map->count || count != before;
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
