/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes one pass over unsorted symbols for a sorted batch of addresses.  A binary search among the
 * addresses places each symbol, so a table of 500,000 symbols is neither copied nor sorted. */
#include "elf/elf_symbols.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "elf/go_table.h"

void symbol_sources_free(struct symbol_sources *sources)
{
	if (!sources)
		return;
	for (size_t i = 0; i < sources->count; i++)
		free(sources->source[i].section);
	elf_image_free(sources->debug_file);
	elf_image_free(sources->debugdata);
	free(sources->debugdata_bytes);
	free(sources);
}

static int read_sections(const struct elf_image *image, struct symbol_source *source)
{
	if (!image->section_count)
		return 0;
	if (!elf_work_pay(image->work, image->section_count, ELF_WORK_PER_HEADER))
		return -E2BIG;
	source->section = calloc(image->section_count, sizeof(*source->section));
	if (!source->section)
		return -ENOMEM;
	source->section_count = image->section_count;
	for (uint32_t i = 0; i < image->section_count; i++) {
		struct elf_section section;

		if (elf_image_section_by_index(image, i, &section))
			continue;
		source->section[i] = (struct symbol_section){
			.end = section.vaddr + section.size,
			.is_code = (section.flags & SHF_ALLOC) && (section.flags & SHF_EXECINSTR),
		};
	}
	return 0;
}

/* Adds a table; returns 0 also when there is none. */
static int add_source(struct symbol_sources *sources, const struct elf_image *image, uint32_t type)
{
	struct symbol_source source = {.image = image};
	int err;

	if (elf_image_symbol_table(image, type, &source.table))
		return 0;
	if (source.table.count > SYMBOL_SOURCE_MAX_SYMBOLS)
		source.table.count = SYMBOL_SOURCE_MAX_SYMBOLS;
	err = read_sections(image, &source);
	if (err)
		return err;
	sources->source[sources->count++] = source;
	return 0;
}

static int add_separate(struct symbol_sources *sources, const struct debug_files *files)
{
	int err = debug_file_open(sources->image, files, &sources->debug_file);

	if (!err)
		return add_source(sources, sources->debug_file, SHT_SYMTAB);
	if (err == -ENOMEM || err == -E2BIG)
		return err;
	err = debugdata_open(sources->image, DEBUGDATA_MAX_BYTES, &sources->debugdata,
			     &sources->debugdata_bytes);
	if (!err)
		return add_source(sources, sources->debugdata, SHT_SYMTAB);
	return err == -ENOMEM || err == -E2BIG ? err : 0;
}

/* Returns whether .dynsym is redundant: the file's own .symtab repeats it, unless `strip -K` left
 * only a few symbols. */
static bool holds_dynamic(const struct symbol_sources *sources)
{
	struct elf_symbol_table dynamic;

	return sources->count && sources->source[0].image == sources->image &&
	       !elf_image_symbol_table(sources->image, SHT_DYNSYM, &dynamic) &&
	       sources->source[0].table.count >= dynamic.count;
}

int symbol_sources_open(const struct elf_image *image, const struct debug_files *files,
			struct symbol_sources **ret_sources)
{
	OWNED(symbol_sources) struct symbol_sources *sources = calloc(1, sizeof(*sources));
	int err;

	if (!sources)
		return -ENOMEM;
	sources->image = image;
	err = add_source(sources, image, SHT_SYMTAB);
	if (!err && !sources->count)
		err = add_separate(sources, files);
	if (!err && !holds_dynamic(sources))
		err = add_source(sources, image, SHT_DYNSYM);
	if (!err && elf_work_is_over(image->work))
		err = -E2BIG;
	if (err)
		return err;
	*ret_sources = TAKE(sources);
	return 0;
}

/* Accepts symbols without a type in code, because assembler code often lacks .type.  "$x" and "$d"
 * are aarch64's mapping symbols. */
static bool is_untyped_code(const struct symbol_source *source, const Elf64_Sym *symbol)
{
	if (ELF64_ST_TYPE(symbol->st_info) != STT_NOTYPE ||
	    (symbol->st_shndx < source->section_count &&
	     !source->section[symbol->st_shndx].is_code))
		return false;
	return source->table.names[symbol->st_name] != '$';
}

bool symbol_source_function(const struct symbol_sources *sources, size_t source_index, size_t index,
			    struct symbol_function *ret_function)
{
	const struct symbol_source *source = &sources->source[source_index];
	const Elf64_Sym symbol = elf_symbol_table_entry(&source->table, index);
	const uint8_t type = ELF64_ST_TYPE(symbol.st_info);
	const struct elf_segment *segment;
	uint64_t limit, end, room;

