/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes of static probes in a file written by hand: see made_elf.h.  They are section [3];
 * code lies from MADE_CODE on and nobody writes to it, MADE_DATA is writable. */
#ifndef TESTS_UNIT_ELF_MADE_NOTES_H
#define TESTS_UNIT_ELF_MADE_NOTES_H

#include "made_elf.h"

#define MADE_NOTES 0x4000U
#define MADE_CODE 0x8000U
#define MADE_DATA 0xc000U
#define MADE_BASE_SECTION 0xb000U /* .stapsdt.base */

static inline void made_notes_begin(struct made_elf *elf, uint16_t machine)
{
	made_begin(elf, machine);
	elf->header.e_shnum = 5;
	elf->program[0].p_flags = PF_R | PF_X;
	elf->program[0].p_filesz = elf->program[0].p_memsz = MADE_DATA;
	elf->program[2] = (Elf64_Phdr){.p_type = PT_LOAD,
				       .p_flags = PF_R | PF_W,
				       .p_offset = MADE_DATA,
				       .p_vaddr = MADE_BASE + MADE_DATA,
				       .p_filesz = MADE_BYTES - MADE_DATA,
				       .p_memsz = MADE_BYTES - MADE_DATA + 0x1000};
	elf->section[3] = (Elf64_Shdr){.sh_type = SHT_NOTE, .sh_offset = MADE_NOTES};
	elf->section[4] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
				       .sh_name = made_string(elf, ".stapsdt.base"),
				       .sh_addr = MADE_BASE + MADE_BASE_SECTION,
				       .sh_offset = MADE_BASE_SECTION,
				       .sh_size = 1};
}

/* Appends a note of `size` bytes behind its three words.  Returns where it begins. */
static inline uint8_t *made_note_raw(struct made_elf *elf, const uint64_t word[3],
				     const char *texts, size_t size)
{
	uint8_t *at = elf->data + MADE_NOTES + elf->section[3].sh_size;
	const uint32_t head[3] = {8, (uint32_t)(24 + size), 3};

	memcpy(at, head, sizeof(head));
	memcpy(at + 12, "stapsdt", 8);
	memcpy(at + 20, word, 24);
	memcpy(at + 44, texts, size);
	elf->section[3].sh_size += (44 + size + 3) & ~3ULL;
	return at;
}

/* texts: "provider\0name\0args". */
#define MADE_NOTE(elf, vaddr, semaphore, texts)                                                    \
	made_note_raw(elf, (const uint64_t[]){vaddr, MADE_BASE + MADE_BASE_SECTION, semaphore},    \
		      texts, sizeof(texts))

#endif
