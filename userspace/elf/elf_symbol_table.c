/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_symbol_table.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"

Elf64_Sym elf_symbol_table_entry(const struct elf_symbol_table *table, size_t index)
{
	Elf64_Sym symbol;

	memcpy(&symbol, table->entry + index * sizeof(symbol), sizeof(symbol));
	return symbol;
}

static int table_from_section(const struct elf_image *image, uint32_t type,
			      struct elf_symbol_table *ret_table)
{
	struct elf_section symbols, names;

	for (uint32_t i = 1;
	     i < image->section_count && elf_work_pay(image->work, 1, ELF_WORK_PER_HEADER); i++) {
		if (elf_image_section_by_index(image, i, &symbols) || symbols.type != type)
			continue;
		if (elf_image_section_by_index(image, symbols.link, &names) || !names.data)
			return -EBADMSG;
		*ret_table = (struct elf_symbol_table){
			.entry = symbols.data,
			.count = symbols.size / sizeof(Elf64_Sym),
			.work = image->work,
			.names = (const char *)names.data,
			.names_size = names.size,
		};
		return 0;
	}
	return -ENOENT;
}

struct dynamic {
	uint64_t symbols, names, names_size, hash, gnu_hash; /* 0: absent */
};

static int read_dynamic(const struct elf_image *image, struct dynamic *ret_dynamic)
{
	struct dynamic found = {0};
	Elf64_Dyn entry;

	for (uint32_t i = 0; elf_image_dynamic(image, i, &entry); i++) {
		if (entry.d_tag == DT_SYMTAB)
			found.symbols = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRTAB)
			found.names = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRSZ)
			found.names_size = entry.d_un.d_val;
		else if (entry.d_tag == DT_HASH)
			found.hash = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_GNU_HASH)
			found.gnu_hash = entry.d_un.d_ptr;
	}
	if (!found.symbols || !found.names || (!found.hash && !found.gnu_hash))
		return -ENOENT;
	*ret_dynamic = found;
	return 0;
}

/* DT_GNU_HASH: see "GNU Hash ELF Sections", the layout that ld.so's do_lookup_x follows. */
struct gnu_hash {
	uint32_t bucket_count, first_symbol, bloom_count, bloom_shift;
	uint64_t bucket_vaddr, chain_vaddr;
	const uint8_t *bloom, *bucket;
};

static int read_gnu_hash(const struct elf_image *image, uint64_t vaddr, struct gnu_hash *ret_hash)
{
	const uint8_t *at = elf_image_at(image, vaddr, 16);
	struct gnu_hash hash;

	if (!at)
		return -EBADMSG;
	hash = (struct gnu_hash){
		.bucket_count = load_u32(at),
		.first_symbol = load_u32(at + 4),
		.bloom_count = load_u32(at + 8),
		.bloom_shift = load_u32(at + 12),
	};
	hash.bucket_vaddr = vaddr + 16 + (uint64_t)hash.bloom_count * 8;
	hash.chain_vaddr = hash.bucket_vaddr + (uint64_t)hash.bucket_count * 4;
	hash.bloom = elf_image_at(image, vaddr + 16, (size_t)hash.bloom_count * 8);
	hash.bucket = elf_image_at(image, hash.bucket_vaddr, (size_t)hash.bucket_count * 4);
	if (!hash.bloom_count || !hash.bucket_count || !hash.bloom || !hash.bucket)
		return -EBADMSG;
	*ret_hash = hash;
	return 0;
}

/* Returns one past the last symbol: the end of the chain that starts last. */
static size_t gnu_hash_symbol_count(const struct elf_image *image, const struct gnu_hash *hash)
{
	uint32_t last = 0;
	const uint8_t *at;

	if (!elf_work_pay(image->work, hash->bucket_count, 1))
		return 0;
	for (uint32_t i = 0; i < hash->bucket_count; i++) {
		const uint32_t first = load_u32(hash->bucket + (size_t)i * 4);

		if (first > last)
			last = first;
	}
	if (last < hash->first_symbol)
		return hash->first_symbol;
	do {
		at = elf_image_at(image,
				  hash->chain_vaddr + (uint64_t)(last - hash->first_symbol) * 4, 4);
		last++;
	} while (at && !(load_u32(at) & 1) && last != UINT32_MAX &&
		 elf_work_pay(image->work, 1, ELF_WORK_PER_HEADER));
	return last;
}

