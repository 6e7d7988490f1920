/* SPDX-License-Identifier: BSD-2-Clause */
/* One ELF file, mapped read-only and distrusted: every offset is checked against the file's size
 * before it is followed.  64-bit little-endian x86-64 and aarch64 only. */
#ifndef ELF_ELF_IMAGE_H
#define ELF_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* Installs the process's SIGBUS handler, once, before the first image is opened. The handler keeps
 * no state: for BUS_ADRERR it maps a zero page over the address, any other SIGBUS kills as before.
 * Returns 0 or -errno. */
int elf_guard_install(void);

/* A unit is about a nanosecond of this machine's class: reading one byte of a program of CFI
 * instructions, or a tenth of a symbol. The largest files that we know stay below a third of what
 * they get: docs/design/files.md. */
#define ELF_WORK_BASE_UNITS (16ULL << 20)   /* what every file gets */
#define ELF_WORK_UNITS_PER_BYTE 16U	    /* more for each byte stored */
#define ELF_WORK_MAX_UNITS (200ULL << 20)   /* less than the loop's longest stall, 250 ms */
#define ELF_WORK_PER_SYMBOL 10U		    /* one entry of a symbol table is read and placed */
#define ELF_WORK_PER_SYMBOL_SORTED 60U	    /* and sorted */
#define ELF_WORK_PER_HEADER 4U		    /* a section header, a note, an entry of a hash chain */
#define ELF_WORK_PER_FDE 48U		    /* beside the bytes of its record */
#define ELF_WORK_PER_FDE_SORTED 80U	    /* when the index of FDEs must be built */
#define ELF_WORK_PER_INSTRUCTION_BYTE 4U    /* of a CIE or an FDE */
#define ELF_WORK_PER_UNPACKED_BYTE 4U	    /* of .gnu_debugdata (xz) */
#define ELF_WORK_SEARCHED_BYTES_PER_UNIT 2U /* memmem() */
#define ELF_WORK_NAME_BYTES_PER_UNIT 8U	    /* strnlen(), memchr() */

struct elf_work {
	uint64_t spent, limit; /* units */
};

static inline uint64_t elf_work_limit(uint64_t stored_bytes)
{
	if (stored_bytes >= (ELF_WORK_MAX_UNITS - ELF_WORK_BASE_UNITS) / ELF_WORK_UNITS_PER_BYTE)
		return ELF_WORK_MAX_UNITS;
	return ELF_WORK_BASE_UNITS + stored_bytes * ELF_WORK_UNITS_PER_BYTE;
}

/* Returns whether the budget is used up. It stays so: the file is given up. */
static inline bool elf_work_is_over(const struct elf_work *work)
{
	return work->spent > work->limit;
}

/* Pays for `count` steps of `units` each. Returns false when the budget does not allow them; then
 * the caller leaves them out. */
static inline bool elf_work_pay(struct elf_work *work, uint64_t count, uint64_t units)
{
	uint64_t price, spent;

	if (__builtin_mul_overflow(count, units, &price) ||
	    __builtin_add_overflow(work->spent, price, &spent))
		spent = UINT64_MAX;
	work->spent = spent > work->limit ? work->limit + 1 : spent;
	return !elf_work_is_over(work);
}

#define ELF_MAX_SEGMENTS 64U
/* Stretches of data between holes that we look at; what lies behind them counts as a hole. */
#define ELF_MAX_EXTENTS 4096U
/* Shorter ranges are given out without a look at the holes: reading a hole of a file in tmpfs
 * allocates its pages, so this bounds what one read can cost. */
#define ELF_HOLE_CHECK_BYTES 65536U

struct elf_segment {
	uint64_t vaddr, offset, file_size, memory_size, align;
	bool executable, writable;
};

struct elf_section {
	const uint8_t *data; /* NULL for SHT_NOBITS */
	uint64_t size;
	uint64_t vaddr;
	uint32_t type;
	uint64_t entry_size;
	uint32_t link;
	uint64_t flags; /* SHF_… */
};

/* Bytes [start, end) of a file that has holes. */
struct elf_extent {
	uint64_t start, end;
};

struct elf_image {
	const uint8_t *data; /* the mapped file, or the caller's memory */
	size_t size;
	uint16_t type;	  /* ET_EXEC, ET_DYN */
	uint16_t machine; /* EM_X86_64, EM_AARCH64 */
	uint64_t entry;
	struct elf_segment segment[ELF_MAX_SEGMENTS]; /* PT_LOAD only, by vaddr */
	size_t segment_count;
	uint64_t min_vaddr, max_vaddr;	     /* of PT_LOAD */
	uint64_t tls_memory_size, tls_align; /* PT_TLS; 0: none */
	const uint8_t *build_id;	     /* into data, or NULL */
	size_t build_id_size;
	uint32_t owner;	       /* of the file; UINT32_MAX: the image is in memory */
	struct elf_work *work; /* the budget that everybody who loops over the bytes pays from */
	/* private */
	struct elf_work own_work;
	struct elf_extent *extent; /* owned; where a sparse file has data; NULL: everywhere */
	size_t extent_count;
	uint64_t program_offset, section_offset;
	uint16_t program_count, section_count, section_names;
	uint64_t dynamic_vaddr, dynamic_size; /* of PT_DYNAMIC */
	Elf64_Phdr eh_frame_hdr;	      /* PT_GNU_EH_FRAME; zeros: none */
	bool is_mapped;
};

