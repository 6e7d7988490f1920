/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/mapping_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/user_quota.h"
#include "discover/process.h"

/* Shared by both sources of mappings (proc_maps, sideband): the names of mappings, the identity of
 * files. */

#define DELETED " (deleted)"
#define SYSV_KEY_DIGITS 8U

bool file_key_equal(const struct file_key *a, const struct file_key *b)
{
	if (!a->inode || !b->inode)
		return !a->inode && !b->inode;
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor &&
	       (!a->inode_generation || !b->inode_generation ||
		a->inode_generation == b->inode_generation);
}

static bool is_shared_anonymous(const char *path)
{
	if (!strcmp(path, "/dev/zero") || !strcmp(path, "/anon_hugepage"))
		return true;
	return !strncmp(path, "/SYSV", 5) && strlen(path) == 5 + SYSV_KEY_DIGITS &&
	       strspn(path + 5, "0123456789abcdef") == SYSV_KEY_DIGITS;
}

void mapping_set_name(struct mapping *mapping, char *path)
{
	const size_t suffix = sizeof(DELETED) - 1;
	size_t length = strlen(path);

	mapping->path = path;
	if (mapping->key.inode) {
		if (length > suffix && !strcmp(path + length - suffix, DELETED))
			path[length - suffix] = '\0';
		if (!is_shared_anonymous(path))
			return;
	}
	if (strcmp(path, "[vdso]") != 0)
		path[0] = '\0';
	mapping->key = (struct file_key){0};
	mapping->offset = 0;
}

bool path_is_musl(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && (!strncmp(slash + 1, "ld-musl-", 8) || !strcmp(slash + 1, "libc.so"));
}

#define FIRST_CAPACITY 16U

struct mapping_block {
	uint32_t share_count;
	uint32_t mark;
	struct user_quota *room; /* borrowed, and who has taken it from there; NULL: nobody */
	uint32_t user;
	struct mapping mapping[];
};

static uint64_t block_bytes(size_t capacity)
{
	return sizeof(struct mapping_block) + capacity * sizeof(struct mapping);
}

static struct mapping_block *block_of(const struct process *process)
{
	return (struct mapping_block *)((char *)process->mapping -
					offsetof(struct mapping_block, mapping));
}

void mapping_set_release(struct process *process)
{
	struct mapping_block *block = process->mapping ? block_of(process) : NULL;

	if (block && --block->share_count == 0) {
		if (block->room)
			user_quota_give(block->room, block->user,
					block_bytes(process->mapping_capacity));
		free(block);
	}
	process->mapping = NULL;
	process->mapping_count = 0;
	process->mapping_capacity = 0;
}

void mapping_set_trim(struct process *process)
{
	struct mapping_block *block;

	if (!process->mapping || !process->mapping_count || block_of(process)->share_count > 1)
		return;
	block = realloc(block_of(process), block_bytes(process->mapping_count));
	if (!block)
		return;
	if (block->room)
		user_quota_give(block->room, block->user,
				block_bytes(process->mapping_capacity) -
					block_bytes(process->mapping_count));
	process->mapping = block->mapping;
	process->mapping_capacity = process->mapping_count;
}

uint32_t *mapping_set_mark(struct process *process)
{
	return process->mapping ? &block_of(process)->mark : NULL;
}

/* Makes a block larger, or a new one of nothing, in the room that there is.  Returns 0; -ENOSPC:
 * who answers for it has none left; -ENOMEM. */
static int grow(struct mapping_block **block, struct user_quota *room, uint32_t user,
		size_t capacity, size_t more)
{
	const uint64_t held = *block ? block_bytes(capacity) : 0;
	const uint64_t bytes = block_bytes(more) - held;
	const int err = room ? user_quota_take(room, user, bytes) : 0;
	struct mapping_block *grown;

	if (err)
		return err == -ENOMEM ? err : -ENOSPC;
	grown = realloc(*block, held + bytes);
	if (!grown) {
		if (room)
			user_quota_give(room, user, bytes);
		return -ENOMEM;
	}
	if (!*block)
		*grown = (struct mapping_block){.share_count = 1, .room = room, .user = user};
	*block = grown;
	return 0;
}

