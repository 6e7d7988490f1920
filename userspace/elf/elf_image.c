/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_image.h"

#include <errno.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/array.h"
#include "base/bytes.h"

/* Survives a truncated file, against which no bounds check helps: when another process truncates a
 * file that elf_image_open() has mapped, the next read of the missing part raises SIGBUS.
 * Copying files instead would cost hundreds of MiB (libtorch_cuda: 1.5 GiB). So images stay mapped
 * and the signal is made harmless: the missing page becomes a page of zeros, which the parsers
 * distrust like any other bytes. */

static void on_sigbus(int signal_number, siginfo_t *info, void *context)
{
	const uintptr_t page = getauxval(AT_PAGESZ);
	const uintptr_t address = (uintptr_t)info->si_addr & ~(page - 1);
	const int saved_errno = errno;

	(void)context;
	/* The access is repeated on return, and then the default action kills. */
	if (info->si_code != BUS_ADRERR ||
	    mmap((void *)address, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		signal(signal_number, SIG_DFL);
	errno = saved_errno;
}

int elf_guard_install(void)
{
	struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	return sigaction(SIGBUS, &action, NULL) ? -errno : 0;
}

/* The budget of one ELF file: how much work its parsers may do before the file is given up.
 * A file says itself how long its tables are, and a sparse one of 12 KiB can claim gigabytes. So
 * each loop over a file's bytes pays first, and the budget grows with what is really stored. */

#define BUILD_ID_MOST_BYTES 64U
#define BLOCK_BYTES 512U /* stat(2): st_blocks */
#define DYNAMIC_MAX_ENTRIES 4096U

/* Returns the end of the data at a file offset: the next hole, or the end of the file. */
static uint64_t data_end(const struct elf_image *image, uint64_t offset)
{
	size_t begun;

	if (!image->extent)
		return image->size;
	begun = ARRAY_LEADING(image->extent_count, at, image->extent[at].start <= offset);
	return begun && image->extent[begun - 1].end > offset ? image->extent[begun - 1].end
							      : offset;
}

/* Returns `size` bytes at a file offset; NULL when not all of them are there. */
static const uint8_t *bytes_at(const struct elf_image *image, uint64_t offset, uint64_t size)
{
	if (offset > image->size || size > image->size - offset)
		return NULL;
	if (size >= ELF_HOLE_CHECK_BYTES && data_end(image, offset) - offset < size)
		return NULL;
	return image->data + offset;
}

/* ---- headers ---- */

static int read_file_header(struct elf_image *image)
{
	const uint8_t *at = bytes_at(image, 0, sizeof(Elf64_Ehdr));
	Elf64_Ehdr header;

	if (!at)
		return -ENOEXEC;
	memcpy(&header, at, sizeof(header));
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	if (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64)
		return -ENOEXEC;
	if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
		return -ENOEXEC;
	image->type = header.e_type;
	image->machine = header.e_machine;
	image->entry = header.e_entry;
	if (header.e_phnum) {
		if (header.e_phentsize != sizeof(Elf64_Phdr) ||
		    !bytes_at(image, header.e_phoff, (uint64_t)header.e_phnum * sizeof(Elf64_Phdr)))
			return -EBADMSG;
		image->program_offset = header.e_phoff;
		image->program_count = header.e_phnum;
	}
	if (header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shoff &&
	    bytes_at(image, header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr))) {
		image->section_offset = header.e_shoff;
		image->section_count = header.e_shnum;
		image->section_names = header.e_shstrndx;
	}
	return 0;
}

/* Keeps image->segment sorted by vaddr. */
static int add_segment(struct elf_image *image, const Elf64_Phdr *header)
{
	struct elf_segment segment = {
		.vaddr = header->p_vaddr,
		.offset = header->p_offset,
		.file_size = header->p_filesz,
		.memory_size = header->p_memsz,
		.align = header->p_align,
		.executable = header->p_flags & PF_X,
		.writable = header->p_flags & PF_W,
	};
	size_t at = image->segment_count;

	if (at == ELF_MAX_SEGMENTS || segment.vaddr + segment.memory_size < segment.vaddr ||
	    segment.file_size > segment.memory_size)
		return -EBADMSG;
	/* Debug files keep the program headers of the file they were split from. */
	if (segment.offset > image->size)
		segment.file_size = 0;
	else if (segment.file_size > image->size - segment.offset)
		segment.file_size = image->size - segment.offset;
	for (; at && image->segment[at - 1].vaddr > segment.vaddr; at--)
		image->segment[at] = image->segment[at - 1];
	image->segment[at] = segment;
	image->segment_count++;
	return 0;
}

static void find_build_id(struct elf_image *image, uint64_t offset, uint64_t size, uint64_t align)
{
	const uint8_t *at = bytes_at(image, offset, size);

	/* gABI: 4; 8 where .note.gnu.property has its own segment. */
	align = align == 8 ? 8 : 4;
	while (at && size >= sizeof(Elf64_Nhdr) &&
	       elf_work_pay(image->work, 1, ELF_WORK_PER_HEADER)) {
		const uint64_t name_size = load_u32(at), id_size = load_u32(at + 4);
		const uint64_t id_at = (sizeof(Elf64_Nhdr) + name_size + align - 1) & ~(align - 1);
		const uint64_t next = (id_at + id_size + align - 1) & ~(align - 1);

		if (id_at > size || id_size > size - id_at)
			return;
		if (load_u32(at + 8) == NT_GNU_BUILD_ID && name_size == sizeof(ELF_NOTE_GNU) &&
		    !memcmp(at + sizeof(Elf64_Nhdr), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) &&
		    id_size && id_size <= BUILD_ID_MOST_BYTES) {
			image->build_id = at + id_at;
			image->build_id_size = id_size;
			return;
		}
		if (next >= size)
			return;
		at += next;
		size -= next;
	}
}

static int read_program_header(struct elf_image *image, const Elf64_Phdr *header)
{
	switch (header->p_type) {
	case PT_LOAD:
		return add_segment(image, header);
	case PT_TLS:
		image->tls_memory_size = header->p_memsz;
		image->tls_align = header->p_align;
		return 0;
	case PT_NOTE:
		if (!image->build_id)
			find_build_id(image, header->p_offset, header->p_filesz, header->p_align);
		return 0;
	case PT_DYNAMIC:
		image->dynamic_vaddr = header->p_vaddr;
		image->dynamic_size = header->p_filesz;
		return 0;
	case PT_GNU_EH_FRAME:
		image->eh_frame_hdr = *header;
		return 0;
	default:
		return 0;
	}
}

static int read_program_headers(struct elf_image *image)
{
	for (uint16_t i = 0; i < image->program_count; i++) {
		Elf64_Phdr header;
		int err;

		if (!elf_work_pay(image->work, 1, ELF_WORK_PER_HEADER))
			return -E2BIG;

		memcpy(&header, image->data + image->program_offset + i * sizeof(header),
		       sizeof(header));
		err = read_program_header(image, &header);
		if (err)
			return err;
	}
	image->min_vaddr = image->segment_count ? image->segment[0].vaddr : 0;
	for (size_t i = 0; i < image->segment_count; i++) {
		const uint64_t end = image->segment[i].vaddr + image->segment[i].memory_size;

		if (end > image->max_vaddr)
			image->max_vaddr = end;
	}
	return 0;
}

static int read_headers(struct elf_image *image)
{
	struct elf_section note;
	int err = read_file_header(image);

	if (err)
		return err;
	err = read_program_headers(image);
	if (err)
		return err;
	if (!image->build_id && !elf_image_section(image, ".note.gnu.build-id", &note) && note.data)
		find_build_id(image, (uint64_t)(note.data - image->data), note.size, 4);
	return elf_work_is_over(image->work) ? -E2BIG : 0;
}

/* ---- opening ---- */

static int image_new(const void *data, size_t size, struct elf_image **ret_image)
{
	struct elf_image *image = calloc(1, sizeof(*image));

	if (!image)
		return -ENOMEM;
	image->data = data;
	image->size = size;
	image->owner = UINT32_MAX;
	image->own_work.limit = elf_work_limit(size);
	image->work = &image->own_work;
	*ret_image = image;
	return 0;
}

int elf_image_from_memory(const void *data, size_t size, struct elf_image **ret_image)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	int err = image_new(data, size, &image);

	if (!err)
		err = read_headers(image);
	if (err)
		return err;
	*ret_image = TAKE(image);
	return 0;
}

