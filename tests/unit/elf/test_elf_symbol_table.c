/* SPDX-License-Identifier: BSD-2-Clause */
/* Dynamic symbol tables and hash tables written by hand, as "GNU Hash ELF Sections" describes them.
 * The names' hashes are those that it and other descriptions print. */
#include "elf/elf_symbol_table.h"

#include <cmocka.h>
#include <errno.h>

#include "made_elf.h"

#define FIRST_SYMBOL 2U /* before it: none, and an import */
#define SYMBOLS 6U
#define BLOOM_WORDS 4U
#define BLOOM_SHIFT 6U
#define BUCKETS 2U
#define PRINTF 0x156b2bb8U
#define FLAPENGUIN 0x8ae9f18eU
#define SYSCALL 0xbac212a0U
#define EXIT 0x7c967e3fU

/* printf, flapenguin.me, syscall (bucket 0), exit (bucket 1) */
struct tables {
	Elf64_Dyn dynamic[8];
	Elf64_Sym symbol[SYMBOLS + 2];
	char names[64];
	uint32_t hash[2]; /* DT_HASH: nbucket, nchain */
	uint32_t gnu[4];  /* nbuckets, symndx, maskwords, shift2 */
	uint64_t bloom[BLOOM_WORDS];
	uint32_t bucket[BUCKETS], chain[SYMBOLS];
};

static struct made_elf elf;

static struct tables *tables(void)
{
	return (struct tables *)(elf.data + MADE_FREE);
}

#define VADDR(field) (MADE_BASE + MADE_FREE + offsetof(struct tables, field))

static void put_symbol(size_t index, uint32_t hash, const char *name, uint64_t value)
{
	struct tables *t = tables();
	size_t at = 1;

	while (t->names[at])
		at += strlen(t->names + at) + 1;
	strcpy(t->names + at, name);
	t->symbol[index] = (Elf64_Sym){.st_name = (uint32_t)at,
				       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				       .st_shndx = 7,
				       .st_value = value,
				       .st_size = 16};
	if (index < FIRST_SYMBOL)
		return;
	t->chain[index - FIRST_SYMBOL] = hash & ~1U;
	t->bloom[hash / 64 % BLOOM_WORDS] |= 1ULL << hash % 64 | 1ULL << (hash >> BLOOM_SHIFT) % 64;
}

/* With DT_GNU_HASH alone, and no section. */
static void begin(void)
{
	struct tables *t;

	made_begin(&elf, EM_X86_64);
	elf.header.e_shnum = 0;
	t = tables();
	elf.program[1].p_vaddr = VADDR(dynamic);
	elf.program[1].p_filesz = 4 * sizeof(Elf64_Dyn); /* without a DT_NULL */
	t->dynamic[0] = (Elf64_Dyn){.d_tag = DT_SYMTAB, .d_un.d_ptr = VADDR(symbol)};
	t->dynamic[1] = (Elf64_Dyn){.d_tag = DT_STRTAB, .d_un.d_ptr = VADDR(names)};
	t->dynamic[2] = (Elf64_Dyn){.d_tag = DT_STRSZ, .d_un.d_val = sizeof(t->names)};
	t->dynamic[3] = (Elf64_Dyn){.d_tag = DT_GNU_HASH, .d_un.d_ptr = VADDR(gnu)};
	memcpy(t->gnu, (uint32_t[]){BUCKETS, FIRST_SYMBOL, BLOOM_WORDS, BLOOM_SHIFT}, 16);
	put_symbol(1, 0, "puts", 0);
	t->symbol[1].st_shndx = SHN_UNDEF;
	put_symbol(2, PRINTF, "printf", 0x1000);
	put_symbol(3, FLAPENGUIN, "flapenguin.me", 0x2000);
	put_symbol(4, SYSCALL, "syscall", 0x3000);
	put_symbol(5, EXIT, "exit", 0x4000);
	t->chain[4 - FIRST_SYMBOL] |= 1;
	t->chain[5 - FIRST_SYMBOL] |= 1;
	t->bucket[0] = 2;
	t->bucket[1] = 5;
}

/* Its value; 0: not found. */
static uint64_t value_of(const char *name)
{
	OWNED(elf_image) struct elf_image *image = made_open(&elf);
	struct elf_symbol symbol;
	int err = elf_image_symbol(image, name, &symbol);

	if (err) {
		assert_int_equal(err, -ENOENT);
		return 0;
	}
	assert_int_equal(symbol.size, 16);
	assert_int_equal(symbol.type, STT_FUNC);
	return symbol.value;
}

/* Or the error. */
static int64_t symbol_count(uint32_t type)
{
	OWNED(elf_image) struct elf_image *image = made_open(&elf);
	struct elf_symbol_table table;
	int err = elf_image_symbol_table(image, type, &table);

	return err ? err : (int64_t)table.count;
}

