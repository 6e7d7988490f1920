/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes one pass over unsorted symbols for a sorted batch of addresses.  A binary search among the
 * addresses places each symbol, so a table of 500,000 symbols is neither copied nor sorted. */
#include "elf/elf_symbols.h"

#include <errno.h>
#include <string.h>

#include "elf/symbol_sources.h"

/* Functions of honest files hardly overlap, so each address is covered once or twice. */
#define COVER_MAX_STEPS(count) ((1UL << 22) + 64UL * (count))
#define RELEASE_SYMBOLS 32768U /* 768 KiB of them */
#define RELEASE_ANSWERS 64U    /* reading a name brings 64 KiB into memory (fault-around) */

/* What the symbols read so far say about one address. */
struct batch_slot {
	/* it covers the address, has a size, starts last; name NULL: none */
	struct symbol_function sized;
	/* During the scan these three describe only symbols between the neighbouring addresses;
	 * spread() then carries them over. */
	struct symbol_function latest; /* starts last of those at or before the address */
	uint64_t last_end;	       /* greatest end at or before it */
	uint64_t next_start;	       /* least start after it */
	bool has_latest;
};

struct batch {
	const uint64_t *vaddr;
	size_t count;
	struct batch_slot *slot;
	size_t steps_left;
};

/* Returns the first address at or above vaddr; count when there is none. */
static size_t first_at_or_after(const struct batch *batch, uint64_t vaddr)
{
	size_t low = 0, high = batch->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (batch->vaddr[middle] < vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* first: the first address at or after the function's start. */
static void note_end(struct batch *batch, size_t first, uint64_t end)
{
	const size_t at = end <= batch->vaddr[first] ? first : first_at_or_after(batch, end);

	if (at < batch->count && end > batch->slot[at].last_end)
		batch->slot[at].last_end = end;
}

static void note_latest(struct batch_slot *slot, const struct symbol_function *function)
{
	if (slot->has_latest && (function->start < slot->latest.start ||
				 (function->start == slot->latest.start &&
				  !symbol_function_is_better(function, &slot->latest))))
		return;
	slot->latest = *function;
	slot->has_latest = true;
}

static int place(struct batch *batch, const struct symbol_function *function)
{
	const size_t first = first_at_or_after(batch, function->start);

	if (first && function->start < batch->slot[first - 1].next_start)
		batch->slot[first - 1].next_start = function->start;
	if (first == batch->count)
		return 0;
	note_latest(&batch->slot[first], function);
	note_end(batch, first, function->end);
	if (!function->has_size)
		return 0;
	for (size_t i = first; i < batch->count && batch->vaddr[i] < function->end; i++) {
		struct symbol_function *sized = &batch->slot[i].sized;

		if (!batch->steps_left--)
			return -EBADMSG;
		if (!sized->name || function->start > sized->start ||
		    (function->start == sized->start && symbol_function_is_better(function, sized)))
			*sized = *function;
	}
	return 0;
}

/* Releases what was read: libtorch's tables have 12 MiB of symbols and 60 of names. */
static void release(const struct symbol_source *source)
{
	const struct elf_symbol_table *table = &source->table;

	elf_image_release(source->image, table->entry, table->count * sizeof(Elf64_Sym));
	elf_image_release(source->image, table->names, table->names_size);
}

static int place_source(struct batch *batch, const struct symbol_sources *sources, size_t source)
{
	const struct elf_symbol_table *table = &sources->source[source].table;
	struct symbol_function function;

	for (size_t i = 1; i < table->count; i++) {
		int err;

		if (i % RELEASE_SYMBOLS == 0)
			release(&sources->source[source]);
		if (!elf_work_pay(table->work, 1, ELF_WORK_PER_SYMBOL))
			return -E2BIG;
		if (!symbol_source_function(sources, source, i, &function))
			continue;
		err = place(batch, &function);
		if (err)
			return err;
	}
	release(&sources->source[source]);
	return 0;
}

static void spread(struct batch *batch)
{
	for (size_t i = 1; i < batch->count; i++) {
		struct batch_slot *slot = &batch->slot[i];

		if (!slot->has_latest) {
			slot->latest = slot[-1].latest;
			slot->has_latest = slot[-1].has_latest;
		}
		if (slot[-1].last_end > slot->last_end)
			slot->last_end = slot[-1].last_end;
	}
	for (size_t i = batch->count - 1; i; i--)
		if (batch->slot[i].next_start < batch->slot[i - 1].next_start)
			batch->slot[i - 1].next_start = batch->slot[i].next_start;
}

static struct elf_function answer(const struct batch_slot *slot, uint64_t vaddr)
{
	const struct symbol_function *function = NULL;
	struct elf_function found = {.low = slot->last_end, .high = slot->next_start};

	if (slot->sized.name)
		function = &slot->sized;
	else if (slot->has_latest && !slot->latest.has_size && slot->latest.end > vaddr)
		function = &slot->latest;
	if (!function)
		return found;
	found.name = function->name;
	found.name_size = symbol_function_name_size(function);
	found.start = function->start;
	/* A function that ended inside this one, or that begins in it, limits the range of this
	 * answer. */
	if (function->start > found.low)
		found.low = function->start;
	if (function->end < found.high)
		found.high = function->end;
	return found;
}

int elf_symbols_find_many(const struct elf_image *image, const struct debug_files *files,
			  const uint64_t *vaddr, size_t count, elf_function_handler *found,
			  void *context)
{
	OWNED(symbol_sources) struct symbol_sources *sources = NULL;
	OWNED_MEM struct batch_slot *slot = NULL;
	struct batch batch = {.vaddr = vaddr, .count = count};
	int err;

	if (!count)
		return 0;
	slot = calloc(count, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		slot[i].next_start = UINT64_MAX;
	batch.slot = slot;
	batch.steps_left = COVER_MAX_STEPS(count);
	err = symbol_sources_open(image, files, &sources);
	if (err)
		return err;
	for (size_t i = 0; i < sources->count; i++) {
		err = place_source(&batch, sources, i);
		if (err)
			return err;
	}
	spread(&batch);
	for (size_t i = 0; i < count; i++) {
		const struct elf_function function = answer(&slot[i], vaddr[i]);

		if (i % RELEASE_ANSWERS == 0)
			for (size_t k = 0; k < sources->count; k++)
				release(&sources->source[k]);
		found(context, i, &function);
	}
	return 0;
}