static int table_from_dynamic(const struct elf_image *image, const struct dynamic *dynamic,
			      struct elf_symbol_table *ret_table)
{
	struct elf_symbol_table table = {.names_size = dynamic->names_size, .work = image->work};
	struct gnu_hash hash;
	const uint8_t *at;

	at = dynamic->hash ? elf_image_at(image, dynamic->hash, 8) : NULL;
	if (at)
		table.count = load_u32(at + 4); /* nchain */
	else if (dynamic->gnu_hash && !read_gnu_hash(image, dynamic->gnu_hash, &hash))
		table.count = gnu_hash_symbol_count(image, &hash);
	else
		return -EBADMSG;
	table.entry = elf_image_at(image, dynamic->symbols, table.count * sizeof(Elf64_Sym));
	table.names = (const char *)elf_image_at(image, dynamic->names, table.names_size);
	if (!table.entry || !table.names)
		return -EBADMSG;
	*ret_table = table;
	return 0;
}

int elf_image_symbol_table(const struct elf_image *image, uint32_t type,
			   struct elf_symbol_table *ret_table)
{
	struct dynamic dynamic;
	int err = table_from_section(image, type, ret_table);

	if (err != -ENOENT || type != SHT_DYNSYM || read_dynamic(image, &dynamic))
		return err;
	return table_from_dynamic(image, &dynamic, ret_table);
}

static bool entry_is_named(const struct elf_symbol_table *table, size_t index, const char *name,
			   size_t name_size, struct elf_symbol *ret_symbol)
{
	const Elf64_Sym symbol = elf_symbol_table_entry(table, index);

	if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= table->names_size ||
	    table->names_size - symbol.st_name < name_size ||
	    memcmp(table->names + symbol.st_name, name, name_size))
		return false;
	*ret_symbol = (struct elf_symbol){
		.value = symbol.st_value,
		.size = symbol.st_size,
		.type = ELF64_ST_TYPE(symbol.st_info),
	};
	return true;
}

const char *elf_symbol_table_search(const struct elf_symbol_table *table, const char *from,
				    const char *text, size_t size)
{
	const size_t left = table->names_size - (size_t)(from - table->names);

	return elf_work_pay(table->work, left / ELF_WORK_SEARCHED_BYTES_PER_UNIT, 1)
		       ? memmem(from, left, text, size)
		       : NULL;
}

static int find_in_table(const struct elf_symbol_table *table, const char *name,
			 struct elf_symbol *ret_symbol)
{
	const size_t name_size = strlen(name) + 1;

	/* Most files do not have the name: one search in the strings is far cheaper than one over
	 * symbols. */
	if (!elf_symbol_table_search(table, table->names, name, name_size))
		return -ENOENT;
	for (size_t i = 1; i < table->count && elf_work_pay(table->work, 1, 2); i++)
		if (entry_is_named(table, i, name, name_size, ret_symbol))
			return 0;
	return -ENOENT;
}

static int find_by_gnu_hash(const struct elf_image *image, const struct gnu_hash *hash,
			    const struct elf_symbol_table *table, const char *name,
			    struct elf_symbol *ret_symbol)
{
	const size_t name_size = strlen(name) + 1;
	uint32_t key = 5381, index;
	uint64_t bloom;

