/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that overlap, lack a size or share an address, in files written by hand. */
#include "elf/elf_symbols.h"

#include <cmocka.h>
#include <errno.h>
#include <lzma.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/debug_file.h"
#include "made_elf.h"

static struct made_elf elf;

/* From 0x1000 on; see made_elf.h. */
static void add(const char *name, uint64_t start, uint64_t size)
{
	made_symbol(&elf, name, MADE_BASE + start, size, STT_FUNC);
}

struct expected {
	uint64_t at;
	const char *name; /* NULL: none */
	uint64_t start, low, high;
};

static void check(void *context, size_t index, const struct elf_function *function)
{
	const struct expected *expected = (const struct expected *)context + index;

	if (expected->name) {
		assert_non_null(function->name);
		assert_int_equal(function->name_size, strlen(expected->name));
		assert_memory_equal(function->name, expected->name, function->name_size);
		assert_int_equal(function->start, MADE_BASE + expected->start);
	} else {
		assert_null(function->name);
	}
	assert_int_equal(function->low, expected->low ? MADE_BASE + expected->low : 0);
	assert_int_equal(function->high, expected->high ? MADE_BASE + expected->high : UINT64_MAX);
}

/* All at once, and each alone. */
static void check_all(struct expected *expected, size_t count)
{
	OWNED(elf_image) struct elf_image *image = made_open(&elf);
	uint64_t vaddr[32];

	for (size_t i = 0; i < count; i++) {
		vaddr[i] = MADE_BASE + expected[i].at;
		assert_int_equal(
			elf_symbols_find_many(image, NULL, &vaddr[i], 1, check, &expected[i]), 0);
	}
	assert_int_equal(elf_symbols_find_many(image, NULL, vaddr, count, check, expected), 0);
	assert_int_equal(elf_symbols_find_many(image, NULL, vaddr, 0, check, NULL), 0);
}

/* In no order, as linkers write them. */
static void add_functions(void)
{
	made_begin(&elf, EM_X86_64);
	add("open_end", 0x3400, 0);
	add("inner", 0x3140, 0x20);
	add("bare", 0x3300, 0);
	add("outer", 0x3100, 0x100);
	add("sized", 0x3340, 0x40);
	add("behind_the_table", 0x3210, 0x40);
	elf.section[2].sh_size -= sizeof(Elf64_Sym);
}

static void elf_symbols__answers_hold_from_low_to_high(void **state)
{
	struct expected expected[] = {
		{0x3000, NULL, 0, 0, 0x3100},
		{0x30ff, NULL, 0, 0, 0x3100},
		{0x3100, "outer", 0x3100, 0x3100, 0x3140},
		{0x313f, "outer", 0x3100, 0x3100, 0x3140},
		{0x3140, "inner", 0x3140, 0x3140, 0x3160},
		{0x315f, "inner", 0x3140, 0x3140, 0x3160},
		{0x3160, "outer", 0x3100, 0x3160, 0x3200},
		{0x31ff, "outer", 0x3100, 0x3160, 0x3200},
		{0x3200, NULL, 0, 0x3200, 0x3300},
		{0x3220, NULL, 0, 0x3200, 0x3300},
		{0x32ff, NULL, 0, 0x3200, 0x3300},
		{0x3300, "bare", 0x3300, 0x3300, 0x3340},
		{0x333f, "bare", 0x3300, 0x3300, 0x3340},
		{0x3340, "sized", 0x3340, 0x3340, 0x3380},
		{0x337f, "sized", 0x3340, 0x3340, 0x3380},
		{0x3380, NULL, 0, 0x3380, 0x3400},
		{0x33ff, NULL, 0, 0x3380, 0x3400},
		{0x3400, "open_end", 0x3400, 0x3400, MADE_BYTES},
		{0xffff, "open_end", 0x3400, 0x3400, MADE_BYTES},
		{0x10000, NULL, 0, MADE_BYTES, 0},
	};

	(void)state;
	add_functions();
	check_all(expected, ARRAY_SIZE(expected));
}

