/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_slots.h"

#include <string.h>

#include "elf/elf_symbol_table.h"

/* What slots are resolved with. */
struct resolving {
	const struct elf_image *image;
	struct elf_work *work;
	struct elf_symbol_table symbols; /* .dynsym; count 0: there is none */
	struct elf_slot *slot;
	size_t count;
};

static void read_contents(const struct resolving *resolving)
{
	for (size_t i = 0; i < resolving->count; i++) {
		struct elf_slot *slot = &resolving->slot[i];
		const uint8_t *at = elf_image_at(resolving->image, slot->vaddr, 8);

		slot->value = 0;
		if (at && elf_work_pay(resolving->work, 1, ELF_WORK_PER_HEADER))
			memcpy(&slot->value, at, sizeof(slot->value));
	}
}

/* Returns the first slot at or behind an address. */
static struct elf_slot *slot_at(const struct resolving *resolving, uint64_t vaddr)
{
	size_t low = 0, high = resolving->count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (resolving->slot[middle].vaddr < vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return resolving->slot + low;
}

/* Returns the address that a relocation stores; 0: none of this file. */
static uint64_t value_of(const struct resolving *resolving, const Elf64_Rela *rela)
{
	const uint32_t type = ELF64_R_TYPE(rela->r_info), index = ELF64_R_SYM(rela->r_info);
	const bool is_arm = resolving->image->machine == EM_AARCH64;
	Elf64_Sym symbol;

	if (type == (is_arm ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE))
		return (uint64_t)rela->r_addend;
	if (type != (is_arm ? R_AARCH64_GLOB_DAT : R_X86_64_GLOB_DAT) &&
	    type != (is_arm ? R_AARCH64_ABS64 : R_X86_64_64))
		return 0;
	if (index >= resolving->symbols.count)
		return 0;
	symbol = elf_symbol_table_entry(&resolving->symbols, index);
	if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC)
		return 0;
	return symbol.st_value + (uint64_t)rela->r_addend;
}

static void apply(const struct resolving *resolving, const uint8_t *data, size_t count)
{
	const uint64_t first = resolving->slot[0].vaddr;
	const uint64_t last = resolving->slot[resolving->count - 1].vaddr;

	for (size_t i = 0; i < count; i++) {
		Elf64_Rela rela;
		struct elf_slot *slot;

		memcpy(&rela, data + i * sizeof(rela), sizeof(rela));
		if (rela.r_offset < first || rela.r_offset > last)
			continue;
		/* Several slots may be one. */
		for (slot = slot_at(resolving, rela.r_offset);
		     slot < resolving->slot + resolving->count && slot->vaddr == rela.r_offset;
		     slot++)
			slot->value = value_of(resolving, &rela);
	}
}

static void forget_all(const struct resolving *resolving)
{
	for (size_t i = 0; i < resolving->count; i++)
		resolving->slot[i].value = 0;
}

void elf_slots_resolve(const struct elf_image *image, struct elf_work *work, struct elf_slot *slot,
		       size_t count)
{
	struct resolving resolving = {.image = image, .work = work, .slot = slot, .count = count};
	struct elf_section section;

	if (!count)
		return;
	read_contents(&resolving);
	if (elf_image_symbol_table(image, SHT_DYNSYM, &resolving.symbols))
		resolving.symbols.count = 0;
	if (!elf_image_section(image, ".rela.dyn", &section) && section.data &&
	    elf_work_pay(work, section.size / sizeof(Elf64_Rela), ELF_WORK_PER_HEADER))
		apply(&resolving, section.data, section.size / sizeof(Elf64_Rela));
	/* A slot without its relocation would be taken for another one. */
	if (elf_work_is_over(work))
		forget_all(&resolving);
}
