/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/who_answers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/io.h"

#define NOBODY UINT32_MAX /* no user has this id: (uid_t)-1 */
#define OWNERS_MAX 4U	  /* an owner may be one of another's ids */

void who_ranges_release(struct who_ranges *ranges)
{
	free(ranges->range);
	*ranges = (struct who_ranges){0};
}

/* ---- the texts ---- */

/* The fields of a line, NAME:FIELD:FIELD[:...]: both files have what is wanted in the first
 * three. */
#define FIELDS 3U
struct line {
	const char *field[FIELDS];
	size_t size[FIELDS];
};

/* Takes a line apart.  Returns where the next one begins; NULL: there is none.  *ret_line is all
 * zero where fields are missing, or the line is a comment. */
static const char *take_line(const char *text, struct line *ret_line)
{
	const size_t size = strcspn(text, "\n");
	const char *end = text + size;
	struct line line = {0};

	*ret_line = (struct line){0};
	if (!*text)
		return NULL;
	for (unsigned int i = 0; i < FIELDS && *text != '#'; i++) {
		line.field[i] = text;
		line.size[i] = strcspn(text, ":\n");
		text += line.size[i];
		if (i + 1 == FIELDS && line.size[0])
			*ret_line = line;
		if (text++ == end)
			break;
	}
	return end + (*end == '\n');
}

/* Returns whether a field is a number that is less than NOBODY. */
static bool take_number(const struct line *line, unsigned int field, uint32_t *ret_number)
{
	uint64_t number = 0;

	for (size_t i = 0; i < line->size[field]; i++) {
		const char digit = line->field[field][i];

		number = number * 10 + (uint64_t)(digit - '0');
		if (digit < '0' || digit > '9' || number >= NOBODY)
			return false;
	}
	*ret_number = (uint32_t)number;
	return line->size[field];
}

struct user {
	const char *name;
	size_t size;
	uint32_t uid;
};

struct users {
	struct user *by_name; /* owned */
	uint32_t *id;	      /* owned; of all of them, sorted */
	size_t count, capacity;
};

static void users_release(struct users *users)
{
	free(users->by_name);
	free(users->id);
}

static int compare_names(const void *a, const void *b)
{
	const struct user *first = a, *second = b;
	const size_t size = first->size < second->size ? first->size : second->size;

	return memcmp(first->name, second->name, size) ?: ORDER(first->size, second->size);
}

