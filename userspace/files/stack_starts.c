/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/stack_starts.h"

#include <string.h>

#include "base/cleanup.h"
#include "elf/elf_symbol_table.h"

#define OCCURRENCES_MAX 8U /* of a name in a string table; the work is linear in the file */
#define COLD_BYTES 512U	   /* how much of a name is searched for its end */

/* In greenlet 2 and later UserGreenlet::inner_bootstrap() calls what the greenlet runs, and does
 * not return.  Before, g_initialstub() does that itself. */
static const char *const first_functions[] = {"_ZN8greenlet12UserGreenlet15inner_bootstrap",
					      "g_initialstub"};
static const char *const modules[] = {"PyInit__greenlet", "PyInit_greenlet"};

/* Returns whether this is gcc's part of a function that seldom runs: "name.cold". */
static bool is_cold(const char *name, size_t size)
{
	size_t looked_at = strnlen(name, size < COLD_BYTES ? size : COLD_BYTES);

	return memmem(name, looked_at, ".cold", strlen(".cold"));
}

/* Returns the function whose name is at that offset; 0: none. */
static uint64_t function_named(const struct elf_symbol_table *table, size_t name)
{
	for (size_t i = 0; i < table->count && elf_work_pay(table->work, 1, 2); i++) {
		const Elf64_Sym symbol = elf_symbol_table_entry(table, i);

		if (symbol.st_name == name && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
		    symbol.st_value)
			return symbol.st_value;
	}
	return 0;
}

/* Returns the address of a function whose name begins with `start`. */
static uint64_t find_by_start(const struct elf_symbol_table *table, const char *start)
{
	const char *end = table->names + table->names_size, *at = table->names;
	uint64_t address = 0;

	for (unsigned int i = 0; i < OCCURRENCES_MAX && !address; i++) {
		at = elf_symbol_table_search(table, at, start, strlen(start));
		if (!at)
			break;
		if (!is_cold(at, (size_t)(end - at)))
			address = function_named(table, (size_t)(at - table->names));
		at++;
	}
	return address;
}

static uint64_t find_first_function(const struct elf_symbol_table *table)
{
	uint64_t address = 0;

	for (size_t i = 0; i < ARRAY_SIZE(first_functions) && !address; i++)
		address = find_by_start(table, first_functions[i]);
	return address;
}

uint64_t greenlet_first_function(const struct elf_image *image)
{
	struct elf_symbol_table table;
	uint64_t address;

	if (elf_image_symbol_table(image, SHT_DYNSYM, &table))
		return 0;
	address = find_first_function(&table);
	for (size_t i = 0; i < ARRAY_SIZE(modules) && !address; i++)
		if (find_by_start(&table, modules[i]) &&
		    !elf_image_symbol_table(image, SHT_SYMTAB, &table))
			return find_first_function(&table);
	return address;
}

/* ---- threads ---- */

#define CLONE_CODE_BYTES 64U
#define START_CODE_BYTES 64U

/* A function whose unwind rule says that it has no caller is _start when it lies at the file's
 * entry point, and clone when it follows that system call.  Source: the psABI's system call
 * convention; arch/x86/entry/syscalls/syscall_64.tbl. */
const char *thread_start_name(const struct elf_image *image, struct cfi *cfi, uint64_t vaddr)
{
	static const uint8_t load_clone3[] = {0xb8, 0xb3, 0x01, 0x00, 0x00}; /* mov $435,%eax */
	static const uint8_t load_clone[] = {0xb8, 0x38, 0x00, 0x00, 0x00};  /* mov $56,%eax */
	struct pp_rule rule;
	const uint8_t *code;

	if (image->machine != EM_X86_64 || cfi_rule_at(cfi, vaddr, &rule) ||
	    rule.kind != PP_RULE_STOP)
		return NULL;
	if (vaddr - image->entry < START_CODE_BYTES)
		return "_start";
	code = elf_image_at(image, vaddr - CLONE_CODE_BYTES, CLONE_CODE_BYTES);
	if (!code)
		return NULL;
	if (memmem(code, CLONE_CODE_BYTES, load_clone3, sizeof(load_clone3)))
		return "clone3";
	return memmem(code, CLONE_CODE_BYTES, load_clone, sizeof(load_clone)) ? "clone" : NULL;
}
