/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/cuda_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/index_table.h"
#include "base/intern.h"

#define CALL_NS 1000U /* as which a call counts in the order */

/* What a line is about; compared and hashed as bytes. */
struct about {
	uint64_t pid;
	/* strings */
	uint32_t comm, device, api, direction, kernel, pad;
};

struct entry {
	struct about about;
	uint32_t user;
	struct cuda_line_sums sums;
};

struct cuda_lines {
	struct intern *strings;
	struct entry *entry;
	uint32_t count, capacity;
	struct index_table index;
	struct cuda_line others; /* others 0: there are none */
};

/* An entry on its way into an order. */
struct place {
	uint32_t entry, user, turn;
	uint64_t weight;
};

int cuda_lines_new(struct cuda_lines **ret_lines)
{
	OWNED(cuda_lines) struct cuda_lines *lines = calloc(1, sizeof(*lines));
	int err;

	if (!lines)
		return -ENOMEM;
	err = intern_new(&lines->strings);
	if (err)
		return err;
	*ret_lines = TAKE(lines);
	return 0;
}

static void release_entries(struct cuda_lines *lines)
{
	index_table_release(&lines->index);
	free(lines->entry);
}

void cuda_lines_free(struct cuda_lines *lines)
{
	if (!lines)
		return;
	intern_free(lines->strings);
	release_entries(lines);
	free(lines);
}

/* ---- adding ---- */

static uint32_t hash_of(const struct about *about)
{
	return (uint32_t)XXH3_64bits(about, sizeof(*about));
}

static bool entry_equal(const void *context, uint32_t index, const void *key)
{
	const struct cuda_lines *lines = context;

	return !memcmp(&lines->entry[index].about, key, sizeof(lines->entry[index].about));
}

static int about_of(const struct cuda_lines *lines, const struct cuda_line *line,
		    struct about *ret_about)
{
	const struct {
		const char *text;
		uint32_t *string;
	} part[] = {{line->comm, &ret_about->comm},
		    {line->device, &ret_about->device},
		    {line->api, &ret_about->api},
		    {line->direction, &ret_about->direction},
		    {line->kernel, &ret_about->kernel}};
	int err = 0;

	*ret_about = (struct about){.pid = line->pid};
	for (size_t i = 0; i < ARRAY_SIZE(part) && !err; i++)
		err = intern_string(lines->strings, part[i].text, part[i].string);
	return err;
}

static void add_to_others(struct cuda_lines *lines, uint64_t how_many,
			  const struct cuda_line_sums *sums)
{
	if (__builtin_add_overflow(lines->others.others, how_many, &lines->others.others))
		lines->others.others = UINT64_MAX;
	cuda_line_sums_add(&lines->others.sums, sums);
}

static int add_entry(struct cuda_lines *lines, const struct about *about, uint32_t user,
		     uint32_t *ret_at)
{
	int err = ARRAY_RESERVE(lines->entry, lines->count, lines->capacity);

	if (!err)
		err = index_table_add(&lines->index, hash_of(about), lines->count);
	if (err)
		return err;
	lines->entry[lines->count] = (struct entry){.about = *about, .user = user};
	*ret_at = lines->count++;
	return 0;
}

/* Adds sums, if what they are about is there or fewer than `max` are. */
static int add_below(struct cuda_lines *lines, const struct about *about, uint32_t user,
		     const struct cuda_line_sums *sums, uint32_t max)
{
	uint32_t at;
	int err;

	if (!index_table_find(&lines->index, hash_of(about), entry_equal, lines, about, &at)) {
		if (lines->count >= max) {
			add_to_others(lines, 1, sums);
			return 0;
		}
		err = add_entry(lines, about, user, &at);
		if (err)
			return err;
	}
	cuda_line_sums_add(&lines->entry[at].sums, sums);
	return 0;
}

int cuda_lines_add(struct cuda_lines *lines, const struct cuda_line *line, uint32_t user)
{
	struct about about;
	int err;

	if (!line->pid) {
		add_to_others(lines, line->others, &line->sums);
		return 0;
	}
	err = about_of(lines, line, &about);
	return err ? err : add_below(lines, &about, user, &line->sums, CUDA_LINES_KEPT_MAX);
}

/* ---- looking ---- */

uint32_t cuda_lines_count(const struct cuda_lines *lines)
{
	return lines->count;
}

uint32_t cuda_lines_find(const struct cuda_lines *lines, const struct cuda_line *line)
{
	struct about about;
	uint32_t at;

	return about_of(lines, line, &about) || !index_table_find(&lines->index, hash_of(&about),
								  entry_equal, lines, &about, &at)
		       ? lines->count
		       : at;
}

