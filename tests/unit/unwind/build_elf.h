/* SPDX-License-Identifier: BSD-2-Clause */
/* A small ELF file in memory, for hand-written unwind information.  Addresses equal file
 * offsets. */
#ifndef TESTS_BUILD_ELF_H
#define TESTS_BUILD_ELF_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

#define BUILT_HDR 0x200	   /* .eh_frame_hdr */
#define BUILT_FRAME 0x400  /* .eh_frame or .debug_frame */
#define BUILT_TEXT 0x10000 /* code, zeros */
#define BUILT_SECTIONS 0x2e000
#define BUILT_NAMES 0x2f000
#define BUILT_SIZE 0x30000
#define BUILT_SECOND 0x8000 /* another section */
#define BUILT_MAX_FRAME (BUILT_TEXT - BUILT_FRAME)

struct built_elf {
	_Alignas(16) uint8_t data[BUILT_SIZE];
};

/* section: ".eh_frame" or ".debug_frame".  hdr_size 0: no PT_GNU_EH_FRAME. */
static inline void build_elf(struct built_elf *elf, uint16_t machine, const void *hdr,
			     size_t hdr_size, const char *section, const void *frame,
			     size_t frame_size)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)elf->data;
	Elf64_Phdr *program = (Elf64_Phdr *)(elf->data + sizeof(*header));
	Elf64_Shdr *sections = (Elf64_Shdr *)(elf->data + BUILT_SECTIONS);
	char *names = (char *)elf->data + BUILT_NAMES;

	memset(elf, 0, sizeof(*elf));
	memcpy(header->e_ident, ELFMAG, SELFMAG);
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_ident[EI_DATA] = ELFDATA2LSB;
	header->e_ident[EI_VERSION] = EV_CURRENT;
	header->e_type = ET_DYN;
	header->e_machine = machine;
	header->e_version = EV_CURRENT;
	header->e_ehsize = sizeof(*header);
	header->e_phoff = sizeof(*header);
	header->e_phentsize = sizeof(*program);
	header->e_phnum = hdr_size ? 2 : 1;
	header->e_shoff = BUILT_SECTIONS;
	header->e_shentsize = sizeof(*sections);
	header->e_shnum = 3;
	header->e_shstrndx = 1;
	program[0] = (Elf64_Phdr){.p_type = PT_LOAD,
				  .p_flags = PF_R | PF_X,
				  .p_filesz = BUILT_SIZE,
				  .p_memsz = BUILT_SIZE,
				  .p_align = 4096};
	if (hdr_size) {
		program[1] = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME,
					  .p_flags = PF_R,
					  .p_offset = BUILT_HDR,
					  .p_vaddr = BUILT_HDR,
					  .p_filesz = hdr_size,
					  .p_memsz = hdr_size,
					  .p_align = 4};
		memcpy(elf->data + BUILT_HDR, hdr, hdr_size);
	}
	strcpy(names + 1, ".shstrtab");
	strcpy(names + 32, section);
	sections[1] = (Elf64_Shdr){
		.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = BUILT_NAMES, .sh_size = 96};
	sections[2] = (Elf64_Shdr){.sh_name = 32,
				   .sh_type = SHT_PROGBITS,
				   .sh_addr = strcmp(section, ".eh_frame") ? 0 : BUILT_FRAME,
				   .sh_offset = BUILT_FRAME,
				   .sh_size = frame_size};
	if (frame_size)
		memcpy(elf->data + BUILT_FRAME, frame, frame_size);
}

/* Adds a section at BUILT_SECOND. */
static inline void build_section(struct built_elf *elf, const char *name, const void *bytes,
				 size_t size, uint64_t flags)
{
	Elf64_Shdr *sections = (Elf64_Shdr *)(elf->data + BUILT_SECTIONS);

	strcpy((char *)elf->data + BUILT_NAMES + 64, name);
	sections[3] = (Elf64_Shdr){.sh_name = 64,
				   .sh_type = SHT_PROGBITS,
				   .sh_flags = flags,
				   .sh_addr = flags & SHF_COMPRESSED ? 0 : BUILT_SECOND,
				   .sh_offset = BUILT_SECOND,
				   .sh_size = size};
	((Elf64_Ehdr *)elf->data)->e_shnum = 4;
	memcpy(elf->data + BUILT_SECOND, bytes, size);
}

/* Appends records to a .eh_frame under construction. */
struct frame_builder {
	uint8_t data[4096];
	size_t size;
};

static inline void put_bytes(struct frame_builder *frame, const void *bytes, size_t size)
{
	memcpy(frame->data + frame->size, bytes, size);
	frame->size += size;
}

static inline void put_u32(struct frame_builder *frame, uint32_t value)
{
	put_bytes(frame, &value, sizeof(value));
}

/* augmentation: with its NUL and all up to the initial instructions.  Returns the CIE's offset. */
static inline size_t put_cie(struct frame_builder *frame, const char *bytes, size_t size)
{
	size_t offset = frame->size;

	put_u32(frame, (uint32_t)size + 4);
	put_u32(frame, 0);
	put_bytes(frame, bytes, size);
	return offset;
}

/* An FDE with PC-relative sdata4 addresses and an empty augmentation.  Returns its offset. */
static inline size_t put_fde(struct frame_builder *frame, size_t cie, uint32_t low, uint32_t size,
			     const char *program, size_t program_size)
{
	size_t offset = frame->size;

	put_u32(frame, (uint32_t)program_size + 13);
	put_u32(frame, (uint32_t)(frame->size - cie));
	put_u32(frame, low - (uint32_t)(BUILT_FRAME + frame->size));
	put_u32(frame, size);
	put_bytes(frame, "", 1);
	put_bytes(frame, program, program_size);
	return offset;
}

#define CIE(frame, literal) put_cie(frame, literal, sizeof(literal) - 1)
#define FDE(frame, cie, low, size, literal)                                                        \
	put_fde(frame, cie, low, size, literal, sizeof(literal) - 1)

#endif