/* Far apart: what lies between two addresses of a batch counts for both. */
static void elf_symbols__sparse_batches_know_what_lies_between(void **state)
{
	struct expected expected[] = {
		{0x3000, NULL, 0, 0, 0x3100},
		{0x3250, NULL, 0, 0x3200, 0x3300},
		{0x3260, NULL, 0, 0x3200, 0x3300},
		{0x3270, NULL, 0, 0x3200, 0x3300},
		{0x5000, "open_end", 0x3400, 0x3400, MADE_BYTES},
		{0x6000, "open_end", 0x3400, 0x3400, MADE_BYTES},
	};

	(void)state;
	add_functions();
	check_all(expected, ARRAY_SIZE(expected));
}

/* In both orders of the table. */
static void assert_better(const char *better, uint64_t better_size, uint8_t better_bind,
			  const char *worse, uint64_t worse_size, uint8_t worse_bind)
{
	for (int is_first = 0; is_first < 2; is_first++) {
		struct expected expected = {0x3108, better, 0x3100, 0x3100, MADE_BYTES};
		Elf64_Sym *symbol;

		made_begin(&elf, EM_X86_64);
		add(is_first ? better : worse, 0x3100, is_first ? better_size : worse_size);
		add(is_first ? worse : better, 0x3100, is_first ? worse_size : better_size);
		symbol = (Elf64_Sym *)(elf.data + MADE_SYMBOLS) + 1;
		symbol[is_first ? 0 : 1].st_info = ELF64_ST_INFO(better_bind, STT_FUNC);
		symbol[is_first ? 1 : 0].st_info = ELF64_ST_INFO(worse_bind, STT_FUNC);
		if (better_size)
			expected.high = 0x3100 + better_size;
		check_all(&expected, 1);
	}
}

static void elf_symbols__better_name_of_an_address_is_chosen(void **state)
{
	(void)state;
	assert_better("__long_name", 16, STB_LOCAL, "a", 0, STB_GLOBAL);
	assert_better("__long_name", 16, STB_GLOBAL, "a", 16, STB_LOCAL);
	assert_better("long_name", 16, STB_GLOBAL, "_a", 16, STB_GLOBAL);
	assert_better("_long", 16, STB_GLOBAL, "__a", 16, STB_GLOBAL);
	assert_better("zz", 16, STB_GLOBAL, "aaa", 16, STB_GLOBAL);
	assert_better("ab", 16, STB_GLOBAL, "ac", 16, STB_GLOBAL);
	assert_better("_", 16, STB_GLOBAL, "__", 16, STB_GLOBAL);
	assert_better("ab", 0, STB_GLOBAL, "abc", 0, STB_GLOBAL); /* none has a size */
}

static void symbol_function_name_size__is_without_the_version(void **state)
{
	static const struct {
		const char *text;
		size_t size;
	} cases[] = {{"abc", 3}, {"abc@@V1", 3}, {"a@V", 1}, {"@x", 2}, {"", 0}, {"abc@", 3}};
	struct elf_work work = {.limit = 1000};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct symbol_function function = {
			.name = cases[i].text, .name_room = 100, .work = &work};

		assert_int_equal(symbol_function_name_size(&function), cases[i].size);
	}
	assert_int_equal(symbol_function_name_size(&(struct symbol_function){
				 .name = "abcdef", .name_room = 4, .work = &work}),
			 4);
}

/* ---- which symbols are functions ---- */

static bool is_function(Elf64_Sym symbol, struct symbol_function *ret_function)
{
	OWNED(symbol_sources) struct symbol_sources *sources = NULL;
	OWNED(elf_image) struct elf_image *image = NULL;

	made_begin(&elf, EM_X86_64);
	made_symbol(&elf, "name", 0, 0, STT_FUNC);
	made_string(&elf, "$x");
	elf.section[2].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	elf.section[2].sh_addr = MADE_BASE + 0x3000;
	elf.section[1].sh_flags = SHF_ALLOC;
	memcpy(elf.data + MADE_SYMBOLS + sizeof(symbol), &symbol, sizeof(symbol));
	image = made_open(&elf);
	assert_int_equal(symbol_sources_open(image, NULL, &sources), 0);
	return symbol_source_function(sources, 0, 1, ret_function);
}