/* Notes where a file that may be sparse has data. A file system that knows no holes shows one
 * extent. *ret_stored_bytes: their sum. */
static int find_extents(struct elf_image *image, int fd, uint64_t *ret_stored_bytes)
{
	struct elf_extent *extent = malloc(ELF_MAX_EXTENTS * sizeof(*extent));
	uint64_t stored_bytes = 0;
	off_t start = 0, end;

	if (!extent)
		return -ENOMEM;
	image->extent = extent;
	while (image->extent_count < ELF_MAX_EXTENTS) {
		start = lseek(fd, start, SEEK_DATA);
		end = start < 0 ? -1 : lseek(fd, start, SEEK_HOLE);
		if (end <= start)
			break;
		extent[image->extent_count++] =
			(struct elf_extent){.start = (uint64_t)start, .end = (uint64_t)end};
		stored_bytes += (uint64_t)(end - start);
		start = end;
	}
	extent = realloc(extent, (image->extent_count + 1) * sizeof(*extent));
	if (extent)
		image->extent = extent;
	*ret_stored_bytes = stored_bytes;
	return 0;
}

/* Gives the image its budget, by what the file really stores. */
static int measure(struct elf_image *image, int fd, const struct stat *status)
{
	uint64_t stored_bytes = image->size;
	int err = 0;

	if ((uint64_t)status->st_blocks * BLOCK_BYTES < image->size)
		err = find_extents(image, fd, &stored_bytes);
	image->own_work.limit = elf_work_limit(stored_bytes);
	return err;
}

