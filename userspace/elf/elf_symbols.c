/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_symbols.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "elf/symbol_sources.h"

#define SIZE_BITS 30
#define SIZE_MAX_BYTES ((1U << SIZE_BITS) - 1)
#define FIND_MAX_STEPS 4096U /* backwards through functions that overlap */

struct symbol_entry {
	uint64_t start;
	uint32_t size : SIZE_BITS;
	uint32_t is_nested : 1; /* starts before an earlier function with a size has ended */
	uint32_t has_size : 1;
	uint32_t name; /* offset in names */
};

struct elf_symbols {
	struct symbol_entry *entry; /* owned; by start, no duplicates */
	size_t count;
	char *names; /* owned */
	size_t names_size, names_capacity;
};

/* A function before its name is chosen: the index of a symbol in a source. */
struct symbol_ref {
	uint64_t start;
	uint32_t index;
	uint32_t source;
};

struct symbol_refs {
	struct symbol_ref *ref;
	size_t count, capacity;
};

void elf_symbols_free(struct elf_symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->entry);
	free(symbols->names);
	free(symbols);
}

static int add_ref(struct symbol_refs *refs, struct symbol_ref ref)
{
	if (ARRAY_RESERVE(refs->ref, refs->count, refs->capacity))
		return -ENOMEM;
	refs->ref[refs->count++] = ref;
	return 0;
}

static int collect_refs(const struct symbol_sources *sources, struct symbol_refs *refs)
{
	struct symbol_function function;

	for (uint32_t source = 0; source < sources->count; source++)
		for (size_t i = 1; i < sources->source[source].table.count; i++) {
			int err;

			if (!elf_work_pay(sources->source[source].image->work, 1,
					  ELF_WORK_PER_SYMBOL_SORTED))
				return -E2BIG;
			if (!symbol_source_function(sources, source, i, &function))
				continue;
			err = add_ref(refs, (struct symbol_ref){.start = function.start,
								.index = (uint32_t)i,
								.source = source});
			if (err)
				return err;
		}
	return 0;
}

