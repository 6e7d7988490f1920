/* SPDX-License-Identifier: BSD-2-Clause */
/* A small ELF file in memory, written by hand: one segment that may do everything, a .symtab,
 * relocations.  Address = file offset + MADE_BASE. */
#ifndef TESTS_UNIT_ELF_MADE_ELF_H
#define TESTS_UNIT_ELF_MADE_ELF_H

#include <cmocka.h>
#include <elf.h>
#include <string.h>

#include "elf/elf_image.h"

#define MADE_BASE 0x400000ULL
#define MADE_DYNAMIC 0x1000U
#define MADE_RELOCATIONS 0x1200U
#define MADE_SYMBOLS 0x1400U
#define MADE_STRINGS 0x2000U
#define MADE_FREE 0x3000U
#define MADE_BYTES 0x10000U
#define MADE_END (MADE_BASE + MADE_BYTES)

struct made_elf {
	_Alignas(16) union {
		Elf64_Ehdr header;
		uint8_t data[MADE_BYTES];
	};
	Elf64_Phdr *program; /* [0] PT_LOAD, [1] PT_DYNAMIC, [2] PT_TLS */
	Elf64_Shdr *section; /* [1] strings, [2] .symtab */
	Elf64_Dyn *dynamic;  /* DT_RELA, DT_RELASZ, one to be set */
	size_t string_size;
};

static inline void made_begin(struct made_elf *elf, uint16_t machine)
{
	memset(elf, 0, sizeof(*elf));
	elf->program = (Elf64_Phdr *)(elf->data + sizeof(Elf64_Ehdr));
	elf->section = (Elf64_Shdr *)(elf->data + 0x200);
	elf->dynamic = (Elf64_Dyn *)(elf->data + MADE_DYNAMIC);
	elf->header = (Elf64_Ehdr){.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
				   .e_type = ET_DYN,
				   .e_machine = machine,
				   .e_phoff = sizeof(Elf64_Ehdr),
				   .e_phentsize = sizeof(Elf64_Phdr),
				   .e_phnum = 3,
				   .e_shoff = 0x200,
				   .e_shentsize = sizeof(Elf64_Shdr),
				   .e_shnum = 3,
				   .e_shstrndx = 1};
	elf->program[0] = (Elf64_Phdr){.p_type = PT_LOAD,
				       .p_flags = PF_R | PF_W | PF_X,
				       .p_vaddr = MADE_BASE,
				       .p_filesz = MADE_BYTES,
				       .p_memsz = MADE_BYTES};
	elf->program[1] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
				       .p_vaddr = MADE_BASE + MADE_DYNAMIC,
				       .p_filesz = 4 * sizeof(Elf64_Dyn)};
	elf->dynamic[0] = (Elf64_Dyn){.d_tag = DT_RELA, .d_un.d_ptr = MADE_BASE + MADE_RELOCATIONS};
	elf->dynamic[1] = (Elf64_Dyn){.d_tag = DT_RELASZ};
	elf->section[1] =
		(Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = MADE_STRINGS, .sh_size = 0x1000};
	elf->section[2] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				       .sh_offset = MADE_SYMBOLS,
				       .sh_size = sizeof(Elf64_Sym),
				       .sh_link = 1};
	elf->string_size = 1;
}

static inline uint32_t made_string(struct made_elf *elf, const char *text)
{
	const size_t at = elf->string_size;

	strcpy((char *)elf->data + MADE_STRINGS + at, text);
	elf->string_size += strlen(text) + 1;
	return (uint32_t)at;
}

static inline void made_symbol(struct made_elf *elf, const char *name, uint64_t value,
			       uint64_t size, uint8_t type)
{
	Elf64_Sym *symbol = (Elf64_Sym *)(elf->data + MADE_SYMBOLS + elf->section[2].sh_size);

	*symbol = (Elf64_Sym){.st_name = made_string(elf, name),
			      .st_info = ELF64_ST_INFO(STB_GLOBAL, type),
			      .st_shndx = 1,
			      .st_value = value,
			      .st_size = size};
	elf->section[2].sh_size += sizeof(*symbol);
}

static inline void made_relocation(struct made_elf *elf, uint64_t slot, uint32_t type,
				   int64_t addend)
{
	uint8_t *at = elf->data + MADE_RELOCATIONS + elf->dynamic[1].d_un.d_val;

	*(Elf64_Rela *)at =
		(Elf64_Rela){.r_offset = slot, .r_info = ELF64_R_INFO(0, type), .r_addend = addend};
	elf->dynamic[1].d_un.d_val += sizeof(Elf64_Rela);
}

static inline uint64_t made_put(struct made_elf *elf, uint64_t vaddr, const void *bytes,
				size_t size)
{
	memcpy(elf->data + (vaddr - MADE_BASE), bytes, size);
	return vaddr + size;
}

/* An instruction whose last four bytes are the distance to `target`.  Returns the next one's
 * address. */
static inline uint64_t made_relative(struct made_elf *elf, uint64_t vaddr, const char *opcode,
				     size_t size, uint64_t target)
{
	const uint64_t next = vaddr + size + 4;
	const int32_t distance = (int32_t)(target - next);

	made_put(elf, vaddr, opcode, size);
	return made_put(elf, vaddr + size, &distance, 4);
}

#define MADE_PUT(elf, vaddr, literal) made_put(elf, vaddr, literal, sizeof(literal) - 1)
#define MADE_RELATIVE(elf, vaddr, literal, target)                                                 \
	made_relative(elf, vaddr, literal, sizeof(literal) - 1, target)

static inline struct elf_image *made_open(const struct made_elf *elf)
{
	struct elf_image *image = NULL;

	assert_int_equal(elf_image_from_memory(elf->data, MADE_BYTES, &image), 0);
	return image;
}

#endif