/* Maps the file open at fd (borrowed; may be closed afterwards). Section headers outside the file
 * count as stripped, because the kernel runs such files, and a segment's file_size is cut to what
 * the file has. Mapped pages count in this process's RSS while the image lives: free it after use.
 * A file that shrinks while it is mapped raises SIGBUS on access: see elf_guard_install(). The
 * bytes may also change between two reads: copy before checking, and do not rely on a string's
 * NUL. Ranges with holes are as if they were outside of the file: see ELF_HOLE_CHECK_BYTES.
 * Returns 0; -ENOEXEC when it is not an ELF file that we support; -EBADMSG when program headers
 * point outside of the file; -E2BIG when its headers and notes take more work than the budget;
 * -ENOTSUP for a file in huge pages, where a lost page cannot be survived; -ENOMEM; -errno. */
int elf_image_open(int fd, struct elf_image **ret_image);
/* Opens an image in the caller's memory (vDSO, fuzzing, decompressed debug data), which is
 * borrowed. */
int elf_image_from_memory(const void *data, size_t size, struct elf_image **ret_image);
void elf_image_free(struct elf_image *image);
/* Makes an image that was unpacked from another one pay from that one's budget. */
void elf_image_share_work(struct elf_image *image, const struct elf_image *of);
DEFINE_OWNED(struct elf_image, elf_image)

/* Returns whether the file has no holes. */
static inline bool elf_image_is_whole(const struct elf_image *image)
{
	return !image->extent || (image->extent_count == 1 && !image->extent[0].start &&
				  image->extent[0].end == image->size);
}

/* Removes the whole pages inside [start, start + size) of the image from this process's RSS; they
 * come back from the page cache when they are read again. */
void elf_image_release(const struct elf_image *image, const void *start, size_t size);

/* Finds a section by its name. Returns 0; -ENOENT when there is none; -EBADMSG when it lies outside
 * the file. */
int elf_image_section(const struct elf_image *image, const char *name,
		      struct elf_section *ret_section);
int elf_image_section_by_index(const struct elf_image *image, uint32_t index,
			       struct elf_section *ret_section);
/* Finds program header `index` if it is a PT_NOTE.  Returns 0; -ENOENT: it is none, or there are
 * not so many; -EBADMSG. */
int elf_image_note_segment(const struct elf_image *image, uint32_t index,
			   struct elf_section *ret_section);
/* Finds the PT_GNU_EH_FRAME segment. Returns 0; -ENOENT; -EBADMSG. */
int elf_image_eh_frame_hdr(const struct elf_image *image, struct elf_section *ret_section);
/* Returns the bytes at a virtual address, inside the file part of one PT_LOAD; NULL when not all of
 * them are there. */
const uint8_t *elf_image_at(const struct elf_image *image, uint64_t vaddr, size_t size);
/* Returns the executable PT_LOAD that an address lies in, once it is in memory; NULL: none. */
const struct elf_segment *elf_image_code_at(const struct elf_image *image, uint64_t vaddr);
/* Reads entry `index` of PT_DYNAMIC.  Returns false behind the last one. */
bool elf_image_dynamic(const struct elf_image *image, uint32_t index, Elf64_Dyn *ret_entry);
/* Returns how many bytes at a virtual address lie in the file part of its segment, before any
 * hole. */
uint64_t elf_image_readable_bytes(const struct elf_image *image, uint64_t vaddr);
/* Converts a virtual address to the file offset of that byte.  All `size` bytes must lie in the
 * file part of one PT_LOAD with these flags (PF_X, PF_W).  Returns 0 or -ENOENT. */
int elf_image_vaddr_to_offset(const struct elf_image *image, uint64_t vaddr, uint64_t size,
			      uint32_t flags, uint64_t *ret_offset);

/* Looks one symbol up in .dynsym, then .symtab.  Returns 0 or -ENOENT.  For STT_TLS value is the
 * offset in the TLS block.  (Defined in elf_symbol_table.c.) */
struct elf_symbol {
	uint64_t value, size;
	uint8_t type; /* STT_… */
};
int elf_image_symbol(const struct elf_image *image, const char *name,
		     struct elf_symbol *ret_symbol);

#endif