static int compare_refs(const void *a, const void *b)
{
	const struct symbol_ref *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	/* The other fields only make the order, and so the result, deterministic. */
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Appends a name.  Returns 0 or -ENOMEM; -EFBIG when the names exceed the bound. */
static int add_name(struct elf_symbols *symbols, const struct symbol_function *function,
		    uint32_t *ret_name)
{
	const size_t size = symbol_function_name_size(function);

	if (symbols->names_size + size + 1 > ELF_SYMBOLS_MAX_NAME_BYTES)
		return -EFBIG;
	if (symbols->names_size + size + 1 > symbols->names_capacity) {
		const size_t capacity = (symbols->names_capacity + size + 1) * 2;
		char *grown = realloc(symbols->names, capacity);

		if (!grown)
			return -ENOMEM;
		symbols->names = grown;
		symbols->names_capacity = capacity;
	}
	memcpy(symbols->names + symbols->names_size, function->name, size);
	symbols->names[symbols->names_size + size] = '\0';
	*ret_name = (uint32_t)symbols->names_size;
	symbols->names_size += size + 1;
	return 0;
}

/* Chooses the best of the refs [first, end), which share a start.  Returns false when none is a
 * function any more, because the file was written to meanwhile. */
static bool best_of(const struct symbol_sources *sources, const struct symbol_refs *refs,
		    size_t first, size_t end, struct symbol_function *ret_best)
{
	struct symbol_function best = {0}, next;

	for (size_t i = first; i < end; i++)
		if (symbol_source_function(sources, refs->ref[i].source, refs->ref[i].index,
					   &next) &&
		    next.start == refs->ref[i].start &&
		    (!best.name || symbol_function_is_better(&next, &best)))
			best = next;
	if (!best.name)
		return false;
	*ret_best = best;
	return true;
}

/* sized_end: the greatest end of the functions with a size so far. */
static int add_entry(struct elf_symbols *symbols, const struct symbol_function *function,
		     uint64_t next_start, uint64_t *sized_end)
{
	struct symbol_entry *entry = &symbols->entry[symbols->count];
	uint64_t size = function->end - function->start;
	uint32_t name;
	int err = add_name(symbols, function, &name);

	if (err)
		return err;
	if (!function->has_size && size > next_start - function->start)
		size = next_start - function->start;
	*entry = (struct symbol_entry){
		.start = function->start,
		.size = size < SIZE_MAX_BYTES ? (uint32_t)size : SIZE_MAX_BYTES,
		.is_nested = function->start < *sized_end,
		.has_size = function->has_size,
		.name = name,
	};
	if (function->has_size && function->end > *sized_end)
		*sized_end = function->end;
	symbols->count++;
	return 0;
}

static int fill_entries(struct elf_symbols *symbols, const struct symbol_sources *sources,
			const struct symbol_refs *refs)
{
	uint64_t sized_end = 0;

	symbols->entry = malloc((refs->count + 1) * sizeof(*symbols->entry));
	if (!symbols->entry)
		return -ENOMEM;
	for (size_t first = 0, end; first < refs->count; first = end) {
		struct symbol_function best;
		int err;

		for (end = first + 1; end < refs->count; end++)
			if (refs->ref[end].start != refs->ref[first].start)
				break;
		if (!best_of(sources, refs, first, end, &best))
			continue;
		err = add_entry(symbols, &best,
				end < refs->count ? refs->ref[end].start : UINT64_MAX, &sized_end);
		if (err == -EFBIG)
			return 0;
		if (err)
			return err;
	}
	return 0;
}

/* Frees the rest of arrays that grew by doubling. */
static void trim(struct elf_symbols *symbols)
{
	struct symbol_entry *entry =
		realloc(symbols->entry, (symbols->count + 1) * sizeof(*symbols->entry));
	char *names = realloc(symbols->names, symbols->names_size + 1);

	if (entry)
		symbols->entry = entry;
	if (names) {
		symbols->names = names;
		symbols->names_capacity = symbols->names_size + 1;
	}
}

int elf_symbols_read(const struct elf_image *image, const struct debug_files *files,
		     struct elf_symbols **ret_symbols)
{
	OWNED(symbol_sources) struct symbol_sources *sources = NULL;
	OWNED(elf_symbols) struct elf_symbols *symbols = calloc(1, sizeof(*symbols));
	struct symbol_refs refs = {0};
	int err;

	if (!symbols)
		return -ENOMEM;
	err = symbol_sources_open(image, files, &sources);
	if (err)
		return err;
	err = collect_refs(sources, &refs);
	if (!err && refs.count) {
		qsort(refs.ref, refs.count, sizeof(*refs.ref), compare_refs);
		err = fill_entries(symbols, sources, &refs);
	}
	free(refs.ref);
	if (err)
		return err;
	trim(symbols);
	*ret_symbols = TAKE(symbols);
	return 0;
}

/* Returns the last entry that starts at or before vaddr; count when there is none. */
static size_t last_at_or_before(const struct elf_symbols *symbols, uint64_t vaddr)
{
	size_t low = 0, high = symbols->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (symbols->entry[middle].start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : symbols->count;
}

static bool covers(const struct symbol_entry *entry, uint64_t vaddr)
{
	return vaddr - entry->start < entry->size;
}

int elf_symbols_find(const struct elf_symbols *symbols, uint64_t vaddr, const char **ret_name,
		     uint64_t *ret_start)
{
	const size_t last = last_at_or_before(symbols, vaddr);
	const struct symbol_entry *entry = NULL;

	if (last == symbols->count)
		return -ENOENT;
	for (size_t i = last, steps = 0; steps < FIND_MAX_STEPS; i--, steps++) {
		const struct symbol_entry *candidate = &symbols->entry[i];

		if (candidate->has_size && covers(candidate, vaddr)) {
			entry = candidate;
			break;
		}
		if (!candidate->is_nested || !i)
			break;
	}
	if (!entry && !symbols->entry[last].has_size && covers(&symbols->entry[last], vaddr))
		entry = &symbols->entry[last];
	if (!entry)
		return -ENOENT;
	*ret_name = symbols->names + entry->name;
	*ret_start = entry->start;
	return 0;
}

size_t elf_symbols_count(const struct elf_symbols *symbols)
{
	return symbols->count;
}

size_t elf_symbols_bytes(const struct elf_symbols *symbols)
{
	return sizeof(*symbols) + symbols->count * sizeof(*symbols->entry) + symbols->names_size;
}
