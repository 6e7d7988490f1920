/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/symbol_sources.h"

#include <errno.h>
#include <string.h>

#include "elf/debug_file.h"

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

static const struct elf_segment *code_segment_at(const struct elf_image *image, uint64_t vaddr)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segment[i];

		if (segment->executable && vaddr >= segment->vaddr &&
		    vaddr - segment->vaddr < segment->memory_size)
			return segment;
	}
	return NULL;
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
	segment = code_segment_at(sources->image, symbol.st_value);
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