static void symbol_source_function__takes_functions_and_code_without_a_type(void **state)
{
	static const struct {
		Elf64_Sym symbol;
		bool is_function;
	} cases[] = {
		{{.st_name = 1, .st_info = STT_FUNC, .st_shndx = 2}, true},
		{{.st_name = 1, .st_info = STT_GNU_IFUNC, .st_shndx = 2}, true},
		{{.st_name = 1, .st_info = STT_OBJECT, .st_shndx = 2}, false},
		{{.st_name = 1, .st_info = STT_NOTYPE, .st_shndx = 2}, true},
		{{.st_name = 1, .st_info = STT_NOTYPE, .st_shndx = 1}, false}, /* no code */
		{{.st_name = 1, .st_info = STT_NOTYPE, .st_shndx = 0}, false},
		{{.st_name = 1, .st_info = STT_NOTYPE, .st_shndx = 3}, true},  /* not known */
		{{.st_name = 6, .st_info = STT_NOTYPE, .st_shndx = 2}, false}, /* $x */
		{{.st_name = 6, .st_info = STT_FUNC, .st_shndx = 2}, true},
		{{.st_name = 1, .st_info = STT_FUNC, .st_shndx = SHN_UNDEF}, false},
		{{.st_name = 1, .st_info = STT_FUNC, .st_shndx = SHN_LORESERVE}, false},
		{{.st_name = 1, .st_info = STT_FUNC, .st_shndx = SHN_LORESERVE - 1}, true},
		{{.st_name = 0, .st_info = STT_FUNC, .st_shndx = 2}, false},
		{{.st_name = 0xfff, .st_info = STT_FUNC, .st_shndx = 2}, true},
		{{.st_name = 0x1000, .st_info = STT_FUNC, .st_shndx = 2}, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		Elf64_Sym symbol = cases[i].symbol;
		struct symbol_function function;

		symbol.st_value = MADE_BASE + 0x3000;
		assert_int_equal(is_function(symbol, &function), cases[i].is_function);
		symbol.st_value = MADE_BASE - 1;
		assert_false(is_function(symbol, &function));
		symbol.st_value = MADE_END;
		assert_false(is_function(symbol, &function));
	}
}

/* The section behind 0x3000 has a size of two symbols, 48 bytes. */
static void symbol_source_function__ends_with_its_size_section_or_segment(void **state)
{
	static const struct {
		uint64_t start, size;
		uint16_t section;
		uint64_t end;
	} cases[] = {
		{0x3000, 8, 2, 0x3008},		 {0x3000, 0, 2, 0x3030},
		{0x302f, 0, 2, 0x3030},		 {0x3030, 0, 2, MADE_BYTES},
		{0x3000, 0, 3, MADE_BYTES},	 {0x3000, 0xcfff, 2, MADE_BYTES - 1},
		{0x3000, 0xd000, 2, MADE_BYTES}, {0x3000, 0xd001, 2, MADE_BYTES},
		{0x3000, ~0ULL, 2, MADE_BYTES},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct symbol_function function;

		assert_true(is_function((Elf64_Sym){.st_name = 1,
						    .st_info = STT_FUNC,
						    .st_shndx = cases[i].section,
						    .st_value = MADE_BASE + cases[i].start,
						    .st_size = cases[i].size},
					&function));
		assert_int_equal(function.start, MADE_BASE + cases[i].start);
		assert_int_equal(function.end, MADE_BASE + cases[i].end);
		assert_int_equal(function.has_size, cases[i].size != 0);
		assert_int_equal(function.name_room, 0x1000 - 1);
		assert_true(function.is_local);
	}
}

/* ---- debug files by build-id ---- */

/* The note and an id of `size` bytes, all 0xab. */
static void put_build_id(size_t size)
{
	uint8_t *note = elf.data + MADE_FREE;
	const uint32_t head[3] = {4, (uint32_t)size, NT_GNU_BUILD_ID};

	memcpy(note, head, sizeof(head));
	memcpy(note + 12, "GNU", 4);
	memset(note + 16, 0xab, size);
	elf.program[2] = (Elf64_Phdr){
		.p_type = PT_NOTE, .p_offset = MADE_FREE, .p_filesz = 16 + ((size + 3) & ~3ULL)};
}

static int open_debug_file(const char *root, size_t id_bytes)
{
	CLEANUP(debug_files_release) struct debug_files files = DEBUG_FILES_NONE;
	OWNED(elf_image) struct elf_image *image = NULL, *debug = NULL;
	struct debug_names names;
	char command[256], path[512];
	OWNED_FILE FILE *file = NULL;
	size_t used;

	made_begin(&elf, EM_X86_64);
	put_build_id(id_bytes);
	snprintf(command, sizeof(command), "mkdir -p %s/usr/lib/debug/.build-id/ab", root);
	assert_int_equal(system(command), 0);
	used = (size_t)snprintf(path, sizeof(path), "%s/usr/lib/debug/.build-id/ab/", root);
	for (size_t i = 1; i < id_bytes; i++)
		used += (size_t)snprintf(path + used, sizeof(path) - used, "ab");
	snprintf(path + used, sizeof(path) - used, ".debug");
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(elf.data, MADE_BYTES, 1, file), 1);
	assert_int_equal(fflush(file), 0);
	assert_int_equal(chmod(path, 0644), 0);
	image = made_open(&elf);
	image->owner = getuid();
	debug_names_read(image, &names);
	debug_files_open(&names, root, "/x", image->owner, &files);
	return debug_file_open(image, &files, &debug);
}