static bool is_in_huge_pages(int fd)
{
	struct statfs system;

	return !fstatfs(fd, &system) && (uint64_t)system.f_type == HUGETLBFS_MAGIC;
}

/* A file system of one user's (FUSE) tells that user alone: then it is known how long the file is,
 * and no hole. */
static int read_status(int fd, struct stat *ret_status)
{
	off_t size;

	if (!fstat(fd, ret_status))
		return 0;
	size = errno == EACCES ? lseek(fd, 0, SEEK_END) : -1;
	if (size < 0)
		return -errno;
	*ret_status = (struct stat){.st_mode = S_IFREG,
				    .st_size = size,
				    .st_blocks = size / BLOCK_BYTES + 1,
				    .st_uid = UINT32_MAX};
	return 0;
}

int elf_image_open(int fd, struct elf_image **ret_image)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	struct stat status;
	void *data;
	int err;

	err = read_status(fd, &status);
	if (err)
		return err;
	if (!S_ISREG(status.st_mode) || status.st_size < (off_t)sizeof(Elf64_Ehdr))
		return -ENOEXEC;
	if (is_in_huge_pages(fd))
		return -ENOTSUP;
	err = image_new(NULL, (size_t)status.st_size, &image);
	if (!err)
		err = measure(image, fd, &status);
	if (err)
		return err;
	/* Into a private mapping the kernel puts the breakpoints of probes that are on for all
	 * processes (kernel/events/uprobes.c: valid_vma()). */
	data = mmap(NULL, image->size, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	image->data = data;
	image->is_mapped = true;
	image->owner = status.st_uid;
	err = read_headers(image);
	if (err)
		return err;
	*ret_image = TAKE(image);
	return 0;
}

void elf_image_free(struct elf_image *image)
{
	if (!image)
		return;
	if (image->is_mapped)
		munmap((void *)image->data, image->size);
	free(image->extent);
	free(image);
}

void elf_image_share_work(struct elf_image *image, const struct elf_image *of)
{
	image->work = of->work;
}

void elf_image_release(const struct elf_image *image, const void *start, size_t size)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t first = ((uintptr_t)start + page - 1) & ~(page - 1);
	const uintptr_t end = ((uintptr_t)start + size) & ~(page - 1);

	if (image->is_mapped && end > first)
		madvise((void *)first, end - first, MADV_DONTNEED);
}

/* ---- sections, segments, addresses ---- */

static Elf64_Shdr section_header(const struct elf_image *image, uint32_t index)
{
	Elf64_Shdr header;

	memcpy(&header, image->data + image->section_offset + index * sizeof(header),
	       sizeof(header));
	return header;
}

static int fill_section(const struct elf_image *image, const Elf64_Shdr *header,
			struct elf_section *ret_section)
{
	const uint8_t *data = NULL;

	if (header->sh_type != SHT_NOBITS) {
		data = bytes_at(image, header->sh_offset, header->sh_size);
		if (!data)
			return -EBADMSG;
	}
	*ret_section = (struct elf_section){
		.data = data,
		.size = header->sh_size,
		.vaddr = header->sh_addr,
		.type = header->sh_type,
		.entry_size = header->sh_entsize,
		.link = header->sh_link,
		.flags = header->sh_flags,
	};
	return 0;
}

