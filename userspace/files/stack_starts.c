/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/stack_starts.h"

#include <string.h>

#include "base/bytes.h"
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

/* ---- coroutines ---- */

#define MAKER_CODE_BYTES 512U
#define SYMTAB_MAX_NAME_BYTES (4U << 20) /* larger ones are not searched for makers */

/* mov %rbx,%rsp; mov (%rsp),%rdi (sysdeps/unix/sysv/linux/x86_64/__start_context.S). */
static const uint8_t start_context[] = {0x48, 0x89, 0xdc};
/* xor %rdi,%rdi; call _exit (libs/context/src/asm/make_x86_64_sysv_elf_gas.S). */
static const uint8_t fcontext_end[] = {0x48, 0x31, 0xff, 0xe8};
static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

static bool begins_with(const struct elf_image *image, uint64_t vaddr, const uint8_t *bytes,
			size_t size)
{
	const uint8_t *code = elf_image_at(image, vaddr, size);

	return code && !memcmp(code, bytes, size);
}

/* Returns the name of the code to which the functions of coroutines return; NULL: it is other
 * code. */
static const char *coroutine_end_name(const struct elf_image *image, uint64_t vaddr)
{
	if (begins_with(image, vaddr, endbr64, sizeof(endbr64)))
		vaddr += sizeof(endbr64);
	if (begins_with(image, vaddr, start_context, sizeof(start_context)))
		return "__start_context";
	return begins_with(image, vaddr, fcontext_end, sizeof(fcontext_end)) ? "make_fcontext"
									     : NULL;
}

/* The function that makes a coroutine writes the address onto its stack, which it computes by
 * `lea distance(%rip), reg`. */
static void add_roots_of(const struct elf_image *image, uint64_t maker, struct cfi *cfi)
{
	const uint64_t readable = elf_image_readable_bytes(image, maker);
	const size_t size = readable < MAKER_CODE_BYTES ? readable : MAKER_CODE_BYTES;
	const uint8_t *code = elf_image_at(image, maker, size);

	for (size_t i = 0; code && i + 7 <= size; i++) {
		const uint64_t target = maker + i + 7 + (uint64_t)(int32_t)load_u32(code + i + 3);

		if ((code[i] & 0xfb) == 0x48 && code[i + 1] == 0x8d && (code[i + 2] & 0xc7) == 5 &&
		    coroutine_end_name(image, target))
			cfi_add_root(cfi, target);
	}
}

void coroutine_roots_add(const struct elf_image *image, struct cfi *cfi)
{
	static const char *const makers[] = {"makecontext", "make_fcontext"};
	struct elf_symbol_table table;
	struct elf_symbol symbol;

	if (image->machine != EM_X86_64 || (!elf_image_symbol_table(image, SHT_SYMTAB, &table) &&
					    table.names_size > SYMTAB_MAX_NAME_BYTES))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(makers); i++)
		if (!elf_image_symbol(image, makers[i], &symbol))
			add_roots_of(image, symbol.value, cfi);
}

/* ---- threads ---- */

#define CLONE_CODE_BYTES 64U
#define START_CODE_BYTES 64U

/* A function whose unwind rule says that it has no caller is _start when it lies at the file's
 * entry point, the end of a coroutine by its code, and clone when it follows that system call.
 * Source: the psABI's system call convention; arch/x86/entry/syscalls/syscall_64.tbl. */
const char *thread_start_name(const struct elf_image *image, struct cfi *cfi, uint64_t vaddr)
{
	static const uint8_t load_clone3[] = {0xb8, 0xb3, 0x01, 0x00, 0x00}; /* mov $435,%eax */
	static const uint8_t load_clone[] = {0xb8, 0x38, 0x00, 0x00, 0x00};  /* mov $56,%eax */
	const char *name;
	struct pp_rule rule;
	const uint8_t *code;

	if (image->machine != EM_X86_64 || cfi_rule_at(cfi, vaddr, &rule) ||
	    rule.kind != PP_RULE_STOP)
		return NULL;
	if (vaddr - image->entry < START_CODE_BYTES)
		return "_start";
	name = coroutine_end_name(image, vaddr + 1);
	if (name)
		return name;
	code = elf_image_at(image, vaddr - CLONE_CODE_BYTES, CLONE_CODE_BYTES);
	if (!code)
		return NULL;
	if (memmem(code, CLONE_CODE_BYTES, load_clone3, sizeof(load_clone3)))
		return "clone3";
	return memmem(code, CLONE_CODE_BYTES, load_clone, sizeof(load_clone)) ? "clone" : NULL;
}