static void debug_file_open__by_build_ids_of_2_to_64_bytes(void **state)
{
	static const size_t sizes[] = {2, 20, 64};
	char root[] = "/tmp/test_elf_symbols_made.XXXXXX", command[64];

	(void)state;
	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_int_equal(open_debug_file(root, sizes[i]), 0);
	assert_int_equal(open_debug_file(root, 1), -ENOENT);
	assert_int_equal(open_debug_file(root, 65), -ENOENT);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	assert_int_equal(system(command), 0);
}

/* ---- sources ---- */

static size_t source_count(void)
{
	OWNED(symbol_sources) struct symbol_sources *sources = NULL;
	OWNED(elf_image) struct elf_image *image = made_open(&elf);

	assert_int_equal(symbol_sources_open(image, NULL, &sources), 0);
	return sources->count;
}

/* .dynsym counts besides .symtab when it has more. */
static void symbol_sources_open__leaves_out_what_symtab_repeats(void **state)
{
	(void)state;
	made_begin(&elf, EM_X86_64);
	add("one", 0x3000, 8);
	assert_int_equal(source_count(), 1);
	elf.section[3] = elf.section[2];
	elf.section[3].sh_type = SHT_DYNSYM;
	elf.header.e_shnum = 4;
	assert_int_equal(source_count(), 1);
	elf.section[3].sh_size += sizeof(Elf64_Sym);
	assert_int_equal(source_count(), 2);
	elf.section[2].sh_type = SHT_NULL;
	assert_int_equal(source_count(), 1);
	elf.section[3].sh_type = SHT_NULL;
	assert_int_equal(source_count(), 0);
}

/* An xz stream of this many bytes, which begin with an ELF file. */
static int open_debugdata(size_t bytes, size_t max_bytes)
{
	OWNED(elf_image) struct elf_image *image = NULL, *debug = NULL;
	OWNED_MEM void *unpacked = NULL;
	OWNED_MEM uint8_t *plain = calloc(1, bytes);
	size_t used = 0;
	int err;

	assert_non_null(plain);
	made_begin(&elf, EM_X86_64);
	memcpy(plain, elf.data, MADE_FREE);
	elf.section[2].sh_name = made_string(&elf, ".gnu_debugdata");
	elf.section[2].sh_type = SHT_PROGBITS;
	elf.section[2].sh_offset = MADE_FREE;
	assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, plain, bytes,
						 elf.data + MADE_FREE, &used,
						 MADE_BYTES - MADE_FREE),
			 LZMA_OK);
	elf.section[2].sh_size = used;
	image = made_open(&elf);
	err = debugdata_open(image, max_bytes, &debug, &unpacked);
	if (!err) {
		assert_int_equal(debug->size, bytes);
		assert_memory_equal(debug->data, plain, bytes);
	}
	return err;
}