int elf_image_section_by_index(const struct elf_image *image, uint32_t index,
			       struct elf_section *ret_section)
{
	Elf64_Shdr header;

	if (index >= image->section_count)
		return -ENOENT;
	header = section_header(image, index);
	return fill_section(image, &header, ret_section);
}

int elf_image_section(const struct elf_image *image, const char *name,
		      struct elf_section *ret_section)
{
	const size_t name_size = strlen(name) + 1;
	struct elf_section names;

	if (elf_image_section_by_index(image, image->section_names, &names) || !names.data)
		return -ENOENT;
	for (uint32_t i = 1;
	     i < image->section_count && elf_work_pay(image->work, 1, ELF_WORK_PER_HEADER); i++) {
		const Elf64_Shdr header = section_header(image, i);

		if (header.sh_name < names.size && names.size - header.sh_name >= name_size &&
		    !memcmp(names.data + header.sh_name, name, name_size))
			return fill_section(image, &header, ret_section);
	}
	return -ENOENT;
}

static int fill_segment(const struct elf_image *image, const Elf64_Phdr *header, uint32_t type,
			struct elf_section *ret_section)
{
	const Elf64_Shdr section = {.sh_type = type,
				    .sh_offset = header->p_offset,
				    .sh_size = header->p_filesz,
				    .sh_addr = header->p_vaddr};

	return fill_section(image, &section, ret_section);
}

int elf_image_note_segment(const struct elf_image *image, uint32_t index,
			   struct elf_section *ret_section)
{
	Elf64_Phdr header;

	if (index >= image->program_count)
		return -ENOENT;
	memcpy(&header, image->data + image->program_offset + index * sizeof(header),
	       sizeof(header));
	return header.p_type == PT_NOTE ? fill_segment(image, &header, SHT_NOTE, ret_section)
					: -ENOENT;
}

int elf_image_eh_frame_hdr(const struct elf_image *image, struct elf_section *ret_section)
{
	return image->eh_frame_hdr.p_filesz
		       ? fill_segment(image, &image->eh_frame_hdr, SHT_PROGBITS, ret_section)
		       : -ENOENT;
}

const uint8_t *elf_image_at(const struct elf_image *image, uint64_t vaddr, size_t size)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segment[i];
		const uint64_t into = vaddr - segment->vaddr;

		if (vaddr >= segment->vaddr && into <= segment->file_size &&
		    size <= segment->file_size - into)
			return bytes_at(image, segment->offset + into, size);
	}
	return NULL;
}

uint64_t elf_image_readable_bytes(const struct elf_image *image, uint64_t vaddr)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segment[i];
		const uint64_t into = vaddr - segment->vaddr;
		uint64_t left, data;

		if (vaddr < segment->vaddr || into >= segment->file_size)
			continue;
		left = segment->file_size - into;
		data = data_end(image, segment->offset + into) - (segment->offset + into);
		return data < left ? data : left;
	}
	return 0;
}

int elf_image_vaddr_to_offset(const struct elf_image *image, uint64_t vaddr, uint64_t size,
			      uint32_t flags, uint64_t *ret_offset)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segment[i];
		const uint64_t into = vaddr - segment->vaddr;

		if ((flags & PF_X && !segment->executable) || (flags & PF_W && !segment->writable))
			continue;
		if (vaddr < segment->vaddr || into > segment->file_size ||
		    size > segment->file_size - into)
			continue;
		*ret_offset = segment->offset + into;
		return 0;
	}
	return -ENOENT;
}

const struct elf_segment *elf_image_code_at(const struct elf_image *image, uint64_t vaddr)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segment[i];

		if (segment->executable && vaddr >= segment->vaddr &&
		    vaddr - segment->vaddr < segment->memory_size)
			return segment;
	}
	return NULL;
}

bool elf_image_dynamic(const struct elf_image *image, uint32_t index, Elf64_Dyn *ret_entry)
{
	const uint64_t at = index * sizeof(*ret_entry);
	const uint8_t *bytes = NULL;

	if (index < DYNAMIC_MAX_ENTRIES && at + sizeof(*ret_entry) <= image->dynamic_size)
		bytes = elf_image_at(image, image->dynamic_vaddr + at, sizeof(*ret_entry));
	if (!bytes)
		return false;
	memcpy(ret_entry, bytes, sizeof(*ret_entry));
	return ret_entry->d_tag != DT_NULL;
}
