/* SPDX-License-Identifier: BSD-2-Clause */
/* What words of an ELF file's data are once the file is loaded: addresses, which relocations put
 * there.  elf_image -> [elf_slots].  No state. */
#ifndef ELF_ELF_SLOTS_H
#define ELF_ELF_SLOTS_H

#include "elf/elf_image.h"

struct elf_slot {
	uint64_t vaddr; /* of a word of 8 bytes */
	uint64_t value; /* what it points to, in the file; 0: nothing of the file's own */
};

/* Finds the values of slots, ascending by vaddr.  Without a relocation a slot is what the file has
 * there (as DT_RELR wants it).  work: pays, in units of elf/elf_work.h; where it is over, slots
 * have no value. */
void elf_slots_resolve(const struct elf_image *image, struct elf_work *work, struct elf_slot *slot,
		       size_t count);

#endif