uint64_t cuda_lines_pid(const struct cuda_lines *lines, uint32_t i)
{
	return lines->entry[i].about.pid;
}

const struct cuda_line_sums *cuda_lines_sums(const struct cuda_lines *lines, uint32_t i)
{
	return &lines->entry[i].sums;
}

const struct cuda_line *cuda_lines_others(const struct cuda_lines *lines)
{
	return lines->others.others ? &lines->others : NULL;
}

static const char *text_of(const struct cuda_lines *lines, uint32_t string)
{
	return intern_get(lines->strings, string, NULL);
}

void cuda_lines_get(const struct cuda_lines *lines, uint32_t i, struct cuda_line *ret_line)
{
	const struct about *about = &lines->entry[i].about;

	ret_line->pid = about->pid;
	ret_line->others = 0;
	ret_line->is_around = false;
	ret_line->sums = lines->entry[i].sums;
	cuda_line_set_word(ret_line->comm, text_of(lines, about->comm));
	cuda_line_set_word(ret_line->device, text_of(lines, about->device));
	cuda_line_set_word(ret_line->api, text_of(lines, about->api));
	cuda_line_set_word(ret_line->direction, text_of(lines, about->direction));
	cuda_line_set_kernel(ret_line, text_of(lines, about->kernel));
}

/* ---- the order ---- */

static uint64_t weight_of(const struct cuda_line_sums *sums)
{
	uint64_t weight;

	if (__builtin_mul_overflow(sums->calls, CALL_NS, &weight) ||
	    __builtin_add_overflow(weight, sums->host_ns, &weight))
		return UINT64_MAX;
	return weight;
}

static int by_weight(const struct place *a, const struct place *b)
{
	if (a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	return a->entry < b->entry ? -1 : a->entry > b->entry;
}

static int by_user(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	return a->user != b->user ? (a->user < b->user ? -1 : 1) : by_weight(a, b);
}

static int by_turn(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	return a->turn != b->turn ? (a->turn < b->turn ? -1 : 1) : by_weight(a, b);
}

/* Lists the entries: each user's first one, then each user's second. */
static int take_turns(const struct cuda_lines *lines, struct place **ret_place)
{
	struct place *place = calloc((size_t)lines->count + 1, sizeof(*place));

	if (!place)
		return -ENOMEM;
	for (uint32_t i = 0; i < lines->count; i++)
		place[i] = (struct place){.entry = i,
					  .user = lines->entry[i].user,
					  .weight = weight_of(&lines->entry[i].sums)};
	qsort(place, lines->count, sizeof(*place), by_user);
	for (uint32_t i = 1; i < lines->count; i++)
		if (place[i].user == place[i - 1].user)
			place[i].turn = place[i - 1].turn + 1;
	qsort(place, lines->count, sizeof(*place), by_turn);
	*ret_place = place;
	return 0;
}

/* ---- writing ---- */

/* Makes what is written of the lines, in their order.  chosen: empty, with the same strings. */
static int choose(const struct cuda_lines *lines, struct cuda_lines *chosen)
{
	const uint32_t whole = lines->count > CUDA_LINES_MAX ? CUDA_LINES_WHOLE : CUDA_LINES_MAX;
	OWNED_MEM struct place *place = NULL;
	uint32_t others;
	int err = intern_string(lines->strings, CUDA_LINE_OTHER_KERNELS, &others);

	if (!err)
		err = take_turns(lines, &place);
	chosen->others = lines->others;
	for (uint32_t i = 0; i < lines->count && !err; i++) {
		const struct entry *entry = &lines->entry[place[i].entry];
		struct about about = entry->about;

		if (i >= whole && about.kernel)
			about.kernel = others;
		err = add_below(chosen, &about, entry->user, &entry->sums, CUDA_LINES_MAX);
	}
	return err;
}

static int put_line(const struct cuda_line *line, int (*put)(void *context, const char *text),
		    void *context)
{
	char text[CUDA_LINE_CHARS];

	cuda_line_format(line, text);
	return put(context, text);
}

static int put_lines(const struct cuda_lines *chosen, int (*put)(void *context, const char *text),
		     void *context)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < chosen->count; i++) {
		struct cuda_line line;

		cuda_lines_get(chosen, i, &line);
		err = put_line(&line, put, context);
	}
	if (!err && chosen->others.others)
		err = put_line(&chosen->others, put, context);
	return err;
}

int cuda_lines_write(const struct cuda_lines *lines, int (*put)(void *context, const char *text),
		     void *context)
{
	struct cuda_lines chosen = {.strings = lines->strings};
	int err = choose(lines, &chosen);

	if (!err)
		err = put_lines(&chosen, put, context);
	release_entries(&chosen);
	return err;
}
