/* SPDX-License-Identifier: BSD-2-Clause */
#include "python/python_eval.h"

#include <errno.h>
#include <string.h>

#define MAX_CANDIDATES 64U
#define MAX_FUNCTION_BYTES (1U << 20) /* the eval loop has 20-90 KiB */
#define MIN_JUMPS 2U
#define MAX_PADDING_BYTES 64U /* DW_CFA_nop before the first instruction; compilers write none */
#define MAX_SCANNED_BYTES (64U << 20) /* FDEs of a hostile file may overlap */

/* .eh_frame_hdr, LSB Core 5.0, section 10.6.2: version 1, encodings pcrel|sdata4, udata4,
 * datarel|sdata4 (what every linker writes), .eh_frame's address, the count, then the table. */
#define HEADER_BYTES 12U
static const uint8_t header_start[4] = {1, 0x1b, 0x03, 0x3b};

struct fde {
	struct pp_eval_range range;
	const uint8_t *program; /* call frame instructions */
	size_t program_bytes;
};

struct candidate {
	struct fde fde;
	unsigned int jumps;
};

struct search {
	const struct elf_image *image;
	const uint8_t *table;
	uint64_t table_vaddr; /* of the header; the entries are relative to it */
	size_t count;
	struct candidate candidate[MAX_CANDIDATES];
	size_t candidate_count;
	uint64_t scanned_bytes;
};

