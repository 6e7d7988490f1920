/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/own_code.h"

#include <errno.h>
#include <link.h>
#include <stdbool.h>

struct search {
	uintptr_t address;
	uint64_t offset; /* the answer */
	bool is_found;
};

static int find(struct dl_phdr_info *info, size_t size, void *context)
{
	struct search *search = context;

	(void)size;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || search->address < start ||
		    search->address - start >= segment->p_filesz)
			continue;
		search->offset = search->address - start + segment->p_offset;
		search->is_found = true;
	}
	return 1; /* the first one is the program itself: dl_iterate_phdr(3) */
}

int own_code_offset(const void *address, uint64_t *ret_offset)
{
	struct search search = {.address = (uintptr_t)address};

	(void)dl_iterate_phdr(find, &search);
	if (!search.is_found)
		return -ENOENT;
	*ret_offset = search.offset;
	return 0;
}