	for (const char *c = name; *c; c++)
		key = key * 33 + (uint8_t)*c;
	bloom = load_u64(hash->bloom + (size_t)(key / 64 % hash->bloom_count) * 8);
	if (!(bloom >> key % 64 & bloom >> (key >> (hash->bloom_shift & 31)) % 64 & 1))
		return -ENOENT;
	index = load_u32(hash->bucket + (size_t)(key % hash->bucket_count) * 4);
	for (; index >= hash->first_symbol && index < table->count &&
	       elf_work_pay(image->work, 1, ELF_WORK_PER_HEADER);
	     index++) {
		const uint8_t *at = elf_image_at(
			image, hash->chain_vaddr + (uint64_t)(index - hash->first_symbol) * 4, 4);

		if (!at)
			return -ENOENT;
		if ((load_u32(at) | 1) == (key | 1) &&
		    entry_is_named(table, index, name, name_size, ret_symbol))
			return 0;
		if (load_u32(at) & 1)
			return -ENOENT;
	}
	return -ENOENT;
}

int elf_image_symbol(const struct elf_image *image, const char *name, struct elf_symbol *ret_symbol)
{
	struct elf_symbol_table table;
	struct dynamic dynamic;
	struct gnu_hash hash;
	int err = -ENOENT;

	if (!elf_image_symbol_table(image, SHT_DYNSYM, &table)) {
		if (!read_dynamic(image, &dynamic) && dynamic.gnu_hash &&
		    !read_gnu_hash(image, dynamic.gnu_hash, &hash))
			err = find_by_gnu_hash(image, &hash, &table, name, ret_symbol);
		else
			err = find_in_table(&table, name, ret_symbol);
	}
	if (err && !elf_image_symbol_table(image, SHT_SYMTAB, &table))
		err = find_in_table(&table, name, ret_symbol);
	return err ? -ENOENT : 0;
}

/* ---- relocations ---- */

/* The relocation tables as the loader finds them, because section headers may be missing: DT_RELA,
 * and DT_JMPREL with the TLS descriptors. */
struct relocation_tables {
	uint64_t vaddr[2], size[2];
};

static struct relocation_tables relocation_tables(const struct elf_image *image)
{
	struct relocation_tables tables = {0};
	Elf64_Dyn entry;

	for (uint32_t i = 0; elf_image_dynamic(image, i, &entry); i++) {
		if (entry.d_tag == DT_RELA)
			tables.vaddr[0] = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_RELASZ)
			tables.size[0] = entry.d_un.d_val;
		else if (entry.d_tag == DT_JMPREL)
			tables.vaddr[1] = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_PLTRELSZ)
			tables.size[1] = entry.d_un.d_val;
	}
	return tables;
}

static int relocation_in_table(const uint8_t *bytes, uint64_t size, uint64_t slot,
			       Elf64_Rela *ret_entry)
{
	Elf64_Rela entry;

	for (uint64_t at = 0; size - at >= sizeof(entry); at += sizeof(entry)) {
		memcpy(&entry, bytes + at, sizeof(entry));
		if (entry.r_offset == slot) {
			*ret_entry = entry;
			return 0;
		}
	}
	return -ENOENT;
}

int elf_image_relocation(const struct elf_image *image, uint64_t slot, uint32_t *ret_type,
			 uint64_t *ret_value)
{
	const struct relocation_tables tables = relocation_tables(image);
	struct elf_symbol_table symbols;
	int err = -ENOENT;
	Elf64_Rela entry;
	Elf64_Sym symbol;
	uint32_t index;

	for (int i = 0; i < 2 && err; i++) {
		const uint8_t *bytes = elf_image_at(image, tables.vaddr[i], tables.size[i]);

		if (tables.vaddr[i] && bytes &&
		    elf_work_pay(image->work, tables.size[i] / sizeof(entry), 2))
			err = relocation_in_table(bytes, tables.size[i], slot, &entry);
	}
	if (err)
		return err;
	index = ELF64_R_SYM(entry.r_info);
	if (index) {
		if (elf_image_symbol_table(image, SHT_DYNSYM, &symbols) || index >= symbols.count)
			return -ENOENT;
		symbol = elf_symbol_table_entry(&symbols, index);
		if (symbol.st_shndx == SHN_UNDEF)
			return -ENOENT;
		entry.r_addend = (int64_t)((uint64_t)entry.r_addend + symbol.st_value);
	}
	*ret_type = ELF64_R_TYPE(entry.r_info);
	*ret_value = (uint64_t)entry.r_addend;
	return 0;
}