/* Gives the process an array of its own with room for `count` mappings; that stays at the cost of
 * who has paid for it.  Returns as grow(). */
static int make_own(struct process *process, size_t count)
{
	const bool is_shared = process->mapping && block_of(process)->share_count > 1;
	size_t capacity = process->mapping_capacity ? process->mapping_capacity : FIRST_CAPACITY;
	struct mapping_block *block = process->mapping && !is_shared ? block_of(process) : NULL;
	int err;

	if (block && count <= process->mapping_capacity)
		return 0;
	while (capacity < count)
		capacity *= 2;
	if (block)
		err = grow(&block, block->room, block->user, process->mapping_capacity, capacity);
	else
		err = grow(&block, process->mapping_room,
			   process->is_user_known ? process->user : UINT32_MAX, 0, capacity);
	if (err)
		return err;
	if (is_shared) {
		memcpy(block->mapping, process->mapping,
		       process->mapping_count * sizeof(block->mapping[0]));
		block_of(process)->share_count--;
	}
	process->mapping = block->mapping;
	process->mapping_capacity = capacity;
	return 0;
}

/* Returns the index of the first mapping that ends after the address. */
static size_t find_end_after(const struct process *process, uint64_t address)
{
	return ARRAY_LEADING(process->mapping_count, at, process->mapping[at].end <= address);
}

/* Returns whether `inner` is the same as a part of `outer`. */
static bool is_part_of(const struct mapping *inner, const struct mapping *outer)
{
	if (inner->start < outer->start || inner->end > outer->end ||
	    strcmp(inner->path, outer->path) != 0 || !file_key_equal(&inner->key, &outer->key))
		return false;
	return mapping_is_anonymous(inner) ||
	       inner->start - outer->start == inner->offset - outer->offset;
}

/* Merges anonymous neighbours, because the memory of JIT compilers grows by small steps: one range
 * instead of hundreds. */
static void absorb_anonymous(const struct process *process, struct mapping *mapping)
{
	size_t first = find_end_after(process, mapping->start ? mapping->start - 1 : 0);
	size_t i = first;

	while (i < process->mapping_count && process->mapping[i].start <= mapping->end)
		i++;
	if (i == first)
		return;
	const struct mapping *left = &process->mapping[first];
	const struct mapping *right = &process->mapping[i - 1];
	const uint64_t end = mapping_is_anonymous(right) && right->end > mapping->end
				     ? right->end
				     : mapping->end;

	if (mapping_is_anonymous(left) && left->start < mapping->start)
		mapping->start = left->start;
	mapping->end = end;
}

static struct mapping cut_before(const struct mapping *mapping, uint64_t end)
{
	struct mapping part = *mapping;

	part.end = end;
	return part;
}

static struct mapping cut_after(const struct mapping *mapping, uint64_t start)
{
	struct mapping part = *mapping;

	if (!mapping_is_anonymous(mapping))
		part.offset += start - part.start;
	part.start = start;
	return part;
}

static int replace_overlapped(struct process *process, struct mapping mapping)
{
	struct mapping piece[3];
	size_t pieces = 0, first, next;
	int err;

	if (mapping_is_anonymous(&mapping))
		absorb_anonymous(process, &mapping);
	first = next = find_end_after(process, mapping.start);
	while (next < process->mapping_count && process->mapping[next].start < mapping.end)
		next++;
	if (next > first && process->mapping[first].start < mapping.start)
		piece[pieces++] = cut_before(&process->mapping[first], mapping.start);
	piece[pieces++] = mapping;
	if (next > first && process->mapping[next - 1].end > mapping.end)
		piece[pieces++] = cut_after(&process->mapping[next - 1], mapping.end);

	const size_t count = process->mapping_count - (next - first) + pieces;

	if (count > MAPPING_SET_MAX && count > process->mapping_count)
		return -ENOSPC;
	err = make_own(process, count);
	if (err)
		return err;
	memmove(&process->mapping[first + pieces], &process->mapping[next],
		(process->mapping_count - next) * sizeof(mapping));
	memcpy(&process->mapping[first], piece, pieces * sizeof(mapping));
	process->mapping_count = count;
	process->mappings_changed = true;
	return 0;
}

