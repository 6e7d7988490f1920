/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: unwind/cfi.c unwind/cfi_program.c unwind/cfi_go.c unwind/cfi_rule.c unwind/row_store.c unwind/row_space.c base/user_quota.c elf/elf_image.c elf/go_table.c elf/elf_symbol_table.c elf/debug_file.c base/safe_file.c */
/* Input: one byte of choices, then 64 bytes of .eh_frame_hdr when chosen, then .eh_frame,
 * .debug_frame or .gopclntab; half of it may be a second section, of which one may be compressed.
 * Rows must be sorted and in range, and agree with the single rules. */
#include "unwind/cfi.h"

#include <assert.h>
#include <stdint.h>

#include "../unit/unwind/build_elf.h"
#include "unwind/row_store.h"

#define CHOICE_HDR 1
#define CHOICE_DEBUG_FRAME 2
#define CHOICE_AARCH64 4
#define CHOICE_NO_SECTIONS 8
#define CHOICE_GO 16
#define CHOICE_TWO 32	     /* the second half of the bytes is .debug_frame or .gopclntab */
#define CHOICE_COMPRESSED 64 /* that section is */
#define CHOICE_ROOTS 128
#define HDR_BYTES 64U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rows(struct cfi *cfi, uint64_t low, uint64_t high)
{
	struct cfi_rows rows = {0};
	struct pp_rule rule;

	assert(!cfi_compile(cfi, low, high, &rows, NULL));
	assert(rows.count && rows.row[0].vaddr == low);
	for (size_t i = 0; i < rows.count; i++) {
		const uint64_t end = i + 1 < rows.count ? rows.row[i + 1].vaddr : high;

		assert(rows.row[i].vaddr < end && end <= high);
		assert(rows.row[i].rule.kind <= PP_RULE_SIGNAL);
		if (i > 64)
			continue;
		assert(!cfi_rule_at(cfi, rows.row[i].vaddr, &rule));
		assert(!memcmp(&rule, &rows.row[i].rule, sizeof(rule)));
		assert(!cfi_rule_at(cfi, end - 1, &rule));
		assert(!memcmp(&rule, &rows.row[i].rule, sizeof(rule)));
	}
	free(rows.row);
}

static int compile(void *context, uint64_t low, uint64_t high, struct cfi_rows *rows)
{
	return cfi_compile(context, low, high, rows, NULL);
}

static void check_store(struct cfi *cfi)
{
	const struct row_source source = {.rows = compile, .context = cfi};
	static uint64_t pages[8];
	static uint32_t shard[PP_ROW_SHARD_ROWS];
	static struct pp_rule rules[16];
	uint32_t *shards[] = {shard};
	const struct row_store_memory memory = {
		.pages = pages,
		.page_count = 8,
		.shard = shards,
		.shard_count = 1,
		.rules = rules,
		.rule_count = 16,
	};
	OWNED(row_store) struct row_store *store = NULL;
	uint32_t page0;

	memset(pages, 0, sizeof(pages));
	assert(!row_store_new(&memory, &store));
	assert(!row_store_add_file(store, 0, 0, BUILT_SIZE, &page0));
	assert(!row_store_load(store, page0, &source, 0, BUILT_SIZE));
	for (uint64_t vaddr = 0; vaddr < BUILT_SIZE; vaddr += 0x10000) {
		uint64_t page = pages[page0 + (vaddr >> 16)];
		const uint32_t *row = shard + PP_PAGE_ROW_START(page);

		assert(PP_PAGE_ROW_COUNT(page) && PP_ROW_PC_LOW(row[0]) == 0);
		for (uint32_t i = 1; i < PP_PAGE_ROW_COUNT(page); i++)
			assert(PP_ROW_PC_LOW(row[i]) >= PP_ROW_PC_LOW(row[i - 1]) &&
			       PP_ROW_RULE(row[i]) < 16);
	}
}

static const char *section_of(uint8_t choices)
{
	if (choices & CHOICE_GO)
		return ".gopclntab";
	return choices & CHOICE_DEBUG_FRAME ? ".debug_frame" : ".eh_frame";
}

/* What a Go table needs to be looked at, so that chance goes on behind it. */
static void fix_go_table(struct built_elf *elf, size_t at, size_t size)
{
	static const uint8_t head[] = {0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8};
	const uint64_t text = BUILT_TEXT;
	uint64_t offset;

	if (size < 72)
		return;
	memcpy(elf->data + at, head, sizeof(head));
	memset(elf->data + at + 9, 0, 7);
	memcpy(elf->data + at + 24, &text, sizeof(text));
	for (size_t i = 32; i < 72; i += sizeof(offset)) {
		memcpy(&offset, elf->data + at + i, sizeof(offset));
		offset %= size;
		memcpy(elf->data + at + i, &offset, sizeof(offset));
	}
}

static void build(struct built_elf *elf, uint8_t choices, const uint8_t *data, size_t hdr_size,
		  size_t size)
{
	const size_t second = choices & CHOICE_TWO ? size / 2 : 0;
	const char *name = section_of(choices);

	build_elf(elf, choices & CHOICE_AARCH64 ? EM_AARCH64 : EM_X86_64, data, hdr_size,
		  second ? ".eh_frame" : name, data + hdr_size, size - second);
	if (second)
		build_section(elf, name, data + hdr_size + size - second, second,
			      choices & CHOICE_COMPRESSED ? SHF_COMPRESSED : 0);
	if (choices & CHOICE_GO)
		fix_go_table(elf, second ? BUILT_SECOND : BUILT_FRAME, second ? second : size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct built_elf elf;
	struct elf_image *image;
	struct cfi_range range;
	uint8_t choices;
	struct cfi *cfi;
	size_t hdr_size;

	if (size < 1 + HDR_BYTES || size > 8192)
		return 0;
	choices = *data++;
	size--;
	hdr_size = choices & CHOICE_HDR ? HDR_BYTES : 0;
	build(&elf, choices, data, hdr_size, size - hdr_size);
	if (choices & CHOICE_NO_SECTIONS)
		((Elf64_Ehdr *)elf.data)->e_shnum = 0;
	assert(!elf_image_from_memory(elf.data, sizeof(elf.data), &image));
	if (!cfi_open(image, &cfi)) {
		if (choices & CHOICE_ROOTS)
			for (size_t i = 0; i < 6; i++)
				cfi_add_root(cfi, BUILT_TEXT + data[i] - 8);
		check_rows(cfi, 0, BUILT_SIZE);
		check_rows(cfi, BUILT_TEXT + 3, BUILT_TEXT + 40);
		check_rows(cfi, UINT64_MAX - 100, UINT64_MAX);
		if (!cfi_fde_find(cfi, BUILT_TEXT + 5, &range))
			assert(range.low <= BUILT_TEXT + 5 && range.high > BUILT_TEXT + 5);
		check_store(cfi);
		cfi_free(cfi);
	}
	elf_image_free(image);
	return 0;
}