static void elf_image_symbol__finds_by_gnu_hash(void **state)
{
	(void)state;
	begin();
	assert_int_equal(value_of("printf"), 0x1000);
	assert_int_equal(value_of("flapenguin.me"), 0x2000);
	assert_int_equal(value_of("syscall"), 0x3000);
	assert_int_equal(value_of("exit"), 0x4000);
	assert_int_equal(value_of("puts"), 0);
	assert_int_equal(value_of("print"), 0);
	assert_int_equal(symbol_count(SHT_DYNSYM), SYMBOLS);
	assert_int_equal(symbol_count(SHT_SYMTAB), -ENOENT);
}

/* What the filter lacks is not searched: each of a name's two bits counts. */
static void elf_image_symbol__bloom_filter_decides(void **state)
{
	static const uint32_t bits[] = {PRINTF % 64, (PRINTF >> BLOOM_SHIFT) % 64};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++) {
		begin();
		memset(tables()->bloom, 0xff, sizeof(tables()->bloom));
		assert_int_equal(value_of("printf"), 0x1000);
		tables()->bloom[PRINTF / 64 % BLOOM_WORDS] &= ~(1ULL << bits[i]);
		assert_int_equal(value_of("printf"), 0);
		assert_int_equal(value_of("exit"), 0x4000);
	}
}

static void elf_image_symbol__chain_ends_at_its_last_entry(void **state)
{
	(void)state;
	begin();
	/* exit's name and hash, behind the end of the chain that is searched for it */
	tables()->bucket[EXIT % BUCKETS] = 2;
	assert_int_equal(value_of("exit"), 0);
	tables()->chain[4 - FIRST_SYMBOL] &= ~1U;
	assert_int_equal(value_of("exit"), 0x4000);
	/* another hash */
	tables()->chain[5 - FIRST_SYMBOL] ^= 0x10;
	assert_int_equal(value_of("exit"), 0);
}

static void elf_image_symbol__empty_bucket_has_no_symbol(void **state)
{
	(void)state;
	begin();
	tables()->bucket[0] = 0;
	assert_int_equal(value_of("printf"), 0);
	tables()->bucket[0] = 1; /* below the first that is hashed */
	assert_int_equal(value_of("printf"), 0);
	assert_int_equal(value_of("exit"), 0x4000);
}

/* DT_HASH says how many there are. */
static void elf_image_symbol__number_of_symbols_bounds_the_search(void **state)
{
	struct tables *t = tables();

	(void)state;
	begin();
	elf.program[1].p_filesz += sizeof(Elf64_Dyn);
	t->dynamic[4] = (Elf64_Dyn){.d_tag = DT_HASH, .d_un.d_ptr = VADDR(hash)};
	t->hash[1] = SYMBOLS;
	assert_int_equal(symbol_count(SHT_DYNSYM), SYMBOLS);
	assert_int_equal(value_of("exit"), 0x4000);
	t->hash[1] = 5;
	assert_int_equal(value_of("exit"), 0);
	assert_int_equal(value_of("syscall"), 0x3000);
	/* without the other hash: all are looked at, but the first */
	t->dynamic[3].d_tag = DT_DEBUG;
	assert_int_equal(value_of("syscall"), 0x3000);
	assert_int_equal(value_of("printf"), 0x1000);
	assert_int_equal(value_of("exit"), 0);
	assert_int_equal(value_of("puts"), 0);
	t->symbol[0] = t->symbol[5];
	assert_int_equal(value_of("exit"), 0);
}

static void elf_image_symbol_table__gnu_hash_s_last_chain_ends_the_table(void **state)
{
	struct tables *t = tables();

	(void)state;
	begin();
	t->bucket[1] = 0;
	assert_int_equal(symbol_count(SHT_DYNSYM), 5);
	t->bucket[0] = 0;
	assert_int_equal(symbol_count(SHT_DYNSYM), FIRST_SYMBOL);
	t->bucket[0] = FIRST_SYMBOL;
	t->chain[0] |= 1;
	assert_int_equal(symbol_count(SHT_DYNSYM), FIRST_SYMBOL + 1);
	t->bucket[0] = 5;
	t->bucket[1] = FIRST_SYMBOL;
	assert_int_equal(symbol_count(SHT_DYNSYM), SYMBOLS);
}

/* A large filter, one bucket and one symbol, and not a byte behind them. */
static void elf_image_symbol_table__hash_may_be_the_last_in_the_file(void **state)
{
	const uint32_t head[] = {1, FIRST_SYMBOL, 64, BLOOM_SHIFT}, chain[] = {FIRST_SYMBOL, 1};
	const size_t at = MADE_BYTES - sizeof(head) - 64 * sizeof(uint64_t) - sizeof(chain);

	(void)state;
	begin();
	memcpy(elf.data + at, head, sizeof(head));
	memcpy(elf.data + MADE_BYTES - sizeof(chain), chain, sizeof(chain));
	tables()->dynamic[3].d_un.d_ptr = MADE_BASE + at;
	assert_int_equal(symbol_count(SHT_DYNSYM), FIRST_SYMBOL + 1);
}

