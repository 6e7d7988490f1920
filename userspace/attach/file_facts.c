/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/file_facts.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "attach/file_table.h"
#include "base/clock.h"
#include "base/io.h"
#include "discover/mapping_set.h"
#include "files/client.h"

bool file_facts_are_refused(int err)
{
	return err == -E2BIG || err == -ENOTSUP || err == -ETIME;
}

int file_facts_soften(struct file *file, int err)
{
	if (err != -ETIME || file->lates == FILE_LATES_MAX)
		return err;
	file->lates++;
	return -ETIMEDOUT;
}

static void take_segments(struct file *file, const struct foreign_facts *facts)
{
	memcpy(file->segment, facts->segment, sizeof(file->segment));
	file->segment_count = facts->segment_count;
	file->min_vaddr = UINT64_MAX;
	file->max_vaddr = 0;
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct foreign_segment *segment = &file->segment[i];

		if (segment->vaddr < file->min_vaddr)
			file->min_vaddr = segment->vaddr;
		/* What is in memory alone is a mapping without a file. */
		if (segment->vaddr + segment->file_size > file->max_vaddr)
			file->max_vaddr = segment->vaddr + segment->file_size;
	}
}

static void take_names(struct file *file, const struct foreign_facts *facts)
{
	const struct debug_names *names = &facts->debug;

	if (!facts->has_symbols && (names->build_id_bytes || names->link[0]))
		file->debug = malloc(sizeof(*names)); /* without it, it has its own names alone */
	if (file->debug)
		*file->debug = *names;
	if (names->build_id_bytes > BUILD_ID_MAX_BYTES)
		return;
	memcpy(file->build_id, names->build_id, names->build_id_bytes);
	file->build_id_size = (uint8_t)names->build_id_bytes;
}

void file_facts_ask(struct foreign *foreign, const struct foreign_file *asked, struct file *file)
{
	struct foreign_facts facts;

	file->error = file_facts_soften(file, foreign_examine(foreign, asked, &facts, &file->python,
							      &file->python_reason));
	file->is_refused = file_facts_are_refused(file->error);
	file->unread_ns = file->error == -ETIMEDOUT || file->error == -EAGAIN ? mono_ns() : 0;
	if (file->error)
		return;
	take_segments(file, &facts);
	file->has_rows = !facts.rows_error;
	file->is_refused = file_facts_are_refused(facts.rows_error);
	file->is_giant = facts.fde_count > FILE_GIANT_FDES;
	take_names(file, &facts);
}

uint64_t file_bias(const struct file *file, const struct mapping *mapping)
{
	const struct foreign_segment *found = NULL;
	uint64_t page = mapping->offset & ~4095ULL;

	for (size_t i = 0; i < file->segment_count; i++) {
		const struct foreign_segment *segment = &file->segment[i];

		/* mmap rounds a segment's ends to pages.  A page that two segments share is mapped
		 * for each of them; a mapping that starts with that page belongs to the second. */
		if (page + 4096 > segment->offset && page < segment->offset + segment->file_size &&
		    (!found || segment->offset >= page))
			found = segment;
	}
	if (!found)
		return mapping->start - mapping->offset;
	return mapping->start - (found->vaddr + (mapping->offset - found->offset));
}

/* It ends with its section headers (vdso2c). */
int file_facts_vdso(int *ret_fd)
{
	const uint8_t *vdso = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)vdso;
	OWNED_FD int fd = -1;
	int err;

	if (!vdso)
		return -ENODATA;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write_full(fd, vdso, header->e_shoff + (size_t)header->e_shnum * header->e_shentsize);
	if (!err)
		*ret_fd = TAKE_FD(fd);
	return err;
}