static int32_t read_s32(const uint8_t *at)
{
	int32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static int search_begin(const struct elf_image *image, struct search *ret_search)
{
	struct elf_section header;
	uint64_t count;
	int err;

	err = elf_image_eh_frame_hdr(image, &header);
	if (err)
		return err;
	if (!header.data || header.size < HEADER_BYTES ||
	    memcmp(header.data, header_start, sizeof(header_start)))
		return -EBADMSG;
	count = (uint32_t)read_s32(header.data + 8);
	if (count > (header.size - HEADER_BYTES) / 8)
		return -EBADMSG;
	*ret_search = (struct search){
		.image = image,
		.table = header.data + HEADER_BYTES,
		.table_vaddr = header.vaddr,
		.count = count,
	};
	return 0;
}

/* Reads an FDE whose pc_begin and pc_range are pcrel|sdata4, which is certain when pc_begin equals
 * the table's.  The augmentation starts with its own length ('z', which any encoding but absptr
 * needs). */
static int fde_read(const struct search *search, uint64_t vaddr, uint64_t pc, struct fde *ret_fde)
{
	const uint8_t *at = elf_image_at(search->image, vaddr, 17);
	uint64_t length, skipped;
	struct fde fde;

	if (!at)
		return -EBADMSG;
	length = (uint32_t)read_s32(at);
	if (length < 13 || length > 65536 || !elf_image_at(search->image, vaddr, length + 4) ||
	    vaddr + 8 + (uint64_t)(int64_t)read_s32(at + 8) != pc)
		return -EBADMSG;
	fde.range.low = pc;
	fde.range.high = pc + (uint32_t)read_s32(at + 12);
	skipped = 17 + at[16];
	if (at[16] > 127 || skipped > length + 4 || fde.range.high < pc)
		return -EBADMSG;
	fde.program = at + skipped;
	fde.program_bytes = length + 4 - skipped;
	*ret_fde = fde;
	return 0;
}

static int fde_by_index(const struct search *search, size_t index, struct fde *ret_fde)
{
	const uint8_t *entry = search->table + 8 * index;

	return fde_read(search, search->table_vaddr + (uint64_t)(int64_t)read_s32(entry + 4),
			search->table_vaddr + (uint64_t)(int64_t)read_s32(entry), ret_fde);
}

static int fde_find(const struct search *search, uint64_t pc, struct fde *ret_fde)
{
	size_t low = 0, high = search->count;
	struct fde fde;
	int err;

	if (!elf_work_pay(search->image->work, 1, ELF_WORK_PER_FDE))
		return -ENOENT;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const int64_t entry = read_s32(search->table + 8 * middle);

		if (search->table_vaddr + (uint64_t)entry <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return -ENOENT;
	err = fde_by_index(search, low - 1, &fde);
	if (err)
		return err;
	if (pc >= fde.range.high)
		return -ENOENT;
	*ret_fde = fde;
	return 0;
}

/* Returns whether the first row is already that of a function with a frame: DW_CFA_advance_loc and
 * its longer forms, or DW_CFA_set_loc, end a row; what comes before them changes the first row. */
static bool starts_inside(const struct fde *fde)
{
	for (size_t i = 0; i < fde->program_bytes && i < MAX_PADDING_BYTES; i++) {
		const uint8_t operation = fde->program[i];

		if (operation)
			return (operation & 0xc0) != 0x40 && operation > 0x04;
	}
	return false;
}

static bool is_inside(const struct pp_eval_range *range, size_t count, uint64_t pc)
{
	for (size_t i = 0; i < count; i++)
		if (pc >= range[i].low && pc < range[i].high)
			return true;
	return false;
}

static void add_candidate(struct search *search, const struct fde *fde, unsigned int jumps)
{
	for (size_t i = 0; i < search->candidate_count; i++) {
		if (search->candidate[i].fde.range.low == fde->range.low) {
			search->candidate[i].jumps += jumps;
			return;
		}
	}
	if (search->candidate_count < MAX_CANDIDATES)
		search->candidate[search->candidate_count++] =
			(struct candidate){.fde = *fde, .jumps = jumps};
}

/* Finds the next `jmp rel32` (E9) or `jcc rel32` (0F 80-8F) at or after offset *at; moves *at past
 * its first byte.  Every byte is tried as the start of an instruction: a wrong one hardly ever
 * points into a part of the function, let alone twice. */
static bool next_jump(const uint8_t *code, const struct pp_eval_range *range, uint64_t *at,
		      uint64_t *ret_target)
{
	const uint64_t size = range->high - range->low;

	for (uint64_t i = *at; i + 6 <= size; i++) {
		uint64_t length = 6;

		if (code[i] == 0xe9)
			length = 5;
		else if (code[i] != 0x0f || (code[i + 1] & 0xf0) != 0x80)
			continue;
		*ret_target = range->low + i + length +
			      (uint64_t)(int64_t)read_s32(code + i + length - 4);
		*at = i + 1;
		return true;
	}
	return false;
}

static const uint8_t *code_of(struct search *search, const struct pp_eval_range *range)
{
	const uint64_t size = range->high - range->low;

	if (size > MAX_FUNCTION_BYTES || search->scanned_bytes + size > MAX_SCANNED_BYTES ||
	    !elf_work_pay(search->image->work, size, 1))
		return NULL;
	search->scanned_bytes += size;
	return elf_image_at(search->image, range->low, size);
}

/* Counts jumps out of a known part. */
static void count_jumps_out(struct search *search, const struct pp_eval_range *known, size_t count,
			    size_t from)
{
	const uint8_t *code = code_of(search, &known[from]);
	uint64_t at = 0, target;
	struct fde fde;

	while (code && next_jump(code, &known[from], &at, &target))
		if (!is_inside(known, count, target) && !fde_find(search, target, &fde) &&
		    starts_inside(&fde))
			add_candidate(search, &fde, 1);
}

/* Counts jumps back into a known part, after its start.  Unlikely code may be reached by jump
 * tables only, so that just its way back is a jump. */
static void count_jumps_back(struct search *search, const struct pp_eval_range *known, size_t count,
			     size_t to)
{
	for (size_t i = 0;
	     i < search->count && elf_work_pay(search->image->work, 1, ELF_WORK_PER_HEADER); i++) {
		uint64_t at = 0, target;
		unsigned int jumps = 0;
		const uint8_t *code;
		struct fde fde;

		if (fde_by_index(search, i, &fde) || !starts_inside(&fde) ||
		    is_inside(known, count, fde.range.low))
			continue;
		code = code_of(search, &fde.range);
		while (code && next_jump(code, &fde.range, &at, &target))
			jumps += target > known[to].low && target < known[to].high;
		if (jumps)
			add_candidate(search, &fde, jumps);
	}
}

size_t python_eval_ranges(const struct elf_image *image, const char *name,
			  struct pp_eval_range ret_range[PP_MAX_EVAL_RANGES])
{
	struct elf_symbol symbol;
	struct search search;
	size_t count = 0;
	struct fde fde;

	if (elf_image_symbol(image, name, &symbol))
		return 0;
	ret_range[count++] = (struct pp_eval_range){symbol.value, symbol.value + symbol.size};
	if (search_begin(image, &search))
		return ret_range[0].low < ret_range[0].high ? count : 0;
	if (!fde_find(&search, symbol.value, &fde))
		ret_range[0] = fde.range;
	if (ret_range[0].low >= ret_range[0].high)
		return 0;
	if (image->machine != EM_X86_64)
		return count;
	for (size_t i = 0; i < count; i++) {
		search.candidate_count = 0;
		count_jumps_out(&search, ret_range, count, i);
		count_jumps_back(&search, ret_range, count, i);
		for (size_t c = 0; c < search.candidate_count && count < PP_MAX_EVAL_RANGES; c++)
			if (search.candidate[c].jumps >= MIN_JUMPS)
				ret_range[count++] = search.candidate[c].fde.range;
	}
	return count;
}