	/* The names themselves are not read: that would page in the whole string table. */
	if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= SHN_LORESERVE || !symbol.st_name ||
	    symbol.st_name >= source->table.names_size)
		return false;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && !is_untyped_code(source, &symbol))
		return false;
	segment = elf_image_code_at(sources->image, symbol.st_value);
	if (!segment)
		return false;
	limit = segment->vaddr + segment->memory_size;
	if (symbol.st_size)
		end = symbol.st_size < limit - symbol.st_value ? symbol.st_value + symbol.st_size
							       : limit;
	else if (symbol.st_shndx < source->section_count &&
		 source->section[symbol.st_shndx].end > symbol.st_value &&
		 source->section[symbol.st_shndx].end < limit)
		end = source->section[symbol.st_shndx].end;
	else
		end = limit;
	room = source->table.names_size - symbol.st_name;
	*ret_function = (struct symbol_function){
		.start = symbol.st_value,
		.end = end,
		.name = source->table.names + symbol.st_name,
		.name_room = room < SYMBOL_NAME_MAX_BYTES ? room : SYMBOL_NAME_MAX_BYTES,
		.work = source->image->work,
		.has_size = symbol.st_size != 0,
		.is_local = ELF64_ST_BIND(symbol.st_info) == STB_LOCAL,
	};
	return true;
}

size_t symbol_function_name_size(const struct symbol_function *function)
{
	const size_t size = strnlen(function->name, function->name_room);
	const char *version = memchr(function->name, '@', size);

	elf_work_pay(function->work, size / ELF_WORK_NAME_BYTES_PER_UNIT + 1, 1);
	return version && version != function->name ? (size_t)(version - function->name) : size;
}

static size_t leading_underscores(const struct symbol_function *function, size_t size)
{
	size_t count = 0;

	while (count < size && function->name[count] == '_')
		count++;
	return count;
}

bool symbol_function_is_better(const struct symbol_function *a, const struct symbol_function *b)
{
	size_t a_size, b_size, a_underscores, b_underscores;

	if (a->has_size != b->has_size)
		return a->has_size;
	if (a->is_local != b->is_local)
		return b->is_local;
	a_size = symbol_function_name_size(a);
	b_size = symbol_function_name_size(b);
	a_underscores = leading_underscores(a, a_size);
	b_underscores = leading_underscores(b, b_size);
	if (a_underscores != b_underscores)
		return a_underscores < b_underscores;
	if (a_size != b_size)
		return a_size < b_size;
	return memcmp(a->name, b->name, a_size) < 0;
}

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
	return ARRAY_LEADING(batch->count, at, batch->vaddr[at] < vaddr);
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

/* The table of a Go program has all of its functions, also where stripping left symbols of
 * others. */
static void prefer_go(const struct go_table *table, const struct batch_slot *slot, uint64_t vaddr,
		      struct elf_function *found)
{
	struct go_function function;
	size_t size;

	if (slot->sized.name || go_table_find(table, vaddr, &function))
		return;
	if (function.name_room > SYMBOL_NAME_MAX_BYTES)
		function.name_room = SYMBOL_NAME_MAX_BYTES;
	size = strnlen(function.name, function.name_room);
	elf_work_pay(table->image->work, size / ELF_WORK_NAME_BYTES_PER_UNIT + 1, 1);
	if (size)
		*found = (struct elf_function){.name = function.name,
					       .name_size = size,
					       .start = function.low,
					       .low = function.low,
					       .high = function.high};
}

int elf_symbols_find_many(const struct elf_image *image, const struct debug_files *files,
			  const uint64_t *vaddr, size_t count, elf_function_handler *found,
			  void *context)
{
	OWNED(symbol_sources) struct symbol_sources *sources = NULL;
	OWNED_MEM struct batch_slot *slot = NULL;
	struct batch batch = {.vaddr = vaddr, .count = count};
	struct go_table go = {.count = 0};
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
	(void)go_table_open(image, &go);
	for (size_t i = 0; i < count; i++) {
		struct elf_function function = answer(&slot[i], vaddr[i]);

		prefer_go(&go, &slot[i], vaddr[i], &function);
		if (i % RELEASE_ANSWERS == 0)
			for (size_t k = 0; k < sources->count; k++)
				release(&sources->source[k]);
		found(context, i, &function);
	}
	return 0;
}