static void debugdata_open__unpacks_to_the_bound_and_no_more(void **state)
{
	const size_t mib = 1 << 20;

	(void)state;
	assert_int_equal(open_debugdata(3 * mib, 64 * mib), 0);
	assert_int_equal(open_debugdata(3 * mib, 3 * mib), 0);
	assert_int_equal(open_debugdata(3 * mib + 1, 3 * mib), -EFBIG);
	assert_int_equal(open_debugdata(mib, 64 * mib), 0);
}

/* Go's table names what no symbol with a size covers. */
static void elf_symbols__go_functions_are_named_by_its_table(void **state)
{
	static const uint8_t head[] = {0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8};
	const uint64_t words[] = {2, 0, MADE_BASE + 0x3000, 72, 0, 0, 200, 256};
	const uint32_t functions[] = {0, 64, 0x100, 128, 0x180};
	const uint32_t work = 0, rest = 10;
	struct expected expected[] = {
		{0x3000, "main.work", 0x3000, 0x3000, 0x3100},
		{0x30ff, "main.work", 0x3000, 0x3000, 0x3100},
		{0x3100, "main.rest", 0x3100, 0x3100, 0x3180},
		{0x3140, "c_function", 0x3140, 0x3140, 0x3150},
		{0x3150, "main.rest", 0x3100, 0x3100, 0x3180},
		{0x3180, NULL, 0, 0x3150, 0},
	};
	uint8_t *table = elf.data + 0x5000;

	(void)state;
	made_begin(&elf, EM_X86_64);
	made_symbol(&elf, "without_size", MADE_BASE + 0x3020, 0, STT_FUNC);
	made_symbol(&elf, "c_function", MADE_BASE + 0x3140, 0x10, STT_FUNC);
	elf.section[3] = (Elf64_Shdr){.sh_name = made_string(&elf, ".gopclntab"),
				      .sh_type = SHT_PROGBITS,
				      .sh_addr = MADE_BASE + 0x5000,
				      .sh_offset = 0x5000,
				      .sh_size = 512};
	elf.header.e_shnum = 4;
	memcpy(table, head, sizeof(head));
	memcpy(table + 8, words, sizeof(words));
	strcpy((char *)table + 72, "main.work");
	strcpy((char *)table + 82, "main.rest");
	memcpy(table + 256, functions, sizeof(functions));
	memcpy(table + 256 + 64 + 4, &work, sizeof(work));
	memcpy(table + 256 + 128 + 4, &rest, sizeof(rest));
	check_all(expected, ARRAY_SIZE(expected));
	memset(table + 8, 0, 1); /* no functions */
	expected[0] = (struct expected){0x3000, NULL, 0, 0, 0x3020};
	check_all(expected, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elf_symbols__go_functions_are_named_by_its_table),
		cmocka_unit_test(elf_symbols__answers_hold_from_low_to_high),
		cmocka_unit_test(elf_symbols__sparse_batches_know_what_lies_between),
		cmocka_unit_test(elf_symbols__better_name_of_an_address_is_chosen),
		cmocka_unit_test(symbol_function_name_size__is_without_the_version),
		cmocka_unit_test(symbol_source_function__takes_functions_and_code_without_a_type),
		cmocka_unit_test(symbol_source_function__ends_with_its_size_section_or_segment),
		cmocka_unit_test(debug_file_open__by_build_ids_of_2_to_64_bytes),
		cmocka_unit_test(symbol_sources_open__leaves_out_what_symtab_repeats),
		cmocka_unit_test(debugdata_open__unpacks_to_the_bound_and_no_more),
	};

	return cmocka_run_group_tests_name("elf/elf_symbols_made", tests, NULL, NULL);
}