static int compare_ids(const void *a, const void *b)
{
	return ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

static int read_users(const char *text, struct users *users)
{
	struct line line;

	while ((text = take_line(text, &line))) {
		struct user user = {.name = line.field[0], .size = line.size[0]};

		if (!take_number(&line, 2, &user.uid))
			continue;
		if (ARRAY_RESERVE(users->by_name, users->count, users->capacity))
			return -ENOMEM;
		users->by_name[users->count++] = user;
	}
	users->id = calloc(users->count + 1, sizeof(*users->id));
	if (!users->id)
		return -ENOMEM;
	for (size_t i = 0; i < users->count; i++)
		users->id[i] = users->by_name[i].uid;
	if (users->count) {
		qsort(users->by_name, users->count, sizeof(users->by_name[0]), compare_names);
		qsort(users->id, users->count, sizeof(users->id[0]), compare_ids);
	}
	return 0;
}

/* ---- ranges, as they are written ---- */

struct owned {
	struct pp_user_range range;
	size_t line; /* of two that begin at one id the earlier one counts */
};
struct owned_ranges {
	struct owned *owned; /* owned */
	size_t count, capacity;
};

static void owned_ranges_release(struct owned_ranges *ranges)
{
	free(ranges->owned);
}

static uint32_t owner_of(const struct line *line, const struct users *users, uint32_t first)
{
	const struct user key = {.name = line->field[0], .size = line->size[0]};
	const struct user *found = users->count ? bsearch(&key, users->by_name, users->count,
							  sizeof(key), compare_names)
						: NULL;
	uint32_t uid;

	if (found)
		return found->uid;
	return take_number(line, 0, &uid) ? uid : first;
}

static int compare_firsts(const void *a, const void *b)
{
	const struct owned *first = a, *second = b;

	return ORDER(first->range.first, second->range.first) ?: ORDER(first->line, second->line);
}

static int read_ranges(const char *text, const struct users *users, struct owned_ranges *ranges)
{
	struct line line;

	while ((text = take_line(text, &line))) {
		struct owned owned = {.line = ranges->count};
		uint32_t count;

		if (!take_number(&line, 1, &owned.range.first) || !take_number(&line, 2, &count) ||
		    !count)
			continue;
		owned.range.owner = owner_of(&line, users, owned.range.first);
		if (!owned.range.owner) /* root's have the machine's users in them */
			continue;
		owned.range.last = count < NOBODY - owned.range.first
					   ? owned.range.first + count - 1
					   : NOBODY - 1;
		if (ARRAY_RESERVE(ranges->owned, ranges->count, ranges->capacity))
			return -ENOMEM;
		ranges->owned[ranges->count++] = owned;
	}
	if (ranges->count)
		qsort(ranges->owned, ranges->count, sizeof(ranges->owned[0]), compare_firsts);
	return 0;
}

/* ---- ranges, as they are looked up ---- */

static void put(struct who_ranges *ranges, struct pp_user_range range)
{
	struct pp_user_range *last = ranges->count ? &ranges->range[ranges->count - 1] : NULL;

	if (range.first > range.last)
		return;
	if (last && last->owner == range.owner && last->last + 1 == range.first)
		last->last = range.last;
	else if (ranges->count < PP_USER_RANGES)
		ranges->range[ranges->count++] = range;
	else
		ranges->left_out++;
}

/* Puts what lies between the ids of users, who answer for themselves. */
static void put_between(struct who_ranges *ranges, struct pp_user_range range,
			const struct users *users, size_t *at)
{
	for (; *at < users->count && users->id[*at] <= range.last; ++*at) {
		const uint32_t id = users->id[*at];
		struct pp_user_range before = range;

		if (id < range.first)
			continue;
		before.last = id - 1;
		if (id)
			put(ranges, before);
		range.first = id + 1;
	}
	put(ranges, range);
}

static uint32_t final_owner(const struct who_ranges *ranges, uint32_t owner)
{
	for (unsigned int i = 0; i < OWNERS_MAX; i++)
		owner = who_ranges_find(ranges, owner);
	return owner;
}

int who_ranges_parse(const char *subordinates, const char *users_text,
		     struct who_ranges *ret_ranges)
{
	CLEANUP(owned_ranges_release) struct owned_ranges written = {0};
	CLEANUP(users_release) struct users users = {0};
	struct who_ranges ranges = {0};
	uint64_t from = 0;
	size_t at = 0;
	int err = read_users(users_text, &users);

	if (!err)
		err = read_ranges(subordinates, &users, &written);
	if (!err)
		ranges.range = calloc(PP_USER_RANGES, sizeof(*ranges.range));
	if (err || !ranges.range)
		return -ENOMEM;
	for (size_t i = 0; i < written.count; i++) {
		struct pp_user_range range = written.owned[i].range;

		if (range.last < from)
			continue;
		if (range.first < from)
			range.first = (uint32_t)from;
		from = range.last + 1ULL;
		put_between(&ranges, range, &users, &at);
	}
	for (uint32_t i = 0; i < ranges.count; i++)
		ranges.range[i].owner = final_owner(&ranges, ranges.range[i].owner);
	*ret_ranges = ranges;
	return 0;
}

uint32_t who_ranges_find(const struct who_ranges *ranges, uint32_t uid)
{
	uint32_t low = 0, high = ranges->count;

	while (low < high) {
		const uint32_t middle = (low + high) / 2;
		const struct pp_user_range *range = &ranges->range[middle];

		if (uid < range->first)
			high = middle;
		else if (uid > range->last)
			low = middle + 1;
		else
			return range->owner;
	}
	return uid;
}

/* ---- the machine's ---- */

static struct {
	pthread_rwlock_t lock;
	struct who_ranges ranges;
	uint64_t hash; /* of the texts that they are from */
	bool is_read;
} machine = {.lock = PTHREAD_RWLOCK_INITIALIZER};

uint32_t who_answers(uint32_t uid)
{
	uint32_t who;

	pthread_rwlock_rdlock(&machine.lock);
	who = who_ranges_find(&machine.ranges, uid);
	pthread_rwlock_unlock(&machine.lock);
	return who;
}

/* Reads a file; one that is not there is empty. */
static int read_text(enum process_text which, char **ret_text, uint64_t *hash)
{
	size_t size;
	int err = process_read_text(getpid(), which, PROCESS_TEXT_MAX_BYTES, ret_text, &size);

	if (err == -ESRCH) {
		*ret_text = strdup("");
		size = 0;
		err = *ret_text ? 0 : -ENOMEM;
	}
	if (!err)
		*hash = XXH3_64bits_withSeed(*ret_text, size, *hash);
	return err;
}

bool who_answers_follow(const struct who_ranges **ret_ranges)
{
	OWNED_MEM char *subordinates = NULL, *users = NULL;
	struct who_ranges ranges, old;
	uint64_t hash = 0;

	if (read_text(PROCESS_SUBORDINATES, &subordinates, &hash) ||
	    read_text(PROCESS_USERS, &users, &hash) || (machine.is_read && hash == machine.hash) ||
	    who_ranges_parse(subordinates, users, &ranges))
		return false;
	pthread_rwlock_wrlock(&machine.lock);
	old = machine.ranges;
	machine.ranges = ranges;
	pthread_rwlock_unlock(&machine.lock);
	machine.hash = hash;
	machine.is_read = true;
	who_ranges_release(&old);
	*ret_ranges = &machine.ranges;
	return true;
}