static void elf_image_symbol_table__hash_without_filter_or_buckets_is_ebadmsg(void **state)
{
	(void)state;
	begin();
	tables()->gnu[2] = 0;
	assert_int_equal(symbol_count(SHT_DYNSYM), -EBADMSG);
	assert_int_equal(value_of("printf"), 0);
	begin();
	tables()->gnu[0] = 0;
	assert_int_equal(symbol_count(SHT_DYNSYM), -EBADMSG);
	begin();
	tables()->gnu[0] = MADE_BYTES; /* they end outside of the file */
	assert_int_equal(symbol_count(SHT_DYNSYM), -EBADMSG);
	begin();
	tables()->gnu[2] = MADE_BYTES;
	assert_int_equal(symbol_count(SHT_DYNSYM), -EBADMSG);
	begin();
	tables()->dynamic[3].d_un.d_ptr = MADE_END - 8;
	assert_int_equal(symbol_count(SHT_DYNSYM), -EBADMSG);
}

static void elf_image_symbol_table__tables_outside_the_file_are_ebadmsg(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		begin();
		tables()->dynamic[i].d_un.d_ptr = MADE_END - 24;
		assert_int_equal(symbol_count(SHT_DYNSYM), -EBADMSG);
		begin();
		tables()->dynamic[i].d_tag = DT_DEBUG;
		assert_int_equal(symbol_count(SHT_DYNSYM), -ENOENT);
	}
	begin();
	tables()->dynamic[3].d_tag = DT_DEBUG;
	assert_int_equal(symbol_count(SHT_DYNSYM), -ENOENT);
}

/* DT_NULL ends the list, and so does the segment's size. */
static void elf_image_symbol_table__dynamic_entries_end(void **state)
{
	(void)state;
	begin();
	tables()->dynamic[4] = (Elf64_Dyn){.d_tag = DT_SYMTAB, .d_un.d_ptr = MADE_END - 24};
	assert_int_equal(symbol_count(SHT_DYNSYM), SYMBOLS);
	elf.program[1].p_filesz += sizeof(Elf64_Dyn) - 1;
	assert_int_equal(symbol_count(SHT_DYNSYM), SYMBOLS);
	elf.program[1].p_filesz++;
	assert_int_equal(symbol_count(SHT_DYNSYM), -EBADMSG);
	elf.program[1].p_filesz += sizeof(Elf64_Dyn);
	tables()->dynamic[5] = tables()->dynamic[4];
	tables()->dynamic[4].d_tag = DT_NULL;
	assert_int_equal(symbol_count(SHT_DYNSYM), SYMBOLS);
}

/* ---- by sections ---- */

static void elf_image_symbol__table_in_a_section_is_searched_to_its_end(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	struct elf_symbol symbol;

	(void)state;
	made_begin(&elf, EM_X86_64);
	made_symbol(&elf, "first", 0x10, 16, STT_FUNC);
	made_symbol(&elf, "last", 0x20, 16, STT_FUNC);
	made_symbol(&elf, "behind", 0x30, 16, STT_FUNC);
	elf.section[2].sh_size -= sizeof(Elf64_Sym);
	image = made_open(&elf);
	assert_int_equal(value_of("first"), 0x10);
	assert_int_equal(value_of("last"), 0x20);
	assert_int_equal(value_of("behind"), 0);
	assert_int_equal(elf_image_symbol(image, "ast", &symbol), -ENOENT);
	/* the names end before its NUL, and with it */
	elf.section[1].sh_size = 1 + 6 + 4;
	assert_int_equal(value_of("last"), 0);
	elf.section[1].sh_size++;
	assert_int_equal(value_of("last"), 0x20);
	/* strings that are not there */
	elf.section[2].sh_link = 3;
	assert_int_equal(symbol_count(SHT_SYMTAB), -EBADMSG);
	elf.section[2].sh_link = 1;
	elf.section[1].sh_type = SHT_NOBITS;
	assert_int_equal(symbol_count(SHT_SYMTAB), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elf_image_symbol__finds_by_gnu_hash),
		cmocka_unit_test(elf_image_symbol__bloom_filter_decides),
		cmocka_unit_test(elf_image_symbol__chain_ends_at_its_last_entry),
		cmocka_unit_test(elf_image_symbol__empty_bucket_has_no_symbol),
		cmocka_unit_test(elf_image_symbol__number_of_symbols_bounds_the_search),
		cmocka_unit_test(elf_image_symbol_table__gnu_hash_s_last_chain_ends_the_table),
		cmocka_unit_test(elf_image_symbol_table__hash_may_be_the_last_in_the_file),
		cmocka_unit_test(elf_image_symbol_table__hash_without_filter_or_buckets_is_ebadmsg),
		cmocka_unit_test(elf_image_symbol_table__tables_outside_the_file_are_ebadmsg),
		cmocka_unit_test(elf_image_symbol_table__dynamic_entries_end),
		cmocka_unit_test(elf_image_symbol__table_in_a_section_is_searched_to_its_end),
	};

	return cmocka_run_group_tests_name("elf/elf_symbol_table", tests, NULL, NULL);
}