static bool is_newer(const struct mapping *there, const struct mapping *mapping)
{
	return mapping->time_ns && there->time_ns > mapping->time_ns;
}

int mapping_set_put(struct process *process, const struct mapping *mapping)
{
	size_t i = find_end_after(process, mapping->start);
	int err;

	if (mapping->start >= mapping->end)
		return -EINVAL;
	if (i < process->mapping_count && is_part_of(mapping, &process->mapping[i])) {
		if (process->mapping[i].time_ns >= mapping->time_ns)
			return 0;
		err = make_own(process, process->mapping_count);
		if (err)
			return err;
		process->mapping[i].time_ns = mapping->time_ns;
		return 0;
	}
	for (uint64_t at = mapping->start; at < mapping->end;) {
		i = find_end_after(process, at);
		while (i < process->mapping_count && process->mapping[i].start < mapping->end &&
		       !is_newer(&process->mapping[i], mapping))
			i++;

		const bool is_cut =
			i < process->mapping_count && process->mapping[i].start < mapping->end;
		const uint64_t end = is_cut ? process->mapping[i].start : mapping->end;
		const uint64_t next = is_cut ? process->mapping[i].end : mapping->end;

		if (end > at) {
			const struct mapping rest = cut_after(mapping, at);

			err = replace_overlapped(process, cut_before(&rest, end));
			if (err)
				return err;
		}
		at = next;
	}
	return 0;
}

static bool is_older(const struct mapping *mapping, uint64_t cut_ns, uint64_t read_ns)
{
	return (mapping->time_ns ? mapping->time_ns : read_ns) < cut_ns;
}

int mapping_set_drop_older(struct process *process, uint64_t cut_ns, uint64_t read_ns)
{
	struct process old = *process;
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < old.mapping_count; i++)
		kept += !is_older(&old.mapping[i], cut_ns, read_ns);
	if (kept == old.mapping_count)
		return 0;
	process->mappings_changed = true;
	if (!kept || block_of(process)->share_count > 1) {
		process->mapping = NULL;
		process->mapping_count = process->mapping_capacity = 0;
		err = kept ? make_own(process, kept) : 0;
	}
	kept = 0;
	for (size_t i = 0; i < old.mapping_count && process->mapping; i++)
		if (!is_older(&old.mapping[i], cut_ns, read_ns))
			process->mapping[kept++] = old.mapping[i];
	process->mapping_count = kept;
	if (process->mapping != old.mapping)
		mapping_set_release(&old);
	return err;
}

static void move_mappings(struct process *to, const struct process *from)
{
	to->mapping = from->mapping;
	to->mapping_count = from->mapping_count;
	to->mapping_capacity = from->mapping_capacity;
	to->mappings_changed = true;
}

int mapping_set_share(struct process *to, const struct process *from, uint64_t newest_ns)
{
	struct process partial = {.mapping_room = to->mapping_room,
				  .user = to->user,
				  .is_user_known = to->is_user_known};
	size_t old = 0;
	int err;

	for (size_t i = 0; i < from->mapping_count; i++)
		old += from->mapping[i].time_ns <= newest_ns;
	if (!old)
		return 0;
	if (old == from->mapping_count) {
		block_of(from)->share_count++;
		move_mappings(to, from);
		return 0;
	}
	err = make_own(&partial, old);
	if (err)
		return err;
	for (size_t i = 0; i < from->mapping_count; i++)
		if (from->mapping[i].time_ns <= newest_ns)
			partial.mapping[partial.mapping_count++] = from->mapping[i];
	move_mappings(to, &partial);
	return 0;
}
